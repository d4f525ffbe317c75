package drayhorse

import (
	"context"
	"encoding/json"
)

// RedriveOptions say who makes new jobs from failed ones, and why. Actor, Reason and RequestID are needed.
type RedriveOptions struct {
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
	// RequestID makes a repeated call answer the same jobs.
	RequestID string `json:"requestId"`
	// AcknowledgeDuplicateRisk is needed when an attempt may have reached an endpoint.
	AcknowledgeDuplicateRisk bool `json:"acknowledgeDuplicateRisk,omitempty"`
	CopyCheckpoints          bool `json:"copyCheckpoints,omitempty"`
	// NewEffectKey gives the new job an idempotency key of its own instead of its source's.
	NewEffectKey bool `json:"newEffectKey,omitempty"`
	// Limit bounds a redrive by filter, 1,000 when absent; After is the last SourceID of the call before.
	Limit int    `json:"limit,omitempty"`
	After string `json:"after,omitempty"`
}

// Redriven is a new job and the failed one it repeats.
type Redriven struct {
	ID       string `json:"id"`
	SourceID string `json:"sourceId"`
}

// Redrive makes a new job from a failed one.
func (q *Queue) Redrive(ctx context.Context, id string, options RedriveOptions) (Redriven, error) {
	return q.repeat(ctx, "redrive", struct {
		idArguments
		RedriveOptions
	}{idArguments{id}, options})
}

// RedriveFilter makes new jobs from up to Limit failed ones that a filter selects; RedrivePreview counts them before.
func (q *Queue) RedriveFilter(ctx context.Context, filter Filter, options RedriveOptions) ([]Redriven, error) {
	var redriven []Redriven
	return redriven, q.call(ctx, "redrive", struct {
		filterArguments
		RedriveOptions
	}{filterArguments{filter}, options}, &redriven)
}

// RedrivePreview counts the jobs that a filter selects.
type RedrivePreview struct {
	Count int64 `json:"count"`
	// WithEndpoint of them may have reached an endpoint, Uncertain of them may have had their effect.
	WithEndpoint int64 `json:"withEndpoint"`
	Uncertain    int64 `json:"uncertain"`
}

// RedrivePreview counts what RedriveFilter would make.
func (q *Queue) RedrivePreview(ctx context.Context, filter Filter) (RedrivePreview, error) {
	var preview RedrivePreview
	return preview, q.call(ctx, "redrivePreview", filterArguments{filter}, &preview)
}

// ReplayOptions are RedriveOptions with a budget: MaxAttempts is 1 when absent.
type ReplayOptions struct {
	RedriveOptions
	MaxAttempts int `json:"maxAttempts,omitempty"`
}

// Replay makes a new job from any one that has ended, after ReplayPreview was read.
func (q *Queue) Replay(ctx context.Context, id string, options ReplayOptions) (Redriven, error) {
	return q.repeat(ctx, "replay", struct {
		idArguments
		ReplayOptions
	}{idArguments{id}, options})
}

// ReplayFilter makes new jobs from up to Limit ended ones that a filter selects; ReplayFilterPreview counts them before.
func (q *Queue) ReplayFilter(ctx context.Context, filter Filter, options ReplayOptions) ([]Redriven, error) {
	var replayed []Redriven
	return replayed, q.call(ctx, "replay", struct {
		filterArguments
		ReplayOptions
	}{filterArguments{filter}, options}, &replayed)
}

// ReplayPreview is what a replay would run, and what speaks against it.
type ReplayPreview struct {
	ID         string          `json:"id"`
	State      State           `json:"state"`
	Replayable bool            `json:"replayable"`
	WouldRun   ReplayedJob     `json:"wouldRun"`
	Risks      ReplayRisks     `json:"risks"`
	Payload    json.RawMessage `json:"payload"`
}

// ReplayedJob is the job that a replay would make.
type ReplayedJob struct {
	Type           string `json:"type"`
	Version        string `json:"version"`
	Queue          string `json:"queue"`
	Endpoint       string `json:"endpoint"`
	MaxAttempts    int    `json:"maxAttempts"`
	HasPayload     bool   `json:"hasPayload"`
	IdempotencyKey string `json:"idempotencyKey"`
}

// ReplayRisks are what a replay may do twice.
type ReplayRisks struct {
	// Started: a handler had started. Uncertain: its effect may have happened.
	Started   bool `json:"started"`
	Uncertain bool `json:"uncertain"`
	// AcknowledgementNeeded: AcknowledgeDuplicateRisk must be set.
	AcknowledgementNeeded bool     `json:"acknowledgementNeeded"`
	Checkpoints           []string `json:"checkpoints"`
	// RepeatedBefore are the jobs that repeat this one already.
	RepeatedBefore []string `json:"repeatedBefore"`
	// Circuit is the state of the endpoint's circuit, empty without an endpoint.
	Circuit string `json:"circuit"`
}

// ReplayPreview tells what a replay of one job would run and risk.
func (q *Queue) ReplayPreview(ctx context.Context, id string) (ReplayPreview, error) {
	var preview ReplayPreview
	return preview, q.call(ctx, "replayPreview", idArguments{id}, &preview)
}

// ReplayFilterPreview counts what ReplayFilter would make.
func (q *Queue) ReplayFilterPreview(ctx context.Context, filter Filter) (RedrivePreview, error) {
	var preview RedrivePreview
	return preview, q.call(ctx, "replayPreview", filterArguments{filter}, &preview)
}

// repeat runs a redrive or replay of one job.
func (q *Queue) repeat(ctx context.Context, verb string, arguments any) (Redriven, error) {
	var made []Redriven
	if err := q.call(ctx, verb, arguments, &made); err != nil {
		return Redriven{}, err
	}
	if len(made) != 1 {
		return Redriven{}, newError(ErrInternal, "%s answered %d jobs for one", verb, len(made))
	}
	return made[0], nil
}
