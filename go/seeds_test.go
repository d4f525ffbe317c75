package drayhorse_test

import (
	"context"
	"testing"

	workhorse "github.com/drayhorse/drayhorse/go"
)

// The snippets that the project's users know, as they stand.

func budgetSnippet(ctx context.Context, queue *workhorse.Queue, accountID string) error {
	_, err := queue.Enqueue(ctx, "provider.sync", map[string]any{
		"accountId": accountID,
	}, workhorse.EnqueueOptions{MaxAttempts: 5})
	return err
}

func policySnippet(ctx context.Context, queue *workhorse.Queue, accountID string) error {
	jitter := map[string]any{"type": "decorrelated-jitter", "baseDelayMs": 1_000, "maxDelayMs": 60_000}
	_, err := queue.Enqueue(ctx, "provider.sync", map[string]any{
		"accountId": accountID,
	}, workhorse.EnqueueOptions{RetryPolicy: jitter, MaxAttempts: 5})
	return err
}

func TestSeedSnippets(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	for _, snippet := range []func(context.Context, *workhorse.Queue, string) error{budgetSnippet, policySnippet} {
		if err := snippet(ctx, queue, "acct-7"); err != nil {
			t.Fatal(err)
		}
	}
	jobs := must[workhorse.JobPage](t)(queue.List(ctx, workhorse.Filter{Type: "provider.sync"}, workhorse.Page{}))
	if len(jobs.Jobs) != 2 || jobs.Jobs[0].MaxAttempts != 5 || jobs.Jobs[1].MaxAttempts != 5 {
		t.Fatalf("%+v", jobs)
	}
	want := `{"type": "decorrelated-jitter", "maxDelayMs": 60000, "baseDelayMs": 1000}`
	if got := string(jobs.Jobs[0].RetryPolicy); got != want {
		t.Errorf("the policy is %s", got)
	}
}
