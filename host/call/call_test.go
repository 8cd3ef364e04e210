package call_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

func TestCall(t *testing.T) {
	f := newFake(t, shop, nil)
	h := newHost(t, call.Config{}, f)
	for _, c := range []struct{ name, tool string }{
		{"shop.echo", "shop.echo"}, {"shop__echo", "shop.echo"}, {"SHOP.Echo", "shop.echo"},
		{"shop.order.list", "shop.order.list"}, {"shop__order__list", "shop.order.list"},
		{"shop.order__list", "shop.order.list"},
		{"shop.shop.echo", "shop.echo"},
	} {
		a := makeCall(t, h, c.name, `{"a":1}`)
		if a.Err != nil || a.Tool != c.tool || string(a.Data) != `{"a":1}` || a.CallID == "" {
			t.Errorf("%s: got %+v, %v", c.name, a, a.Err)
		}
	}
	if r := f.requests()[0]; r.Tool != "echo" || r.Def == nil || r.Caller != "cli" || r.CallID == "" || r.Ask == nil {
		t.Errorf("the provider got %+v", r)
	}
	for _, params := range []string{"", "  ", "{}"} {
		if a := makeCall(t, h, "shop.echo", params); a.Err != nil || string(a.Data) != "{}" {
			t.Errorf("%q: got %s, %v", params, a.Data, a.Err)
		}
	}
	if a := makeCall(t, h, "shop.add", `{"title":"tea"}`); a.Returns == nil {
		t.Error("the answer has no schema of its data")
	}
}

