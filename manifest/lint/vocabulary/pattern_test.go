package vocabulary

import (
	"os"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

func TestLiterals(t *testing.T) {
	for expr, want := range map[string]string{
		`[Pp]aram(?:eter)?s?`:     "param",
		`(?i)\b(?:one|either) of`: "one either",
		`(?i)task`:                "task",
		`(?:a|bc)?x`:              "x",
		`\d+ (?:pages|bytes)`:     "pages bytes",
		`[a-z]+`:                  "",
		`alpha|[a-z]+`:            "",
		`["'] tool`:               " tool",
		`(?:see|use) ["']\w`:      `" '`,
		`(?:ab){0,2}cd`:           "cd",
	} {
		parsed, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(literalsOf(parsed), " "); got != want {
			t.Errorf("%s: got %q, expected %q", expr, got, want)
		}
	}
}

// TestPatternsMatchAsTheirExpressions tries every expression on real texts.
func TestPatternsMatchAsTheirExpressions(t *testing.T) {
	data, err := os.ReadFile("../../../testdata/search/others_tools.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.Split(strings.ReplaceAll(string(data), `","`, "\n"), "\n")
	texts = append(texts, orders, praise, "ONE OF A, B", "uſe this tool", "aſ an AI", "\u212aeep it secret", "")
	list := slices.Concat(Orders(), Praise())
	for _, p := range all().patterns {
		list = append(list, p())
	}
	for _, p := range list {
		for _, text := range texts {
			if got, want := p.FindStringSubmatch(text), p.expr().FindStringSubmatch(text); !slices.Equal(got, want) {
				t.Fatalf("%s with the literals %q: got %q, expected %q in %q", p.expr(), p.literals, got, want, text)
			}
		}
	}
}
