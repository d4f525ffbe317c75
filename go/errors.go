package drayhorse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/drayhorse/drayhorse/go/internal/clib"
)

// ErrorCode is one line of the table of errors that every language shares. The Err values are codes:
//
//	if errors.Is(err, drayhorse.ErrIdempotencyConflict) { … }
type ErrorCode string

// Error makes a code an error value for errors.Is.
func (c ErrorCode) Error() string { return "drayhorse: " + string(c) }

// The table of errors.
const (
	ErrInvalidArgument     ErrorCode = "invalid_argument"     // missing, unknown, of another type or out of bounds
	ErrPayloadInvalid      ErrorCode = "payload_invalid"      // PostgreSQL cannot keep it: U+0000, NaN, nesting over 100
	ErrPayloadTooLarge     ErrorCode = "payload_too_large"    // larger than the database's limit
	ErrPolicyInvalid       ErrorCode = "policy_invalid"       // unknown shape, key or bound
	ErrIdempotencyConflict ErrorCode = "idempotency_conflict" // the key names another enqueue
	ErrNotFound            ErrorCode = "not_found"            // no such job, run, endpoint or queue
	ErrWrongState          ErrorCode = "wrong_state"          // its state does not allow this
	ErrLeaseLost           ErrorCode = "lease_lost"           // the claim is no longer current
	ErrCheckpointConflict  ErrorCode = "checkpoint_conflict"  // the checkpoint holds another value
	ErrContractConflict    ErrorCode = "contract_conflict"    // this version is published with another content
	ErrContractViolation   ErrorCode = "contract_violation"   // the value does not match the contract's schema
	ErrWaitTimeout         ErrorCode = "wait_timeout"         // the job had not ended; it is untouched
	ErrStatementTimeout    ErrorCode = "statement_timeout"    // the database cancelled the statement
	ErrConnectionLost      ErrorCode = "connection_lost"      // the database cannot be reached
	ErrReadOnly            ErrorCode = "read_only"            // a replica, for example
	ErrPermissionDenied    ErrorCode = "permission_denied"    // the role lacks a right
	ErrSchemaMissing       ErrorCode = "schema_missing"       // not migrated yet
	ErrSchemaTooOld        ErrorCode = "schema_too_old"       // migrate it
	ErrSchemaTooNew        ErrorCode = "schema_too_new"       // update the library
	ErrClosed              ErrorCode = "closed"               // the queue or worker was closed
	ErrUsedAfterFork       ErrorCode = "used_after_fork"      // made by the parent process
	ErrEmbeddedFailed      ErrorCode = "embedded_failed"      // the private server could not be started
	ErrInternal            ErrorCode = "internal"             // a fault of Drayhorse itself
)

// Error is every failure of this package except a context's end: errors.As finds it, errors.Is compares its code.
type Error struct {
	// Code tells failures apart.
	Code ErrorCode
	// Message is for the person who reads it. It holds no secret.
	Message string
	// Retryable says whether the same call may succeed later without a change by the caller.
	Retryable bool
	// Details are machine-readable: field, path, limit, conflictingFields, existingId and so on.
	Details map[string]any

	cause error
}

// Error is the code and the message.
func (e *Error) Error() string { return "drayhorse: " + string(e.Code) + ": " + e.Message }

// Is reports whether target is the code of e.
func (e *Error) Is(target error) bool {
	code, ok := target.(ErrorCode)
	return ok && code == e.Code
}

// Unwrap is the cause, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// newError is an error that this package finds by itself.
func newError(code ErrorCode, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Details: map[string]any{}}
}

func (e *Error) with(key string, value any) *Error {
	e.Details[key] = value
	return e
}

func (e *Error) because(cause error) *Error {
	e.cause = cause
	return e
}

func argumentError(field, format string, args ...any) *Error {
	return newError(ErrInvalidArgument, "%s: %s", field, fmt.Sprintf(format, args...)).with("field", field)
}

// UnmarshalJSON reads the form in which errors cross the boundary.
func (e *Error) UnmarshalJSON(text []byte) error {
	var wire struct {
		Code      ErrorCode      `json:"code"`
		Message   string         `json:"message"`
		Retryable bool           `json:"retryable"`
		Details   map[string]any `json:"details"`
	}
	if err := decode(text, &wire); err != nil {
		return err
	}
	*e = Error{Code: wire.Code, Message: wire.Message, Retryable: wire.Retryable, Details: wire.Details}
	return nil
}

// failure turns a status and its text into an error, nil when the status is 0.
func failure(status int32, text []byte) error {
	if status == 0 {
		return nil
	}
	var e Error
	if err := json.Unmarshal(text, &e); err != nil {
		return newError(ErrInternal, "status %d without an error: %v", status, err)
	}
	return &e
}

type errorTableRow struct {
	Number    int       `json:"number"`
	Code      ErrorCode `json:"code"`
	Retryable bool      `json:"retryable"`
}

// errorTable is the core's table; it is compiled in, so it cannot change while the program runs.
var errorTable = sync.OnceValues(func() ([]errorTableRow, error) {
	var rows []errorTableRow
	status, text := clib.ErrorTable()
	if err := failure(status, text); err != nil {
		return nil, err
	}
	return rows, json.Unmarshal(text, &rows)
})

// fromDriver makes the typed error of a SQLSTATE of class YD out of a driver's error; any other error stays as it is.
// The known drivers show the state by a method SQLState.
func fromDriver(err error) error {
	state, ok := sqlState(err)
	if !ok || !strings.HasPrefix(state, "YD") {
		return err
	}
	number, parseErr := strconv.Atoi(state[2:])
	rows, tableErr := errorTable()
	if parseErr != nil || tableErr != nil {
		return err
	}
	i := slices.IndexFunc(rows, func(row errorTableRow) bool { return row.Number == number })
	if i < 0 {
		return err
	}
	message := driverText(err, "Message")
	if message == "" {
		message = err.Error()
	}
	typed := &Error{Code: rows[i].Code, Message: message, Retryable: rows[i].Retryable, Details: map[string]any{}, cause: err}
	if details, ok := driverDetail(err); ok {
		maps.Copy(typed.Details, details)
	}
	return typed
}

// decode reads JSON with every number kept as it is written.
func decode(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}
