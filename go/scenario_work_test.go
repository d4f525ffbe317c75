package drayhorse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drayhorse/drayhorse/go"
)

// The step that runs the package's own worker, whose handlers do what behaviours say.

type workStep struct {
	Handlers map[string][]behaviour `json:"handlers"`
	Options  workOptions            `json:"options"`
	Until    map[string]string      `json:"until"`
}

type workOptions struct {
	Concurrency  int             `json:"concurrency"`
	LeaseMs      int64           `json:"leaseMs"`
	GraceMs      int64           `json:"graceMs"`
	PollMs       int64           `json:"pollMs"`
	Queues       []string        `json:"queues"`
	RetryDelayMs json.RawMessage `json:"retryDelayMs"`
}

// behaviour is what a handler does; exactly one of its ways to end is given, before it Checkpoint, Progress and so on.
type behaviour struct {
	Return            json.RawMessage `json:"return"`
	ReturnNothing     bool            `json:"returnNothing"`
	ReturnUnstorable  string          `json:"returnUnstorable"`
	Throw             *thrown         `json:"throw"`
	ThrowNonRetryable *thrown         `json:"throwNonRetryable"`
	ThrowRetryable    *thrown         `json:"throwRetryable"`
	WaitForAbort      bool            `json:"waitForAbort"`
	SleepMs           int64           `json:"sleepMs"`
	Checkpoint        *struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
	} `json:"checkpoint"`
	Progress json.RawMessage `json:"progress"`
	Then     *behaviour      `json:"then"`
}

type thrown struct {
	Name         string `json:"name"`
	Message      string `json:"message"`
	Uncertain    bool   `json:"uncertain"`
	Wrapped      bool   `json:"wrapped"`
	RetryAfterMs int64  `json:"retryAfterMs"`
}

// workLog is what the handlers of one work step saw.
type workLog struct {
	mu     sync.Mutex
	starts map[string]any
	runs   []any
}

// work runs a worker until every named job has its state.
func (p *scenarioPlay) work(t *testing.T, text json.RawMessage) (any, error) {
	var s workStep
	filled, err := p.filled(text)
	if err != nil {
		return nil, err
	}
	if text, err = json.Marshal(filled); err != nil {
		return nil, err
	}
	if err := decodeStrictly(text, &s); err != nil {
		return nil, err
	}
	options, err := s.Options.worker(t)
	if err != nil {
		return nil, err
	}
	log := &workLog{starts: map[string]any{}}
	worker := drayhorse.NewWorker(p.queue, options)
	for key, behaviours := range s.Handlers {
		log.starts[key] = 0
		jobType, version, _ := strings.Cut(key, "@")
		handler := log.handler(key, behaviours)
		if err := worker.Handle(jobType, handler, drayhorse.HandleOptions{Version: version}); err != nil {
			return nil, err
		}
	}
	stop := start(t, worker)
	err = p.until(t, s.Until)
	if stopErr := stop(); stopErr != nil {
		err = errors.Join(err, fmt.Errorf("run: %w", stopErr))
	}
	return log.answer(), err
}

func (o workOptions) worker(t *testing.T) (drayhorse.WorkerOptions, error) {
	options := quiet(t)
	options.Concurrency, options.LeaseMs, options.Queues = o.Concurrency, o.LeaseMs, o.Queues
	if o.GraceMs != 0 {
		options.GraceMs = o.GraceMs
	}
	if o.PollMs != 0 {
		options.PollMs = o.PollMs
	}
	if o.RetryDelayMs == nil {
		return options, nil
	}
	var fixed int64
	if drayhorse.Decode(o.RetryDelayMs, &fixed) == nil {
		options.RetryDelayMs = drayhorse.FixedDelayMs(fixed)
		return options, nil
	}
	var function struct {
		ByAttempt []*int64 `json:"byAttempt"`
		Throws    bool     `json:"throws"`
	}
	if err := decodeStrictly(o.RetryDelayMs, &function); err != nil {
		return options, fmt.Errorf("retryDelayMs: %w", err)
	}
	options.RetryDelayMs = func(attempt int, _ *drayhorse.Job) (int64, bool) {
		if function.Throws {
			panic("no delay today")
		}
		if attempt > len(function.ByAttempt) || function.ByAttempt[attempt-1] == nil {
			return 0, false
		}
		return *function.ByAttempt[attempt-1], true
	}
	return options, nil
}

