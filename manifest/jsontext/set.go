package jsontext

import "slices"

// Set returns a JSON text in which a member of the object at path has a value, in its place or as the last member. It
// keeps the rest as it is, in the same order, which suits a schema whose order of keys matters to readers. If there
// is no object at path, the text is returned unchanged. It must be valid JSON.
func Set(data []byte, path []string, key string, value []byte) []byte {
	in := Scan(data)
	for _, name := range path {
		if found, _ := in.toMember(name); !found {
			return data
		}
	}
	isObject := in.Peek() == '{'
	found, others := in.toMember(key)
	from := in.Offset()
	switch {
	case !isObject:
		return data
	case found:
		in.Skip()
	default:
		value = slices.Concat(AppendString(nil, key), []byte{':'}, value)
		if others {
			value = append([]byte{','}, value...)
		}
	}
	return slices.Concat(data[:from], value, data[in.Offset():])
}

// toMember moves to the value of a member of the object that comes next. If only others exist, it moves to the
// object's end. Nothing is read if the next value is not an object.
func (s *Scanner) toMember(name string) (found, others bool) {
	if s.Peek() != '{' {
		return false, false
	}
	s.at++
	for s.Peek() == '"' {
		key, _ := Unquote(s.Next())
		s.take(':')
		if s.Peek(); key == name {
			return true, others
		}
		s.Skip()
		s.take(',')
		others = true
	}
	return false, others
}
