package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
)

// TestFailureSaysWhatWasDone prints what a call has done or caused before it failed: no later answer tells it.
func TestFailureSaysWhatWasDone(t *testing.T) {
	for details, want := range map[string]string{
		`{"step":3,"done":2,"results":[{"step":2,"result":{"value":"a\u001b"}}]}`: `Done before: [{"step":2,"result":`,
		`{"before":{"act":2,"changed":true}}`:                                     `Caused by an earlier act: {"act":2,`,
		`{"caused":{"downloads":["a.csv"]}}`:                                      `Caused: {"downloads":["a.csv"]}`, `{"other":1}`: "", ``: "",
	} {
		var shown strings.Builder
		a := &App{Streams: &Streams{Err: &shown}}
		writeErrorText(a, &host.Error{Message: "It failed", Tool: &host.ToolError{Details: json.RawMessage(details)}}, nil)
		lines := strings.Split(strings.TrimSpace(shown.String()), "\n")
		if last := lines[len(lines)-1]; want != "" && !strings.HasPrefix(last, want) || want == "" && len(lines) != 1 ||
			strings.Contains(last, "\x1b") {
			t.Errorf("%s: %q", details, shown.String())
		}
	}
}
