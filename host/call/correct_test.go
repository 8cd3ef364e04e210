package call_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/step"
)

// bank is a plugin whose example values must not appear in corrections.
const bank = `{
  "manifest": 1, "name": "bank", "version": "1.0.0", "kind": "parley/1", "docs": {"brief": "Keep money"},
  "tools": [
    {"name": "drop", "docs": {"brief": "Drop an account"}, "effect": "destructive",
     "params": {"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
       "name": {"type": "string", "description": "Which account, e.g. \"session\". Cannot be undone.", "x-aliases": ["account"]},
       "when": {"type": "integer", "description": "Days from now"}, "fast": {"type": "boolean"}}},
     "examples": [{"title": "One", "params": {"name": "session", "when": 77}}]},
    {"name": "show", "docs": {"brief": "Show an account"}, "effect": "read",
     "params": {"type": "object", "additionalProperties": false, "required": ["name", "site"], "properties": {
       "name": {"type": "string"}, "site": {"type": "object", "required": ["url", "kind"], "properties": {
         "url": {"type": "string", "description": "a page"}, "kind": {"const": "web"}}},
       "limit": {"type": "integer", "minimum": 1, "default": 5}, "note": {"type": ["string", "null"]}}},
     "examples": [{"title": "One", "params": {"name": "session", "site": {"url": "https://example.com", "kind": "web"}}}]},
    {"name": "page", "docs": {"brief": "Open a page"}, "effect": "read",
     "params": {"type": "object", "additionalProperties": false, "properties": {"target": {"type": "string"}}}}
  ]
}`

func hasOp(steps []step.Step, op step.Op) bool {
	return slices.ContainsFunc(steps, func(s step.Step) bool { return s.Op == op })
}

// TestCorrections checks that corrections use only the caller's own values.
func TestCorrections(t *testing.T) {
	h := newHost(t, call.Config{}, newFake(t, bank, nil))
	for _, c := range []struct{ name, tool, params, corrected, template, changes string }{
		{"nothing given", "drop", `{}`, ``, `{"name":"<name: string, Which account>"}`, ``},
		{"an alias", "drop", `{"account":"mine"}`, `{"name":"mine"}`, ``,
			`[{"from":"/account","to":"/name","how":"renamed"}]`},
		{"the valid rest", "drop", `{"when":3}`, ``, `{"name":"<name: string, Which account>","when":3}`, ``},
		{"an invalid value", "drop", `{"name":"mine","when":"soon"}`, ``,
			`{"name":"mine","when":"<when: integer, Days from now>"}`, `[{"from":"/when","how":"dropped"}]`},
		{"words for a boolean", "drop", `{"name":"mine","fast":"no"}`, `{"fast":false,"name":"mine"}`, ``,
			`[{"from":"/fast","to":"/fast","how":"coerced"}]`},
		{"the only valid value, and a placeholder", "show", `{"name":"mine","site":{}}`, ``,
			`{"name":"mine","site":{"kind":"web","url":"<url: string, a page>"}}`, `[{"to":"/site/kind","how":"only"}]`},
		{"a whole object is missing", "show", `{"name":"mine"}`, ``,
			`{"name":"mine","site":{"kind":"web","url":"<url: string, a page>"}}`, `[{"to":"/site/kind","how":"only"}]`},
		{"an invalid optional value", "show", `{"name":"mine","site":{"url":"u","kind":"web"},"limit":0}`, ``,
			`{"limit":"<limit: integer >= 1>","name":"mine","site":{"kind":"web","url":"u"}}`,
			`[{"from":"/limit","how":"dropped"}]`},
		{"words, not JSON", "drop", `please drop mine`, ``, `{"name":"<name: string, Which account>"}`,
			`[{"from":"","how":"dropped"}]`},
		{"words, and no parameter is required", "page", `please`, ``, ``, ``},
		{"nearly JSON", "drop", `{'name':'mine',}`, `{"name":"mine"}`, ``, `[{"from":"","to":"","how":"parsed"}]`},
		{"malformed JSON in a string", "drop", `"{name:mine"`, `{"name":"mine"}`, ``, `[{"from":"","to":"","how":"parsed"}]`},
		{"an option among the parameters", "drop", `{"name":"mine","timeout_seconds":5}`, `{"name":"mine"}`, ``,
			`[{"from":"/timeout_seconds","to":"options.timeout","how":"moved"}]`},
	} {
		a := makeCall(t, h, "bank."+c.tool, c.params)
		e := failsWith(t, a, host.InvalidArgs)
		changes, _ := json.Marshal(e.Changes)
		if c.changes == "" {
			c.changes = "null"
		}
		if string(e.Corrected) != c.corrected || string(e.Template) != c.template || string(changes) != c.changes {
			t.Errorf("%s: corrected %s, template %s, changes %s", c.name, e.Corrected, e.Template, changes)
		}
		for _, text := range []string{string(e.Corrected), string(e.Template)} {
			for _, sample := range []string{"session", "77", "example.com"} {
				if strings.Contains(text, sample) {
					t.Errorf("%s: %s holds %q, which comes from an example", c.name, text, sample)
				}
			}
		}
		runs := hasOp(a.Steps, step.OpCall)
		switch {
		case runs != (e.Retry != nil) || runs != (c.corrected != ""):
			t.Errorf("%s: steps %v, retry %v", c.name, a.Steps, e.Retry)
		case runs && (a.Steps[0].Op != step.OpCall || a.Steps[0].Options.DryRun != (c.tool == "drop")):
			t.Errorf("%s: first %+v", c.name, a.Steps[0])
		case runs && !e.Retry.Options.DryRun && c.tool == "drop":
			t.Errorf("%s: the command is destructive: %+v", c.name, e.Retry)
		}
		if e.Object().Template == nil != (c.template == "") {
			t.Errorf("%s: the object %+v", c.name, e.Object())
		}
	}
}

