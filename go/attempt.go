package drayhorse

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
)

// attempt is one handler on its way, from the job event to the report of its end.
type attempt struct {
	worker  *Worker
	job     *Job
	handler registered
	timed   bool
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

// begin starts the handler of a job in a goroutine of its own. After Stop no handler starts: the job goes back.
func (w *Worker) begin(ctx context.Context, e *event) {
	job := e.Job
	job.handle, job.worker = e.Handle, w
	if e.PayloadText != nil {
		job.Payload = json.RawMessage(*e.PayloadText)
	}
	if job.Payload == nil {
		job.Payload = json.RawMessage("null")
	}
	handler, known := w.handlers[handlerKey{job.Type, job.Version}]
	if !known || w.stopping.Load() {
		w.report(report{Handle: job.handle, Verb: "release", Started: Ptr(false)})
		return
	}
	a := &attempt{worker: w, job: &job, handler: handler, timed: e.Timed}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	w.mu.Lock()
	w.running[job.handle] = a
	w.mu.Unlock()
	go a.run()
}

// abort ends the context of a running handler; its end is still reported, and the core decides what it means.
func (w *Worker) abort(handle uint64, reason string) {
	w.mu.Lock()
	a := w.running[handle]
	w.mu.Unlock()
	if a != nil {
		a.cancel(&AbortError{Reason: reason})
	}
}

// run is the goroutine of one handler. Whatever the handler does, its end is reported once.
func (a *attempt) run() {
	if a.timed && a.worker.options.RetryDelayMs != nil {
		// No handler reports a timeout, so the core is told beforehand.
		if ms, _ := a.retryDelay(); ms != nil {
			a.worker.report(report{Handle: a.job.handle, Verb: "retryDelay", WorkerDelayMs: ms})
		}
	}
	returned := false
	defer func() {
		// runtime.Goexit, by testing.T.FailNow for example, runs this too, and there is nothing to recover then.
		value := recover()
		switch {
		case value != nil:
			a.end(a.failed(&panicError{value: value, stack: string(debug.Stack())}))
		case !returned:
			a.end(a.failed(newError(ErrInternal, "the handler ended its goroutine")))
		}
	}()
	result, err := a.handler.run(a.ctx, a.job)
	returned = true
	if err != nil {
		a.end(a.failed(err))
		return
	}
	a.end(a.succeeded(result))
}

// end forgets the attempt and reports it.
func (a *attempt) end(r report) {
	a.worker.mu.Lock()
	delete(a.worker.running, a.job.handle)
	a.worker.mu.Unlock()
	a.cancel(nil)
	a.worker.report(r)
}

func (a *attempt) succeeded(result any) (r report) {
	// A MarshalJSON of the user's may panic, which is an output failure like any other.
	defer func() {
		if value := recover(); value != nil {
			r = a.outputFailed(&panicError{value: value, stack: string(debug.Stack())})
		}
	}()
	text, err := encode(result, "result")
	if err != nil {
		return a.outputFailed(err)
	}
	return report{Handle: a.job.handle, Verb: "complete", Result: text}
}

func (a *attempt) outputFailed(err error) report {
	described := describe(err)
	return report{Handle: a.job.handle, Verb: "fail", Error: &described, OutputFailure: true}
}

// failed is the report of an error: what the chain, the classifiers and the worker's delay say about it.
func (a *attempt) failed(err error) report {
	described := describe(err)
	r := report{Handle: a.job.handle, Verb: "fail", Error: &described, Cancellation: isCancellation(err)}
	walk(err, func(err error) bool {
		_, r.InputFailure = err.(*inputError)
		return !r.InputFailure
	})
	if r.InputFailure {
		return r
	}
	if decided := a.classify(err); decided != nil {
		r.Retryable, r.RetryAfterMs, r.Uncertain = &decided.Retryable, decided.RetryAfterMs, decided.Uncertain
	}
	if a.worker.options.RetryDelayMs != nil {
		r.WorkerDelayMs, r.OverrideRefused = a.retryDelay()
	}
	return r
}

// classify asks the chain, then the handler's classifier, then the worker's; nil is "retryable".
func (a *attempt) classify(err error) *Classification {
	if decided := findDecision(err); decided != nil {
		return decided
	}
	for _, classifier := range []func(error, *Job) *Classification{a.handler.classify, a.worker.options.ClassifyError} {
		if classifier == nil {
			continue
		}
		decided, refused := guarded(func() *Classification { return classifier(err, a.job) })
		if refused != "" {
			a.worker.complain(newError(ErrInvalidArgument, "ClassifyError panicked, so the error is retryable: %s", refused), a.job)
			return nil
		}
		if decided != nil {
			return decided
		}
	}
	return nil
}

// retryDelay is what the worker's function says; a panic leaves the decision to the policy and is told.
func (a *attempt) retryDelay() (*int64, string) {
	delay, refused := guarded(func() *int64 {
		if ms, ok := a.worker.options.RetryDelayMs(a.job.Attempt, a.job); ok {
			return &ms
		}
		return nil
	})
	if refused != "" {
		a.worker.complain(newError(ErrInvalidArgument, "RetryDelayMs panicked, so the job's policy decides: %s", refused), a.job)
	}
	return delay, refused
}

// guarded runs a callback of the user's and tells a panic as text.
func guarded[T any](callback func() *T) (value *T, refused string) {
	defer func() {
		if thrown := recover(); thrown != nil {
			value, refused = nil, storable(fmt.Sprintf("panic: %v", thrown))
		}
	}()
	return callback(), ""
}

// report is one line to the core; docs/architecture.md lists the fields.
type report struct {
	Handle          uint64          `json:"handle"`
	Verb            string          `json:"verb"`
	Result          json.RawMessage `json:"result,omitempty"`
	Error           *JobError       `json:"error,omitempty"`
	Retryable       *bool           `json:"retryable,omitempty"`
	RetryAfterMs    int64           `json:"retryAfterMs,omitempty"`
	Uncertain       bool            `json:"uncertain,omitempty"`
	WorkerDelayMs   *int64          `json:"workerDelayMs,omitempty"`
	OverrideRefused string          `json:"overrideRefused,omitempty"`
	OutputFailure   bool            `json:"outputFailure,omitempty"`
	InputFailure    bool            `json:"inputFailure,omitempty"`
	Cancellation    bool            `json:"cancellation,omitempty"`
	Started         *bool           `json:"started,omitempty"`
}

// reports gathers what many handlers report at once: whoever comes while a batch is handed over adds to the next one.
type reports struct {
	mu      sync.Mutex
	waiting []report
	sending bool
}

func (w *Worker) report(r report) {
	w.reports.mu.Lock()
	w.reports.waiting = append(w.reports.waiting, r)
	if w.reports.sending {
		w.reports.mu.Unlock()
		return
	}
	w.reports.sending = true
	for len(w.reports.waiting) > 0 {
		batch := w.reports.waiting
		w.reports.waiting = nil
		w.reports.mu.Unlock()
		w.send(batch)
		w.reports.mu.Lock()
	}
	w.reports.sending = false
	w.reports.mu.Unlock()
}

func (w *Worker) send(batch []report) {
	text, err := marshal(batch)
	if err == nil {
		err = failure(w.native.Report(text))
	}
	// After the drain's end nobody wants the report of a handler that ran on.
	if err != nil && !isCode(err, ErrClosed) {
		w.complain(err, nil)
	}
}
