package repo

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testName  = regexp.MustCompile("`([a-z/]+)\\.(Test\\w+)`")
	scriptRef = regexp.MustCompile("`script/(\\w+)`")
)

// TestPromisesNameTheirTests makes sure that SECURITY.md names, for each promise and each attack on it, tests that
// exist.
func TestPromisesNameTheirTests(t *testing.T) {
	tests := map[string][]string{} // folders, by the name of a test
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, m := range testFunc.FindAllStringSubmatch(read(t, s.path).text, -1) {
			tests[m[1]] = append(tests[m[1]], path.Join("/parley", s.dir))
		}
	}
	exists := func(name, dir string) bool {
		return slices.ContainsFunc(tests[name], func(in string) bool { return strings.HasSuffix(in, "/"+dir) })
	}
	_, text, _ := strings.Cut(read(t, "SECURITY.md").text, "## Promises to the operator")
	promises, _, _ := strings.Cut(text, "\n## ")
	for _, m := range testName.FindAllStringSubmatch(text, -1) {
		if !exists(m[2], m[1]) {
			t.Errorf("SECURITY.md names %s.%s, which does not exist", m[1], m[2])
		}
	}
	for _, m := range scriptRef.FindAllStringSubmatch(text, -1) {
		script := filepath.Join(root, "cmd/parley/internal/cli/testdata/script", m[1]+".txtar")
		if _, err := os.Stat(script); err != nil {
			t.Errorf("SECURITY.md names a script: %v", err)
		}
	}
	sections := strings.Split(promises, "\n### ")
	if len(sections) < 2 {
		t.Fatal("SECURITY.md has no promises")
	}
	for _, section := range sections[1:] {
		title, body, _ := strings.Cut(section, "\n")
		if _, attacks, listed := strings.Cut(body, "\nAttacks:\n"); listed {
			body = attacks // the promise itself has a list
		}
		items := strings.Split(body, "\n- ")
		if len(items) < 2 {
			t.Errorf("SECURITY.md: promise %s names no attack", title)
		}
		for _, item := range items[1:] {
			if !testName.MatchString(item) && !scriptRef.MatchString(item) {
				t.Errorf("SECURITY.md: promise %s: this attack names no test:\n%s", title, item)
			}
		}
	}
}
