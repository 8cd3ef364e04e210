package jsontext

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-tools/parley/internal/lazy"
)

// An Edit is one change of a repair: the bytes of the text from Start to End become Text.
type Edit struct {
	Start, End int
	Text       string
	Fault      string // a name of the fault, such as "trailing comma"
	Assumed    string // what the repair assumes that the text does not say; "" if its meaning is plain
}

// Repair rewrites a text that is nearly JSON as JSON, as [Repairs] does, and without white space. ok is false where the
// meaning is not clear, as in a string that is cut off. The result is a proposal to show, never to run without asking.
func Repair(text string) (repaired json.RawMessage, ok bool) {
	for _, text := range []string{unwrapped(text), text} {
		edits, err := Repairs(text)
		var compact bytes.Buffer
		if err == nil && !slices.ContainsFunc(edits, func(e Edit) bool { return e.Assumed != "" }) &&
			json.Compact(&compact, []byte(Apply(text, edits))) == nil {
			return compact.Bytes(), true
		}
	}
	return nil, false
}

// LooksLikeJSON reports whether a text is meant as a JSON object or array, whatever is wrong with it.
func LooksLikeJSON(text string) bool {
	text = unwrapped(text)
	start, _ := document(text)
	m := &repairer{text: text, at: start}
	m.space()
	return strings.HasPrefix(text[m.at:], "{") || strings.HasPrefix(text[m.at:], "[")
}

// unwrapped returns what is inside a JSON string, and any other text as it is.
func unwrapped(text string) string {
	_ = json.Unmarshal([]byte(text), &text)
	return text
}

// Apply makes edits, which do not overlap and are sorted by Start.
func Apply(text string, edits []Edit) string {
	var out strings.Builder
	at := 0
	for _, e := range edits {
		out.WriteString(text[at:e.Start] + e.Text)
		at = e.End
	}
	return out.String() + text[at:]
}

