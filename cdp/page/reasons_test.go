package page

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/parley-tools/parley/internal/reasons"
)

// acts is the package whose reasons, and those of the packages in it, to end callers are told.
const acts = "../internal/keeper/page"

// TestAdviceFitsEachReason compares what the verbs advise for each reason to end with an exit code with
// testdata/reasons.txt. The suggestion of a code is said for all reasons of that code; one that fits only some of them
// belongs into their messages.
func TestAdviceFitsEachReason(t *testing.T) {
	advice := map[string]string{}
	for _, c := range whole(t).ExitCodes {
		advice[c.Name] = c.Suggestion
	}
	var got []string
	for _, r := range reasonsOf(t, acts) {
		got = append(got, r.Line(advice[r.Code]))
	}
	reasons.Compare(t, got, *update)
}

// reasonsOf returns the reasons in the sources of packages: the arguments of Exit, and what page.js says.
func reasonsOf(t *testing.T, dir string) (all []reasons.Reason) {
	t.Helper()
	advice := map[string]string{}
	for _, pattern := range []string{dir, filepath.Join(dir, "*")} {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			all = append(all, reasons.In(t, dir, func(n ast.Node) {
				if v, ok := n.(*ast.ValueSpec); ok && v.Names[0].Name == "adviceFor" {
					for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
						pair := e.(*ast.KeyValueExpr)
						advice[reasons.Text(pair.Key)] = reasons.Text(pair.Value)
					}
				}
			})...)
		}
	}
	script, err := os.ReadFile(filepath.Join(dir, "page.js"))
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	said := regexp.MustCompile("(?:(?:code: |failed\\()\"(\\w+)\"[^}]*?)?\\bwhy(?:: | = )([^{}]*?[\"`](?:[^\"`]*)[\"`])")
	for _, m := range said.FindAllStringSubmatch(string(script), -1) {
		for _, text := range regexp.MustCompile("\"([^\"]+)\"|`([^`]+)`").FindAllStringSubmatch(m[2], -1) {
			r := reasons.Reason{Code: m[1], Text: text[1] + text[2]}
			if r.Code == "" {
				r.Code = "not_ready"
			}
			if a := advice[r.Text]; a != "" && r.Code == "not_ready" {
				used[r.Text] = true
				r.Text += " (" + a + ")"
			}
			all = append(all, r)
		}
	}
	for text := range advice {
		if !used[text] {
			t.Errorf("nothing ends with %q, for which there is advice", text)
		}
	}
	return all
}
