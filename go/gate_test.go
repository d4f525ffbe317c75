package drayhorse_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/drayhorse/drayhorse/go"
)

var ops = drayhorse.By{Actor: "ops", Reason: "a test"}

func TestEndpoints(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	if endpoint, err := queue.Endpoints.Get(ctx, "payments-api"); endpoint != nil || err != nil {
		t.Errorf("%v, %v", endpoint, err)
	}
	configured := must[drayhorse.EndpointSnapshot](t)(queue.Endpoints.Configure(ctx, "payments-api", drayhorse.EndpointConfig{
		QueueConfig: drayhorse.QueueConfig{RateLimit: &drayhorse.RateLimit{Limit: 100, IntervalMs: 60_000}, MaxConcurrency: 5},
		RetryPolicy: map[string]any{"type": "standard"},
		Circuit:     &drayhorse.CircuitSettings{FailureThreshold: 2, CooldownMs: 86_400_000},
	}, ops))
	if configured.RateLimit.Burst != 100 || *configured.MaxConcurrency != 5 || configured.Circuit.FailureThreshold != 2 ||
		configured.Circuit.ProbeTimeoutMs != 900_000 || configured.Circuit.State != "closed" || configured.Paused != nil {
		t.Errorf("%+v", configured)
	}
	removed := must[drayhorse.EndpointSnapshot](t)(queue.Endpoints.Configure(ctx, "payments-api", drayhorse.EndpointConfig{
		QueueConfig: drayhorse.QueueConfig{NoRateLimit: true, NoMaxConcurrency: true}, NoRetryPolicy: true}, ops))
	if removed.RateLimit != nil || removed.MaxConcurrency != nil || removed.Circuit.CooldownMs != 86_400_000 || string(removed.RetryPolicy) != "null" {
		t.Errorf("%+v, %s", removed, removed.RetryPolicy)
	}

	worker := drayhorse.NewWorker(queue, quiet(t))
	var fail = true
	worker.Handle("charge", func(context.Context, *drayhorse.Job) (any, error) {
		if fail {
			return nil, errors.New("down")
		}
		return nil, nil
	})
	options := retries(5)
	options.Endpoint = "payments-api"
	id := enqueue(t, queue, "charge", nil, options)
	stop := start(t, worker)
	eventually(t, "the circuit opens", func() bool {
		endpoint := must[*drayhorse.EndpointSnapshot](t)(queue.Endpoints.Get(ctx, "payments-api"))
		return endpoint.Circuit.State == "open" && endpoint.Waiting == 1
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	job := get(t, queue, id)
	if job.Attempt != 2 || !slices.ContainsFunc(job.Waiting, func(w drayhorse.Waiting) bool { return w.Kind == "circuit" }) {
		t.Errorf("%+v", job.Waiting)
	}
	if forced := must[drayhorse.EndpointSnapshot](t)(queue.Endpoints.ForceClose(ctx, "payments-api", ops)); forced.Circuit.Forced != "closed" {
		t.Errorf("%+v", forced)
	}
	if forced := must[drayhorse.EndpointSnapshot](t)(queue.Endpoints.ForceOpen(ctx, "payments-api", ops)); forced.Circuit.Forced != "open" {
		t.Errorf("%+v", forced)
	}
	if paused := must[drayhorse.EndpointSnapshot](t)(queue.Endpoints.Pause(ctx, "payments-api", ops)); paused.Paused == nil || paused.Paused.Actor != "ops" {
		t.Errorf("%+v", paused)
	}
	if resumed := must[drayhorse.EndpointSnapshot](t)(queue.Endpoints.Resume(ctx, "payments-api", ops)); resumed.Paused != nil {
		t.Errorf("%+v", resumed)
	}
	if reset := must[drayhorse.EndpointSnapshot](t)(queue.Endpoints.Reset(ctx, "payments-api", ops)); reset.Circuit.State != "closed" || reset.Circuit.Failures != 0 {
		t.Errorf("%+v", reset)
	}
	fail = false
	again := drayhorse.NewWorker(queue, quiet(t))
	again.Handle("charge", func(context.Context, *drayhorse.Job) (any, error) { return nil, nil })
	start(t, again)
	if outcome := wait(t, queue, id); outcome.State != drayhorse.Succeeded || outcome.Attempt != 3 {
		t.Errorf("%+v", outcome)
	}
	endpoint := must[*drayhorse.EndpointSnapshot](t)(queue.Endpoints.Get(ctx, "payments-api"))
	if !slices.ContainsFunc(endpoint.Events, func(e drayhorse.GateEvent) bool { return e.Event == "circuit_opened" && !e.At.IsZero() }) {
		t.Errorf("%+v", endpoint.Events)
	}
	if list := must[[]drayhorse.EndpointSnapshot](t)(queue.Endpoints.List(ctx, drayhorse.NamePage{})); len(list) != 1 || list[0].Name != "payments-api" {
		t.Errorf("%+v", list)
	}
	_, err := queue.Endpoints.Pause(ctx, "payments-api", drayhorse.By{})
	expectCode(t, err, drayhorse.ErrInvalidArgument)
}

func TestQueues(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	configured := must[drayhorse.QueueSnapshot](t)(queue.Queues.Configure(ctx, "slow", drayhorse.QueueConfig{MaxConcurrency: 2}, ops))
	if *configured.MaxConcurrency != 2 {
		t.Errorf("%+v", configured)
	}
	if paused := must[drayhorse.QueueSnapshot](t)(queue.Queues.Pause(ctx, "slow", ops)); paused.Paused == nil {
		t.Errorf("%+v", paused)
	}
	if resumed := must[drayhorse.QueueSnapshot](t)(queue.Queues.Resume(ctx, "slow", ops)); resumed.Paused != nil {
		t.Errorf("%+v", resumed)
	}
	if slow := must[*drayhorse.QueueSnapshot](t)(queue.Queues.Get(ctx, "slow")); slow == nil || len(slow.Events) != 3 {
		t.Errorf("%+v", slow)
	}
	if list := must[[]drayhorse.QueueSnapshot](t)(queue.Queues.List(ctx, drayhorse.NamePage{Limit: 5})); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

func TestRunsAndReplays(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	run := must[*drayhorse.Run](t)(queue.StartRun(ctx, "import"))
	first := must[drayhorse.Enqueued](t)(run.Enqueue(ctx, "fetch", map[string]int{"n": 1}, drayhorse.EnqueueOptions{MaxAttempts: 1}))
	next := must[drayhorse.Enqueued](t)(run.Enqueue(ctx, "store", nil,
		drayhorse.EnqueueOptions{After: &drayhorse.After{JobID: first.ID, On: "succeeded"}}))
	if job := get(t, queue, next.ID); job.State != drayhorse.Blocked || job.RunID != run.ID {
		t.Errorf("%+v", job)
	}
	if finished := must[drayhorse.RunSnapshot](t)(run.Finish(ctx)); finished.State != "running" || finished.Jobs[drayhorse.Blocked] != 1 {
		t.Errorf("%+v", finished)
	}
	worker := drayhorse.NewWorker(queue, quiet(t))
	fetches := make(chan error, 2)
	fetches <- errors.New("down")
	fetches <- nil
	worker.Handle("fetch", func(context.Context, *drayhorse.Job) (any, error) { return nil, <-fetches })
	worker.Handle("store", func(context.Context, *drayhorse.Job) (any, error) { return nil, nil })
	start(t, worker)
	if outcome := wait(t, queue, next.ID); outcome.State != drayhorse.Skipped {
		t.Errorf("%+v", outcome)
	}
	snapshot := must[*drayhorse.RunSnapshot](t)(queue.Run(run.ID).Get(ctx))
	if snapshot.State != "failed" || len(snapshot.JobIDs) != 2 {
		t.Errorf("%+v", snapshot)
	}

	preview := must[drayhorse.ReplayPreview](t)(queue.ReplayPreview(ctx, first.ID))
	if !preview.Replayable || !preview.Risks.Started || preview.WouldRun.Type != "fetch" || string(preview.Payload) != `{"n": 1}` {
		t.Errorf("%+v", preview)
	}
	counted := must[drayhorse.RedrivePreview](t)(queue.ReplayFilterPreview(ctx, drayhorse.Filter{Type: "fetch"}))
	if counted.Count != 1 {
		t.Errorf("%+v", counted)
	}
	request := drayhorse.ReplayOptions{RedriveOptions: drayhorse.RedriveOptions{Actor: "ops", Reason: "it is back", RequestID: "r-1"}}
	replayed := must[drayhorse.Redriven](t)(queue.Replay(ctx, first.ID, request))
	if outcome := wait(t, queue, replayed.ID); outcome.State != drayhorse.Succeeded {
		t.Errorf("%+v", outcome)
	}
	eventually(t, "the run has recovered", func() bool {
		return must[*drayhorse.RunSnapshot](t)(run.Get(ctx)).State == "succeeded"
	})
	if none := must[*drayhorse.RunSnapshot](t)(queue.Run("01890a5d-ac96-774b-bcce-b302099a8057").Get(ctx)); none != nil {
		t.Errorf("%+v", none)
	}
}
