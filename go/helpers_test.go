package drayhorse_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drayhorse/drayhorse/go"
)

// patience bounds every wait of a test. It is for a loaded machine: tests wait for conditions, not for times.
const patience = 60 * time.Second

// testURL is the server whose schemas a test may create.
func testURL(t testing.TB) string {
	t.Helper()
	url := os.Getenv("DRAYHORSE_TEST_URL")
	if url == "" {
		t.Fatal("set DRAYHORSE_TEST_URL to a PostgreSQL whose schemas a test may create")
	}
	return url
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	return ctx
}

var schemas atomic.Int64

// newSchema names a schema of the test's own and drops it afterwards.
func newSchema(t testing.TB) string {
	t.Helper()
	url := testURL(t)
	schema := fmt.Sprintf("go_%d_%d", os.Getpid(), schemas.Add(1))
	t.Cleanup(func() { psql(t, url, "drop schema if exists "+schema+" cascade") })
	return schema
}

// psql runs one statement outside of the library.
func psql(t testing.TB, url, statement string) string {
	t.Helper()
	command := exec.Command("psql", url, "-XAtqc", "set client_min_messages = error; "+statement)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v: %s", err, output)
	}
	return strings.TrimSpace(string(output))
}

func connect(t testing.TB, schema string, options ...drayhorse.Option) *drayhorse.Queue {
	t.Helper()
	options = append([]drayhorse.Option{drayhorse.WithSchema(schema)}, options...)
	queue, err := drayhorse.Connect(testContext(t), testURL(t), options...)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		if err := queue.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return queue
}

// newQueue is a migrated queue in a schema of its own.
func newQueue(t testing.TB, options ...drayhorse.Option) *drayhorse.Queue {
	t.Helper()
	schema := newSchema(t)
	queue := connect(t, schema, options...)
	schemaNames.Store(queue, schema)
	if err := queue.Migrate(testContext(t)); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return queue
}

var schemaNames sync.Map

// schemaOf is the schema of a newQueue.
func schemaOf(t testing.TB, queue *drayhorse.Queue) string {
	t.Helper()
	schema, _ := schemaNames.Load(queue)
	return schema.(string)
}

func must[T any](t testing.TB) func(value T, err error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func enqueue(t testing.TB, queue *drayhorse.Queue, jobType string, payload any, options ...drayhorse.EnqueueOptions) string {
	t.Helper()
	enqueued, err := queue.Enqueue(testContext(t), jobType, payload, options...)
	if err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	return enqueued.ID
}

func wait(t testing.TB, queue *drayhorse.Queue, id string) drayhorse.Outcome {
	t.Helper()
	outcome, err := queue.Wait(testContext(t), id, patience.Milliseconds())
	if err != nil {
		t.Fatalf("wait: %v", err)
	}
	return outcome
}

func get(t testing.TB, queue *drayhorse.Queue, id string) *drayhorse.JobSnapshot {
	t.Helper()
	snapshot, err := queue.Get(testContext(t), id)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	if snapshot == nil {
		t.Fatalf("there is no job %s", id)
	}
	return snapshot
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for start := time.Now(); time.Since(start) < patience; time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within %v: %s", patience, what)
}

// start runs a worker until the test ends, or until the returned function stops it; it tells what Run returned.
func start(t testing.TB, worker *drayhorse.Worker) (stop func() error) {
	t.Helper()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- worker.Run(ctx) }()
	stopped := false
	stop = func() error {
		stopped = true
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return errors.New("the worker did not end")
		}
	}
	t.Cleanup(func() {
		if stopped {
			return
		}
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return stop
}

// quiet are worker options for tests: no signal handling, errors into the test's log while there is one.
func quiet(t testing.TB) drayhorse.WorkerOptions {
	t.Helper()
	var mu sync.Mutex
	over := false
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
	})
	return drayhorse.WorkerOptions{
		PollMs: 50, GraceMs: 2_000, HandleSignals: drayhorse.Ptr(false),
		OnError: func(err error, _ *drayhorse.Job) {
			mu.Lock()
			defer mu.Unlock()
			if !over {
				t.Logf("onError: %v", err)
			}
		},
	}
}

func kinds(t testing.TB, queue *drayhorse.Queue, id string) []string {
	t.Helper()
	events, err := queue.Timeline(testContext(t), id)
	if err != nil {
		t.Fatalf("timeline: %v", err)
	}
	names := make([]string, len(events))
	for i, event := range events {
		names[i] = event.Kind
	}
	return names
}

func expectCode(t testing.TB, err error, code drayhorse.ErrorCode) *drayhorse.Error {
	t.Helper()
	var typed *drayhorse.Error
	if !errors.Is(err, code) || !errors.As(err, &typed) {
		t.Fatalf("the error is %v, not %v", err, code)
	}
	return typed
}
