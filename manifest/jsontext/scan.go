package jsontext

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// A Scanner walks the text of a JSON value without building the value: texts may be megabytes. It copies nothing and
// returns parts of the text. It finds tokens and does not check the grammar: of a text that is not JSON it returns
// some tokens, and always comes to an end.
type Scanner struct {
	data []byte
	at   int
}

// Scan returns a scanner positioned before the first token of data.
func Scan(data []byte) *Scanner { return &Scanner{data: data} }

// Offset returns the position after the last token, in bytes.
func (s *Scanner) Offset() int { return s.at }

// Peek skips white space and returns the first byte of the next token, 0 at the end.
func (s *Scanner) Peek() byte {
	for s.at < len(s.data) {
		if c := s.data[s.at]; c > ' ' || class[c] != space {
			return c
		}
		s.at++
	}
	return 0
}

// Next returns the next token: a string with its quotes, a number, a word or one of {}[]:, and nil at the end.
func (s *Scanner) Next() []byte {
	c := s.Peek()
	start := s.at
	switch {
	case start >= len(s.data):
		return nil
	case c == '"':
		s.at = stringEnd(s.data, start)
	case class[c] == structural:
		s.at++
	default:
		at := start
		for at < len(s.data) && class[s.data[at]] == 0 {
			at++
		}
		s.at = at
	}
	return s.data[start:s.at]
}

// Classes of the bytes that end a number or a word.
const (
	space = 1 + iota
	structural
	quote
)

var class = [256]byte{
	' ': space, '\t': space, '\n': space, '\r': space,
	'{': structural, '}': structural, '[': structural, ']': structural, ':': structural, ',': structural,
	'"': quote,
}

// stringEnd returns the offset after the string that begins at i. It looks only for quotes, because strings may be
// megabytes.
func stringEnd(data []byte, i int) int {
	for i++; ; {
		next := bytes.IndexByte(data[i:], '"')
		if next < 0 {
			return len(data)
		}
		text := data[i : i+next]
		if i += next + 1; (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 0 {
			return i // the quote is not escaped
		}
	}
}

// Skip returns the text of the next value as a whole.
func (s *Scanner) Skip() []byte {
	if c := s.Peek(); c != '{' && c != '[' {
		return s.Next()
	}
	data, start, depth := s.data, s.at, 0
	for at := start; at < len(data); {
		switch data[at] {
		case '"':
			at = stringEnd(data, at)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.at = at + 1
				return s.data[start:s.at]
			}
		}
		at++
	}
	s.at = len(s.data)
	return s.data[start:]
}

// Kind returns the type of a JSON value: "object", "array", "string", "number", "boolean", "null", or "" for none.
func Kind(value []byte) string {
	switch Scan(value).Peek() {
	case 0:
		return ""
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// Members walks the members of the object that comes next. visit is called with each key, in quotes, and must read
// the value after it. Members returns false and reads nothing if the next value is not an object.
func (s *Scanner) Members(visit func(key []byte)) bool {
	if s.Peek() != '{' {
		return false
	}
	s.at++
	for s.Peek() == '"' {
		key := s.Next()
		s.take(':')
		visit(key)
		s.take(',')
	}
	s.take('}')
	return true
}

// Items walks the items of the array that comes next; visit must read one item. Items returns false and reads nothing
// if the next value is not an array.
func (s *Scanner) Items(visit func()) bool {
	if s.Peek() != '[' {
		return false
	}
	s.at++
	for c := s.Peek(); c != ']' && c != 0; c = s.Peek() {
		before := s.at
		if visit(); s.at == before {
			s.Next()
		}
		s.take(',')
	}
	s.take(']')
	return true
}

func (s *Scanner) take(c byte) {
	if s.Peek() == c {
		s.at++
	}
}

// Unquote returns the text of a string token. ok is false if the token is not a string.
func Unquote(token []byte) (text string, ok bool) {
	if n := len(token); n >= 2 && token[0] == '"' && token[n-1] == '"' {
		plain := utf8.Valid(token)
		for _, c := range token[1 : n-1] {
			plain = plain && c >= ' ' && c != '\\' && c != '"'
		}
		if plain {
			return string(token[1 : n-1]), true
		}
		ok = json.Unmarshal(token, &text) == nil
	}
	return text, ok
}

// Prune returns a JSON text without the members and items for which drop returns true, on one line, in the same
// order. drop is called with the JSON pointer of each in the text as it is given, and with its value. Use it to edit
// a schema whose order of keys matters to readers. The text must be valid JSON.
func Prune(data []byte, drop func(pointer string, value []byte) bool) []byte {
	p := &pruner{in: Scan(data), drop: drop}
	p.value("")
	return p.out
}

type pruner struct {
	in   *Scanner
	out  []byte
	drop func(pointer string, value []byte) bool
}

func (p *pruner) value(pointer string) {
	open := p.in.Peek()
	start := len(p.out) + 1
	index := 0
	switch {
	case open == '{':
		p.out = append(p.out, '{')
		p.in.Members(func(key []byte) {
			name, _ := Unquote(key)
			p.part(start, pointer+"/"+EscapeToken(name), key)
		})
		p.out = append(p.out, '}')
	case open == '[':
		p.out = append(p.out, '[')
		p.in.Items(func() {
			p.part(start, pointer+"/"+strconv.Itoa(index), nil)
			index++
		})
		p.out = append(p.out, ']')
	default:
		p.out = append(p.out, p.in.Next()...)
	}
}

// part writes a member or an item of the value whose first part is written at start.
func (p *pruner) part(start int, pointer string, key []byte) {
	from := p.in.at
	if p.drop(pointer, p.in.Skip()) {
		return
	}
	p.in.at = from
	if len(p.out) > start {
		p.out = append(p.out, ',')
	}
	if key != nil {
		p.out = append(append(p.out, key...), ':')
	}
	p.value(pointer)
}
