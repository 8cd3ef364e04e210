package vocabulary

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestConditions has for each expression texts on which it is tried, and others on which it is not.
func TestConditions(t *testing.T) {
	for expr, texts := range map[string][2][]string{
		`[Pp]aram(?:eter)?s?`:               {{"a param", "params"}, {"a parm"}},
		`(?i)\b(?:one|either) of`:           {{"one of", "none of", "either of"}, {"one", "of three"}},
		`(?i)task`:                          {{"task"}, {"tasc"}},
		`(?:a|bc)?xy`:                       {{"xy"}, {"bc"}},
		`\d+ (?:pages|bytes)`:               {{"3 pages", "bytes 3"}, {"pages", "3 page"}},
		`[a-z]+`:                            {{"7", ""}, nil},
		`alpha|[a-z]+`:                      {{"7", ""}, nil},
		`["'] tool`:                         {{`" tool`}, {"tool", "a tool"}},
		`(?:see|use) ["']\w`:                {{`use "x"`}, {"use x", `"x"`}},
		`(?:ab){0,2}cd`:                     {{"cd"}, {"ab"}},
		`(?:all|any) of (?:it|us)|the user`: {{"any of us", "the user"}, {"any of them", "of it", "the others"}},
	} {
		p := NewPattern(expr)
		for i, list := range texts {
			for _, text := range list {
				if got := p.contains.holds(text); got != (i == 0) {
					t.Errorf("%s, %q: %t", expr, text, got)
				}
			}
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
				t.Fatalf("%s: got %q, expected %q in %q", p.expr(), got, want, text)
			}
		}
	}
}
