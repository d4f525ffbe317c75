package drayhorse_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/drayhorse/drayhorse/go"
)

func TestEncodeKeepsValues(t *testing.T) {
	type row struct {
		A int    `json:"a"`
		B string `json:"b,omitempty"`
	}
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, "null"},
		{"", `""`},
		{json.RawMessage(nil), "null"},
		{json.RawMessage(`{"b":1, "a" : 2.0}`), `{"b":1, "a" : 2.0}`},
		{json.Number("123456789012345678901234567890"), "123456789012345678901234567890"},
		{uint64(math.MaxUint64), "18446744073709551615"},
		{map[string]any{"html": "<&>"}, `{"html":"<&>"}`},
		{row{A: 1}, `{"a":1}`},
		{[]byte{0xff}, `"/w=="`},
		{"\uFFFD", "\"\uFFFD\""},
		{json.RawMessage(`"\ufffd"`), `"\ufffd"`},
		{map[string]any{"x": json.RawMessage(`"\ufffd"`)}, `{"x":"\ufffd"}`},
		{`\ufffd`, `"\\ufffd"`},
		{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), `"2026-01-02T03:04:05Z"`},
	} {
		got, err := drayhorse.Encode(c.value, "payload")
		if err != nil || string(got) != c.want {
			t.Errorf("%#v: %s, %v; want %s", c.value, got, err, c.want)
		}
	}
}

type loop struct {
	Next *loop `json:"next"`
}

type plainText struct{}

func (plainText) MarshalText() ([]byte, error) { return []byte("x"), nil }

func TestEncodeNamesWhatItRefuses(t *testing.T) {
	type inner struct {
		Bad  any `json:"bad"`
		Skip any `json:"-"`
	}
	type embedded struct{ inner }
	round := &loop{}
	round.Next = round
	for _, c := range []struct {
		value      any
		path, part string
	}{
		{math.NaN(), "payload", "NaN"},
		{map[string]any{"items": []any{1, 2, math.Inf(1)}}, "payload.items[2]", "+Inf"},
		{map[string]any{"a": 1, "b": "x\xff"}, "payload.b", "UTF-8"},
		{map[string]any{"x\xff": 1}, "payload", "key"},
		{[]any{plainText{}, func() {}}, "payload[1]", "func()"},
		{inner{Bad: make(chan int), Skip: "\xff"}, "payload.bad", "chan int"},
		{embedded{inner{Bad: complex(1, 2)}}, "payload.bad", "complex128"},
		{round, "payload" + strings.Repeat(".next", 100), "itself"},
		{json.RawMessage(`1,"options":{}`), "payload", "not valid JSON"},
		{json.RawMessage(``), "payload", "not valid JSON"},
	} {
		_, err := drayhorse.Encode(c.value, "payload")
		typed := expectCode(t, err, drayhorse.ErrPayloadInvalid)
		path, _ := typed.Details["path"].(string)
		if !strings.HasPrefix(path, c.path) || !strings.Contains(typed.Message, c.part) {
			t.Errorf("%T: %v at %q; want %q at %q", c.value, err, path, c.part, c.path)
		}
	}
}
