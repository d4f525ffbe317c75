package drayhorse

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// event is one thing that the core tells the worker.
type event struct {
	Event  string `json:"event"`
	Handle uint64 `json:"handle"`
	// Of a job.
	Job
	PayloadText *string `json:"payloadText"`
	Timed       bool    `json:"timed"`
	// Of an abort.
	Reason string `json:"reason"`
	// Of an error.
	Code    ErrorCode `json:"code"`
	Message string    `json:"message"`
	JobID   string    `json:"jobId"`
	// Of a completion or of stopped.
	Ticket uint64          `json:"ticket"`
	OK     json.RawMessage `json:"ok"`
	Error  *Error          `json:"error"`
}

// Run claims and runs jobs until the context ends, Stop is called or a signal arrives; then it drains and returns nil.
// It fails when it cannot go on, and names the cause. A handler's context does not end with ctx: handlers get GraceMs.
func (w *Worker) Run(ctx context.Context) error {
	started, err := w.start()
	if err != nil || !started {
		return err
	}
	if w.options.HandleSignals == nil || *w.options.HandleSignals {
		defer w.handleSignals()()
	}
	detach := context.AfterFunc(ctx, w.Stop)
	defer detach()
	err = w.loop(context.WithoutCancel(ctx))

	w.mu.Lock()
	w.phase = phaseEnded
	w.mu.Unlock()
	closeErr := failure(w.native.Close())
	w.native.Free()
	w.calls.fail(newError(ErrClosed, "the worker has ended"))
	if err == nil {
		err = closeErr
	}
	return err
}

// start hands the worker to the core; false when Stop came first.
func (w *Worker) start() (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.refused != nil:
		return false, w.refused
	case w.phase != phaseNew:
		return false, newError(ErrWrongState, "a worker runs once")
	}
	options, err := encodeArguments(struct {
		Queues      []string  `json:"queues,omitempty"`
		Handlers    []Handler `json:"handlers"`
		Concurrency int       `json:"concurrency,omitempty"`
		Prefetch    int       `json:"prefetch,omitempty"`
		LeaseMs     int64     `json:"leaseMs,omitempty"`
		GraceMs     int64     `json:"graceMs,omitempty"`
		PollMs      int64     `json:"pollMs,omitempty"`
		Name        string    `json:"name,omitempty"`
		Language    string    `json:"language"`
	}{
		w.options.Queues, w.handlerList(), w.options.Concurrency, w.options.Prefetch,
		w.options.LeaseMs, w.options.GraceMs, w.options.PollMs, w.options.Name, "go",
	})
	if err != nil {
		return false, err
	}
	if w.stopping.Load() {
		w.phase = phaseEnded
		return false, nil
	}
	native, status, said := w.queue.client.StartWorker(options)
	if err := failure(status, said); err != nil {
		return false, err
	}
	w.native, w.phase = native, phaseRunning
	w.calls = newCalls(native.Submit)
	return true, nil
}

func (w *Worker) handlerList() []Handler {
	list := make([]Handler, 0, len(w.handlers))
	for key := range w.handlers {
		list = append(list, Handler{key.jobType, key.version})
	}
	slices.SortFunc(list, func(a, b Handler) int {
		return strings.Compare(a.Type+"\x00"+a.Version, b.Type+"\x00"+b.Version)
	})
	return list
}

// handleSignals starts the drain on the first signal and ends the process on the second. The returned function gives
// the signals back.
func (w *Worker) handleSignals() func() {
	signals := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for count := 1; ; count++ {
			select {
			case received := <-signals:
				if count > 1 {
					os.Exit(exitCode(received))
				}
				w.Stop()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// exitCode is the shell's convention for a process that a signal ended.
func exitCode(received os.Signal) int {
	if number, ok := received.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return 1
}

// eventBatch bounds what one call brings from the core.
const eventBatch = 256

// loop takes events from the core until it has stopped. It never runs user code.
func (w *Worker) loop(ctx context.Context) error {
	for {
		status, text := w.native.Take(eventBatch, waitMs)
		if err := failure(status, text); err != nil {
			return err
		}
		var events []event
		if err := decode(text, &events); err != nil {
			return newError(ErrInternal, "events are no JSON: %v", err)
		}
		for i := range events {
			if ended, err := w.dispatch(ctx, &events[i]); ended {
				return err
			}
		}
	}
}

// dispatch handles one event; true at the end.
func (w *Worker) dispatch(ctx context.Context, e *event) (bool, error) {
	switch e.Event {
	case "job":
		w.begin(ctx, e)
	case "abort":
		w.abort(e.Handle, e.Reason)
	case "completion":
		w.calls.complete(completion{e.Ticket, e.OK, e.Error})
	case "error":
		go w.complain(&Error{Code: e.Code, Message: e.Message, Details: map[string]any{}}, w.jobOf(e))
	case "stopped":
		if e.Error != nil {
			return true, e.Error
		}
		return true, nil
	}
	return false, nil
}

// jobOf is the job that an error concerns; only its id is known when its handler has returned.
func (w *Worker) jobOf(e *event) *Job {
	if e.JobID == "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if running := w.running[e.Handle]; running != nil {
		return running.job
	}
	return &Job{ID: e.JobID}
}
