package index

import (
	"strings"
	"unicode"
)

// foreignWords are frequent short words of German, French, Spanish, Italian, Portuguese, Dutch and Polish that are not
// English words or names of common things.
const foreignWords = " der die das und ein eine einen einer eines mit fuer für auf aus von vom zur zum dem den des " +
	"ist sind wie nicht alle aller machen zeige öffne le la les un une du et avec dans pour sur aux est " +
	"sont comment tous toutes el los las una unos del y con para por como todos todas página il lo " +
	"gli uno della delle di che e os um uma com não na em het een van voor met naar niet jak w z się "

// foreign reports whether a text is probably not English: most of its letters are of another script, or several of its
// words are of another language.
func foreign(text string) bool {
	latin, other := 0, 0
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r):
		case unicode.Is(unicode.Latin, r):
			latin++
		default:
			other++
		}
	}
	if other > latin {
		return true
	}
	hits, words := 0, 0
	for f := range strings.FieldsSeq(strings.ToLower(text)) {
		word := strings.Trim(f, "\"'`.,:;!?()[]")
		words++
		if among(foreignWords, word) {
			hits++
		}
	}
	return hits >= 2 || hits == 1 && words <= 5 && words >= 2 && notASCII(text)
}

func notASCII(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 && unicode.IsLetter(r) })
}

// mostlyUnknown reports whether neither the documents nor the dictionary contain most words of the query.
func (s *search) mostlyUnknown() bool {
	unknown := 0
	for _, w := range s.words {
		if !w.known && vectorOf(w.text) == "" {
			unknown++
		}
	}
	return len(s.words) > 0 && 2*unknown > len(s.words)
}
