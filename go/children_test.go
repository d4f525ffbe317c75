package drayhorse_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayhorse/drayhorse/go"
)

// A test that needs a process of its own runs this program again with the name of a child in the environment.
var children = map[string]func() error{
	"worker":  childWorker,
	"busy":    childBusy,
	"signals": childSignals,
}

func TestMain(m *testing.M) {
	name := os.Getenv("DRAYHORSE_TEST_CHILD")
	if name == "" {
		os.Exit(m.Run())
	}
	if err := children[name](); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is a running process and the lines it says.
type child struct {
	*exec.Cmd
	stdin io.WriteCloser
	lines chan string
}

func spawn(t *testing.T, name, schema string, environment ...string) *child {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), append(environment,
		"DRAYHORSE_TEST_CHILD="+name, "DRAYHORSE_TEST_SCHEMA="+schema)...)
	command.Stderr = os.Stderr
	stdin := must[io.WriteCloser](t)(command.StdinPipe())
	stdout := must[io.ReadCloser](t)(command.StdoutPipe())
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	c := &child{command, stdin, make(chan string, 100)}
	go func() {
		defer close(c.lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			c.lines <- scanner.Text()
		}
	}()
	return c
}

// expect waits for a line.
func (c *child) expect(t *testing.T, want string) {
	t.Helper()
	for timeout := time.After(patience); ; {
		select {
		case line, open := <-c.lines:
			if !open {
				t.Fatalf("the child ended before it said %q", want)
			}
			if strings.Contains(line, want) {
				return
			}
		case <-timeout:
			t.Fatalf("the child did not say %q", want)
		}
	}
}

// exit waits for the end and tells the exit code.
func (c *child) exit(t *testing.T) int {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case <-ended:
		return c.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatal("the child did not end")
		return -1
	}
}

func childQueue(ctx context.Context) (*drayhorse.Queue, error) {
	return drayhorse.Connect(ctx, os.Getenv("DRAYHORSE_TEST_URL"), drayhorse.WithSchema(os.Getenv("DRAYHORSE_TEST_SCHEMA")))
}

// childWorker runs jobs until a signal ends it; "deaf" ones ignore their context.
func childWorker() error {
	ctx := context.Background()
	queue, err := childQueue(ctx)
	if err != nil {
		return err
	}
	worker := drayhorse.NewWorker(queue, drayhorse.WorkerOptions{GraceMs: 1_000, PollMs: 50})
	worker.Handle("short", func(context.Context, *drayhorse.Job) (any, error) {
		fmt.Println("started short")
		time.Sleep(300 * time.Millisecond)
		return "done", nil
	})
	worker.Handle("deaf", func(context.Context, *drayhorse.Job) (any, error) {
		fmt.Println("started deaf")
		time.Sleep(10 * patience)
		return nil, nil
	})
	if err := worker.Run(ctx); err != nil {
		return err
	}
	fmt.Println("drained")
	if err := queue.Close(); err != nil {
		return err
	}
	// The signals are the program's again.
	if os.Getenv("DRAYHORSE_TEST_LINGER") != "" {
		fmt.Println("lingering")
		time.Sleep(10 * patience)
	}
	return nil
}

func TestASignalDrains(t *testing.T) {
	queue := newQueue(t)
	for _, number := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		id := enqueue(t, queue, "short", nil, retries(1))
		c := spawn(t, "worker", schemaOf(t, queue))
		c.expect(t, "started short")
		c.Process.Signal(number)
		c.expect(t, "drained")
		if code := c.exit(t); code != 0 {
			t.Errorf("%v: exit code %d", number, code)
		}
		if outcome := wait(t, queue, id); outcome.State != drayhorse.Succeeded {
			t.Errorf("%v: %+v", number, outcome)
		}
	}
}

// T37: the grace time is a limit, a second signal ends the process at once and is not a success.
func TestTheSecondSignalEndsTheProcess(t *testing.T) {
	queue := newQueue(t)
	id := enqueue(t, queue, "deaf", nil, retries(3))
	c := spawn(t, "worker", schemaOf(t, queue))
	c.expect(t, "started deaf")
	c.Process.Signal(syscall.SIGTERM)
	c.expect(t, "drained")
	if code := c.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if job := get(t, queue, id); job.State == drayhorse.Active || job.Attempt != 0 {
		t.Errorf("%+v", job)
	}

	c = spawn(t, "worker", schemaOf(t, queue))
	c.expect(t, "started deaf")
	c.Process.Signal(syscall.SIGTERM)
	time.Sleep(100 * time.Millisecond)
	c.Process.Signal(syscall.SIGTERM)
	if code := c.exit(t); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
}

