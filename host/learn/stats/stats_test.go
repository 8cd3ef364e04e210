package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
)

// TestWilson compares the interval with published values.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		n, of     int
		low, high float64
	}{{0, 10, 0, 0.2775}, {5, 10, 0.2366, 0.7634}, {10, 10, 0.7225, 1}, {81, 263, 0.2553, 0.3662}, {0, 0, 0, 1}} {
		if low, high := Wilson(c.n, c.of); math.Abs(low-c.low) > 5e-4 || math.Abs(high-c.high) > 5e-4 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", c.n, c.of, low, high, c.low, c.high)
		}
	}
	if ShareOf(4, 4) != nil || ShareOf(5, 5) == nil {
		t.Error("a share needs five cases")
	}
}

func TestQuantileOf(t *testing.T) {
	var values []float64
	for i := range 200 {
		values = append(values, float64(199-i))
	}
	if q := QuantileOf(values, 0.5); q == nil || q.Value != 100 || q.Low != 86 || q.High != 114 {
		t.Errorf("the median of 0 to 199: %+v", q)
	}
	if q := QuantileOf(values, 0.95); q == nil || q.Value != 190 || q.Low >= 190 || q.High <= 190 {
		t.Errorf("the 95th percentile of 0 to 199: %+v", q)
	}
	if q := QuantileOf(values, 0.99); q != nil {
		t.Errorf("the 99th percentile of too few values: %+v", q)
	}
	if QuantileOf(values[:7], 0.5) != nil || QuantileOf(values[:8], 0.5) == nil {
		t.Error("a median needs eight values")
	}
}

// CPU time counts for whoever called, also for plugins, in the scope of the report.
func TestCPU(t *testing.T) {
	var s script
	for caller, ms := range map[string]float64{"cli": 10, "mcp:a": 900, "plugin:p": 50.4} {
		for _, tool := range []string{"a.x", "b.y"} {
			s.add(host.Record{Caller: caller, Tool: tool, Usage: host.Usage{CPUMS: ms}})
		}
	}
	for scope, want := range map[string]string{
		"":  "[{mcp:a 1800} {plugin:p 101} {cli 20}]",
		"a": "[{mcp:a 900} {plugin:p 50} {cli 10}]",
		"c": "[]",
	} {
		if r := compute(&s, scope); fmt.Sprint(r.CPU) != want {
			t.Errorf("scope %q: %v", scope, r.CPU)
		}
	}
}

// script makes the records of sessions.
type script struct{ records []host.Record }

func (s *script) add(r host.Record) *host.Record {
	n := len(s.records)
	r.Time, r.Call = time.Unix(int64(n), 0).UTC(), fmt.Sprintf("c%d", n)
	if r.Code == "" {
		r.Code = "ok"
	}
	s.records = append(s.records, r)
	return &s.records[n]
}

func (s *script) call(session, tool, params string) {
	s.add(host.Record{Session: session, Tool: tool, Params: []byte(params), MS: 2})
}

func (s *script) fail(session, tool, params, pointer, keyword string) *host.Record {
	return s.add(host.Record{Session: session, Tool: tool, Params: []byte(params), Code: "invalid_args", ExitCode: 81,
		Errors: []host.Violation{{Pointer: pointer, Keyword: keyword, Expected: "integer"}}, MS: 1})
}

// compute returns the report on a catalog without plugins.
func compute(s *script, scope string) *Report {
	catalog, err := host.NewCatalog()
	if err != nil {
		panic(err)
	}
	return Compute(s.records, catalog, scope)
}

