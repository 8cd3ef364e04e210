package index

import (
	_ "embed"
	"strconv"
	"strings"
)

// thesaurusTable is thesaurus.txt in a form that is searched in place, because a process that searches once should not stem
// two thousand words: a line for each stem, sorted, with what else it is called: stem, percent and scope of each.
//
//go:generate go test -run TestThesaurusTable -update .
//go:embed thesaurus.table
var thesaurusTable string

// A synonym is what else a word may be called in the tools of plugin scope ("": everywhere).
type synonym struct {
	stem, scope string
	weight      float64 // share of a direct match
}

// synonyms are those of the word with a stem.
func synonyms(stem string) (list []synonym) {
	lo, hi := 0, len(thesaurusTable) // where the line begins, if there is one
	for lo < hi {
		start := strings.LastIndexByte(thesaurusTable[:(lo+hi)/2], '\n') + 1
		key, rest, _ := strings.Cut(thesaurusTable[start:], "\t")
		switch {
		case key == stem:
			line, _, _ := strings.Cut(rest, "\n")
			for entry := range strings.SplitSeq(line, "\t") {
				stem, rest, _ := strings.Cut(entry, " ")
				percent, scope, _ := strings.Cut(rest, " ")
				n, _ := strconv.Atoi(percent)
				list = append(list, synonym{stem, scope, float64(n) / 100})
			}
			return list
		case key < stem:
			lo = start + strings.IndexByte(thesaurusTable[start:], '\n') + 1
		default:
			hi = start
		}
	}
	return nil
}

// eachStem calls f with every stem that has synonyms, sorted.
func eachStem(f func(stem string)) {
	for line := range strings.Lines(thesaurusTable) {
		stem, _, _ := strings.Cut(line, "\t")
		f(stem)
	}
}
