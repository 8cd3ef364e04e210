package repo

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// maxColumns is the width of a line of Go. A tab counts as one column.
const maxColumns = 120

// TestLinesAreShort limits lines of Go to maxColumns. Lines of a raw string and generated files may be longer.
func TestLinesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if ast.IsGenerated(s.ast) {
			continue
		}
		raw := rawLines(s.text)
		number := 0
		for line := range strings.Lines(string(s.text)) {
			number++
			columns := utf8.RuneCountInString(strings.TrimRight(line, "\r\n"))
			if columns > maxColumns && !raw[number] {
				t.Errorf("%s:%d has %d columns, at most %d", s.path, number, columns, maxColumns)
			}
		}
	}
}

// rawLines returns the numbers of the lines with parts of raw strings.
func rawLines(source []byte) map[int]bool {
	lines := map[int]bool{}
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	for {
		pos, kind, text := s.Scan()
		switch {
		case kind == token.EOF:
			return lines
		case kind == token.STRING && strings.HasPrefix(text, "`"):
			first := file.Line(pos)
			for i := range strings.Count(text, "\n") + 1 {
				lines[first+i] = true
			}
		}
	}
}

// instead are the words that the glossary of CONTRIBUTING.md replaces and that have no other meaning in code.
var instead = map[string]string{
	"anew":    "again",
	"barrier": "denylist, allowlist",
	"desk":    "host functions",
	"heed":    "use (a suggestion)",
	"husk":    "stub module",
	"mend":    "coerce, correct, repair, fix",
	"nudge":   "wake, notify, signal",
	"slip":    "coercion",
	"stir":    "wake, notify, signal",
	"vault":   "redactor",
	"weigh":   "evaluate",
}

// TestWords checks identifiers and comments, of Go and of scripts, for words that the glossary of CONTRIBUTING.md
// replaces.
func TestWords(t *testing.T) {
	for _, s := range sources(t) {
		if ast.IsGenerated(s.ast) {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok {
				checkWords(t, s.path, fileSet.Position(name.Pos()).Line, name.Name)
			}
			return true
		})
		for _, group := range s.ast.Comments {
			for _, c := range group.List {
				checkProse(t, s.path, fileSet.Position(c.Pos()).Line, c.Text)
			}
		}
	}
	scripts, err := filepath.Glob(filepath.Join(root, "cmd/parley/internal/cli/testdata/script/*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatal("there are no scripts: ", err)
	}
	for _, script := range scripts {
		data, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		number := 0
		for line := range strings.Lines(string(data)) {
			number++
			if strings.HasPrefix(line, "#") {
				checkProse(t, filepath.Base(script), number, line)
			}
		}
	}
}

// checkWords reports the word of an identifier that the glossary replaces.
func checkWords(t *testing.T, path string, line int, identifier string) {
	if old, better := bannedWord(identifier); old != "" {
		t.Errorf("%s:%d: %s: instead of %q the glossary in CONTRIBUTING.md has %q", path, line, identifier, old, better)
	}
}

// checkProse reports words of a line of prose that the glossary replaces.
func checkProse(t *testing.T, path string, line int, text string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		checkWords(t, path, line, word)
	}
}

// bannedWord returns the word of an identifier that the glossary replaces, and its replacement, or "". It knows the
// endings of English verbs and plurals.
func bannedWord(identifier string) (old, better string) {
	for _, word := range wordsOf(identifier) {
		for _, ending := range []string{"", "s", "r", "d", "ed", "er", "ing", "ring", "red", "ped", "ping"} {
			stem, ok := strings.CutSuffix(word, ending)
			if !ok {
				continue
			}
			if better := instead[stem]; better != "" {
				return word, better
			}
		}
	}
	return "", ""
}

// wordsOf splits an identifier at its capital letters and underscores, and returns the words in lower case.
func wordsOf(identifier string) (words []string) {
	start := 0
	runes := []rune(identifier)
	add := func(end int) {
		if word := strings.Trim(string(runes[start:end]), "_"); word != "" {
			words = append(words, strings.ToLower(word))
		}
		start = end
	}
	for i := 1; i < len(runes); i++ {
		upper := unicode.IsUpper(runes[i])
		lastOfAcronym := upper && i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if runes[i] == '_' || upper && !unicode.IsUpper(runes[i-1]) || lastOfAcronym {
			add(i)
		}
	}
	add(len(runes))
	return words
}

// TestBannedWord checks that words within identifiers are found.
func TestBannedWord(t *testing.T) {
	for identifier, want := range map[string]string{
		"nudge": "nudge", "newDesk": "desk", "mendedParams": "mended", "JSONVault": "vault", "slips": "slips",
		"was_stirred": "stirred",
		"desktop":     "", "recommend": "", "amend": "", "slippery": "", "": "",
	} {
		if got, _ := bannedWord(identifier); got != want {
			t.Errorf("%q: %q, want %q", identifier, got, want)
		}
	}
}

// TestGlossary checks that CONTRIBUTING.md has each word of the test.
func TestGlossary(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, glossary, _ := strings.Cut(string(data), "\n## Words\n")
	glossary, _, _ = strings.Cut(glossary, "\n## ")
	for _, word := range slices.Sorted(maps.Keys(instead)) {
		if !strings.Contains(glossary, word) {
			t.Errorf("CONTRIBUTING.md, Words, does not have %q", word)
		}
	}
}

// TestJSONFieldsHaveTags checks that a struct which names some fields for JSON names all that JSON would show, or hides
// them with "-". The structs listed decode what other programs write, or are both a form of JSON and a value.
func TestJSONFieldsHaveTags(t *testing.T) {
	decoded := []string{
		"host/wasm/internal/instrument.Module",
	}
	for _, s := range product(t) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			of, isType := n.(*ast.TypeSpec)
			if !isType || slices.Contains(decoded, s.dir+"."+of.Name.Name) {
				return true
			}
			fields, isStruct := of.Type.(*ast.StructType)
			if !isStruct {
				return true
			}
			var untagged []string
			tagged := false
			for _, f := range fields.Fields.List {
				if f.Tag != nil && strings.Contains(f.Tag.Value, "json:") {
					tagged = true
					continue
				}
				for _, name := range f.Names {
					if name.IsExported() {
						untagged = append(untagged, name.Name)
					}
				}
			}
			if tagged && len(untagged) > 0 {
				t.Errorf("%s: %s shows %s in JSON without a tag", s.path, of.Name.Name, strings.Join(untagged, ", "))
			}
			return true
		})
	}
}

// TestPatternsAreLazy checks that no package compiles a regular expression when it is loaded: package lazy does it when
// the expression is first used. Ten of them cost a command 0.1 ms.
func TestPatternsAreLazy(t *testing.T) {
	for _, s := range product(t) {
		for _, d := range s.ast.Decls {
			vars, isVars := d.(*ast.GenDecl)
			if !isVars || s.dir == "cdp/internal/gen" || s.dir == "host/providertest" {
				continue
			}
			ast.Inspect(vars, func(n ast.Node) bool {
				call, isCall := n.(*ast.CallExpr)
				if isCall && types.ExprString(call.Fun) == "regexp.MustCompile" {
					t.Errorf("%s compiles %s when it is loaded: lazy.Pattern", s.path, types.ExprString(call.Args[0]))
				}
				_, isFunc := n.(*ast.FuncLit)
				return !isFunc
			})
		}
	}
}
