package drayhorse_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/drayhorse/drayhorse/go"
)

func BenchmarkEnqueue(b *testing.B) {
	queue := newQueue(b)
	ctx := context.Background()
	payload := map[string]any{"accountId": 7}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := queue.Enqueue(ctx, "a", payload); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkWorker drains jobs that do nothing.
func BenchmarkWorker(b *testing.B) {
	queue := newQueue(b)
	for left := b.N; left > 0; left -= 1000 {
		jobs := make([]drayhorse.NewJob, min(left, 1000))
		for i := range jobs {
			jobs[i] = drayhorse.NewJob{Type: "a", Payload: map[string]any{"accountId": 7}}
		}
		if _, err := queue.EnqueueMany(context.Background(), jobs); err != nil {
			b.Fatal(err)
		}
	}
	options := quiet(b)
	options.Concurrency = 500
	worker := drayhorse.NewWorker(queue, options)
	var done atomic.Int64
	worker.Handle("a", func(context.Context, *drayhorse.Job) (any, error) {
		if done.Add(1) == int64(b.N) {
			worker.Stop()
		}
		return nil, nil
	})
	b.ResetTimer()
	if err := worker.Run(context.Background()); err != nil {
		b.Fatal(err)
	}
}
