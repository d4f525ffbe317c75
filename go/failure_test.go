package drayhorse_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drayhorse/drayhorse/go"
)

// ring is an error whose causes end where they began.
type ring struct{ next error }

func (r *ring) Error() string { return "ring" }
func (r *ring) Unwrap() error { return r.next }

// bush is an error whose causes are itself, several times.
type bush struct{}

func (b *bush) Error() string   { return "bush" }
func (b *bush) Unwrap() []error { return []error{b, b, b} }

// many cannot be compared, so only the bounds end it.
type many []error

func (m many) Error() string   { return "many" }
func (m many) Unwrap() []error { return []error{m, m} }

func nested(depth int, err error) error {
	for range depth {
		err = fmt.Errorf("around: %w", err)
	}
	return err
}

func TestDecisionIsTheOutermostOnTheChain(t *testing.T) {
	base := errors.New("refused")
	final := drayhorse.NonRetryable(base)
	later := &drayhorse.RetryableError{Message: "busy", RetryAfterMs: 1500}
	closed := &ring{}
	closed.next = fmt.Errorf("twice: %w", closed)
	no, yes := "no", "yes"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"plain":                  {base, ""},
		"itself":                 {final, no},
		"by value":               {drayhorse.NonRetryableError{Message: "x"}, no},
		"wrapped":                {fmt.Errorf("outer: %w", fmt.Errorf("inner: %w", final)), no},
		"hint":                   {fmt.Errorf("outer: %w", later), yes},
		"hint by value":          {drayhorse.RetryableError{RetryAfterMs: 1}, yes},
		"the outer one decides":  {&drayhorse.RetryableError{Cause: final}, yes},
		"and the other way":      {drayhorse.NonRetryable(later), no},
		"joined, first branch":   {errors.Join(final, later), no},
		"joined, second branch":  {errors.Join(base, fmt.Errorf("x: %w", later), final), yes},
		"two verbs":              {fmt.Errorf("%w and %w", base, final), no},
		"depth 32":               {nested(31, final), no},
		"depth 33":               {nested(32, final), ""},
		"a cycle":                {closed, ""},
		"a cycle of branches":    {&bush{}, ""},
		"a cycle without equals": {many{}, ""},
		"a nil pointer":          {fmt.Errorf("x: %w", (*ring)(nil)), ""},
	} {
		if name == "a nil pointer" {
			c.err = errors.Join(base, (*drayhorse.NonRetryableError)(nil))
		}
		got := ""
		if decided := drayhorse.FindDecision(c.err); decided != nil {
			got = no
			if decided.Retryable {
				got = yes
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if decided := drayhorse.FindDecision(fmt.Errorf("x: %w", later)); decided.RetryAfterMs != 1500 {
		t.Errorf("the hint is lost: %+v", decided)
	}
	if drayhorse.NonRetryable(nil) != nil {
		t.Error("no error became one")
	}
	if !errors.Is(final, base) {
		t.Error("the cause is lost")
	}
}

type rude struct{}

func (rude) Error() string { panic("no text") }

func TestDescribeAlwaysDescribes(t *testing.T) {
	custom := &ring{next: errors.New("cause")}
	for _, c := range []struct {
		err           error
		name, message string
		causes        int
	}{
		{errors.New("plain"), "errors.errorString", "plain", 0},
		{fmt.Errorf("outer: %w", custom), "drayhorse_test.ring", "outer: ring", 2},
		{drayhorse.NonRetryable(custom), "NonRetryableError", "ring", 2},
		{errors.New("bad \xff\x00 bytes"), "errors.errorString", "bad \uFFFD\uFFFD bytes", 0},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", context.Canceled)), "errors.errorString", "a: b: context canceled", 2},
		{rude{}, "drayhorse_test.rude", "the error's own Error method panicked: no text", 0},
		{many{}, "drayhorse_test.many", "many", 32},
		{nil, "error", "no error was given", 0},
	} {
		got := drayhorse.Describe(c.err)
		if got.Name != c.name || got.Message != c.message || len(got.Causes) != c.causes {
			t.Errorf("%T: %q %q with %d causes; want %q %q with %d", c.err, got.Name, got.Message, len(got.Causes), c.name, c.message, c.causes)
		}
	}
	if got := drayhorse.Describe(fmt.Errorf("x: %w", custom)).Causes[1].Message; !strings.Contains(got, "cause") {
		t.Errorf("the causes are in another order: %q", got)
	}
}

func TestErrorTableIsTheCoresTable(t *testing.T) {
	codes := map[drayhorse.ErrorCode]bool{}
	for _, code := range []drayhorse.ErrorCode{
		drayhorse.ErrInvalidArgument, drayhorse.ErrPayloadInvalid, drayhorse.ErrPayloadTooLarge, drayhorse.ErrPolicyInvalid,
		drayhorse.ErrIdempotencyConflict, drayhorse.ErrNotFound, drayhorse.ErrWrongState, drayhorse.ErrLeaseLost,
		drayhorse.ErrCheckpointConflict, drayhorse.ErrContractConflict, drayhorse.ErrContractViolation, drayhorse.ErrWaitTimeout,
		drayhorse.ErrStatementTimeout, drayhorse.ErrConnectionLost, drayhorse.ErrReadOnly, drayhorse.ErrPermissionDenied,
		drayhorse.ErrSchemaMissing, drayhorse.ErrSchemaTooOld, drayhorse.ErrSchemaTooNew, drayhorse.ErrClosed,
		drayhorse.ErrUsedAfterFork, drayhorse.ErrEmbeddedFailed, drayhorse.ErrInternal,
	} {
		codes[code] = true
	}
	rows := must[[]drayhorse.ErrorTableRow](t)(drayhorse.ErrorTable())
	if len(rows) != len(codes) {
		t.Errorf("the core has %d errors, this package %d", len(rows), len(codes))
	}
	for _, row := range rows {
		if !codes[row.Code] {
			t.Errorf("no value for %s", row.Code)
		}
	}
}
