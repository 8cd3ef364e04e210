package plugins

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// TestAdviceFitsEachReason compares what the shipped plugins advise for each reason to end with an exit code with
// testdata/reasons.txt, where somebody has read that the advice fits the reason. The suggestion of a code is said for
// all reasons of that code; one that fits only some of them belongs into their messages.
func TestAdviceFitsEachReason(t *testing.T) {
	want, err := os.ReadFile("testdata/reasons.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range shipped(t) {
		m, err := manifest.Load(f.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		advice := map[string]string{}
		for _, c := range m.ExitCodes {
			advice[c.Name] = c.Suggestion
		}
		for _, r := range reasonsOf(t, m.Name) {
			line := fmt.Sprintf("%s %s: %s", m.Name, r.code, r.text)
			if said := advice[r.code]; said != "" {
				line += " (" + said + ")"
			}
			got = append(got, line)
		}
	}
	slices.Sort(got)
	if text := strings.Join(slices.Compact(got), "\n") + "\n"; text != string(want) {
		t.Errorf("read whether each advice fits its reason; testdata/reasons.txt is to be:\n%s", text)
	}
}

type reason struct{ code, text string }

// reasonsOf returns the reasons in the sources of a plugin: the arguments of sdk.Exit.
func reasonsOf(t *testing.T, dir string) (reasons []reason) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if n, ok := n.(*ast.CallExpr); ok && len(n.Args) == 3 {
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Exit" {
					reasons = append(reasons, reason{textOf(n.Args[0]), textOf(n.Args[1])})
				}
			}
			return true
		})
	}
	return reasons
}

// textOf returns the text literals of an expression, with … for the rest.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return s
		}
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" {
			return textOf(e.Args[0])
		}
	}
	return "…"
}
