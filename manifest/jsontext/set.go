package jsontext

import (
	"cmp"
	"slices"
	"strings"
)

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

// Members converts a list of names and values to an object. Its items are objects with both, lists of both, or
// texts such as "Accept: text/html" and a=b. It returns nil for any other list.
func Members(list []any) any {
	members := map[string]any{}
	for _, entry := range list {
		pair, _ := entry.([]any)
		switch entry := entry.(type) {
		case map[string]any:
			if len(entry) == 2 {
				pair = []any{cmp.Or(entry["name"], entry["key"]), entry["value"]}
			}
		case string:
			if name, value, ok := strings.Cut(strings.Replace(entry, ":", "=", 1), "="); ok {
				pair = []any{strings.TrimSpace(name), strings.TrimSpace(value)}
			}
		}
		if len(pair) != 2 {
			return nil
		}
		name, _ := pair[0].(string)
		if _, twice := members[name]; twice || name == "" || pair[1] == nil {
			return nil
		}
		members[name] = pair[1]
	}
	return members
}
