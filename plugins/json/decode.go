package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxInt is the number of characters of the longest number that is decoded as an int.
const maxInt = 18

// decode decodes JSON that the host has validated, as [json.Decoder] with UseNumber does, but that short integers are
// ints. It reads the text once and copies no string without escapes: encoding/json takes twice the time.
func decode(raw json.RawMessage) any {
	text := string(raw)
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // invalid bytes become U+FFFD
	}
	d := decoder{text: text}
	return d.value()
}

// decoder reads JSON that is valid.
type decoder struct {
	text string
	at   int
	// names and values are those of the open arrays and objects. When one ends, it is allocated in its final size.
	names  []string
	values []any
}

// next skips white space, commas and colons, and returns the byte after them.
func (d *decoder) next() byte {
	for {
		switch c := d.text[d.at]; c {
		case ' ', '\n', '\t', '\r', ',', ':':
			d.at++
		default:
			return c
		}
	}
}

func (d *decoder) value() any {
	switch c := d.next(); c {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		return d.str()
	case 't':
		d.at += len("true")
		return true
	case 'f':
		d.at += len("false")
		return false
	case 'n':
		d.at += len("null")
		return nil
	}
	return d.number()
}

func (d *decoder) object() map[string]any {
	names, values := len(d.names), len(d.values)
	for d.at++; d.next() != '}'; {
		d.names = append(d.names, d.str())
		d.values = append(d.values, d.value())
	}
	d.at++
	object := make(map[string]any, len(d.names)-names)
	for i, name := range d.names[names:] {
		object[name] = d.values[values+i]
	}
	d.names, d.values = d.names[:names], d.values[:values]
	return object
}

func (d *decoder) array() []any {
	values := len(d.values)
	for d.at++; d.next() != ']'; {
		d.values = append(d.values, d.value())
	}
	d.at++
	array := append(make([]any, 0, len(d.values)-values), d.values[values:]...)
	d.values = d.values[:values]
	return array
}

func (d *decoder) number() any {
	from, n := d.at, 0
	if d.text[from] == '-' {
		d.at++
	}
	for d.at < len(d.text) && '0' <= d.text[d.at] && d.text[d.at] <= '9' {
		n = n*10 + int(d.text[d.at]-'0')
		d.at++
	}
	digits := d.at
	for d.at < len(d.text) && strings.IndexByte("0123456789+-.eE", d.text[d.at]) >= 0 {
		d.at++
	}
	text := d.text[from:d.at]
	switch {
	case d.at > digits, len(text) > maxInt, text == "-0":
		return json.Number(text)
	case text[0] == '-':
		return -n
	}
	return n
}

// str reads a string. Its quotation mark is at d.at.
func (d *decoder) str() string {
	d.at++
	rest := d.text[d.at:]
	end := strings.IndexByte(rest, '"')
	if strings.IndexByte(rest[:end], '\\') < 0 {
		d.at += end + 1
		return rest[:end]
	}
	var s []byte
	for i := 0; ; {
		switch c := rest[i]; c {
		case '"':
			d.at += i + 1
			return string(s)
		case '\\':
			if rest[i+1] != 'u' {
				s = append(s, "\"\\/\b\f\n\r\t"[strings.IndexByte(`"\/bfnrt`, rest[i+1])])
				i += 2
				continue
			}
			r := hex(rest[i+2:])
			i += 6
			if utf16.IsSurrogate(r) && strings.HasPrefix(rest[i:], `\u`) {
				if pair := utf16.DecodeRune(r, hex(rest[i+2:])); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
			s = utf8.AppendRune(s, r) // U+FFFD for half of a pair
		default:
			s = append(s, c)
			i++
		}
	}
}

// hex returns the value of four hexadecimal digits.
func hex(digits string) rune {
	n, _ := strconv.ParseUint(digits[:4], 16, 16)
	return rune(n)
}
