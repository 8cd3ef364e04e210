// Package reasons reads, for tests, the reasons of exit codes from the sources of tools.
package reasons

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Reason is why a tool ends with an exit code.
type Reason struct{ Code, Text string }

// Line returns the reason, with the advice for its code, if any.
func (r Reason) Line(advice string) string {
	if advice != "" {
		advice = " (" + advice + ")"
	}
	return r.Code + ": " + r.Text + advice
}

// In returns the reasons in the sources of a folder: the arguments of Exit. visit, if not nil, gets each node.
func In(t *testing.T, dir string, visit func(ast.Node)) (all []Reason) {
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
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 3 && calledName(call) == "Exit" {
				all = append(all, Reason{Text(call.Args[0]), Text(call.Args[1])})
			}
			if visit != nil {
				visit(n)
			}
			return true
		})
	}
	return all
}

func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// Text returns the text literals of an expression, with … for the rest.
func Text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return s
		}
	case *ast.BinaryExpr:
		return Text(e.X) + Text(e.Y)
	case *ast.CallExpr:
		if calledName(e) == "Sprintf" {
			return Text(e.Args[0])
		}
	}
	return "…"
}

// Compare compares lines, sorted and without duplicates, with testdata/reasons.txt. A person has checked in that file
// that the advice fits the reasons. With update it writes the file instead.
func Compare(t *testing.T, lines []string, update bool) {
	t.Helper()
	const file = "testdata/reasons.txt"
	slices.Sort(lines)
	text := strings.Join(slices.Compact(lines), "\n") + "\n"
	if update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || text != string(want) {
		t.Errorf("read whether each advice fits its reason; %s is to be (%v):\n%s", file, err, text)
	}
}
