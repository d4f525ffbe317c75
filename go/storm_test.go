package drayhorse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drayhorse/drayhorse/go"
)

// soak is set for the literal numbers of the long run.
var soak = os.Getenv("DRAYHORSE_SOAK") != ""

// slowServer is a proxy that answers late and counts its connections.
type slowServer struct {
	url        string
	open, most atomic.Int64
}

func newSlowServer(t *testing.T, to string, delay time.Duration) *slowServer {
	t.Helper()
	target := must[*url.URL](t)(url.Parse(to))
	listener := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { listener.Close() })
	s := &slowServer{}
	address := target.Host
	if target.Port() == "" {
		address = net.JoinHostPort(target.Hostname(), "5432")
	}
	target.Host = listener.Addr().String()
	s.url = target.String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(client, address, delay)
		}
	}()
	return s
}

func (s *slowServer) serve(client net.Conn, address string, delay time.Duration) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	now := s.open.Add(1)
	defer s.open.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	go func() {
		io.Copy(server, client)
		server.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		time.Sleep(delay)
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// T43: contexts that end before the answer never cost a connection, and afterwards all is well.
func TestEndedContextsDoNotSnowball(t *testing.T) {
	storm(t, testURL(t))
}

func TestEndedContextsDoNotSnowballThroughPgBouncer(t *testing.T) {
	bouncer := os.Getenv("DRAYHORSE_PGBOUNCER_URL")
	if bouncer == "" {
		t.Skip("DRAYHORSE_PGBOUNCER_URL is not set")
	}
	storm(t, bouncer)
}

func storm(t *testing.T, to string) {
	length := 2 * time.Second
	if soak {
		length = 30 * time.Second
	}
	schema := newSchema(t)
	plain := connect(t, schema)
	if err := plain.Migrate(testContext(t)); err != nil {
		t.Fatal(err)
	}
	server := newSlowServer(t, to, 20*time.Millisecond)
	queue := must[*drayhorse.Queue](t)(drayhorse.Connect(testContext(t), server.url, drayhorse.WithSchema(schema), drayhorse.WithPoolSize(10)))
	closed := false
	defer func() {
		if !closed {
			queue.Close()
		}
	}()

	blowing, end := context.WithTimeout(context.Background(), length)
	defer end()
	var group sync.WaitGroup
	var calls atomic.Int64
	unsent, unknown := make(chan string, 100), make(chan string, 100)
	for caller := range 500 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; blowing.Err() == nil; i++ {
				key := fmt.Sprintf("%d-%d", caller, i)
				ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
				_, err := queue.Enqueue(ctx, "a", nil, drayhorse.EnqueueOptions{IdempotencyKey: &drayhorse.IdempotencyKey{Key: key}})
				cancel()
				calls.Add(1)
				switch {
				case err == nil:
				case !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("%v", err)
					return
				case strings.Contains(err.Error(), "was not sent"):
					offer(unsent, key)
				default:
					offer(unknown, key)
				}
			}
		}()
	}
	group.Wait()
	t.Logf("%d calls, at most %d connections", calls.Load(), server.most.Load())
	// Ten of the pool; each may have one beside it that asks the server to cancel.
	if most := server.most.Load(); most > 20 {
		t.Errorf("%d connections for a pool of 10", most)
	}

	before := time.Now()
	if _, err := queue.Enqueue(testContext(t), "after", nil); err != nil {
		t.Errorf("after the storm: %v", err)
	}
	if took := time.Since(before); took > 5*time.Second {
		t.Errorf("after the storm an enqueue takes %v", took)
	}
	close(unsent)
	for key := range unsent {
		again := must[drayhorse.Enqueued](t)(plain.Enqueue(testContext(t), "a", nil, drayhorse.EnqueueOptions{IdempotencyKey: &drayhorse.IdempotencyKey{Key: key}}))
		if again.Replayed {
			t.Errorf("%s was not sent, but there is a job", key)
		}
	}
	closed = true
	if err := queue.Close(); err != nil {
		t.Fatal(err)
	}
	close(unknown)
	for key := range unknown {
		options := drayhorse.EnqueueOptions{IdempotencyKey: &drayhorse.IdempotencyKey{Key: key}}
		first := must[drayhorse.Enqueued](t)(plain.Enqueue(testContext(t), "a", nil, options))
		second := must[drayhorse.Enqueued](t)(plain.Enqueue(testContext(t), "a", nil, options))
		if first.ID != second.ID || !second.Replayed {
			t.Errorf("%s: %+v, then %+v", key, first, second)
		}
	}
}

func offer(keys chan<- string, key string) {
	select {
	case keys <- key:
	default:
	}
}

// T44: while the core works, child processes start and end and the profiler interrupts every thread.
func TestChildrenAndProfilesWhileTheCoreWorks(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	worker := drayhorse.NewWorker(queue, quiet(t))
	var done atomic.Int64
	worker.Handle("a", func(context.Context, *drayhorse.Job) (any, error) {
		done.Add(1)
		return nil, nil
	})
	start(t, worker)
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Fatal(err)
	}
	defer pprof.StopCPUProfile()
	for i := range 1000 {
		if i%10 == 0 {
			enqueue(t, queue, "a", nil)
		}
		if err := exec.CommandContext(ctx, "true").Run(); err != nil {
			t.Fatalf("child %d: %v", i, err)
		}
	}
	eventually(t, "all jobs have run", func() bool { return done.Load() == 100 })
}
