package drayhorse

import (
	"context"
	"encoding/json"
)

// Migrate creates the schema or brings it to this library's version. Processes may do it at the same time.
func (q *Queue) Migrate(ctx context.Context) error {
	return q.call(ctx, "migrate", struct{}{}, nil)
}

// CancelOptions say who cancels and why, for the timeline.
type CancelOptions struct {
	Reason string `json:"reason,omitempty"`
	Actor  string `json:"actor,omitempty"`
}

// CancelResult is what a cancel could do at once.
type CancelResult string

// The results of Cancel.
const (
	// CancelDone: the job waited and is canceled.
	CancelDone CancelResult = "canceled"
	// CancelRequested: its handler runs and is asked to stop; the outcome tells the end.
	CancelRequested CancelResult = "cancel_requested"
	// CancelTooLate: it had ended.
	CancelTooLate CancelResult = "already_terminal"
	// CancelNotFound: there is no such job.
	CancelNotFound CancelResult = "not_found"
)

// Cancel ends a job that waits and asks a running handler to stop; no further attempt starts.
func (q *Queue) Cancel(ctx context.Context, id string, options ...CancelOptions) (CancelResult, error) {
	arguments := struct {
		idArguments
		CancelOptions
	}{idArguments: idArguments{id}}
	switch len(options) {
	case 0:
	case 1:
		arguments.CancelOptions = options[0]
	default:
		return "", argumentError("options", "at most one CancelOptions, not %d", len(options))
	}
	var answer struct {
		Result CancelResult `json:"result"`
	}
	err := q.call(ctx, "cancel", arguments, &answer)
	return answer.Result, err
}

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
	var redriven []Redriven
	err := q.call(ctx, "redrive", struct {
		idArguments
		RedriveOptions
	}{idArguments{id}, options}, &redriven)
	if err != nil {
		return Redriven{}, err
	}
	if len(redriven) != 1 {
		return Redriven{}, newError(ErrInternal, "redrive answered %d jobs for one", len(redriven))
	}
	return redriven[0], nil
}

// RedriveFilter makes new jobs from up to Limit failed ones that a filter selects; RedrivePreview counts them before.
func (q *Queue) RedriveFilter(ctx context.Context, filter Filter, options RedriveOptions) ([]Redriven, error) {
	var redriven []Redriven
	return redriven, q.call(ctx, "redrive", struct {
		filterArguments
		RedriveOptions
	}{filterArguments{filter}, options}, &redriven)
}

// RedrivePreview counts the failed jobs that a filter selects.
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

// PolicyPreview is a policy as it is stored and the delays it selects.
type PolicyPreview struct {
	Policy   json.RawMessage `json:"policy"`
	DelaysMs []int64         `json:"delaysMs"`
}

// PreviewOptions choose the job whose delays are drawn (a new id when absent) and their number (10 when absent).
type PreviewOptions struct {
	JobID    string `json:"jobId,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
}

// PreviewPolicy tells the delays that the database will choose for a policy.
func (q *Queue) PreviewPolicy(ctx context.Context, policy any, options PreviewOptions) (PolicyPreview, error) {
	var preview PolicyPreview
	return preview, q.call(ctx, "previewPolicy", struct {
		Policy any `json:"policy"`
		PreviewOptions
	}{policy, options}, &preview)
}

// Prune removes jobs that ended longer ago than the retention keeps them, up to limit (1,000 when 0), and tells how
// many. Running workers do it by themselves.
func (q *Queue) Prune(ctx context.Context, limit int) (int, error) {
	var answer struct {
		Jobs int `json:"jobs"`
	}
	err := q.call(ctx, "prune", struct {
		Limit int `json:"limit,omitempty"`
	}{limit}, &answer)
	return answer.Jobs, err
}
