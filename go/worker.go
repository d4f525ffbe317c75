package drayhorse

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/drayhorse/drayhorse/go/internal/clib"
)

// WorkerOptions are the settings of a worker; zero values are absent.
type WorkerOptions struct {
	// Queues are ["default"] when absent.
	Queues []string
	// Concurrency is how many handlers run at once; 10 when absent.
	Concurrency int
	// Prefetch is how many jobs are claimed beyond that; 0.
	Prefetch int
	// LeaseMs is how long a claim holds without renewal; 30,000 when absent. It is renewed by a native thread.
	LeaseMs int64
	// GraceMs is how long running handlers may go on when the worker stops; 25,000 when absent.
	GraceMs int64
	// PollMs is the longest pause between looks for work; 1,000 when absent.
	PollMs int64
	// RetryDelayMs overrides the delay after a failure of this worker; without a value (ok false) the job's policy
	// decides. A job with a timeout asks for it when it starts, for the case that it times out.
	RetryDelayMs func(attempt int, job *Job) (ms int64, ok bool)
	// ClassifyError says what an error means; nil defers to "retryable". A NonRetryableError or RetryableError on the
	// error's chain, and the handler's own classifier, come before it.
	ClassifyError func(err error, job *Job) *Classification
	// Name is shown by Queue.Workers; host and process id when absent.
	Name string
	// OnError is told what goes wrong outside of handlers; job is nil when it concerns none. slog.Default() when absent.
	OnError func(err error, job *Job)
	// HandleSignals: SIGINT and SIGTERM start the drain during Run, a second one ends the process. True when absent.
	HandleSignals *bool
}

// HandleOptions are the settings of one handler.
type HandleOptions struct {
	// Version is "1" when absent.
	Version string
	// ClassifyError comes before the worker's.
	ClassifyError func(err error, job *Job) *Classification
}

// HandlerFunc does the work of one job. Its result is any value with a JSON form. The context ends when the attempt
// must: its cause is an *AbortError.
type HandlerFunc func(ctx context.Context, job *Job) (any, error)

// FixedDelayMs is a RetryDelayMs that always answers ms, 0 for an immediate retry.
func FixedDelayMs(ms int64) func(attempt int, job *Job) (int64, bool) {
	return func(int, *Job) (int64, bool) { return ms, true }
}

// Ptr makes the pointer of an option where 0 or false means something: FailOptions{DelayMs: drayhorse.Ptr[int64](0)}.
func Ptr[T any](value T) *T { return &value }

type handlerKey struct{ jobType, version string }

type registered struct {
	run      HandlerFunc
	classify func(err error, job *Job) *Classification
}

// Worker runs the handlers of jobs. Make it with NewWorker, give it handlers, then Run it once.
type Worker struct {
	queue   *Queue
	options WorkerOptions

	mu       sync.Mutex
	handlers map[handlerKey]registered
	// refused is the first registration that failed: Run fails with it, so it cannot go unnoticed.
	refused error
	phase   phase
	// running are the attempts whose handlers have not returned.
	running map[uint64]*attempt

	native   clib.Worker
	calls    *calls
	reports  reports
	stopping atomic.Bool
}

type phase int

const (
	phaseNew phase = iota
	phaseRunning
	phaseEnded
)

// NewWorker makes a worker of a queue. Nothing runs before Run.
func NewWorker(queue *Queue, options WorkerOptions) *Worker {
	return &Worker{
		queue: queue, options: options,
		handlers: map[handlerKey]registered{}, running: map[uint64]*attempt{},
	}
}

// Handle registers the handler of a type and version. A second one for the same pair is refused; Run fails with the
// first refusal too.
func (w *Worker) Handle(jobType string, handler HandlerFunc, options ...HandleOptions) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.register(jobType, handler, options)
	if err != nil && w.refused == nil {
		w.refused = err
	}
	return err
}

