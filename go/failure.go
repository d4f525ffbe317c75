package drayhorse

import (
	"context"
	"fmt"
	"reflect"
	"strings"
)

// NonRetryableError ends the job: no further attempt. It is found anywhere on the chain of an error that a handler
// returns. It is no bypass for the accounting of the job's endpoint.
type NonRetryableError struct {
	Message string
	// Uncertain: the effect may have happened.
	Uncertain bool
	// Cause is what Unwrap returns.
	Cause error
}

// Error is the message, or the cause's.
func (e NonRetryableError) Error() string { return messageOr(e.Message, e.Cause, "not retryable") }

// Unwrap is the cause.
func (e NonRetryableError) Unwrap() error { return e.Cause }

// NonRetryable wraps err so that no further attempt is made; nil stays nil.
func NonRetryable(err error) error {
	if err == nil {
		return nil
	}
	return &NonRetryableError{Cause: err}
}

// RetryableError asks for another attempt, not before RetryAfterMs: a lower bound that the destination asked for. It
// is never above a day, and values below 1 are ignored.
type RetryableError struct {
	Message      string
	RetryAfterMs int64
	// Cause is what Unwrap returns.
	Cause error
}

// Error is the message, or the cause's.
func (e RetryableError) Error() string { return messageOr(e.Message, e.Cause, "retryable") }

// Unwrap is the cause.
func (e RetryableError) Unwrap() error { return e.Cause }

func messageOr(message string, cause error, otherwise string) string {
	switch {
	case message != "":
		return message
	case cause != nil:
		return cause.Error()
	}
	return otherwise
}

// Classification is what a ClassifyError function says about an error.
type Classification struct {
	Retryable bool
	// RetryAfterMs is a lower bound, 0 when there is none.
	RetryAfterMs int64
	// Uncertain: the effect may have happened.
	Uncertain bool
}

// chainDepth bounds how deep an error's causes are followed; chainLength how many of them in all.
const (
	chainDepth  = 32
	chainLength = 1000
)

// walk visits err and its causes in pre-order until visit returns false. Joined errors are branches; a cycle ends.
func walk(err error, visit func(error) bool) {
	seen := map[error]bool{}
	left := chainLength
	var follow func(err error, depth int) bool
	follow = func(err error, depth int) bool {
		if err == nil || depth > chainDepth || left == 0 {
			return true
		}
		if reflect.ValueOf(err).Comparable() {
			if seen[err] {
				return true
			}
			seen[err] = true
		}
		left--
		if !visit(err) {
			return false
		}
		for _, branch := range causes(err) {
			if !follow(branch, depth+1) {
				return false
			}
		}
		return true
	}
	follow(err, 1)
}

// causes are what err unwraps to. A method of the user's that panics, on a nil pointer for example, has none.
func causes(err error) (branches []error) {
	defer func() {
		if recover() != nil {
			branches = nil
		}
	}()
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return []error{wrapper.Unwrap()}
	case interface{ Unwrap() []error }:
		return wrapper.Unwrap()
	}
	return nil
}

// findDecision is what the outermost NonRetryableError or RetryableError on the chain says, nil when there is none.
func findDecision(err error) *Classification {
	var found *Classification
	walk(err, func(err error) bool {
		switch decided := err.(type) {
		case *NonRetryableError:
			if decided != nil {
				found = &Classification{Uncertain: decided.Uncertain}
			}
		case NonRetryableError:
			found = &Classification{Uncertain: decided.Uncertain}
		case *RetryableError:
			if decided != nil {
				found = &Classification{Retryable: true, RetryAfterMs: decided.RetryAfterMs}
			}
		case RetryableError:
			found = &Classification{Retryable: true, RetryAfterMs: decided.RetryAfterMs}
		}
		return found == nil
	})
	return found
}

// isCancellation: context.Canceled stands on the chain. Without a reason that the core recorded it is an ordinary
// failure, but says nothing about the destination.
func isCancellation(err error) bool {
	found := false
	walk(err, func(err error) bool {
		found = err == context.Canceled
		return !found
	})
	return found
}

// describe is the form in which a failure is stored. It never fails: whatever the error says can be recorded.
func describe(err error) JobError {
	if err == nil {
		return JobError{Name: "error", Message: "no error was given"}
	}
	described := JobError{Name: errorName(err), Message: errorMessage(err)}
	if panicked, ok := err.(*panicError); ok {
		described.Stack = storable(panicked.stack)
	}
	first := true
	walk(err, func(cause error) bool {
		if first {
			first = false
			return true
		}
		described.Causes = append(described.Causes, JobError{Name: typeName(cause), Message: errorMessage(cause)})
		return len(described.Causes) < chainDepth
	})
	return described
}

// errorMessage survives errors whose Error method panics: the failure must be recorded.
func errorMessage(err error) (message string) {
	defer func() {
		if value := recover(); value != nil {
			message = fmt.Sprintf("the error's own Error method panicked: %v", value)
		}
	}()
	return storable(err.Error())
}

// storable replaces visibly what PostgreSQL cannot keep.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// errorName is the type of the outermost error that is more than a text around another.
func errorName(err error) string {
	name := ""
	walk(err, func(err error) bool {
		switch typeName(err) {
		case "fmt.wrapError", "fmt.wrapErrors", "errors.joinError":
			return true
		}
		name = typeName(err)
		return false
	})
	if name == "" {
		return typeName(err)
	}
	return name
}

func typeName(err error) string {
	if _, ok := err.(*panicError); ok {
		return "panic"
	}
	return strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", err), "*"), "drayhorse.")
}

// panicError is a panic of a handler. A panic with an error has it as its cause.
type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// inputError: the payload does not decode into the handler's type, so the handler never ran.
type inputError struct {
	into  string
	cause error
}

func (e *inputError) Error() string {
	return fmt.Sprintf("the payload does not decode into %s: %v", e.into, e.cause)
}

func (e *inputError) Unwrap() error { return e.cause }

// AbortError is the cause of a handler's context when the core asks the handler to stop: context.Cause(ctx).
type AbortError struct {
	// Reason is "cancel", "timeout", "deadline", "lease_lost" or "shutdown".
	Reason string
}

// Error names the reason.
func (e *AbortError) Error() string { return "drayhorse: the attempt is asked to stop: " + e.Reason }
