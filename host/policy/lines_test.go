package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

var (
	inserted = regexp.MustCompile(`%(\.\d+)?[a-z]`)
	oneLine  = regexp.MustCompile(`\[(origins|callers|secrets|plugin|operator|defaults)[^\]]*\]+ *[a-z_]+ *=`)
	under    = regexp.MustCompile(`([a-z_]+ = (?:\[[^\]]*\]|"[^"]*"|\w+)) under (\[(?:"[^"]*"|[^\]"])+\])`)
	headings = regexp.MustCompile(`(?m)^\[(origins|callers|secrets|plugin|operator|defaults)\b.*\]\n[a-z_]+ = .*$`)
)

// TestLinesInTexts reads all texts of the program and its documents: what they tell an operator to write must be good
// TOML at the end of a policy. A table and a key are never put on the same line, which would not be valid TOML.
func TestLinesInTexts(t *testing.T) {
	found := 0
	check := func(at, text string) {
		if bad := oneLine.FindString(text); bad != "" {
			t.Errorf("%s: %q is not valid TOML on one line", at, bad)
		}
		written := headings.FindAllString(text, -1)
		for _, m := range under.FindAllStringSubmatch(text, -1) {
			written = append(written, m[2]+"\n"+m[1])
		}
		for _, lines := range written {
			found++
			for _, before := range []string{"", "[operator]\naudit = \"off\"\n", "[callers.\"mcp:x\"]\nallow = [\"cdp\"]\n"} {
				if strings.HasPrefix(lines, "[operator]") && strings.HasPrefix(before, "[operator]") {
					continue // it goes below that
				}
				var parsed any
				if err := toml.Unmarshal([]byte(before+lines+"\n"), &parsed); err != nil {
					t.Errorf("%s: %q after %q: %v", at, lines, before, err)
				}
			}
		}
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md") && !strings.Contains(path, "RATIONALE"):
			data, err := os.ReadFile(path)
			check(path, string(data))
			return err
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text := joined(n); text != "" {
				check(fmt.Sprint(files.Position(n.Pos())), inserted.ReplaceAllStringFunc(text, sample))
				return false
			}
			return true
		})
		return nil
	})
	if err != nil || found < 4 {
		t.Errorf("%d lines were found: %v", found, err)
	}
}

// joined returns the text of a literal, or of a sum of some.
func joined(n ast.Node) string {
	switch n := n.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return joined(n.X) + joined(n.Y)
	}
	return ""
}

// sample returns what stands for a verb of fmt.
func sample(verb string) string {
	switch verb[len(verb)-1] {
	case 'q':
		return `"https://a.test"`
	case 'd':
		return "7"
	}
	return "name"
}
