package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-tools/parley/bench/internal/tree"
	"github.com/parley-tools/parley/internal/testhome"
)

// parley copies the binary once for all tests, in a folder of its own.
var parley = sync.OnceValues(func() (binary string, err error) {
	folder, err := os.MkdirTemp("", "parley-agent-")
	if err != nil {
		return "", err
	}
	parleyFolder = folder
	binary = filepath.Join(folder, "parley.exe") // a name that every system runs
	return binary, testhome.CopyProgram(binary)
})

// parleyFolder is the folder that parley made, "" if no test needed it.
var parleyFolder string

func TestMain(m *testing.M) {
	code := m.Run()
	if parleyFolder != "" {
		os.RemoveAll(parleyFolder)
	}
	os.Exit(code)
}

func binary(t *testing.T) string {
	t.Helper()
	built, err := parley()
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// TestFirstCall goes from no knowledge to the first result through both front ends, for Chrome, a plugin in Go and a
// plain WASI command. Help, search, open and call take at most 4 calls and 1,500 tokens.
func TestFirstCall(t *testing.T) {
	url, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	home := testhome.New(t)
	t.Cleanup(func() { must(t, home, "cdp", "close", "--all") })
	must(t, home, "plugin", "install", filepath.Join("..", "..", "testdata", "wasm", "rev.wasm"))
	for _, c := range []struct {
		name string
		goal goal
		want string
	}{
		{"Chrome", goal{"evaluate JavaScript in the page", map[string]any{"url": url, "expression": "document.title"}},
			"Harbour"},
		{"a plugin in Go", goal{"compute a checksum of a text", map[string]any{"text": "hello"}}, "2cf24dba"},
		{"a WASI command", goal{"write a text backwards", map[string]any{"text": "abc"}}, "cba"},
	} {
		// The command line comes second: the browser of the MCP client may still run then, with no page.
		for _, by := range []string{"MCP", "the command line"} {
			var f frontend = &client{binary: binary(t), home: home}
			if by == "the command line" {
				f = &shell{binary: binary(t), home: home}
			}
			t.Run(c.name+" by "+by, func(t *testing.T) {
				if c.name == "Chrome" {
					needBrowser(t)
					defer must(t, home, "cdp", "close")
				}
				defer f.close()
				r, err := firstCall(t.Context(), f, c.goal)
				t.Logf("%d calls, %d tokens:\n%s", r.calls, r.tokens, strings.Join(r.story, "\n"))
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(r.data), c.want) {
					t.Errorf("the result is %s, want %q in it", r.data, c.want)
				}
				if r.calls > 4 || r.tokens > 1500 {
					t.Errorf("%d calls and %d tokens, at most 4 and 1500 are allowed", r.calls, r.tokens)
				}
			})
		}
	}
}

// TestPrompts checks that a short prompt and a short list together save at least 78 %.
func TestPrompts(t *testing.T) {
	all, err := startAll(t.Context(), binary(t), testhome.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + promptsTable(all))
	for i := 2; i < len(all); i++ {
		if saved(all, i) < 0.78 {
			t.Errorf("%s saves %.0f %%", all[i].name, 100*saved(all, i))
		}
	}
}

// TestWhatIsLearnt checks that the agent has no knowledge except from help and lists.
func TestWhatIsLearnt(t *testing.T) {
	var h help
	text := `{"commands":[{"name":"search QUERY","options":[{"name":"--json"}],"more_options":["--tier"]}]}`
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]bool{"search": true, "--json": true, "--tier": true, "sea": false, "call": false,
		"--params": false} {
		if h.names(word) != want {
			t.Errorf("%s: %v", word, !want)
		}
	}
	if got := strings.Join(parameters("hash(text: string, algorithm?: string)"), " "); got != "text algorithm?" {
		t.Error(got)
	}
	if got := required("list()"); len(got) != 0 {
		t.Error(got)
	}
	if _, ok := fill([]string{"text"}, map[string]any{"txt": "x"}); ok {
		t.Error("fill invented a parameter")
	}
}

// must runs a command that has to succeed.
func must(t *testing.T, home string, args ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // it is cancelled before cleanups run
	a, err := (&shell{binary: binary(t), home: home}).run(ctx, args...)
	if err != nil || a.failed {
		t.Errorf("parley %s: %v %s", strings.Join(args, " "), err, a.text)
	}
}

// needBrowser skips the test if there is no Chrome. With CI=true that is a failure.
func needBrowser(t *testing.T) {
	t.Helper()
	cmd := exec.Command(binary(t), "doctor", "--json")
	cmd.Env = tree.Environment(t.TempDir())
	var out bytes.Buffer
	cmd.Stdout = &out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var answer struct {
		Data struct {
			Checks []struct{ Name, Status string }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		t.Fatalf("parley doctor --json: %v in %s", err, out.Bytes())
	}
	for _, c := range answer.Data.Checks {
		if c.Name == "chrome" && c.Status == "ok" {
			return
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no browser was found, and nothing may be skipped here; run make setup")
	}
	t.Skip("needs Chromium; run make setup")
}
