package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// listed is a plugin that can be listed, and not called.
type listed struct {
	host.Provider
	manifest *manifest.Manifest
}

func (l listed) Info() host.Info {
	return host.Info{Name: l.manifest.Name, Version: "1.0.0", Kind: manifest.KindParley, Digest: digestA}
}
func (l listed) Names() ([]string, error) { return host.NamesOf(l.manifest), nil }
func (l listed) Tool(name string) (*manifest.Tool, error) {
	return l.manifest.Tool(name), nil
}

// Manifest fails for a plugin whose manifest asks for nothing, which is as if it could not be read.
func (l listed) Manifest() (*manifest.Manifest, error) {
	if l.manifest.Capabilities.Clock == nil {
		return nil, errors.New("unreadable")
	}
	return l.manifest, nil
}

// catalogOfThree returns a catalog with the plugins notes, shop and text.
func catalogOfThree(t *testing.T) *host.Catalog {
	t.Helper()
	clock := manifest.Capabilities{Clock: &manifest.PlainCapability{}}
	asks := clock
	asks.Tools = []manifest.NamedCapability{{Name: "text.*"}}
	asks.HTTP = []manifest.HTTPCapability{{URL: "https://api.example.com", Methods: []string{"GET"}}}
	asks.Secrets = []manifest.SecretCapability{{Name: "TOKEN", URL: "https://api.example.com", Header: "A: {secret}"}}
	c, err := host.NewCatalog(
		listed{manifest: &manifest.Manifest{Name: "notes", Capabilities: clock, Tools: []manifest.Tool{
			{Name: "add", Effect: "write"}, {Name: "drop", Effect: "destructive"}, {Name: "list", Effect: "read"},
		}}},
		listed{manifest: &manifest.Manifest{Name: "Shop", Capabilities: asks,
			Settings: json.RawMessage(`{"type":"object","properties":{"limit":{"type":"integer"}}}`), Tools: []manifest.Tool{
				{Name: "Order.cancel", Effect: "destructive"}, {Name: "Order.list", Effect: "read"},
			}}},
		listed{manifest: &manifest.Manifest{Name: "text", Tools: []manifest.Tool{{Name: "hash", Effect: "read"}}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestMatches checks for each kind of rule what it applies to. The files have one rule in each line.
func TestMatches(t *testing.T) {
	c := catalogOfThree(t)
	const secret = "from = \"store\"\norigins = [\"https://api.example.com\"]"
	for _, tt := range []struct{ hand, made, want string }{
		{"[callers.cli]\ndeny = [\"effect:write\"]", "",
			"policy.toml:2 cli deny effect:write: 3 Shop.Order.cancel notes.add notes.drop"},
		{"[callers.cli]\nallow = [\"effect:write\"]", "", "policy.toml:2 cli allow effect:write: 1 notes.add"},
		{"[callers.cli]\nconfirm = [\"effect:destructive\"]", "",
			"policy.toml:2 cli confirm effect:destructive: 2 Shop.Order.cancel notes.drop"},
		{"[callers.\"mcp:*\"]\nallow = [\"*\"]", "",
			"policy.toml:2 mcp:* allow *: 6 Shop.Order.cancel Shop.Order.list notes.add"},
		{"[callers.cli]\ndeny = [\"NOTES.*\"]", "", "policy.toml:2 cli deny NOTES.*: 3 notes.add notes.drop notes.list"},
		{"[callers.cli]\ndeny = [\"shop.order\"]", "",
			"policy.toml:2 cli deny shop.order: 2 Shop.Order.cancel Shop.Order.list"},
		{"[callers.cli]\ndeny = [\"text.hash\"]", "", "policy.toml:2 cli deny text.hash: 1 text.hash"},
		{"[callers.cli]\ndeny = [\"notes.drob\"]", "", "policy.toml:2 cli deny notes.drob: 0? notes.drop"},
		{"[callers.cli]\ndeny = [\"note.*\"]", "", "policy.toml:2 cli deny note.*: 0? notes"},
		{"[callers.cli]\nallow = []", "", ""},
		{"\n[plugin.SHOP]\nisolate = \"process\"", "", "policy.toml:2 [plugin.SHOP]: 1 Shop"},
		{"[plugin.shob]\ndigest = \"" + digestA + "\"", "", "policy.toml:1 [plugin.shob]: 0? Shop"},
		{"[secrets.TOKEN]\n" + secret, "", "policy.toml:2 [secrets.TOKEN]: 2 https://api.example.com Shop"},
		{"[secrets.OTHER]\n" + secret, "", "policy.toml:2 [secrets.OTHER]: 1 https://api.example.com"},
		{"[secrets.LOGIN]\nfrom = \"store\"\n[origins.\"https://a.test\"]\nlogin = \"secret:LOGIN\"", "",
			"policy.toml:2 [secrets.LOGIN]: 1 https://a.test; policy.toml:3 [origins.\"https://a.test\"]: 1 login secret:LOGIN"},
		{"[plugin.shop]\ndigest = \"" + digestA + "\"\n[plugin.shop.settings]\nlimit = 1\nlimits = 1\n", "",
			"policy.toml:1 [plugin.shop]: 1 Shop; policy.toml:3 shop setting limit: 1 Shop; " +
				"policy.toml:3 shop setting limits: 0"},
		{"[plugin.text]\ndigest = \"" + digestA + "\"\nsettings = {a = 1}\nisolate = \"process\"\ngrants = [\"clock\"]", "",
			"policy.toml:1 [plugin.text]: 1 text; policy.toml:3 text setting a: 0; policy.toml:5 text grant clock: 0"},
		{"", to("shop", "clock"), "grants.toml:3 shop grant clock: 1 Shop"},
		{"", to("shop", "random"), "grants.toml:3 shop grant random: 0"},
		{"", to("shop", "http:GET:https://api.example.com"),
			"grants.toml:3 shop grant http:GET:https://api.example.com: 1 Shop"},
		{"", to("shop", "http:POST:https://api.example.com"),
			"grants.toml:3 shop grant http:POST:https://api.example.com: 0"},
		{"", to("shop", "tool:NOTES.*"), "grants.toml:3 shop grant tool:NOTES.*: 3 notes.add notes.drop notes.list"},
		{"", to("shop", "tool:text.hast"), "grants.toml:3 shop grant tool:text.hast: 0? text.hash"},
		{"", to("text", "clock"), "grants.toml:3 text grant clock: 0"},
		{"", to("shob", "clock"), "grants.toml:1 [plugin.shob]: 0? Shop; grants.toml:3 shob grant clock: 0"},
	} {
		found, err := load(t, tt.hand, tt.made).Matches(c)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, m := range found {
			line := fmt.Sprintf("%s %s: %d", m.Where, m.Rule, m.Matches)
			if len(m.DidYouMean) > 0 {
				line += "? " + m.DidYouMean[0].Name
			}
			lines = append(lines, strings.Join(append([]string{line}, m.First...), " "))
			if raw, err := json.Marshal(m); err != nil || !strings.Contains(string(raw), `"first":[`) {
				t.Errorf("%s%s: %s, %v", tt.hand, tt.made, raw, err)
			}
		}
		if got := strings.Join(lines, "; "); got != tt.want {
			t.Errorf("%s%s:\n got %s\nwant %s", tt.hand, tt.made, got, tt.want)
		}
	}
}

// to returns the file of a grant to a plugin.
func to(plugin, grant string) string {
	return fmt.Sprintf("[plugin.%s]\ndigest = %q\ngrants = [%q]\n", plugin, digestA, grant)
}

// TestMatchesIsWhatDecideDoes checks that a rule applies to the tools for which it changes the decision.
func TestMatchesIsWhatDecideDoes(t *testing.T) {
	c := catalogOfThree(t)
	rules := []string{"*", "notes", "notes.*", "notes.add", "shop.order", "shop.order.*", "text.*", "nothing.*"}
	for _, effect := range []string{"read", "write", "destructive"} {
		rules = append(rules, "effect:"+effect)
	}
	for _, rule := range rules {
		p := load(t, fmt.Sprintf("[callers.cli]\ndeny = [%q]\n", rule), "")
		found, err := p.Matches(c)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", rule, found, err)
		}
		var denied []string
		for _, provider := range c.Providers() {
			names, _ := provider.Names()
			for _, name := range names {
				tool, _ := provider.Tool(name)
				full := provider.Info().Name + "." + name
				if decide(t, p, call("cli", full, tool.Effect, false)).Verdict == host.Deny {
					denied = append(denied, full)
				}
			}
		}
		if found[0].Matches != len(denied) || !slices.Equal(found[0].First, denied[:min(3, len(denied))]) &&
			len(denied) > 0 {
			t.Errorf("%s applies to %d, %v, and denies %v", rule, found[0].Matches, found[0].First, denied)
		}
	}
}
