package jsontext

// Cut returns the longest beginning of a JSON text that has at most limit bytes and ends after a whole value: a string,
// a number, a literal, or a closing bracket. It is empty if the first value is longer than that.
func Cut(data []byte, limit int) []byte {
	var (
		objects []bool // for each open bracket, whether it opens an object
		key     bool   // the next string is a key
		whole   int    // where the last whole value ended
	)
	s := Scan(data)
	for token := s.Next(); token != nil && s.Offset() <= limit; token = s.Next() {
		switch c := token[0]; c {
		case '{', '[':
			objects = append(objects, c == '{')
			key = c == '{'
		case '}', ']':
			objects = objects[:max(0, len(objects)-1)]
			whole = s.Offset()
		case ',':
			key = len(objects) > 0 && objects[len(objects)-1]
		case ':':
			key = false
		default:
			if !key {
				whole = s.Offset()
			}
		}
	}
	return data[:whole]
}
