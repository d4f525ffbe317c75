package drayhorse

import (
	"net/http"
	"time"
)

// HTTPFailure says why there is no HTTP response.
type HTTPFailure string

// The failures of HTTPDecision.
const (
	// NotSent: refused, unknown host, reset before anything was sent.
	NotSent HTTPFailure = "not_sent"
	// AfterSend: timeout or reset after the request was sent.
	AfterSend HTTPFailure = "after_send"
)

// HTTPResult is what came back: a status, or why there is none.
type HTTPResult struct {
	Status  int         `json:"status,omitempty"`
	Failure HTTPFailure `json:"failure,omitempty"`
}

// HTTPOptions say what is known of the exchange.
type HTTPOptions struct {
	// Headers of the response: Retry-After, Date and RateLimit are read.
	Headers http.Header `json:"headers,omitempty"`
	// Idempotent says whether repeating the request is harmless; true when absent.
	Idempotent *bool `json:"idempotent,omitempty"`
	// ConflictMeansInProgress makes 409 retryable.
	ConflictMeansInProgress bool `json:"conflictMeansInProgress,omitempty"`
	// Now is the base of dates when the response has no Date.
	Now time.Time `json:"now,omitzero"`
}

// Decision is what to do about an HTTP exchange that failed.
type Decision struct {
	Retryable bool `json:"retryable"`
	// Uncertain: the request may have been applied.
	Uncertain bool `json:"uncertain"`
	// RetryAfterMs is what the destination asked for, 0 when nothing.
	RetryAfterMs int64  `json:"retryAfterMs"`
	Reason       string `json:"reason"`
}

// HTTPDecision decides about a response or its absence; the same answer in every language, without the database.
func (q *Queue) HTTPDecision(result HTTPResult, options HTTPOptions) (Decision, error) {
	var decision Decision
	arguments, err := encodeArguments(struct {
		Response HTTPResult  `json:"response"`
		Options  HTTPOptions `json:"options"`
	}{result, options})
	if err != nil {
		return decision, err
	}
	status, answer := q.client.Call("httpDecision", arguments)
	if err := failure(status, answer); err != nil {
		return decision, err
	}
	return decision, decode(answer, &decision)
}

// DecisionFromResponse decides about a response; its headers replace those of the options. The body is not read.
func (q *Queue) DecisionFromResponse(response *http.Response, options ...HTTPOptions) (Decision, error) {
	var given HTTPOptions
	switch len(options) {
	case 0:
	case 1:
		given = options[0]
	default:
		return Decision{}, argumentError("options", "at most one HTTPOptions, not %d", len(options))
	}
	given.Headers = response.Header
	return q.HTTPDecision(HTTPResult{Status: response.StatusCode}, given)
}
