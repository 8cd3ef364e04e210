package mcp_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/session"
)

// plugins is a folder of plugins in which a test installs, replaces and removes.
type plugins struct {
	catalog atomic.Pointer[host.Catalog]
	loaded  atomic.Pointer[host.Catalog]
}

// install replaces the installed plugins by shop and those of the manifests.
func (p *plugins) install(t *testing.T, manifests ...string) *host.Catalog {
	t.Helper()
	var providers []host.Provider
	for _, text := range append([]string{shop}, manifests...) {
		f, err := newFake(text)
		if err != nil {
			t.Fatal(err)
		}
		providers = append(providers, f)
	}
	catalog, err := host.NewCatalog(providers...)
	if err != nil {
		t.Fatal(err)
	}
	p.catalog.Store(catalog)
	return catalog
}

// reload is host.Config.Reload.
func (p *plugins) reload() (*host.Catalog, bool, error) {
	catalog := p.catalog.Load()
	return catalog, p.loaded.Swap(catalog) != catalog, nil
}

// tea is the manifest of a plugin with a tutorial and one tool.
func tea(version, tool string) string {
	return fmt.Sprintf(`{"manifest": 1, "name": "tea", "version": %q, "kind": "parley/1", "docs": {"brief": "Make tea"},
		"tutorial": [{"say": "Make a cup", "run": "parley tea %s"}],
		"tools": [{"name": %q, "docs": {"brief": "Make a cup"}, "effect": "read", "params": {"type": "object"}}]}`,
		version, tool, tool)
}

// liveFixture is a server whose plugins a test can change.
func liveFixture(t *testing.T, mode string, pinned ...string) (*fixture, *plugins) {
	t.Helper()
	p := &plugins{}
	h, err := hostcall.New(hostcall.Config{
		Catalog: p.install(t, tea("1.0.0", "brew")), Reload: p.reload, Policy: trustNetwork, Approver: mcp.Approver{},
		Mode:     mode,
		Sessions: &session.Store{Dir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := mcp.New(mcp.Config{Host: h, Version: "0.1.0", Mode: mode, Pinned: pinned})
	if err != nil {
		t.Fatal(err)
	}
	s.SetRefreshInterval(10 * time.Millisecond)
	return &fixture{Server: s}, p
}

// awaitChanges waits until the client is notified of a change of each list.
func awaitChanges(t *testing.T, changed <-chan string, lists ...string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for len(lists) > 0 {
		select {
		case list := <-changed:
			lists = slices.DeleteFunc(lists, func(l string) bool { return l == list })
		case <-timeout:
			t.Fatalf("no notification about %q", lists)
		}
	}
}

// TestLiveCatalog removes, installs and replaces a plugin while clients are connected, on both wires and revisions.
func TestLiveCatalog(t *testing.T) {
	for _, wire := range []string{"stdio", "http"} {
		for _, revision := range revisions {
			t.Run(wire+" "+revision, func(t *testing.T) {
				t.Parallel()
				f, p := liveFixture(t, mcp.Full)
				changed := make(chan string, 100)
				c := client{revision: revision, changed: changed}
				var s *sdk.ClientSession
				if wire == "http" {
					s = c.http(t, f.listen(t, mcp.HTTPConfig{}))
				} else {
					s = f.stdio(t, c)
				}
				check := func(when, tool string) {
					t.Helper()
					names := strings.Join(listed(t, s), " ")
					for _, name := range []string{"tea__brew", "tea__steep"} {
						if strings.Contains(names, name) != (name == tool) {
							t.Errorf("%s: tools/list has %s", when, names)
						}
						r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name})
						if name == tool && (err != nil || r.IsError) || name != tool && err == nil {
							t.Errorf("%s, %s returns %v, %v", when, name, r, err)
						}
					}
					prompts, err := s.ListPrompts(t.Context(), nil)
					if err != nil || slices.ContainsFunc(prompts.Prompts, func(p *sdk.Prompt) bool {
						return p.Name == "learn_tea"
					}) != (tool != "") {
						t.Errorf("%s, prompts/list has %v, %v", when, prompts, err)
					}
					if tool != "" {
						r, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "learn_tea"})
						if err != nil || !strings.Contains(r.Messages[0].Content.(*sdk.TextContent).Text, "tea."+tool[5:]) {
							t.Errorf("%s, the tutorial is %v, %v", when, r, err)
						}
					}
					resources, err := s.ListResources(t.Context(), nil)
					if err != nil || slices.ContainsFunc(resources.Resources, func(r *sdk.Resource) bool {
						return r.URI == "parley://docs/tea"
					}) != (tool != "") {
						t.Errorf("%s, resources/list has %v, %v", when, resources, err)
					}
				}
				check("before the change", "tea__brew")
				p.install(t)
				awaitChanges(t, changed, "tools", "prompts", "resources")
				check("removed", "")
				p.install(t, tea("1.0.0", "brew"))
				awaitChanges(t, changed, "tools", "prompts", "resources")
				check("installed", "tea__brew")
				p.install(t, tea("2.0.0", "steep"))
				awaitChanges(t, changed, "tools")
				check("replaced", "tea__steep")
			})
		}
	}
}