func TestCallNotFound(t *testing.T) {
	long := strings.Replace(shop, `"shop"`, `"warehouse"`, 1)
	h := newHost(t, call.Config{}, newFake(t, shop, nil), newFake(t, long, nil))
	for _, c := range []struct{ name, message, near, next string }{
		{"shpo.echo", "no plugin is named shpo", "shop.echo:1", "describe shop.echo"},
		{"wearhouse.echo", "no plugin is named wearhouse", "warehouse.echo:2", "describe warehouse.echo"},
		{"wearhouse.at.all", "no plugin is named wearhouse", "warehouse:2", "list warehouse"},
		{"nothing.at.all", "no plugin is named nothing", "", "list"},
		{"shop.ehco", "shop has no tool or group ehco", "shop.echo:1", "describe shop.echo"},
		{"shop.order.lits", "shop has no tool order.lits in group order", "shop.order.list:1", "describe shop.order.list"},
		{"shop.order.lst", "shop has no tool order.lst in group order", "shop.order.list:1", "describe shop.order.list"},
		{"shop.list", "shop has no tool or group list", "shop.order.list:0", "describe shop.order.list"},
		{"shop.cancle", "shop has no tool or group cancle", "shop.order.cancel:1", "describe shop.order.cancel"},
		{"shop.ordr", "shop has no tool or group ordr", "shop.order:1", "list shop.order"},
		{"shop.ordre.list", "shop has no tool or group ordre.list", "shop.order.list:1", "describe shop.order.list"},
		{"shop.completely_different", "shop has no tool or group completely_different", "", "list shop"},
		{"", "the name of a tool is missing; expected plugin.tool", "", "list"},
		{".", "the name of a tool is missing; expected plugin.tool", "", "list"},
		{"shop.\x1b[31mecho\u202e", `shop has no tool or group \u001b[31mecho\u202e`, "", "describe shop.echo"},
	} {
		a := makeCall(t, h, c.name, "{}")
		e := failsWith(t, a, host.NotFound)
		var near []string
		for _, s := range e.DidYouMean {
			near = append(near, fmt.Sprintf("%s:%d", s.Name, s.Distance))
		}
		if c.near != "" && (len(near) == 0 || near[0] != c.near) || c.near == "" && len(near) > 0 && c.name[0] != 's' {
			t.Errorf("%q: did you mean %q, expected %q first", c.name, near, c.near)
		}
		if e.Message != c.message || len(e.Steps) == 0 || e.Steps[0].String() != c.next || len(near) > 3 ||
			e.ExitCode() != 83 || e.Docs != nil {
			t.Errorf("%q: got %+v; expected %q and %q", c.name, e, c.message, c.next)
		}
	}
	for _, name := range []string{"shop." + strings.Repeat("x", 1<<20), strings.Repeat("\x1b[31m", 1<<18)} {
		a := makeCall(t, h, name, "{}")
		if huge := failsWith(t, a, host.NotFound); len(huge.Message) > 300 || len(a.Tool) > 300 ||
			manifest.CleanLine(a.Tool) != a.Tool {
			t.Errorf("a message of %d bytes and a name of %d: %.40q", len(huge.Message), len(a.Tool), a.Tool)
		}
	}
	for name, says := range map[string]string{"shop": "shop is a plugin; name one of its tools",
		"shop.Order": "shop.order is a group; name one of its tools"} {
		if e := failsWith(t, makeCall(t, h, name, "{}"), host.InvalidArgs); e.Message != says || len(e.Steps) == 0 ||
			e.Steps[0].Op != step.OpList {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestCallRefusesParams(t *testing.T) {
	f := newFake(t, shop, nil)
	h := newHost(t, call.Config{}, f)
	for _, c := range []struct {
		name, params string
		details      string // "pointer keyword", sorted
		corrected    string
	}{
		{"missing", `{}`, "/title required", ``},
		{"wrong type", `{"title":3}`, "/title type", `{"title":"3"}`},
		{"unknown", `{"title":"a","colour":"red"}`, "/colour additionalProperties", ``},
		{"misspelt", `{"titel":"a"}`, "/titel additionalProperties,/title required", `{"title":"a"}`},
		{"enum", `{"title":"a","size":"smal"}`, "/size enum", `{"title":"a","size":"small"}`},
		{"bounds", `{"title":"","count":100}`, "/count maximum,/title minLength", ``},
		{"a union is not coerced", `{"title":"a","code":true}`, "/code type", ``},
		{"all at once, sorted", `{"zzz":1,"count":"x","tags":[1,"a",2],"size":"huge","extra":{"depth":{}}}`,
			"/count type,/extra/depth type,/size enum,/tags/0 type,/tags/2 type,/title required,/zzz additionalProperties", ``},
		{"a string is not coerced to", `{"title":"a","tags":5}`, "/tags type", ``},
		{"nearly JSON", `{'title':'a',`, " syntax", `{"title":"a"}`},
		{"JSON that ends in a text", `{"title":"a`, "/title syntax", ``},
		{"no JSON", `{title`, " syntax", ``},
		{"in a list", `[{"title":"a"}]`, " type", `{"title":"a"}`},
		{"malformed JSON in a string", `"{title:\"a\""`, " type", `{"title":"a"}`},
		{"one level too deep", `{"arguments":{"title":"a"}}`, "/arguments additionalProperties,/title required",
			`{"title":"a"}`},
		{"a value in a list", `{"title":["a"]}`, "/title type", `{"title":"a"}`},
		{"a value one level too deep", `{"title":{"value":"a"}}`, "/title type", `{"title":"a"}`},
	} {
		e := failsWith(t, makeCall(t, h, "shop.add", c.params), host.InvalidArgs)
		var got []string
		for _, d := range e.Details {
			got = append(got, d.Parameter+" "+d.Keyword)
			if d.Provided == "" || d.Expected == "" {
				t.Errorf("%s: %+v has no given or no expected value", c.name, d)
			}
		}
		if strings.Join(got, ",") != c.details {
			t.Errorf("%s: got %q, expected %q", c.name, got, c.details)
		}
		if e.ExitCode() != 81 || e.Docs == nil || e.Docs.Name != "shop.add" || e.Docs.Tier != 2 ||
			!hasStep(e.Steps, "describe shop.add") {
			t.Errorf("%s: %+v", c.name, e)
		}
		syntax := strings.HasSuffix(c.details, " syntax")
		if !strings.HasPrefix(e.Message, "Tool 'shop.add' failed: ") && !syntax {
			t.Errorf("%s: %s", c.name, e.Message)
		}
		same := e.Corrected != nil && c.corrected != "" && sameJSON(t, string(e.Corrected), c.corrected)
		if !same && (e.Corrected != nil || c.corrected != "") {
			t.Errorf("%s: corrected %s, expected %s", c.name, e.Corrected, c.corrected)
		}
		if e.Corrected == nil {
			if e.Retry != nil || hasOp(e.Steps, step.OpCall) {
				t.Errorf("%s: a command without corrected parameters: %v %v", c.name, e.Retry, e.Steps)
			}
			continue
		}
		want := step.Call("shop.add", e.Corrected).String()
		if e.Retry == nil || e.Retry.String() != want || e.Steps[0].String() != want {
			t.Errorf("%s: retry with %v, first %v", c.name, e.Retry, e.Steps[0])
		}
		if a := makeCall(t, h, "shop.add", string(e.Corrected)); a.Err != nil {
			t.Errorf("%s: the corrected parameters %s are refused: %v", c.name, e.Corrected, a.Err)
		}
	}
	ran := len(f.requests())
	for _, c := range []struct{ name, params, says string }{
		{"not an object", `[]`, "object"},
		{"a string", `"a"`, ""},
		{"null", `null`, ""},
		{"cut off", `{"title":"a"`, "line 1, column 13"},
		{"a wrong quote", `{'title':'a'}`, "line 1, column 2"},
		{"trailing data", `{} {}`, "after the end of the value"},
		{"duplicate", `{"title":"a","title":"b"}`, "title"},
		{"NUL", "{\"title\":\"\x00\"}", ""},
		{"bad UTF-8", "{\"title\":\"\xff\"}", "UTF-8"},
		{"half a pair", `{"title":"\ud800"}`, ""},
		{"too deep", `{"title":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, ""},
		{"too large", `{"title":"` + strings.Repeat("x", host.MaxParams) + `"}`, "16777216"},
	} {
		e := failsWith(t, makeCall(t, h, "shop.add", c.params), host.InvalidArgs)
		if len(e.Details) == 0 || e.Docs == nil || !strings.Contains(e.Message+fmt.Sprint(e.Details), c.says) {
			t.Errorf("%s: %s %+v; expected %q, details and docs", c.name, e.Message, e.Details, c.says)
		}
		if raw, _ := json.Marshal(e.Object()); len(raw) > 32<<10 {
			t.Errorf("%s: the error has %d bytes", c.name, len(raw))
		}
	}
	if len(f.requests()) != ran {
		t.Error("a tool ran")
	}
}

func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

func TestCallCoerces(t *testing.T) {
	f := newFake(t, shop, nil)
	h := newHost(t, call.Config{}, f)
	const defaults = `,"count":3,"fresh":true`
	for _, c := range []struct{ name, params, want, warns string }{
		{"defaults", `{"title":"a"}`, `{"title":"a"` + defaults + `}`, ""},
		{"a numeric string", `{"title":"a","count":"7"}`, `{"title":"a","count":7,"fresh":true}`, "/count"},
		{"a fraction", `{"title":"a","price":"1.5"}`, `{"title":"a","price":1.5` + defaults + `}`, "/price"},
		{"a boolean", `{"title":"a","fresh":"false"}`, `{"title":"a","count":3,"fresh":false}`, "/fresh"},
		{"a value for a list", `{"title":"a","tags":"x"}`, `{"title":"a","tags":["x"]` + defaults + `}`, "/tags"},
		{"JSON text for an array", `{"title":"a","tags":"[\"x\",\"y\"]"}`, `{"title":"a","tags":["x","y"]` + defaults + `}`,
			"/tags"},
		{"JSON text for an object", `{"title":"a","extra":"{\"depth\":2}"}`,
			`{"title":"a","extra":{"depth":2}` + defaults + `}`, "/extra"},
		{"two coercions", `{"title":"a","count":"7","fresh":"true"}`, `{"title":"a","count":7,"fresh":true}`,
			"/count /fresh"},
	} {
		a := makeCall(t, h, "shop.add", c.params)
		if a.Err != nil {
			t.Errorf("%s: %v %+v", c.name, a.Err, a.Err.Details)
			continue
		}
		calls := f.requests()
		if got := string(calls[len(calls)-1].Params); !sameJSON(t, got, c.want) {
			t.Errorf("%s: the provider got %s, expected %s", c.name, got, c.want)
		}
		want := strings.Fields(c.warns)
		if len(a.Warnings) != len(want) {
			t.Errorf("%s: warnings %q, expected %q", c.name, a.Warnings, want)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(a.Warnings[i], want[i]+":") {
				t.Errorf("%s: warnings %q, expected %q", c.name, a.Warnings, want)
			}
		}
	}
}

// TestCallDocs checks which documentation a parameter error has: tier 2, then in the same session tier 3, also with the
// third mistake that is the same, then none.
func TestCallDocs(t *testing.T) {
	h := newHost(t, call.Config{Sessions: &session.Store{Dir: t.TempDir()}}, newFake(t, shop, nil))
	fails := func(session, tool, params string) int {
		a, _ := h.Call(t.Context(), host.Call{Name: tool, Params: json.RawMessage(params), Principal: cliIn(session)})
		if docs := failsWith(t, a, host.InvalidArgs).Docs; docs != nil {
			return docs.Tier
		}
		return 0
	}
	for i, want := range []int{2, 3, 3, 0} {
		if got := fails("s", "shop.add", `{}`); got != want {
			t.Errorf("failure %d of a session: tier %d, expected %d", i+1, got, want)
		}
	}
	if got := fails("s", "shop.order.cancel", `{}`); got != 2 {
		t.Errorf("another tool: tier %d", got)
	}
	if got := fails("other", "shop.add", `{}`); got != 2 {
		t.Errorf("another session: tier %d", got)
	}
	for range 2 {
		if got := fails("", "shop.add", `{}`); got != 2 {
			t.Errorf("no session: tier %d", got)
		}
	}
	if _, err := h.Describe(t.Context(), cliIn("d"), "shop.add", 2); err != nil {
		t.Fatal(err)
	}
	if got := fails("d", "shop.add", `{}`); got != 3 {
		t.Errorf("after --describe: tier %d", got)
	}
	if _, err := h.Describe(t.Context(), cliIn("one"), "shop.add", 1); err != nil {
		t.Fatal(err)
	}
	if got := fails("one", "shop.add", `{}`); got != 2 {
		t.Errorf("after tier 1: tier %d", got)
	}
	if got := fails("syntax", "shop.add", `{`); got != 2 {
		t.Errorf("malformed JSON: tier %d", got)
	}
}

func TestToolRefusesParams(t *testing.T) {
	f := newFake(t, shop, map[string]handler{"echo": func(context.Context, *host.Request) (*job.Result, error) {
		return nil, &host.Error{Code: host.InvalidArgs, Details: []host.Detail{{Parameter: "/a", Expected: "a prime",
			Provided: "number 4"}}}
	}})
	h := newHost(t, call.Config{Sessions: &session.Store{Dir: t.TempDir()}}, f)
	for _, tier := range []int{2, 3} {
		a, _ := h.Call(t.Context(), host.Call{Name: "shop.echo", Principal: cliIn("s")})
		e := failsWith(t, a, host.InvalidArgs)
		if e.Docs == nil || e.Docs.Tier != tier || e.Message != "Tool 'shop.echo' failed: 1 violation" ||
			!hasStep(e.Steps, "describe shop.echo") {
			t.Errorf("got %+v, expected the error that the host itself reports for invalid parameters", e)
		}
	}
}

func TestCallPolicy(t *testing.T) {
	var asked []host.Ask
	var decision host.Decision
	var broken error
	f := newFake(t, shop, nil)
	decide := policy(func(a host.Ask) (host.Decision, error) {
		asked = append(asked, a)
		return decision, broken
	})
	rec := &recorder{}
	h := newHost(t, call.Config{Policy: decide, Recorder: rec}, f)

	decision = host.Decision{Verdict: host.Deny, Reason: "shop is closed",
		Steps: []step.Step{step.Operator(step.OpDoctor)}}
	e := failsWith(t, makeCall(t, h, "shop.echo", "{}"), host.Denied)
	if e.ExitCode() != 82 || !strings.Contains(e.Message, "cli may not call shop.echo: shop is closed") ||
		!reflect.DeepEqual(e.Steps, decision.Steps) || e.Docs != nil {
		t.Errorf("denied: %+v", e)
	}
	if a := asked[0]; a.Principal.Name != "cli" || a.Plugin != "shop" || a.Tool != "echo" || a.Effect != "read" ||
		a.Digest != "sha256:shop" || len(a.Capabilities.FS) != 1 || a.Capabilities.Clock == nil {
		t.Errorf("the policy decided on %+v", a)
	}

	decision = host.Decision{}
	failsWith(t, makeCall(t, h, "shop.echo", "{}"), host.Denied) // the zero value denies

	decision = host.Decision{Verdict: host.Allow,
		Missing: []grant.Denial{{Right: "fs:ro:PATH=/data", Why: "prices"}, {Right: "clock"}},
		Steps:   []step.Step{step.Operator(step.OpPolicyGrant)}}
	e = failsWith(t, makeCall(t, h, "shop.echo", "{}"), host.Denied)
	if !reflect.DeepEqual(e.Denied, decision.Missing) ||
		!strings.Contains(e.Message, "fs:ro:PATH=/data, clock; nothing was run") ||
		!reflect.DeepEqual(e.Steps, decision.Steps) {
		t.Errorf("missing: %+v", e)
	}

	decision = host.Decision{Verdict: host.Confirm, Reason: "it is destructive"}
	e = failsWith(t, makeCall(t, h, "shop.echo", "{}"), host.Denied)
	if !strings.Contains(e.Message, "it is destructive") {
		t.Errorf("without an approver: %+v", e)
	}

	decision, broken = host.Decision{Verdict: host.Allow}, host.Errorf(host.ConfigError, "policy.toml is damaged")
	failsWith(t, makeCall(t, h, "shop.echo", "{}"), host.ConfigError)
	broken = nil

	if n := len(f.requests()); n > 0 {
		t.Errorf("%d calls were run", n)
	}
	if n := len(asked); n != 5 {
		t.Errorf("the policy decided %d times for 5 calls", n)
	}
	failsWith(t, makeCall(t, h, "shop.add", "{}"), host.InvalidArgs)
	if len(asked) != 5 {
		t.Error("the policy decided on a call with invalid parameters")
	}
	if n := len(rec.all()); n != 6 {
		t.Errorf("%d events for 6 calls", n)
	}

	granted := grant.Grant{Clock: true, Tools: []string{"cdp.*"}}
	decision = host.Decision{Verdict: host.Allow, Grant: granted, Limits: grant.Limits{MemoryMiB: 7},
		Settings: json.RawMessage(`{"a":1}`)}
	if a := makeCall(t, h, "shop.echo", "{}"); a.Err != nil {
		t.Fatal(a.Err)
	}
	if r := f.requests()[0]; !reflect.DeepEqual(r.Grant, granted) || r.Limits.MemoryMiB != 7 ||
		string(r.Settings) != `{"a":1}` {
		t.Errorf("the provider got %+v", r)
	}
}

func TestCallDryRun(t *testing.T) {
	f := newFake(t, shop, nil)
	decision := host.Decision{Verdict: host.Confirm, Grant: grant.Grant{Clock: true}}
	h := newHost(t, call.Config{Policy: policy(func(host.Ask) (host.Decision, error) { return decision, nil })}, f)
	dry := func(params string) *host.Answer {
		a, _ := h.Call(t.Context(),
			host.Call{Name: "shop.add", Params: json.RawMessage(params), Principal: cli,
				Options: job.Options{DryRun: true, MaxBytes: 5}})
		return a
	}
	a := dry(`{"title":"<a>","count":"4"}`)
	if want := `{"dry_run":true,"tool":"shop.add","params":{"count":4,"fresh":true,"title":"<a>"},"grants":["clock"],"confirm":true}`; a.Err != nil || string(a.Data) != want || len(a.Warnings) != 1 {
		t.Errorf("got %s, %v, %q\nexpected %s", a.Data, a.Err, a.Warnings, want)
	}
	decision = host.Decision{Verdict: host.Allow}
	if a := dry(`{"title":"a"}`); a.Err != nil || !strings.HasSuffix(string(a.Data), `"grants":[],"confirm":false}`) {
		t.Errorf("got %s, %v", a.Data, a.Err)
	}
	failsWith(t, dry(`{}`), host.InvalidArgs)
	decision = host.Decision{Verdict: host.Deny}
	failsWith(t, dry(`{"title":"a"}`), host.Denied)
	if n := len(f.requests()); n > 0 {
		t.Errorf("%d calls were run", n)
	}
}

// TestCallEnds checks that the context decides how a call ended, not the error of the tool.
func TestCallEnds(t *testing.T) {
	timeoutSaid := &host.Error{Code: host.Timeout, Message: "the page has an endless loop"}
	after := func(data string, err error) handler {
		return func(ctx context.Context, _ *host.Request) (*job.Result, error) {
			<-ctx.Done()
			if err != nil {
				return nil, err
			}
			return &job.Result{Data: json.RawMessage(data)}, nil
		}
	}
	interrupt := &host.Error{Code: host.Terminated, Message: "terminated"}
	for _, c := range []struct {
		name    string
		run     handler
		limits  grant.Limits
		timeout time.Duration
		cancel  error // cancels the call after a second, with this cause
		code    host.Code
		says    string
		took    time.Duration
		next    string
	}{
		{name: "timeout of the manifest", run: after("", errors.New("x")), code: host.Timeout, says: "did not end within 5s",
			took: 5 * time.Second},
		{name: "a result after the timeout", run: after("{}", nil), code: host.Timeout, took: 5 * time.Second},
		{name: "another error after the timeout", run: after("", host.Errorf(host.Trapped, "unreachable")),
			code: host.Timeout, took: 5 * time.Second},
		{name: "lost, and in a line until the timeout", run: after("", &host.Error{Code: host.Trapped, Place: 2}),
			code: host.Trapped, took: 5 * time.Second},
		{name: "in a line that nobody serves until the timeout", run: after("", &host.Error{Code: host.Unavailable,
			Place: 1}), code: host.Unavailable, took: 5 * time.Second},
		{name: "a timeout error of the tool", run: after("", timeoutSaid), code: host.Timeout, says: "endless loop",
			took: 5 * time.Second},
		{name: "timeout of the caller", run: after("{}", nil), timeout: 2 * time.Second, code: host.Timeout,
			says: "within 2s", took: 2 * time.Second, next: "timeout 8s"},
		{name: "longer timeout of the caller", run: after("{}", nil), timeout: time.Minute, code: host.Timeout,
			took: time.Minute},
		{name: "limit of the policy", run: after("{}", nil), limits: grant.Limits{Timeout: time.Second}, code: host.Timeout,
			says: "within 1s", took: time.Second, next: "policy explain shop"},
		{name: "timeout over the limit of the policy", run: after("{}", nil), limits: grant.Limits{Timeout: 3 * time.Second},
			timeout: time.Minute, code: host.Timeout, took: 3 * time.Second, next: "policy explain shop"},
		{name: "limit of the policy over the timeout", run: after("{}", nil), limits: grant.Limits{Timeout: time.Hour},
			code: host.Timeout, took: 5 * time.Second},
		{name: "interrupted", run: after("", context.Canceled), cancel: context.Canceled, code: host.Interrupted,
			says: "was interrupted", took: time.Second},
		{name: "interrupted, and the tool reports a timeout", run: after("", timeoutSaid), cancel: context.Canceled,
			code: host.Interrupted, took: time.Second},
		{name: "interrupted with a cause", run: after("", context.Canceled), cancel: interrupt, code: host.Terminated,
			says: "terminated", took: time.Second},
		{name: "a result in time, then interrupted", run: after("{}", nil), cancel: context.Canceled,
			took: time.Second},
		{name: "a failure in time",
			run:  func(context.Context, *host.Request) (*job.Result, error) { return nil, errors.New("boom") },
			code: host.Internal, says: "boom"},
		{name: "nothing", run: func(context.Context, *host.Request) (*job.Result, error) { return nil, nil },
			code: host.Internal, says: "returned no result"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, shop, map[string]handler{"echo": c.run})
				h := newHost(t, call.Config{Policy: policy(func(host.Ask) (host.Decision, error) {
					return host.Decision{Verdict: host.Allow, Limits: c.limits}, nil
				})}, f)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.cancel != nil {
					time.AfterFunc(time.Second, func() { cancel(c.cancel) })
				}
				began := time.Now()
				a, _ := h.Call(ctx, host.Call{Name: "shop.echo", Principal: cli, Options: job.Options{Timeout: c.timeout}})
				if took := time.Since(began); took != c.took || a.Duration != took {
					t.Errorf("the call took %v and reports %v, expected %v", took, a.Duration, c.took)
				}
				if c.code == "" {
					if a.Err != nil {
						t.Error(a.Err)
					}
					return
				}
				e := failsWith(t, a, c.code)
				if !strings.Contains(e.Message, c.says) {
					t.Errorf("got %q, expected %q", e.Message, c.says)
				}
				if next := fmt.Sprint(a.Steps); !strings.Contains(next, c.next) ||
					strings.Contains(next, "policy") && strings.Contains(next, "timeout") {
					t.Errorf("the steps are %q, expected %q", next, c.next)
				}
			})
		})
	}
}

func TestCallDefaultTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Replace(shop, `"limits": {"timeout_ms": 5000},`, "", 1)
		h := newHost(t, call.Config{}, newFake(t, text, nil))
		if a := makeCall(t, h, "shop.order.slow", ""); a.Duration != host.DefaultTimeout {
			t.Errorf("the call took %v", a.Duration)
		}
	})
}

// preparer is a fake whose preparation takes a while, once. It goes on when a call ends.
type preparer struct {
	*fake
	ready time.Time
}

func (p *preparer) Features() host.Features {
	return host.Features{Prepare: func(ctx context.Context, _ *host.Request) error { return p.prepare(ctx) }}
}

func (p *preparer) prepare(ctx context.Context) error {
	select {
	case <-time.After(time.Until(p.ready)):
		return nil
	case <-ctx.Done():
		return &host.Error{Code: host.Timeout, Message: "shop is still being prepared", Cause: ctx.Err()}
	}
}

// TestCallPreparation checks that preparation counts towards the caller's timeout and no other.
func TestCallPreparation(t *testing.T) {
	for _, c := range []struct {
		name           string
		timeout, limit time.Duration // a negative timeout is configured
		took           time.Duration
		says, next     string
	}{
		{"no timeout", 0, 0, 15 * time.Second, "did not end within 5s", "20s"},
		{"timeout during the preparation", 3 * time.Second, 0, 3 * time.Second, "shop is still being prepared", ""},
		{"timeout during the run", 12 * time.Second, 0, 12 * time.Second, "did not end within 12s", "48s"},
		{"limit of the policy", 0, 2 * time.Second, 12 * time.Second, "the policy allows at most 2s", "policy"},
		{"timeout beyond the limit", 60 * time.Second, 2 * time.Second, 12 * time.Second,
			"at most 2s, so the timeout is not 1m0s; the operator can raise it: timeout under [plugin.shop.limits]", "policy"},
		{"timeout and limit", 3 * time.Second, 2 * time.Second, 3 * time.Second, "shop is still being prepared", ""},
		{"configured timeout", -3 * time.Second, 0, 13 * time.Second, "did not end within 3s", "12s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &preparer{fake: newFake(t, shop, nil), ready: time.Now().Add(10 * time.Second)}
				h := newHost(t, call.Config{Policy: policy(func(host.Ask) (host.Decision, error) {
					return host.Decision{Verdict: host.Allow, Limits: grant.Limits{Timeout: c.limit}}, nil
				})}, p)
				a, _ := h.Call(t.Context(), host.Call{Name: "shop.order.slow", Principal: cli,
					Options: job.Options{Timeout: c.timeout.Abs(), TimeoutConfigured: c.timeout < 0},
					Given:   step.Options{Timeout: max(c.timeout, 0)}})
				e := failsWith(t, a, host.Timeout)
				if a.Duration != c.took || !strings.Contains(e.Message, c.says) {
					t.Errorf("%q after %v, expected %q after %v", e.Message, a.Duration, c.says, c.took)
				}
				isCut := c.limit > 0 && c.timeout > c.limit
				if said := fmt.Sprint(a.Warnings); strings.Contains(said, "the timeout is not") != isCut {
					t.Errorf("the warnings are %s", said)
				}
				if c.next == "" {
					if len(a.Steps) != 1 || a.Steps[0].Op != step.OpCall || a.Steps[0].Options.Timeout != 0 {
						t.Errorf("the steps are %+v, expected the call without a timeout", a.Steps)
					}
				} else if next := fmt.Sprint(a.Steps); !strings.Contains(next, c.next) {
					t.Errorf("the steps are %q, expected %q", next, c.next)
				}
			})
		})
	}
}

func TestCallResult(t *testing.T) {
	for _, c := range []struct {
		name, data string
		code       host.Code // of a plugin; built-in tools only cause warnings
		warns      int       // of a built-in tool
	}{
		{"good", `{"id":1,"more":[]}`, "", 0},
		{"missing", `{}`, host.InvalidResult, 1},
		{"wrong type", `{"id":"1"}`, host.InvalidResult, 1},
		{"no object", `[1]`, host.InvalidResult, 1},
		{"half a pair", `{"id":1,"a":"\ud800"}`, host.InvalidResult, 0},
	} {
		f := newFake(t, shop, map[string]handler{"add": answers(c.data)})
		a := makeCall(t, newHost(t, call.Config{}, f), "shop.add", `{"title":"a"}`)
		if c.code == "" {
			if a.Err != nil || string(a.Data) != c.data {
				t.Errorf("%s: %s, %v", c.name, a.Data, a.Err)
			}
		} else if e := failsWith(t, a, c.code); e.ExitCode() != 106 || e.Docs != nil {
			t.Errorf("%s: %+v", c.name, e)
		}

		b := newFake(t, shop, map[string]handler{"add": answers(c.data)}).builtin()
		a = makeCall(t, newHost(t, call.Config{}, b), "shop.add", `{"title":"a"}`)
		want := strings.Replace(c.data, `\ud800`, `\ufffd`, 1) // many parsers refuse what Chrome writes
		if a.Err != nil || string(a.Data) != want || len(a.Warnings) != c.warns {
			t.Errorf("%s, builtin: %s, %v, warnings %q", c.name, a.Data, a.Err, a.Warnings)
		}
	}
	for name, data := range map[string]string{"nothing": "", "cut off": `{"id":`, "two": `{} {}`, "bad UTF-8": "\"\xff\"",
		"too deep": strings.Repeat("[", 5000) + strings.Repeat("]", 5000)} {
		f := newFake(t, shop, map[string]handler{"echo": answers(data)})
		if e := failsWith(t, makeCall(t, newHost(t, call.Config{}, f), "shop.echo", ""),
			host.InvalidResult); strings.Contains(e.Message, "\xff") {
			t.Errorf("%s: %q", name, e.Message)
		}
	}
	e := failsWith(t, makeCall(t, newHost(t, call.Config{}, newFake(t, shop,
		map[string]handler{"add": answers(`{"id":"x"}`)})), "shop.add", `{"title":"a"}`), host.InvalidResult)
	if len(e.Details) != 1 || e.Details[0].Parameter != "/id" || e.Details[0].Keyword != "type" {
		t.Errorf("details %+v", e.Details)
	}
	f := newFake(t, shop, map[string]handler{"echo": func(context.Context, *host.Request) (*job.Result, error) {
		return &job.Result{Data: json.RawMessage(`1`), Warnings: []string{"nearly sold out"}}, nil
	}})
	if a := makeCall(t, newHost(t, call.Config{}, f), "shop.echo", ""); !slices.Equal(a.Warnings,
		[]string{"nearly sold out"}) {
		t.Errorf("warnings %q", a.Warnings)
	}
}

func TestCallToolError(t *testing.T) {
	f := newFake(t, shop, map[string]handler{"echo": func(context.Context, *host.Request) (*job.Result, error) {
		return nil, &host.Error{Code: host.ToolFailed, Exit: 10, Message: "sold out", Tool: &host.ToolError{Exit: 10,
			Name: "sold_out", Details: json.RawMessage(`{"left":"\ud800"}`)}}
	}})
	e := failsWith(t, makeCall(t, newHost(t, call.Config{}, f), "shop.echo", ""), host.ToolFailed)
	if e.ExitCode() != 10 || e.Tool.Name != "sold_out" || e.Docs != nil || string(e.Tool.Details) != `{"left":"\ufffd"}` {
		t.Errorf("%+v", e)
	}
}

func TestCallShow(t *testing.T) {
	const data = `{"text":"äöü<>","n":[1,2,3]}`
	f := newFake(t, shop, map[string]handler{"echo": answers(data)})
	sessions := &session.Store{Dir: t.TempDir()}
	h := newHost(t, call.Config{Sessions: sessions}, f)
	ask := func(c host.Call) *host.Answer {
		c.Name, c.Principal.Name = "shop.echo", "cli"
		a, _ := h.Call(t.Context(), c)
		return a
	}
	if a := ask(host.Call{Options: job.Options{MaxBytes: len(data)}}); a.Cut || string(a.Data) != data {
		t.Errorf("a result of exactly the limit was cut: %s", a.Data)
	}
	for limit := 1; limit < len(data); limit++ {
		a := ask(host.Call{Principal: caller.Principal{Session: caller.Session{Name: "s"}},
			Options: job.Options{MaxBytes: limit}})
		var cut struct {
			Truncated  bool `json:"truncated"`
			TotalBytes int  `json:"total_bytes"`
			ShownBytes int  `json:"shown_bytes"`
			Text, Next string
		}
		if err := json.Unmarshal(a.Data, &cut); err != nil || !a.Cut || a.Err != nil {
			t.Fatalf("%d bytes: %s, %v", limit, a.Data, err)
		}
		if !cut.Truncated || cut.TotalBytes != len(data) || cut.ShownBytes != len(cut.Text) || cut.ShownBytes > limit ||
			!strings.HasPrefix(data, cut.Text) || cut.Next != "parley://result/"+a.CallID || len(a.Warnings) != 1 {
			t.Errorf("%d bytes: %s, warnings %q", limit, a.Data, a.Warnings)
		}
		whole := map[int]string{10: `{"text":"`, 20: `{"text":"äöü<>"`, 27: `{"text":"äöü<>","n":[1,2`}
		if want, ok := whole[limit]; ok && cut.Text != want {
			t.Errorf("%d bytes: %s is shown, want %s: it ends at a whole value, if one fits", limit, cut.Text, want)
		}
		if whole, err := sessions.Result(caller.Session{Name: "s"}, a.CallID); err != nil || string(whole) != data {
			t.Errorf("%d bytes: the whole result is %s, %v", limit, whole, err)
		}
		if _, err := sessions.Result(caller.Session{Name: "other"}, a.CallID); err == nil {
			t.Error("another session can read the result")
		}
	}
	if a := ask(host.Call{Options: job.Options{MaxBytes: 5}}); a.Err != nil ||
		!strings.HasPrefix(string(a.Data), `{"truncated":true,"total_bytes":`) || strings.Contains(string(a.Data), `\u003c`) {
		t.Errorf("without a session: %s", a.Data)
	}

	first := filterFunc(func(_ context.Context, d json.RawMessage) (json.RawMessage, error) {
		if string(d) != data {
			t.Errorf("the filter was given %s", d)
		}
		return json.RawMessage(`[1,2,3]`), nil
	})
	a := ask(host.Call{Filter: first, Options: job.Options{JQ: ".", MaxBytes: 7}})
	if a.Cut || string(a.Data) != `[1,2,3]` {
		t.Errorf("the filter was applied after the cut: %s", a.Data)
	}
	a = ask(host.Call{Principal: caller.Principal{Session: caller.Session{Name: "s"}}, Filter: first,
		Options: job.Options{JQ: ".", MaxBytes: 3}})
	if whole, err := sessions.Result(caller.Session{Name: "s"}, a.CallID); err != nil || string(whole) != `[1,2,3]` {
		t.Errorf("the filtered result is stored: %s, %v", whole, err)
	}
	failing := filterFunc(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, host.Errorf(host.InvalidArgs, "no such field")
	})
	failsWith(t, ask(host.Call{Filter: failing, Options: job.Options{JQ: "."}}), host.InvalidArgs)
	if a := ask(host.Call{Filter: failing}); a.Err != nil {
		t.Errorf("without an expression: %v", a.Err)
	}
	failsWith(t, ask(host.Call{Options: job.Options{JQ: "."}}), host.Unavailable)

	endless := filterFunc(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, host.Errorf(host.Timeout, "the filter did not end")
	})
	failsWith(t, ask(host.Call{Filter: endless, Options: job.Options{JQ: ".", Timeout: time.Millisecond}}), host.Timeout)
}

// TestInvalidFilter checks that an invalid expression is refused before the tool runs, with the call that was meant.
func TestInvalidFilter(t *testing.T) {
	ran := false
	f := newFake(t, shop, map[string]handler{
		"echo": func(context.Context, *host.Request) (*job.Result, error) {
			ran = true
			return &job.Result{Data: json.RawMessage(`{}`)}, nil
		},
	})
	h := newHost(t, call.Config{}, f)
	a, _ := h.Call(t.Context(), host.Call{
		Name: "shop.echo", Filter: filterFunc(nil), Options: job.Options{JQ: "wrong", Place: step.Place{Target: "T"}},
		Given: step.Options{JQ: "wrong", Place: step.Place{Target: "T"}},
	})
	failsWith(t, a, host.InvalidArgs)
	if ran {
		t.Error("the tool ran")
	}
	want := step.Options{JQ: "right", Place: step.Place{Target: "T"}}
	if len(a.Steps) != 1 || a.Steps[0].Op != step.OpCall || a.Steps[0].Options != want {
		t.Errorf("steps: %+v", a.Steps)
	}
}

// filterFunc filters by a function. The expression "wrong" is invalid.
type filterFunc func(ctx context.Context, data json.RawMessage) (json.RawMessage, error)

func (filterFunc) Check(_ context.Context, expression string) (corrected string, err error) {
	if expression == "wrong" {
		return "right", host.Errorf(host.InvalidArgs, "jq: wrong: not an expression")
	}
	return "", nil
}

func (f filterFunc) Filter(ctx context.Context, _ string, data json.RawMessage) (json.RawMessage, error) {
	return f(ctx, data)
}

func TestCallToolOfAnother(t *testing.T) {
	rec := &recorder{}
	who := outerNamed("caller")
	var depth int
	f := newFake(t, who, map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			return callTool(ctx, r, "shop__add", json.RawMessage(`{"title":"a","count":"3"}`), "")
		},
		"order.list": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			depth++
			return callTool(ctx, r, "caller.order.list", nil, "")
		},
		"order.cancel": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			return callTool(ctx, r, "shop.nothing", nil, "")
		},
	})
	h := newHost(t, call.Config{Recorder: rec}, f, newFake(t, shop, nil))
	a, _ := h.Call(t.Context(), host.Call{Name: "caller.echo", Principal: cliIn("s")})
	if a.Err != nil || string(a.Data) != `{"id":1}` {
		t.Fatalf("%s, %v", a.Data, a.Err)
	}
	events := rec.all()
	own := "plugin:caller/" + (caller.Session{Name: "s"}).GuestID("caller")
	if len(events) != 2 || events[0].Tool != "shop.add" || events[0].Caller != "plugin:caller" ||
		events[0].Session != own || events[1].Tool != "caller.echo" || events[1].Caller != "cli" {
		t.Errorf("events %+v", events)
	}
	e := failsWith(t, makeCall(t, h, "caller.order.cancel", `{"id":1}`), host.NotFound)
	if !strings.Contains(e.Message, "shop has no tool") {
		t.Errorf("%+v", e)
	}
	failsWith(t, makeCall(t, h, "caller.order.list", ""), host.LimitExceeded)
	if depth < 8 || depth > 9 {
		t.Errorf("plugins called each other %d deep", depth)
	}
}

