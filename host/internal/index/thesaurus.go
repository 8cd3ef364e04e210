package index

import (
	_ "embed"
	"strconv"
	"strings"
)

// thesaurusTable is thesaurus.txt in a form that is searched in place, so that a process that searches once does not
// stem two thousand words. It has one line per stem, sorted, with the stem, percentage and scope of each synonym.
//
//go:generate go test -run TestThesaurusTable -update .
//go:embed thesaurus.table
var thesaurusTable string

// synonym is another word for a word in the tools of the plugin scope ("": of all plugins).
type synonym struct {
	stem, scope string
	weight      float64 // share of a direct match
}

// synonyms returns the synonyms of the words with a stem.
func synonyms(stem string) (list []synonym) {
	lo, hi := 0, len(thesaurusTable) // bounds of the line's start
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
