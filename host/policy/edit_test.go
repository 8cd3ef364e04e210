package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/policy/operator"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/internal/durable/durabletest"
	"github.com/parley-tools/parley/manifest"
)

func grants(t testing.TB, texts ...string) []Grant {
	t.Helper()
	var list []Grant
	for _, s := range texts {
		g, err := ParseGrant(s)
		must(t, err)
		list = append(list, g)
	}
	return list
}

func TestGrantAndRevoke(t *testing.T) {
	current, err := os.Getwd()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "config")
	inDir := strings.NewReplacer(dir, "DIR", current, "/work/dir")
	p, err := Load(dir, Env{})
	must(t, err)
	step := func(name string, e Edit, err error) {
		t.Helper()
		must(t, err)
		golden(t, name+".diff", inDir.Replace(e.Diff()))
		must(t, p.WriteGrants(e))
		golden(t, name+".toml", inDir.Replace(read(t, e.Path)))
		info, err := os.Stat(e.Path)
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", name, info.Mode())
		}
	}
	e, err := p.Grant("github", digestA, grants(t, "fs:ro:./it's=/data", "http:GET:https://api.github.com", "clock")...)
	step("grant", e, err)
	e, err = p.Grant("GitHub", digestA, grants(t, "fs:rw:/srv=/data", "http:POST:https://api.github.com", "clock",
		"secret:TOKEN")...)
	step("grant_more", e, err)
	e, err = p.Grant("text", "RWQsigner", grants(t, "random")...)
	step("grant_signer", e, err)
	d := decide(t, p, host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "github", Tool: "x", Digest: digestA,
		Capabilities: manifest.Capabilities{Clock: &manifest.PlainCapability{}}})
	if !d.Grant.Clock {
		t.Error("the written grant has no effect")
	}
	e, err = p.Revoke("github", grants(t, "http:GET:https://api.github.com", "fs:ro:/elsewhere=/data", "random")...)
	step("revoke", e, err)
	e, err = p.Grant("github", digestB, grants(t, "env:LANG")...)
	step("grant_other_digest", e, err)
	e, err = p.Revoke("github")
	step("revoke_all", e, err)
	e, err = p.Revoke("text")
	step("revoke_last", e, err)
	if _, err := p.Revoke("text"); host.AsError(err).Code != host.NotFound {
		t.Errorf("revoked from nobody: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".new-*")); len(left) > 0 {
		t.Errorf("remaining files: %v", left)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

func TestEditKeepsTheRest(t *testing.T) {
	p := load(t, "", `[operator]
allow_yes = true
[plugin.p]
digest = "`+digestA+`"
grants = ["clock"]
[plugin.p.settings]
when = 2026-01-02T03:04:05Z
list = [1, 2.5]
[callers."mcp:*"]
deny = ["a.*"]
`)
	e, err := p.Revoke("p")
	must(t, err)
	for _, want := range []string{"allow_yes = true", "[plugin.p.settings]", "when = 2026-01-02T03:04:05Z", "2.5", "mcp:*",
		"a.*"} {
		if !strings.Contains(e.New, want) {
			t.Errorf("%q is gone from\n%s", want, e.New)
		}
	}
	for _, gone := range []string{"clock", "digest"} {
		if strings.Contains(e.New, gone) {
			t.Errorf("%q is still in\n%s", gone, e.New)
		}
	}
}

func TestEditRefuses(t *testing.T) {
	hand := "[plugin.p]\ndigest = \"" + digestA + "\"\ngrants = [\"clock\"]\n[plugin.pinned]\ndigest = \"" + digestA +
		"\"\n"
	p := load(t, hand, "")
	tests := []struct {
		name string
		do   func() (Edit, error)
		code host.Code
		want string
	}{
		{"grant over a grant by hand", func() (Edit, error) { return p.Grant("P", digestA, grants(t, "random")...) },
			host.ConfigError, "policy.toml:3 sets the grants of P, which takes precedence"},
		{"revoke a grant by hand", func() (Edit, error) { return p.Revoke("p") }, host.ConfigError,
			"policy.toml:3: change them there"},
		{"grant to another build than the pinned one",
			func() (Edit, error) { return p.Grant("pinned", digestB, grants(t, "random")...) },
			host.ConfigError, "policy.toml:5 binds pinned to another build"},
		{"no binding", func() (Edit, error) { return p.Grant("q", "", grants(t, "random")...) }, host.InvalidArgs, "neither"},
		{"half a digest", func() (Edit, error) { return p.Grant("q", "sha256:abc", grants(t, "random")...) },
			host.InvalidArgs, "neither"},
		{"no plugin", func() (Edit, error) { return p.Grant("a\"]\n[operator", digestA) }, host.InvalidArgs,
			"not a valid name for a plugin"},
		{"no folder", func() (Edit, error) { return Default().Grant("p", digestA) }, host.ConfigError,
			"no configuration folder"},
	}
	for _, tt := range tests {
		_, err := tt.do()
		if err == nil || host.AsError(err).Code != tt.code || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s ...%s", tt.name, err, tt.code, tt.want)
		}
	}
	if _, err := p.Revoke("pinned", grants(t, "clock")...); host.AsError(err).Code != host.NotFound {
		t.Errorf("got %v", err)
	}
	made := load(t, "", grantsToP("clock"))
	if _, err := made.Revoke("p", grants(t, "random")...); err == nil || !strings.Contains(err.Error(), "it has clock") {
		t.Errorf("got %v", err)
	}
}

func TestWriteGrantsSeesOthers(t *testing.T) {
	dir := t.TempDir()
	p, err := Load(dir, Env{})
	must(t, err)
	a, err := p.Grant("a", digestA, grants(t, "clock")...)
	must(t, err)
	b, err := p.Grant("b", digestA, grants(t, "clock")...)
	must(t, err)
	must(t, p.WriteGrants(a))
	if err := p.WriteGrants(b); err == nil || host.AsError(err).Code != host.Busy {
		t.Errorf("got %v, want busy", err)
	}
	if text := read(t, a.Path); strings.Contains(text, "plugin.b") {
		t.Errorf("the file was written anyway:\n%s", text)
	}
}

// With concurrent writers and readers, no change is lost and no reader sees a partial file.
func TestConcurrentWritersAndReaders(t *testing.T) {
	dir := t.TempDir()
	const writers = 8
	var wg sync.WaitGroup
	done := make(chan struct{})
	shared, err := Load(dir, Env{})
	must(t, err)
	var readers sync.WaitGroup
	for range 4 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := shared.Decide(context.Background(), call("cli", "a.b", "read", false)); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	for i := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			p, err := Load(dir, Env{})
			if err != nil {
				t.Error(err)
				return
			}
			for {
				e, err := p.Grant(fmt.Sprintf("p%d", i), digestA, Grant{Kind: Clock})
				if err == nil {
					err = p.WriteGrants(e)
				}
				if err == nil {
					return
				}
				if host.AsError(err).Code != host.Busy {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	close(done)
	readers.Wait()
	text := read(t, filepath.Join(dir, GrantsFile))
	if n := strings.Count(text, "[plugin.p"); n != writers {
		t.Errorf("%d of %d plugins in\n%s", n, writers, text)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("[operator]\nallow_yes = false\n[defaults]\ntimeout = \"30s\"\nisolate = \"none\"\n" +
		"[plugin.github]\ndigest = \"" + digestA + "\"\ngrants = [\"fs:ro:/srv/data=/data\", \"tool:cdp.Page.*\"]\n" +
		"[plugin.github.settings]\na = [1, {b = 2.5}]\n[callers.\"mcp:*\"]\nallow = [\"*\"]\n" +
		"confirm = [\"effect:destructive\"]\n[secrets.X]\nfrom = \"env:X\"\n")
	f.Add("[plugin.p\n")
	f.Add("plugin = [[[{a=1}]]]\n")
	f.Add("[[plugin]]\n[[callers]]\na.b.c = 1979-05-27\n")
	f.Add("callers.\"mcp:\\u0001\" = {allow = ['''a''']}\nplugin.p.limits.memory_mib = 0x10\n")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, problems := parseFile("f.toml", []byte(text))
		lines := strings.Count(text, "\n") + 1
		for _, p := range problems {
			if p.pos.line < 1 || p.pos.line > lines || p.pos.column < 1 || p.text == "" {
				t.Fatalf("%q: problem at %d:%d of %d lines: %s", text, p.pos.line, p.pos.column, lines, p.text)
			}
		}
		if len(problems) > 0 {
			return
		}
		if err := checkSchema([]byte(text)); err != nil {
			t.Fatalf("%q: the schema refuses what parseFile accepts: %v", text, err)
		}
		// Every accepted file can be evaluated and explained.
		p := &Policy{state: &state{manual: parsed}, env: Env{}.complete()}
		for _, plugin := range parsed.plugins {
			m := &manifest.Manifest{Capabilities: everything(false)}
			p.Explain(host.Info{Name: plugin.name, Digest: digestA}, m, "x")
			if _, err := p.Decide(context.Background(), host.Ask{Principal: caller.Principal{Name: "plugin:" + plugin.name},
				Plugin: plugin.name,
				Digest: digestA, Capabilities: m.Capabilities}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestGrantOutOfReach checks that no grant is written for a folder of the host itself, and that one that was written by
// hand has no effect.
func TestGrantOutOfReach(t *testing.T) {
	base := t.TempDir()
	config := filepath.Join(base, "config")
	must(t, os.MkdirAll(filepath.Join(base, "work"), 0o700))
	must(t, os.MkdirAll(config, 0o700))
	t.Chdir(base)
	env := Env{Own: &protect.Files{Folders: []protect.Folder{{Name: "config", Path: config}}}}
	p, err := Load(config, env)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o600))
	for _, right := range []string{"fs:rw:config=/data", "fs:ro:.=/data", "fs:ro:/=/data", "fs:ro:work/../config=/data",
		"fs:ro:file=/data"} {
		e, err := p.Grant("github", digestA, grants(t, "fs:ro:work=/work", right)...)
		if err == nil || host.AsError(err).Code != host.ConfigError || e.New != "" || len(host.AsError(err).Steps) == 0 {
			t.Errorf("%s: %v", right, err)
		}
	}
	text := "[plugin.github]\ndigest = \"" + digestA + "\"\ngrants = [\"fs:rw:" + config + "=/data\", \"fs:ro:" + base +
		"/work=/work\"]\n"
	must(t, os.WriteFile(filepath.Join(config, PolicyFile), []byte(text), 0o600))
	ask := host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "github", Tool: "x", Digest: digestA,
		Capabilities: manifest.Capabilities{
			FS: []manifest.FSCapability{{Path: "/data", Mode: "rw"}, {Path: "/work", Mode: "ro"}}}}
	d := decide(t, p, ask)
	if len(d.Missing) != 1 || !strings.Contains(d.Missing[0].Why, "config folder") || len(d.Grant.FS) != 1 {
		t.Errorf("%+v", d)
	}
	if _, err := p.CheckReach(); err == nil || !strings.Contains(err.Error(), "policy.toml:3:11") {
		t.Errorf("%v", err)
	}
}

// TestFullDisk checks that rights can be revoked, and not granted, while the disk is full.
func TestFullDisk(t *testing.T) {
	f := operator.File{Path: filepath.Join(t.TempDir(), GrantsFile)}
	must(t, f.Replace("", "[plugin.github]\n"))
	durabletest.Watch(t).Err = syscall.ENOSPC
	for _, c := range []struct{ old, text, want string }{
		{"[plugin.github]\n", "[plugin.github]\n[plugin.other]\n", "[plugin.github]\n"}, {"[plugin.github]\n", "", ""},
	} {
		err := f.Replace(c.old, c.text)
		if got := read(t, f.Path); got != c.want || (err == nil) != (c.text == c.want) {
			t.Errorf("the file has %q: %v", got, err)
		}
	}
}

// A revoked grant must not reappear after a crash.
func TestGrantsAreFlushed(t *testing.T) {
	dir := t.TempDir()
	disk := durabletest.Watch(t)
	path := filepath.Join(dir, GrantsFile)
	disk.OnFlush = func(flushed string) {
		if _, err := os.Stat(path); (err == nil) != (flushed == dir) {
			t.Errorf("%s was flushed while %s exists: %v", flushed, GrantsFile, err == nil)
		}
	}
	must(t, durable.Write(path, []byte("x")))
	if got := disk.Took(dir); len(got) != 2 || !strings.HasPrefix(got[0], ".new-") || got[1] != "." {
		t.Errorf("flushed %q", got)
	}
	disk.Err, disk.OnFlush = errors.New("the disk is gone"), nil
	if err := durable.Write(path, []byte("y")); err == nil || read(t, path) != "x" {
		t.Errorf("replaced by a file that was not flushed: %v", err)
	}
}