func TestSignalsAreGivenBack(t *testing.T) {
	queue := newQueue(t)
	enqueue(t, queue, "short", nil, retries(1))
	c := spawn(t, "worker", schemaOf(t, queue), "DRAYHORSE_TEST_LINGER=1")
	c.expect(t, "started short")
	c.Process.Signal(syscall.SIGTERM)
	c.expect(t, "lingering")
	c.Process.Signal(syscall.SIGTERM)
	c.exit(t)
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("SIGTERM after Run: %v", c.ProcessState)
	}
}

// childBusy never yields: with GOMAXPROCS=1 nothing else of Go's runs, the collector's pauses apart.
func childBusy() error {
	ctx := context.Background()
	queue, err := childQueue(ctx)
	if err != nil {
		return err
	}
	defer queue.Close()
	worker := drayhorse.NewWorker(queue, drayhorse.WorkerOptions{LeaseMs: 1_000, PollMs: 50})
	worker.Handle("busy", func(_ context.Context, job *drayhorse.Job) (any, error) {
		fmt.Println("started busy", job.Attempt)
		sum := uint64(0)
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
			for i := range uint64(1 << 20) {
				sum = sum*31 + i
			}
		}
		worker.Stop()
		return sum, nil
	})
	return worker.Run(ctx)
}

// T07: a busy loop starves no heartbeat, because a native thread renews.
func TestABusyLoopKeepsItsLease(t *testing.T) {
	queue := newQueue(t)
	id := enqueue(t, queue, "busy", nil, retries(5))
	c := spawn(t, "busy", schemaOf(t, queue), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	c.expect(t, "started busy 1")
	// An idle second worker would take the job over as soon as the lease ended.
	options := quiet(t)
	second := drayhorse.NewWorker(queue, options)
	second.Handle("busy", func(_ context.Context, job *drayhorse.Job) (any, error) {
		return nil, fmt.Errorf("taken over as attempt %d", job.Attempt)
	})
	start(t, second)
	if outcome := wait(t, queue, id); outcome.State != drayhorse.Succeeded || outcome.Attempt != 1 {
		t.Errorf("%+v, %+v", outcome, outcome.Error)
	}
	if code := c.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if names := kinds(t, queue, id); strings.Contains(strings.Join(names, " "), "lease_expired") {
		t.Error(names)
	}
}

// caughtSignals is the kernel's mask of the signals that this process handles.
func caughtSignals() (string, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if mask, found := strings.CutPrefix(line, "SigCgt:"); found {
			return strings.TrimSpace(mask), nil
		}
	}
	return "", fmt.Errorf("no SigCgt in /proc/self/status")
}

// childSignals works with the queue while its signals are watched; then it meets a closed socket and a signal.
func childSignals() error {
	before, err := caughtSignals()
	if err != nil {
		return err
	}
	ctx := context.Background()
	queue, err := childQueue(ctx)
	if err != nil {
		return err
	}
	worker := drayhorse.NewWorker(queue, drayhorse.WorkerOptions{PollMs: 20, HandleSignals: drayhorse.Ptr(false)})
	worker.Handle("panics", func(context.Context, *drayhorse.Job) (any, error) { panic("kaboom") })
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	for range 20 {
		enqueued, err := queue.Enqueue(ctx, "panics", nil, drayhorse.EnqueueOptions{MaxAttempts: 1})
		if err != nil {
			return err
		}
		outcome, err := queue.Wait(ctx, enqueued.ID, 60_000)
		if err != nil || outcome.State != drayhorse.Failed {
			return fmt.Errorf("%+v, %w", outcome, err)
		}
	}
	during, err := caughtSignals()
	if err != nil {
		return err
	}
	if before != during {
		return fmt.Errorf("the core handles signals: %s became %s", before, during)
	}
	if err := writeIntoClosedSocket(); err != nil {
		return err
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	fmt.Println("waiting")
	<-terminated
	if _, err := queue.Counts(ctx, drayhorse.Filter{}); err != nil {
		return err
	}
	worker.Stop()
	if err := <-ended; err != nil {
		return err
	}
	return queue.Close()
}

// writeIntoClosedSocket must be told EPIPE or a reset by an error, not by SIGPIPE.
func writeIntoClosedSocket() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	go func() {
		if peer, err := listener.Accept(); err == nil {
			peer.Close()
		}
	}()
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	defer connection.Close()
	for range 1000 {
		if _, err := connection.Write([]byte("x")); err != nil {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("a closed socket takes everything")
}

// T44: the core installs no signal handler; a broken pipe and a SIGTERM end nothing that should go on.
func TestTheCoreLeavesSignalsAlone(t *testing.T) {
	queue := newQueue(t)
	c := spawn(t, "signals", schemaOf(t, queue))
	c.expect(t, "waiting")
	c.Process.Signal(syscall.SIGPIPE)
	c.Process.Signal(syscall.SIGTERM)
	if code := c.exit(t); code != 0 {
		t.Errorf("exit code %d: %v", code, c.ProcessState)
	}
}
