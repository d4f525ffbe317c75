package drayhorse

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Job is one attempt as its handler sees it. Its fields belong to the handler; its methods may be called from any
// goroutine until the handler has returned.
type Job struct {
	ID          string    `json:"id"`
	Type        string    `json:"type"`
	Version     string    `json:"version"`
	Queue       string    `json:"queue"`
	Attempt     int       `json:"attempt"`
	MaxAttempts int       `json:"maxAttempts"`
	Tags        []string  `json:"tags"`
	Endpoint    string    `json:"endpoint"`
	Deadline    time.Time `json:"deadline"`
	RunID       string    `json:"runId"`
	// IdempotencyKey is the same on every attempt, to be passed to the destination: the caller's key, else the job's id.
	IdempotencyKey string `json:"idempotencyKey"`
	Synthetic      bool   `json:"synthetic"`
	// Payload is the JSON as it is stored, null when there is none: HasPayload tells the two apart.
	Payload    json.RawMessage `json:"payload"`
	HasPayload bool            `json:"hasPayload"`

	handle uint64
	worker *Worker
}

// Decode reads the payload into a value of the handler's own. Returning its error ends the job: the same payload will
// not decode on another attempt.
func (j *Job) Decode(into any) error {
	if err := decode(j.Payload, into); err != nil {
		return &inputError{into: fmt.Sprintf("%v", reflect.TypeOf(into)), cause: err}
	}
	return nil
}

// Checkpoint runs fn once and stores its value under name; later attempts get the stored value and fn does not run.
// The answer is the value's JSON in both cases; CheckpointTyped decodes it.
func (j *Job) Checkpoint(ctx context.Context, name string, fn func(ctx context.Context) (any, error)) (json.RawMessage, error) {
	type arguments struct {
		Handle uint64          `json:"handle"`
		Name   string          `json:"name"`
		Value  json.RawMessage `json:"value,omitempty"`
	}
	var held struct {
		Found bool            `json:"found"`
		Value json.RawMessage `json:"value"`
	}
	if err := j.call(ctx, "checkpointGet", arguments{Handle: j.handle, Name: name}, &held); err != nil {
		return nil, err
	}
	if held.Found {
		return held.Value, nil
	}
	value, err := fn(ctx)
	if err != nil {
		return nil, err
	}
	text, err := encode(value, "checkpoint "+name)
	if err != nil {
		return nil, err
	}
	if err := j.call(ctx, "checkpointPut", arguments{j.handle, name, text}, nil); err != nil {
		return nil, err
	}
	return text, nil
}

// CheckpointTyped is Checkpoint with a type of the caller's own.
func CheckpointTyped[T any](ctx context.Context, job *Job, name string, fn func(ctx context.Context) (T, error)) (T, error) {
	var value T
	text, err := job.Checkpoint(ctx, name, func(ctx context.Context) (any, error) { return fn(ctx) })
	if err != nil {
		return value, err
	}
	return value, decode(text, &value)
}

// Progress keeps a value that Queue.Get shows. The last one is kept, and it is written at most ten times a second.
func (j *Job) Progress(value any) error {
	text, err := encode(value, "progress")
	if err != nil {
		return err
	}
	_, err = j.callAtOnce("progress", text)
	return err
}

// LeaseRemaining is the time until another worker may take the job over, should no renewal get through: 0 when the
// lease is lost.
func (j *Job) LeaseRemaining() time.Duration {
	answer, err := j.callAtOnce("leaseRemaining", nil)
	if err != nil {
		return 0
	}
	var left struct {
		Ms int64 `json:"leaseRemainingMs"`
	}
	if err := decode(answer, &left); err != nil {
		return 0
	}
	return time.Duration(left.Ms) * time.Millisecond
}

// call runs a call that may need the database.
func (j *Job) call(ctx context.Context, verb string, arguments, result any) error {
	text, err := encodeArguments(arguments)
	if err != nil {
		return err
	}
	answer, err := j.worker.calls.run(ctx, verb, text, nil)
	if err != nil || result == nil {
		return err
	}
	if err := decode(answer, result); err != nil {
		return newError(ErrInternal, "%s: unexpected answer: %v", verb, err)
	}
	return nil
}

// callAtOnce runs a call that the core answers from memory.
func (j *Job) callAtOnce(verb string, value json.RawMessage) (json.RawMessage, error) {
	text, err := encodeArguments(struct {
		Handle uint64          `json:"handle"`
		Value  json.RawMessage `json:"value,omitempty"`
	}{j.handle, value})
	if err != nil {
		return nil, err
	}
	status, answer := j.worker.native.Call(verb, text)
	return answer, failure(status, answer)
}
