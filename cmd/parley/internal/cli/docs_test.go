package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host/commandline"
	"github.com/parley-tools/parley/host/docs"
	"github.com/parley-tools/parley/host/learn/tutorial"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
)

// TestAuditCountsTheWire checks that docs audit counts the bytes that parley mcp sends in a mode.
func TestAuditCountsTheWire(t *testing.T) {
	home := testhome.New(t)
	run := func(in string, args ...string) string {
		var out, errs strings.Builder
		env := func(name string) string {
			return map[string]string{"PARLEY_HOME": home, "PARLEY_PINNED_TOOLS": "text.hash,cdp.Page.navigate"}[name]
		}
		if code := Main(args, &command.Streams{In: strings.NewReader(in), Out: &out, Err: &errs, Env: env}); code != 0 {
			t.Fatalf("parley %s exits with %d: %s", strings.Join(args, " "), code, errs.String())
		}
		return out.String()
	}
	var audit struct{ Data docs.Audit }
	if err := json.Unmarshal([]byte(run("", "docs", "audit", "--json")), &audit); err != nil {
		t.Fatal(err)
	}
	if len(audit.Data.Modes) != len(mcp.Modes()) {
		t.Fatalf("%d modes", len(audit.Data.Modes))
	}
	for _, m := range audit.Data.Modes {
		const asked = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
			`"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`
		for line := range strings.Lines(run(asked, "mcp", "--docs", m.Mode)) {
			var answer struct {
				ID     int
				Result struct{ Tools json.RawMessage }
			}
			if err := json.Unmarshal([]byte(line), &answer); err != nil {
				t.Fatal(err)
			}
			if sent := len(answer.Result.Tools); answer.ID == 2 && (sent != m.Bytes || manifest.TokensOf(sent) != m.Tokens) {
				t.Errorf("%s sends %d bytes, docs audit counts %d, %d tokens", m.Mode, sent, m.Bytes, m.Tokens)
			}
		}
	}
}

// TestTutorialsRun runs every step of every shipped tutorial against the real tools, and checks that parley learn sees
// each step and continues with the next.
func TestTutorialsRun(t *testing.T) {
	for _, plugin := range []string{"cdp", "json", "page", "text"} {
		t.Run(plugin, func(t *testing.T) {
			if plugin == "cdp" {
				needBrowser(t)
			}
			home, err := os.MkdirTemp("", "parley-learn-") // short, for the keeper's socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(home) })
			if err := testhome.Fill(home); err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir()) // where a step writes its file
			env := func(name string) string {
				if value, set := map[string]string{"PARLEY_HOME": home, "PARLEY_SESSION": "learner"}[name]; set {
					return value
				}
				return os.Getenv(name)
			}
			run := func(args ...string) (out, errs string, code int) {
				var o, e strings.Builder
				code = Main(args, &command.Streams{In: strings.NewReader(""), Out: &o, Err: &e, Env: env})
				return o.String(), e.String(), code
			}
			t.Cleanup(func() { run("cdp", "close") })
			progress := func() tutorial.Progress {
				var answer struct{ Data tutorial.Progress }
				out, errs, code := run("learn", plugin, "--json")
				if err := json.Unmarshal([]byte(out), &answer); err != nil {
					t.Fatal(err, code, errs)
				}
				return answer.Data
			}
			seen := 0
			for range progress().Steps {
				p := progress()
				if p.Finished {
					break
				}
				for _, s := range p.Due() {
					words, ok := commandline.Words(s.Run)
					if !ok || words[0] != "parley" || s.Say == "" {
						t.Fatalf("step %d is not a command: %q", s.Step, s.Run)
					}
					if _, errs, code := run(words[1:]...); code != s.ExitCode {
						t.Fatalf("step %d, %s, exits with %d instead of %d: %s", s.Step, s.Run, code, s.ExitCode, errs)
					}
					seen = s.Step
				}
				if after := progress(); after.Done != seen {
					t.Fatalf("after step %d learn shows %+v", seen, after)
				}
			}
			if p := progress(); !p.Finished || p.Done != len(p.Steps) || seen < 5 {
				t.Errorf("after the last step: %+v", p)
			}
		})
	}
}