// passing is a fake that can send parameters and tools that its manifest does not have.
type passing struct{ *fake }

func (p passing) Features() host.Features { return host.Features{Pass: p.pass} }

func (p passing) pass(name string) *manifest.Tool {
	if strings.Count(name, ".") != 1 {
		return nil
	}
	return &manifest.Tool{Name: name, Effect: manifest.EffectWrite}
}

func TestCallSendAnyway(t *testing.T) {
	f := newFake(t, shop, nil).builtin()
	h := newHost(t, call.Config{}, passing{f})
	send := func(name, params string) *host.Answer {
		a, _ := h.Call(t.Context(),
			host.Call{Name: name, Params: json.RawMessage(params), Principal: cli, Options: job.Options{SendAnyway: true}})
		return a
	}
	if a := send("shop.Future.method", `{"any":[1,"x"]}`); a.Err != nil || a.Tool != "shop.Future.method" ||
		string(a.Data) != `{"any":[1,"x"]}` {
		t.Errorf("%s: %s, %v", a.Tool, a.Data, a.Err)
	}
	if a := send("shop.order.cancel", `{"id":"x","new":true}`); a.Err != nil || string(a.Data) != `{"id":"x","new":true}` {
		t.Errorf("a known tool with unknown parameters: %s, %v", a.Data, a.Err)
	}
	for _, name := range []string{"shop.order.lits", "shop.order.cancle", "shop.ehco", "nothing.x.y", "shop.plain"} {
		failsWith(t, send(name, `{}`), host.NotFound)
	}
	failsWith(t, send("shop.Future.method", `[1]`), host.InvalidArgs)
	failsWith(t, send("shop.Future.method", `{`), host.InvalidArgs)
	failsWith(t, makeCall(t, h, "shop.Future.method", `{}`), host.NotFound)
	failsWith(t, makeCall(t, newHost(t, call.Config{}, f), "shop.Future.method", `{}`), host.NotFound)
}