// Repairs returns the edits that make JSON of a text that is nearly JSON, sorted by Start, and none for JSON. What is
// right stays as it is, white space included. It handles the fences of Markdown and text around a document, comments,
// quotes of all kinds and none, the words and numbers of other languages, commas, colons and brackets that are missing
// or too many, control characters, texts that are cut off, and several documents. The error is a *[SyntaxError].
func Repairs(text string) ([]Edit, error) {
	if json.Valid([]byte(text)) {
		return nil, nil
	}
	var inner string // the text of a JSON string without its quotes
	if json.Unmarshal([]byte(`"`+text+`"`), &inner) == nil && json.Valid([]byte(inner)) {
		return []Edit{{0, len(text), inner, "escaped text", ""}}, nil
	}
	start, end := document(text)
	m := &repairer{text: text[:end], at: start}
	m.remove(0, start, "text around the document", "")
	if m.documents(); m.err == nil {
		m.remove(end, len(text), "text around the document", "")
		slices.SortStableFunc(m.edits, func(a, b Edit) int { // an insertion comes before a removal at the same offset
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
		})
		if !json.Valid([]byte(Apply(text, m.edits))) {
			m.fail("what is meant is not clear")
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	return m.edits, nil
}

// document returns the bounds of the document in the fence of a Markdown text, or of the whole text.
func document(text string) (start, end int) {
	fence := strings.Index(text, "```")
	if fence < 0 || strings.ContainsAny(text[:fence], "{[\"") {
		return 0, len(text)
	}
	start = fence + 3
	if line := strings.IndexByte(text[start:], '\n'); line >= 0 && !strings.ContainsAny(text[start:start+line], "{[") {
		start += line + 1
	}
	if end = strings.Index(text[start:], "```"); end < 0 {
		return start, len(text)
	}
	return start, start + end
}

// closers are the closing quotes for each opening one.
var closers = map[rune]string{'"': `"`, '\'': "'", '`': "`", '\u201c': "\u201c\u201d\"", '\u201d': "\u201c\u201d\"",
	'\u201e': "\u201c\u201d\"", '\u2018': "\u2018\u2019'", '\u2019': "\u2018\u2019'"}

// repairDepth is the greatest depth of nested arrays and objects.
const repairDepth = 500

// repairer reads a lenient form of JSON and collects the edits that turn it into JSON.
type repairer struct {
	text  string
	at    int
	open  []byte // the closing brackets of the open arrays and objects
	edits []Edit
	err   *SyntaxError // the first
}

// words maps the spellings of other languages to the words of JSON.
var words = map[string]string{"True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "None": "null",
	"nil": "null", "NULL": "null", "Null": "null", "undefined": "null"}

// edit records an edit and continues after it.
func (m *repairer) edit(start, end int, text, fault, assumed string) {
	m.edits = append(m.edits, Edit{start, end, text, fault, assumed})
	m.at = max(m.at, end)
}

func (m *repairer) insert(at int, text, fault, assumed string) { m.edit(at, at, text, fault, assumed) }

func (m *repairer) remove(start, end int, fault, assumed string) {
	if start < end {
		m.edit(start, end, "", fault, assumed)
	}
}

func (m *repairer) fail(format string, args ...any) {
	if m.err == nil {
		line := strings.Count(m.text[:m.at], "\n") + 1
		column := utf8.RuneCountInString(m.text[strings.LastIndexByte(m.text[:m.at], '\n')+1:m.at]) + 1
		m.err = &SyntaxError{Line: line, Column: column, Msg: fmt.Sprintf(format, args...)}
	}
	m.at = len(m.text)
}

// peek returns the next byte, 0 at the end.
func (m *repairer) peek() byte {
	if m.at == len(m.text) {
		return 0
	}
	return m.text[m.at]
}

// quote returns the quote that comes next, 0 if none does.
func (m *repairer) quote() rune {
	if first, _ := utf8.DecodeRuneInString(m.text[m.at:]); closers[first] != "" {
		return first
	}
	return 0
}

// space skips white space, comments and ellipses.
func (m *repairer) space() {
	for m.at < len(m.text) {
		rest := m.text[m.at:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case strings.ContainsRune(" \t\r\n", r):
			m.at++
		case unicode.IsSpace(r), r == '\ufeff', r == '\u200b':
			m.edit(m.at, m.at+size, " ", "white space", "")
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/") + 2
			if end == 1 {
				end = len(rest)
			}
			m.remove(m.at, m.at+end, "comment", "")
		case r == '#', strings.HasPrefix(rest, "//"):
			m.remove(m.at, m.at+len(firstLine(rest)), "comment", "")
		case strings.HasPrefix(rest, "..."), r == '\u2026':
			m.remove(m.at, m.at+3, "ellipsis", "what the dots stand for is left out")
		default:
			return
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r")
}

// The expressions match the beginning of a member of an object, of an item of an array, and of a call; and an
// escape.
var (
	member = lazy.Pattern(`^(["'\x{201c}\x{2018}][^"'\x{201c}\x{201d}\x{2018}\x{2019}\n]{0,200}["'\x{201d}\x{2019}]|` +
		`[\w$-]{1,100}["']?)\s*[:=]([^/]|$)`)
	item = lazy.Pattern(`^([bruf]?["'\x{201c}\x{2018}{\[\d\]}/#-]|\.\.\.|(true|false|null|True|False|None)\b)`)
	// logged is what precedes a document in a line of a log: a number or a time, and words.
	logged = lazy.Pattern(`^[\d:.,TZ/+-]+\s[^"'{\[]*[A-Za-z]{2}[^"'{\[]*[^"'{\[,\s]\s*$`)
	call   = lazy.Pattern(`^(new\s+)?[A-Za-z_$][\w$.]*\(`)
	code   = lazy.Pattern(`^\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})`)
)

// documents reads all of the text. Several documents become the items of one array.
func (m *repairer) documents() {
	m.space()
	rest := m.text[m.at:]
	if i := strings.IndexAny(rest, "{["); i > 0 && (!item().MatchString(rest) || logged().MatchString(rest[:i])) &&
		!call().MatchString(rest) && !member().MatchString(rest) && m.quote() == 0 {
		m.remove(m.at, m.at+i, "text around the document", "the document begins at the first bracket")
	}
	first := m.at
	isText := m.quote() == 0 && !item().MatchString(m.text[m.at:]) && !call().MatchString(m.text[m.at:])
	switch {
	case rest == "":
		m.fail("there is no text")
	case member().MatchString(m.text[m.at:]):
		m.insert(m.at, "{", "missing bracket", "the members are those of one object")
		m.list('}')
		isText = false
	default:
		m.value()
	}
	for n := 1; m.err == nil; n++ {
		last := m.at
		m.space()
		rest := m.text[m.at:]
		switch {
		case isText && rest != "": // prose; the words up to a comma are no document
			m.fail("there is no document")
		case rest == "":
			if n > 1 && slices.ContainsFunc(m.edits, func(e Edit) bool { return e.Fault == "several documents" }) {
				m.insert(last, "]", "several documents", "they are items of one array")
			}
			return
		case strings.Contains("]})", rest[:1]):
			m.remove(m.at, m.at+1, "bracket too many", "")
		case rest[0] == ',' || rest[0] == ';':
			m.remove(m.at, m.at+1, "comma too many", "")
		case !item().MatchString(rest):
			m.remove(m.at, len(m.text), "text around the document", "the document ends before this text")
		default:
			if !slices.ContainsFunc(m.edits, func(e Edit) bool { return e.Fault == "several documents" }) {
				m.insert(first, "[", "several documents", "they are items of one array")
			}
			m.insert(last, ",", "several documents", "they are items of one array")
			m.value()
		}
	}
}

func (m *repairer) value() {
	m.space()
	switch c := m.peek(); {
	case m.err != nil:
	case c == 0:
		m.insert(m.at, "null", "cut off", "the missing value is null")
	case c == '{' || c == '[':
		m.at++
		m.list(c + 2)
	case c == '(':
		m.edit(m.at, m.at+1, "[", "wrong bracket", "")
		m.list(')')
	case m.quote() != 0:
		m.quoted(false)
	default:
		m.word()
	}
}

// list reads the rest of an object or an array, up to its closing bracket.
func (m *repairer) list(end byte) {
	if m.open = append(m.open, end); len(m.open) > repairDepth {
		m.fail("nested deeper than %d levels", repairDepth)
	}
	last, comma := -1, -1 // where the last member ends, and the comma after it
	trailing := func() {
		if comma >= 0 {
			m.remove(comma, comma+1, "trailing comma", "")
		}
	}
	bracket := string(end)
	if end == ')' {
		bracket = "]"
	}
loop:
	for m.err == nil {
		m.space()
		switch c := m.peek(); {
		case c == 0:
			trailing()
			m.insert(m.at, bracket, "missing bracket", "")
			break loop
		case c == end && end != ')':
			trailing()
			m.at++
			break loop
		case strings.IndexByte("}])", c) >= 0:
			trailing()
			if slices.Contains(m.open[:len(m.open)-1], c) && c != end && !m.isMistyped(end) {
				m.insert(max(last, 0), bracket, "missing bracket", "it ends before the next closing bracket")
			} else {
				assumed := ""
				if c != end {
					assumed = "the bracket is mistyped"
				}
				m.edit(m.at, m.at+1, bracket, "wrong bracket", assumed)
			}
			break loop
		case c == ',' && last >= 0 && comma < 0:
			comma = m.at
			m.at++
		case c == ',':
			m.remove(m.at, m.at+1, "comma too many", "")
		case c == ';' && last >= 0 && comma < 0:
			m.edit(m.at, m.at+1, ",", "missing comma", "the semicolon is a comma")
			comma = -2
		default:
			if last >= 0 && comma == -1 {
				m.insert(last, ",", "missing comma", "")
			}
			start := m.at
			if end != '}' || m.name() {
				m.value()
			}
			if last, comma = m.at, -1; m.at == start {
				m.fail("%s is neither a value nor a closing bracket", QuoteShort(firstLine(m.text[m.at:])))
			}
		}
	}
	m.open = m.open[:len(m.open)-1]
}

// isMistyped reports whether a bracket that ends an object is meant to end the array in it, so that the object goes on.
func (m *repairer) isMistyped(end byte) bool {
	outer := string(m.open[:len(m.open)-1])
	next, goesOn := strings.CutPrefix(strings.TrimLeft(m.text[m.at+1:], " \t\r\n"), ",")
	return end == ']' && m.peek() == '}' && strings.HasSuffix(outer, "}") && !strings.HasSuffix(outer, "}}") && goesOn &&
		member().MatchString(strings.TrimLeft(next, " \t\r\n"))
}

// name reads the name of a member and the colon after it. It reports whether a value must follow.
func (m *repairer) name() bool {
	if m.quote() != 0 {
		m.quoted(true)
	} else {
		rest := m.text[m.at:]
		name := strings.TrimSpace(rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(r rune) bool {
			return !strings.ContainsRune(":=,;{}[]()\n\"'", r)
		}))])
		if name == "" {
			m.fail("a name is expected here, not %s", QuoteShort(firstLine(rest)))
			return false
		}
		size := len(name)
		if strings.HasPrefix(rest[size:], `"`) || strings.HasPrefix(rest[size:], "'") {
			size++ // the first quote is missing
		}
		m.edit(m.at, m.at+size, string(Marshal(name)), "name without quotes", unless(isWord(name), "it is one name"))
	}
	end := m.at
	m.space()
	switch c := m.peek(); {
	case c == ':':
		m.at++
	case c == ';':
		m.edit(m.at, m.at+1, ":", "wrong separator", "the semicolon is a colon")
	case c == '=':
		size := 1 + len(m.text[m.at+1:]) - len(strings.TrimPrefix(m.text[m.at+1:], ">"))
		m.edit(m.at, m.at+size, ":", "wrong separator", "")
	case c == 0 || c == ',' || c == '}':
		m.insert(end, ": null", "missing value", "it is null")
		return false
	default:
		m.insert(end, ":", "missing colon", "the value follows the name")
	}
	return true
}

func unless(plain bool, assumed string) string {
	if plain {
		return ""
	}
	return assumed
}

// isWord reports whether a text without quotes can be read as a name or a string.
func isWord(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-.$", c)
	})
}

