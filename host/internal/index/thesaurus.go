package index

import (
	_ "embed"
	"sort"
	"strconv"
	"strings"
	"sync"
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

// thesaurusLines are the lines of the table, sorted by stem.
var thesaurusLines = sync.OnceValue(func() []string {
	return strings.Split(strings.TrimSuffix(thesaurusTable, "\n"), "\n")
})

// stemOf returns the stem of a line of the table.
func stemOf(line string) string {
	stem, _, _ := strings.Cut(line, "\t")
	return stem
}

// synonyms returns the synonyms of the words with a stem.
func synonyms(stem string) (list []synonym) {
	lines := thesaurusLines()
	i, found := sort.Find(len(lines), func(i int) int { return strings.Compare(stem, stemOf(lines[i])) })
	if !found {
		return nil
	}
	for _, entry := range strings.Split(lines[i], "\t")[1:] {
		stem, rest, _ := strings.Cut(entry, " ")
		percent, scope, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(percent)
		list = append(list, synonym{stem, scope, float64(n) / 100})
	}
	return list
}