// TestLiveModes checks what the other modes list after a change, also for clients that do not listen for changes.
func TestLiveModes(t *testing.T) {
	t.Parallel()
	f, p := liveFixture(t, mcp.Progressive, "tea.brew", "shop.add")
	f.SetRefreshInterval(time.Hour)
	url := f.listen(t, mcp.HTTPConfig{})
	for _, revision := range revisions {
		p.install(t, tea("1.0.0", "brew"))
		s := client{revision: revision}.http(t, url)
		if got := strings.Join(listed(t, s), " "); !strings.Contains(got, "shop__add tea__brew") {
			t.Errorf("%s: tools/list has %s", revision, got)
		}
		if text := s.InitializeResult().Instructions; !strings.Contains(text, "shop, tea.") {
			t.Errorf("%s: the instructions are %s", revision, text)
		}
		p.install(t)
		s = client{revision: revision}.http(t, url)
		if got := strings.Join(listed(t, s), " "); !strings.Contains(got, "shop__add") || strings.Contains(got, "tea") {
			t.Errorf("%s: after the removal tools/list has %s", revision, got)
		}
		if text := s.InitializeResult().Instructions; !strings.Contains(text, "Plugins: shop.") {
			t.Errorf("%s: after the removal the instructions are %s", revision, text)
		}
	}
}

// TestHangUpWhileListening checks that a client on stdio that listens for changes can disconnect.
func TestHangUpWhileListening(t *testing.T) {
	t.Parallel()
	f, _ := liveFixture(t, mcp.Minimal)
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` +
		`"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}` + "\n"
	var out strings.Builder
	ended := make(chan error, 1)
	go func() { ended <- f.Stdio(t.Context(), strings.NewReader(listen), &out) }()
	select {
	case err := <-ended:
		if err != nil || !strings.Contains(out.String(), "acknowledged") {
			t.Errorf("the server ended with %v after %s", err, out.String())
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server is still running")
	}
}

// TestUsedTools checks that progressive mode lists the tools that a client uses often, which it looks up once in a
// connection, and with a configuration only what that names.
func TestUsedTools(t *testing.T) {
	for _, test := range []struct {
		name, mode   string
		pinned       []string
		lists, omits string
		asked        int
	}{
		{"by use", mcp.Progressive, nil, "tea__brew", "tea__steep", 1},
		{"configured", mcp.Progressive, []string{"tea.brew"}, "tea__brew", "tea__steep", 0},
		{"minimal", mcp.Minimal, nil, "call_tool", "tea__brew", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &plugins{}
			h, err := hostcall.New(hostcall.Config{Catalog: p.install(t, tea("1.0.0", "brew")), Policy: trustNetwork})
			if err != nil {
				t.Fatal(err)
			}
			var asked []string
			s, err := mcp.New(mcp.Config{Host: h, Version: "0.1.0", Mode: test.mode, Pinned: test.pinned,
				Used: func(caller string) []string {
					asked = append(asked, caller)
					return []string{"tea.steep", "tea.brew", "gone.tool"}
				}})
			if err != nil {
				t.Fatal(err)
			}
			c := (&fixture{Server: s}).stdio(t, client{})
			for range 2 {
				if names := listed(t, c); !slices.Contains(names, test.lists) || slices.Contains(names, test.omits) {
					t.Errorf("tools/list has %q", names)
				}
			}
			if len(asked) != test.asked || len(asked) > 0 && !strings.HasPrefix(asked[0], "mcp:") {
				t.Errorf("asked for %q", asked)
			}
		})
	}
}
