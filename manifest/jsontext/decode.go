package jsontext

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits bounds what [Decode] accepts. A zero field stands for its default.
type Limits struct {
	Depth int // levels of nested arrays and objects; default 200
	Bytes int // length of the text; default 4 MiB
	// Values is the number of scalars, arrays and objects; default 2^20. Each takes far more memory than its text.
	Values int
}

const (
	defaultDepth = 200
	defaultBytes = 4 << 20
	// An array of ones within defaultBytes has twice as many values; no real document has.
	defaultValues = 1 << 20

	maxNumberLen = 64
	// Beyond these, the memory of exact arithmetic grows with a number's value, not with its length.
	maxDigits, maxExponent = 400, 400
)

// SyntaxError says where and why [Decode] refuses a text.
type SyntaxError struct {
	Offset       int64  // in bytes, from 0
	Line, Column int    // from 1; columns count characters
	Pointer      string // JSON pointer to the value being read
	Msg          string
	IsLimit      bool // the text exceeds a bound of [Limits], although its grammar may be valid
	TooMany      bool // that bound is Limits.Values
}

func (e *SyntaxError) Error() string {
	at := ""
	if e.Pointer != "" {
		at = " (at " + e.Pointer + ")"
	}
	return fmt.Sprintf("invalid JSON at line %d, column %d: %s%s", e.Line, e.Column, e.Msg, at)
}

// Decode reads exactly one JSON value, strictly: the text is valid UTF-8, has no duplicate keys and nothing after the
// value; an integer has at most 400 digits in whatever form it is written, and any other number at most 64 characters
// and an exponent between -400 and 400. Numbers become json.Number, objects map[string]any, arrays []any. The error is
// a *[SyntaxError].
func Decode(data []byte, lim Limits) (any, error) {
	lim.Depth, lim.Bytes = cmp.Or(lim.Depth, defaultDepth), cmp.Or(lim.Bytes, defaultBytes)
	lim.Values = cmp.Or(lim.Values, defaultValues)
	if len(data) > lim.Bytes {
		return nil, &SyntaxError{Line: 1, Column: 1, IsLimit: true,
			Msg: fmt.Sprintf("%d bytes of JSON, at most %d are accepted", len(data), lim.Bytes)}
	}
	d := &decoder{s: string(data), lim: lim}
	v := d.document()
	if d.err != nil {
		return nil, d.err
	}
	return v, nil
}

// decoder reads one text. What it returns after an error is not used.
type decoder struct {
	s    string
	i    int
	lim  Limits
	path []string
	n    int          // number of values read so far
	err  *SyntaxError // the first error
}

// IsUTF16 reports whether a text begins as one in UTF-16 does: with its byte order mark.
func IsUTF16(text string) bool {
	return strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff")
}

func (d *decoder) document() any {
	switch {
	case IsUTF16(d.s) || len(d.s) > 1 && (d.s[0] == 0) != (d.s[1] == 0): // a JSON text has no NUL
		return d.fail(0, "the text is UTF-16: save it as UTF-8")
	case strings.HasPrefix(d.s, "\ufeff"):
		return d.fail(0, "the text begins with a byte order mark: remove it")
	}
	if d.space(); d.i == len(d.s) {
		return d.fail(d.i, "the input is empty, a JSON value is expected")
	}
	v := d.value(0)
	if d.space(); d.err == nil && d.i < len(d.s) {
		return d.fail(d.i, "%s after the end of the value", d.here())
	}
	return v
}

func (d *decoder) value(depth int) any {
	if d.n++; d.n > d.lim.Values {
		d.fail(d.i, "more than %d values", d.lim.Values)
		d.err.IsLimit, d.err.TooMany = true, true
		return nil
	}
	if d.i == len(d.s) {
		return d.fail(d.i, "the text ends where a value is expected")
	}
	switch c := d.s[d.i]; {
	case c == '"':
		return d.str()
	case (c == '{' || c == '[') && depth == d.lim.Depth:
		d.fail(d.i, "more than %d nested arrays and objects", d.lim.Depth)
		d.err.Pointer, d.err.IsLimit = "", true // nobody reads a pointer of 200 tokens
		return nil
	case c == '{':
		return d.object(depth + 1)
	case c == '[':
		return d.array(depth + 1)
	case c == '-' || '0' <= c && c <= '9':
		return d.number()
	case strings.HasPrefix(d.s[d.i:], "true"):
		d.i += len("true")
		return true
	case strings.HasPrefix(d.s[d.i:], "false"):
		d.i += len("false")
		return false
	case strings.HasPrefix(d.s[d.i:], "null"):
		d.i += len("null")
		return nil
	case c == '\'':
		return d.fail(d.i, `%s where a value is expected: strings are written in double quotes`, d.here())
	}
	return d.fail(d.i, "%s where a value is expected", d.here())
}

