package index

import "strings"

// exclusions are words after which a query says what it does not want.
const exclusions = " without except excluding sans dont "

// exclusionPairs are pairs of such words.
const exclusionPairs = " instead of, rather than, other than, but not, and not, do not, not the, not a, not an, "

// resuming are words that end an exclusion: after them the query says again what it wants.
const resuming = " and then but from to in into on onto at for with by when while after before that which who so if "

// withoutExcluded returns a query without what it excludes: "screenshot without cookies" asks for a screenshot. A query
// that would lose everything keeps it, because "do not cache" asks for what prevents it.
func withoutExcluded(text string) string {
	var keep []string
	fields := strings.Fields(text)
	excluding, dropped, content := false, 0, false
	for i := 0; i < len(fields); i++ {
		word, pair := identifier(fields[i]), ""
		if i+1 < len(fields) {
			pair = " " + word + " " + identifier(fields[i+1]) + ","
		}
		switch {
		case among(exclusions, word):
			excluding, dropped = true, 0
			continue
		case pair != "" && strings.Contains(exclusionPairs, pair):
			excluding, dropped = true, 0
			i++
			continue
		case excluding && dropped > 0 && among(resuming, word):
			excluding = false
		}
		matters := word != "" && !stopWord(word)
		if !excluding {
			keep = append(keep, fields[i])
			content = content || matters
			continue
		}
		if matters {
			dropped++
		}
		ends := strings.ContainsAny(fields[i][len(fields[i])-1:], ",;.:!?)")
		excluding = dropped == 0 || !ends
	}
	if len(keep) == len(fields) || !content {
		return text
	}
	return strings.Join(keep, " ")
}

// negates reports whether a phrase says that something is left out.
func negates(phrase string) bool {
	const words = " without no not dont never ignore ignoring skip bypass disable except "
	for f := range strings.FieldsSeq(phrase) {
		if among(words, identifier(f)) {
			return true
		}
	}
	return false
}

// among reports whether a list of words, with a space around each, contains a word.
func among(list, word string) bool { return word != "" && strings.Contains(list, " "+word+" ") }
