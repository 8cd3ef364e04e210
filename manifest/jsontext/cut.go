package jsontext

import "bytes"

// Cut returns the longest beginning of a JSON text that has at most limit bytes and ends after a whole value: a string,
// a number, a literal, or a closing bracket. It is empty if the first value is longer than that.
func Cut(data []byte, limit int) []byte {
	var (
		objects []bool // the open brackets: whether each is an object's
		key     bool   // the next string is a key
		whole   int    // where the last whole value ended
	)
	limit = min(limit, len(data))
	for i := 0; i < limit; {
		switch c := data[i]; c {
		case '{', '[':
			objects = append(objects, c == '{')
			key = c == '{'
			i++
		case '}', ']':
			objects = objects[:max(0, len(objects)-1)]
			i++
			whole = i
		case ',':
			key = len(objects) > 0 && objects[len(objects)-1]
			i++
		case ':':
			key = false
			i++
		case ' ', '\t', '\r', '\n':
			i++
		default:
			end := i + tokenLength(data[i:])
			if end > limit {
				return data[:whole]
			}
			if i = end; !key {
				whole = end
			}
		}
	}
	return data[:whole]
}

// tokenLength returns the length of the string, number or literal at the beginning of data.
func tokenLength(data []byte) int {
	if data[0] != '"' {
		if end := bytes.IndexAny(data[1:], "{}[],:\" \t\r\n"); end >= 0 {
			return end + 1
		}
		return len(data)
	}
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}
