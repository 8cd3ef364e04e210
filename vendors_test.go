package parley

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/internal/schemafacts"
	"github.com/parley-tools/parley/internal/testhome"
)

// toolName is what the rules of model APIs leave of a name: letters, digits, _ and -, at most 64 characters. Clients
// put a prefix such as mcp__parley__ in front.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,51}$`)

// TestVendorsAcceptEveryList checks the lists of all modes, with and without configured pins.
func TestVendorsAcceptEveryList(t *testing.T) {
	p, err := Open(t.Context(), Config{Home: testhome.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, mode := range mcp.Modes() {
		server, err := p.MCP(mcp.Config{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		client, err := server.Dial(t.Context(), mode)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := client.Request(t.Context(), "tools/list", struct{}{})
		client.Close()
		var list struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
		if err != nil || json.Unmarshal(raw, &list) != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, tool := range list.Tools {
			if names[tool.Name] = true; !toolName.MatchString(tool.Name) {
				t.Errorf("%s: the name %s", mode, tool.Name)
			}
			for _, rule := range schemafacts.Breaks(tool.InputSchema) {
				t.Errorf("%s: %s %s", mode, tool.Name, rule)
			}
		}
		if len(names) != len(list.Tools) {
			t.Errorf("%s: %d names of %d tools", mode, len(names), len(list.Tools))
		}
		if verbs := []string{"page__open", "page__snapshot", "page__click"}; mode == mcp.Progressive {
			for _, verb := range verbs {
				if !names[verb] {
					t.Errorf("progressive mode without configuration does not list %s", verb)
				}
			}
		}
	}
}
