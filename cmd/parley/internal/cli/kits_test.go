package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/internal/foreign"
)

// TestKitsThatCannotAsk has three kits that agents are made with, none of which asks a person, call a destructive tool:
// each call goes on when a person allows it with parley approvals, and is refused when a person denies it.
func TestKitsThatCannotAsk(t *testing.T) {
	t.Parallel()
	modules, node := foreign.NodeForTest(t, "../../../..")
	parley, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	home, work := shortHome(t), t.TempDir()
	wasm, err := os.ReadFile("../../../../testdata/wasm/smallest.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		filepath.Join(work, "store.wasm"): wasm,
		filepath.Join(work, "store.manifest.json"): []byte(`{"manifest": 1, "name": "store", "version": "1.0.0",
			"kind": "parley/1", "docs": {"brief": "Keep orders"}, "tools": [{"name": "empty", "effect": "destructive",
			"docs": {"brief": "Delete all orders"}, "params": {"type": "object", "additionalProperties": false}}]}`),
		filepath.Join(home, "config/policy.toml"): []byte("[operator]\nallow_yes = true\n"),
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) []byte {
		t.Helper()
		out, err := homeCommand(home, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("parley %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	run("plugin", "install", filepath.Join(work, "store.wasm"))
	for _, kit := range []string{"ai-sdk", "openai-agents", "langchain"} {
		for _, allows := range []bool{true, false} {
			var out bytes.Buffer
			script := filepath.Join(modules, "../kits.mjs")
			cmd := exec.CommandContext(t.Context(), node, script, kit, parley, "store.empty", "{}")
			cmd.Env = append(os.Environ(), "PARLEY_HOME="+home)
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var open struct {
				Data struct{ Approvals []approval.Approval }
			}
			for began := time.Now(); len(open.Data.Approvals) == 0; time.Sleep(50 * time.Millisecond) {
				if time.Since(began) > time.Minute {
					_ = cmd.Process.Kill()
					t.Fatalf("%s asked for no approval: %s", kit, out.String())
				}
				if err := json.Unmarshal(run("approvals", "list", "--json"), &open); err != nil {
					t.Fatal(err)
				}
			}
			if a := open.Data.Approvals[0]; allows {
				run("approvals", "allow", a.ID, "--yes")
			} else {
				run("approvals", "deny", a.ID, "not", "now")
			}
			_ = cmd.Wait() // a kit may report the error of a tool as its own
			if denied := strings.Contains(out.String(), "not confirmed (not now)"); denied == allows {
				t.Errorf("%s, allowed %t: %s", kit, allows, out.String())
			}
		}
	}
	calls := run("audit", "show", "--tool", "store.empty", "--json")
	if ok := bytes.Count(calls, []byte(`"code":"ok"`)); ok != 3 {
		t.Errorf("%d calls succeeded: %s", ok, calls)
	}
}
