// Package letters normalizes texts to what a person or an agent may read in them: letters that look alike or have
// another style, and words that are encoded or split.
package letters

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest/spelling"
)

// lookAlikes are letters of other scripts that look like Latin ones. Letters that are used as symbols, such as μ and
// Δ, are not among them.
var lookAlikes = strings.NewReplacer(
	"а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "у", "y", "х", "x", "і", "i", "ј", "j", "ѕ", "s", "һ", "h", "ԁ", "d",
	"ԛ", "q", "ԝ", "w", "А", "A", "В", "B", "Е", "E", "К", "K", "М", "M", "Н", "H", "О", "O", "Р", "P", "С", "C", "Т", "T",
	"Х", "X", "І", "I", "Ј", "J", "Ѕ", "S", "У", "Y", "ο", "o", "ν", "v", "ι", "i", "Α", "A", "Β", "B", "Ε", "E", "Ζ", "Z",
	"Η", "H", "Ι", "I", "Κ", "K", "Μ", "M", "Ν", "N", "Ο", "O", "Ρ", "P", "Τ", "T", "Υ", "Y", "Χ", "X", "ɡ", "g", "ı", "i",
)

// ReplaceLookAlikes returns s with look-alikes of Latin letters, including full-width forms, replaced by the Latin
// letters.
func ReplaceLookAlikes(s string) string {
	if IsASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r >= 0xff01 && r <= 0xff5e {
			return r - 0xff01 + '!'
		}
		return r
	}, lookAlikes.Replace(s))
}

// IsASCII reports whether a text has ASCII characters only.
func IsASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// alphabets are the first letters of alphabets in other styles, such as 𝐀 and ⓐ, with the ASCII letter that each run
// of 26 begins with.
var alphabets = sync.OnceValue(func() map[rune]rune {
	starts := map[rune]rune{0x24b6: 'A', 0x24d0: 'a', 0x249c: 'a', 0x1f110: 'A', 0x1f130: 'A', 0x1f150: 'A', 0x1f170: 'A'}
	for style := range rune(13) { // bold, italic, script, Fraktur, double-struck, sans-serif, monospace
		starts[0x1d400+52*style], starts[0x1d400+52*style+26] = 'A', 'a'
	}
	return starts
})

// plainLetters maps further letters to the ASCII letters that they are read as: small capitals, letterlike symbols
// and letters with diacritics.
var plainLetters = sync.OnceValue(func() map[rune]rune {
	letters := map[rune]rune{}
	for ascii, forms := range map[rune]string{
		'a': "ᴀàáâãäåāăąạả", 'b': "ʙ", 'c': "ᴄçćčℂ", 'd': "ᴅðďđ", 'e': "ᴇèéêëēėęěẹℯℰ", 'f': "ꜰ", 'g': "ɢğģℊ", 'h': "ʜℎℋ",
		'i': "ɪìíîïīįİị", 'j': "ᴊ", 'k': "ᴋķ", 'l': "ʟłľļℓ", 'm': "ᴍℳ", 'n': "ɴñńňņℕ", 'o': "ᴏòóôõöøōőọℴ", 'p': "ᴘℙ",
		'q': "ꞯℚ", 'r': "ʀŕřℝ", 's': "ꜱśšşș", 't': "ᴛţťț", 'u': "ᴜùúûüūůűụ", 'v': "ᴠ", 'w': "ᴡŵ", 'y': "ʏýÿŷ", 'z': "ᴢźżžℤ",
	} {
		for _, r := range forms {
			letters[r], letters[unicode.ToUpper(r)] = ascii, ascii
		}
	}
	return letters
})

// Fold returns s with letters of any style, and with diacritics, as ASCII letters, where they have one.
func Fold(s string) string {
	s = ReplaceLookAlikes(s)
	if IsASCII(s) {
		return s
	}
	starts, letters := alphabets(), plainLetters()
	return strings.Map(func(r rune) rune {
		if ascii, ok := letters[r]; ok {
			return ascii
		}
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		if r >= 0x249c && r <= 0x1f189 {
			for start, ascii := range starts {
				if r >= start && r < start+26 {
					return ascii + r - start
				}
			}
		}
		return r
	}, s)
}

var (
	spacedLetters = lazy.Pattern(`\b[A-Za-z](?:[ ._*|-]+[A-Za-z]){4,}\b`)
	joinedWords   = lazy.Pattern(`\b[A-Za-z]+(?:[_-][A-Za-z]+){2,}\b|\b[A-Za-z][a-z]+(?:[A-Z][a-z]+){2,}\b`)
	digitsInWord  = lazy.Pattern(`\b[A-Za-z]*[0-9][A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*\b`)
	encodedText   = lazy.Pattern(`[A-Za-z0-9+/_-]{20,}={0,2}`)
)

// Readings returns the other texts that a text may be read as: with its entities, escapes and encodings decoded, and
// its words joined or split.
func Readings(plain string) []string {
	var list []string
	add := func(s string) {
		if s != plain {
			list = append(list, s)
		}
	}
	if strings.Contains(plain, "&") {
		add(html.UnescapeString(plain))
	}
	if strings.Contains(plain, "%") {
		if s, err := url.PathUnescape(plain); err == nil {
			add(s)
		}
	}
	replaced := func(expr *regexp.Regexp, change func(string) string) { add(expr.ReplaceAllStringFunc(plain, change)) }
	replaced(spacedLetters(), func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return r
			}
			return -1
		}, s)
	})
	replaced(joinedWords(), func(s string) string { return strings.Join(spelling.Words(s), " ") })
	replaced(digitsInWord(), strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t").Replace)
	for _, found := range encodedText().FindAllString(plain, 20) {
		if text := decodeText(found); text != "" {
			add(text)
		}
	}
	return list
}

// decodeText returns the text that base64 or hexadecimal digits encode, or "" if they encode none.
func decodeText(s string) string {
	digits := strings.TrimRight(s, "=")
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		data, err := decode(digits)
		if err != nil || !utf8.Valid(data) {
			continue
		}
		if strings.IndexFunc(string(data), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) < 0 {
			return string(data)
		}
	}
	return ""
}
