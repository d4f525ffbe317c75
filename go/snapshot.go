package drayhorse

import (
	"encoding/json"
	"time"
)

// State is where a job is. It is always in exactly one.
type State string

// The states of a job; the last four are final.
const (
	Blocked   State = "blocked"
	Scheduled State = "scheduled"
	Ready     State = "ready"
	Active    State = "active"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Canceled  State = "canceled"
	Skipped   State = "skipped"
)

// JobSnapshot is a job as it is at one moment; zero values are absent.
type JobSnapshot struct {
	ID       string `json:"id"`
	Queue    string `json:"queue"`
	Type     string `json:"type"`
	Version  string `json:"version"`
	Priority int    `json:"priority"`
	Endpoint string `json:"endpoint"`
	State    State  `json:"state"`
	// Attempt is the number of attempts started and not released: 0 before the first.
	Attempt     int `json:"attempt"`
	MaxAttempts int `json:"maxAttempts"`
	// RetryPolicy is the normalized policy, null when the job has none.
	RetryPolicy json.RawMessage `json:"retryPolicy"`
	Tags        []string        `json:"tags"`
	// Payload is absent from lists unless asked for.
	Payload    json.RawMessage `json:"payload"`
	HasPayload bool            `json:"hasPayload"`
	// IdempotencyKey is the effect key for destinations: the caller's key, else the job's id.
	IdempotencyKey  string    `json:"idempotencyKey"`
	EnqueuedAt      time.Time `json:"enqueuedAt"`
	RunAt           time.Time `json:"runAt"`
	Deadline        time.Time `json:"deadline"`
	TimeoutMs       int64     `json:"timeoutMs"`
	NextRunAt       time.Time `json:"nextRunAt"`
	ClaimedAt       time.Time `json:"claimedAt"`
	LeaseUntil      time.Time `json:"leaseUntil"`
	Worker          string    `json:"worker"`
	CancelRequested bool      `json:"cancelRequested"`
	FinishedAt      time.Time `json:"finishedAt"`
	// Reason says why the job ended as it did; Detail says more.
	Reason string          `json:"reason"`
	Detail json.RawMessage `json:"detail"`
	// Uncertain: an attempt ended in a way that leaves open whether it had its effect.
	Uncertain bool `json:"uncertain"`
	Synthetic bool `json:"synthetic"`
	// SourceID is the job this one repeats, RedrivenTo the jobs that repeat this one.
	SourceID   string          `json:"sourceId"`
	RedrivenTo []string        `json:"redrivenTo"`
	RunID      string          `json:"runId"`
	AfterID    string          `json:"afterId"`
	LastError  *JobError       `json:"lastError"`
	Progress   json.RawMessage `json:"progress"`
	// Waiting says why the job does not run, and what helps.
	Waiting []Waiting `json:"waiting"`
	// Result is what the handler returned, once the job has succeeded.
	Result json.RawMessage `json:"result"`
}

// JobError is a stored failure.
type JobError struct {
	Name    string     `json:"name"`
	Message string     `json:"message"`
	Stack   string     `json:"stack,omitempty"`
	Causes  []JobError `json:"causes,omitempty"`
	// Attempt, Cause and At tell which attempt it ended, how and when.
	Attempt int       `json:"attempt,omitempty"`
	Cause   string    `json:"cause,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// Waiting is one reason why a job does not run.
type Waiting struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	// Action is what helps.
	Action string `json:"action"`
	// Details are what else is known of this kind, dueInMs or ahead for example.
	Details map[string]any `json:"-"`
}

// UnmarshalJSON keeps what has no field of its own in Details.
func (w *Waiting) UnmarshalJSON(text []byte) error {
	type plain Waiting
	return decodeWithRest(text, (*plain)(w), &w.Details, "kind", "message", "action")
}

// TimelineEvent is one piece of evidence of what happened to a job.
type TimelineEvent struct {
	Kind    string    `json:"kind"`
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`
	// NextAttempt, DelayMs, Source and RunAt tell the delay that was selected, and by what.
	NextAttempt int       `json:"nextAttempt"`
	DelayMs     *int64    `json:"delayMs"`
	Source      string    `json:"source"`
	RunAt       time.Time `json:"runAt"`
	Error       *JobError `json:"error"`
	// Details are what else is known of this kind.
	Details map[string]any `json:"-"`
}

// UnmarshalJSON keeps what has no field of its own in Details.
func (e *TimelineEvent) UnmarshalJSON(text []byte) error {
	type plain TimelineEvent
	return decodeWithRest(text, (*plain)(e), &e.Details,
		"kind", "at", "attempt", "nextAttempt", "delayMs", "source", "runAt", "error")
}

func decodeWithRest(text []byte, known any, rest *map[string]any, fields ...string) error {
	if err := decode(text, known); err != nil {
		return err
	}
	if err := decode(text, rest); err != nil {
		return err
	}
	for _, field := range fields {
		delete(*rest, field)
	}
	return nil
}

// Outcome is how a job ended.
type Outcome struct {
	ID      string `json:"id"`
	State   State  `json:"state"`
	Attempt int    `json:"attempt"`
	// Started says whether a handler had started.
	Started    bool            `json:"started"`
	Reason     string          `json:"reason"`
	Uncertain  bool            `json:"uncertain"`
	FinishedAt time.Time       `json:"finishedAt"`
	Error      *JobError       `json:"error"`
	Result     json.RawMessage `json:"result"`
}

// Counts are the numbers of jobs by state.
type Counts struct {
	Blocked   int64 `json:"blocked"`
	Scheduled int64 `json:"scheduled"`
	Ready     int64 `json:"ready"`
	Active    int64 `json:"active"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
	Canceled  int64 `json:"canceled"`
	Skipped   int64 `json:"skipped"`
}

// Decode reads JSON into a value of the caller's; into an interface, numbers come as json.Number with all their digits.
func Decode(text json.RawMessage, into any) error {
	return decode(text, into)
}
