package drayhorse

import (
	"context"
	"encoding/json"
	"time"
)

// EnqueueOptions are the settings of one job; zero values are absent.
type EnqueueOptions struct {
	// Queue is "default" when absent.
	Queue string `json:"queue,omitempty"`
	// Version is the handler's; "1" when absent.
	Version string `json:"version,omitempty"`
	// Priority is -100 to 100, higher first.
	Priority int `json:"priority,omitempty"`
	// RunAt or DelayMs is a lower bound of the start.
	RunAt   time.Time `json:"runAt,omitzero"`
	DelayMs int64     `json:"delayMs,omitempty"`
	// Deadline or DeadlineMs: the job must not start at or after it, and a running attempt is ended there.
	Deadline   time.Time `json:"deadline,omitzero"`
	DeadlineMs int64     `json:"deadlineMs,omitempty"`
	// TimeoutMs limits one attempt, from its claim.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
	// MaxAttempts is 1 to 100, the first execution included; 25 when absent.
	MaxAttempts int `json:"maxAttempts,omitempty"`
	// RetryPolicy is plain data with the same keys in every language; the database validates it:
	// {"type":"fixed","delayMs"}, {"type":"exponential","initialDelayMs","multiplier","maxDelayMs"} or
	// {"type":"decorrelated-jitter","baseDelayMs","maxDelayMs"}.
	RetryPolicy any `json:"retryPolicy,omitempty"`
	// Tags are up to 20 of up to 100 characters.
	Tags []string `json:"tags,omitempty"`
	// IdempotencyKey makes repeated enqueues one job.
	IdempotencyKey *IdempotencyKey `json:"idempotencyKey,omitempty"`
	// Endpoint names the destination whose gates the job obeys.
	Endpoint string `json:"endpoint,omitempty"`
	// After blocks the job until another one has ended.
	After *After `json:"after,omitempty"`
	// RunID makes the job one of a run; Run.Enqueue sets it.
	RunID string `json:"runId,omitempty"`
	// Synthetic makes the job a test of its endpoint: one attempt, no effect on the circuit.
	Synthetic bool `json:"synthetic,omitempty"`
}

// IdempotencyKey names one enqueue for its time to live, whatever becomes of the job.
type IdempotencyKey struct {
	Key string `json:"key"`
	// TTLMs is 24 hours when absent.
	TTLMs int64 `json:"ttlMs,omitempty"`
}

// After names the job to wait for, and whether its success or its failure lets this job run.
type After struct {
	JobID string `json:"jobId"`
	// On is "succeeded" or "failed".
	On string `json:"on"`
}

// Enqueued is a job that is stored for good.
type Enqueued struct {
	ID string `json:"id"`
	// Replayed is true when an idempotency key had named this job before.
	Replayed bool `json:"replayed"`
}

// String is the job's id.
func (e Enqueued) String() string { return e.ID }

// NewJob is one job of EnqueueMany.
type NewJob struct {
	Type string
	// Payload is any value with a JSON form, or NoPayload.
	Payload any
	Options EnqueueOptions
}

type newJobWire struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Options EnqueueOptions  `json:"options"`
}

func (j NewJob) wire(root string) (newJobWire, error) {
	wire := newJobWire{Type: j.Type, Options: j.Options}
	if !j.Options.RunAt.IsZero() {
		wire.Options.RunAt = j.Options.RunAt.UTC()
	}
	if !j.Options.Deadline.IsZero() {
		wire.Options.Deadline = j.Options.Deadline.UTC()
	}
	if _, missing := j.Payload.(noPayload); missing {
		return wire, nil
	}
	var err error
	wire.Payload, err = encode(j.Payload, root)
	return wire, err
}

// Enqueue stores one job. payload is any value with a JSON form; nil is JSON null, NoPayload is none. At most one
// EnqueueOptions may be given.
func (q *Queue) Enqueue(ctx context.Context, jobType string, payload any, options ...EnqueueOptions) (Enqueued, error) {
	job, err := newJob(jobType, payload, options)
	if err != nil {
		return Enqueued{}, err
	}
	wire, err := job.wire("payload")
	if err != nil {
		return Enqueued{}, err
	}
	var enqueued Enqueued
	return enqueued, q.call(ctx, "enqueue", wire, &enqueued)
}

func newJob(jobType string, payload any, options []EnqueueOptions) (NewJob, error) {
	job := NewJob{Type: jobType, Payload: payload}
	switch len(options) {
	case 0:
	case 1:
		job.Options = options[0]
	default:
		return job, argumentError("options", "at most one EnqueueOptions, not %d", len(options))
	}
	return job, nil
}

// EnqueueMany stores all jobs or none, and answers in their order.
func (q *Queue) EnqueueMany(ctx context.Context, jobs []NewJob) ([]Enqueued, error) {
	wires, err := wireJobs(jobs)
	if err != nil {
		return nil, err
	}
	var enqueued []Enqueued
	return enqueued, q.call(ctx, "enqueueMany", wires, &enqueued)
}

type newJobsWire struct {
	Jobs []newJobWire `json:"jobs"`
}

func wireJobs(jobs []NewJob) (newJobsWire, error) {
	wires := newJobsWire{Jobs: make([]newJobWire, len(jobs))}
	for i, job := range jobs {
		wire, err := job.wire(indexed("jobs", i) + ".payload")
		if err != nil {
			return wires, err
		}
		wires.Jobs[i] = wire
	}
	return wires, nil
}