// word reads a value without quotes.
func (m *repairer) word() {
	rest := firstLine(m.text[m.at:])
	if prefix := call().FindString(rest); prefix != "" {
		m.remove(m.at, m.at+len(prefix), "call", "the value is the argument of the call")
		m.value()
		if m.space(); m.peek() == ')' {
			m.remove(m.at, m.at+1, "call", "")
		}
		return
	}
	if len(rest) > 1 && strings.IndexByte("bruf", rest[0]) >= 0 && strings.IndexByte(`"'`, rest[1]) >= 0 && !m.closes(rest[2:], false) {
		m.remove(m.at, m.at+1, "wrong quotes", "")
		m.quoted(false)
		return
	}
	for _, end := range []string{",", "]", "}", ")", ";", `"`, " //", "/*", " #"} {
		rest, _, _ = strings.Cut(rest, end)
	}
	word := strings.TrimSpace(rest)
	if first, _, _ := strings.Cut(word, " "); json.Valid([]byte(first)) {
		word = first // the other words follow without a comma
	}
	if rest := m.text[m.at+len(word):]; isWord(word) && strings.HasPrefix(rest, `"`) && m.closes(rest[1:], false) {
		m.insert(m.at, `"`, "missing quote", "")
		m.at += len(word) + 1
		return
	}
	isLast := m.at+len(word) == len(m.text)
	number := asNumber(word, isLast)
	m.at += len(word)
	start := m.at - len(word)
	switch literal := completed(word, isLast); {
	case json.Valid([]byte(word)):
	case words[word] != "":
		m.edit(start, m.at, words[word], "word of another language", "")
	case strings.Trim(word, "+-") == "NaN", strings.Trim(word, "+-") == "Infinity":
		m.edit(start, m.at, "null", "number", "null stands for "+word)
	case number != "":
		m.edit(start, m.at, number, "number", unless(!isLast, "the number ends here"))
	case literal != "":
		m.edit(start, m.at, literal, "cut off", "it is "+literal)
	case word != "":
		m.edit(start, m.at, string(Marshal(word)), "text without quotes", unless(isWord(word), "it is one text"))
	default:
		m.insert(m.at, "null", "missing value", "it is null")
	}
}

