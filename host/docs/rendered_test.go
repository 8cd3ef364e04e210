package docs

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/schemafacts"
	"github.com/parley-tools/parley/manifest"
)

// TestEveryFactIsExported checks that each export that has the parameters of a tool has all that the schemas say of
// them, and the pages also what they say of results.
func TestEveryFactIsExported(t *testing.T) {
	for seed := range uint64(40) {
		schema := schemafacts.Random(rand.New(rand.NewPCG(seed, 5)))
		tool := manifest.Tool{Name: "tool", Docs: manifest.Docs{Brief: "Test"}, Effect: "read", Params: schema}
		check(t, tool, schema, "mcp", "openai", "anthropic", "markdown")
		tool.Params, tool.Returns = json.RawMessage(`{"type":"object"}`), schema
		check(t, tool, schema, "markdown")
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, schema)
		}
	}
}

func check(t *testing.T, tool manifest.Tool, schema json.RawMessage, formats ...string) {
	t.Helper()
	s := newSource(t, &manifest.Manifest{Name: "rig", Kind: manifest.KindParley, Tools: []manifest.Tool{tool}})
	for _, format := range formats {
		x, err := s.Export(t.Context(), format, nil)
		if err != nil {
			t.Fatal(format, err)
		}
		var text strings.Builder
		for _, f := range x.Files {
			text.Write(f.Content)
		}
		for _, f := range schemafacts.Missing(strings.ReplaceAll(text.String(), `\|`, "|"), schemafacts.Of(schema, 3), true) {
			t.Errorf("%s does not have %s %s of %s", format, f.Kind, f.Value, f.Path)
		}
	}
}
