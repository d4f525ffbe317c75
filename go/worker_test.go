package drayhorse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drayhorse/drayhorse/go"
)

// atOnce retries without a pause.
var atOnce = map[string]any{"type": "fixed", "delayMs": 0}

func retries(attempts int) drayhorse.EnqueueOptions {
	return drayhorse.EnqueueOptions{MaxAttempts: attempts, RetryPolicy: atOnce}
}

func TestWorkerRunsJobs(t *testing.T) {
	queue := newQueue(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	var seen drayhorse.Job
	if err := worker.Handle("provider.sync", func(ctx context.Context, job *drayhorse.Job) (any, error) {
		seen = *job
		if left := job.LeaseRemaining(); left <= 0 || left > 30*time.Second {
			t.Errorf("the lease lasts %v", left)
		}
		var in struct{ AccountID json.Number }
		if err := job.Decode(&in); err != nil {
			return nil, err
		}
		return map[string]any{"account": in.AccountID}, nil
	}); err != nil {
		t.Fatal(err)
	}
	id := enqueue(t, queue, "provider.sync", map[string]any{"accountId": json.Number("18446744073709551615")},
		drayhorse.EnqueueOptions{Tags: []string{"x"}, MaxAttempts: 3, DeadlineMs: 3_600_000})
	nothing := enqueue(t, queue, "provider.sync", map[string]any{}, drayhorse.EnqueueOptions{Version: "2"})
	start(t, worker)
	outcome := wait(t, queue, id)
	if outcome.State != drayhorse.Succeeded || string(outcome.Result) != `{"account": 18446744073709551615}` {
		t.Errorf("%+v", outcome)
	}
	if seen.ID != id || seen.Attempt != 1 || seen.MaxAttempts != 3 || seen.Queue != "default" || seen.Version != "1" || seen.IdempotencyKey != id ||
		!slices.Equal(seen.Tags, []string{"x"}) || seen.Deadline.IsZero() || !seen.HasPayload {
		t.Errorf("%+v", seen)
	}
	if job := get(t, queue, nothing); job.State != drayhorse.Ready || job.Attempt != 0 {
		t.Errorf("another version's job: %+v", job)
	}
	workers := must[[]drayhorse.WorkerInfo](t)(queue.Workers(testContext(t)))
	if len(workers) != 1 || workers[0].Language != "go" || workers[0].Handlers[0] != (drayhorse.Handler{Type: "provider.sync", Version: "1"}) {
		t.Errorf("%+v", workers)
	}
}

func TestPayloadsReachHandlers(t *testing.T) {
	queue := newQueue(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	worker.Handle("echo", func(_ context.Context, job *drayhorse.Job) (any, error) {
		return map[string]any{"has": job.HasPayload, "payload": job.Payload}, nil
	})
	ids := map[string]string{}
	for want, payload := range map[string]any{
		`{"has": false, "payload": null}`: drayhorse.NoPayload,
		`{"has": true, "payload": null}`:  nil,
		`{"has": true, "payload": ""}`:    "",
		`{"has": true, "payload": [123456789012345678901234567890, 1e400, 9007199254740993]}`: json.RawMessage(`[123456789012345678901234567890,1e400,9007199254740993]`),
		`{"has": true, "payload": "a\\u0000b"}`:                                               `a\u0000b`,
	} {
		ids[enqueue(t, queue, "echo", payload)] = want
	}
	start(t, worker)
	for id, want := range ids {
		got := string(wait(t, queue, id).Result)
		if strings.Contains(want, "1e400") {
			want = strings.ReplaceAll(want, "1e400", "1"+strings.Repeat("0", 400))
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

type syncInput struct {
	AccountID int64 `json:"accountId"`
}

type syncOutput struct {
	Rows int64 `json:"rows"`
}

func TestTypedHandlers(t *testing.T) {
	queue := newQueue(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	var calls atomic.Int64
	drayhorse.HandleTyped(worker, "sync", func(_ context.Context, _ *drayhorse.Job, in syncInput) (syncOutput, error) {
		calls.Add(1)
		return syncOutput{Rows: in.AccountID}, nil
	})
	drayhorse.HandleTyped(worker, "any", func(_ context.Context, _ *drayhorse.Job, in any) (string, error) {
		number, ok := in.(map[string]any)["n"].(json.Number)
		return number.String(), map[bool]error{false: errors.New("no json.Number")}[ok]
	})
	drayhorse.HandleTyped(worker, "raw", func(_ context.Context, _ *drayhorse.Job, in json.RawMessage) (json.RawMessage, error) {
		return in, nil
	})
	good := enqueue(t, queue, "sync", syncInput{AccountID: 9007199254740993})
	anyID := enqueue(t, queue, "any", json.RawMessage(`{"n":1.50}`))
	raw := enqueue(t, queue, "raw", json.RawMessage(`{"n":1.50}`))
	// T14 (d): a payload that does not decode ends the job, with the reason, without a call of the handler.
	bad := enqueue(t, queue, "sync", json.RawMessage(`{"accountId":"seven"}`), retries(5))
	start(t, worker)
	if got := string(wait(t, queue, good).Result); got != `{"rows": 9007199254740993}` {
		t.Error(got)
	}
	if got := string(wait(t, queue, anyID).Result); got != `"1.50"` {
		t.Error(got)
	}
	if got := string(wait(t, queue, raw).Result); got != `{"n": 1.50}` {
		t.Error(got)
	}
	outcome := wait(t, queue, bad)
	if outcome.State != drayhorse.Failed || outcome.Attempt != 1 || outcome.Uncertain || !strings.Contains(outcome.Error.Message, "syncInput") {
		t.Errorf("%+v, %+v", outcome, outcome.Error)
	}
	if calls.Load() != 1 {
		t.Errorf("the handler was called %d times", calls.Load())
	}
}

// T14 (a): what must not be retried is not, however it is wrapped.
func TestNonRetryableHoweverWrapped(t *testing.T) {
	queue := newQueue(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	starts := map[string]*atomic.Int64{}
	gone := errors.New("410 gone")
	endings := map[string]func() error{
		"wrapped": func() error { return fmt.Errorf("a: %w", fmt.Errorf("b: %w", drayhorse.NonRetryable(gone))) },
		"joined":  func() error { return errors.Join(gone, drayhorse.NonRetryable(gone)) },
		"by value": func() error {
			return fmt.Errorf("x: %w", drayhorse.NonRetryableError{Message: "card refused", Uncertain: true})
		},
		"panic": func() error { panic(fmt.Errorf("thrown: %w", drayhorse.NonRetryable(gone))) },
		"plain": func() error { return gone },
	}
	ids := map[string]string{}
	for name, end := range endings {
		count := &atomic.Int64{}
		starts[name] = count
		worker.Handle(name, func(context.Context, *drayhorse.Job) (any, error) {
			count.Add(1)
			return nil, end()
		})
		ids[name] = enqueue(t, queue, name, nil, retries(3))
	}
	start(t, worker)
	for name, id := range ids {
		outcome := wait(t, queue, id)
		want := int64(1)
		if name == "plain" {
			want = 3
		}
		if outcome.State != drayhorse.Failed || starts[name].Load() != want || outcome.Uncertain != (name == "by value") {
			t.Errorf("%s: %d starts, %+v", name, starts[name].Load(), outcome)
		}
	}
}

func TestHandlersThatDoNotReturn(t *testing.T) {
	queue := newQueue(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	worker.Handle("panic", func(context.Context, *drayhorse.Job) (any, error) { panic("kaboom") })
	worker.Handle("nil", func(context.Context, *drayhorse.Job) (any, error) {
		var job *drayhorse.Job
		return job.ID, nil
	})
	worker.Handle("goexit", func(context.Context, *drayhorse.Job) (any, error) {
		runtime.Goexit()
		return nil, nil
	})
	for jobType, want := range map[string]string{"panic": "panic: kaboom", "nil": "nil pointer", "goexit": "ended its goroutine"} {
		id := enqueue(t, queue, jobType, nil, retries(2))
		defer func() {
			outcome := wait(t, queue, id)
			if outcome.State != drayhorse.Failed || outcome.Attempt != 2 || !strings.Contains(outcome.Error.Message, want) {
				t.Errorf("%s: %+v, %+v", jobType, outcome, outcome.Error)
			}
			if jobType == "panic" && (outcome.Error.Name != "panic" || !strings.Contains(outcome.Error.Stack, "worker_test.go")) {
				t.Errorf("%s %s", outcome.Error.Name, outcome.Error.Stack)
			}
		}()
	}
	start(t, worker)
}

// T22: whatever a handler throws or returns can be recorded, and nothing runs again and again.
func TestUnstorableErrorsAndResults(t *testing.T) {
	queue := newQueue(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	fails := map[string]error{
		"nul":   errors.New("bad \x00 byte"),
		"bytes": errors.New("bad \xff\x00 bytes"),
		"huge":  errors.New(strings.Repeat("ä", 5<<20/2)),
	}
	ids := map[string]string{}
	for name, err := range fails {
		worker.Handle(name, func(context.Context, *drayhorse.Job) (any, error) { return nil, err })
		ids[name] = enqueue(t, queue, name, nil, retries(2))
	}
	outputs := map[string]any{
		"nul result":  map[string]any{"out": "POZ\x00"},
		"function":    map[string]any{"out": func() {}},
		"too large":   strings.Repeat("x", 20<<20),
		"not json":    json.RawMessage("{"),
		"bytes, text": "POZ\xff",
	}
	for name, result := range outputs {
		worker.Handle(name, func(context.Context, *drayhorse.Job) (any, error) { return result, nil })
		ids[name] = enqueue(t, queue, name, nil, retries(2))
	}
	worker.Handle("checkpoint", func(ctx context.Context, job *drayhorse.Job) (any, error) {
		return job.Checkpoint(ctx, "fetch", func(context.Context) (any, error) { return "POZ\x00", nil })
	})
	ids["checkpoint"] = enqueue(t, queue, "checkpoint", nil, retries(2))
	start(t, worker)
	for name, id := range ids {
		outcome := wait(t, queue, id)
		if outcome.State != drayhorse.Failed || outcome.Error == nil || outcome.Error.Message == "" {
			t.Errorf("%s: %+v", name, outcome)
			continue
		}
		_, isOutput := outputs[name]
		if isOutput != outcome.Uncertain || (outcome.Attempt == 1) != isOutput {
			t.Errorf("%s: %+v", name, outcome)
		}
		if len(outcome.Error.Message) > 1<<20 || strings.Contains(outcome.Error.Message, "\x00") {
			t.Errorf("%s: %d bytes of text", name, len(outcome.Error.Message))
		}
	}
	if message := wait(t, queue, ids["bytes"]).Error.Message; message != "bad \uFFFD\uFFFD bytes" {
		t.Errorf("%q", message)
	}
}

func TestCheckpointsAndProgress(t *testing.T) {
	queue := newQueue(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	var fetched atomic.Int64
	worker.Handle("sync", func(ctx context.Context, job *drayhorse.Job) (any, error) {
		rows, err := drayhorse.CheckpointTyped(ctx, job, "fetch", func(context.Context) ([]int, error) {
			fetched.Add(1)
			return []int{1, 2, 3}, nil
		})
		if err != nil {
			return nil, err
		}
		if err := job.Progress(map[string]int{"attempt": job.Attempt}); err != nil {
			return nil, err
		}
		if err := job.Progress(func() {}); !errors.Is(err, drayhorse.ErrPayloadInvalid) {
			return nil, fmt.Errorf("a function is no progress: %v", err)
		}
		if job.Attempt < 3 {
			return nil, errors.New("not yet")
		}
		return len(rows), nil
	})
	inner := errors.New("the fetch failed")
	worker.Handle("failing", func(ctx context.Context, job *drayhorse.Job) (any, error) {
		_, err := job.Checkpoint(ctx, "fetch", func(context.Context) (any, error) { return nil, inner })
		if !errors.Is(err, inner) {
			return nil, fmt.Errorf("another error: %v", err)
		}
		return "told", nil
	})
	// Two writers of one name: the second value is refused, and that ends the job.
	worker.Handle("conflict", func(ctx context.Context, job *drayhorse.Job) (any, error) {
		return job.Checkpoint(ctx, "x", func(ctx context.Context) (any, error) {
			if _, err := job.Checkpoint(ctx, "x", func(context.Context) (any, error) { return 1, nil }); err != nil {
				return nil, err
			}
			return 2, nil
		})
	})
	id := enqueue(t, queue, "sync", nil, retries(5))
	failing := enqueue(t, queue, "failing", nil, retries(1))
	conflict := enqueue(t, queue, "conflict", nil, retries(5))
	start(t, worker)
	if outcome := wait(t, queue, id); string(outcome.Result) != "3" || outcome.Attempt != 3 || fetched.Load() != 1 {
		t.Errorf("%+v after %d fetches", outcome, fetched.Load())
	}
	if outcome := wait(t, queue, failing); string(outcome.Result) != `"told"` {
		t.Errorf("%+v, %+v", outcome, outcome.Error)
	}
	if outcome := wait(t, queue, conflict); outcome.State != drayhorse.Failed || outcome.Attempt != 1 || !strings.Contains(outcome.Error.Message, "another value") {
		t.Errorf("%+v, %+v", outcome, outcome.Error)
	}
}

func TestProgressIsShown(t *testing.T) {
	queue := newQueue(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	release := make(chan struct{})
	worker.Handle("slow", func(_ context.Context, job *drayhorse.Job) (any, error) {
		err := job.Progress("half")
		<-release
		return nil, err
	})
	id := enqueue(t, queue, "slow", nil)
	start(t, worker)
	eventually(t, "the progress is shown", func() bool { return string(get(t, queue, id).Progress) == `"half"` })
	close(release)
	wait(t, queue, id)
}

func TestRetryDelays(t *testing.T) {
	queue := newQueue(t)
	options := quiet(t)
	var complaints atomic.Int64
	options.OnError = func(error, *drayhorse.Job) { complaints.Add(1) }
	options.RetryDelayMs = func(attempt int, job *drayhorse.Job) (int64, bool) {
		switch job.Type {
		case "zero":
			return 0, true
		case "panics":
			panic("no delay")
		case "negative":
			return -5, true
		}
		return 0, false
	}
	worker := drayhorse.NewWorker(queue, options)
	policy := drayhorse.EnqueueOptions{MaxAttempts: 2, RetryPolicy: map[string]any{"type": "fixed", "delayMs": 86_400_000}}
	want := map[string]string{"zero": "worker_override", "panics": "policy:fixed", "negative": "policy:fixed", "defers": "policy:fixed", "hint": "retry_after"}
	ids := map[string]string{}
	for jobType := range want {
		worker.Handle(jobType, func(context.Context, *drayhorse.Job) (any, error) {
			if jobType == "hint" {
				return nil, &drayhorse.RetryableError{Message: "busy", RetryAfterMs: 86_400_000}
			}
			return nil, errors.New("down")
		})
		options := policy
		if jobType == "hint" {
			options.RetryPolicy = atOnce
		}
		ids[jobType] = enqueue(t, queue, jobType, nil, options)
	}
	start(t, worker)
	for jobType, source := range want {
		var scheduled *drayhorse.TimelineEvent
		eventually(t, jobType+" fails once", func() bool {
			events := must[[]drayhorse.TimelineEvent](t)(queue.Timeline(testContext(t), ids[jobType]))
			for _, event := range events {
				if event.Kind == "retry_scheduled" {
					scheduled = &event
					return true
				}
			}
			return false
		})
		if scheduled.Source != source || scheduled.NextAttempt != 2 || scheduled.DelayMs == nil {
			t.Errorf("%s: %+v", jobType, scheduled)
			continue
		}
		if _, refused := scheduled.Details["overrideRefused"]; refused != (jobType == "panics" || jobType == "negative") {
			t.Errorf("%s: %+v", jobType, scheduled.Details)
		}
	}
	eventually(t, "OnError is told twice", func() bool { return complaints.Load() == 2 })
	if got := wait(t, queue, ids["zero"]); got.Attempt != 2 {
		t.Errorf("%+v", got)
	}
	if ms, ok := drayhorse.FixedDelayMs(7)(1, nil); ms != 7 || !ok {
		t.Error(ms, ok)
	}
}

// A timeout is settled by the core, with the delay that the worker's function told at the start.
func TestRetryDelayOfATimeout(t *testing.T) {
	queue := newQueue(t)
	options := quiet(t)
	options.RetryDelayMs = drayhorse.FixedDelayMs(0)
	worker := drayhorse.NewWorker(queue, options)
	causes := make(chan error, 2)
	worker.Handle("slow", func(ctx context.Context, job *drayhorse.Job) (any, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	id := enqueue(t, queue, "slow", nil, drayhorse.EnqueueOptions{MaxAttempts: 2, TimeoutMs: 200,
		RetryPolicy: map[string]any{"type": "fixed", "delayMs": 86_400_000}})
	start(t, worker)
	outcome := wait(t, queue, id)
	if outcome.State != drayhorse.Failed || outcome.Attempt != 2 || !outcome.Uncertain {
		t.Errorf("%+v", outcome)
	}
	for range 2 {
		var abort *drayhorse.AbortError
		if cause := <-causes; !errors.As(cause, &abort) || abort.Reason != "timeout" {
			t.Errorf("%v", cause)
		}
	}
	if names := kinds(t, queue, id); !slices.Contains(names, "timed_out") {
		t.Error(names)
	}
}

func TestClassifiers(t *testing.T) {
	queue := newQueue(t)
	options := quiet(t)
	var complaints atomic.Int64
	options.OnError = func(error, *drayhorse.Job) { complaints.Add(1) }
	options.ClassifyError = func(error, *drayhorse.Job) *drayhorse.Classification {
		return &drayhorse.Classification{Retryable: false, Uncertain: true}
	}
	worker := drayhorse.NewWorker(queue, options)
	says := func(answer *drayhorse.Classification) drayhorse.HandleOptions {
		return drayhorse.HandleOptions{ClassifyError: func(error, *drayhorse.Job) *drayhorse.Classification { return answer }}
	}
	fails := func(err error) drayhorse.HandlerFunc {
		return func(context.Context, *drayhorse.Job) (any, error) { return nil, err }
	}
	down := errors.New("down")
	worker.Handle("the worker's", fails(down), says(nil))
	worker.Handle("the handler's", fails(down), says(&drayhorse.Classification{Retryable: true}))
	worker.Handle("the chain", fails(drayhorse.NonRetryable(down)), says(&drayhorse.Classification{Retryable: true}))
	worker.Handle("a panic", fails(down), drayhorse.HandleOptions{
		ClassifyError: func(error, *drayhorse.Job) *drayhorse.Classification { panic("what?") }})
	ids := map[string]string{}
	for _, jobType := range []string{"the worker's", "the handler's", "the chain", "a panic"} {
		ids[jobType] = enqueue(t, queue, jobType, nil, retries(2))
	}
	start(t, worker)
	for jobType, attempts := range map[string]int{"the worker's": 1, "the handler's": 2, "the chain": 1, "a panic": 2} {
		outcome := wait(t, queue, ids[jobType])
		if outcome.Attempt != attempts || outcome.Uncertain != (jobType == "the worker's") {
			t.Errorf("%s: %+v", jobType, outcome)
		}
	}
	eventually(t, "OnError is told", func() bool { return complaints.Load() == 2 })
}

func TestCancelAsksTheHandler(t *testing.T) {
	queue := newQueue(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	running := make(chan struct{}, 1)
	worker.Handle("slow", func(ctx context.Context, _ *drayhorse.Job) (any, error) {
		running <- struct{}{}
		<-ctx.Done()
		return nil, fmt.Errorf("stopped: %w", ctx.Err())
	})
	id := enqueue(t, queue, "slow", nil, retries(5))
	start(t, worker)
	<-running
	if got := must[drayhorse.CancelResult](t)(queue.Cancel(testContext(t), id)); got != drayhorse.CancelRequested {
		t.Error(got)
	}
	if outcome := wait(t, queue, id); outcome.State != drayhorse.Canceled || !outcome.Started || outcome.Attempt != 1 {
		t.Errorf("%+v", outcome)
	}
}

// context.Canceled that nobody asked for is a failure like any other.
func TestCancellationWithoutAReason(t *testing.T) {
	queue := newQueue(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	worker.Handle("a", func(context.Context, *drayhorse.Job) (any, error) {
		return nil, fmt.Errorf("call: %w", context.Canceled)
	})
	id := enqueue(t, queue, "a", nil, retries(2))
	start(t, worker)
	if outcome := wait(t, queue, id); outcome.State != drayhorse.Failed || outcome.Attempt != 2 {
		t.Errorf("%+v", outcome)
	}
}

func TestDrain(t *testing.T) {
	queue := newQueue(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	running := make(chan struct{}, 10)
	worker.Handle("short", func(ctx context.Context, _ *drayhorse.Job) (any, error) {
		running <- struct{}{}
		select {
		case <-time.After(300 * time.Millisecond):
			return "done", nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	aborted := make(chan error, 10)
	worker.Handle("long", func(ctx context.Context, _ *drayhorse.Job) (any, error) {
		running <- struct{}{}
		<-ctx.Done()
		aborted <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	short := enqueue(t, queue, "short", nil, retries(1))
	long := enqueue(t, queue, "long", nil, retries(1))
	if health := must[drayhorse.Health](t)(worker.Health()); health.Phase != "new" || health.Alive() {
		t.Errorf("%+v", health)
	}
	stop := start(t, worker)
	<-running
	<-running
	eventually(t, "the worker is healthy", func() bool {
		health := must[drayhorse.Health](t)(worker.Health())
		return health.Phase == "running" && health.Connected && health.Running == 2 && health.Slots == 10 && health.Alive()
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if health := must[drayhorse.Health](t)(worker.Health()); health.Phase != "stopped" {
		t.Errorf("%+v", health)
	}
	if outcome := wait(t, queue, short); outcome.State != drayhorse.Succeeded {
		t.Errorf("a job that fits the grace time: %+v", outcome)
	}
	var abort *drayhorse.AbortError
	if cause := <-aborted; !errors.As(cause, &abort) || abort.Reason != "shutdown" {
		t.Errorf("%v", cause)
	}
	// Given back, with its attempt.
	if job := get(t, queue, long); job.State != drayhorse.Ready && job.State != drayhorse.Scheduled || job.Attempt != 0 {
		t.Errorf("a job that does not: %+v", job)
	}
	expectCode(t, worker.Run(testContext(t)), drayhorse.ErrWrongState)
}

// T37: a handler that ignores the end of its context holds up neither the database nor Run.
func TestGraceIsTheLimit(t *testing.T) {
	queue := newQueue(t)
	options := quiet(t)
	options.GraceMs = 300
	worker := drayhorse.NewWorker(queue, options)
	running, release := make(chan struct{}), make(chan struct{})
	worker.Handle("deaf", func(context.Context, *drayhorse.Job) (any, error) {
		close(running)
		<-release
		return "late", nil
	})
	id := enqueue(t, queue, "deaf", nil, retries(3))
	stop := start(t, worker)
	<-running
	before := time.Now()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(before); took > 10*time.Second {
		t.Errorf("the drain took %v", took)
	}
	close(release)
	if job := get(t, queue, id); job.State == drayhorse.Active || job.Attempt != 0 {
		t.Errorf("%+v", job)
	}
}

func TestRegistration(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	handler := func(context.Context, *drayhorse.Job) (any, error) { return nil, nil }
	worker := drayhorse.NewWorker(queue, quiet(t))
	if err := worker.Handle("a", handler); err != nil {
		t.Fatal(err)
	}
	if err := worker.Handle("a", handler, drayhorse.HandleOptions{Version: "2"}); err != nil {
		t.Fatal(err)
	}
	expectCode(t, worker.Handle("a", handler, drayhorse.HandleOptions{Version: "1"}), drayhorse.ErrInvalidArgument)
	expectCode(t, worker.Run(ctx), drayhorse.ErrInvalidArgument)

	expectCode(t, drayhorse.NewWorker(queue, quiet(t)).Run(ctx), drayhorse.ErrInvalidArgument)
	expectCode(t, drayhorse.NewWorker(queue, quiet(t)).Handle("a", nil), drayhorse.ErrInvalidArgument)
	bad := drayhorse.NewWorker(queue, drayhorse.WorkerOptions{Concurrency: -1})
	bad.Handle("a", handler)
	expectCode(t, bad.Run(ctx), drayhorse.ErrInvalidArgument)

	// Stopped before it ran.
	early := drayhorse.NewWorker(queue, quiet(t))
	early.Handle("a", handler)
	early.Stop()
	if err := early.Run(ctx); err != nil {
		t.Error(err)
	}
	late := drayhorse.NewWorker(queue, quiet(t))
	late.Handle("a", handler)
	start(t, late)
	eventually(t, "it runs", func() bool { return must[drayhorse.Health](t)(late.Health()).Phase == "running" })
	expectCode(t, late.Handle("b", handler), drayhorse.ErrWrongState)
}

// A worker that cannot go on says why, within its grace time.
func TestRunFailsWhenItCannotGoOn(t *testing.T) {
	queue := connect(t, newSchema(t))
	worker := drayhorse.NewWorker(queue, quiet(t))
	worker.Handle("a", func(context.Context, *drayhorse.Job) (any, error) { return nil, nil })
	expectCode(t, worker.Run(testContext(t)), drayhorse.ErrSchemaMissing)
}

func TestManyJobs(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	options := quiet(t)
	options.Concurrency = 64
	worker := drayhorse.NewWorker(queue, options)
	var mu sync.Mutex
	starts := map[string]int{}
	worker.Handle("a", func(_ context.Context, job *drayhorse.Job) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		starts[job.ID]++
		return nil, nil
	})
	jobs := make([]drayhorse.NewJob, 2000)
	for i := range jobs {
		jobs[i] = drayhorse.NewJob{Type: "a", Payload: i}
	}
	if _, err := queue.EnqueueMany(ctx, jobs); err != nil {
		t.Fatal(err)
	}
	start(t, worker)
	eventually(t, "all have succeeded", func() bool {
		return must[drayhorse.Counts](t)(queue.Counts(ctx, drayhorse.Filter{})).Succeeded == 2000
	})
	mu.Lock()
	defer mu.Unlock()
	for id, count := range starts {
		if count != 1 {
			t.Errorf("%s was started %d times", id, count)
		}
	}
}