// streaming is a fake that emits three records.
type streaming struct{ *fake }

func (s streaming) Invoke(ctx context.Context, r *host.Request) (*job.Result, error) {
	if !r.Wants.Records {
		return s.fake.Invoke(ctx, r)
	}
	r.Started()
	for i := range 3 {
		if err := r.Emit(json.RawMessage(fmt.Sprint(i))); err != nil {
			return nil, host.Errorf(host.Interrupted, "nobody reads any more")
		}
	}
	return &job.Result{Data: json.RawMessage(`{"end":"max"}`)}, nil
}

func TestCallStream(t *testing.T) {
	h := newHost(t, call.Config{}, streaming{newFake(t, shop, nil)})
	var got []string
	c := host.Call{Name: "shop.echo", Principal: cli}
	c.Sink.Wants.Records, c.Sink.Event = true, func(e job.Event) error {
		got = append(got, cmp.Or(string(e.Record), e.Kind))
		return nil
	}
	if a, _ := h.Call(t.Context(), c); a.Err != nil || string(a.Data) != `{"end":"max"}` ||
		strings.Join(got, " ") != "started 0 1 2" {
		t.Errorf("%s, %v, %q", a.Data, a.Err, got)
	}
	c.Sink.Event = func(job.Event) error { return errors.New("closed") }
	stopped, _ := h.Call(t.Context(), c)
	failsWith(t, stopped, host.Interrupted)
	if a := makeCall(t, h, "shop.echo", `{"a":1}`); string(a.Data) != `{"a":1}` {
		t.Errorf("without a sink: %s", a.Data)
	}
	plain := newHost(t, call.Config{}, newFake(t, shop, nil))
	c.Sink.Event = func(job.Event) error { t.Error("emitted"); return nil }
	if a, _ := plain.Call(t.Context(), c); a.Err != nil {
		t.Errorf("a provider that cannot stream: %v", a.Err)
	}
}

