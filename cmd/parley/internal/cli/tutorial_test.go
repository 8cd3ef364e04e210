package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/testhome"
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

// TestMigration makes the calls of other products that docs/migration.md lists: each is answered with the new one, or
// is one of Parley's itself.
func TestMigration(t *testing.T) {
	run := inHome(testhome.New(t))
	table := between(t, "../../../../docs/migration.md", "| Playwright MCP | agent-browser | Parley |\n", "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `(.+)` \\| `(.+)` \\| `(.+)` \\|$").FindAllStringSubmatch(table, -1)
	if len(rows) != 13 {
		t.Errorf("%d rows, want 13", len(rows))
	}
	for _, row := range rows {
		for _, old := range row[1:3] {
			_, errs, code := run(append([]string{"page"}, strings.Fields(old)...)...)
			if own := strings.HasPrefix("page "+old, row[3]); own && code == 83 ||
				!own && !strings.Contains(errs, "parley "+row[3]) {
				t.Errorf("page %s ends in %d without %s: %s", old, code, row[3], errs)
			}
		}
	}
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
