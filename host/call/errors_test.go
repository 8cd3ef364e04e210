package call_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest/spelling"
)

var update = flag.Bool("update", false, "rewrite the golden files of this package")

// TestOutcomes checks the table of exit codes, on which agents rely.
func TestOutcomes(t *testing.T) {
	const promised = `0 ok · 1 tool_failed · 80 invalid_url · 81 invalid_args · 82 denied · 83 not_found · 84 already_exists · 85 busy · 86 invalid_plugin ·
		87 integrity · 88 config_error · 100 chrome_launch · 101 chrome_connection · 102 timeout · 103 trapped · 104 limit_exceeded ·
		105 unavailable · 106 invalid_result · 107 target_crashed · 110 internal · 130 interrupted · 143 terminated`
	var got []string
	for _, o := range host.Outcomes() {
		got = append(got, fmt.Sprintf("%d %s", o.Exit, o.Code))
		if m := o.Meaning(); !strings.HasPrefix(m, string(o.Code)) || len(m) > 60 {
			t.Errorf("%s: meaning %q", o.Code, m)
		}
		if o.Code != host.OK {
			if e := host.Errorf(o.Code, "x"); e.ExitCode() != o.Exit {
				t.Errorf("%s has the exit code %d", o.Code, e.ExitCode())
			}
		}
	}
	if want := strings.Join(strings.Fields(promised), " "); strings.Join(got, " · ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " · "), want)
	}
	host.Outcomes()[0].Exit = 99
	if host.Outcomes()[0].Exit != 0 {
		t.Error("a change of the returned table changes the outcomes")
	}
	if (&host.Error{Code: host.ToolFailed, Exit: 42}).ExitCode() != 42 ||
		(&host.Error{Code: "unheard of"}).ExitCode() != 110 {
		t.Error("expected a tool's own exit code, and 110 for an unknown code")
	}
}

func TestAsError(t *testing.T) {
	own := host.Errorf(host.Busy, "in use").WithSteps(step.List(""), step.List("shop"))
	if got := host.AsError(fmt.Errorf("around: %w", own)); got != own || len(got.Steps) != 2 {
		t.Errorf("got %+v", got)
	}
	got := host.AsError(fs.ErrNotExist)
	if got.Code != host.Internal || !errors.Is(got, fs.ErrNotExist) || got.Error() != fs.ErrNotExist.Error() {
		t.Errorf("got %+v", got)
	}
}

// TestObject compares the JSON form of errors, including names and order of fields, with golden files.
func TestObject(t *testing.T) {
	h := newHost(t, call.Config{}, newFake(t, shop, nil))
	docs, err := h.Describe(t.Context(), cli, "shop.order.cancel", 2)
	if err != nil {
		t.Fatal(err)
	}
	retry := step.Call("shop.order.cancel", json.RawMessage(`{"id":1}`))
	for name, e := range map[string]*host.Error{
		"invalid_args": {
			Code: host.InvalidArgs, Message: "Tool 'shop.order.cancel' failed: 1 violation",
			Details: []host.Detail{
				{Parameter: "/id", Keyword: "type", Provided: `string "x"`, Expected: "integer",
					Suggestion: &step.Suggestion{Pointer: "/id", Op: step.SuggestChoose, Value: "1"}},
				{Parameter: "/b", Keyword: "additionalProperties", Provided: "number 1", Expected: `one of "id"`},
			},
			Corrected: json.RawMessage(`{"id":1}`), Retry: &retry, Docs: docs, Cause: errors.New("never shown"),
			DidYouMean: []spelling.Near{{Name: "shop.order.cancel", Distance: 1}, {Name: "shop.order", Distance: 0}},
		},
		"of_tool": {
			Code: host.ToolFailed, Exit: 10, Message: "sold out",
			Tool: &host.ToolError{Exit: 10, Name: "sold_out", Details: json.RawMessage(`{}`)},
		},
		"of_chrome": {
			Code: host.ToolFailed, Exit: 12, Message: "no",
			Protocol: &host.ProtocolError{Code: -32000, Message: "no", Data: "more"},
			Denied:   []grant.Denial{{Right: "clock", Why: "time"}, {Right: "random"}},
		},
	} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		if err := enc.Encode(e.Object()); err != nil {
			t.Fatal(err)
		}
		golden(t, "error_"+name+".json", b.String())
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", path, got)
	}
}