func TestCallEvents(t *testing.T) {
	rec := &recorder{}
	f := newFake(t, shop, nil)
	h := newHost(t, call.Config{Recorder: rec, Sessions: &session.Store{Dir: t.TempDir()}, Mode: "progressive"}, f)
	var followed []host.Event
	cancel := h.Subscribe(func(e host.Event) { followed = append(followed, e) })
	ask := func(name, params string) *host.Answer {
		a, _ := h.Call(t.Context(),
			host.Call{Name: name, Params: json.RawMessage(params), Principal: caller.Principal{Name: "mcp:claude",
				Session: caller.Session{Name: "s"}}})
		return a
	}

	first := ask("shop.add", `{"titel":"a"}`)
	e := rec.last(t)
	if e.Op != "call" || e.CallID != first.CallID || e.Session != "s" || e.Caller != "mcp:claude" ||
		e.Tool != "shop.add" || e.Digest != "sha256:shop" || e.Mode != "progressive" ||
		!slices.Equal(e.Tiers, []int{2}) || string(e.Params) != `{"titel":"a"}` || e.Err == nil ||
		e.Err.Code != host.InvalidArgs || e.DocsTokens == 0 || e.RetryOf != "" || e.SuggestionUsed || e.Time.IsZero() ||
		e.OutBytes == 0 || len(e.Result) > 0 {
		t.Errorf("the first failure: %+v", e)
	}
	second := ask("shop.add", `{"titl":"a"}`)
	if e := rec.last(t); e.RetryOf != first.CallID || e.SuggestionUsed || !slices.Equal(e.Tiers, []int{3}) {
		t.Errorf("the second failure: %+v", e)
	}
	// The order of keys does not matter for a suggestion.
	if a := ask("shop.add", " "+string(second.Err.Corrected)); a.Err != nil {
		t.Fatal(a.Err)
	}
	if e := rec.last(t); e.RetryOf != second.CallID || !e.SuggestionUsed || e.Err != nil ||
		e.OutBytes != len(`{"id":1}`) || string(e.Result) != `{"id":1}` || len(e.Tiers) > 0 {
		t.Errorf("the retry: %+v", e)
	}
	ask("shop.add", `{"title":"b"}`)
	if e := rec.last(t); e.RetryOf != "" || e.SuggestionUsed {
		t.Errorf("after a success: %+v", e)
	}
	ask("shop.nothing", `{}`)
	if e := rec.last(t); e.Tool != "shop.nothing" || e.Err.Code != host.NotFound {
		t.Errorf("not found: %+v", e)
	}
	cancel()
	ask("shop.echo", `{}`)
	if n := len(rec.all()); n != 6 {
		t.Errorf("%d events for 6 calls", n)
	}
	if !reflect.DeepEqual(followed, rec.all()[:5]) {
		t.Errorf("a subscriber got %d events, expected the first 5 of the recorder", len(followed))
	}

	if _, err := h.Describe(t.Context(), cliIn("s"), "shop.echo", 2); err != nil {
		t.Fatal(err)
	}
	if e := rec.last(t); e.Op != "describe" || e.Tool != "shop.echo" || !slices.Equal(e.Tiers, []int{2}) ||
		e.DocsTokens == 0 || e.CallID == "" {
		t.Errorf("describe: %+v", e)
	}
	found, _, err := h.Search(t.Context(), cliIn("s"), search.Query{Text: "sell tea"})
	if err != nil {
		t.Fatal(err)
	}
	if e := rec.last(t); e.Op != "search" || e.Query != "sell tea" || e.CallID == "" || e.Mode != "progressive" ||
		len(e.Hits) == 0 || len(e.Hits) != len(found.Results) || e.Hits[0] != found.Results[0].Name {
		t.Errorf("search: %+v", e)
	}
}

