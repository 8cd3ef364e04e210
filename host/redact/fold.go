package redact

import (
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// folded is a text in the form that encoded secrets are searched in: in lower case, without line breaks and the
// indentation after them, and with escapes decoded. at has the offset in the original text of each byte, and of the
// end; nil means that the offsets are equal.
type folded struct {
	text string
	at   []int32
}

func (f folded) offset(i int) int {
	if f.at == nil {
		return i
	}
	return int(f.at[i])
}

// fold returns a text in lower case without line breaks.
func fold(s string) folded {
	lower := lowerASCII(s)
	if !strings.ContainsAny(s, "\r\n") {
		return folded{text: lower}
	}
	out, at := make([]byte, 0, len(s)), make([]int32, 0, len(s)+1)
	for i := 0; i < len(lower); i++ {
		if lower[i] == '\n' || lower[i] == '\r' {
			for i+1 < len(lower) && strings.IndexByte("\r\n \t", lower[i+1]) >= 0 {
				i++
			}
			continue
		}
		out, at = append(out, lower[i]), append(at, int32(i))
	}
	return folded{string(out), append(at, int32(len(s)))}
}

// lowerASCII lowers letters of ASCII only, which keeps all offsets.
func lowerASCII(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' }) < 0 {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// unescape decodes one level of percent escapes, of the escapes of JSON and JavaScript, and of HTML's entities. It
// reports whether there were any.
func (f folded) unescape() (folded, bool) {
	if !strings.ContainsAny(f.text, `%\&`) {
		return f, false
	}
	out, at, changed := make([]byte, 0, len(f.text)), make([]int32, 0, len(f.text)+1), false
	for i := 0; i < len(f.text); {
		decoded, n := decodeEscape(f.text[i:])
		switch {
		case n > 0:
			changed = true
		case cutEscape(f.text[i:]):
			n, changed = len(f.text)-i, true
		default:
			decoded, n = f.text[i:i+1], 1
		}
		for k := range len(decoded) {
			out, at = append(out, decoded[k]), append(at, int32(f.offset(i)))
		}
		i += n
	}
	return folded{string(out), append(at, int32(f.offset(len(f.text))))}, changed
}

// cutEscape reports whether a text in lower case is the beginning of an escape that was cut off.
func cutEscape(s string) bool {
	const longest = len("&percnt")
	return len(s) <= longest && strings.IndexByte(`%\&`, s[0]) >= 0 && strings.Trim(s[1:], baseAlphabet[:36]+"#") == ""
}

// decodeEscape decodes the escape at the start of a text in lower case; n is its length, 0 if there is none.
func decodeEscape(s string) (decoded string, n int) {
	hexAt := func(from, digits int) (rune, bool) {
		if len(s) < from+digits {
			return 0, false
		}
		v, err := strconv.ParseUint(s[from:from+digits], 16, 32)
		return rune(v), err == nil
	}
	if len(s) < 2 {
		return "", 0
	}
	switch s[0] {
	case '%':
		if v, ok := hexAt(1, 2); ok {
			return lowerASCII(string([]byte{byte(v)})), 3
		}
		if v, ok := hexAt(2, 4); ok && s[1] == 'u' {
			return lowerASCII(string(v)), 6
		}
	case '\\':
		switch s[1] {
		case 'u':
			if v, ok := hexAt(2, 4); ok {
				if low, ok := hexAt(8, 4); ok && utf16.IsSurrogate(v) && s[6:8] == `\u` {
					return string(utf16.DecodeRune(v, low)), 12
				}
				return lowerASCII(string(v)), 6
			}
		case 'x':
			if v, ok := hexAt(2, 2); ok {
				return lowerASCII(string(v)), 4
			}
		case '\\', '/', '"', '\'', '`':
			return s[1:2], 2
		case '0', '1', '2', '3':
			if v, err := strconv.ParseUint(s[1:min(len(s), 4)], 8, 8); err == nil && len(s) > 3 {
				return lowerASCII(string([]byte{byte(v)})), 4
			}
		case 'n', 'r':
			return "", 2 // a line break
		case 't':
			return "\t", 2
		}
	case '&':
		end := strings.IndexByte(s[:min(len(s), 12)], ';') + 1
		if text := html.UnescapeString(s[:end]); end > 0 && text != s[:end] {
			return lowerASCII(strings.ReplaceAll(text, "\u00a0", " ")), end
		}
	}
	return "", 0
}

// foldedForm is a form of a secret to be searched in folded texts.
type foldedForm struct {
	text string // folded
	name string
	// before and after mean that the base64 character next to the form holds bits of the value, too.
	before, after bool
}

const baseAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789+/-_="

// foldedForms returns the forms of a value that do not depend on how a text is spelled, longest first per kind.
func foldedForms(name, value string) []foldedForm {
	forms, digits := []foldedForm{{text: fold(value).text, name: name}}, fmt.Sprintf("% x", value)
	for _, between := range []string{"", " ", ":", "-"} {
		forms = append(forms, foldedForm{text: strings.ReplaceAll(digits, " ", between), name: name})
	}
	// The base64 of a value depends on its offset in a group of three bytes, and the base32 on its offset in a group of
	// five. The characters that it shares with its neighbors are not part of the form.
	add := func(value string, encode func([]byte) string, group, bits int) (added []string) {
		for shift := range group {
			encoded := encode(append(make([]byte, shift), value...))
			from, rest := (shift*8+bits-1)/bits, (shift+len(value))*8%bits != 0
			whole := (shift + len(value)) * 8 / bits
			if whole > from {
				form := foldedForm{lowerASCII(encoded[from:whole]), name, shift*8%bits != 0, rest}
				forms, added = lists.Add(forms, form), append(added, encoded[from:whole])
			}
		}
		return added
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for _, encoded := range add(value, encoding.EncodeToString, 3, 6) {
			add(encoded, base64.RawStdEncoding.EncodeToString, 3, 6) // twice: the second one is the same in both alphabets
		}
	}
	add(value, base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString, 5, 5)
	return lists.Filter(forms, func(f foldedForm) bool { return len(f.text) >= minFolded })
}

// maxEscapes is how many levels of escapes are decoded.
const maxEscapes = 4

// redactFolded replaces each form in a text, however it is spelled, and what a cut has left of a form at either end.
func redactFolded(s string, forms []foldedForm) string {
	if len(s) < minFolded || len(forms) == 0 {
		return s
	}
	f, ok := fold(s), true
	for level := 0; ok && level <= maxEscapes; level++ {
		for _, form := range forms {
			if redacted := form.redact(s, f); redacted != s {
				s = redacted
				if f, ok = foldTo(s, level); !ok {
					return s
				}
			}
		}
		f, ok = f.unescape()
	}
	return s
}

// foldTo folds a text and decodes some levels of escapes; ok is false if it has fewer levels.
func foldTo(s string, levels int) (f folded, ok bool) {
	f, ok = fold(s), true
	for range levels {
		if f, ok = f.unescape(); !ok {
			return f, false
		}
	}
	return f, true
}

// redact replaces a form in a text s, which was folded to f, and what a cut has left of the form at either end.
func (form foldedForm) redact(s string, f folded) string {
	var out strings.Builder
	copied, from := 0, 0
	replace := func(start, end int) {
		if at := f.offset(start); at >= copied {
			out.WriteString(s[copied:at] + Prefix + form.name + "]")
			copied = f.offset(end)
		}
	}
	if n := cutAtStart(f.text, form.text); n > 0 {
		replace(0, n)
		from = n
	}
	for {
		i := strings.Index(f.text[from:], form.text)
		if i < 0 {
			break
		}
		start, end := from+i, from+i+len(form.text)
		if form.before && start > 0 && strings.IndexByte(baseAlphabet, f.text[start-1]) >= 0 {
			start--
		}
		if form.after && end < len(f.text) && strings.IndexByte(baseAlphabet, f.text[end]) >= 0 {
			end++
		}
		replace(start, end)
		from = end
	}
	if n := cutAtEnd(f.text[from:], form.text); n > 0 {
		replace(len(f.text)-n, len(f.text))
	}
	if copied == 0 {
		return s
	}
	return out.String() + s[copied:]
}

// minCut is how much of a form must be left by a cut to be recognized: a fragment, and a quarter of the form, so that a
// beginning that many texts share, such as "https://", remains.
func minCut(form string) int { return max(minFragment, len(form)/4) }

// cutAtEnd returns how many bytes of the beginning of a form end a text, or 0 if they are too few.
func cutAtEnd(text, form string) int {
	least := minCut(form)
	if len(form) <= least || len(text) < least {
		return 0
	}
	tail := text[max(0, len(text)-len(form)+1):]
	for {
		i := strings.Index(tail, form[:least])
		if i < 0 {
			return 0
		}
		if tail = tail[i:]; strings.HasPrefix(form, tail) {
			return len(tail)
		}
		tail = tail[1:]
	}
}

// cutAtStart returns how many bytes of the end of a form begin a text, or 0 if they are too few.
func cutAtStart(text, form string) int {
	least := minCut(form)
	if len(form) <= least || len(text) < least {
		return 0
	}
	head := text[:min(len(text), len(form)-1)]
	for {
		i := strings.LastIndex(head, form[len(form)-least:])
		if i < 0 {
			return 0
		}
		if found := head[:i+least]; strings.HasSuffix(form, found) {
			return len(found)
		}
		head = head[:i+least-1]
	}
}

// secretForms finds the values of secrets, and their encoded forms, in texts.
type secretForms struct {
	exact  *strings.Replacer
	folded []foldedForm
}

func newSecretForms(values map[string]string) *secretForms {
	f := &secretForms{exact: newReplacer(values)}
	for name, value := range values {
		for _, part := range parts(value) {
			f.folded = append(f.folded, foldedForms(name, part)...)
		}
	}
	return f
}

// parts returns the parts of a value that may occur in texts: the whole, its lines joined as in a message, its words
// joined as in a submitted form, and the password after a user.
func parts(value string) []string {
	all := []string{value, manifest.CleanLine(value)}
	if _, password, isPair := strings.Cut(value, ":"); isPair && len(password) >= minFragment {
		all = append(all, password)
	}
	for _, part := range all {
		all = append(all, strings.ReplaceAll(part, " ", "+"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (f *secretForms) Redact(s string) string {
	if f == nil {
		return s
	}
	return redactFolded(f.exact.Replace(s), f.folded)
}
