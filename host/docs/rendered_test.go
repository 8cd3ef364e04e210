package docs

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/schemafacts"
	"github.com/parley-tools/parley/manifest"
)

// TestEveryFactIsExported checks that each exported text that has the parameters of a tool has all that the schemas say
// of them, and of the results.
func TestEveryFactIsExported(t *testing.T) {
	for seed := range uint64(40) {
		schema := schemafacts.Random(rand.New(rand.NewPCG(seed, 5)))
		s := newSource(t, &manifest.Manifest{Name: "rig", Kind: manifest.KindParley, Tools: []manifest.Tool{{
			Name: "tool", Docs: manifest.Docs{Brief: "Test"}, Effect: "read", Params: schema, Returns: schema}}})
		facts := schemafacts.Of(schema, 3)
		for _, format := range []string{"mcp", "openai", "anthropic", "jsonschema", "markdown"} {
			x, err := s.Export(t.Context(), format, nil)
			if err != nil {
				t.Fatal(format, err)
			}
			var text strings.Builder
			for _, f := range x.Files {
				text.Write(f.Content)
			}
			for _, f := range schemafacts.Missing(strings.ReplaceAll(text.String(), `\|`, "|"), facts, true) {
				t.Errorf("seed %d: %s does not have %s %s of %s", seed, format, f.Kind, f.Value, f.Path)
			}
		}
	}
}
