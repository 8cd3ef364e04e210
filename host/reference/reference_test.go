package reference

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
)

func TestReferences(t *testing.T) {
	earlier := Results{
		"1":    json.RawMessage(`{"frameId":"F","n":7,"list":["a",{"b":true}],"none":null}`),
		"open": json.RawMessage(`"whole"`),
		"a.b":  json.RawMessage(`{"c":5}`),
	}
	for _, c := range []struct{ params, want, fails string }{
		{`{"a":"${1.frameId}"}`, `{"a":"F"}`, ""},
		{`{"a":"${1.n}"}`, `{"a":7}`, ""},
		{`{"a":"${1.list}"}`, `{"a":["a",{"b":true}]}`, ""},
		{`{"a":"${1.list.1.b}"}`, `{"a":true}`, ""},
		{`{"a":"${1.none}"}`, `{"a":null}`, ""},
		{`{"a":"${open}"}`, `{"a":"whole"}`, ""},
		{`{"a":["x",{"b":"${1.frameId}"}]}`, `{"a":["x",{"b":"F"}]}`, ""},
		{`{"a":"frame ${1.frameId}, ${1.n} of ${1.list.1.b}"}`, `{"a":"frame F, 7 of true"}`, ""},
		{`{"a":"$${1.frameId} and $$"}`, `{"a":"${1.frameId} and $$"}`, ""},
		{`{"${1.frameId}":1}`, `{"${1.frameId}":1}`, ""},
		{`{"a":"${a.b.c}"}`, `{"a":5}`, ""},
		{`{"a":"${a.b}"}`, `{"a":{"c":5}}`, ""},
		{`{"a":"${a.c}"}`, "", "has the id a"},
		{`{"a":"no reference"}`, `{"a":"no reference"}`, ""},
		{`{"a":"${2.x}"}`, "", "no earlier call that succeeded has the id 2; expected 1, a.b, open"},
		{`{"a":"${1.nothing}"}`, "", "the result of 1 has no nothing; expected frameId, list, n, none"},
		{`{"a":"${param.word}"}`, "", "given no parameter word; give --param word=VALUE"},
		{`{"a":"${1.list.9}"}`, "", "has no 9"},
		{`{"a":"${1.frameId.x}"}`, "", "has no x"},
		{`{"a":"x ${1.list}"}`, "", "is neither a string nor a number"},
		{`{"a":"${1.frameId"}`, "", "without }"},
	} {
		got, err := earlier.Substitute(json.RawMessage(c.params))
		switch {
		case c.fails == "" && (err != nil || string(got) != c.want):
			t.Errorf("%s: got %s, %v; want %s", c.params, got, err, c.want)
		case c.fails != "":
			if err == nil || host.AsError(err).Code != host.InvalidArgs || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: got %s, %v; want an error with %q", c.params, got, err, c.fails)
			}
		}
	}
}

// TestEmpty checks which references count as finding nothing.
func TestEmpty(t *testing.T) {
	earlier := Results{"1": json.RawMessage(`{"list":[],"none":null,"nodeId":0,"count":0,"name":"x"}`)}
	for params, want := range map[string]string{
		`{"a":"${1.name}","b":"${1.list.0}"}`: "1.list.0", `{"a":["${1.none}"]}`: "1.none", `{"a":"${1.nodeId}"}`: "1.nodeId",
		`{"a":"${1.count}"}`: "", `{"a":"${1.name} ${2.x}"}`: "", `{"a":"${1.name"}`: "", `{}`: "",
	} {
		if got := earlier.Empty(json.RawMessage(params)); got != want {
			t.Errorf("%s: got %q, want %q", params, got, want)
		}
	}
}

// FuzzReferences checks that references in a line lead to JSON or invalid_args, never to a panic.
func FuzzReferences(f *testing.F) {
	f.Add([]byte(`{"a":"${1.frameId}"}`))
	f.Add([]byte(`{"a":["$${x","${","${1..0}"]}`))
	earlier := Results{"1": json.RawMessage(`{"frameId":"F","":[1]}`)}
	f.Fuzz(func(t *testing.T, params []byte) {
		got, err := earlier.Substitute(params)
		if err != nil {
			if e := host.AsError(err); e.Code != host.InvalidArgs {
				t.Errorf("%s: %v", e.Code, err)
			}
			return
		}
		if json.Valid(params) && !json.Valid(got) {
			t.Errorf("%s became %s", params, got)
		}
	})
}
