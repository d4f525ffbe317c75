// Package drayhorse is a durable job queue in PostgreSQL: enqueue in the caller's own transaction, run handlers with
// leases that survive crashes, retry by policies that the database applies, read afterwards why everything happened.
//
//	queue, err := drayhorse.Connect(ctx, "embedded:./.drayhorse") // or postgresql://…
//	err = queue.Migrate(ctx)
//	_, err = queue.Enqueue(ctx, "provider.sync", map[string]any{"accountId": 7},
//		drayhorse.EnqueueOptions{MaxAttempts: 5})
//
//	worker := drayhorse.NewWorker(queue, drayhorse.WorkerOptions{Concurrency: 16})
//	worker.Handle("provider.sync", func(ctx context.Context, job *drayhorse.Job) (any, error) {
//		…
//		return map[string]any{"rows": 3}, nil
//	})
//	err = worker.Run(ctx) // until SIGTERM or the context's end, then drains
//
// The queue's decisions are made by PostgreSQL and by one native core that every language shares; this package links
// it as a static library and needs cgo. No goroutine of the program ever runs on a thread of the core.
//
// # Absent values
//
// The zero value of an option means absent: MaxAttempts 0 is the default of 25. Where 0 means something of its own the
// option is a pointer (FailOptions.DelayMs) or a function (WorkerOptions.RetryDelayMs).
//
// # JSON
//
// Whatever is decoded into an interface keeps its numbers as json.Number, so no digit is lost; json.RawMessage passes
// unread; typed handlers decode into their own types.
package drayhorse
