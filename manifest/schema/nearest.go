package schema

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Near is a candidate that resembles a word.
type Near struct {
	Name     string `json:"name"`
	Distance int    `json:"distance"`
}

// Nearest returns the candidates that a typo could have turned into word, nearest first, then by name, at most limit of
// them. How far counts as near grows with the length of the longer word: 1 up to three characters, 2 up to seven, 3 up to
// fifteen, then a quarter of the length.
func Nearest(word string, candidates []string, limit int) []Near {
	var near []Near
	w := fold(word)
	for _, c := range candidates {
		f := fold(c)
		if d, ok := within(w, f, reach(max(len(w), len(f)))); ok {
			near = append(near, Near{Name: c, Distance: d})
		}
	}
	slices.SortFunc(near, func(a, b Near) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), strings.Compare(a.Name, b.Name))
	})
	near = slices.CompactFunc(near, func(a, b Near) bool { return a.Name == b.Name })
	if len(near) > limit {
		near = near[:limit]
	}
	return near
}

// Distance is the Damerau-Levenshtein distance of two words without regard to case: the least number of insertions,
// deletions, replacements and exchanges of neighbours that turns one into the other, where exchanged neighbours may have
// others inserted between them (the true distance, not "optimal string alignment").
func Distance(a, b string) int {
	return distance([]rune(strings.ToLower(a)), []rune(strings.ToLower(b)))
}

// longWord is the length from which words are compared for equality only: the matrix grows with the square.
const longWord = 128

func reach(n int) int {
	switch {
	case n <= 3:
		return 1
	case n <= 7:
		return 2
	case n <= 15:
		return 3
	default:
		return n / 4
	}
}

func fold(s string) []rune {
	if len(s) > longWord*utf8.UTFMax {
		s = s[:longWord*utf8.UTFMax] // too long to be compared; only its length matters from here on
	}
	return []rune(strings.ToLower(s))
}

func within(a, b []rune, limit int) (int, bool) {
	if len(a) > longWord || len(b) > longWord || max(len(a), len(b))-min(len(a), len(b)) > limit {
		return 0, false
	}
	d := distance(a, b)
	// A word of which nothing is left is no relative.
	return d, d <= limit && d < max(len(a), len(b), 1)
}

func distance(a, b []rune) int {
	const inf = 1 << 30
	width := len(b) + 2
	m := make([]int, (len(a)+2)*width)
	at := func(i, j int) *int { return &m[i*width+j] }
	*at(0, 0) = inf
	for i := 0; i <= len(a); i++ {
		*at(i+1, 0), *at(i+1, 1) = inf, i
	}
	for j := 0; j <= len(b); j++ {
		*at(0, j+1), *at(1, j+1) = inf, j
	}
	lastRow := map[rune]int{} // where each character of a was seen last
	for i := 1; i <= len(a); i++ {
		lastCol := 0 // where a[i-1] was seen last in b
		for j := 1; j <= len(b); j++ {
			i1, j1, cost := lastRow[b[j-1]], lastCol, 1
			if a[i-1] == b[j-1] {
				cost, lastCol = 0, j
			}
			*at(i+1, j+1) = min(
				*at(i, j)+cost,
				*at(i+1, j)+1,
				*at(i, j+1)+1,
				*at(i1, j1)+(i-i1-1)+1+(j-j1-1),
			)
		}
		lastRow[a[i-1]] = i
	}
	return *at(len(a)+1, len(b)+1)
}