// unexpected fails inside a value, where something else is expected.
func (d *decoder) unexpected(inside, expected string) any {
	if d.i == len(d.s) {
		return d.fail(d.i, "the text ends inside an %s", inside)
	}
	return d.fail(d.i, "%s where %s", d.here(), expected)
}

func (d *decoder) object(depth int) any {
	d.i++
	m := map[string]any{}
	if d.space(); d.eat('}') {
		return m
	}
	for {
		d.space()
		start := d.i
		if d.i == len(d.s) || d.s[d.i] != '"' {
			if strings.HasPrefix(d.s[d.i:], "}") {
				return d.fail(d.i, "'}' after a comma: remove the comma")
			}
			return d.unexpected("object", "a key in double quotes is expected")
		}
		key := d.str()
		if d.err != nil {
			return nil
		}
		d.path = append(d.path, key)
		if _, dup := m[key]; dup {
			return d.fail(start, "duplicate key %s", QuoteShort(key))
		}
		if d.space(); !d.eat(':') {
			return d.unexpected("object", "':' is expected after key "+QuoteShort(key))
		}
		d.space()
		m[key] = d.value(depth)
		if d.err != nil {
			return nil
		}
		d.path = d.path[:len(d.path)-1]
		if d.space(); d.eat('}') {
			return m
		}
		if !d.eat(',') {
			return d.unexpected("object", "',' or '}' is expected")
		}
	}
}

func (d *decoder) array(depth int) any {
	d.i++
	a := []any{}
	if d.space(); d.eat(']') {
		return a
	}
	d.path = append(d.path, "")
	for {
		d.path[len(d.path)-1] = strconv.Itoa(len(a))
		d.space()
		if d.i < len(d.s) && d.s[d.i] == ']' {
			return d.fail(d.i, "']' after a comma: remove the comma")
		}
		v := d.value(depth)
		if d.err != nil {
			return nil
		}
		a = append(a, v)
		if d.space(); d.eat(']') {
			d.path = d.path[:len(d.path)-1]
			return a
		}
		if !d.eat(',') {
			return d.unexpected("array", "',' or ']' is expected")
		}
	}
}

// str reads a string whose opening quote is at d.i.
func (d *decoder) str() string {
	open := d.i
	d.i++
	var b []byte // set once an escape forces a copy
	from, high := d.i, false
	for d.i < len(d.s) {
		c := d.s[d.i]
		switch {
		case c == '"':
			part := d.s[from:d.i]
			if high && !utf8.ValidString(d.s[open+1:d.i]) {
				d.badUTF8(open + 1)
			}
			d.i++
			if b == nil {
				return part
			}
			return string(append(b, part...))
		case c == '\\':
			if b = d.escape(append(b, d.s[from:d.i]...)); d.err != nil {
				return ""
			}
			from = d.i
		case c == 0:
			d.fail(d.i, "a NUL byte inside a string: write \\u0000")
			return ""
		case c < 0x20:
			d.fail(d.i, "control character %q inside a string: write %s", string(c), escapeOf(c))
			return ""
		default:
			high = high || c >= utf8.RuneSelf
			d.i++
		}
	}
	d.fail(open, "the string that begins here is not terminated")
	return ""
}

// escape appends the character that the escape at d.i stands for.
func (d *decoder) escape(b []byte) []byte {
	start := d.i
	if d.i+1 >= len(d.s) {
		d.fail(start, "the text ends inside a string")
		return nil
	}
	c := d.s[d.i+1]
	d.i += 2
	if k := strings.IndexByte(`"\/bfnrt`, c); k >= 0 {
		return append(b, "\"\\/\b\f\n\r\t"[k])
	}
	if c != 'u' {
		d.fail(start, `unknown escape in a string: a backslash itself is written \\`)
		return nil
	}
	r := unicodeEscape(d.s[d.i-2:])
	if r < 0 {
		d.fail(start, `\u must be followed by four hexadecimal digits`)
		return nil
	}
	d.i += 4
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(b, r)
	}
	pair := utf16.DecodeRune(r, unicodeEscape(d.s[d.i:]))
	if pair == utf8.RuneError {
		d.fail(start, `escape \u%04x is half of a surrogate pair`, r)
		return nil
	}
	d.i += 6
	return utf8.AppendRune(b, pair)
}

