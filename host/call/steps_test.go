package call_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
)

const stepsPlugin = `{"manifest": 1, "name": "web", "version": "1.0.0", "kind": "parley/1", "docs": {"brief": "Drive a page"},
	"tools": [
	{"name": "do", "docs": {"brief": "Run steps"}, "effect": "write", "steps": "steps",
		"params": {"type": "object", "properties": {"steps": {"type": "array"}}}},
	{"name": "click", "docs": {"brief": "Click"}, "effect": "write", "positional": ["element", "keys"],
		"params": {"type": "object", "additionalProperties": false, "required": ["element"], "properties": {
			"element": {"type": "string"}, "count": {"type": "integer", "default": 1},
			"keys": {"type": "array", "items": {"type": "string"}}}}},
	{"name": "open", "docs": {"brief": "Open"}, "effect": "write", "positional": ["url"], "url": ["/url"],
		"params": {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}}},
	{"name": "wipe", "docs": {"brief": "Delete all"}, "effect": "destructive", "params": {"type": "object"}}]}`

// TestSteps checks that the steps of a call are validated and decided as calls of their tools, before anything runs.
func TestSteps(t *testing.T) {
	var got string
	web := newFake(t, stepsPlugin, map[string]handler{
		"do": func(_ context.Context, r *host.Request) (*job.Result, error) {
			got = string(r.Params)
			return &job.Result{Data: json.RawMessage(`{}`)}, nil
		}})
	h := newHost(t, call.Config{Policy: policy(func(a host.Ask) (host.Decision, error) {
		d := host.Decision{Verdict: host.Allow}
		switch {
		case a.Tool == "click" && a.Principal.Name == "mcp:denied":
			d.Verdict, d.Reason = host.Deny, "no clicks"
		case a.Tool == "click" && a.Principal.Name == "mcp:asked":
			d.Verdict, d.Reason = host.Confirm, "clicks are confirmed"
		}
		return d, nil
	})}, web)
	const two = `{"tool":"click","params":{"count":1,"element":"A"}}`
	for _, c := range []struct {
		caller, steps, want, fails string
	}{
		{"cli", `[["click","A"]]`, `[` + two + `]`, ""},
		{"cli", `[["click","A","Shift","Alt"],{"tool":"click","params":{"element":"A","count":"1"}}]`,
			`[{"tool":"click","params":{"count":1,"element":"A","keys":["Shift","Alt"]}},` + two + `]`, ""},
		{"cli", `[["clik","A"]]`, "", "/steps/0"},
		{"cli", `[["click","A"],["click"]]`, "", "/steps/1/params/element"},
		{"cli", `[["open","a","b"]]`, "", "at most 1 word"},
		{"cli", `[{"tool":"click","params":{"element":"A"},"more":1}]`, "", "/steps/0/params/more"},
		{"cli", `[["do",[["click","A"]]]]`, "", "/steps/0"},
		{"cli", `[{"tool":"do","params":{"steps":[["click","A"]]}}]`, "", "/steps/0"},
		{"cli", `[["click","A"],["wipe"]]`, "", "step 2: web.wipe has the effect destructive"},
		{"cli", `[` + strings.Repeat(`["click","A"],`, 200) + `["click","A"]]`, "", "201 steps, the limit is 200"},
		{"mcp:denied", `[["open","https://a.test/"],["click","A"]]`, "", "step 2: mcp:denied may not call web.click"},
		{"mcp:asked", `[["click","A"]]`, "", "step 1, web.click: clicks are confirmed"},
		{"mcp:some", `[["open","file:///etc/hostname"]]`, "", "step 1: web.open"},
	} {
		got = ""
		a, _ := h.Call(t.Context(), host.Call{Name: "web.do", Params: json.RawMessage(`{"steps":` + c.steps + `}`),
			Principal: caller.Principal{Name: c.caller}})
		if c.fails == "" {
			if a.Err != nil || !equalJSON(t, got, `{"steps":`+c.want+`}`) {
				t.Errorf("%s: %s, %v", c.steps, got, a.Err)
			}
			continue
		}
		said := ""
		if a.Err != nil {
			details, _ := json.Marshal(a.Err.Details)
			said = a.Err.Message + string(details)
		}
		if got != "" || !strings.Contains(said, c.fails) {
			t.Errorf("%s as %s: %s, want %s; the tool got %s", c.steps, c.caller, said, c.fails, got)
		}
	}
}

// TestNextStepsKeepOptions checks that a step which goes on with the same tool has the options of the call, but for the
// file that the call has written.
func TestNextStepsKeepOptions(t *testing.T) {
	next := step.Call("web.open", json.RawMessage(`{"url":"https://a.test/?page=2"}`))
	web := newFake(t, stepsPlugin, map[string]handler{"open": func(context.Context, *host.Request) (*job.Result, error) {
		return &job.Result{Data: json.RawMessage(`{}`), Steps: []step.Step{next, step.Call("web.wipe", nil)}}, nil
	}})
	h := newHost(t, call.Config{}, web)
	given := step.Options{JQ: ".", Place: step.Place{Target: "2"}, Out: true, File: "page.json"}
	answer, err := h.Call(t.Context(), host.Call{Name: "web.open", Params: json.RawMessage(`{"url":"https://a.test/"}`),
		Principal: caller.Principal{Name: caller.CLI}, Given: given})
	if err != nil || len(answer.Steps) != 2 {
		t.Fatalf("%+v, %v", answer, err)
	}
	if given.File = ""; answer.Steps[0].Options != given || answer.Steps[1].Options != (step.Options{}) {
		t.Errorf("%+v", answer.Steps)
	}
}