// TestSubscribersMayChange checks that a function can subscribe and cancel while it handles an event.
func TestSubscribersMayChange(t *testing.T) {
	h := newHost(t, call.Config{}, newFake(t, shop, nil))
	var order []string
	var cancel func()
	cancel = h.Subscribe(func(host.Event) {
		order = append(order, "first")
		cancel()
		h.Subscribe(func(host.Event) { order = append(order, "third") })
	})
	h.Subscribe(func(host.Event) { order = append(order, "second") })
	makeCall(t, h, "shop.echo", "")
	makeCall(t, h, "shop.echo", "")
	if got := strings.Join(order, " "); got != "first second second third" {
		t.Errorf("called in the order %s", got)
	}
}

func TestSwapDuringCalls(t *testing.T) {
	one := newFake(t, shop, map[string]handler{"echo": answers(`1`)})
	two := newFake(t, shop, map[string]handler{"echo": answers(`2`)})
	two.info.Digest = "sha256:two"
	h := newHost(t, call.Config{Recorder: &recorder{}}, one)
	a, b := h.Catalog(), catalogOf(t, two)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if a, _ := h.Call(context.Background(), host.Call{Name: "shop.echo", Principal: cli}); a.Err != nil ||
					string(a.Data) != "1" && string(a.Data) != "2" {
					t.Errorf("%s, %v", a.Data, a.Err)
				}
				if _, _, err := h.Search(context.Background(), cli, search.Query{Text: "echo"}); err != nil {
					t.Error(err)
				}
				cancel := h.Subscribe(func(host.Event) {})
				cancel()
			}
		})
	}
	for range 200 {
		h.Swap(b)
		h.Swap(a)
	}
	close(stop)
	wg.Wait()

	began := make(chan struct{})
	swapped := make(chan struct{})
	one.handlers["echo"] = func(ctx context.Context, r *host.Request) (*job.Result, error) {
		close(began)
		<-swapped
		return &job.Result{Data: json.RawMessage(`"old"`)}, nil
	}
	go func() { <-began; h.Swap(b); close(swapped) }()
	if a := makeCall(t, h, "shop.echo", ""); string(a.Data) != `"old"` {
		t.Errorf("a call under way ended with %s", a.Data)
	}
	if a := makeCall(t, h, "shop.echo", ""); string(a.Data) != `2` {
		t.Errorf("the next call returned %s", a.Data)
	}
}

