package mcp

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/schemafacts"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// TestEveryFactIsListed checks that the full list has each property, value of an enum, format and description of the
// shipped tools and of random schemas.
func TestEveryFactIsListed(t *testing.T) {
	files, err := filepath.Glob("../../plugins/*/manifest.json")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	schemas := map[string]json.RawMessage{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var m manifest.Manifest
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		for _, tool := range m.Tools {
			schemas[m.Name+"."+tool.Name] = tool.Params
		}
	}
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 200 {
		schemas["random "+string(rune('a'+i))] = schemafacts.Random(r)
	}
	for name, schema := range schemas {
		listed := string(manifest.Portable(schema))
		for _, f := range schemafacts.Of(schema, 3) {
			value := strings.Trim(f.Value, `"`)
			if f.Kind == "description" {
				quoted := jsontext.Marshal(value)
				value = string(quoted[1 : len(quoted)-1])
			}
			if !strings.Contains(listed, value) && !strings.Contains(listed, "… ") {
				t.Fatalf("%s: %s %s of %s is not listed: %s\n%s", name, f.Kind, f.Value, f.Path, schema, listed)
			}
		}
	}
}
