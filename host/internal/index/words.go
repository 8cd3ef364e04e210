package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-tools/parley/internal/lazy"
)

// maxTerm is the length in bytes of the longest word that is indexed or looked up.
const maxTerm = 40

// chunk is a run of letters and digits, in lower case: whole, and split where the case changes.
type chunk struct {
	whole string
	parts []string // one part: the same as whole
}

// words returns the parts, or the whole if it is a word of its own: JavaScript and GitHub are one word each.
func (c chunk) words() []string {
	if len(c.parts) > 1 && vectorOf(c.whole) != "" {
		return []string{c.whole}
	}
	return c.parts
}

// chunks splits text at everything that is neither a letter nor a digit. "getDOMStorage" has the parts get, dom and
// storage. Scripts without spaces (Chinese, Japanese, Korean, Thai) are split into overlapping pairs of letters. It
// stops after limit parts.
func chunks(text string, limit int) []chunk {
	var out []chunk
	n := 0
	for text != "" && n < limit {
		r, size := utf8.DecodeRuneInString(text)
		if !wordRune(r, size) {
			text = text[size:]
			continue
		}
		end, unspacedRun := size, unspaced(r)
		for end < len(text) {
			r, size := utf8.DecodeRuneInString(text[end:])
			if r == '\'' || r == '’' {
				// don't, page's: one word
				if next, s := utf8.DecodeRuneInString(text[end+size:]); !wordRune(next, s) || unspaced(next) {
					break
				}
				end += size
				continue
			}
			if !wordRune(r, size) || unspaced(r) != unspacedRun {
				break
			}
			end += size
		}
		run := text[:end]
		text = text[end:]
		if unspacedRun {
			for _, pair := range pairs(run) {
				out = append(out, chunk{pair, []string{pair}})
				n++
			}
			continue
		}
		c := split(run)
		if c.whole != "" {
			out = append(out, c)
			n += len(c.parts)
		}
	}
	return out
}

func wordRune(r rune, size int) bool {
	if r < utf8.RuneSelf {
		return asciiLetter(byte(r))
	}
	return !(r == utf8.RuneError && size <= 1) && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r))
}

func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

func pairs(run string) []string {
	runes := []rune(run)
	if len(runes) == 1 {
		return []string{run}
	}
	var out []string
	for i := 0; i+1 < len(runes); i++ {
		out = append(out, string(runes[i:i+2]))
	}
	return out
}

// split splits a run between a lower-case letter or digit and a capital, and before the last of several capitals that a
// lower-case letter follows: HTMLElement becomes html and element. A plural of capitals ("URLs") stays one part.
func split(run string) chunk {
	special := func(r rune) bool { return r >= utf8.RuneSelf || r >= 'A' && r <= 'Z' || r == '\'' }
	if !strings.ContainsFunc(run, special) {
		if len(run) > maxTerm {
			return chunk{}
		}
		return chunk{run, []string{run}}
	}
	var runes []rune
	for _, r := range run {
		if r != '\'' && r != '’' && !unicode.Is(unicode.Mn, r) {
			runes = append(runes, r)
		}
	}
	var parts []string
	start := 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !boundary(runes, i) {
			continue
		}
		if part := strings.ToLower(string(runes[start:i])); len(part) <= maxTerm {
			parts = append(parts, part)
		}
		start = i
	}
	if len(parts) == 0 {
		return chunk{}
	}
	return chunk{strings.Join(parts, ""), parts}
}

// boundary reports whether a new part begins at letter i of a run.
func boundary[T byte | rune](run []T, i int) bool {
	if !upper(run[i]) {
		return false
	}
	if !upper(run[i-1]) {
		return true
	}
	if i+1 >= len(run) || !lower(run[i+1]) {
		return false
	}
	plural := run[i+1] == 's' && (i+2 == len(run) || !lower(run[i+2]))
	return !plural
}

func upper[T byte | rune](c T) bool {
	return c >= 'A' && c <= 'Z' || rune(c) >= utf8.RuneSelf && unicode.IsUpper(rune(c))
}

func lower[T byte | rune](c T) bool {
	return c >= 'a' && c <= 'z' || rune(c) >= utf8.RuneSelf && unicode.IsLower(rune(c))
}

// identifier returns a name without its style: only letters and digits, in lower case.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// splitName splits a name into the part of its group and its own part: "Network." and "getCookies".
func splitName(name string) (group, last string) {
	i := strings.LastIndexByte(name, '.') + 1
	return name[:i], name[i:]
}

// stopWords carry no meaning in a query or a text. They count only in names and in queries that consist of them.
var stopWords = lazy.Words(`a able about after also am an and any are as at be been being but by can cannot could
	did do does doing done dont each either else etc for from given had has have having he her here him his how i if
	im in into is isnt it its ive just kind let lets like made make makes may me might more most must my need needs
	no not of on one only onto or other our ours out own per please same shall she should so some such than that the
	their them then there these they this those thus to too toward towards up upon us use used uses using very via
	want wants was way we were what whats when where whether which while who whose why will with within would you
	your yours`)

func stopWord[T string | []byte](word T) bool {
	return len(word) == 1 && (word[0] < '0' || word[0] > '9') || stopWords()[string(word)]
}