// TestSessions checks what is known only from the order of calls in a session.
func TestSessions(t *testing.T) {
	var s script
	for i := range 6 {
		in := fmt.Sprint("s", i)
		s.add(host.Record{Op: "search", Session: in, Hits: []string{"a.x", "a.y"}, Query: "do it"})
		s.add(host.Record{Op: "describe", Session: in, Tool: "a.x", Tiers: []int{2}, DocsTokens: 80})
		r := s.fail(in, "a.x", `{"p":"string(1)","q":"string(2)"}`, "/p", "type")
		r.Changes, r.DocsTokens, r.Tiers = []string{"coerced"}, 100, []int{3}
		s.fail(in, "a.x", `{"p":"string(1)","q":"string(2)"}`, "/p", "type")
		s.add(host.Record{Session: in, Tool: "a.z", Params: []byte(`{"p":"integer","q":"string(2)"}`)})
	}
	s.call("s6", "a.x", `{"p":"integer"}`)
	s.fail("s6", "a.x", `{"p":"string(1)"}`, "/p", "type").Changes = []string{"coerced"}
	s.add(host.Record{Session: "s6", Tool: "a.x", Params: []byte(`{"p":"integer"}`), SuggestionUsed: true})
	s.fail("", "a.x", `{}`, "/p", "required") // without a session it is no first call

	r := compute(&s, "")
	if r.Calls != 22 || r.Searches != 6 || r.Describes != 6 || r.Sessions != 7 {
		t.Errorf("%d calls, %d searches, %d describes, %d sessions", r.Calls, r.Searches, r.Describes, r.Sessions)
	}
	x := r.Tools[0]
	if x.Name != "a.x" || x.Calls != 16 || x.Failed != 14 || x.Repeated != 6 {
		t.Errorf("a.x: %d calls, %d failed, %d repeated", x.Calls, x.Failed, x.Repeated)
	}
	if x.FirstTry == nil || x.FirstTry.N != 1 || x.FirstTry.Of != 7 {
		t.Errorf("first try: %+v", x.FirstTry)
	}
	if x.Recovered == nil || x.Recovered.N != 1 || x.Recovered.Of != 7 || x.Kept != nil {
		t.Errorf("recovered: %+v, corrections used: %+v of too few", x.Recovered, x.Kept)
	}
	if len(x.Fields) != 2 || x.Fields[0].N != 13 || x.Fields[0].Sessions != 7 || len(x.Fields[0].Calls) != 3 {
		t.Errorf("fields: %+v", x.Fields)
	}
	if c := r.Confusions; len(c) != 1 || c[0].Called != "a.x" || c[0].Meant != "a.z" || c[0].N != 6 {
		t.Errorf("confusions: %+v", r.Confusions)
	}
	if m := r.Search.Misses; len(m) != 1 || m[0].Tool != "a.z" || m[0].N != 6 ||
		!slices.Equal(m[0].Queries, []string{"do it"}) {
		t.Errorf("misses: %+v", m)
	}
	if r.Search.Five == nil || r.Search.Five.N != 0 || r.Search.Five.Of != 6 {
		t.Errorf("found: %+v", r.Search.Five)
	}
	if r.WithDocs == nil || r.WithDocs.N != 0 || r.WithDocs.Of != 6 || r.WithoutDocs != nil {
		t.Errorf("after errors: with docs %+v, without %+v", r.WithDocs, r.WithoutDocs)
	}
	if r.Abandoned == nil || r.Abandoned.N != 0 {
		t.Errorf("abandoned: %+v", r.Abandoned)
	}
	if len(r.Worst) != 3 || r.Worst[0].Tool != "a.x" || r.Worst[0].Cases != 13 {
		t.Errorf("to fix: %+v", r.Worst)
	}
	if only := compute(&s, "a.z"); len(only.Tools) != 1 || only.Calls != 6 || len(only.Confusions) != 1 {
		t.Errorf("a.z alone: %+v", only)
	}
}

// TestAbandoned checks that a session which ends with an error or with discovery counts as abandoned.
func TestAbandoned(t *testing.T) {
	var s script
	for i := range 6 {
		in := fmt.Sprint("s", i)
		s.call(in, "a.x", `{}`)
		switch i {
		case 0:
			s.fail(in, "a.x", `{}`, "/p", "required")
		case 1:
			s.add(host.Record{Op: "search", Session: in})
		}
	}
	r := compute(&s, "")
	if r.Abandoned == nil || r.Abandoned.N != 2 || r.Abandoned.Of != 6 {
		t.Errorf("%+v", r.Abandoned)
	}
	// One case is no finding, and nothing is said of too few.
	if len(r.Worst) != 0 || r.Tools[0].P50 != nil {
		t.Errorf("worst %+v, median %+v of %d calls", r.Worst, r.Tools[0].P50, r.Tools[0].Calls)
	}
}

// TestConfusionWithFailingTool checks that a tool that mostly fails is not said to be the one that was meant.
func TestConfusionWithFailingTool(t *testing.T) {
	for failures, want := range map[int]bool{0: true, 12: false} {
		var s script
		for i := range 5 {
			in := fmt.Sprint("s", i)
			s.fail(in, "a.x", `{"q":"string(1)"}`, "/p", "required")
			s.call(in, "a.z", `{"q":"string(1)"}`)
			for range failures {
				s.fail(fmt.Sprint("other", i), "a.z", `{"q":"string(1)"}`, "/p", "required")
			}
		}
		got := slices.ContainsFunc(compute(&s, "").Worst, func(p Problem) bool {
			return strings.Contains(p.Text, "is taken for")
		})
		if got != want {
			t.Errorf("after %d failures: %+v", failures, compute(&s, "").Worst)
		}
	}
}

// TestRelations checks which parameter was meant by one that does not exist, and what a tool needs before it.
func TestRelations(t *testing.T) {
	var s script
	for i := range 3 {
		in := fmt.Sprint("s", i)
		s.fail(in, "a.x", `{"txt":"string(1)","q":"integer"}`, "/txt", "additionalProperties")
		s.call(in, "a.x", `{"text":"string(1)","q":"integer"}`)
		s.add(host.Record{Session: in, Tool: "a.query", Params: []byte(`{}`), Code: "tool_failed", ExitCode: 12})
		s.call(in, "a.enable", `{}`)
		s.call(in, "a.query", `{}`)
	}
	r := compute(&s, "")
	if len(r.Renames) != 1 || r.Renames[0].Sent != "txt" || r.Renames[0].Meant != "text" || r.Renames[0].Sessions != 3 {
		t.Errorf("renames: %+v", r.Renames)
	}
	if len(r.Needs) != 1 || r.Needs[0].Tool != "a.query" || r.Needs[0].Before != "a.enable" || r.Needs[0].N != 3 {
		t.Errorf("needs: %+v", r.Needs)
	}
	s.call("other", "a.query", `{}`) // it succeeds without
	if r := compute(&s, ""); len(r.Needs) != 0 {
		t.Errorf("needs: %+v", r.Needs)
	}
}

