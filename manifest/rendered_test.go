package manifest_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/schemafacts"
	"github.com/parley-tools/parley/manifest"
)

// TestEveryFactIsShown checks for the tools of all manifests here and for random schemas that the second tier shows or
// counts each property, value of an enum, format and description, and that the third tier shows it, and each bound.
func TestEveryFactIsShown(t *testing.T) {
	files, err := filepath.Glob("../plugins/*/manifest.json")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	more, _ := filepath.Glob("../testdata/*/*/manifest.json")
	for _, file := range append(files, more...) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var m manifest.Manifest
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		for i := range m.Tools {
			check(t, &m, &m.Tools[i])
		}
	}
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	for seed := range uint64(rounds) {
		schema := schemafacts.Bounded(rand.New(rand.NewPCG(seed, 1)))
		m := &manifest.Manifest{Name: "random"}
		check(t, m, &manifest.Tool{Name: "tool", Params: schema, Returns: schema, Effect: "read"})
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, schema)
		}
	}
}

func check(t *testing.T, m *manifest.Manifest, tool *manifest.Tool) {
	t.Helper()
	two, three := manifest.Describe(m, tool, manifest.Tier2), manifest.Describe(m, tool, manifest.Tier3)
	names := strings.ReplaceAll(strings.Join(manifest.SignatureNames(manifest.TypedSignature("t", tool)), " "), "?", "")
	if all := append(namesOf(two.Parameters), two.MoreParameters...); names != strings.Join(all, " ") {
		t.Errorf("%s: the signature has %s of %s", two.Name, names, all)
	}
	schemafacts.CheckTiers(t, tool, two, three, false)
}

func namesOf(params []manifest.Param) (names []string) {
	for _, p := range params {
		names = append(names, p.Name)
	}
	return names
}
