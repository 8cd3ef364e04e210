package index

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write generated files")

// TestThesaurusTable generates thesaurus.table from thesaurus.txt, or compares the committed table with it.
func TestThesaurusTable(t *testing.T) {
	text, err := os.ReadFile("thesaurus.txt")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]synonym{}
	for line := range strings.Lines(string(text)) {
		from, to, scope, weight := thesaurusLine(line)
		if without, _, _ := strings.Cut(line, "#"); strings.TrimSpace(without) != "" &&
			(len(from) == 0 || len(to) == 0 || weight < 0.3 || weight > 0.7) {
			t.Errorf("not SCOPE WEIGHT WORDS: %s", line)
		}
		for _, a := range from {
			for _, b := range to {
				known := slices.ContainsFunc(table[a], func(s synonym) bool { return s.stem == b && s.scope == scope })
				if a != b && !known {
					table[a] = append(table[a], synonym{b, scope, weight})
				}
			}
		}
	}
	var want strings.Builder
	for _, stem := range slices.Sorted(maps.Keys(table)) {
		want.WriteString(stem)
		for _, s := range table[stem] {
			fmt.Fprintf(&want, "\t%s %.0f %s", s.stem, 100*s.weight, s.scope)
		}
		want.WriteByte('\n')
	}
	if *update {
		if err := os.WriteFile("thesaurus.table", []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if thesaurusTable != want.String() {
		t.Error("thesaurus.table differs from what thesaurus.txt generates; run go generate ./host/internal/index")
	}
	for stem, list := range table {
		if got := synonyms(stem); !slices.Equal(got, list) {
			t.Errorf("%s: %v, expected %v", stem, got, list)
		}
	}
	for _, stem := range []string{"", "a", "zzzz", "cook", "\n", "\t"} {
		if got := synonyms(stem); got != nil && table[stem] == nil {
			t.Errorf("%q: %v", stem, got)
		}
	}
	for _, line := range thesaurusLines() {
		if table[stemOf(line)] == nil {
			t.Errorf("%q has no synonyms", line)
		}
	}
	if n := len(thesaurusLines()); n != len(table) {
		t.Errorf("%d stems, expected %d", n, len(table))
	}
}

func thesaurusLine(line string) (from, to []string, scope string, weight float64) {
	line, _, _ = strings.Cut(line, "#")
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return nil, nil, "", 0
	}
	if fields[0] != "*" {
		scope = fields[0]
	}
	percent, _ := strconv.Atoi(fields[1])
	oneWay := false
	for _, f := range fields[2:] {
		switch {
		case f == ">":
			oneWay = true
		case oneWay:
			to = append(to, stem(f))
		default:
			from = append(from, stem(f))
		}
	}
	if !oneWay {
		to = from
	}
	return from, to, scope, float64(percent) / 100
}
