package call_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// TestBounded checks that an error stays within its bounds, whatever is long in it, and says what was left out of a
// correction.
func TestBounded(t *testing.T) {
	long := strings.Repeat("<x\"", 50_000)
	raw := json.RawMessage(fmt.Sprintf(`{"text":%q,"algorithm":"md5"}`, long))
	many := func(n int) *host.Error {
		e := &host.Error{Code: host.InvalidArgs, Message: long, Corrected: raw, Template: raw, Earlier: []string{long, long},
			Effects: []string{long}, Tool: &host.ToolError{Exit: 10, Name: "x", Details: raw},
			Protocol: &host.ProtocolError{Message: long, Data: long}, Retry: &step.Step{Op: step.OpCall, Params: raw}}
		for range n {
			e.Details = append(e.Details, host.Detail{Parameter: "/" + long, Provided: long, Expected: long,
				Suggestion: step.TextSuggestion(long)})
			e.Changes = append(e.Changes, schema.Change{From: long, To: long, How: "renamed"})
			e.Denied, e.DidYouMean = append(e.Denied, grant.Denial{Right: long, Why: long}), append(e.DidYouMean,
				spelling.Near{Name: "x"})
			e.Steps = append(e.Steps, step.Call("a.b", raw), step.Describe("a.b", 2))
		}
		return e
	}
	for n, most := range map[int]int{0: 1500, 1: 900, 2: 1900, 40: 1900, 5000: 1900} {
		e := many(n)
		got, err := manifest.Marshal(e.Object())
		if err != nil || len(got) > most {
			t.Errorf("%d violations: %d bytes, %v: %s", n, len(got), err, got[:min(len(got), 900)])
		}
		if b := e.Bounded(); len(b.Steps) > 3 || strings.Contains(fmt.Sprint(b.Steps), "<x") || b.Retry != nil {
			t.Errorf("the steps are %d", len(b.Steps))
		}
		if !reflect.DeepEqual(e, many(n)) {
			t.Errorf("the error itself has changed: %d details", len(e.Details))
		}
	}
	e := &host.Error{Code: host.InvalidArgs, Message: "x", Corrected: raw}
	if got := string(e.Object().Template); e.Object().Corrected != nil ||
		got != `{"algorithm":"md5","text":"<text: 200.0 kB, as given>"}` {
		t.Errorf("the template is %s", got)
	}
}

// TestBoundedWithItsStep checks that one violation, its correction and the call with it stay within 900 bytes, whatever
// the values hold. A front end adds less than 280 bytes.
func TestBoundedWithItsStep(t *testing.T) {
	for _, text := range []string{"a", `"`, "é", "\u200b", "\u2028", "\n"} {
		for n := range 260 {
			params := jsontext.Marshal(map[string]string{"element": strings.Repeat(text, n)})
			retry := step.Call("page.get", params)
			e := &host.Error{Code: host.InvalidArgs, Message: "Tool 'page.get' failed: 1 violation", Corrected: params,
				Retry: &retry, Steps: []step.Step{retry, step.Describe("page.get", 0)},
				Details: []host.Detail{{Parameter: "/element", Keyword: "type", Provided: "object", Expected: "string"}},
				Changes: []schema.Change{{From: "/element/k", To: "/element", How: "unwrapped"}}}
			b := e.Bounded()
			raw, _ := manifest.Marshal(b.Object())
			size := len(manifest.EscapeJSON(raw)) + 280
			for _, s := range b.Steps {
				size += len(manifest.EscapeJSON(s.Params))
			}
			if size > 900 {
				t.Fatalf("%d times %q: %d bytes: %s", n, text, size, raw)
			}
			if n < 20 && (b.Corrected == nil || len(b.Steps) != 2) {
				t.Fatalf("%d times %q: the correction is left out: %s", n, text, raw)
			}
		}
	}
}

// TestBoundedAtAnySize checks the bounds of errors with parts of random numbers and sizes. Parts that fit stay as they
// are.
func TestBoundedAtAnySize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	whole := 0
	for range 600 {
		longest, parts := 0, 0
		text := func() string {
			sizes := []int{0, 10, 30, 70, 160, 250, 400, 5000}
			size := sizes[r.IntN(len(sizes))]
			longest = max(longest, size)
			return strings.Repeat(`a "b" <x> `, size/10)
		}
		number := func() int {
			numbers := []int{0, 0, 0, 0, 1, 2, 3, 4, 12, 100}
			n := numbers[r.IntN(len(numbers))]
			parts += n
			return n
		}
		e := &host.Error{Code: host.InvalidArgs, Message: text(), Steps: []step.Step{}}
		for range number() {
			e.Details = append(e.Details, host.Detail{Parameter: text(), Provided: text(), Expected: text()})
		}
		for range number() {
			e.DidYouMean = append(e.DidYouMean, spelling.Near{Name: "plugin.Group.tool", Distance: 1})
		}
		for range number() {
			e.Changes = append(e.Changes, schema.Change{From: text(), To: text(), How: "renamed"})
		}
		for range number() {
			e.Denied = append(e.Denied, grant.Denial{Right: text(), Why: text()})
		}
		for range number() {
			e.Earlier, e.Effects = append(e.Earlier, text()), append(e.Effects, text())
		}
		if params := jsontext.Marshal(map[string]string{"text": text()}); r.IntN(2) == 0 {
			retry := step.Call("a.b", params)
			e.Corrected, e.Retry = params, &retry
		}
		b := e.Bounded()
		got, err := manifest.Marshal(b.Object())
		most := 1500
		if len(e.Details) == 1 {
			most = 900
		}
		if err != nil || len(got) > most {
			t.Fatalf("%d violations: %d bytes, %v: %s", len(e.Details), len(got), err, got)
		}
		if b.Retry != nil && (len(b.Retry.Params) > 240 || b.Corrected == nil) {
			t.Fatalf("the step repeats %d bytes, of %d that are offered", len(b.Retry.Params), len(b.Corrected))
		}
		if longest <= 70 && parts <= 1 {
			whole++
			if !reflect.DeepEqual(b, e) {
				t.Fatalf("%+v is short, and becomes %s", e, got)
			}
		}
	}
	if whole == 0 {
		t.Error("no error was short")
	}
}