// completed returns the JSON word that a text begins with, if the text is cut off.
func completed(word string, isLast bool) string {
	for _, literal := range []string{"true", "false", "null"} {
		if word != "" && isLast && strings.HasPrefix(literal, word) {
			return literal
		}
	}
	return ""
}

// asNumber returns a number of another language as JSON, or "". Leading zeros are not a mistake in a code.
func asNumber(word string, isLast bool) string {
	if n, err := strconv.ParseInt(word, 0, 64); err == nil && len(word) > 2 && word[0] == '0' && word[1] > '9' {
		return strconv.FormatInt(n, 10)
	}
	word = strings.ReplaceAll(strings.TrimPrefix(word, "+"), "_", "")
	if isLast {
		word = strings.TrimRight(word, "eE+-.")
	}
	if strings.HasPrefix(strings.TrimPrefix(word, "-"), ".") {
		word = strings.Replace(word, ".", "0.", 1)
	}
	if strings.HasSuffix(word, ".") {
		word += "0"
	}
	if strings.Trim(word, "+-.eE0123456789") == "" && json.Valid([]byte(word)) {
		return word
	}
	return ""
}

// quoted reads a string in quotes, of whatever kind.
func (m *repairer) quoted(isName bool) {
	start := m.at
	quote, size := utf8.DecodeRuneInString(m.text[m.at:])
	m.at += size
	if quote != '"' {
		m.edit(start, m.at, `"`, "wrong quotes", "")
	}
	for m.at < len(m.text) {
		rest := m.text[m.at:]
		r, size := utf8.DecodeRuneInString(rest)
		isCloser := strings.ContainsRune(closers[quote], r)
		colon := strings.IndexByte(m.text[start:m.at], ':')
		switch {
		case r == '\\':
			m.escape()
		case isCloser && m.closes(rest[size:], isName):
			if m.at += size; r != '"' {
				m.edit(m.at-size, m.at, `"`, "wrong quotes", "")
			}
			return
		case isCloser && !isName && m.isNext(rest):
			m.cut(len(strings.TrimRight(m.text[:m.at], " \t,")), "the text ends before the comma")
			return
		case isCloser && isName && colon > 0:
			m.cut(start+colon, "the name ends before the colon")
			return
		case r == '"':
			m.edit(m.at, m.at+1, `\"`, "quote in a text", unless(!isCloser, "the quote belongs to the text"))
		case isCloser:
			m.edit(m.at, m.at+size, string(r), "quote in a text", "the quote belongs to the text")
		case r == '\n' && m.isUnclosed(rest):
			m.cut(len(strings.TrimRight(m.text[:m.at], " \t\r,")), "the text ends with its line")
			return
		case r < ' ':
			escape := Marshal(string(r))
			m.edit(m.at, m.at+1, string(escape[1:len(escape)-1]), "control character", "")
		default:
			m.at += size
		}
	}
	m.atEnd(isName, start)
}

