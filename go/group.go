package drayhorse

import (
	"context"
	"time"
)

// Run groups jobs. Its jobs may wait for each other with After, and what became of all of them is one state.
type Run struct {
	ID string

	queue *Queue
}

// RunSnapshot is a run as it is at one moment.
type RunSnapshot struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// State is "running", "failed", "canceled" or "succeeded".
	State      string          `json:"state"`
	StartedAt  time.Time       `json:"startedAt"`
	FinishedAt time.Time       `json:"finishedAt"`
	Jobs       map[State]int64 `json:"jobs"`
	// JobIDs are the first 1,000.
	JobIDs []string `json:"jobIds"`
}

// StartRun starts a run.
func (q *Queue) StartRun(ctx context.Context, name string) (*Run, error) {
	var answer idArguments
	err := q.call(ctx, "startRun", struct {
		Name string `json:"name"`
	}{name}, &answer)
	if err != nil {
		return nil, err
	}
	return q.Run(answer.ID), nil
}

// Run is a run that was started before.
func (q *Queue) Run(id string) *Run { return &Run{ID: id, queue: q} }

// Enqueue stores one job of the run.
func (r *Run) Enqueue(ctx context.Context, jobType string, payload any, options ...EnqueueOptions) (Enqueued, error) {
	if len(options) > 1 {
		return Enqueued{}, argumentError("options", "at most one EnqueueOptions, not %d", len(options))
	}
	var given EnqueueOptions
	if len(options) == 1 {
		given = options[0]
	}
	given.RunID = r.ID
	return r.queue.Enqueue(ctx, jobType, payload, given)
}

// Finish closes the run for new jobs.
func (r *Run) Finish(ctx context.Context) (RunSnapshot, error) {
	var snapshot RunSnapshot
	return snapshot, r.queue.call(ctx, "finishRun", idArguments{r.ID}, &snapshot)
}

// Get reads the run, nil when there is none with this id.
func (r *Run) Get(ctx context.Context) (*RunSnapshot, error) {
	var snapshot *RunSnapshot
	return snapshot, r.queue.call(ctx, "getRun", idArguments{r.ID}, &snapshot)
}
