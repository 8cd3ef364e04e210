package cli

import (
	"os"
	"strings"
	"testing"
)

// TestTutorialIsScript compares the commands of the tutorial in docs/authors.md with those of the script that runs them
// in each language.
func TestTutorialIsScript(t *testing.T) {
	read := func(path, from, to string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, text, found := strings.Cut(string(data), from)
		text, _, ended := strings.Cut(text, to)
		if !found || !ended {
			t.Fatalf("%s has nothing between %q and %q", path, from, to)
		}
		return text
	}
	script := read("testdata/script/plugin_tutorial.txtar", "-- tutorial.sh --\n", "-- calls.ndjson --\n")
	tutorial := read("../../../../docs/authors.md", "## From source to another machine\n", "\n## ")
	tutorial = strings.ReplaceAll(tutorial, "oci://registry.example", "$REGISTRY")
	commands := 0
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "parley ") {
			commands++
		}
		if !strings.Contains(tutorial, line) {
			t.Errorf("docs/authors.md does not have %q", line)
		}
	}
	if commands != 5 {
		t.Errorf("%d commands, want 5", commands)
	}
}
