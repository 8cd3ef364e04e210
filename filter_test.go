package parley_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/internal/testhome"
)

// TestSandboxFilter checks the option jq of callers that bring no filter of their own: it runs in the sandbox, within
// the time of the call.
func TestSandboxFilter(t *testing.T) {
	p, err := parley.Open(t.Context(), parley.Config{Home: testhome.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	h, err := p.Host()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(filter string, timeout time.Duration) *host.Answer {
		answer, _ := h.Call(t.Context(), host.Call{
			Name: "text.count", Principal: caller.Principal{Name: "mcp:test"}, Params: json.RawMessage(`{"text":"one two"}`),
			Options: job.Options{JQ: filter, Timeout: timeout},
		})
		return answer
	}
	for filter, want := range map[string]string{
		".words": "2", ".words, .lines": "[2,1]", "empty": "[]",
		".words # two": "2",
	} {
		if a := ask(filter, 0); a.Err != nil || string(a.Data) != want {
			t.Errorf("%s: %s, %v; want %s", filter, a.Data, a.Err, want)
		}
	}
	for _, c := range []struct {
		filter  string
		timeout time.Duration
		code    host.Code
		says    string
	}{
		{`error("no")`, 0, host.InvalidArgs, "no"},
		{".words[", 0, host.InvalidArgs, "not closed"},
		{"range(20000)", 0, host.LimitExceeded, "more than 10000 outputs"},
		{`"x" * 5000000`, 0, host.LimitExceeded, "4 MiB"},
		{"until(false; .)", time.Second, host.Timeout, ""},
		{"env.HOME, $ENV.HOME | error", 0, host.InvalidArgs, ""},
	} {
		began := time.Now()
		a := ask(c.filter, c.timeout)
		if a.Err == nil || a.Err.Code != c.code || !strings.Contains(a.Err.Message, c.says) {
			t.Errorf("%s: %s, %v; want %s with %q", c.filter, a.Data, a.Err, c.code, c.says)
		}
		if took := time.Since(began); c.code == host.Timeout && took > 10*c.timeout {
			t.Errorf("%s ended after %s", c.filter, took)
		}
	}
}

// TestFilterSeesWholeResult checks that the bound of a result does not apply to what a filter makes smaller.
func TestFilterSeesWholeResult(t *testing.T) {
	p, err := parley.Open(t.Context(), parley.Config{Home: testhome.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	h, err := p.Host()
	if err != nil {
		t.Fatal(err)
	}
	const length = 1 << 20
	params := json.RawMessage(`{"to":"hex","text":"` + strings.Repeat("x", length) + `"}`)
	for filter, want := range map[string]string{"": "", ".text | length": strconv.Itoa(2 * length)} {
		a, _ := h.Call(t.Context(), host.Call{
			Name: "text.encode", Principal: caller.Principal{Name: "mcp:test"}, Params: params,
			Options: job.Options{JQ: filter},
		})
		if want != "" && (a.Err != nil || string(a.Data) != want) {
			t.Errorf("%s: %.99s, %v; want %s", filter, a.Data, a.Err, want)
		}
		if want == "" && (a.Err == nil || a.Err.Code != host.LimitExceeded) {
			t.Errorf("without a filter: %.99s, %v; want limit_exceeded", a.Data, a.Err)
		}
	}
}