// TestWhatCountsLeastGoesFirst checks for each part of which an error may have many that some remain, and that the
// corrected parameters remain with them.
func TestWhatCountsLeastGoesFirst(t *testing.T) {
	params := json.RawMessage(`{"title":"` + strings.Repeat("x", 150) + `"}`)
	for part, add := range map[string]func(e *host.Error){
		"names": func(e *host.Error) {
			e.DidYouMean = append(e.DidYouMean, spelling.Near{Name: "plugin.Group.someTool", Distance: 1})
		},
		"details": func(e *host.Error) {
			e.Details = append(e.Details, host.Detail{Parameter: "/some/parameter", Keyword: "type", Provided: "a string",
				Expected: "number"})
		},
		"rights": func(e *host.Error) {
			e.Denied = append(e.Denied, grant.Denial{Right: "fs:ro:PATH=/data", Why: "reads"})
		},
		"effects": func(e *host.Error) { e.Effects = append(e.Effects, "an effect of the call that was made before") },
		"changes": func(e *host.Error) { e.Changes = append(e.Changes, schema.Change{From: "size", To: "length"}) },
		"earlier": func(e *host.Error) { e.Earlier = append(e.Earlier, "/size: expected a number of at least 1") },
	} {
		retry := step.Call("a.b", params)
		e := &host.Error{Code: host.InvalidArgs, Message: "It does not work.", Corrected: params, Retry: &retry}
		for range 100 {
			add(e)
		}
		b := e.Bounded()
		left := map[string]int{"names": len(b.DidYouMean), "details": len(b.Details), "rights": len(b.Denied),
			"effects": len(b.Effects), "changes": len(b.Changes), "earlier": len(b.Earlier)}[part]
		most := map[string]int{"names": 3, "details": 11, "rights": 3, "effects": 3, "changes": 6, "earlier": 1}[part]
		if left == 0 && part != "earlier" || left > most || string(b.Corrected) != string(params) || b.Retry == nil {
			t.Errorf("of 100 %s %d remain, with %s and %v", part, left, b.Corrected, b.Retry)
		}
	}
}

// TestViolationsAreCounted checks that as many violations as fit are listed and the others counted, also where it is
// bounded twice, and that no value with a violation in it is said to be as given.
func TestViolationsAreCounted(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for n := 2; n <= 60; n++ {
		e := &host.Error{Code: host.InvalidArgs, Message: fmt.Sprintf("Tool 'a.b' failed: %d violations", n),
			Template: jsontext.Marshal(map[string]string{"steps": long, "note": long})}
		for i := range n {
			at := fmt.Sprintf("/steps/%d/ride", i)
			e.Details = append(e.Details, host.Detail{Parameter: at, Keyword: "enum", Provided: `string "car"`,
				Expected: `one of "bus", "tram"`})
			e.Changes = append(e.Changes, schema.Change{From: at, How: "dropped"})
		}
		b := e.Bounded().Bounded()
		listed, more := len(b.Details), 0
		if last := b.Details[listed-1]; last.Keyword == "more" {
			listed--
			_, _ = fmt.Sscanf(last.Expected, "%d more violation", &more)
		}
		if listed+more != n || listed < min(n, 8) {
			t.Errorf("of %d violations %d are listed and %d counted", n, listed, more)
		}
		want := `{"note":"<note: 3.0 kB, as given>",` +
			`"steps":"<steps: 3.0 kB, with its errors corrected>"}`
		if got := string(b.Template); got != want {
			t.Errorf("%d violations: the template is %s", n, got)
		}
	}
}

// TestTimeoutNamesParameters checks that the advice of a timeout does not repeat long parameters.
func TestTimeoutNamesParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, call.Config{}, &preparer{fake: newFake(t, shop, nil), ready: time.Now()})
		params := `{"note":"` + strings.Repeat("x", 1_000_000) + `"}`
		a, _ := h.Call(t.Context(), host.Call{Name: "shop.order.slow", Principal: cli, Params: json.RawMessage(params)})
		e := failsWith(t, a, host.Timeout)
		if len(a.Steps) != 0 || !strings.Contains(e.Message, "(1.0 MB) and a longer timeout, such as 20s") {
			t.Errorf("%.300s %.300s", e.Message, fmt.Sprint(a.Steps))
		}
	})
}
