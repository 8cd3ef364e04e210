package call_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
)

// notes is the manifest of a source of kind extism. Its server may list other tools at any time, with any schemas.
const notes = `{
  "manifest": 1, "name": "notes", "version": "1.0.0", "kind": "extism", "docs": {"brief": "Keep notes"},
  "tools": [
    {"name": "add", "docs": {"brief": "Add a note"}, "effect": "write",
     "params": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}, "stars": {"type": "integer"}}},
     "returns": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}},
    {"name": "find", "docs": {"brief": "Find notes"}, "effect": "read",
     "params": {"type": "object", "properties": {"text": {"type": "string", "pattern": "(?=a)"}}},
     "returns": {"$ref": "https://example.com/found"}},
    {"name": "any", "docs": {"brief": "Take anything"}, "effect": "read", "params": {"type": ["object", "string"]}}
  ]
}`

// TestSchemasOfKindExtism checks that parameters and results of a source of kind extism are validated if the schema
// passes the gate, and otherwise reach the tool unchanged.
func TestSchemasOfKindExtism(t *testing.T) {
	result := `{"id":1}`
	answer := func(context.Context, *host.Request) (*job.Result, error) {
		return &job.Result{Data: json.RawMessage(result)}, nil
	}
	f := newFake(t, notes, map[string]handler{"add": answer, "find": answer, "any": answer})
	h := newHost(t, call.Config{}, f)

	e := failsWith(t, makeCall(t, h, "notes.add", `{"txet":"a"}`), host.InvalidArgs)
	if len(e.Details) == 0 || e.Docs == nil || len(f.requests()) > 0 {
		t.Errorf("an unknown parameter: %+v", e)
	}
	a := makeCall(t, h, "notes.add", `{"text":"a","stars":"5"}`)
	if a.Err != nil || len(a.Warnings) != 1 || string(f.requests()[0].Params) != `{"stars":5,"text":"a"}` {
		t.Errorf("a number as text: %v %q", a.Err, a.Warnings)
	}
	result = `{"id":"one"}`
	failsWith(t, makeCall(t, h, "notes.add", `{"text":"a"}`), host.InvalidResult)

	for _, params := range []string{`{"text":5}`, `{"other":[1]}`} {
		a := makeCall(t, h, "notes.find", params)
		requests := f.requests()
		if a.Err != nil || string(requests[len(requests)-1].Params) != params || string(a.Data) != result {
			t.Errorf("a schema that does not pass: %v, ran with %s", a.Err, requests[len(requests)-1].Params)
		}
	}
	for _, params := range []string{`"text"`, `[1]`} {
		for _, tool := range []string{"notes.find", "notes.any"} {
			e := failsWith(t, makeCall(t, h, tool, params), host.InvalidArgs)
			if tool == "notes.any" && params == `"text"` && !strings.Contains(e.Message, "must be an object") {
				t.Errorf("%s %s: %s", tool, params, e.Message)
			}
		}
	}
	for tool, note := range map[string]string{"notes.add": "", "notes.find": "not checked by the host: params, returns"} {
		if d, err := h.Describe(t.Context(), cli, tool, 3); err != nil || d.Note != note {
			t.Errorf("%s: the note is %q, %v", tool, d.Note, err)
		}
	}

	// If the source changes the schema, the new one applies from the next call on.
	changed := strings.Replace(notes, `"required": ["text"], `, `"required": ["text", "stars"], `, 1)
	changed = strings.Replace(changed, `, "pattern": "(?=a)"`, "", 1)
	h.Swap(catalogOf(t, newFake(t, changed, nil)))
	failsWith(t, makeCall(t, h, "notes.add", `{"text":"a"}`), host.InvalidArgs)
	failsWith(t, makeCall(t, h, "notes.find", `{"text":{}}`), host.InvalidArgs)
}
