package drayhorse_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/drayhorse/drayhorse/go"
)

// Values of scenarios: arguments filled in, and answers of the package turned back into the JSON of
// docs/architecture.md.

// zero is a field that holds its zero value, which in this package also means absent.
type zero struct{ value any }

// missing is a key that an object does not have.
type missing struct{}

// fill puts kept answers and generated values in their places.
func fill(value any, kept map[string]any) (any, error) {
	switch v := value.(type) {
	case string:
		switch {
		case strings.HasPrefix(v, "$$"):
			return v[1:], nil
		case strings.HasPrefix(v, "$"):
			return at(v[1:], kept)
		}
	case []any:
		filled := make([]any, len(v))
		for i, element := range v {
			var err error
			if filled[i], err = fill(element, kept); err != nil {
				return nil, err
			}
		}
		return filled, nil
	case map[string]any:
		if generated, ok, err := generate(v); ok || err != nil {
			return generated, err
		}
		filled := make(map[string]any, len(v))
		for key, element := range v {
			if key == "$match" {
				// The text of an expression may begin with a dollar sign.
				filled[key] = element
				continue
			}
			var err error
			if filled[key], err = fill(element, kept); err != nil {
				return nil, err
			}
		}
		return filled, nil
	}
	return value, nil
}

// generate makes the values that are too large to stand in a file.
func generate(object map[string]any) (any, bool, error) {
	if repeat, ok := object["$repeat"].([]any); ok && len(repeat) == 2 {
		unit, isText := repeat[0].(string)
		n, err := strconv.Atoi(fmt.Sprint(repeat[1]))
		if !isText || err != nil {
			return nil, true, fmt.Errorf("$repeat wants a string and a number: %v", repeat)
		}
		return strings.Repeat(unit, n), true, nil
	}
	if depth, ok := object["$nest"].(json.Number); ok {
		n, err := strconv.Atoi(depth.String())
		if err != nil || n < 1 {
			return nil, true, fmt.Errorf("$nest wants a number above 0: %v", depth)
		}
		nested := []any{}
		for range n - 1 {
			nested = []any{nested}
		}
		return nested, true, nil
	}
	return nil, false, nil
}

// at is the value at a path like "claims.0.id" in the kept answers.
func at(path string, kept map[string]any) (any, error) {
	var value any = kept
	for _, part := range strings.Split(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[part]
			if !ok {
				return nil, fmt.Errorf("$%s: there is no %q", path, part)
			}
			value = inner
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil, fmt.Errorf("$%s: there is no element %q of %d", path, part, len(v))
			}
			value = v[i]
		default:
			return nil, fmt.Errorf("$%s: %q of what is %s", path, part, shown(value))
		}
	}
	return unmarked(value), nil
}

// unmarked is a value without the marks of its zero fields.
func unmarked(value any) any {
	switch v := value.(type) {
	case zero:
		return unmarked(v.value)
	case []any:
		copied := make([]any, len(v))
		for i, element := range v {
			copied[i] = unmarked(element)
		}
		return copied
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key, element := range v {
			copied[key] = unmarked(element)
		}
		return copied
	}
	return value
}

// plain turns what the package answers into JSON values, by the same tags by which it reads them.
func plain(value any) any { return plainOf(reflect.ValueOf(value)) }

func plainOf(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	switch known := v.Interface().(type) {
	case json.RawMessage:
		var value any
		if known == nil || drayhorse.Decode(known, &value) != nil {
			return nil
		}
		return value
	case json.Number:
		return known
	case time.Time:
		if known.IsZero() {
			return nil
		}
		return known.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return plainOf(v.Elem())
	case reflect.Struct:
		object := map[string]any{}
		plainFields(v, object)
		return object
	case reflect.Slice:
		elements := make([]any, v.Len())
		for i := range elements {
			elements[i] = plainOf(v.Index(i))
		}
		return elements
	case reflect.Map:
		object := map[string]any{}
		for _, key := range v.MapKeys() {
			object[key.String()] = plainOf(v.MapIndex(key))
		}
		return object
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	}
	return json.Number(fmt.Sprint(v.Interface()))
}

// plainFields adds the fields of a struct; what it keeps in Details stands beside them in JSON.
func plainFields(v reflect.Value, object map[string]any) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported():
		case field.Anonymous && name == "":
			plainFields(v.Field(i), object)
		case name == "-" && field.Name == "Details":
			for key, value := range plainOf(v.Field(i)).(map[string]any) {
				object[key] = value
			}
		case name == "-":
		case v.Field(i).IsZero():
			object[name] = zero{plainOf(v.Field(i))}
		default:
			object[name] = plainOf(v.Field(i))
		}
	}
}
