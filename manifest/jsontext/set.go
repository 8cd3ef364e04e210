package jsontext

import "slices"

// Set returns a JSON text in which a member of the object at path has a value, in its place or as the last member. It
// keeps the rest as it is, in the same order, and serves to annotate a schema whose order of keys matters to readers.
// If there is no object at path, the text is returned unchanged. It must be valid JSON.
func Set(data []byte, path []string, key string, value []byte) []byte {
	e := editor{in: Scan(data), path: path, key: key}
	e.find(0)
	if !e.found {
		return data
	}
	if e.insert {
		member := append(AppendString(nil, key), ':')
		if e.members {
			member = append([]byte{','}, member...)
		}
		value = append(member, value...)
	}
	return slices.Concat(data[:e.from], value, data[e.to:])
}

// editor finds where a value is to be written.
type editor struct {
	in       *Scanner
	path     []string
	key      string
	found    bool
	insert   bool // there is no such member
	members  bool // the object has others
	from, to int
}

// find looks in the object at the first steps of the path.
func (e *editor) find(steps int) {
	isTarget := steps == len(e.path)
	n := 0
	isObject := e.in.Members(func(raw []byte) {
		n++
		name, _ := Unquote(raw)
		switch {
		case !isTarget && !e.found && name == e.path[steps] && e.in.Peek() == '{':
			e.find(steps + 1)
		case isTarget && !e.found && name == e.key:
			e.in.Peek() // up to the value
			e.from = e.in.Offset()
			e.in.Skip()
			e.to, e.found = e.in.Offset(), true
		default:
			e.in.Skip()
		}
	})
	if isTarget && isObject && !e.found {
		e.from, e.found, e.insert, e.members = e.in.Offset()-1, true, true, n > 0
		e.to = e.from
	}
}
