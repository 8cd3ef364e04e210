package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/internal/foreign"
)

// TestInspector lets the inspector of MCP, a client by others, list and call over stdio and HTTP in both eras of the protocol. What is
// listed must be portable by its --strict, in each mode.
func TestInspector(t *testing.T) {
	modules, node := foreign.NodeForTest(t, "../../../..")
	parley, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	install := exec.Command(parley, "plugin", "install", "../../../../testdata/wasm/rev.wasm")
	install.Env = append(os.Environ(), "PARLEY_HOME="+home)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	inspect := func(t *testing.T, args ...string) (result json.RawMessage, said string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, append([]string{
			filepath.Join(modules, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli", "--format", "json", "--connect-timeout", "60000"}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // it keeps files there
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, &stdout, &stderr)
		}
		var answer struct{ Result json.RawMessage }
		if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
			t.Fatalf("%q: %v in %s", args, err, &stdout)
		}
		return answer.Result, stderr.String()
	}
	s := serveHTTP(t, home, 2)
	_, header, _ := strings.Cut(s.said[0], ": ")
	wires := map[string][]string{
		"stdio": {parley, "mcp", "-e", "PARLEY_HOME=" + home},
		"http":  {"--server-url", s.url, "--transport", "http", "--header", "Authorization: " + header},
	}
	for name, wire := range wires {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(name+" "+era, func(t *testing.T) {
				t.Parallel()
				listed, said := inspect(t, slices.Concat(wire, []string{"--protocol-era", era, "--method", "tools/list", "--strict"})...)
				var list struct{ Tools []struct{ Name string } }
				if err := json.Unmarshal(listed, &list); err != nil || len(list.Tools) != 3 || said != "" {
					t.Errorf("tools/list: %s %v, and it said %s", listed, err, said)
				}
				called, _ := inspect(t, slices.Concat(wire, []string{"--protocol-era", era, "--method", "tools/call", "--tool-name", "call_tool",
					"--tool-args-json", `{"name":"rev.word","arguments":{"text":"abc"}}`})...)
				if !strings.Contains(string(called), `"text":"cba`) {
					t.Errorf("tools/call: %s", called)
				}
			})
		}
	}
	for _, mode := range mcp.Modes() {
		t.Run("strict "+mode, func(t *testing.T) {
			t.Parallel()
			// Full mode lists parameters that take any JSON value, of which it warns: they do.
			_, said := inspect(t, parley, "mcp", "--docs", mode, "-e", "PARLEY_HOME="+home, "--method", "tools/list", "--strict")
			if mode != mcp.Full && said != "" || strings.Contains(said, "Error:") {
				t.Errorf("it said %s", said)
			}
		})
	}
}