// until waits for the states of jobs.
func (p *scenarioPlay) until(t *testing.T, states map[string]string) error {
	ctx := testContext(t)
	for name, wanted := range states {
		id, err := at(strings.TrimPrefix(name, "$"), p.kept)
		if err != nil {
			return err
		}
		if answer, ok := id.(map[string]any); ok {
			id = answer["id"]
		}
		for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			job, err := p.queue.Get(ctx, fmt.Sprint(id))
			if err != nil {
				return err
			}
			if job == nil {
				return fmt.Errorf("until: there is no job %s", name)
			}
			if string(job.State) == wanted {
				break
			}
			if time.Since(begun) > patience {
				return fmt.Errorf("until: %s is %s after %v, not %s", name, job.State, patience, wanted)
			}
		}
	}
	return nil
}

// handler does what the behaviour of this start says.
func (l *workLog) handler(key string, behaviours []behaviour) drayhorse.HandlerFunc {
	return func(ctx context.Context, job *drayhorse.Job) (any, error) {
		run := map[string]any{"type": job.Type, "attempt": job.Attempt, "hasPayload": job.HasPayload}
		var payload any
		if err := job.Decode(&payload); err != nil {
			return nil, err
		}
		run["payload"] = payload
		l.mu.Lock()
		n, _ := l.starts[key].(int)
		l.starts[key] = n + 1
		l.runs = append(l.runs, run)
		l.mu.Unlock()
		next := &behaviours[min(n, len(behaviours)-1)]
		for next.Then != nil {
			if err := l.before(ctx, job, run, next); err != nil {
				return nil, err
			}
			next = next.Then
		}
		return next.end()
	}
}

// before is what a handler does before it goes on to Then.
func (l *workLog) before(ctx context.Context, job *drayhorse.Job, run map[string]any, b *behaviour) error {
	switch {
	case b.WaitForAbort:
		select {
		case <-ctx.Done():
			var abort *drayhorse.AbortError
			if errors.As(context.Cause(ctx), &abort) {
				l.note(run, "aborted", abort.Reason)
			}
		case <-time.After(patience):
			return fmt.Errorf("not asked to stop within %v", patience)
		}
	case b.SleepMs > 0:
		time.Sleep(time.Duration(b.SleepMs) * time.Millisecond)
	case b.Progress != nil:
		return job.Progress(b.Progress)
	case b.Checkpoint != nil:
		ran := false
		value, err := drayhorse.CheckpointTyped(ctx, job, b.Checkpoint.Name, func(context.Context) (any, error) {
			ran = true
			return b.Checkpoint.Value, nil
		})
		if err != nil {
			return err
		}
		held, _ := run["checkpoints"].([]any)
		l.note(run, "checkpoints", append(held, map[string]any{"name": b.Checkpoint.Name, "value": value, "ran": ran}))
	default:
		return errors.New("a behaviour that the runner does not know")
	}
	return nil
}

// end is how a handler ends.
func (b *behaviour) end() (any, error) {
	switch {
	case b.ReturnNothing:
		return nil, nil
	case b.Return != nil:
		return b.Return, nil
	case b.ReturnUnstorable == "nan":
		return math.NaN(), nil
	case b.ReturnUnstorable == "nul":
		return "a\x00b", nil
	case b.ReturnUnstorable == "large":
		return strings.Repeat("x", 2<<20), nil
	case b.Throw != nil:
		err, unknown := drayhorse.NamedError(b.Throw.Name, b.Throw.Message)
		return nil, errors.Join(err, unknown)
	case b.ThrowNonRetryable != nil:
		t := b.ThrowNonRetryable
		var err error = &drayhorse.NonRetryableError{Message: t.Message, Uncertain: t.Uncertain}
		if t.Wrapped {
			err = fmt.Errorf("while working: %w", err)
		}
		return nil, err
	case b.ThrowRetryable != nil:
		return nil, &drayhorse.RetryableError{Message: b.ThrowRetryable.Message, RetryAfterMs: b.ThrowRetryable.RetryAfterMs}
	}
	return nil, errors.New("a behaviour that the runner does not know")
}

func (l *workLog) note(run map[string]any, key string, value any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run[key] = value
}

func (l *workLog) answer() any {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := plain(l.runs).([]any)
	return map[string]any{"starts": plain(l.starts), "runs": runs}
}
