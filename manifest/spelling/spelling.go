// Package spelling compares names: how far apart two spellings are, which known names a word resembles, and which words
// a name has.
package spelling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Near is a candidate that resembles a word, and its [Distance] from the word.
type Near struct {
	Name     string `json:"name"`
	Distance int    `json:"distance"`
}

// Nearest returns at most limit of the candidates that a word resembles, sorted by distance, then by name. See
// [Resembles].
func Nearest(word string, candidates []string, limit int) []Near {
	var near []Near
	w := lower(word)
	for _, c := range candidates {
		if d, ok := resembles(w, lower(c)); ok {
			near = append(near, Near{Name: c, Distance: d})
		}
	}
	slices.SortFunc(near, func(a, b Near) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), strings.Compare(a.Name, b.Name))
	})
	near = slices.CompactFunc(near, func(a, b Near) bool { return a.Name == b.Name })
	return near[:min(len(near), limit)]
}

// Resembles returns the distance of a word from a name, and reports whether it is small enough for a typo: at most a
// third of the length of the name, but at least one from three letters on. For a name with dots this must hold for
// each part, and for its shortest part if the word has more or fewer dots: "Page.goto" does not resemble "Page.stop"
// just because they share a part.
func Resembles(word, name string) (distance int, ok bool) { return resembles(lower(word), lower(name)) }

func resembles(word, name string) (int, bool) {
	a, b := []rune(word), []rune(name)
	limit := len(b) / 3
	if limit == 0 && len(a) == 3 {
		limit = 1
	}
	d, ok := within(a, b, limit)
	if !ok || !strings.Contains(name, ".") {
		return d, ok
	}
	parts, names := strings.Split(word, "."), strings.Split(name, ".")
	if len(parts) != len(names) {
		shortest := slices.MinFunc(names, func(a, b string) int { return len(a) - len(b) })
		return d, d <= max(1, utf8.RuneCountInString(shortest)/3)
	}
	for i, part := range parts {
		if _, ok := resembles(part, names[i]); !ok {
			return 0, false
		}
	}
	return d, true
}

// Distance returns the Damerau-Levenshtein distance of two words, ignoring case: the least number of insertions,
// deletions, substitutions and transpositions of neighbours that turn one into the other. Other characters may be
// inserted between transposed ones (the true distance, not "optimal string alignment").
func Distance(a, b string) int {
	return distance([]rune(strings.ToLower(a)), []rune(strings.ToLower(b)))
}

// longWord is the greatest length of words whose distance is computed: the cost grows with its square.
const longWord = 128

func lower(s string) string {
	// Longer words cannot be compared, so only their length matters.
	return strings.ToLower(s[:min(len(s), longWord*utf8.UTFMax)])
}

func within(a, b []rune, limit int) (int, bool) {
	if len(a) > longWord || len(b) > longWord || max(len(a), len(b))-min(len(a), len(b)) > limit {
		return 0, false
	}
	d := distance(a, b)
	// A word resembles another only if they have something in common.
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
	lastRow := make([]int, len(b)) // the last row in which a has the character of b
	for i := 1; i <= len(a); i++ {
		lastCol := 0 // the last column in which b has a[i-1]
		for j := 1; j <= len(b); j++ {
			i1, j1, cost := lastRow[j-1], lastCol, 1
			if a[i-1] == b[j-1] {
				cost, lastCol, lastRow[j-1] = 0, j, i
			}
			*at(i+1, j+1) = min(
				*at(i, j)+cost,
				*at(i+1, j)+1,
				*at(i, j+1)+1,
				*at(i1, j1)+(i-i1-1)+1+(j-j1-1),
			)
		}
	}
	return *at(len(a)+1, len(b)+1)
}

// Fold returns a name without its case, and without the signs between its words.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || r == ' ' || r == '/' || r == ':' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// Words splits a name or a text into words in lower case, at changes of case and punctuation. Digits stay with letters.
func Words(text string) []string {
	var spaced strings.Builder
	runes := []rune(text)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) ||
			unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(spaced.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// IsTypo reports whether one typing mistake turns name into given: two transposed letters, a letter too
// many or too few, or, in words of at least five letters, a wrong letter. Words that differ in a digit are different.
func IsTypo(given, name string) bool {
	a, b := []rune(given), []rune(name)
	if len(a) < 3 || len(b) < 3 || distance(a, b) != 1 {
		return false
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	switch {
	case len(a) != len(b):
		return i > 0
	case i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i]:
		return !unicode.IsDigit(a[i]) || !unicode.IsDigit(a[i+1])
	}
	return i > 0 && len(a) >= 5 && !unicode.IsDigit(a[i]) && !unicode.IsDigit(b[i])
}

// AtMost returns the first items of a list, and a last item that counts the others: "and 3 more".
func AtMost(items []string, most int) []string {
	if more := len(items) - most; more > 0 {
		return append(items[:most:most], fmt.Sprintf("and %d more", more))
	}
	return items
}

// Count describes how many parts something may have: "1 to 5 items", "at least 2 items"; "" if both bounds are nil.
func Count(least, most *int, noun string) string {
	switch {
	case least != nil && most != nil && *least == *most:
		return "exactly " + Plural(*least, noun)
	case least != nil && most != nil:
		return fmt.Sprintf("%d to %s", *least, Plural(*most, noun))
	case least != nil:
		return "at least " + Plural(*least, noun)
	case most != nil:
		return "at most " + Plural(*most, noun)
	}
	return ""
}

// Plural returns a number with its noun: "1 tool", "2 tools".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.HasSuffix(stem, "a") && !strings.HasSuffix(stem, "e") {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
