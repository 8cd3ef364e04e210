package parley

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
)

// deliveredSample are the commands of cdp whose delivered documentation is measured: small and large ones.
var deliveredSample = []string{
	"open", "status", "events", "Page.navigate", "Page.captureScreenshot", "Page.printToPDF", "Runtime.evaluate",
	"Network.getCookies", "Network.setCookie", "Network.emulateNetworkConditions", "DOM.querySelector",
	"DOM.getDocument", "Input.dispatchMouseEvent", "Emulation.setDeviceMetricsOverride", "Fetch.continueRequest",
	"CSS.getMatchedStylesForNode", "Target.createTarget", "Storage.clearDataForOrigin", "Tracing.start",
	"Audits.enable", "Log.enable", "IO.read",
}

// dialMinimal returns a Parley with an empty home, and a client of its server in minimal mode.
func dialMinimal(t *testing.T) (*Parley, *mcp.Client) {
	t.Helper()
	p, err := Open(t.Context(), Config{Home: testhome.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	server, err := p.MCP(mcp.Config{Mode: mcp.Minimal})
	if err != nil {
		t.Fatal(err)
	}
	client, err := server.Dial(t.Context(), mcp.Minimal)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return p, client
}

// TestDelivered checks that a tier over MCP costs at most 1.3 times its text: the description as it is sent, that in a
// search, and that in an error.
func TestDelivered(t *testing.T) {
	p, client := dialMinimal(t)
	call := func(tool, arguments string) (sent string) {
		raw, err := client.Request(t.Context(), "tools/call",
			map[string]any{"name": tool, "arguments": json.RawMessage(arguments)})
		if err != nil {
			t.Fatal(err)
		}
		var result struct {
			Content           []struct{ Text string }
			StructuredContent json.RawMessage
		}
		err = json.Unmarshal(raw, &result)
		if err != nil || len(result.Content) == 0 || result.StructuredContent != nil {
			t.Fatalf("%s %s: %s, %v", tool, arguments, raw, err)
		}
		for _, c := range result.Content {
			sent += c.Text
		}
		return sent
	}
	catalog, err := p.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Host()
	if err != nil {
		t.Fatal(err)
	}
	for _, provider := range catalog.Providers() {
		names := deliveredSample
		if provider.Info().Name != cdp.Name {
			if names, err = provider.Names(); err != nil {
				t.Fatal(err)
			}
		}
		for _, local := range names {
			name := provider.Info().Name + "." + local
			var failed struct{ Docs string }
			sent := call("call_tool", fmt.Sprintf(`{"name":%q,"arguments":{"no_such_parameter":1}}`, name))
			if d, err := h.Describe(t.Context(), caller.Principal{}, name, manifest.Tier2); err != nil ||
				json.Unmarshal([]byte(sent), &failed) != nil || failed.Docs != d.Text() {
				t.Errorf("an error of %s does not have the text of its documentation: %s", name, sent)
			}
			for tier := manifest.Tier1; tier <= manifest.Tier3; tier++ {
				d, err := h.Describe(t.Context(), caller.Principal{}, name, tier)
				if err != nil {
					t.Fatal(err)
				}
				sent := call("describe_tool", fmt.Sprintf(`{"name":%q,"tier":%d}`, name, tier))
				if n, text := manifest.Tokens(sent), d.Tokens(); 10*n > 13*text || n == 0 {
					t.Errorf("tier %d of %s: %d tokens were sent, its text has %d", tier, name, n, text)
				}
			}
		}
	}
}

// TestDescribesAreSmall checks the limits of tier 2 for every command of cdp, as text and as JSON over MCP.
func TestDescribesAreSmall(t *testing.T) {
	p, client := dialMinimal(t)
	names, err := p.Chrome().Names()
	if err != nil {
		t.Fatal(err)
	}
	largest := map[string]int{}
	for _, name := range names {
		for format, limit := range map[string]int{"text": 400, "json": 500} {
			raw, err := client.Request(t.Context(), "tools/call", map[string]any{"name": "describe_tool",
				"arguments": map[string]any{"name": "cdp." + name, "format": format}})
			if err != nil {
				t.Fatal(err)
			}
			var result struct{ Content []struct{ Text string } }
			if err := json.Unmarshal(raw, &result); err != nil || len(result.Content) != 1 {
				t.Fatalf("%s: %s, %v", name, raw, err)
			}
			n := manifest.Tokens(result.Content[0].Text)
			largest[format] = max(largest[format], n)
			if n > limit {
				t.Errorf("%s has %d tokens as %s, expected at most %d", name, n, format, limit)
			}
		}
	}
	t.Logf("the largest of %d have %d tokens as text and %d as JSON", len(names), largest["text"], largest["json"])
}
