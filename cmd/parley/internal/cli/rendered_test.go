package cli

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/internal/schemafacts"
	"github.com/parley-tools/parley/manifest"
)

// TestPagesShowEveryFact checks that the page of a tool shows or counts what its schemas say, and that the one of the
// third tier shows all.
func TestPagesShowEveryFact(t *testing.T) {
	m := &manifest.Manifest{Name: "rig"}
	for seed := range uint64(60) {
		schema := schemafacts.Random(rand.New(rand.NewPCG(seed, 9)))
		tool := &manifest.Tool{Name: "tool", Params: schema, Returns: schema, Effect: "read"}
		for tier := manifest.Tier2; tier <= manifest.Tier3; tier++ {
			var b strings.Builder
			(&command.Page{W: &b, Width: 10_000}).Docs(manifest.Describe(m, tool, tier), nil)
			for _, f := range schemafacts.Missing(b.String(), schemafacts.Of(schema, 3), tier == manifest.Tier3) {
				t.Errorf("seed %d: the page of tier %d has no %s %s of %s", seed, tier, f.Kind, f.Value, f.Path)
			}
		}
	}
}
