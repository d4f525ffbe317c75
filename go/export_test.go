package drayhorse

import (
	"context"
	"encoding/json"
)

// Call runs a control verb that the public surface does not have, the moving of a test schema's clock for example.
func (q *Queue) Call(ctx context.Context, verb string, arguments, result any) error {
	return q.call(ctx, verb, arguments, result)
}

// ErrorTableRow is one line of the core's table.
type ErrorTableRow = errorTableRow

var (
	ErrorTable   = errorTable
	FindDecision = findDecision
	Describe     = describe
	Encode       = func(value any, root string) (json.RawMessage, error) { return encode(value, root) }
)
