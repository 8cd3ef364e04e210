package wasm

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
)

// tree creates the folders "inside", which will be mounted, "outside", which must stay out of reach, and "other",
// which will be mounted, too. It returns the first two. There are links in both directions and files of all kinds.
func tree(t testing.TB) (inside, outside string) {
	t.Helper()
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, filepath.FromSlash(name)) }
	for _, dir := range []string{"inside/dir", "inside/empty", "outside/dir", "other"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{
		"inside/file": "content", "inside/dir/deep": "deep", "inside/read-only": "read-only",
		"outside/secret": "secret", "outside/dir/secret": "deep secret", "other/file": "other",
	}
	for name, content := range files {
		if err := os.WriteFile(at(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{
		"out-file": at("outside/secret"), "out-dir": at("outside"), "up": "../outside", "up-file": "../outside/secret",
		"root":    "/",
		"in-file": "file", "in-dir": "dir", "self": ".", "parent": "..", "round": "dir/../../inside/file", "loop": "loop",
		"ping": "pong", "pong": "ping",
		"new-outside": at("outside/new"), "dangling": "nothing", "proc": "/proc/self/root" + at("outside/secret"),
		"dir/up2": "../../outside",
	}
	for i := range 60 { // leaves the folder at the end of a chain
		links[fmt.Sprint("chain", i)] = fmt.Sprint("chain", i+1)
	}
	links["chain60"] = "../outside/secret"
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(at("inside"), filepath.FromSlash(name))); err != nil {
			t.Skipf("symbolic links are not supported: %v", err)
		}
	}
	makePipe(t, at("inside/pipe"))
	makeSocket(t, at("inside/socket"))
	if err := os.Chmod(at("inside/read-only"), 0o400); err != nil {
		t.Fatal(err)
	}
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	for name := range files {
		if err := os.Chtimes(at(name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	return at("inside"), at("outside")
}

// snapshot describes the content of folders, one line per file: name, type and permissions, times, link count, size
// and content.
func snapshot(t testing.TB, dirs ...string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprint(&b, path, ": ", info.Mode(), " ", info.ModTime().UTC().Format(time.RFC3339Nano), " ", linksTo(info))
			switch {
			case info.Mode().IsRegular():
				data, err := os.ReadFile(path)
				fmt.Fprintf(&b, " %d %x %v", info.Size(), sha256.Sum256(data), err)
			case info.Mode()&fs.ModeSymlink != 0:
				target, err := os.Readlink(path)
				fmt.Fprintf(&b, " %s %v", target, err)
			}
			b.WriteByte('\n')
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// changesIn returns the difference of two snapshots, "" if they are equal.
func changesIn(before, after string) string {
	var b strings.Builder
	was, is := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after))
	for _, line := range was {
		if !slices.Contains(is, line) {
			fmt.Fprint(&b, "was ", line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			fmt.Fprint(&b, "is  ", line)
		}
	}
	return b.String()
}

func runProbe(t *testing.T, p *Provider, grant grant.Grant, args ...string) string {
	t.Helper()
	r := requestFor(t, p, "run", argParams(args...))
	r.Grant = grant
	result, err := invokeRequest(t, p, r)
	if err != nil {
		return string(err.Code) + " " + err.Message
	}
	var s string
	if err := json.Unmarshal(result.Data, &s); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(s)
}

// TestReadToolWritesNothing checks that the error of a read tool that writes says which effect to declare.
func TestReadToolWritesNothing(t *testing.T) {
	p := localGuest(t, testEngine(t), "probe")
	inside, _ := tree(t)
	for effect, want := range map[string]string{manifest.EffectRead: "declare the effect write",
		manifest.EffectWrite: "granted read-only"} {
		r := requestFor(t, p, "run", argParams("write", "/data/file", "x"))
		def := *r.Def
		def.Effect = effect
		r.Def, r.Grant.FS = &def, []grant.FS{{Path: "/data", Source: inside, Mode: "ro"}}
		result, err := invokeRequest(t, p, r)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(result.Warnings, " "); !strings.Contains(got, want) {
			t.Errorf("effect %s: %q", effect, got)
		}
	}
}

// TestMounts tries every operation on a folder granted read-only and on one granted for writing.
func TestMounts(t *testing.T) {
	p := localGuest(t, testEngine(t), "probe")
	inside, outside := tree(t)
	readOnly := grant.Grant{FS: []grant.FS{{Path: "/data", Source: inside, Mode: "ro"}}}
	writable := grant.Grant{FS: []grant.FS{{Path: "/data", Source: inside, Mode: "rw"}}}
	before, beforeOutside := snapshot(t, inside), snapshot(t, outside)

	both := []struct {
		args []string
		want string // a substring
	}{
		{[]string{"read", "/data/file"}, "content"},
		{[]string{"read", "/data/in-file"}, "content"},
		{[]string{"read", "/data/in-dir/deep"}, "deep"},
		{[]string{"read", "/data/dir/../file"}, "content"},
		{[]string{"stat", "/data/dir"}, "dir"},
		{[]string{"stat", "/data/pipe"}, "other"},
		{[]string{"list", "/data"}, fmt.Sprint(len(store.ReadDir(inside)))},
		{[]string{"read", "/data/out-file"}, "errno"},
		{[]string{"read", "/data/out-dir/secret"}, "errno"},
		{[]string{"read", "/data/up/secret"}, "errno"},
		{[]string{"read", "/data/round"}, "errno"},
		{[]string{"read", "/data/loop"}, "errno"},
		{[]string{"read", "/data/../outside/secret"}, "errno"},
		{[]string{"read", "/data/pipe"}, "errno"},
		{[]string{"read", outside + "/secret"}, "errno"},
		{[]string{"stat", "/data/out-file"}, "errno"},
		{[]string{"list", "/data/up"}, "errno"},
		{[]string{"read", "/etc/passwd"}, "errno"},
		{[]string{"open-many", "/data/file"}, "limit_exceeded"},
	}
	changes := [][]string{
		{"write", "/data/file", "x"}, {"append", "/data/file", "x"}, {"create", "/data/new"}, {"trunc", "/data/file"},
		{"truncate", "/data/file"},
		{"mkdir", "/data/made"}, {"rmdir", "/data/dir"}, {"unlink", "/data/file"}, {"rename", "/data/file", "/data/other"},
		{"link", "/data/file", "/data/hard"},
		{"symlink", "file", "/data/soft"}, {"utimes", "/data/file"},
	}
	for _, grant := range []grant.Grant{readOnly, writable} {
		for _, tt := range both {
			if got := runProbe(t, p, grant, tt.args...); !strings.Contains(got, tt.want) {
				t.Errorf("%s %v: %q, want %q", grant.FS[0].Mode, tt.args, got, tt.want)
			}
		}
	}
	for _, args := range changes {
		if got := runProbe(t, p, readOnly, args...); !strings.HasPrefix(got, "errno") {
			t.Errorf("ro %v: %q, want an error", args, got)
		}
	}
	if changes := changesIn(before, snapshot(t, inside)); changes != "" {
		t.Errorf("the read-only folder has changed:\n%s", changes)
	}

	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"write", "/data/file", "longer content"}, "ok"},
		{[]string{"append", "/data/file", "!"}, "ok"},
		{[]string{"read", "/data/file"}, "longer content!"},
		{[]string{"truncate", "/data/file"}, "ok"},
		{[]string{"mkdir", "/data/made"}, "ok"},
		{[]string{"rmdir", "/data/made"}, "ok"},
		{[]string{"rmdir", "/data/file"}, "errno"},
		{[]string{"unlink", "/data/dir"}, "errno"},
		{[]string{"link", "/data/file", "/data/hard"}, "ok"},
		{[]string{"rename", "/data/hard", "/data/moved"}, "ok"},
		{[]string{"unlink", "/data/moved"}, "ok"},
		{[]string{"utimes", "/data/file"}, "ok"},
		{[]string{"symlink", "file", "/data/soft"}, "errno"},
		{[]string{"symlink", "/etc/passwd", "/data/soft"}, "errno"},
		{[]string{"write", "/data/out-file", "x"}, "errno"},
		{[]string{"write", "/data/new-outside", "x"}, "errno"},
		{[]string{"write", "/data/up/new", "x"}, "errno"},
		{[]string{"write", "/data/pipe", "x"}, "errno"},
		{[]string{"unlink", "/data/up/secret"}, "errno"},
		{[]string{"rename", "/data/file", "/data/up/file"}, "errno"},
		{[]string{"rename", "/data/file", "/data/../outside/file"}, "errno"},
		{[]string{"link", "/data/up/secret", "/data/stolen"}, "errno"},
		{[]string{"link", "/data/out-file", "/data/stolen"}, "errno"},
		{[]string{"utimes", "/data/out-file"}, "errno"},
		{[]string{"truncate", "/data/out-file"}, "errno"},
		{[]string{"unlink", "/data/out-file"}, "ok"}, // the link itself
	} {
		if got := runProbe(t, p, writable, tt.args...); !strings.HasPrefix(got, tt.want) {
			t.Errorf("rw %v: %q, want %q", tt.args, got, tt.want)
		}
	}
	if changes := changesIn(beforeOutside, snapshot(t, outside)); changes != "" {
		t.Errorf("the folder outside has changed:\n%s", changes)
	}
}

// TestInvalidFolderGrants checks that granting a file that is not a folder is the operator's error instead of the
// plugin's, and that nothing blocks on a pipe.
func TestInvalidFolderGrants(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	makePipe(t, filepath.Join(dir, "pipe"))
	e := testEngine(t)
	reactor, command := testGuest(t, e, "echo", "echo"), testGuest(t, e, "rev", "rev")
	for _, name := range []string{"missing", "file", "pipe"} {
		for _, r := range []struct {
			plugin *Provider
			*host.Request
		}{{reactor, requestFor(t, reactor, "echo", `{"value":1}`)},
			{command, requestFor(t, command, "word", `{"text":"a"}`)}} {
			r.Grant.FS = []grant.FS{{Path: "/data", Source: filepath.Join(dir, name), Mode: "ro"}}
			if _, err := invokeRequest(t, r.plugin, r.Request); err == nil || err.Code != host.ConfigError ||
				!strings.Contains(err.Message, filepath.Join(dir, name)) {
				t.Errorf("%s, granted %s: %v", r.plugin.Info().Name, name, err)
			}
		}
	}
}

// TestClockRandomEnv checks that without grants the wall clock is fixed and random bytes repeat. The monotonic
// clock always runs.
func TestClockRandomEnv(t *testing.T) {
	p := localGuest(t, testEngine(t), "probe")
	if got := runProbe(t, p, grant.Grant{}, "time"); got != "epoch runs" {
		t.Errorf("without a grant: %q", got)
	}
	if got := runProbe(t, p, grant.Grant{Clock: true}, "time"); got != "now runs" {
		t.Errorf("with a grant: %q", got)
	}
	a, b := runProbe(t, p, grant.Grant{}, "random"), runProbe(t, p, grant.Grant{}, "random")
	if a != b || len(a) != 32 {
		t.Errorf("without a grant: %q and %q", a, b)
	}
	c, d := runProbe(t, p, grant.Grant{Random: true}, "random"), runProbe(t, p, grant.Grant{Random: true}, "random")
	if c == d || c == a || len(c) != 32 {
		t.Errorf("with a grant: %q and %q", c, d)
	}
	t.Setenv("PARLEY_TEST_SECRET", "must not be seen")
	if got := runProbe(t, p, grant.Grant{}, "env"); got != "" {
		t.Errorf("environment without a grant: %q", got)
	}
	if got := runProbe(t, p, grant.Grant{Env: map[string]string{"LANG": "C"}}, "env"); got != "LANG=C" {
		t.Errorf("environment with a grant: %q", got)
	}
}

// TestCommandFailure checks that exit codes are preserved and that the end of stderr becomes the message.
func TestCommandFailure(t *testing.T) {
	p := localGuest(t, testEngine(t), "probe")
	for _, tt := range []struct {
		code, name string
		exit       int
	}{{"8", "badf", 8}, {"3", "tool_failed", 1}, {"255", "tool_failed", 1}} {
		_, err := invoke(t, p, "run", argParams("fail", tt.code))
		if err == nil || string(err.Code) != tt.name || err.ExitCode() != tt.exit ||
			err.Message != "line one\n\\u001b[31mline two\\u001b[0m" {
			t.Errorf("exit %s: %+v", tt.code, err)
		}
		if err != nil && (err.Tool == nil || string(guest.Marshal(err.Tool.Exit)) != tt.code) {
			t.Errorf("exit %s: tool %+v", tt.code, err.Tool)
		}
	}
	if _, err := invoke(t, p, "run", "{\"a\":\"read\",\"b\":\"x\\u0000y\"}"); err == nil ||
		err.Code != host.InvalidArgs || !strings.Contains(err.Message, "parameter b ") {
		t.Errorf("NUL in argv: %+v", err)
	}
}
