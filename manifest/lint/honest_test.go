package lint

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// TestHonestPlugins checks that no rule refuses harmless plugins. testdata/honest.json describes programs that
// many people use, with the words that rules of poisoning look for.
func TestHonestPlugins(t *testing.T) {
	data, err := os.ReadFile("testdata/honest.json")
	if err != nil {
		t.Fatal(err)
	}
	var plugins map[string]json.RawMessage // lists of tools
	if err := json.Unmarshal(data, &plugins); err != nil {
		t.Fatal(err)
	}
	if len(plugins) < 12 {
		t.Errorf("only %d plugins", len(plugins))
	}
	for name, tools := range plugins {
		data, err := json.Marshal(map[string]any{"manifest": 1, "name": name, "version": "1.0.0", "kind": "parley/1",
			"docs": map[string]any{"brief": "Work with " + name + " from here"}, "tools": tools})
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(data, "0.1.0")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range Check(m, neighbors(m)) {
			if f.Severity == Error {
				t.Errorf("%s: %v", name, f)
			}
		}
	}
}