func TestCorrectionMovesOptions(t *testing.T) {
	h := newHost(t, call.Config{}, newFake(t, bank, nil))
	for params, want := range map[string]step.Options{
		`{"account":"a","timeout":"5s"}`:           {Timeout: 5 * time.Second, DryRun: true},
		`{"account":"a","timeout_seconds":5}`:      {Timeout: 5 * time.Second, DryRun: true},
		`{"account":"a","timeout_ms":1500}`:        {Timeout: 1500 * time.Millisecond, DryRun: true},
		`{"account":"a","timeout":30000}`:          {Timeout: 30 * time.Second, DryRun: true},
		`{"account":"a","target":"ab","dryRun":1}`: {Place: step.Place{Target: "ab"}, DryRun: true},
		`{"account":"a","browser":"work"}`:         {Place: step.Place{Browser: "work"}, DryRun: true},
		`{"account":"a","jq":".id"}`:               {JQ: ".id", DryRun: true},
		`{"account":"a","maxBytes":"10"}`:          {MaxBytes: 10, DryRun: true},
		`{"account":"a","max_bytes":0}`:            {Unlimited: true, DryRun: true},
		`{"account":"a","wait":"idle"}`:            {Wait: "idle", DryRun: true},
		`{"account":"a","onDialog":"accept"}`:      {OnDialog: "accept", DryRun: true},
	} {
		e := failsWith(t, makeCall(t, h, "bank.drop", params), host.InvalidArgs)
		if e.Retry == nil || e.Retry.Options != want || string(e.Corrected) != `{"name":"a"}` {
			t.Errorf("%s: %+v, %s", params, e.Retry, e.Corrected)
		}
	}
	// A small number may be of seconds or of milliseconds.
	e := failsWith(t, makeCall(t, h, "bank.drop", `{"account":"a","timeout":5}`), host.InvalidArgs)
	if e.Retry != nil || e.Corrected != nil || string(e.Template) != `{"name":"a"}` {
		t.Errorf("%+v, %s, %s", e.Retry, e.Corrected, e.Template)
	}
	// The options of the call itself are kept, without those of the front end.
	given := job.Options{Timeout: time.Second, MaxBytes: 9, OnDialog: "accept",
		Place: step.Place{Browser: "b", Target: "t"}}
	a, _ := h.Call(t.Context(), host.Call{Name: "bank.drop", Params: []byte(`{"account":"a","timeout":"5s"}`),
		Principal: cli,
		Options:   job.Options{Timeout: time.Minute, MaxBytes: 99}, Given: given.StepOptions()})
	want := step.Options{Timeout: 5 * time.Second, MaxBytes: 9, OnDialog: "accept",
		Place:  step.Place{Browser: "b", Target: "t"},
		DryRun: true}
	if e := failsWith(t, a, host.InvalidArgs); e.Retry.Options != want || e.Steps[0].Options != want ||
		a.Steps[0].Options != want {
		t.Errorf("%+v, %+v", e.Retry, e.Steps)
	}
	// An option that is also a parameter of the tool remains a parameter.
	if a := makeCall(t, h, "bank.page", `{"target":"x"}`); a.Err != nil {
		t.Error(a.Err)
	}
}

