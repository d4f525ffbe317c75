package drayhorse

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// NoPayload is the payload of a job that has none: its handler sees Payload null and HasPayload false. A nil payload
// is JSON null, which is a payload.
var NoPayload = noPayload{}

type noPayload struct{}

// encode makes JSON of a caller's value. root names the value in errors: payload, result, checkpoint and so on.
func encode(value any, root string) (json.RawMessage, error) {
	raw, ok := value.(json.RawMessage)
	switch {
	case !ok:
		return encodeWith(value, root, payloadError)
	case raw == nil:
		return json.RawMessage("null"), nil
	case !json.Valid(raw):
		return nil, payloadError(root, "not valid JSON")
	}
	return raw, nil
}

// encodeArguments makes JSON of a verb's arguments; what cannot be encoded is named as a field.
func encodeArguments(arguments any) (json.RawMessage, error) {
	return encodeWith(arguments, "", func(path, why string) *Error {
		return argumentError(strings.TrimPrefix(path, "."), "%s", why)
	})
}

func encodeWith(value any, root string, refuse func(path, why string) *Error) (json.RawMessage, error) {
	text, err := marshal(value)
	if err != nil {
		if path, why := fault(reflect.ValueOf(value), root, 0); why != "" {
			return nil, refuse(path, why).because(err)
		}
		return nil, refuse(root, err.Error()).because(err)
	}
	// encoding/json writes a byte that is not UTF-8 as this escape and a real U+FFFD as itself. Nothing may be changed
	// silently, so the escape is a reason to look for such a string.
	if bytes.Contains(text, []byte(`\ufffd`)) {
		if path, why := fault(reflect.ValueOf(value), root, 0); why != "" {
			return nil, refuse(path, why)
		}
	}
	return text, nil
}

// marshal is json.Marshal without the escaping of <, > and &, which would count against the size limit.
func marshal(value any) (json.RawMessage, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

func payloadError(path, why string) *Error {
	return newError(ErrPayloadInvalid, "%s: %s", path, why).with("path", path)
}

// faultDepth ends the search in a value that contains itself.
const faultDepth = 200

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// fault finds the first thing in value that JSON cannot hold as it is: its path and why. Only values that failed to
// encode, or look altered, are searched.
func fault(v reflect.Value, path string, depth int) (string, string) {
	switch {
	case !v.IsValid():
		return "", ""
	case depth > faultDepth:
		return path, "nested too deep, or contains itself"
	case v.Type().Implements(jsonMarshaler), v.Type().Implements(textMarshaler):
		return "", ""
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return path, fmt.Sprintf("%v is not a JSON number", f)
		}
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return path, "a string that is not UTF-8; encode bytes, as base64 for example"
		}
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return path, fmt.Sprintf("%s has no JSON form", v.Type())
	case reflect.Pointer, reflect.Interface:
		return fault(v.Elem(), path, depth+1)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return "", ""
		}
		for i := range v.Len() {
			if p, why := fault(v.Index(i), indexed(path, i), depth+1); why != "" {
				return p, why
			}
		}
	case reflect.Map:
		return mapFault(v, path, depth)
	case reflect.Struct:
		return structFault(v, path, depth)
	}
	return "", ""
}

func mapFault(v reflect.Value, path string, depth int) (string, string) {
	keys := v.MapKeys()
	// The same fault is named on every run.
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, key := range keys {
		if key.Kind() == reflect.String && !utf8.ValidString(key.String()) {
			return path, "a key that is not UTF-8"
		}
		if p, why := fault(v.MapIndex(key), path+"."+fmt.Sprint(key), depth+1); why != "" {
			return p, why
		}
	}
	return "", ""
}

func structFault(v reflect.Value, path string, depth int) (string, string) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || (!field.IsExported() && !field.Anonymous) {
			continue
		}
		at := path + "." + field.Name
		switch {
		case name != "":
			at = path + "." + name
		case field.Anonymous:
			at = path
		}
		if p, why := fault(v.Field(i), at, depth+1); why != "" {
			return p, why
		}
	}
	return "", ""
}

func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