// atEnd closes a string that does not end: before the brackets that end the text, if they close all that is open.
func (m *repairer) atEnd(isName bool, start int) {
	if colon := strings.IndexByte(m.text[start:], ':'); isName && colon > 0 {
		m.cut(start+colon, "the name ends before the colon")
		return
	}
	rest := strings.TrimSpace(m.text[start+1:])
	for _, bracket := range m.open { // the outermost one ends the text
		if !strings.HasSuffix(rest, string(bracket)) {
			m.cut(len(m.text), "the text ends where it is cut off")
			return
		}
		rest = strings.TrimSpace(rest[:len(rest)-1])
	}
	m.cut(start+1+strings.Index(m.text[start+1:], rest)+len(rest), "the text ends before the closing brackets")
}

// cut closes a string before its end.
func (m *repairer) cut(end int, assumed string) {
	m.edits = slices.DeleteFunc(m.edits, func(e Edit) bool { return e.Start >= end })
	m.at = end
	m.insert(end, `"`, "missing quote", assumed)
}

// closes reports whether a quote ends a string, or is a part of it, by the text after the quote.
func (m *repairer) closes(after string, isName bool) bool {
	next := strings.TrimLeft(after, " \t\r\n")
	if next == "" {
		return true
	}
	gap, inObject := after[:len(after)-len(next)], len(m.open) == 0 || m.open[len(m.open)-1] == '}'
	begins := item().MatchString(next)
	if inObject {
		begins = member().MatchString(next)
	}
	switch {
	case isName:
		return strings.IndexByte(":=;", next[0]) >= 0 || gap != "" && item().MatchString(next)
	case strings.HasPrefix(next, "//"), strings.HasPrefix(next, "/*"), strings.IndexByte("#;", next[0]) >= 0:
		return true
	case next[0] == ',':
		next = strings.TrimLeft(next[1:], " \t\r\n")
		return next == "" || strings.IndexByte("}]),/#.", next[0]) >= 0 || !inObject && item().MatchString(next) ||
			member().MatchString(next)
	case strings.IndexByte("}])", next[0]) >= 0:
		return slices.Contains(m.open, next[0]) || len(m.open) > 0
	}
	return begins && gap != "" || len(m.open) == 0 && strings.Contains(gap, "\n")
}

