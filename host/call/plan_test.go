package call_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// cabinet returns a host with one plugin whose tools say what comes before them.
func cabinet(t *testing.T) *call.Host {
	t.Helper()
	return newHost(t, call.Config{}, newFake(t, cabinetManifest, nil))
}

const cabinetManifest = `{"manifest": 1, "name": "cabinet", "version": "1.0.0", "kind": "parley/1",
	"docs": {"brief": "A cabinet with drawers"}, "tools": [
	{"name":"unlock","docs":{"brief":"A tool"},"effect":"write","params":{"type":"object"}},
	{"name":"open","docs":{"brief":"A tool"},"effect":"write","needs":["cabinet.unlock"],"params":{"type":"object","required":["drawer"],
		"properties":{"drawer":{"type":"string"}}}},
	{"name":"list","docs":{"brief":"A tool"},"effect":"read","needs":["cabinet.unlock"],"params":{"type":"object"}},
	{"name":"read","docs":{"brief":"A tool"},"effect":"read","params":{"type":"object","required":["id","from"],"properties":{
		"id":{"type":"integer","x-from":["cabinet.list/items/0/id"]},
		"from":{"type":"integer","description":"First line. Counts from 0."},
		"copy":{"type":"integer","x-from":["cabinet.list/items/1/id"]}},"additionalProperties":false}},
	{"name":"find","docs":{"brief":"A tool"},"effect":"read","params":{"type":"object","required":["text"],
		"properties":{"text":{"type":"string"}},"additionalProperties":false}},
	{"name":"swap","docs":{"brief":"A tool"},"effect":"write","params":{"type":"object","required":["a","b"],"properties":{
		"a":{"type":"integer","x-from":["cabinet.list/items/0/id"]},
		"b":{"type":"integer","x-from":["cabinet.list/items/1/id"]}}}},
	{"name":"burn","docs":{"brief":"A tool"},"effect":"destructive","params":{"type":"object"}},
	{"name":"copy","docs":{"brief":"A tool"},"effect":"write","params":{"type":"object","required":["of"],"properties":{
		"of":{"type":"object","required":["pages"],"properties":{"pages":{"type":"array","items":{"type":"integer",
		"x-from":["cabinet.find/page"]}}}}},"additionalProperties":false}},
	{"name":"loop","docs":{"brief":"A tool"},"effect":"read","needs":["cabinet.around"],"params":{"type":"object"}},
	{"name":"around","docs":{"brief":"A tool"},"effect":"read","needs":["cabinet.loop"],"params":{"type":"object"}}]}`

func TestPlan(t *testing.T) {
	t.Parallel()
	h := cabinet(t)
	for _, c := range []struct{ tool, params, want, holes string }{
		{"cabinet.unlock", ``, `1 cabinet.unlock`, ``},
		{"cabinet.list", ``, `1 cabinet.unlock|2 cabinet.list`, ``},
		{"cabinet.read", `{"from":3}`, `1 cabinet.unlock|2 cabinet.list|3 cabinet.read {"from":3,"id":"${2.items.0.id}"}`,
			``},
		{"cabinet.read", `{"from":3,"id":7}`, `1 cabinet.read {"from":3,"id":7}`, ``},
		{"cabinet.read", ``,
			`1 cabinet.unlock|2 cabinet.list|3 cabinet.read {"from":"<from: integer, First line>","id":"${2.items.0.id}"}`,
			`<from: integer, First line>`},
		{"cabinet.swap", ``, `1 cabinet.unlock|2 cabinet.list|3 cabinet.swap {"a":"${2.items.0.id}","b":"${2.items.1.id}"}`,
			``},
		{"cabinet.copy", ``, `1 cabinet.find {"text":"<text: string>"}|2 cabinet.copy {"of":{"pages":["${1.page}"]}}`,
			`<text: string>`},
	} {
		plan, err := advice.PlanOf(t.Context(), h.Catalog(),
			advice.PlanQuery{Tool: c.tool, Params: json.RawMessage(c.params)})
		if err != nil {
			t.Errorf("%s %s: %v", c.tool, c.params, err)
			continue
		}
		var got []string
		for _, call := range plan.Calls {
			got = append(got, strings.TrimSpace(fmt.Sprint(call.ID, " ", call.Tool, " ", string(call.Params))))
		}
		if strings.Join(got, "|") != c.want || strings.Join(plan.Holes, "|") != c.holes {
			t.Errorf("%s %s: got %s with holes %v, want %s with %s", c.tool, c.params, strings.Join(got, "|"), plan.Holes,
				c.want, c.holes)
		}
	}
	for tool, want := range map[string]string{"cabinet.nosuch": "cabinet has no tool nosuch",
		"cabinet.loop": "cabinet.loop depends on itself: cabinet.loop, cabinet.around"} {
		_, err := advice.PlanOf(t.Context(), h.Catalog(), advice.PlanQuery{Tool: tool})
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", tool, err, want)
		}
	}
	if _, err := advice.PlanOf(t.Context(), h.Catalog(), advice.PlanQuery{Tool: "cabinet.read",
		Params: json.RawMessage(`{"from":"x"}`)}); host.AsError(err).Code != host.InvalidArgs {
		t.Errorf("an invalid value: %v", err)
	}
}

