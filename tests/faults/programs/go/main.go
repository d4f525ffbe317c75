// Command worker is the worker program in Go; verbs, environment and records as in worker.py.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	drayhorse "github.com/drayhorse/drayhorse/go"
)

const slice = 20 * time.Millisecond

type step struct {
	Name     string
	Argument any
}

func (s *step) UnmarshalJSON(text []byte) error {
	var parts []any
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	s.Name = parts[0].(string)
	if len(parts) > 1 {
		s.Argument = parts[1]
	}
	return nil
}

func (s step) ms() time.Duration {
	return time.Duration(s.Argument.(float64)) * time.Millisecond
}

type input struct {
	Number *int   `json:"number"`
	Do     []step `json:"do"`
}

var recordFile *os.File

func record(what string, more map[string]any) {
	line := map[string]any{"what": what, "pid": os.Getpid(), "at": float64(time.Now().UnixMicro()) / 1e6}
	for key, value := range more {
		line[key] = value
	}
	text, err := json.Marshal(line)
	if err == nil {
		_, err = recordFile.Write(append(text, '\n'))
	}
	if err != nil {
		log.Fatal(err)
	}
}

func text(name, absent string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return absent
}

func number(name string, absent int) int {
	value, err := strconv.Atoi(text(name, strconv.Itoa(absent)))
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func queues() []string { return strings.Split(text("FAULT_QUEUES", "default"), ",") }

func reason(ctx context.Context) string {
	var abort *drayhorse.AbortError
	if errors.As(context.Cause(ctx), &abort) {
		return abort.Reason
	}
	return "none"
}

// waitForGo returns when the test lets it go on, whatever happens to the attempt.
func waitForGo() {
	for {
		if _, err := os.Stat(os.Getenv("FAULT_RECORD") + ".go"); err == nil {
			return
		}
		time.Sleep(slice)
	}
}

// outlive: the first attempt goes on when its lease is lost, and does everything it must not; the second is the good one.
func outlive(ctx context.Context, job *drayhorse.Job) (any, error) {
	value := func(n int) func(context.Context) (any, error) {
		return func(context.Context) (any, error) { return n, nil }
	}
	if job.Attempt == 1 {
		<-ctx.Done()
		record("told", map[string]any{"job": job.ID, "attempt": 1, "reason": reason(ctx)})
		_, err := job.Checkpoint(context.WithoutCancel(ctx), "step", value(9))
		var known *drayhorse.Error
		if errors.As(err, &known) {
			record("refused", map[string]any{"job": job.ID, "code": known.Code})
		}
		return "old", nil
	}
	if _, err := job.Checkpoint(ctx, "step", value(1)); err != nil {
		return nil, err
	}
	record("saved", map[string]any{"job": job.ID})
	waitForGo()
	return "new", nil
}

func act(ctx context.Context, job *drayhorse.Job, in input) (any, error) {
	record("start", map[string]any{"job": job.ID, "attempt": job.Attempt})
	for _, step := range in.Do {
		switch first := job.Attempt == 1; {
		case step.Name == "sleep":
			select {
			case <-time.After(step.ms()):
			case <-ctx.Done():
				record("told", map[string]any{"job": job.ID, "attempt": job.Attempt, "reason": reason(ctx)})
				return nil, fmt.Errorf("told: %s", reason(ctx))
			}
		case step.Name == "stubborn":
			time.Sleep(step.ms())
		case step.Name == "wait":
			waitForGo()
		case step.Name == "busy":
			for end := time.Now().Add(step.ms()); time.Now().Before(end); {
			}
		case step.Name == "kill":
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				return nil, err
			}
			select {}
		case step.Name == "fail", step.Name == "failFirst" && first:
			return nil, errors.New(step.Argument.(string))
		case step.Name == "hintFirst" && first:
			return nil, &drayhorse.RetryableError{Message: "later, please", RetryAfterMs: step.ms().Milliseconds()}
		case step.Name == "outlive":
			return outlive(ctx, job)
		}
	}
	return in.Number, nil
}

func makeWorker(queue *drayhorse.Queue, ownSignals bool) (*drayhorse.Worker, error) {
	options := drayhorse.WorkerOptions{
		Queues:        queues(),
		Name:          text("FAULT_NAME", "go"),
		Concurrency:   number("FAULT_CONCURRENCY", 8),
		LeaseMs:       int64(number("FAULT_LEASE_MS", 2_000)),
		GraceMs:       int64(number("FAULT_GRACE_MS", 5_000)),
		PollMs:        int64(number("FAULT_POLL_MS", 1_000)),
		Prefetch:      number("FAULT_PREFETCH", 0),
		HandleSignals: drayhorse.Ptr(!ownSignals),
		OnError: func(err error, _ *drayhorse.Job) {
			code := drayhorse.ErrorCode("")
			var known *drayhorse.Error
			if errors.As(err, &known) {
				code = known.Code
			}
			record("error", map[string]any{"code": code, "message": err.Error()})
		},
	}
	worker := drayhorse.NewWorker(queue, options)
	noop := func(_ context.Context, job *drayhorse.Job) (any, error) { return job.Payload, nil }
	return worker, errors.Join(drayhorse.HandleTyped(worker, "act", act), worker.Handle("noop", noop))
}

func work(ctx context.Context, queue *drayhorse.Queue) error {
	rounds := number("FAULT_ROUNDS", 0)
	if rounds == 0 {
		worker, err := makeWorker(queue, false)
		if err != nil {
			return err
		}
		return worker.Run(ctx)
	}
	var mu sync.Mutex
	var current *drayhorse.Worker
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		for range signals {
			mu.Lock()
			if current != nil {
				current.Stop()
				record("stopped", nil)
			}
			mu.Unlock()
		}
	}()
	for round := range rounds {
		worker, err := makeWorker(queue, true)
		if err != nil {
			return err
		}
		mu.Lock()
		current = worker
		mu.Unlock()
		record("round", map[string]any{"round": round})
		if err := worker.Run(ctx); err != nil {
			return err
		}
		record("ended", map[string]any{"round": round})
	}
	return nil
}

func produce(ctx context.Context, queue *drayhorse.Queue, verb string, count int) error {
	options := drayhorse.EnqueueOptions{Queue: queues()[0]}
	if verb == "enqueue" {
		for n := range count {
			if _, err := queue.Enqueue(ctx, "noop", n, options); err != nil {
				return err
			}
		}
		return nil
	}
	for first := 0; first < count; first += 500 {
		var jobs []drayhorse.NewJob
		for n := first; n < min(first+500, count); n++ {
			jobs = append(jobs, drayhorse.NewJob{Type: "noop", Payload: n, Options: options})
		}
		if _, err := queue.EnqueueMany(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context) error {
	var err error
	if recordFile, err = os.OpenFile(os.Getenv("FAULT_RECORD"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644); err != nil {
		return err
	}
	queue, err := drayhorse.Connect(ctx, os.Getenv("FAULT_URL"), drayhorse.WithSchema(os.Getenv("FAULT_SCHEMA")))
	if err != nil {
		return err
	}
	defer queue.Close()
	if os.Args[1] == "work" {
		return work(ctx, queue)
	}
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	return produce(ctx, queue, os.Args[1], count)
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
