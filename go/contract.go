package drayhorse

import (
	"context"
	"encoding/json"
	"time"
)

// Contract is what a (type, version) promises; once published it never changes. Zero values are absent.
type Contract struct {
	Type string `json:"type"`
	// Version is "1" when absent.
	Version  string `json:"version,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	// InputSchema and OutputSchema are JSON Schema 2020-12: any value with a JSON form.
	InputSchema  any `json:"inputSchema,omitempty"`
	OutputSchema any `json:"outputSchema,omitempty"`
	// RetryPolicy is a policy of EnqueueOptions or a preset, {"type":"standard"} for example.
	RetryPolicy any   `json:"retryPolicy,omitempty"`
	MaxAttempts int   `json:"maxAttempts,omitempty"`
	TimeoutMs   int64 `json:"timeoutMs,omitempty"`
	// Actor is who publishes it.
	Actor string `json:"actor,omitempty"`
}

// PublishedContract is a contract as it is stored.
type PublishedContract struct {
	Type         string          `json:"type"`
	Version      string          `json:"version"`
	Digest       string          `json:"digest"`
	PublishedAt  time.Time       `json:"publishedAt"`
	Actor        string          `json:"actor"`
	Endpoint     string          `json:"endpoint"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	RetryPolicy  json.RawMessage `json:"retryPolicy"`
	MaxAttempts  int             `json:"maxAttempts"`
	TimeoutMs    int64           `json:"timeoutMs"`
	// Replayed: the same contract had been published before. Only Publish tells.
	Replayed bool `json:"replayed"`
}

// Contracts are the published contracts of a queue database.
type Contracts struct{ queue *Queue }

// Publish stores a contract for good; another content under the same version is ErrContractConflict.
func (c Contracts) Publish(ctx context.Context, contract Contract) (PublishedContract, error) {
	var published PublishedContract
	return published, c.queue.call(ctx, "contracts.publish", contract, &published)
}

// Get reads one contract, nil when there is none for this type and version.
func (c Contracts) Get(ctx context.Context, handler Handler) (*PublishedContract, error) {
	var published *PublishedContract
	return published, c.queue.call(ctx, "contracts.get", handler, &published)
}

// List reads the contracts of the handlers, or all when none are named.
func (c Contracts) List(ctx context.Context, handlers ...Handler) ([]PublishedContract, error) {
	var answer struct {
		Contracts []PublishedContract `json:"contracts"`
	}
	err := c.queue.call(ctx, "contracts.list", struct {
		Handlers []Handler `json:"handlers,omitempty"`
	}{handlers}, &answer)
	return answer.Contracts, err
}
