package call_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/protect"
)

// TestHanded checks that a tool gets texts instead of the files that its caller names, that a built-in tool gets copies
// for them within the same call, and which files a caller may name.
func TestHanded(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	write := func(path, content string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	up, own := filepath.Join(dir, "up"), filepath.Join(dir, "own")
	for _, path := range []string{up, own} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mine, others := write(filepath.Join(up, "a b.txt"), "content"), write(filepath.Join(dir, "other.txt"), "other")
	secret := write(filepath.Join(own, "key"), "secret")
	leaving, hard := filepath.Join(up, "leaving"), filepath.Join(up, "hard")
	if err := os.Symlink(others, leaving); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(secret, hard); err != nil {
		t.Fatal(err)
	}

	var again string // a text of an earlier call
	web := newFake(t, strings.NewReplacer(`{"files": {}`, `{"files": {"x-handed": true}`,
		`"effect": "read", "reach": "machine"`, `"effect": "write", "reach": "machine"`).Replace(browser), map[string]handler{
		"upload": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			var p struct{ Files []string }
			if err := json.Unmarshal(r.Params, &p); err != nil {
				return nil, err
			}
			if again != "" {
				p.Files = []string{again}
			}
			again = p.Files[0]
			params, _ := json.Marshal(map[string]any{"title": p.Files[0]})
			return callTool(ctx, r, "shop.add", params, "")
		}})
	shop := newFake(t, shopNamed("shop"), map[string]handler{
		"add": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			var p struct{ Title string }
			if err := json.Unmarshal(r.Params, &p); err != nil {
				return nil, err
			}
			path, err := host.AskFor[string](ctx, r, job.AskSharedFile,
				job.SharedFileArgument{Text: p.Title, Folder: folder})
			if err != nil {
				return nil, err
			}
			content, err := os.ReadFile(path)
			if err != nil || filepath.Base(path) != "a b.txt" || string(content) != "content" {
				t.Errorf("%s has %q, %v", path, content, err)
			}
			return &job.Result{Data: json.RawMessage(`{"id":1}`)}, nil
		}}).builtin()
	h := newHost(t, call.Config{Own: &protect.Files{Folders: []protect.Folder{{Path: own, Name: "state"}}},
		Policy: policy(func(a host.Ask) (host.Decision, error) {
			d := host.Decision{Verdict: host.Allow, Grant: grant.Grant{Tools: []string{"shop.add"}}}
			if strings.HasPrefix(a.Principal.Name, "mcp:") {
				d.Files = []string{up}
			}
			return d, nil
		})}, web, shop)
	upload := func(who, path string) *host.Error {
		t.Helper()
		params, _ := json.Marshal(map[string]any{"files": []string{path}})
		a, _ := h.Call(t.Context(), host.Call{Name: "web.upload", Params: params, Principal: caller.Principal{Name: who}})
		return a.Err
	}
	for _, caller := range []string{"cli", "mcp:some"} {
		again = ""
		if err := upload(caller, mine); err != nil {
			t.Fatalf("%s: %v", caller, err)
		}
		if !regexp.MustCompile(`^handed:[0-9a-f]{16}/7/a b\.txt$`).MatchString(again) {
			t.Errorf("%s: the tool got %s", caller, again)
		}
		if err := upload(caller, mine); err == nil || !strings.Contains(err.Message, "not a file that was handed") {
			t.Errorf("%s: a text of an earlier call: %v", caller, err)
		}
	}
	again = ""
	for path, says := range map[string]string{others: "not a file in a folder", leaving: "not a file in a folder",
		hard: "not a file in a folder", up: "not a file in a folder", secret: "not a file in a folder",
		filepath.Join(up, "none"): "does not exist"} {
		if err := upload("mcp:some", path); err == nil || !strings.Contains(err.Message, says) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, says := range map[string]string{up: "is not a regular file", filepath.Join(up, "none"): "does not exist",
		"/dev/zero": "is not a regular file"} {
		if err := upload("cli", path); err == nil || !strings.Contains(err.Message, says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