// TestEmpty checks that lists of an empty report are empty, not null.
func TestEmpty(t *testing.T) {
	r := compute(&script{}, "")
	if r.Tools == nil || r.Confusions == nil || r.Worst == nil || r.Unused == nil || r.Tiers == nil {
		t.Errorf("%+v", r)
	}
}

// TestFirstSuccess checks what a session took until its first success, and how many tools it used.
func TestFirstSuccess(t *testing.T) {
	var s script
	for i := range 8 {
		in := fmt.Sprint("s", i)
		s.add(host.Record{Op: "search", Session: in, DocsTokens: 30})
		s.call(in, "a.x", `{}`)
		s.call(in, "a.y", `{}`)
		s.call(in, "a.y", `{}`)
	}
	r := compute(&s, "")
	for name, want := range map[*Quantile]float64{r.Turns: 2, r.Tokens: 30, r.Seconds: 1.002, r.Depth: 2} {
		if name == nil || name.Of != 8 || name.Value != want {
			t.Errorf("got %+v, want %v", name, want)
		}
	}
}

// TestContrasts checks what is said to separate failures from successes: a parameter, a value where traces have values,
// and a call before.
func TestContrasts(t *testing.T) {
	var s script
	call := func(i int, params string, code int) {
		r := host.Record{Session: fmt.Sprint("s", i%5), Tool: "a.x", Params: []byte(params), ExitCode: code}
		if code != 0 {
			r.Code = "tool_failed"
		}
		s.add(r)
	}
	for i := range 20 {
		call(i, `{"mode":"fast","text":"string(3)","n":1}`, 12*(1-i%10/9)) // 18 of 20 fail
		call(i, `{"mode":"slow","text":"string(3)","n":1}`, 0)
	}
	r := compute(&s, "")
	found := r.Tools[0].Contrasts
	if len(found) != 2 || found[0].String() != `fails with mode "fast" in 18 of 20 calls, else in 0 of 20` {
		t.Errorf("contrasts are %v", found)
	}
	if len(r.Worst) == 0 || r.Worst[0].Tool != "a.x" {
		t.Errorf("worst are %v", r.Worst)
	}

	var shapes script
	for i := range 20 {
		shapes.add(host.Record{Session: fmt.Sprint(i), Tool: "a.x", Code: "tool_failed", ExitCode: 12,
			Params: []byte(`{"deep":"boolean","text":"string(3)"}`)})
		shapes.call(fmt.Sprint(i), "a.login", `{}`)
		shapes.call(fmt.Sprint(i), "a.x", `{"text":"string(3)"}`)
	}
	var texts []string
	for _, c := range compute(&shapes, "a.x").Tools[0].Contrasts {
		texts = append(texts, c.String())
	}
	if want := []string{"fails after a.login in 0 of 20 calls, else in 20 of 20",
		"fails with deep in 20 of 20 calls, else in 0 of 20"}; !slices.Equal(texts, want) {
		t.Errorf("contrasts are %q", texts)
	}

	var even script
	for i := range 30 {
		even.add(host.Record{Session: fmt.Sprint("s", i), Tool: "a.x", Params: []byte([]string{`{}`, `{"p":"string(1)"}`}[i%2]),
			ExitCode: 12 * (i / 2 % 2)})
	}
	if found := compute(&even, "").Tools[0].Contrasts; found != nil {
		t.Errorf("nothing separates these, but %v", found)
	}
}

// TestInnerCalls checks that calls that tools make are no evidence of what callers do.
func TestInnerCalls(t *testing.T) {
	var s script
	for i := range 20 {
		s.add(host.Record{Session: fmt.Sprint("s", i), Tool: "a.x", Caller: "plugin:js", Code: "tool_failed", ExitCode: 12})
	}
	s.call("s1", "a.y", `{}`)
	if r := compute(&s, ""); r.Calls != 1 || r.Inner != 20 || len(r.Tools) != 1 || r.Tools[0].Name != "a.y" {
		t.Errorf("%d calls, %d inner ones, tools %v", r.Calls, r.Inner, r.Tools)
	}
}

// TestNeverWorks checks that a tool of which no call succeeds is what is most worth fixing.
func TestNeverWorks(t *testing.T) {
	var s script
	for i := range 10 {
		s.add(host.Record{Session: fmt.Sprint("s", i), Tool: "a.x", Code: "tool_failed", ExitCode: 12})
	}
	want := "a.x never works: all of 10 calls failed, 10 of them with tool_failed"
	if r := compute(&s, ""); len(r.Worst) == 0 || r.Worst[0].Text != want {
		t.Errorf("worst are %v", r.Worst)
	}
}
