package drayhorse_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drayhorse/drayhorse/go"
)

// The patterns of scenarios.

// mismatch is the first difference between a pattern and a value, empty when it matches.
func mismatch(pattern, value any, path string) string {
	if object, ok := pattern.(map[string]any); ok && isOperator(object) {
		for operator, operand := range object {
			if why := operate(operator, operand, value, path); why != "" {
				return why
			}
		}
		return ""
	}
	if marked, ok := value.(zero); ok {
		if pattern == nil {
			return ""
		}
		value = marked.value
	}
	switch p := pattern.(type) {
	case map[string]any:
		object, ok := value.(map[string]any)
		if !ok {
			return differs(path, pattern, value)
		}
		for key, wanted := range p {
			inner, has := object[key]
			if !has {
				inner = missing{}
			}
			if why := mismatch(wanted, inner, path+"."+key); why != "" {
				return why
			}
		}
		return ""
	case []any:
		elements, ok := value.([]any)
		if !ok || len(elements) != len(p) {
			return differs(path, pattern, value)
		}
		for i := range p {
			if why := mismatch(p[i], elements[i], fmt.Sprintf("%s[%d]", path, i)); why != "" {
				return why
			}
		}
		return ""
	case json.Number:
		if number, ok := value.(json.Number); ok && rational(p).Cmp(rational(number)) == 0 {
			return ""
		}
		return differs(path, pattern, value)
	}
	if pattern == value {
		return ""
	}
	return differs(path, pattern, value)
}

// isOperator: every key starts with a dollar sign.
func isOperator(object map[string]any) bool {
	for key := range object {
		if !strings.HasPrefix(key, "$") {
			return false
		}
	}
	return len(object) > 0
}

func operate(operator string, operand, value any, path string) string {
	absent := isAbsent(value)
	switch operator {
	case "$any":
		if absent && !isScalarZero(value) {
			return path + " is absent"
		}
		return ""
	case "$absent":
		if !absent {
			return fmt.Sprintf("%s is there: %s", path, shown(value))
		}
		return ""
	case "$not":
		if mismatch(operand, value, path) == "" {
			return fmt.Sprintf("%s must not be %s", path, shown(operand))
		}
		return ""
	}
	value = unmarked(value)
	wrong := fmt.Sprintf("%s is %s, not %s %s", path, shown(value), operator, shown(operand))
	switch operator {
	case "$between":
		bounds, ok := operand.([]any)
		number, isNumber := value.(json.Number)
		if !ok || len(bounds) != 2 {
			return path + ": $between wants two numbers"
		}
		if !isNumber || rational(number).Cmp(rational(bounds[0])) < 0 || rational(number).Cmp(rational(bounds[1])) > 0 {
			return wrong
		}
	case "$contains":
		patterns, ok := operand.([]any)
		elements, isArray := value.([]any)
		if !ok || !isArray || !contains(patterns, elements) {
			return wrong
		}
	case "$length":
		if length, ok := lengthOf(value); !ok || rational(operand).Cmp(big.NewRat(int64(length), 1)) != 0 {
			return wrong
		}
	case "$match":
		text, isText := value.(string)
		expression, err := regexp.Compile(fmt.Sprint(operand))
		if err != nil || !isText || !expression.MatchString(text) {
			return wrong
		}
	default:
		return fmt.Sprintf("%s: there is no operator %s", path, operator)
	}
	return ""
}

// contains: each pattern matches an element behind the one before.
func contains(patterns, elements []any) bool {
	for _, element := range elements {
		if len(patterns) > 0 && mismatch(patterns[0], element, "") == "" {
			patterns = patterns[1:]
		}
	}
	return len(patterns) == 0
}

func lengthOf(value any) (int, bool) {
	switch v := value.(type) {
	case []any:
		return len(v), true
	case map[string]any:
		return len(v), true
	case string:
		return utf8.RuneCountInString(v), true
	}
	return 0, false
}

func isAbsent(value any) bool {
	switch value.(type) {
	case nil, missing, zero:
		return true
	}
	return false
}

// isScalarZero: 0 and false are values also where they mean absent.
func isScalarZero(value any) bool {
	marked, ok := value.(zero)
	if !ok {
		return false
	}
	switch marked.value.(type) {
	case json.Number, bool:
		return true
	}
	return false
}

// rational is a number's exact value; what is no number equals nothing that can be written.
func rational(number any) *big.Rat {
	if value, ok := new(big.Rat).SetString(fmt.Sprint(number)); ok {
		return value
	}
	return new(big.Rat).SetFrac64(1, 1<<62)
}

func differs(path string, pattern, value any) string {
	if _, ok := value.(missing); ok {
		return fmt.Sprintf("%s is missing, not %s", path, shown(pattern))
	}
	return fmt.Sprintf("%s is %s, not %s", path, shown(value), shown(pattern))
}

// A runner that matches everything would pass everything.
func TestScenarioPatterns(t *testing.T) {
	decoded := func(text string) any {
		var value any
		if err := drayhorse.Decode(json.RawMessage(text), &value); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return value
	}
	for _, row := range []struct {
		pattern, value string
		matches        bool
	}{
		{`{"a":1}`, `{"a":1.0,"b":2}`, true},
		{`{"a":1}`, `{"b":2}`, false},
		{`{"a":null}`, `{}`, false},
		{`{"a":1}`, `null`, false},
		{`[1,2]`, `[1,2,3]`, false},
		{`[]`, `[]`, true},
		{`[]`, `{}`, false},
		{`18446744073709551615`, `18446744073709551616`, false},
		{`123456789012345678901234567890`, `1.2345678901234567890123456789e29`, true},
		{`1`, `"1"`, false},
		{`false`, `null`, false},
		{`{"a":{"$any":true}}`, `{"a":0}`, true},
		{`{"a":{"$any":true}}`, `{"a":null}`, false},
		{`{"a":{"$any":true}}`, `{}`, false},
		{`{"a":{"$absent":true}}`, `{}`, true},
		{`{"a":{"$absent":true}}`, `{"a":null}`, true},
		{`{"a":{"$absent":true}}`, `{"a":0}`, false},
		{`{"$between":[1,2]}`, `2`, true},
		{`{"$between":[1,2]}`, `2.5`, false},
		{`{"$between":[1,2]}`, `"1"`, false},
		{`{"$contains":[1,3]}`, `[1,2,3]`, true},
		{`{"$contains":[3,1]}`, `[1,2,3]`, false},
		{`{"$contains":[1,1]}`, `[1]`, false},
		{`{"$contains":[]}`, `null`, false},
		{`{"$length":2}`, `["a","b"]`, true},
		{`{"$length":2}`, `"é🚒"`, true},
		{`{"$length":2}`, `2`, false},
		{`{"$match":"^a+$"}`, `"aa"`, true},
		{`{"$match":"^a+$"}`, `"b"`, false},
		{`{"$not":{"a":1}}`, `{"a":2}`, true},
		{`{"$not":{"a":1}}`, `{"a":1}`, false},
		{`{"$nonsense":1}`, `1`, false},
	} {
		why := mismatch(decoded(row.pattern), decoded(row.value), "value")
		if (why == "") != row.matches {
			t.Errorf("%s against %s: %q", row.value, row.pattern, why)
		}
	}
}
