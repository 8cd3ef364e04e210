package page

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// acts is the package whose reasons, and those of the packages in it, to end callers are told.
const acts = "../internal/keeper/page"

// TestAdviceFitsEachReason compares what the verbs advise for each reason to end with an exit code with
// testdata/reasons.txt, where somebody has read that the advice fits the reason. The suggestion of a code is said for
// all reasons of that code; one that fits only some of them belongs into their messages.
func TestAdviceFitsEachReason(t *testing.T) {
	want, err := os.ReadFile("testdata/reasons.txt")
	if err != nil {
		t.Fatal(err)
	}
	advice := map[string]string{}
	for _, c := range whole(t).ExitCodes {
		advice[c.Name] = c.Suggestion
	}
	var got []string
	for _, r := range reasonsOf(t, acts) {
		line := fmt.Sprintf("%s: %s", r.code, r.text)
		if said := advice[r.code]; said != "" {
			line += " (" + said + ")"
		}
		got = append(got, line)
	}
	slices.Sort(got)
	if text := strings.Join(slices.Compact(got), "\n") + "\n"; *update {
		if err := os.WriteFile("testdata/reasons.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(want) {
		t.Errorf("read whether each advice fits its reason; testdata/reasons.txt is to be:\n%s", text)
	}
}

type reason struct{ code, text string }

// reasonsOf returns the reasons in the sources of packages: the arguments of Exit, and what page.js says.
func reasonsOf(t *testing.T, dir string) (reasons []reason) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	inner, _ := filepath.Glob(filepath.Join(dir, "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, inner...)
	advice := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				name := n.Fun
				if of, ok := name.(*ast.SelectorExpr); ok {
					name = of.Sel
				}
				if f, ok := name.(*ast.Ident); ok && f.Name == "Exit" && len(n.Args) == 3 {
					reasons = append(reasons, reason{textOf(n.Args[0]), textOf(n.Args[1])})
				}
			case *ast.ValueSpec:
				if n.Names[0].Name == "adviceFor" {
					for _, e := range n.Values[0].(*ast.CompositeLit).Elts {
						pair := e.(*ast.KeyValueExpr)
						advice[textOf(pair.Key)] = textOf(pair.Value)
					}
				}
			}
			return true
		})
	}
	script, err := os.ReadFile(filepath.Join(dir, "page.js"))
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	said := regexp.MustCompile("(?:code: \"(\\w+)\"[^{}]*?)?\\bwhy(?:: | = )([^{}]*?[\"`](?:[^\"`]*)[\"`])")
	for _, m := range said.FindAllStringSubmatch(string(script), -1) {
		for _, text := range regexp.MustCompile("\"([^\"]+)\"|`([^`]+)`").FindAllStringSubmatch(m[2], -1) {
			r := reason{m[1], text[1] + text[2]}
			if r.code == "" {
				r.code = "not_ready"
			}
			if a := advice[r.text]; a != "" && r.code == "not_ready" {
				used[r.text] = true
				r.text += " (" + a + ")"
			}
			reasons = append(reasons, r)
		}
	}
	for text := range advice {
		if !used[text] {
			t.Errorf("nothing ends with %q, for which there is advice", text)
		}
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