// TestPlanChooses checks that a plan says which values nobody gave, and takes those that are given for a call before.
func TestPlanChooses(t *testing.T) {
	t.Parallel()
	fake := newFake(t, cabinetManifest, nil)
	found := manifest.Source{Result: "/page",
		FlowCall: manifest.FlowCall{Tool: "cabinet.find", Params: json.RawMessage(`{"text":"tax"}`)}}
	fake.features.Flow = func(tool string) *manifest.Flow {
		if tool != "read" {
			return nil
		}
		return &manifest.Flow{Values: []manifest.Value{{Pointer: "/id", Required: true, From: []manifest.Source{found}}}}
	}
	other := newFake(t, `{"manifest": 1, "name": "other", "version": "1.0.0", "kind": "parley/1",
		"docs": {"brief": "Another plugin"}, "tools": [{"name":"go","docs":{"brief":"A tool"},"effect":"read",
		"needs":["cabinet.burn"],"params":{"type":"object"}}]}`, nil)
	h := newHost(t, call.Config{}, fake, other)
	for _, c := range []struct{ params, calls, chosen, err string }{
		{`{"from":1}`, `{"text":"tax"}`, `text "tax" in call 1`, ""},
		{`{"from":1,"text":"rent"}`, `{"text":"rent"}`, ``, ""},
		{`{"from":1,"text":7}`, ``, ``, "cabinet.find"},
		{`{"from":1,"word":"rent"}`, ``, ``, "cabinet.read"},
		{`{"from":1,"id":2,"text":"rent"}`, ``, ``, "cabinet.read"},
	} {
		plan, err := advice.PlanOf(t.Context(), h.Catalog(), advice.PlanQuery{Tool: "cabinet.read",
			Params: json.RawMessage(c.params), Place: step.Place{Target: "T"}})
		if c.err != "" {
			if e := host.AsError(err); err == nil || e.Code != host.InvalidArgs || !strings.Contains(e.Message, c.err) {
				t.Errorf("%s: got %v, want invalid_args of %s", c.params, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.params, err)
			continue
		}
		var chosen []string
		for _, value := range plan.Chosen {
			chosen = append(chosen, value.String())
		}
		if first := plan.Calls[0]; string(first.Params) != c.calls || strings.Join(chosen, "|") != c.chosen ||
			first.Options == nil || first.Options.Target != "T" {
			t.Errorf("%s: got %s with %v, chosen %v", c.params, first.Params, first.Options, chosen)
		}
	}
	if _, err := advice.PlanOf(t.Context(), h.Catalog(), advice.PlanQuery{Tool: "other.go"}); err == nil ||
		!strings.Contains(err.Error(), "destructive and belongs to another plugin") {
		t.Errorf("a destructive call of another plugin: %v", err)
	}
}

// TestPlanInErrors checks that the error of a missing value names the step that gets it and keeps the other values.
func TestPlanInErrors(t *testing.T) {
	t.Parallel()
	h := cabinet(t)
	for _, c := range []struct {
		tool, params string
		want         step.Step
	}{
		{"cabinet.read", `{"from":3}`, step.Plan("cabinet.read", json.RawMessage(`{"from":3}`))},
		{"cabinet.read", `{}`, step.Step{Op: step.OpPlan, Tool: "cabinet.read", Choose: []string{"from"}}},
		{"cabinet.swap", `{"b":7}`, step.Plan("cabinet.swap", json.RawMessage(`{"b":7}`))}, // which a tool returned
	} {
		a, _ := h.Call(t.Context(), host.Call{Name: c.tool, Params: json.RawMessage(c.params), Principal: cli})
		if a.Err == nil || len(a.Err.Steps) == 0 || !reflect.DeepEqual(a.Err.Steps[0], c.want) {
			t.Errorf("%s: %+v, want the step %v", c.params, a.Err, c.want)
		}
	}
	a, _ := h.Call(t.Context(), host.Call{Name: "cabinet.read", Params: json.RawMessage(`{"id":1}`), Principal: cli})
	if a.Err == nil || len(a.Err.Steps) > 0 && a.Err.Steps[0].Op == step.OpPlan {
		t.Errorf("a value that no tool returns: %+v", a.Err)
	}
}
