package drayhorse

import (
	"context"
	"errors"
	"time"
)

// Filter selects jobs; zero values select all.
type Filter struct {
	Queue     string `json:"queue,omitempty"`
	Type      string `json:"type,omitempty"`
	Version   string `json:"version,omitempty"`
	Endpoint  string `json:"endpoint,omitempty"`
	State     State  `json:"state,omitempty"`
	Tag       string `json:"tag,omitempty"`
	Uncertain *bool  `json:"uncertain,omitempty"`
}

// Page is a place in a list: newest first, up to Limit jobs (50 when absent) after the cursor of the page before.
type Page struct {
	Limit int    `json:"limit,omitempty"`
	After string `json:"after,omitempty"`
	// Payloads asks for payloads and results, which lists do not load otherwise.
	Payloads bool `json:"-"`
}

// JobPage is one page of a list. Next is the cursor of the next page, empty at the end.
type JobPage struct {
	Jobs []JobSnapshot `json:"jobs"`
	Next string        `json:"next"`
}

type idArguments struct {
	ID string `json:"id"`
}

type filterArguments struct {
	Filter Filter `json:"filter"`
}

// Get reads one job, nil when there is none with this id.
func (q *Queue) Get(ctx context.Context, id string) (*JobSnapshot, error) {
	var snapshot *JobSnapshot
	return snapshot, q.call(ctx, "get", idArguments{id}, &snapshot)
}

// Timeline reads what happened to a job, in order.
func (q *Queue) Timeline(ctx context.Context, id string) ([]TimelineEvent, error) {
	var events []TimelineEvent
	return events, q.call(ctx, "timeline", idArguments{id}, &events)
}

// List reads one page of the jobs that a filter selects.
func (q *Queue) List(ctx context.Context, filter Filter, page Page) (JobPage, error) {
	var jobs JobPage
	return jobs, q.call(ctx, "list", struct {
		Filter  Filter `json:"filter"`
		Page    Page   `json:"page"`
		Payload bool   `json:"payload"`
	}{filter, page, page.Payloads}, &jobs)
}

// Counts counts the jobs that a filter selects by state.
func (q *Queue) Counts(ctx context.Context, filter Filter) (Counts, error) {
	var counts Counts
	return counts, q.call(ctx, "counts", filterArguments{filter}, &counts)
}

// waitSlice bounds one call of Wait: a call that the context cannot take back any more ends with it.
const waitSlice = 10 * time.Second

// Wait waits until a job has ended. When timeoutMs is over before, the error is ErrWaitTimeout and the job is
// untouched; with 0 only the context ends the wait.
func (q *Queue) Wait(ctx context.Context, id string, timeoutMs int64) (Outcome, error) {
	var outcome Outcome
	if timeoutMs < 0 {
		return outcome, argumentError("timeoutMs", "must not be negative")
	}
	start := time.Now()
	for {
		slice := waitSlice.Milliseconds()
		if timeoutMs > 0 {
			slice = min(slice, max(0, timeoutMs-time.Since(start).Milliseconds()))
		}
		err := q.call(ctx, "wait", struct {
			ID        string `json:"id"`
			TimeoutMs int64  `json:"timeoutMs"`
		}{id, slice}, &outcome)
		if !errors.Is(err, ErrWaitTimeout) {
			return outcome, err
		}
		if timeoutMs > 0 && time.Since(start).Milliseconds() >= timeoutMs {
			timeout := newError(ErrWaitTimeout, "the job had not ended after %d ms; it is untouched", timeoutMs)
			timeout.Retryable = true
			return outcome, timeout.with("timeoutMs", timeoutMs)
		}
	}
}

// SchemaVersion is the version of the schema in the database, 0 when there is none, and the one this library needs.
type SchemaVersion struct {
	Version  int `json:"version"`
	Expected int `json:"expected"`
}

// SchemaVersion reads the version of the schema.
func (q *Queue) SchemaVersion(ctx context.Context) (SchemaVersion, error) {
	var version SchemaVersion
	return version, q.call(ctx, "schemaVersion", struct{}{}, &version)
}

// AssertCompatible fails with ErrSchemaMissing, ErrSchemaTooOld or ErrSchemaTooNew unless this library can use the schema.
func (q *Queue) AssertCompatible(ctx context.Context) error {
	return q.call(ctx, "assertCompatible", struct{}{}, nil)
}

// WorkerInfo is a worker that is alive.
type WorkerInfo struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Language  string    `json:"language"`
	Queues    []string  `json:"queues"`
	Handlers  []Handler `json:"handlers"`
	Slots     int       `json:"slots"`
	Running   int       `json:"running"`
	StartedAt time.Time `json:"startedAt"`
	SeenAt    time.Time `json:"seenAt"`
}

// Handler names what handles a job: its type and version.
type Handler struct {
	Type string `json:"type"`
	// Version is "1" when absent.
	Version string `json:"version,omitempty"`
}

// Workers lists who is alive, what it handles and how much it runs.
func (q *Queue) Workers(ctx context.Context) ([]WorkerInfo, error) {
	var workers []WorkerInfo
	return workers, q.call(ctx, "workers.list", struct{}{}, &workers)
}
