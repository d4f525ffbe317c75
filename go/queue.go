package drayhorse

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/drayhorse/drayhorse/go/internal/clib"
)

// Queue is a connection to one queue database: a bounded pool behind which calls wait their turn. It is safe for
// concurrent use. Close is the contract: a queue that is not closed keeps its connections and its goroutine.
//
// Every method takes a context. When it ends while a call waits for its turn, the call is not sent; when it ends while
// the call runs, the result is discarded and the call may have been applied: the error says which. An enqueue with an
// idempotency key may be repeated to learn what became of it.
type Queue struct {
	// Endpoints, Queues and Contracts are the parts of the queue that operators change.
	Endpoints Endpoints
	Queues    Queues
	Contracts Contracts

	client clib.Client
	calls  *calls
	ended  chan struct{}
}

// Option is a setting of Connect.
type Option func(*connectOptions)

type connectOptions struct {
	Schema             string      `json:"schema,omitempty"`
	ConnectTimeoutMs   int64       `json:"connectTimeoutMs,omitempty"`
	StatementTimeoutMs int64       `json:"statementTimeoutMs,omitempty"`
	PoolSize           int         `json:"poolSize,omitempty"`
	TLS                *TLSOptions `json:"tls,omitempty"`
	PostgresBin        string      `json:"postgresBin,omitempty"`
	Language           string      `json:"language"`
}

// TLSOptions say how a connection is protected; what is absent is read off the URL.
type TLSOptions struct {
	// CAFile is a PEM file with the authorities to trust instead of the system's.
	CAFile string `json:"caFile,omitempty"`
	// Mode is a value of sslmode, "verify-full" for example.
	Mode string `json:"mode,omitempty"`
}

// WithSchema names the schema that holds the queue; "drayhorse" when absent.
func WithSchema(schema string) Option { return func(o *connectOptions) { o.Schema = schema } }

// WithConnectTimeout bounds the opening of one connection.
func WithConnectTimeout(timeout time.Duration) Option {
	return func(o *connectOptions) { o.ConnectTimeoutMs = milliseconds(timeout) }
}

// WithStatementTimeout bounds each statement in the database.
func WithStatementTimeout(timeout time.Duration) Option {
	return func(o *connectOptions) { o.StatementTimeoutMs = milliseconds(timeout) }
}

// WithPoolSize bounds the connections for calls; 4 when absent. A running worker has three of its own.
func WithPoolSize(connections int) Option {
	return func(o *connectOptions) { o.PoolSize = connections }
}

// WithTLS says how connections are protected.
func WithTLS(tls TLSOptions) Option { return func(o *connectOptions) { o.TLS = &tls } }

// WithPostgresBin names the folder of initdb and postgres for a new "embedded:" cluster.
func WithPostgresBin(folder string) Option {
	return func(o *connectOptions) { o.PostgresBin = folder }
}

// milliseconds rounds up, so that a short time does not become none.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Connect opens a queue at a URL, "postgresql://…" or "embedded:PATH". Connections open on first use, so a server that
// is away is not noticed here; a bad URL or option is, and a private server is started.
func Connect(ctx context.Context, url string, options ...Option) (*Queue, error) {
	if linked := clib.LinkedABIVersion(); linked != clib.ABIVersion {
		return nil, newError(ErrInternal, "the linked library has ABI version %d, this module needs %d", linked, clib.ABIVersion)
	}
	if err := ctx.Err(); err != nil {
		return nil, notSent("connect", ctx)
	}
	settings := connectOptions{Language: "go"}
	for _, option := range options {
		option(&settings)
	}
	text, err := encodeArguments(settings)
	if err != nil {
		return nil, err
	}
	type opened struct {
		client clib.Client
		err    error
	}
	result := make(chan opened, 1)
	go func() {
		client, status, said := clib.Connect(url, text)
		result <- opened{client, failure(status, said)}
	}()
	select {
	case r := <-result:
		if r.err != nil {
			return nil, r.err
		}
		q := &Queue{client: r.client, calls: newCalls(r.client.Submit), ended: make(chan struct{})}
		q.Endpoints, q.Queues, q.Contracts = Endpoints{q}, Queues{q}, Contracts{q}
		go q.deliver()
		return q, nil
	case <-ctx.Done():
		go func() {
			if r := <-result; r.err == nil {
				r.client.Free()
			}
		}()
		return nil, mayHaveRun("connect", ctx)
	}
}

// Close ends the queue after the calls that run; calls that wait or come later are ErrClosed. Stop workers before.
// Closing twice is fine.
func (q *Queue) Close() error {
	status, said := q.client.Close()
	err := failure(status, said)
	if isCode(err, ErrClosed) {
		err = nil
	}
	<-q.ended
	q.client.Free()
	return err
}

// completionBatch bounds what one call brings from the core.
const completionBatch = 256

// waitMs is how long one blocked call into the core lasts; its length is of no importance.
const waitMs = 600_000

// deliver is the one goroutine that waits for the core on behalf of all callers.
func (q *Queue) deliver() {
	defer close(q.ended)
	for {
		status, text := q.client.NextCompletions(completionBatch, waitMs)
		if status != 0 {
			q.calls.fail(failure(status, text))
			return
		}
		var batch []completion
		if err := json.Unmarshal(text, &batch); err != nil {
			q.calls.fail(newError(ErrInternal, "completions are no JSON: %v", err))
			return
		}
		for _, done := range batch {
			q.calls.complete(done)
		}
	}
}

// call runs one control verb and decodes its answer into result, unless that is nil.
func (q *Queue) call(ctx context.Context, verb string, args any, result any) error {
	text, err := encodeArguments(args)
	if err != nil {
		return err
	}
	answer, err := q.calls.run(ctx, verb, text, q.cancelCall)
	if err != nil || result == nil {
		return err
	}
	if err := decode(answer, result); err != nil {
		return newError(ErrInternal, "%s: unexpected answer: %v", verb, err)
	}
	return nil
}

// cancelCall takes a call out of the queue and reports whether it had not been sent.
func (q *Queue) cancelCall(ticket uint64) bool {
	status, said := q.client.Cancel(ticket)
	return status == 0 && strings.TrimSpace(string(said)) == "true"
}

// Version is the version of the linked library.
func Version() (string, error) {
	var version string
	status, said := clib.Version()
	if err := failure(status, said); err != nil {
		return "", err
	}
	return version, json.Unmarshal(said, &version)
}
