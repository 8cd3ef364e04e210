package admit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/internal/durable/durabletest"
	"github.com/parley-tools/parley/internal/testhome"
)

// TestRemovedPluginEndsItsCalls removes a plugin, or revokes a grant, by another process while a guest loops for ever:
// called directly, isolated, and by another plugin.
func TestRemovedPluginEndsItsCalls(t *testing.T) {
	spin := json.RawMessage(`{"tool":"worker.spin","params":{}}`)
	for name, c := range map[string]struct {
		tool    string
		params  json.RawMessage
		isolate string
		revoke  bool
		want    string
	}{
		"direct":          {tool: "worker.spin", want: "worker was removed"},
		"isolated":        {tool: "worker.spin", isolate: "process", want: "worker was removed"},
		"nested":          {tool: "echo.call-tool", params: spin, want: "worker was removed"},
		"nested, a grant": {tool: "echo.call-tool", params: spin, revoke: true, want: "tool:worker.spin"},
		"nested, isolated grant": {tool: "echo.call-tool", params: spin, isolate: "process", revoke: true,
			want: "tool:worker.spin"},
	} {
		t.Run(name, func(t *testing.T) {
			home := testhome.New(t)
			config := filepath.Join(home, "config", "policy.toml")
			if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
				t.Fatal(err)
			}
			// Then each call is recorded before it runs, which says when the guest loops.
			if err := os.WriteFile(config, []byte("[operator]\naudit = \"required\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			server, other := parley.New(parley.Config{Home: home}), parley.New(parley.Config{Home: home})
			who, err := install(t, other, fixture("echo"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := install(t, other, renamed(t, "worker", "1.0.0")); err != nil {
				t.Fatal(err)
			}
			grantTools(t, other, who, "tool:worker.spin")
			h, err := server.Host()
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan *host.Answer, 1)
			go func() {
				a, _ := h.Call(t.Context(), host.Call{Name: c.tool, Params: c.params, Principal: caller.Principal{Name: "cli"},
					Options: job.Options{Timeout: time.Minute, Isolate: c.isolate}})
				ended <- a
			}()
			log := filepath.Join(home, "state", "audit", "audit.jsonl")
			slot := filepath.Join(home, "state", "slots", "worker", "slot-0")
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				text, _ := os.ReadFile(log)
				_, err := os.Stat(slot) // it was taken after the module was read
				if err == nil && bytes.Contains(text, []byte(`"op":"begin"`)) &&
					bytes.Contains(text, []byte(`"tool":"worker.spin"`)) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the guest does not run")
				}
			}
			if c.revoke {
				rules, err := other.Policy()
				if err != nil {
					t.Fatal(err)
				}
				edit, err := rules.Revoke("echo", policy.Grant{Kind: policy.Tool, Name: "worker.spin"})
				if err != nil {
					t.Fatal(err)
				}
				if err := other.Admission().WriteGrants(edit); err != nil {
					t.Fatal(err)
				}
			} else if _, err := other.Admission().Remove("worker"); err != nil {
				t.Fatal(err)
			}
			select {
			case a := <-ended:
				text := string(a.Data)
				if a.Err != nil {
					text = string(a.Err.Code) + " " + a.Err.Message
				}
				if !strings.Contains(text, "denied") || !strings.Contains(text, c.want) {
					t.Errorf("the call ended in %s, expected denied and %q", text, c.want)
				}
			case <-time.After(20 * time.Second): // it takes less than one, but machines can be busy
				t.Error("the call goes on")
			}
		})
	}
}

// TestRemovalNamesUses checks that a removal names the tools that were in use in the order of their names.
func TestRemovalNamesUses(t *testing.T) {
	var notices []string
	p := open(t, parley.Config{Notice: func(text string) { notices = append(notices, text) }})
	if _, err := p.Install(t.Context(), fixture("rev")); err != nil {
		t.Fatal(err)
	}
	var traces strings.Builder
	for n := range 9 {
		fmt.Fprintf(&traces, `{"v":1,"t":%q,"caller":"cli","tool":"rev.t%d","code":"ok"}`+"\n",
			time.Now().Format(time.RFC3339), 8-n)
	}
	file := filepath.Join(p.TraceDir(), time.Now().UTC().Format(time.DateOnly)+".jsonl")
	err := errors.Join(os.MkdirAll(p.TraceDir(), 0o700), os.WriteFile(file, []byte(traces.String()), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	notices = nil
	if _, err := p.Admission().Remove("rev"); err != nil {
		t.Fatal(err)
	}
	if len(notices) != 9 || !slices.IsSorted(notices) {
		t.Errorf("got %q", notices)
	}
}

// TestRemoveOnFullDisk removes a plugin with a grant from a disk that has no room before the plugin's files are gone.
func TestRemoveOnFullDisk(t *testing.T) {
	home := testhome.New(t)
	p := parley.New(parley.Config{Home: home})
	who, err := install(t, p, fixture("echo"))
	if err != nil {
		t.Fatal(err)
	}
	grantTools(t, p, who, "tool:text.hash")
	disk, tried := durabletest.Watch(t), 0
	disk.OnFlush = func(string) {
		disk.Err = nil
		if files, _ := filepath.Glob(filepath.Join(home, "data/plugins/echo/*/plugin.wasm")); len(files) > 0 {
			disk.Err, tried = syscall.ENOSPC, tried+1
		}
	}
	removed, err := p.Admission().Remove("echo")
	if err != nil || !slices.Equal(removed.Revoked, []string{"tool:text.hash"}) {
		t.Errorf("removed %+v, %v", removed, err)
	}
	if _, err := p.Store().Find("echo"); !errors.Is(err, host.NotFound) || tried != 2 {
		t.Errorf("the disk was full %d times; the plugin: %v", tried, err)
	}
}

// TestCompiledCodeIsRemoved checks that the cache has no compiled code of a build that was replaced or removed.
func TestCompiledCodeIsRemoved(t *testing.T) {
	home := testhome.New(t)
	p := parley.New(parley.Config{Home: home})
	slots := func() []string {
		all, _ := filepath.Glob(filepath.Join(home, "cache/wasm/*"))
		return slices.DeleteFunc(all, func(path string) bool {
			info, err := os.Stat(path)
			return err != nil || !info.IsDir()
		})
	}
	before := len(slots())
	for _, version := range []string{"1.0.0", "1.1.0"} {
		if _, err := install(t, p, renamed(t, "worker", version)); err != nil {
			t.Fatal(err)
		}
		if n := len(slots()); n != before+1 {
			t.Errorf("%s: the cache has the code of %d builds, expected 1", version, n-before)
		}
	}
	if _, err := p.Admission().Remove("worker"); err != nil {
		t.Fatal(err)
	}
	if n := len(slots()); n != before {
		t.Errorf("removed: the cache has the code of %d builds", n-before)
	}
}
