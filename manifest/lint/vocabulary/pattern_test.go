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
		`(?i)\b(?:one|either) of`: "one either +  of",
		`(?i)task`:                "task",
		`(?:a|bc)?x`:              "x",
		`\d+ (?:pages|bytes)`:     "0 1 2 3 4 5 6 7 8 9 +   + pages bytes",
		`[a-z]+`:                  "",
		`alpha|[a-z]+`:            "",
		`["'] tool`:               "\" ' +  tool",
		`(?:see|use) ["']\w`:      `see use +   + " '`,
		`(?:ab){0,2}cd`:           "cd",
	} {
		parsed, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		var lists []string
		for _, list := range literalsOf(parsed) {
			lists = append(lists, strings.Join(list, " "))
		}
		if got := strings.Join(lists, " + "); got != want {
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
