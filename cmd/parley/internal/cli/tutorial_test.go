package cli

import (
	"os"
	"strings"
	"testing"
)

// TestTutorialIsScript compares the commands of the tutorial in docs/authors.md with those of the script that runs them
// in each language.
func TestTutorialIsScript(t *testing.T) {
	script := between(t, "testdata/script/plugin_tutorial.txtar", "-- tutorial.sh --\n", "-- calls.ndjson --\n")
	tutorial := between(t, "../../../../docs/authors.md", "## From source to another machine\n", "\n## ")
	hasCommands(t, strings.ReplaceAll(tutorial, "oci://registry.example", "$REGISTRY"), script)
}

// TestAPIs compares the commands of docs/apis.md with those of the script that runs them.
func TestAPIs(t *testing.T) {
	script := between(t, "testdata/script/apis.txtar", "-- walk.sh --\n", "-- api.github.com.json --\n")
	hasCommands(t, between(t, "../../../../docs/apis.md", "```sh api\n", "```\n"), script)
}

// between returns what a file has between two texts.
func between(t *testing.T, path, from, to string) string {
	t.Helper()
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

// hasCommands checks that a page has the five commands of a script.
func hasCommands(t *testing.T, page, script string) {
	t.Helper()
	commands := 0
	for line := range strings.Lines(script) {
		if strings.Contains(line, "parley ") {
			commands++
		}
		if !strings.Contains(page, line) {
			t.Errorf("the page does not have %q", line)
		}
	}
	if commands != 5 {
		t.Errorf("%d commands, want 5", commands)
	}
}