func (w *Worker) register(jobType string, handler HandlerFunc, options []HandleOptions) error {
	var given HandleOptions
	switch {
	case len(options) > 1:
		return argumentError("options", "at most one HandleOptions, not %d", len(options))
	case len(options) == 1:
		given = options[0]
	}
	if given.Version == "" {
		given.Version = "1"
	}
	key := handlerKey{jobType, given.Version}
	switch _, taken := w.handlers[key]; {
	case handler == nil:
		return argumentError("handler", "nil for %s version %s", jobType, given.Version)
	case w.phase != phaseNew:
		return newError(ErrWrongState, "handlers are registered before Run")
	case taken:
		return argumentError("handler", "there is one for %s version %s already", jobType, given.Version)
	}
	w.handlers[key] = registered{handler, given.ClassifyError}
	return nil
}

// HandleTyped registers a handler with types of its own. A payload that does not decode into In ends the job; the
// handler is not called.
func HandleTyped[In, Out any](w *Worker, jobType string, handler func(ctx context.Context, job *Job, in In) (Out, error),
	options ...HandleOptions) error {
	var run HandlerFunc
	if handler != nil {
		run = func(ctx context.Context, job *Job) (any, error) {
			var in In
			if err := decode(job.Payload, &in); err != nil {
				return nil, &inputError{into: reflect.TypeFor[In]().String(), cause: err}
			}
			return handler(ctx, job, in)
		}
	}
	return w.Handle(jobType, run, options...)
}

// Stop starts the drain and returns: nothing new is claimed, running handlers may end within GraceMs, then Run returns.
func (w *Worker) Stop() {
	w.stopping.Store(true)
	w.mu.Lock()
	running := w.phase == phaseRunning
	w.mu.Unlock()
	if running {
		w.stopNative()
	}
}

// stopNative asks the core to drain. It can only refuse because the worker has ended already.
func (w *Worker) stopNative() {
	if err := failure(w.native.Stop()); err != nil && !isCode(err, ErrClosed) {
		w.complain(err, nil)
	}
}

// Health is what a probe wants to know.
type Health struct {
	// Phase is "new", "running", "draining" or "stopped".
	Phase string `json:"phase"`
	// Connected: the database answers. Listening: wake-ups arrive; polling covers for them.
	Connected bool `json:"connected"`
	Listening bool `json:"listening"`
	Slots     int  `json:"slots"`
	Running   int  `json:"running"`
	// Stuck are handlers that were asked to stop and still run.
	Stuck []StuckHandler `json:"stuck"`
	// LastClaimMsAgo is nil before the first claim.
	LastClaimMsAgo *int64 `json:"lastClaimMsAgo"`
}

// StuckHandler was asked to stop SinceMs ago.
type StuckHandler struct {
	JobID   string `json:"jobId"`
	Reason  string `json:"reason"`
	SinceMs int64  `json:"sinceMs"`
}

// Alive says whether the worker still does its work.
func (h Health) Alive() bool { return h.Phase == "running" || h.Phase == "draining" }

// Health tells how the worker is.
func (w *Worker) Health() (Health, error) {
	w.mu.Lock()
	phase := w.phase
	w.mu.Unlock()
	switch phase {
	case phaseNew:
		return Health{Phase: "new"}, nil
	case phaseEnded:
		return Health{Phase: "stopped"}, nil
	}
	var health Health
	status, text := w.native.Health()
	if err := failure(status, text); err != nil {
		return health, err
	}
	return health, json.Unmarshal(text, &health)
}

// complain tells OnError; a panic in it must not end the worker.
func (w *Worker) complain(err error, job *Job) {
	defer func() {
		if value := recover(); value != nil {
			slog.Error("drayhorse: OnError panicked", "panic", fmt.Sprint(value), "error", err)
		}
	}()
	switch {
	case w.options.OnError != nil:
		w.options.OnError(err, job)
	case job != nil:
		slog.Error("drayhorse worker", "error", err, "job", job.ID, "type", job.Type, "attempt", job.Attempt)
	default:
		slog.Error("drayhorse worker", "error", err)
	}
}