// TestCallNamedLikeItsPlugin checks that a group may have the name of its plugin.
func TestCallNamedLikeItsPlugin(t *testing.T) {
	text := strings.NewReplacer(`"order`, `"shop`, `"group": "shop"`, `"group": "shop"`).Replace(shop)
	h := newHost(t, call.Config{}, newFake(t, text, nil))
	for _, name := range []string{"shop.shop.list", "shop__shop__list"} {
		if a := makeCall(t, h, name, "{}"); a.Err != nil {
			t.Errorf("%s: %v", name, a.Err)
		}
	}
	if a, err := h.Catalog().FindIn("shop", "shop.list"); err != nil || a.Name() != "shop.shop.list" {
		t.Errorf("got %s, %v", a.Name(), err)
	}
}

// TestCallEventsOfRefusedRetries checks that a retry is recorded as one even if the policy denies it or it is a dry
// run.
func TestCallEventsOfRefusedRetries(t *testing.T) {
	rec, decision := &recorder{}, host.Decision{Verdict: host.Allow}
	h := newHost(t,
		call.Config{Recorder: rec, Sessions: &session.Store{Dir: t.TempDir()},
			Policy: policy(func(host.Ask) (host.Decision, error) { return decision, nil })}, newFake(t, shop, nil))
	ask := func(params string, dry bool) *host.Answer {
		a, _ := h.Call(t.Context(),
			host.Call{Name: "shop.add", Params: json.RawMessage(params), Principal: cliIn("s"),
				Options: job.Options{DryRun: dry}})
		return a
	}
	failed := ask(`{"titel":"a"}`, false)
	if a := ask(string(failed.Err.Corrected), true); a.Err != nil {
		t.Fatal(a.Err)
	}
	if e := rec.last(t); e.RetryOf != failed.CallID || !e.SuggestionUsed {
		t.Errorf("a dry run: %+v", e)
	}
	decision.Verdict = host.Deny
	failsWith(t, ask(string(failed.Err.Corrected), false), host.Denied)
	if e := rec.last(t); e.RetryOf != failed.CallID || !e.SuggestionUsed {
		t.Errorf("a denied call: %+v", e)
	}
}

