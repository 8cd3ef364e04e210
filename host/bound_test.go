package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// TestBounded checks that an error stays within its bounds, whatever is long in it, and says what was left out of a
// correction.
func TestBounded(t *testing.T) {
	long := strings.Repeat("<x\"", 50_000)
	raw := json.RawMessage(fmt.Sprintf(`{"text":%q,"algorithm":"md5"}`, long))
	many := func(n int) *host.Error {
		e := &host.Error{Code: host.InvalidArgs, Message: long, Corrected: raw, Template: raw, Earlier: []string{long, long},
			Effects: []string{long}, Tool: &host.ToolError{Exit: 10, Name: "x", Details: raw},
			Protocol: &host.ProtocolError{Message: long, Data: long}, Retry: &host.Step{Op: host.OpCall, Params: raw}}
		for range n {
			e.Details = append(e.Details, host.Detail{Parameter: "/" + long, Provided: long, Expected: long,
				Suggestion: host.TextSuggestion(long)})
			e.Changes = append(e.Changes, host.Change{From: long, To: long, How: "renamed"})
			e.Denied, e.DidYouMean = append(e.Denied, host.Denial{Right: long, Why: long}), append(e.DidYouMean,
				host.NearName{Name: "x"})
			e.Steps = append(e.Steps, host.CallStep("a.b", raw), host.DescribeStep("a.b", 2))
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
		if len(e.Details) != n || len(e.Message) != len(long) {
			t.Errorf("the error itself has changed: %d details", len(e.Details))
		}
	}
	e := &host.Error{Code: host.InvalidArgs, Message: "x", Corrected: raw}
	if got := string(e.Object().Template); e.Object().Corrected != nil ||
		got != `{"algorithm":"md5","text":"<text: 200.0 kB, as given>"}` {
		t.Errorf("the template is %s", got)
	}
}

// TestTimeoutNamesParameters checks that the advice of a timeout does not repeat long parameters.
func TestTimeoutNamesParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, host.Config{}, &preparer{fake: newFake(t, shop, nil), ready: time.Now()})
		params := `{"note":"` + strings.Repeat("x", 1_000_000) + `"}`
		a, _ := h.Call(t.Context(), host.Call{Name: "shop.order.slow", Caller: "cli", Params: json.RawMessage(params)})
		e := failsWith(t, a, host.Timeout)
		if len(a.Steps) != 0 || !strings.Contains(e.Message, "a timeout of 20s, with its parameters (1.0 MB) as given") {
			t.Errorf("%.300s %.300s", e.Message, fmt.Sprint(a.Steps))
		}
	})
}