// isUnclosed reports whether a string is meant to end with its line, because the next line starts something else.
func (m *repairer) isUnclosed(rest string) bool {
	next := strings.TrimSpace(rest)
	if next == "" {
		return false
	}
	ends := strings.HasSuffix(strings.TrimSpace(m.text[:m.at]), ",")
	return strings.IndexByte("}]", next[0]) >= 0 && slices.Contains(m.open, next[0]) ||
		next[0] == '"' && (member().MatchString(next) || ends)
}

// isNext reports whether a quote in a string begins the next member or item, because the string lacks its own.
func (m *repairer) isNext(rest string) bool {
	if len(m.open) > 0 && m.open[len(m.open)-1] == '}' {
		return strings.HasSuffix(strings.TrimRight(m.text[:m.at], " \t"), ",") && member().MatchString(rest)
	}
	return strings.HasSuffix(m.text[:m.at], ",") // before a quote that is part of a text there is a space
}

// escape reads an escape in a string, from its backslash.
func (m *repairer) escape() {
	rest := m.text[m.at:] + "  " // the space makes sure that there is a next character
	hex := code().FindString(rest)
	switch c := rest[1]; {
	case len(rest) == 3:
		m.remove(m.at, m.at+1, "cut off", "an escape that is cut off is left out")
	case strings.IndexByte(`"\/bfnrt`, c) >= 0 || c == 'u' && hex != "":
		m.at += max(2, len(hex))
	case c == 'x' && hex != "":
		m.edit(m.at, m.at+4, `\u00`+hex[2:], "escape", "")
	case c == '\n':
		m.remove(m.at, m.at+2, "escape", "")
	case c == '\'', c == '`':
		m.remove(m.at, m.at+1, "escape", "")
		m.at++
	case c == 'u' && m.at+6 > len(m.text):
		m.remove(m.at, len(m.text), "cut off", "an escape that is cut off is left out")
	default:
		m.edit(m.at, m.at+1, `\\`, "escape", `a backslash belongs to the text unless it begins an escape such as \n`)
	}
}
