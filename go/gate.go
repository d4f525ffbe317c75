package drayhorse

import (
	"context"
	"encoding/json"
	"time"
)

// By says who acts and why, for the audit. Actor is needed.
type By struct {
	Actor  string `json:"actor"`
	Reason string `json:"reason,omitempty"`
}

// RateLimit admits at most Burst + Limit per interval in any window; Burst is Limit when absent.
type RateLimit struct {
	Limit      int   `json:"limit"`
	IntervalMs int64 `json:"intervalMs"`
	Burst      int   `json:"burst,omitempty"`
}

// CircuitSettings are an endpoint's; absent ones keep what they are (5 failures, 60,000 ms, 900,000 ms at first).
type CircuitSettings struct {
	FailureThreshold int   `json:"failureThreshold,omitempty"`
	CooldownMs       int64 `json:"cooldownMs,omitempty"`
	ProbeTimeoutMs   int64 `json:"probeTimeoutMs,omitempty"`
}

// QueueConfig changes a queue's gates. What is absent stays as it is; the No fields remove it.
type QueueConfig struct {
	RateLimit        *RateLimit
	NoRateLimit      bool
	MaxConcurrency   int
	NoMaxConcurrency bool
}

// EndpointConfig changes an endpoint's gates and the policy of the jobs that are enqueued for it from now on.
type EndpointConfig struct {
	QueueConfig
	RetryPolicy   any
	NoRetryPolicy bool
	Circuit       *CircuitSettings
}

// Pause is a pause that holds, and who ordered it.
type Pause struct {
	By
	At time.Time `json:"at"`
}

// QueueSnapshot is a queue's gates as they are at one moment. A queue is paused when Paused is not nil.
type QueueSnapshot struct {
	Name           string     `json:"name"`
	Paused         *Pause     `json:"paused"`
	RateLimit      *RateLimit `json:"rateLimit"`
	TokensLeft     *float64   `json:"tokensLeft"`
	MaxConcurrency *int       `json:"maxConcurrency"`
	SlotsUsed      *int       `json:"slotsUsed"`
	Running        int64      `json:"running"`
	// Waiting jobs are ready; counted up to 100,000.
	Waiting int64 `json:"waiting"`
	// Events are the last 100; lists have none.
	Events []GateEvent `json:"events"`
}

// EndpointSnapshot is an endpoint's gates, its policy and its circuit.
type EndpointSnapshot struct {
	QueueSnapshot
	RetryPolicy json.RawMessage `json:"retryPolicy"`
	Circuit     Circuit         `json:"circuit"`
}

// Circuit says whether an endpoint is given work.
type Circuit struct {
	// State is "closed", "open" or "half_open"; Forced is "open" or "closed" when an operator ordered it.
	State      string    `json:"state"`
	Forced     string    `json:"forced"`
	Failures   int       `json:"failures"`
	Generation int64     `json:"generation"`
	Since      time.Time `json:"since"`
	OpenedAt   time.Time `json:"openedAt"`
	// ProbeAt is when a probe becomes possible, ProbeJob the probe that is out, OverdueAt when it counts as lost.
	ProbeAt          time.Time `json:"probeAt"`
	ProbeJob         string    `json:"probeJob"`
	OverdueAt        time.Time `json:"overdueAt"`
	LastFailedJob    string    `json:"lastFailedJob"`
	LastError        any       `json:"lastError"`
	FailureThreshold int       `json:"failureThreshold"`
	CooldownMs       int64     `json:"cooldownMs"`
	ProbeTimeoutMs   int64     `json:"probeTimeoutMs"`
}

// GateEvent is one piece of evidence about an endpoint or queue.
type GateEvent struct {
	Event string    `json:"event"`
	At    time.Time `json:"at"`
	JobID string    `json:"jobId"`
	// Details are what else is known of this kind.
	Details map[string]any `json:"-"`
}

// UnmarshalJSON keeps what has no field of its own in Details.
func (e *GateEvent) UnmarshalJSON(text []byte) error {
	type plain GateEvent
	return decodeWithRest(text, (*plain)(e), &e.Details, "event", "at", "jobId")
}

// NamePage is a place in a list by name: up to Limit (200 when absent) after the last name of the page before.
type NamePage struct {
	Limit int    `json:"limit,omitempty"`
	After string `json:"after,omitempty"`
}

type gateArguments struct {
	Name string `json:"name"`
	By
}

// Endpoints are the named destinations of a queue database.
type Endpoints struct{ queue *Queue }

// List reads a page of the endpoints.
func (e Endpoints) List(ctx context.Context, page NamePage) ([]EndpointSnapshot, error) {
	var endpoints []EndpointSnapshot
	return endpoints, e.queue.call(ctx, "endpoints.list", page, &endpoints)
}

