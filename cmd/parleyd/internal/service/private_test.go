package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// writePolicy writes the policy of the service.
func writePolicy(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(os.Getenv("PARLEY_HOME"), "config", "policy.toml")
	_ = os.MkdirAll(filepath.Dir(path), 0o700)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPathsStay breaks one part of the data folder after the other: whatever fails then, no answer has a path of this
// machine.
func TestPathsStay(t *testing.T) {
	f := start(t, "confirm_wait = \"1ms\"")
	home := os.Getenv("PARLEY_HOME")
	writePolicy(t, "[callers.\"mcp-http:alice\"]\nallow = [\"*\"]\nconfirm = [\"effect:write\"]\n")
	s, err := connect(f.url+"/mcp", client{token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	failed := 0
	for _, part := range []string{"", "config/policy.toml", "config/grants.toml", "config/trusted.keys", "state/approvals",
		"state/audit", "state/sessions", "state/traces", "state", "run", "data/plugins", "data"} {
		path := filepath.Join(home, part)
		aside := path + ".aside"
		if part != "" {
			_ = os.Rename(path, aside)
			_ = os.MkdirAll(filepath.Dir(path), 0o700)
			if strings.HasSuffix(part, ".toml") {
				err = os.MkdirAll(filepath.Join(path, "a folder"), 0o700)
			} else {
				err = os.WriteFile(path, []byte("[a file"), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for name, params := range map[string]string{
			"text.hash": `{"text":"a"}`, "cdp.Network.setCookie": `{"name":"a","value":"b","url":"http://a.test"}`,
			"page.snapshot": `{}`, "cdp.open": `{}`,
		} {
			text, err := call(s, name, params, `{}`)
			if err != nil {
				text = err.Error()
			}
			if strings.Contains(text, home) {
				t.Errorf("%s is broken: %s answers %s", part, name, text)
			}
			if strings.Contains(text, `"isError":true`) {
				failed++
			}
		}
		for _, uri := range []string{"parley://docs/text", "parley://result/c1"} {
			if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err != nil &&
				strings.Contains(err.Error(), home) {
				t.Errorf("%s is broken: reading %s answers %v", part, uri, err)
			}
		}
		if part != "" {
			_ = os.RemoveAll(path)
			_ = os.Rename(aside, path)
		}
	}
	if failed < 20 {
		t.Errorf("only %d calls failed", failed)
	}
}
