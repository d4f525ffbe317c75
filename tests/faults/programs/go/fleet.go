// Command fleet is a share of the work in Go: fleet enqueue FROM TO, or fleet work.
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"time"

	drayhorse "github.com/drayhorse/drayhorse/go"
)

type input struct {
	Number int `json:"number"`
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	queue, err := drayhorse.Connect(ctx, os.Getenv("FLEET_URL"), drayhorse.WithSchema(os.Getenv("FLEET_SCHEMA")))
	if err != nil {
		return err
	}
	defer queue.Close()
	if os.Args[1] == "enqueue" {
		return enqueue(ctx, queue, os.Args[2], os.Args[3])
	}
	worker := drayhorse.NewWorker(queue, drayhorse.WorkerOptions{Concurrency: 8, LeaseMs: 2_000, GraceMs: 3_000, Name: "go"})
	drayhorse.HandleTyped(worker, "fleet", func(_ context.Context, _ *drayhorse.Job, in input) (int, error) {
		time.Sleep(50 * time.Millisecond)
		return in.Number, nil
	})
	return worker.Run(ctx)
}

func enqueue(ctx context.Context, queue *drayhorse.Queue, from, to string) error {
	first, err := strconv.Atoi(from)
	if err != nil {
		return err
	}
	last, err := strconv.Atoi(to)
	if err != nil {
		return err
	}
	policy := map[string]any{"type": "fixed", "delayMs": 200}
	for number := first; number < last; number++ {
		options := drayhorse.EnqueueOptions{MaxAttempts: 50, RetryPolicy: policy}
		if _, err := queue.Enqueue(ctx, "fleet", input{number}, options); err != nil {
			return err
		}
	}
	return nil
}