// TestInvalidURLLeadsOn checks that the step after an invalid URL is the call of the same tool, with the caller's
// values and options and nothing else, or the documentation of the tool.
func TestInvalidURLLeadsOn(t *testing.T) {
	m := strings.Replace(browser, `"x": {"type": "number"}`, `"x": {"type": "number", "default": 4}`, 1)
	h := newHost(t, call.Config{}, newFake(t, m, nil))
	for _, who := range []string{"cli", "mcp:some"} {
		for params, want := range map[string]string{
			`{"url":"a.test"}`:               `call web.go {"url":"https://a.test"}`,
			`{"url":"a.test","x":4}`:         `call web.go {"url":"https://a.test","x":4}`,
			`"{\"url\":\"a.test\",\"x\":4}"`: `call web.go {"url":"https://a.test","x":4}`,
			`{"url":"not a url"}`:            "describe web.go",
		} {
			a, _ := h.Call(t.Context(), host.Call{Name: "web.go", Params: []byte(params),
				Principal: caller.Principal{Name: who},
				Given:     step.Options{Place: step.Place{Target: "T"}}})
			e := failsWith(t, a, host.InvalidURL)
			if len(a.Steps) != 1 || a.Steps[0].String() != want || e.Retry != nil && a.Steps[0].Options.Target != "T" {
				t.Errorf("%s: %s: %q, want %q", who, params, a.Steps, want)
			}
		}
	}
}

// TestNullIsAbsent checks that null for an optional parameter is ignored.
func TestNullIsAbsent(t *testing.T) {
	f := newFake(t, bank, nil)
	h := newHost(t, call.Config{}, f)
	a := makeCall(t, h, "bank.show", `{"name":"a","site":{"url":"u","kind":"web"},"limit":null,"note":null}`)
	if a.Err != nil {
		t.Fatal(a.Err, a.Err.Details)
	}
	if got := string(f.requests()[0].Params); got != `{"limit":5,"name":"a","note":null,"site":{"kind":"web","url":"u"}}` {
		t.Error(got)
	}
	if e := failsWith(t, makeCall(t, h, "bank.show", `null`), host.InvalidArgs); len(e.Details) != 2 {
		t.Errorf("null for all parameters: %+v", e.Details)
	}
	failsWith(t, makeCall(t, h, "bank.show", `{"name":null,"site":{"url":"u","kind":"web"}}`), host.InvalidArgs)
	failsWith(t, makeCall(t, h, "bank.show", `{"name":"a","site":{"url":"u","kind":"web"},"unheard":null}`),
		host.InvalidArgs)
}

// old is a plugin with a deprecated tool that a search finds first.
const old = `{
  "manifest": 1, "name": "old", "version": "1.0.0", "kind": "parley/1", "docs": {"brief": "Count sheep"},
  "tools": [
    {"name": "count_sheep", "docs": {"brief": "Count sheep"}, "effect": "read", "params": {"type": "object"},
     "tasks": ["count sheep", "count the sheep", "how many sheep"],
     "deprecated": {"since": "1.0.0", "message": "It skips lambs.", "use": "old.tally"}},
    {"name": "tally", "docs": {"brief": "Tally the animals of a flock"}, "effect": "read", "params": {"type": "object"},
     "tasks": ["count sheep of a flock"]}
  ]
}`

// TestDeprecated checks that a call of a deprecated tool warns, and that a search ranks it below its replacement.
func TestDeprecated(t *testing.T) {
	h := newHost(t, call.Config{}, newFake(t, old, nil))
	a := makeCall(t, h, "old.count_sheep", `{}`)
	want := "old.count_sheep: DEPRECATED: Use old.tally instead. It skips lambs."
	if a.Err != nil || len(a.Warnings) != 1 || a.Warnings[0] != want {
		t.Errorf("%v: warnings %q", a.Err, a.Warnings)
	}
	if a := makeCall(t, h, "old.tally", `{}`); len(a.Warnings) != 0 {
		t.Errorf("warnings %q", a.Warnings)
	}
	found, _, err := h.Search(t.Context(), cli, search.Query{Text: "count the sheep"})
	if err != nil || len(found.Results) != 2 || found.Results[0].Name != "old.tally" || !found.Results[1].Deprecated ||
		found.Results[0].Score < found.Results[1].Score {
		t.Errorf("%v: %+v", err, found)
	}
	// A replacement that the query does not find, or not within the limit, stands before it, too.
	apart := newHost(t, call.Config{}, newFake(t, strings.NewReplacer("Tally the animals of a flock", "Weigh hay",
		"count sheep of a flock", "weigh hay").Replace(old), nil))
	for q, want := range map[search.Query]string{
		{Text: "count the sheep"}:                 "old.tally old.count_sheep",
		{Text: "count the sheep", Limit: 1}:       "old.tally",
		{Text: "count the sheep", Limit: -1}:      "old.tally old.count_sheep",
		{Text: "count the sheep", Effect: "read"}: "old.count_sheep",
		{Text: "old.count_shep", Limit: 1}:        "old.count_sheep",
		{Text: "old__count_sheep", Limit: 1}:      "old.count_sheep",
		{Text: "Count Sheep", Limit: 1}:           "old.count_sheep",
	} {
		found, _, err := apart.Search(t.Context(), cli, q)
		var names []string
		for _, r := range found.Results {
			names = append(names, r.Name)
		}
		if err != nil || strings.Join(names, " ") != want || found.Total < len(names) {
			t.Errorf("%+v: %v, %d %q, want %s", q, err, found.Total, names, want)
		}
	}
}
