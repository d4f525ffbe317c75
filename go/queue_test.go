package drayhorse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drayhorse/drayhorse/go"
)

func TestConnectRefusesWhatIsWrong(t *testing.T) {
	ctx := testContext(t)
	_, err := drayhorse.Connect(ctx, "mysql://user:S3cr3t!@localhost/x")
	expectCode(t, err, drayhorse.ErrInvalidArgument)
	if strings.Contains(err.Error(), "S3cr3t") {
		t.Errorf("the error tells the password: %v", err)
	}
	_, err = drayhorse.Connect(ctx, testURL(t), drayhorse.WithSchema("a\xff"))
	expectCode(t, err, drayhorse.ErrInvalidArgument)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := drayhorse.Connect(ended, testURL(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// T51: neither form of a password comes back, in errors or in printed values.
func TestNoSecretIsTold(t *testing.T) {
	ctx := testContext(t)
	for _, url := range []string{
		"postgresql://u:S3cr3t!@127.0.0.1:1/x",
		"postgresql://u:S3cr3t%21@127.0.0.1:1/x",
		"postgresql://u:S3cr3t%21@[bad",
		"postgresql://u:S3cr3t!@h/x?sslmode=odd",
		"host=127.0.0.1 port=1 user=u password='S3cr3t!",
	} {
		queue, err := drayhorse.Connect(ctx, url, drayhorse.WithConnectTimeout(2*time.Second))
		told := fmt.Sprintf("%v %+v %#v %+v %#v", err, err, err, queue, queue)
		if err == nil {
			_, err = queue.SchemaVersion(ctx)
			expectCode(t, err, drayhorse.ErrConnectionLost)
			worker := drayhorse.NewWorker(queue, drayhorse.WorkerOptions{})
			told += fmt.Sprintf("%v %+v %#v %+v %#v", err, err, err, worker, queue)
			queue.Close()
		}
		if strings.Contains(told, "cr3t") {
			t.Errorf("a password is told: %s", told)
		}
	}
}

func TestSchemaVersions(t *testing.T) {
	queue := connect(t, newSchema(t))
	ctx := testContext(t)
	expectCode(t, queue.AssertCompatible(ctx), drayhorse.ErrSchemaMissing)
	before := must[drayhorse.SchemaVersion](t)(queue.SchemaVersion(ctx))
	if before.Version != 0 || before.Expected < 1 {
		t.Errorf("before: %+v", before)
	}
	_, err := queue.Enqueue(ctx, "a", nil)
	expectCode(t, err, drayhorse.ErrSchemaMissing)
	for range 2 {
		if err := queue.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := queue.AssertCompatible(ctx); err != nil {
		t.Error(err)
	}
	after := must[drayhorse.SchemaVersion](t)(queue.SchemaVersion(ctx))
	if after.Version != after.Expected {
		t.Errorf("after: %+v", after)
	}
}

func TestEnqueueOptionsArriveAsGiven(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	runAt := time.Date(2126, 5, 6, 7, 8, 9, 123_456_000, time.FixedZone("x", 3600))
	id := enqueue(t, queue, "provider.sync", map[string]any{"a": 1}, drayhorse.EnqueueOptions{
		Queue: "slow", Version: "3", Priority: -7, RunAt: runAt, DeadlineMs: 4_000_000_000_000 / 2, TimeoutMs: 5000,
		MaxAttempts: 9, RetryPolicy: map[string]any{"type": "fixed", "delayMs": 1e3}, Tags: []string{"b", "a"},
		IdempotencyKey: &drayhorse.IdempotencyKey{Key: "k-1", TTLMs: 60_000},
	})
	job := get(t, queue, id)
	if job.Queue != "slow" || job.Version != "3" || job.Priority != -7 || !job.RunAt.Equal(runAt) || job.TimeoutMs != 5000 ||
		job.MaxAttempts != 9 || job.State != drayhorse.Scheduled || job.IdempotencyKey != "k-1" || job.Attempt != 0 ||
		job.EnqueuedAt.IsZero() || job.Deadline.IsZero() || !job.FinishedAt.IsZero() || len(job.Tags) != 2 {
		t.Errorf("%+v", job)
	}
	var policy map[string]any
	if err := drayhorse.Decode(job.RetryPolicy, &policy); err != nil || policy["delayMs"] != json.Number("1000") {
		t.Errorf("%v, %v", policy, err)
	}
	if len(job.Waiting) == 0 || job.Waiting[0].Kind == "" || job.Waiting[0].Action == "" {
		t.Errorf("it does not say why it waits: %+v", job.Waiting)
	}

	defaults := get(t, queue, enqueue(t, queue, "provider.sync", nil))
	if defaults.Queue != "default" || defaults.Version != "1" || defaults.MaxAttempts != 25 || defaults.State != drayhorse.Ready {
		t.Errorf("%+v", defaults)
	}
	for _, refused := range []struct {
		options drayhorse.EnqueueOptions
		code    drayhorse.ErrorCode
		field   string
	}{
		{drayhorse.EnqueueOptions{MaxAttempts: -1}, drayhorse.ErrInvalidArgument, "maxAttempts"},
		{drayhorse.EnqueueOptions{MaxAttempts: 1 << 31}, drayhorse.ErrInvalidArgument, "maxAttempts"},
		{drayhorse.EnqueueOptions{Priority: 101}, drayhorse.ErrInvalidArgument, "priority"},
		{drayhorse.EnqueueOptions{Queue: strings.Repeat("x", 201)}, drayhorse.ErrInvalidArgument, "queue"},
		{drayhorse.EnqueueOptions{Queue: "a\xff"}, drayhorse.ErrInvalidArgument, "options.queue"},
		{drayhorse.EnqueueOptions{RetryPolicy: map[string]any{"type": "fixed", "delay": 1}}, drayhorse.ErrPolicyInvalid, ""},
		{drayhorse.EnqueueOptions{RetryPolicy: func() {}}, drayhorse.ErrInvalidArgument, "options.retryPolicy"},
	} {
		_, err := queue.Enqueue(ctx, "a", nil, refused.options)
		typed := expectCode(t, err, refused.code)
		if field, _ := typed.Details["field"].(string); refused.field != "" && field != refused.field {
			t.Errorf("%+v: the field is %q: %v", refused.options, field, err)
		}
	}
	_, err := queue.Enqueue(ctx, "a", nil, drayhorse.EnqueueOptions{}, drayhorse.EnqueueOptions{})
	expectCode(t, err, drayhorse.ErrInvalidArgument)
}

func TestPayloadsSurvive(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	digits := `{"e": 123456789012345678901234567890, "m": 18446744073709551615, "n": 9007199254740993, "id": 1970670598291982290}`
	for _, c := range []struct {
		payload any
		want    string
		has     bool
	}{
		{drayhorse.NoPayload, "", false},
		{nil, "null", true},
		{"", `""`, true},
		{map[string]any{}, "{}", true},
		{[]int{}, "[]", true},
		{json.RawMessage(digits), digits, true},
		{map[string]any{"a": `x\u0000y`}, `{"a": "x\\u0000y"}`, true},
		{uint64(18446744073709551615), "18446744073709551615", true},
	} {
		job := get(t, queue, enqueue(t, queue, "a", c.payload))
		if job.HasPayload != c.has || string(job.Payload) != c.want {
			t.Errorf("%#v: %v %s", c.payload, job.HasPayload, job.Payload)
		}
	}
	job := get(t, queue, enqueue(t, queue, "a", json.RawMessage(digits)))
	var decoded map[string]any
	if err := drayhorse.Decode(job.Payload, &decoded); err != nil || decoded["e"] != json.Number("123456789012345678901234567890") {
		t.Errorf("%v, %v", decoded, err)
	}
	for _, refused := range []struct {
		payload any
		code    drayhorse.ErrorCode
		path    string
	}{
		{map[string]any{"items": []any{1, "x\x00y"}}, drayhorse.ErrPayloadInvalid, "payload.items[1]"},
		{json.RawMessage(`"\ud800"`), drayhorse.ErrPayloadInvalid, "payload"},
		{json.RawMessage("\"\xff\""), drayhorse.ErrInvalidArgument, ""},
		{strings.Repeat("x", 1<<20), drayhorse.ErrPayloadTooLarge, "payload"},
		{json.RawMessage(strings.Repeat("[", 101) + strings.Repeat("]", 101)), drayhorse.ErrPayloadInvalid, "payload"},
	} {
		_, err := queue.Enqueue(ctx, "a", refused.payload)
		typed := expectCode(t, err, refused.code)
		if path, _ := typed.Details["path"].(string); !strings.HasPrefix(path, refused.path) {
			t.Errorf("the path is %q: %v", path, err)
		}
	}
}

func TestEnqueueManyIsAllOrNothing(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	jobs := make([]drayhorse.NewJob, 100)
	for i := range jobs {
		jobs[i] = drayhorse.NewJob{Type: "a", Payload: i}
	}
	enqueued := must[[]drayhorse.Enqueued](t)(queue.EnqueueMany(ctx, jobs))
	if len(enqueued) != 100 || string(get(t, queue, enqueued[57].ID).Payload) != "57" {
		t.Errorf("%d jobs, or in another order", len(enqueued))
	}
	jobs[57].Payload = "x\x00"
	_, err := queue.EnqueueMany(ctx, jobs)
	typed := expectCode(t, err, drayhorse.ErrPayloadInvalid)
	if path, _ := typed.Details["path"].(string); !strings.HasPrefix(path, "jobs[57].payload") {
		t.Errorf("the path is %q", path)
	}
	if counts := must[drayhorse.Counts](t)(queue.Counts(ctx, drayhorse.Filter{})); counts.Ready != 100 {
		t.Errorf("%+v", counts)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	options := drayhorse.EnqueueOptions{IdempotencyKey: &drayhorse.IdempotencyKey{Key: "order-7"}}
	first := must[drayhorse.Enqueued](t)(queue.Enqueue(ctx, "charge", json.RawMessage(`{"b":1,"a":2}`), options))
	again := must[drayhorse.Enqueued](t)(queue.Enqueue(ctx, "charge", json.RawMessage(`{"a":2.0,"b":1}`), options))
	if first.Replayed || !again.Replayed || first.ID != again.ID || first.String() != first.ID {
		t.Errorf("%+v, then %+v", first, again)
	}
	_, err := queue.Enqueue(ctx, "charge", json.RawMessage(`{"a":3}`), options)
	typed := expectCode(t, err, drayhorse.ErrIdempotencyConflict)
	if typed.Details["existingId"] != first.ID {
		t.Errorf("%+v", typed.Details)
	}
	if errors.Is(err, drayhorse.ErrNotFound) || errors.Is(err, context.Canceled) {
		t.Error("the error is everything")
	}
}

func TestListsAndCounts(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	for i := range 7 {
		enqueue(t, queue, "a", map[string]any{"i": i}, drayhorse.EnqueueOptions{Tags: []string{"x"}})
	}
	enqueue(t, queue, "b", nil, drayhorse.EnqueueOptions{DelayMs: 1_000_000})
	seen := 0
	page := drayhorse.Page{Limit: 3}
	for {
		jobs := must[drayhorse.JobPage](t)(queue.List(ctx, drayhorse.Filter{Type: "a", Tag: "x"}, page))
		seen += len(jobs.Jobs)
		for _, job := range jobs.Jobs {
			if job.Payload != nil {
				t.Errorf("a list loads payloads: %s", job.Payload)
			}
		}
		if jobs.Next == "" {
			break
		}
		page.After = jobs.Next
	}
	if seen != 7 {
		t.Errorf("%d jobs", seen)
	}
	with := must[drayhorse.JobPage](t)(queue.List(ctx, drayhorse.Filter{Type: "a"}, drayhorse.Page{Limit: 1, Payloads: true}))
	if string(with.Jobs[0].Payload) != `{"i": 6}` {
		t.Errorf("%s", with.Jobs[0].Payload)
	}
	counts := must[drayhorse.Counts](t)(queue.Counts(ctx, drayhorse.Filter{Queue: "default"}))
	if counts.Ready != 7 || counts.Scheduled != 1 || counts.Active != 0 {
		t.Errorf("%+v", counts)
	}
	_, err := queue.List(ctx, drayhorse.Filter{State: "nowhere"}, drayhorse.Page{})
	expectCode(t, err, drayhorse.ErrInvalidArgument)
	if job, err := queue.Get(ctx, "01890a5d-ac96-774b-bcce-b302099a8057"); job != nil || err != nil {
		t.Errorf("%v, %v", job, err)
	}
	_, err = queue.Timeline(ctx, "01890a5d-ac96-774b-bcce-b302099a8057")
	expectCode(t, err, drayhorse.ErrNotFound)
}

func TestCancel(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	id := enqueue(t, queue, "a", nil)
	options := drayhorse.CancelOptions{Reason: "wrong account", Actor: "ops"}
	for _, want := range []drayhorse.CancelResult{drayhorse.CancelDone, drayhorse.CancelTooLate} {
		if got := must[drayhorse.CancelResult](t)(queue.Cancel(ctx, id, options)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := must[drayhorse.CancelResult](t)(queue.Cancel(ctx, "01890a5d-ac96-774b-bcce-b302099a8057")); got != drayhorse.CancelNotFound {
		t.Error(got)
	}
	outcome := wait(t, queue, id)
	if outcome.State != drayhorse.Canceled || outcome.Started {
		t.Errorf("%+v", outcome)
	}
	events := must[[]drayhorse.TimelineEvent](t)(queue.Timeline(ctx, id))
	i := slices.IndexFunc(events, func(e drayhorse.TimelineEvent) bool { return e.Kind == "cancel_requested" })
	if i < 0 || events[i].Details["actor"] != "ops" || events[i].Details["reason"] != "wrong account" {
		t.Errorf("%+v", events)
	}
}

func TestWaitTimesOut(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	id := enqueue(t, queue, "a", nil)
	_, err := queue.Wait(ctx, id, 30)
	if typed := expectCode(t, err, drayhorse.ErrWaitTimeout); !typed.Retryable {
		t.Error("a timeout is not retryable")
	}
	if get(t, queue, id).State != drayhorse.Ready {
		t.Error("the job was touched")
	}
	_, err = queue.Wait(ctx, id, -1)
	expectCode(t, err, drayhorse.ErrInvalidArgument)
	_, err = queue.Wait(ctx, "01890a5d-ac96-774b-bcce-b302099a8057", 1000)
	expectCode(t, err, drayhorse.ErrNotFound)
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := queue.Wait(short, id, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestTheLowLevelLoop(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	handlers := []drayhorse.Handler{{Type: "a"}}
	policy := map[string]any{"type": "fixed", "delayMs": 0}
	id := enqueue(t, queue, "a", map[string]any{"n": 1}, drayhorse.EnqueueOptions{RetryPolicy: policy, MaxAttempts: 9})
	claim := func() drayhorse.Claim {
		t.Helper()
		claims := must[[]drayhorse.Claim](t)(queue.Claim(ctx, drayhorse.ClaimOptions{Handlers: handlers, LeaseMs: 60_000}))
		if len(claims) != 1 || claims[0].ID != id {
			t.Fatalf("%+v", claims)
		}
		return claims[0]
	}
	first := claim()
	if first.Attempt != 1 || first.MaxAttempts != 9 || string(first.Payload) != `{"n": 1}` || first.Fence == "" || first.IdempotencyKey != id {
		t.Errorf("%+v", first)
	}
	if beats := must[[]drayhorse.Beat](t)(queue.Heartbeat(ctx, []drayhorse.Claim{first}, 0)); beats[0] != drayhorse.BeatAccepted {
		t.Error(beats)
	}
	if err := queue.Release(ctx, first); err != nil {
		t.Fatal(err)
	}
	_, err := queue.Complete(ctx, first, nil)
	expectCode(t, err, drayhorse.ErrLeaseLost)
	if beats := must[[]drayhorse.Beat](t)(queue.Heartbeat(ctx, []drayhorse.Claim{first}, 0)); beats[0] != drayhorse.BeatLeaseLost {
		t.Error(beats)
	}

	eventually(t, "the released job is offered again", func() bool { return get(t, queue, id).State == drayhorse.Ready })
	second := claim()
	if second.Attempt != 1 || second.Fence == first.Fence {
		t.Errorf("%+v after a release", second)
	}
	_, err = queue.Fail(ctx, second, errors.New("x"), drayhorse.FailOptions{DelayMs: drayhorse.Ptr[int64](-1)})
	expectCode(t, err, drayhorse.ErrInvalidArgument)
	settled := must[drayhorse.Settled](t)(queue.Fail(ctx, second, errors.New("busy \xff"), drayhorse.FailOptions{DelayMs: drayhorse.Ptr[int64](0)}))
	if settled.DelayMs == nil || *settled.DelayMs != 0 || settled.Source != "override" || settled.State != drayhorse.Ready {
		t.Errorf("%+v", settled)
	}

	third := claim()
	settled = must[drayhorse.Settled](t)(queue.Fail(ctx, third, drayhorse.NonRetryable(errors.New("gone"))))
	if settled.State != drayhorse.Failed {
		t.Errorf("%+v", settled)
	}
	job := get(t, queue, id)
	if job.State != drayhorse.Failed || job.LastError == nil || job.LastError.Message != "gone" || job.LastError.Name != "NonRetryableError" || job.Attempt != 2 {
		t.Errorf("%+v, %+v", job, job.LastError)
	}
	if claims := must[[]drayhorse.Claim](t)(queue.Claim(ctx, drayhorse.ClaimOptions{Handlers: handlers})); len(claims) != 0 {
		t.Errorf("%+v", claims)
	}
	_, err = queue.Claim(ctx, drayhorse.ClaimOptions{Handlers: handlers, Limit: 1001})
	expectCode(t, err, drayhorse.ErrInvalidArgument)

	ok := enqueue(t, queue, "a", nil)
	claims := must[[]drayhorse.Claim](t)(queue.Claim(ctx, drayhorse.ClaimOptions{Handlers: handlers}))
	settled = must[drayhorse.Settled](t)(queue.Complete(ctx, claims[0], map[string]int{"rows": 3}))
	if outcome := wait(t, queue, ok); settled.State != drayhorse.Succeeded || string(outcome.Result) != `{"rows": 3}` {
		t.Errorf("%+v, %+v", settled, outcome)
	}
	again := must[drayhorse.Settled](t)(queue.Complete(ctx, claims[0], map[string]int{"rows": 3}))
	if again.State != drayhorse.Succeeded {
		t.Errorf("the same report again: %+v", again)
	}
	_, err = queue.Complete(ctx, claims[0], func() {})
	expectCode(t, err, drayhorse.ErrPayloadInvalid)

	unstorable := enqueue(t, queue, "a", nil)
	claims = must[[]drayhorse.Claim](t)(queue.Claim(ctx, drayhorse.ClaimOptions{Handlers: handlers}))
	settled = must[drayhorse.Settled](t)(queue.Complete(ctx, claims[0], "x\x00"))
	if outcome := wait(t, queue, unstorable); settled.State != drayhorse.Failed || settled.Reason != "output" || !outcome.Uncertain {
		t.Errorf("%+v, %+v", settled, outcome)
	}
}

func TestRedrive(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	fail := func() string {
		id := enqueue(t, queue, "a", map[string]any{"n": 1}, drayhorse.EnqueueOptions{MaxAttempts: 1, Tags: []string{"x"}})
		claims := must[[]drayhorse.Claim](t)(queue.Claim(ctx, drayhorse.ClaimOptions{Handlers: []drayhorse.Handler{{Type: "a"}}}))
		if _, err := queue.Fail(ctx, claims[0], errors.New("down")); err != nil {
			t.Fatal(err)
		}
		return id
	}
	options := drayhorse.RedriveOptions{Actor: "ops", Reason: "provider is back", RequestID: "r-1"}
	id := fail()
	made := must[drayhorse.Redriven](t)(queue.Redrive(ctx, id, options))
	again := must[drayhorse.Redriven](t)(queue.Redrive(ctx, id, options))
	if made != again || made.SourceID != id || made.ID == id {
		t.Errorf("%+v, then %+v", made, again)
	}
	if job := get(t, queue, made.ID); job.SourceID != id || job.Attempt != 0 || job.IdempotencyKey != id {
		t.Errorf("%+v", job)
	}
	_, err := queue.Redrive(ctx, made.ID, options)
	expectCode(t, err, drayhorse.ErrWrongState)
	_, err = queue.Redrive(ctx, id, drayhorse.RedriveOptions{})
	expectCode(t, err, drayhorse.ErrInvalidArgument)
	if _, err := queue.Cancel(ctx, made.ID); err != nil {
		t.Fatal(err)
	}

	ids := []string{fail(), fail()}
	filter := drayhorse.Filter{Type: "a", Tag: "x"}
	if preview := must[drayhorse.RedrivePreview](t)(queue.RedrivePreview(ctx, filter)); preview.Count != 2 {
		t.Errorf("%+v", preview)
	}
	options.RequestID = "r-2"
	redriven := must[[]drayhorse.Redriven](t)(queue.RedriveFilter(ctx, filter, options))
	if len(redriven) != 2 || !slices.Contains(ids, redriven[0].SourceID) {
		t.Errorf("%+v", redriven)
	}
}

func TestPreviewPolicy(t *testing.T) {
	queue := newQueue(t)
	preview := must[drayhorse.PolicyPreview](t)(queue.PreviewPolicy(testContext(t),
		map[string]any{"type": "decorrelated-jitter", "baseDelayMs": 1000, "maxDelayMs": 60_000},
		drayhorse.PreviewOptions{JobID: "01890a5d-ac96-774b-bcce-b302099a8057", Attempts: 6}))
	if !slices.Equal(preview.DelaysMs, []int64{2075, 1144, 1356, 3428, 6033, 15453}) {
		t.Errorf("%v", preview.DelaysMs)
	}
}

func TestHTTPDecisions(t *testing.T) {
	queue := newQueue(t)
	decision := must[drayhorse.Decision](t)(queue.HTTPDecision(drayhorse.HTTPResult{Failure: drayhorse.AfterSend},
		drayhorse.HTTPOptions{Idempotent: drayhorse.Ptr(false)}))
	if decision.Retryable || !decision.Uncertain || decision.Reason == "" {
		t.Errorf("%+v", decision)
	}
	response := &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"5", " 120 "}}}
	decision = must[drayhorse.Decision](t)(queue.DecisionFromResponse(response))
	if !decision.Retryable || decision.RetryAfterMs != 120_000 {
		t.Errorf("%+v", decision)
	}
	response = &http.Response{StatusCode: 409, Header: http.Header{}}
	decision = must[drayhorse.Decision](t)(queue.DecisionFromResponse(response, drayhorse.HTTPOptions{ConflictMeansInProgress: true}))
	if !decision.Retryable {
		t.Errorf("%+v", decision)
	}
	_, err := queue.HTTPDecision(drayhorse.HTTPResult{Status: 99}, drayhorse.HTTPOptions{})
	expectCode(t, err, drayhorse.ErrInvalidArgument)
}

func TestPrune(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	id := enqueue(t, queue, "a", nil)
	if _, err := queue.Cancel(ctx, id); err != nil {
		t.Fatal(err)
	}
	if pruned := must[int](t)(queue.Prune(ctx, 0)); pruned != 0 {
		t.Errorf("%d jobs were pruned too early", pruned)
	}
	if err := queue.Call(ctx, "advanceClock", map[string]any{"ms": 40 * 86_400_000}, nil); err != nil {
		t.Fatal(err)
	}
	if pruned := must[int](t)(queue.Prune(ctx, 10)); pruned != 1 {
		t.Errorf("%d jobs were pruned", pruned)
	}
}

func TestStatementForAnotherConnection(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	statement := must[drayhorse.Statement](t)(queue.EnqueueStatement(ctx,
		drayhorse.NewJob{Type: "a", Payload: "it's"}, drayhorse.NewJob{Type: "b", Payload: drayhorse.NoPayload}))
	if len(statement.Params) != 1 || len(statement.Args()) != 1 || len(statement.IDs) != 2 {
		t.Fatalf("%+v", statement)
	}
	if _, err := statement.Decode("[1"); !errors.Is(err, drayhorse.ErrInvalidArgument) {
		t.Errorf("%v", err)
	}
	literal := "'" + strings.ReplaceAll(statement.Params[0], "'", "''") + "'"
	text := psql(t, testURL(t), strings.ReplaceAll(statement.SQL, "$1", literal))
	enqueued := must[[]drayhorse.Enqueued](t)(statement.Decode(text))
	if len(enqueued) != 2 || enqueued[0].ID != statement.IDs[0] || string(get(t, queue, enqueued[0].ID).Payload) != `"it's"` {
		t.Errorf("%s: %+v", text, enqueued)
	}
}

func TestManyCallersShareOneQueue(t *testing.T) {
	queue := newQueue(t)
	ctx := testContext(t)
	var group sync.WaitGroup
	for caller := range 50 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 20 {
				if _, err := queue.Enqueue(ctx, "a", map[string]int{"caller": caller, "i": i}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	group.Wait()
	if counts := must[drayhorse.Counts](t)(queue.Counts(ctx, drayhorse.Filter{})); counts.Ready != 1000 {
		t.Errorf("%+v", counts)
	}
}

func TestClosedQueue(t *testing.T) {
	ctx := testContext(t)
	queue := must[*drayhorse.Queue](t)(drayhorse.Connect(ctx, testURL(t), drayhorse.WithSchema(newSchema(t))))
	if err := queue.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	id := enqueue(t, queue, "a", nil)
	waiting := make(chan error, 1)
	go func() {
		_, err := queue.Wait(ctx, id, 0)
		waiting <- err
	}()
	time.Sleep(50 * time.Millisecond)
	for range 2 {
		if err := queue.Close(); err != nil {
			t.Error(err)
		}
	}
	select {
	case err := <-waiting:
		expectCode(t, err, drayhorse.ErrClosed)
	case <-time.After(patience):
		t.Fatal("a waiting call outlived the queue")
	}
	_, err := queue.Get(ctx, id)
	expectCode(t, err, drayhorse.ErrClosed)
	_, err = queue.HTTPDecision(drayhorse.HTTPResult{Status: 500}, drayhorse.HTTPOptions{})
	expectCode(t, err, drayhorse.ErrClosed)
	expectCode(t, drayhorse.NewWorker(queue, quiet(t)).Run(ctx), drayhorse.ErrClosed)
}

func TestEndedContextIsNotSent(t *testing.T) {
	queue := newQueue(t)
	reason := errors.New("the request went away")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	_, err := queue.Enqueue(ctx, "a", nil)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, reason) || !strings.Contains(err.Error(), "was not sent") {
		t.Errorf("%v", err)
	}
	if counts := must[drayhorse.Counts](t)(queue.Counts(testContext(t), drayhorse.Filter{})); counts.Ready != 0 {
		t.Errorf("%+v", counts)
	}
}
