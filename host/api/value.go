package api

import (
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// value is a JSON value as text, so that numbers and the order of members stay as they were given.
type value []byte

// member is a parameter, or a member of an object.
type member struct {
	name string
	value
}

func (v value) members() (all []member) {
	s := jsontext.Scan(v)
	s.Members(func(key []byte) {
		name, _ := jsontext.Unquote(key)
		all = append(all, member{name, s.Skip()})
	})
	return all
}

func (v value) items() (all []value) {
	s := jsontext.Scan(v)
	s.Items(func() { all = append(all, s.Skip()) })
	return all
}

func (v value) isList() bool   { return jsontext.Scan(v).Peek() == '[' }
func (v value) isObject() bool { return jsontext.Scan(v).Peek() == '{' }
func (v value) isNested() bool { return v.isList() || v.isObject() }

// text returns a string as it is, null as "", and any other value as its JSON text.
func (v value) text() string {
	trimmed := strings.TrimSpace(string(v))
	if s, ok := jsontext.Unquote([]byte(trimmed)); ok {
		return s
	}
	if trimmed == "null" {
		return ""
	}
	return trimmed
}

// texts returns the items of a list, or the names and values of an object in turn. Any other value is one text.
func (v value) texts() (all []string) {
	switch {
	case v.isList():
		all = lists.Map(v.items(), value.text)
	case v.isObject():
		for _, m := range v.members() {
			all = append(all, m.name, m.text())
		}
	default:
		all = []string{v.text()}
	}
	return all
}

const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._"

// escape writes all bytes that are not in plain as a percent sign and two hexadecimal digits.
func escape(s, plain string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// escapeURL escapes a text for a segment of a path or a part of a query (RFC 3986, section 2.3).
func escapeURL(s string) string { return escape(s, unreserved+"~") }

// escapeReserved is escapeURL for a part of a query that may have reserved characters (RFC 3986, section 2.2), but for
// those that would end the part, be read as a space, or that fetch escapes.
func escapeReserved(s string) string { return escape(s, unreserved+"~:/?@!$()*,;=") }

// escapeForm escapes a text for a body of the type application/x-www-form-urlencoded.
func escapeForm(s string) string { return strings.ReplaceAll(escape(s, unreserved+"* "), " ", "+") }
