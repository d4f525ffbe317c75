// Command demo enqueues a share of the demo's jobs from Go (enqueue FROM TO) or works them (worker).
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	drayhorse "github.com/drayhorse/drayhorse/go"
)

var policies = []map[string]any{
	{"type": "fixed", "delayMs": 900},
	{"type": "exponential", "initialDelayMs": 300, "multiplier": 2, "maxDelayMs": 3_000},
	{"type": "decorrelated-jitter", "baseDelayMs": 300, "maxDelayMs": 3_000},
}

func main() {
	ctx := context.Background()
	queue, err := drayhorse.Connect(ctx, os.Getenv("DRAYHORSE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer queue.Close()
	if len(os.Args) == 4 && os.Args[1] == "enqueue" {
		err = enqueue(ctx, queue, os.Args[2], os.Args[3])
	} else {
		err = work(ctx, queue)
	}
	if err != nil {
		log.Fatal(err)
	}
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
	for account := first; account < last; account++ {
		_, err := queue.Enqueue(ctx, "provider.sync", map[string]any{"accountId": account}, drayhorse.EnqueueOptions{
			Endpoint:    "provider",
			MaxAttempts: 20,
			RetryPolicy: policies[account%3],
			Tags:        []string{"from:go"},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// failure turns an answer of the provider into what it means for the job's next attempt.
func failure(queue *drayhorse.Queue, response *http.Response) error {
	decision, err := queue.DecisionFromResponse(response)
	message := fmt.Sprintf("the provider answered %d", response.StatusCode)
	switch {
	case err != nil:
		return err
	case decision.Retryable:
		return drayhorse.RetryableError{Message: message, RetryAfterMs: decision.RetryAfterMs}
	}
	return drayhorse.NonRetryableError{Message: message, Uncertain: decision.Uncertain}
}

func work(ctx context.Context, queue *drayhorse.Queue) error {
	client := &http.Client{Timeout: 10 * time.Second}
	worker := drayhorse.NewWorker(queue, drayhorse.WorkerOptions{Concurrency: 8, LeaseMs: 3_000, Name: "go"})
	worker.Handle("provider.sync", func(ctx context.Context, job *drayhorse.Job) (any, error) {
		body, err := json.Marshal(job.Payload)
		if err != nil {
			return nil, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("PROVIDER_URL"), bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", job.IdempotencyKey)
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return nil, failure(queue, response)
		}
		var answer map[string]any
		return answer, json.NewDecoder(response.Body).Decode(&answer)
	})
	return worker.Run(ctx)
}