// TestSwapClearsBuiltins checks that a new catalog has its own documentation and schemas, even of a provider
// without a digest.
func TestSwapClearsBuiltins(t *testing.T) {
	h := newHost(t, call.Config{}, newFake(t, shop, nil).builtin())
	if _, err := h.Describe(t.Context(), cli, "shop.echo", 2); err != nil {
		t.Fatal(err)
	}
	if a := makeCall(t, h, "shop.echo", `{"a":1}`); a.Err != nil {
		t.Fatal(a.Err)
	}
	newer := newFake(t, shop, nil).builtin()
	tool := newer.manifest.Tool("echo")
	tool.Docs.Brief, tool.Params = "Say it twice",
		json.RawMessage(`{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}`)
	h.Swap(catalogOf(t, newer))
	if d, err := h.Describe(t.Context(), cli, "shop.echo", 2); err != nil || d.Brief != "Say it twice" {
		t.Errorf("got %+v, %v", d, err)
	}
	failsWith(t, makeCall(t, h, "shop.echo", `{"a":1}`), host.InvalidArgs)
}

// TestNamesAreFoundOnce checks that a call looks its tool up once, or not at all if the caller did, but again if the
// plugin has been replaced since.
func TestNamesAreFoundOnce(t *testing.T) {
	before := newFake(t, shop, nil)
	h := newHost(t, call.Config{}, before)
	at, err := h.Catalog().Find("shop.echo")
	if err != nil {
		t.Fatal(err)
	}
	one := func(at host.Address) {
		t.Helper()
		if a, err := h.Call(t.Context(), host.Call{Name: "shop.echo", At: at, Principal: cli}); err != nil {
			t.Fatal(a.Err)
		}
	}
	for _, c := range []struct {
		at   host.Address
		want int
	}{{host.Address{}, 1}, {at, 0}} {
		before.lookUps = 0
		if one(c.at); before.lookUps != c.want {
			t.Errorf("a call looks its tool up %d times, instead of %d", before.lookUps, c.want)
		}
	}
	newer := newFake(t, shop, nil)
	h.Swap(catalogOf(t, newer))
	one(at)
	if old, now := len(before.requests()), len(newer.requests()); old != 2 || now != 1 {
		t.Errorf("the replaced plugin ran %d calls and the new one %d, instead of 2 and 1", old, now)
	}
}

// TestErrorsAreBounded checks that the size of an error is bounded, with many violations and large
// parameters.
func TestErrorsAreBounded(t *testing.T) {
	text := strings.Replace(shop, `"examples": [{"title": "One", "params": {"title": "tea", "count": 5}`,
		`"examples": [{"title": "One", "params": {"title": "tea", "tags": ["hot"]}`, 1)
	h := newHost(t, call.Config{}, newFake(t, text, nil))
	params := `{"title":"` + strings.Repeat("x", 7<<10) + `","tags":[` + strings.TrimSuffix(strings.Repeat("1,", 900),
		",") + `]}`
	e := failsWith(t, makeCall(t, h, "shop.add", params), host.InvalidArgs)
	if raw, _ := json.Marshal(e.Object()); len(raw) > 512<<10 {
		t.Errorf("%d bytes of parameters lead to an error of %d", len(params), len(raw))
	}
	large := `{"title":3,"extra":{"note":"` + strings.Repeat("x", 4<<20) + `"}}`
	e = failsWith(t, makeCall(t, h, "shop.add", large), host.InvalidArgs)
	if raw, _ := json.Marshal(e.Object()); len(raw) > 32<<10 {
		t.Errorf("%d bytes of parameters lead to an error of %d", len(large), len(raw))
	}
}

// TestToolNamedTimeout checks that a tool whose own exit code is named timeout does not report the host's.
func TestToolNamedTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, shop, map[string]handler{"echo": func(ctx context.Context, _ *host.Request) (*job.Result, error) {
			<-ctx.Done()
			return nil, &host.Error{Code: host.Timeout, Exit: 10, Message: "mine", Tool: &host.ToolError{Exit: 10,
				Name: "timeout"}}
		}})
		if e := failsWith(t, makeCall(t, newHost(t, call.Config{}, f), "shop.echo", ""), host.Timeout); e.ExitCode() != 102 {
			t.Errorf("it ends in %d: %+v", e.ExitCode(), e)
		}
	})
}
