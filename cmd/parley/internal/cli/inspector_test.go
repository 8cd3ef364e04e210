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
	"github.com/parley-tools/parley/internal/testhome"
)

// TestInspector runs MCP's inspector, an independent client, over stdio and HTTP and in both eras of the protocol: it
// lists tools and calls one. In each mode the listed tools must pass its --strict check.
func TestInspector(t *testing.T) {
	t.Parallel()
	modules, node := foreign.NodeForTest(t, "../../../..")
	parley, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	home := testhome.New(t)
	install := exec.Command(parley, "plugin", "install", "../../../../testdata/wasm/rev.wasm")
	install.Env = append(os.Environ(), "PARLEY_HOME="+home)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	launcher := filepath.Join(modules, "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	inspect := func(t *testing.T, args ...string) (result json.RawMessage, warnings string) {
		t.Helper()
		args = append([]string{launcher, "--cli", "--format", "json", "--connect-timeout", "60000"}, args...)
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // it stores files there
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, &stdout, &stderr)
		}
		var response struct{ Result json.RawMessage }
		if err := json.Unmarshal(stdout.Bytes(), &response); err != nil {
			t.Fatalf("%q: %v in %s", args, err, &stdout)
		}
		return response.Result, stderr.String()
	}
	s := serveHTTP(t, home, 2)
	_, header, _ := strings.Cut(s.printed[0], ": ")
	transports := map[string][]string{
		"stdio": {parley, "mcp", "-e", "PARLEY_HOME=" + home},
		"http":  {"--server-url", s.url, "--transport", "http", "--header", "Authorization: " + header},
	}
	for name, transport := range transports {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(name+" "+era, func(t *testing.T) {
				t.Parallel()
				run := func(args ...string) (json.RawMessage, string) {
					return inspect(t, slices.Concat(transport, []string{"--protocol-era", era}, args)...)
				}
				listed, warnings := run("--method", "tools/list", "--strict")
				var list struct{ Tools []struct{ Name string } }
				if err := json.Unmarshal(listed, &list); err != nil || len(list.Tools) < 4 || warnings != "" {
					t.Errorf("tools/list: %s %v, with the warnings %s", listed, err, warnings)
				}
				called, _ := run("--method", "tools/call", "--tool-name", "call_tool",
					"--tool-args-json", `{"name":"rev.word","arguments":{"text":"abc"}}`)
				if !strings.Contains(string(called), `"text":"cba`) {
					t.Errorf("tools/call: %s", called)
				}
			})
		}
	}
	for _, mode := range mcp.Modes() {
		t.Run("strict "+mode, func(t *testing.T) {
			t.Parallel()
			// The inspector warns of parameters that accept any JSON value. In full mode there are such parameters.
			_, warnings := inspect(t, parley, "mcp", "--docs", mode, "-e", "PARLEY_HOME="+home,
				"--method", "tools/list", "--strict")
			if mode != mcp.Full && warnings != "" || strings.Contains(warnings, "Error:") {
				t.Errorf("the inspector warns: %s", warnings)
			}
		})
	}
}
