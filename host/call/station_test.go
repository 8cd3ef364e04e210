package call

import (
	"os"
	"regexp"
	"testing"
)

// TestStationsAreDocumented compares the way of a call with the table of docs/architecture.md.
func TestStationsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile(`(?s)\n## The way of a call\n(.*?)\n## `).FindSubmatch(text)
	if section == nil {
		t.Fatal("docs/architecture.md has no section on the way of a call")
	}
	rows := regexp.MustCompile(`(?m)^\| ([a-z]+) \| (.*) \|$`).FindAllStringSubmatch(string(section[1]), -1)
	if len(rows) > 0 && rows[0][1] == "station" {
		rows = rows[1:] // the heading
	}
	all := stations()
	for i := range max(len(all), len(rows)) {
		var code, document [2]string
		if i < len(all) {
			code = [2]string{all[i].name, all[i].does}
		}
		if i < len(rows) {
			document = [2]string{rows[i][1], rows[i][2]}
		}
		if code != document {
			t.Errorf("station %d is %q, and docs/architecture.md has %q", i+1, code, document)
		}
	}
}
