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
