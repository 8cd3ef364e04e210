package index

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed thesaurus.txt
var thesaurusText string

// A synonym is what else a word may be called in the tools of plugin scope ("": everywhere).
type synonym struct {
	stem, scope string
	weight      float64 // share of a direct match
}

// thesaurus maps the stem of a word to its synonyms. It is read at the first search, not at the start of the process.
var thesaurus = sync.OnceValue(func() map[string][]synonym {
	table := make(map[string][]synonym, 512)
	for line := range strings.Lines(thesaurusText) {
		from, to, scope, weight := thesaurusLine(line)
		for _, a := range from {
			for _, b := range to {
				known := slices.ContainsFunc(table[a], func(s synonym) bool { return s.stem == b && s.scope == scope })
				if a != b && !known {
					table[a] = append(table[a], synonym{b, scope, weight})
				}
			}
		}
	}
	return table
})

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
