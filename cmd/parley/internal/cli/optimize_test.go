package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/internal/testhome"
)

// TestWorkedExample optimizes a tool whose text is full of its history, on the replayed recording of a model: the
// history goes, and the text says when to use the tool. docs/learning.md shows the output. The sessions were written by
// hand, so the figures say how the method counts, and little about the tool. With -update and PARLEY_MODEL_URL it
// records again.
func TestWorkedExample(t *testing.T) {
	home := testhome.New(t)
	env := map[string]string{"PARLEY_HOME": home}
	run := func(args ...string) string {
		t.Helper()
		var out, errs strings.Builder
		code := Main(args, &command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Width: 100,
			Env: func(name string) string { return env[name] }})
		if code != 0 {
			t.Fatalf("parley %s exits with %d: %s", strings.Join(args, " "), code, errs.String())
		}
		return out.String()
	}
	const dir = "testdata/optimize"
	wasm := filepath.Join(t.TempDir(), "webfetch.wasm")
	copyFile(t, "../../../../testdata/wasm/fetch.wasm", wasm)
	run("plugin", "pack", wasm, "--manifest", filepath.Join(dir, "webfetch.manifest.json"))
	run("plugin", "install", wasm)
	traces := filepath.Join(home, "state", "traces", time.Now().UTC().Format(time.DateOnly)+".jsonl")
	if err := os.MkdirAll(filepath.Dir(traces), 0o700); err != nil {
		t.Fatal(err)
	}
	copyFile(t, filepath.Join(dir, "traces.jsonl"), traces)
	rules := filepath.Join(home, "config", "policy.toml")
	if err := os.MkdirAll(filepath.Dir(rules), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rules, []byte("[operator]\nallow_yes = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	recording := filepath.Join(dir, "recording.jsonl")
	if url := os.Getenv("PARLEY_MODEL_URL"); *update && url != "" {
		env["PARLEY_MODEL_URL"], env["PARLEY_MODEL_NAME"] = url, os.Getenv("PARLEY_MODEL_NAME")
		env["PARLEY_MODEL_KEY"] = os.Getenv("PARLEY_MODEL_KEY")
		recordCalls(t, env, recording, run)
	}
	var d struct{ When, Description string }
	describe := func() {
		t.Helper()
		if err := json.Unmarshal([]byte(run("webfetch", "fetch", "--describe")), &d); err != nil {
			t.Fatal(err)
		}
	}
	history := regexp.MustCompile(`(?i)earlier|no longer|refuse|later extended|was added`)
	if describe(); !history.MatchString(d.Description) || d.When != "" {
		t.Errorf("before: %+v", d)
	}
	text := run("docs", "optimize", "webfetch.fetch", "--replay", recording, "--yes")
	if describe(); history.MatchString(d.Description) || !strings.Contains(d.When, "address") {
		t.Errorf("after: %+v", d)
	}
	shown, err := os.ReadFile("../../../../docs/learning.md")
	if err != nil {
		t.Fatal(err)
	}
	// The page shows a dry run, which is the same but for this line. A dry run of edits is tested by docs_edit.txtar.
	text = strings.Replace(text, " edits applied\n", " edits would be applied\n", 1)
	var block strings.Builder
	for line := range strings.Lines(text) {
		block.WriteString(strings.TrimRight("    "+line, " \n") + "\n")
	}
	if !bytes.Contains(shown, []byte(block.String())) {
		t.Errorf("docs/learning.md does not show this:\n%s", block.String())
	}
}

// recordCalls asks the model.
func recordCalls(t *testing.T, env map[string]string, recording string, run func(args ...string) string) {
	t.Helper()
	policy := filepath.Join(env["PARLEY_HOME"], "config", "policy.toml")
	if err := os.MkdirAll(filepath.Dir(policy), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(policy, []byte("[operator]\nallow_yes = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(recording); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	run("docs", "judge", "--yes", "--record", recording)
	run("docs", "optimize", "webfetch.fetch", "--yes", "--record", recording, "--dry-run")
	for _, name := range []string{"PARLEY_MODEL_URL", "PARLEY_MODEL_NAME", "PARLEY_MODEL_KEY"} {
		delete(env, name)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