// unicodeEscape returns the code unit of the \u escape that text begins with, or -1.
func unicodeEscape[T string | []byte](text T) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// ReplaceLoneSurrogates returns a valid JSON text with U+FFFD for each escape that is half of a surrogate pair. Chrome
// writes such escapes, and many parsers refuse them.
func ReplaceLoneSurrogates(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\ud`)) && !bytes.Contains(text, []byte(`\uD`)) {
		return text
	}
	text = bytes.Clone(text)
	for i := 0; i < len(text); i++ {
		switch r := unicodeEscape(text[i:]); {
		case utf16.IsSurrogate(r) && utf16.DecodeRune(r, unicodeEscape(text[i+6:])) != utf8.RuneError:
			i += 11
		case utf16.IsSurrogate(r):
			copy(text[i:], `\ufffd`)
		case text[i] == '\\':
			i++ // skip the escaped character
		}
	}
	return text
}

func (d *decoder) number() any {
	end := d.i
	for end < len(d.s) && strings.IndexByte(numberSigns, d.s[end]) >= 0 {
		end++
	}
	text := d.s[d.i:end]
	if why := numberFault(text); why != "" {
		return d.fail(d.i, "%s", why)
	}
	d.i = end
	return json.Number(text)
}

// ValidNumber reports whether Decode accepts text as a number.
func ValidNumber(text string) bool { return numberFault(text) == "" }

// numberFault returns why Decode refuses text as a number, "" if it accepts it.
func numberFault(text string) string {
	switch isInteger := !strings.ContainsAny(text, ".eE"); {
	case isInteger && len(text) > maxDigits+1:
		return fmt.Sprintf("an integer of %d digits; at most %d are accepted: write it as a string",
			len(strings.TrimPrefix(text, "-")), maxDigits)
	case !isInteger && len(text) > maxNumberLen:
		return fmt.Sprintf("a number of %d characters; at most %d are accepted: write it as a string", len(text),
			maxNumberLen)
	}
	mantissa, exp, ok := splitNumber(text)
	if !ok {
		return fmt.Sprintf("%q is not a JSON number", text)
	}
	if strings.Trim(mantissa, "-0.") == "" {
		return ""
	}
	if n, err := strconv.Atoi(exp); exp != "" && (err != nil || n > maxExponent || n < -maxExponent) {
		return fmt.Sprintf("the number %s is out of range", text)
	}
	if exp == "" && len(text) <= maxDigits { // as it is written
		return ""
	}
	if digits, _ := Integer(text); len(strings.TrimPrefix(digits, "-")) > maxDigits {
		return fmt.Sprintf("the number %s has more than %d digits", text, maxDigits)
	}
	return ""
}

// Integer returns a number that [Decode] accepts as digits, exactly: 20 for 2e1, 0 for -0.0. ok is false if it has a
// fraction.
func Integer(text string) (digits string, ok bool) {
	mantissa, exp, ok := splitNumber(text)
	if !ok {
		return "", false
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0", true
	}
	shift, _ := strconv.Atoi(exp)
	switch shift -= len(fraction); {
	case shift >= 0:
		digits += strings.Repeat("0", shift)
	case strings.HasSuffix(digits, strings.Repeat("0", -shift)):
		digits = digits[:len(digits)+shift]
	default:
		return "", false
	}
	if negative {
		digits = "-" + digits
	}
	return digits, true
}

// splitNumber splits a number before its exponent. ok is false if s is not a JSON number.
func splitNumber(s string) (mantissa, exp string, ok bool) {
	if strings.Trim(s, numberSigns) != "" || !json.Valid([]byte(s)) {
		return "", "", false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", true
}

// numberSigns are the characters that occur in numbers.
const numberSigns = "+-.0123456789eE"

func (d *decoder) space() {
	for d.i < len(d.s) {
		switch d.s[d.i] {
		case ' ', '\t', '\n', '\r':
			d.i++
		default:
			return
		}
	}
}

func (d *decoder) eat(c byte) bool {
	if d.i < len(d.s) && d.s[d.i] == c {
		d.i++
		return true
	}
	return false
}

// here describes the character or word at d.i for messages.
func (d *decoder) here() string {
	r, size := utf8.DecodeRuneInString(d.s[d.i:])
	switch {
	case r == 0:
		return "a NUL byte"
	case r == utf8.RuneError && size <= 1:
		return fmt.Sprintf("byte 0x%02x, which is not UTF-8,", d.s[d.i])
	}
	end := d.i
	for end < len(d.s) && end-d.i < 16 && isWordByte(d.s[end]) {
		end++
	}
	if end > d.i {
		return strconv.Quote(d.s[d.i:end])
	}
	return strconv.QuoteRune(r)
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (d *decoder) badUTF8(from int) {
	for i := from; i < len(d.s); {
		r, size := utf8.DecodeRuneInString(d.s[i:])
		if r == utf8.RuneError && size == 1 {
			d.fail(i, "byte 0x%02x in a string is not valid UTF-8", d.s[i])
			return
		}
		i += size
	}
}

// fail records the first error. The result is always nil.
func (d *decoder) fail(at int, format string, args ...any) any {
	if d.err != nil {
		return nil
	}
	before := d.s[:at]
	line := strings.LastIndexByte(before, '\n') + 1
	d.err = &SyntaxError{
		Offset:  int64(at),
		Line:    strings.Count(before, "\n") + 1,
		Column:  utf8.RuneCountInString(before[line:]) + 1,
		Pointer: Pointer(d.path),
		Msg:     fmt.Sprintf(format, args...),
	}
	return nil
}