// Get reads one endpoint, nil when its name was never used.
func (e Endpoints) Get(ctx context.Context, name string) (*EndpointSnapshot, error) {
	var endpoint *EndpointSnapshot
	return endpoint, e.queue.call(ctx, "endpoints.get", struct {
		Name string `json:"name"`
	}{name}, &endpoint)
}

// Configure changes settings; a cooldown that runs is neither shortened nor restarted.
func (e Endpoints) Configure(ctx context.Context, name string, config EndpointConfig, by By) (EndpointSnapshot, error) {
	arguments := config.arguments(name, by)
	switch {
	case config.NoRetryPolicy:
		arguments["retryPolicy"] = nil
	case config.RetryPolicy != nil:
		arguments["retryPolicy"] = config.RetryPolicy
	}
	if config.Circuit != nil {
		arguments["circuit"] = config.Circuit
	}
	var endpoint EndpointSnapshot
	return endpoint, e.queue.call(ctx, "endpoints.configure", arguments, &endpoint)
}

// Pause holds every job of the endpoint; running ones finish.
func (e Endpoints) Pause(ctx context.Context, name string, by By) (EndpointSnapshot, error) {
	return e.act(ctx, "endpoints.pause", name, by)
}

// Resume ends a pause.
func (e Endpoints) Resume(ctx context.Context, name string, by By) (EndpointSnapshot, error) {
	return e.act(ctx, "endpoints.resume", name, by)
}

// ForceOpen admits only synthetic tests until Reset.
func (e Endpoints) ForceOpen(ctx context.Context, name string, by By) (EndpointSnapshot, error) {
	return e.act(ctx, "endpoints.forceOpen", name, by)
}

// ForceClose admits all and counts no failures until Reset.
func (e Endpoints) ForceClose(ctx context.Context, name string, by By) (EndpointSnapshot, error) {
	return e.act(ctx, "endpoints.forceClose", name, by)
}

// Reset ends a force and closes the circuit with a count of 0.
func (e Endpoints) Reset(ctx context.Context, name string, by By) (EndpointSnapshot, error) {
	return e.act(ctx, "endpoints.reset", name, by)
}

func (e Endpoints) act(ctx context.Context, verb, name string, by By) (EndpointSnapshot, error) {
	var endpoint EndpointSnapshot
	return endpoint, e.queue.call(ctx, verb, gateArguments{name, by}, &endpoint)
}

// Queues are the queues of a queue database, with the gates that hold for a whole one.
type Queues struct{ queue *Queue }

// List reads a page of the queues.
func (q Queues) List(ctx context.Context, page NamePage) ([]QueueSnapshot, error) {
	var queues []QueueSnapshot
	return queues, q.queue.call(ctx, "queues.list", page, &queues)
}

// Get reads one queue, nil when its name was never used.
func (q Queues) Get(ctx context.Context, name string) (*QueueSnapshot, error) {
	var queue *QueueSnapshot
	return queue, q.queue.call(ctx, "queues.get", struct {
		Name string `json:"name"`
	}{name}, &queue)
}

// Configure changes the rate and concurrency of a whole queue.
func (q Queues) Configure(ctx context.Context, name string, config QueueConfig, by By) (QueueSnapshot, error) {
	var queue QueueSnapshot
	return queue, q.queue.call(ctx, "queues.configure", config.arguments(name, by), &queue)
}

// Pause holds every job of the queue; running ones finish.
func (q Queues) Pause(ctx context.Context, name string, by By) (QueueSnapshot, error) {
	var queue QueueSnapshot
	return queue, q.queue.call(ctx, "queues.pause", gateArguments{name, by}, &queue)
}

// Resume ends a pause.
func (q Queues) Resume(ctx context.Context, name string, by By) (QueueSnapshot, error) {
	var queue QueueSnapshot
	return queue, q.queue.call(ctx, "queues.resume", gateArguments{name, by}, &queue)
}

// arguments tell what is absent from what is removed, which is null.
func (c QueueConfig) arguments(name string, by By) map[string]any {
	arguments := map[string]any{"name": name, "actor": by.Actor}
	if by.Reason != "" {
		arguments["reason"] = by.Reason
	}
	switch {
	case c.NoRateLimit:
		arguments["rateLimit"] = nil
	case c.RateLimit != nil:
		arguments["rateLimit"] = c.RateLimit
	}
	switch {
	case c.NoMaxConcurrency:
		arguments["maxConcurrency"] = nil
	case c.MaxConcurrency != 0:
		arguments["maxConcurrency"] = c.MaxConcurrency
	}
	return arguments
}
