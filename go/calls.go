package drayhorse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// calls are the submitted calls of one queue or worker: who waits for which ticket. A ticket is registered before it
// is submitted, so its completion always finds its waiter.
type calls struct {
	submit func(ticket uint64, verb string, args []byte) (int32, []byte)

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan completion
	ended   error
}

type completion struct {
	Ticket uint64          `json:"ticket"`
	OK     json.RawMessage `json:"ok"`
	Error  *Error          `json:"error"`
}

func newCalls(submit func(uint64, string, []byte) (int32, []byte)) *calls {
	return &calls{submit: submit, waiting: map[uint64]chan completion{}}
}

// run submits a call and waits for its end or the context's. cancel, if there is one, takes the call out of the core's
// queue and reports whether it had not been sent.
func (c *calls) run(ctx context.Context, verb string, args []byte, cancel func(uint64) bool) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, notSent(verb, ctx)
	}
	done := make(chan completion, 1)
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return nil, c.ended
	}
	c.last++
	ticket := c.last
	c.waiting[ticket] = done
	c.mu.Unlock()

	if err := failure(c.submit(ticket, verb, args)); err != nil {
		c.forget(ticket)
		return nil, err
	}
	select {
	case result := <-done:
		return result.answer()
	case <-ctx.Done():
	}
	select {
	case result := <-done:
		return result.answer()
	default:
	}
	c.forget(ticket)
	if cancel != nil && cancel(ticket) {
		return nil, notSent(verb, ctx)
	}
	return nil, mayHaveRun(verb, ctx)
}

func (r completion) answer() (json.RawMessage, error) {
	if r.Error != nil {
		return nil, r.Error
	}
	return r.OK, nil
}

func (c *calls) forget(ticket uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, ticket)
}

// complete hands a result to its waiter; nobody waits any more when the context ended first.
func (c *calls) complete(result completion) {
	c.mu.Lock()
	done := c.waiting[result.Ticket]
	delete(c.waiting, result.Ticket)
	c.mu.Unlock()
	if done != nil {
		done <- result
	}
}

// fail ends every call, now and later.
func (c *calls) fail(err error) {
	var typed *Error
	if !errors.As(err, &typed) {
		typed = newError(ErrInternal, "%v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = typed
	for ticket, done := range c.waiting {
		done <- completion{Ticket: ticket, Error: typed}
		delete(c.waiting, ticket)
	}
}

// notSent is the error of a call that the database never saw.
func notSent(verb string, ctx context.Context) error {
	return fmt.Errorf("drayhorse: %s was not sent: %w", verb, contextError(ctx))
}

// mayHaveRun is the error of a call whose result nobody waited for.
func mayHaveRun(verb string, ctx context.Context) error {
	return fmt.Errorf("drayhorse: %s may have been applied: %w", verb, contextError(ctx))
}

// contextError is the context's error together with its cause, if that says more.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func isCode(err error, code ErrorCode) bool {
	return err != nil && errors.Is(err, code)
}
