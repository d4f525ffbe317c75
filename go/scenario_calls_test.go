package drayhorse_test

import (
	"context"

	"github.com/drayhorse/drayhorse/go"
)

// Every control verb of docs/architecture.md by its method of the package, as a caller of the package would write it.

// scenarioMethod runs a verb by its method. The answer is the package's own value.
type scenarioMethod func(ctx context.Context, queue *drayhorse.Queue, args map[string]any) (any, error)

// handlerVerbs exist for the handlers of a worker; there is no method of a queue for them.
var handlerVerbs = map[string]bool{"checkpointGet": true, "checkpointPut": true}

var scenarioMethods = map[string]scenarioMethod{
	"enqueue": func(ctx context.Context, q *drayhorse.Queue, args map[string]any) (any, error) {
		job, err := sayJob(args)
		if err != nil {
			return nil, err
		}
		return q.Enqueue(ctx, job.Type, job.Payload, job.Options)
	},
	"enqueueMany": func(ctx context.Context, q *drayhorse.Queue, args map[string]any) (any, error) {
		given, _ := args["jobs"].([]any)
		jobs := make([]drayhorse.NewJob, len(given))
		for i := range given {
			object, _ := given[i].(map[string]any)
			var err error
			if jobs[i], err = sayJob(object); err != nil {
				return nil, err
			}
		}
		return q.EnqueueMany(ctx, jobs)
	},
	"get": saying(func(ctx context.Context, q *drayhorse.Queue, a idArgs) (any, error) { return q.Get(ctx, a.ID) }),
	"timeline": saying(func(ctx context.Context, q *drayhorse.Queue, a idArgs) (any, error) {
		return q.Timeline(ctx, a.ID)
	}),
	"list": saying(func(ctx context.Context, q *drayhorse.Queue, a listArgs) (any, error) {
		a.Page.Payloads = a.Payload
		return q.List(ctx, a.Filter, a.Page)
	}),
	"counts": saying(func(ctx context.Context, q *drayhorse.Queue, a filterArgs) (any, error) {
		return q.Counts(ctx, a.Filter)
	}),
	"wait": saying(func(ctx context.Context, q *drayhorse.Queue, a waitArgs) (any, error) {
		return q.Wait(ctx, a.ID, a.TimeoutMs)
	}),
	"cancel": saying(func(ctx context.Context, q *drayhorse.Queue, a cancelArgs) (any, error) {
		result, err := q.Cancel(ctx, a.ID, a.CancelOptions)
		return map[string]any{"result": result}, err
	}),
	"previewPolicy": saying(func(ctx context.Context, q *drayhorse.Queue, a previewArgs) (any, error) {
		return q.PreviewPolicy(ctx, a.Policy, a.PreviewOptions)
	}),

	"claim": saying(func(ctx context.Context, q *drayhorse.Queue, a drayhorse.ClaimOptions) (any, error) {
		return q.Claim(ctx, a)
	}),
	"complete": saying(func(ctx context.Context, q *drayhorse.Queue, a completeArgs) (any, error) {
		return q.Complete(ctx, a.claim(), a.Result)
	}),
	"fail": saying(func(ctx context.Context, q *drayhorse.Queue, a failArgs) (any, error) {
		failed, err := drayhorse.NamedError(a.Error.Name, a.Error.Message)
		if err != nil {
			return nil, err
		}
		return q.Fail(ctx, a.claim(), failed, a.FailOptions)
	}),
	"release": saying(func(ctx context.Context, q *drayhorse.Queue, a claimArgs) (any, error) {
		return struct{}{}, q.Release(ctx, a.claim())
	}),
	"heartbeat": saying(func(ctx context.Context, q *drayhorse.Queue, a heartbeatArgs) (any, error) {
		claims := make([]drayhorse.Claim, len(a.Claims))
		for i, claim := range a.Claims {
			claims[i] = claimArgs{claim}.claim()
		}
		return q.Heartbeat(ctx, claims, a.LeaseMs)
	}),

	"redrive": saying(func(ctx context.Context, q *drayhorse.Queue, a redriveArgs) (any, error) {
		if a.Filter != nil {
			return q.RedriveFilter(ctx, *a.Filter, a.RedriveOptions)
		}
		made, err := q.Redrive(ctx, a.ID, a.RedriveOptions)
		return []drayhorse.Redriven{made}, err
	}),
	"redrivePreview": saying(func(ctx context.Context, q *drayhorse.Queue, a filterArgs) (any, error) {
		return q.RedrivePreview(ctx, a.Filter)
	}),
	"replay": saying(func(ctx context.Context, q *drayhorse.Queue, a replayArgs) (any, error) {
		if a.Filter != nil {
			return q.ReplayFilter(ctx, *a.Filter, a.ReplayOptions)
		}
		made, err := q.Replay(ctx, a.ID, a.ReplayOptions)
		return []drayhorse.Redriven{made}, err
	}),
	"replayPreview": saying(func(ctx context.Context, q *drayhorse.Queue, a previewReplayArgs) (any, error) {
		if a.Filter != nil {
			return q.ReplayFilterPreview(ctx, *a.Filter)
		}
		return q.ReplayPreview(ctx, a.ID)
	}),

	"startRun": saying(func(ctx context.Context, q *drayhorse.Queue, a nameArgs) (any, error) {
		run, err := q.StartRun(ctx, a.Name)
		if err != nil {
			return nil, err
		}
		return map[string]any{"id": run.ID}, nil
	}),
	"finishRun": saying(func(ctx context.Context, q *drayhorse.Queue, a idArgs) (any, error) {
		return q.Run(a.ID).Finish(ctx)
	}),
	"getRun": saying(func(ctx context.Context, q *drayhorse.Queue, a idArgs) (any, error) { return q.Run(a.ID).Get(ctx) }),

	"endpoints.list": saying(func(ctx context.Context, q *drayhorse.Queue, a drayhorse.NamePage) (any, error) {
		return q.Endpoints.List(ctx, a)
	}),
	"endpoints.get": saying(func(ctx context.Context, q *drayhorse.Queue, a nameArgs) (any, error) {
		return q.Endpoints.Get(ctx, a.Name)
	}),
	"endpoints.configure": func(ctx context.Context, q *drayhorse.Queue, args map[string]any) (any, error) {
		a, err := say[configureArgs](args)
		if err != nil {
			return nil, err
		}
		gates, err := a.queueConfig(args)
		if err != nil {
			return nil, err
		}
		config := drayhorse.EndpointConfig{
			QueueConfig: gates, RetryPolicy: a.RetryPolicy,
			NoRetryPolicy: isNull(args, "retryPolicy"), Circuit: a.Circuit,
		}
		return q.Endpoints.Configure(ctx, a.Name, config, a.By)
	},
	"endpoints.pause": saying(func(ctx context.Context, q *drayhorse.Queue, a gateArgs) (any, error) {
		return q.Endpoints.Pause(ctx, a.Name, a.By)
	}),
	"endpoints.resume": saying(func(ctx context.Context, q *drayhorse.Queue, a gateArgs) (any, error) {
		return q.Endpoints.Resume(ctx, a.Name, a.By)
	}),
	"endpoints.forceOpen": saying(func(ctx context.Context, q *drayhorse.Queue, a gateArgs) (any, error) {
		return q.Endpoints.ForceOpen(ctx, a.Name, a.By)
	}),
	"endpoints.forceClose": saying(func(ctx context.Context, q *drayhorse.Queue, a gateArgs) (any, error) {
		return q.Endpoints.ForceClose(ctx, a.Name, a.By)
	}),
	"endpoints.reset": saying(func(ctx context.Context, q *drayhorse.Queue, a gateArgs) (any, error) {
		return q.Endpoints.Reset(ctx, a.Name, a.By)
	}),

	"queues.list": saying(func(ctx context.Context, q *drayhorse.Queue, a drayhorse.NamePage) (any, error) {
		return q.Queues.List(ctx, a)
	}),
	"queues.get": saying(func(ctx context.Context, q *drayhorse.Queue, a nameArgs) (any, error) {
		return q.Queues.Get(ctx, a.Name)
	}),
	"queues.configure": func(ctx context.Context, q *drayhorse.Queue, args map[string]any) (any, error) {
		a, err := say[configureArgs](args)
		if err != nil {
			return nil, err
		}
		config, err := a.queueConfig(args)
		if err != nil {
			return nil, err
		}
		return q.Queues.Configure(ctx, a.Name, config, a.By)
	},
	"queues.pause": saying(func(ctx context.Context, q *drayhorse.Queue, a gateArgs) (any, error) {
		return q.Queues.Pause(ctx, a.Name, a.By)
	}),
	"queues.resume": saying(func(ctx context.Context, q *drayhorse.Queue, a gateArgs) (any, error) {
		return q.Queues.Resume(ctx, a.Name, a.By)
	}),

	"contracts.publish": saying(func(ctx context.Context, q *drayhorse.Queue, a drayhorse.Contract) (any, error) {
		return q.Contracts.Publish(ctx, a)
	}),
	"contracts.get": saying(func(ctx context.Context, q *drayhorse.Queue, a drayhorse.Handler) (any, error) {
		return q.Contracts.Get(ctx, a)
	}),
	"contracts.list": saying(func(ctx context.Context, q *drayhorse.Queue, a contractsArgs) (any, error) {
		contracts, err := q.Contracts.List(ctx, a.Handlers...)
		return map[string]any{"contracts": contracts}, err
	}),
	"workers.list": saying(func(ctx context.Context, q *drayhorse.Queue, _ struct{}) (any, error) {
		return q.Workers(ctx)
	}),
	"prune": saying(func(ctx context.Context, q *drayhorse.Queue, a pruneArgs) (any, error) {
		jobs, err := q.Prune(ctx, a.Limit)
		return map[string]any{"jobs": jobs}, err
	}),
	"schemaVersion": saying(func(ctx context.Context, q *drayhorse.Queue, _ struct{}) (any, error) {
		return q.SchemaVersion(ctx)
	}),
	"assertCompatible": saying(func(ctx context.Context, q *drayhorse.Queue, _ struct{}) (any, error) {
		return struct{}{}, q.AssertCompatible(ctx)
	}),
}
