package drayhorse

import "fmt"

// Errors by the names that scenarios use: in Go a stored failure is named by its type.

// NamedError is an error whose type has the name, for the names that scenarios use.
func NamedError(name, message string) (error, error) {
	switch name {
	case "", "scenarioError":
		return scenarioError(message), nil
	case "Boom":
		return Boom(message), nil
	case "E":
		return E(message), nil
	}
	return nil, fmt.Errorf("no error type %s: add it to scenario_errors_test.go", name)
}

type scenarioError string

func (e scenarioError) Error() string { return string(e) }

// Boom is an error of scenarios.
type Boom string

func (e Boom) Error() string { return string(e) }

// E is an error of scenarios.
type E string

func (e E) Error() string { return string(e) }
