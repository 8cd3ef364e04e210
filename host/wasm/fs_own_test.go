package wasm

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/protect"
)

// TestOwnFiles checks that a guest cannot reach the host's own files by hard links in its folder, nor by a folder
// whose name was replaced by a link to them, both in this process and isolated.
func TestOwnFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no identity")
	}
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, filepath.FromSlash(name)) }
	for _, dir := range []string{"config/deep", "work", "keys"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"config/policy.toml": "policy", "config/deep/record": "record",
		"keys/token": "secret", "work/file": "file"} {
		if err := os.WriteFile(at(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"config/policy.toml": "linked", "config/deep/record": "deep"} {
		if err := os.Link(at(from), at("work/"+to)); err != nil {
			t.Skipf("hard links are not supported: %v", err)
		}
	}
	for name, target := range map[string]string{"work/by-link": "linked", "swapped": "config", "above": "."} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	own := &protect.Files{Folders: []protect.Folder{{Name: "config", Path: at("config")}},
		Secrets: func() []string { return []string{at("keys/token")} }}
	p := localGuest(t, testEngine(t), "probe")
	mode := "rw"
	call := func(isolated bool, folder string, args ...string) string {
		r := requestFor(t, p, "run", argParams(args...))
		r.Grant = grant.Grant{FS: []grant.FS{{Path: "/data", Source: at(folder), Mode: mode}}}
		r.Guard = own.Guard()
		run := invokeRequest
		if isolated {
			run = invokeIsolated
		}
		result, err := run(t, p, r)
		if err != nil {
			return string(err.Code) + " " + err.Message
		}
		return string(result.Data)
	}
	for _, isolated := range []bool{false, true} {
		for _, args := range [][]string{{"read", "/data/linked"}, {"read", "/data/by-link"}, {"write", "/data/linked", "x"},
			{"append", "/data/linked", "x"}, {"trunc", "/data/linked"}, {"truncate", "/data/linked"}, {"read", "/data/deep"}} {
			if got := call(isolated, "work", args...); !strings.Contains(got, "errno") {
				t.Errorf("isolated %v: %v: %s", isolated, args, got)
			}
		}
		if got := call(isolated, "work", "read", "/data/file"); !strings.Contains(got, "file") {
			t.Errorf("isolated %v: %s", isolated, got)
		}
		// A guest that may rename the file of a secret could read it under its new name.
		if got := call(isolated, "keys", "read", "/data/token"); !strings.HasPrefix(got, "denied") {
			t.Errorf("isolated %v: a folder with a secret was mounted for writing: %s", isolated, got)
		}
		mode = "ro"
		if got := call(isolated, "keys", "read", "/data/token"); !strings.Contains(got, "errno") {
			t.Errorf("isolated %v: a secret was read: %s", isolated, got)
		}
		mode = "rw"
		for _, folder := range []string{"swapped", "above", "config"} {
			if got := call(isolated, folder, "read", "/data/policy.toml"); !strings.HasPrefix(got, "denied") {
				t.Errorf("isolated %v: %s was mounted: %s", isolated, folder, got)
			}
		}
	}
	if data, err := os.ReadFile(at("config/policy.toml")); string(data) != "policy" {
		t.Errorf("the policy was changed to %q (%v)", data, err)
	}
}
