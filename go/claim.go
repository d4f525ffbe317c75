package drayhorse

import (
	"context"
	"encoding/json"
	"time"
)

// Claim is one started attempt of the low-level loop. Every report carries its fence.
type Claim struct {
	ID             string          `json:"id"`
	Fence          string          `json:"fence"`
	Queue          string          `json:"queue"`
	Type           string          `json:"type"`
	Version        string          `json:"version"`
	Attempt        int             `json:"attempt"`
	MaxAttempts    int             `json:"maxAttempts"`
	Priority       int             `json:"priority"`
	Endpoint       string          `json:"endpoint"`
	Payload        json.RawMessage `json:"payload"`
	HasPayload     bool            `json:"hasPayload"`
	Tags           []string        `json:"tags"`
	Deadline       time.Time       `json:"deadline"`
	TimeoutMs      int64           `json:"timeoutMs"`
	LeaseUntil     time.Time       `json:"leaseUntil"`
	IdempotencyKey string          `json:"idempotencyKey"`
	RunID          string          `json:"runId"`
	Synthetic      bool            `json:"synthetic"`
}

type claimWire struct {
	ID    string `json:"id"`
	Fence string `json:"fence"`
}

func (c Claim) wire() claimWire { return claimWire{c.ID, c.Fence} }

// ClaimOptions say what to claim.
type ClaimOptions struct {
	// Queues are ["default"] when absent.
	Queues   []string  `json:"queues,omitempty"`
	Handlers []Handler `json:"handlers"`
	// Limit is 1 when absent, LeaseMs 30,000.
	Limit   int   `json:"limit,omitempty"`
	LeaseMs int64 `json:"leaseMs,omitempty"`
}

// Claim starts attempts for a hand-written loop; a Worker does all of this by itself.
func (q *Queue) Claim(ctx context.Context, options ClaimOptions) ([]Claim, error) {
	if options.Handlers == nil {
		options.Handlers = []Handler{}
	}
	var claims []Claim
	return claims, q.call(ctx, "claim", options, &claims)
}

// Settled is what became of a job by a report.
type Settled struct {
	State State `json:"state"`
	// Reason is "output" when a result could not be stored and the job failed.
	Reason    string    `json:"reason"`
	NextRunAt time.Time `json:"nextRunAt"`
	DelayMs   *int64    `json:"delayMs"`
	Source    string    `json:"source"`
}

// Complete ends an attempt with a result, any value with a JSON form.
func (q *Queue) Complete(ctx context.Context, claim Claim, result any) (Settled, error) {
	var settled Settled
	text, err := encode(result, "result")
	if err != nil {
		return settled, err
	}
	return settled, q.call(ctx, "complete", struct {
		Claim  claimWire       `json:"claim"`
		Result json.RawMessage `json:"result"`
	}{claim.wire(), text}, &settled)
}

// FailOptions say what a failure means. What is absent is read off the error: NonRetryableError and RetryableError on
// its chain count as in a worker.
type FailOptions struct {
	// DelayMs is final, even 0 for an immediate retry; nil defers to the policy.
	DelayMs *int64 `json:"delayMs,omitempty"`
	// Retryable false ends the job.
	Retryable *bool `json:"retryable,omitempty"`
	// RetryAfterMs is a lower bound that the destination asked for.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
	// Uncertain: the effect may have happened.
	Uncertain bool `json:"uncertain,omitempty"`
}

// Fail ends an attempt with an error.
func (q *Queue) Fail(ctx context.Context, claim Claim, failed error, options ...FailOptions) (Settled, error) {
	var settled Settled
	arguments := struct {
		Claim claimWire `json:"claim"`
		Error JobError  `json:"error"`
		FailOptions
	}{Claim: claim.wire(), Error: describe(failed)}
	switch len(options) {
	case 0:
	case 1:
		arguments.FailOptions = options[0]
	default:
		return settled, argumentError("options", "at most one FailOptions, not %d", len(options))
	}
	if verdict := findDecision(failed); verdict != nil {
		if arguments.Retryable == nil {
			arguments.Retryable = &verdict.Retryable
		}
		if arguments.RetryAfterMs == 0 {
			arguments.RetryAfterMs = verdict.RetryAfterMs
		}
		arguments.Uncertain = arguments.Uncertain || verdict.Uncertain
	}
	return settled, q.call(ctx, "fail", arguments, &settled)
}

// Release gives an attempt back: its number is not spent and the job is offered again soon.
func (q *Queue) Release(ctx context.Context, claim Claim) error {
	return q.call(ctx, "release", struct {
		Claim claimWire `json:"claim"`
	}{claim.wire()}, nil)
}

// Beat is what a heartbeat did for one claim.
type Beat string

// The results of Heartbeat.
const (
	BeatAccepted        Beat = "accepted"
	BeatCancelRequested Beat = "cancel_requested"
	BeatLeaseLost       Beat = "lease_lost"
)

// Heartbeat renews the leases of claims, by leaseMs (30,000 when 0), and answers in their order.
func (q *Queue) Heartbeat(ctx context.Context, claims []Claim, leaseMs int64) ([]Beat, error) {
	wires := make([]claimWire, len(claims))
	for i, claim := range claims {
		wires[i] = claim.wire()
	}
	var beats []Beat
	return beats, q.call(ctx, "heartbeat", struct {
		Claims  []claimWire `json:"claims"`
		LeaseMs int64       `json:"leaseMs,omitempty"`
	}{wires, leaseMs}, &beats)
}
