package query

import (
	"maps"
	"slices"

	"github.com/itchyny/gojq"
)

// tree walks a value and its content in the order of "..": containers before their items, objects by sorted keys.
type tree struct {
	levels []level
	path   []any // the key of the current item of each level
	emit   emitter
}

// level is an open container of a tree. The first one contains only the root.
type level struct {
	keys, values []any // an array has no keys
	next         int
}

// emitter returns what a filter emits at a place, if anything. At the end of a container that is not empty, path is
// the path of the last item.
type emitter func(path []any, v any, at place) (result any, ok bool)

type place int

const (
	atLeaf place = iota // a scalar or an empty container
	atContainer
	atEnd
)

// walk returns a filter that emits the results of emit for the places of its input.
func walk(emit emitter) func(v any, _ []any) gojq.Iter {
	return func(v any, _ []any) gojq.Iter {
		return &tree{[]level{{values: []any{v}}}, []any{nil}, emit}
	}
}

func emitValue(_ []any, v any, at place) (any, bool) { return v, at != atEnd }

func emitPath(path []any, _ any, at place) (any, bool) {
	if at == atEnd || len(path) == 0 {
		return nil, false
	}
	return slices.Clone(path), true
}

func emitNode(path []any, v any, at place) (any, bool) {
	if at == atEnd {
		return nil, false
	}
	return []any{slices.Clone(path), v}, true
}

func emitEvent(path []any, v any, at place) (any, bool) {
	switch at {
	case atLeaf:
		return []any{slices.Clone(path), v}, true
	case atEnd:
		return []any{slices.Clone(path)}, true
	}
	return nil, false
}

func (t *tree) Next() (any, bool) {
	for len(t.levels) > 0 {
		depth := len(t.levels)
		l := &t.levels[depth-1]
		path, v, at := t.path[1:], any(nil), atEnd
		if l.next < len(l.values) {
			v, at = l.values[l.next], atLeaf
			if t.path[depth-1] = any(l.next); l.keys != nil {
				t.path[depth-1] = l.keys[l.next]
			}
			l.next++
			if keys, values := entries(v); len(values) > 0 {
				at = atContainer
				t.levels, t.path = append(t.levels, level{keys: keys, values: values}), append(t.path, nil)
			}
		} else {
			t.levels, t.path = t.levels[:depth-1], t.path[:depth-1]
		}
		if at == atEnd && depth == 1 {
			break
		}
		if result, ok := t.emit(path, v, at); ok {
			return result, true
		}
	}
	return nil, false
}

// entries returns the items of a container. The items of an object are ordered by key.
func entries(v any) (keys, values []any) {
	switch v := v.(type) {
	case []any:
		return nil, v
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		both := make([]any, 2*len(v))
		keys, values = both[:len(v)], both[len(v):]
		for i, name := range names {
			keys[i], values[i] = name, v[name]
		}
	}
	return keys, values
}

// The functions below leave unusual cases to gojq, like those of an owner.

var (
	toEntries   = plainly("to_entries")
	fromEntries = plainly("from_entries")
)

// listEntries is to_entries.
func listEntries(v any, _ []any) any {
	keys, values := entries(v)
	if values == nil {
		return toEntries(v)
	}
	list := make([]any, len(values))
	for i, value := range values {
		key := any(i)
		if keys != nil {
			key = keys[i]
		}
		list[i] = map[string]any{"key": key, "value": value}
	}
	return list
}

// joinEntries is from_entries.
func joinEntries(v any, _ []any) any {
	list, ok := v.([]any)
	if !ok {
		return fromEntries(v)
	}
	joined := make(map[string]any, len(list))
	for _, entry := range list {
		entry, _ := entry.(map[string]any)
		var key any
		for _, name := range []string{"key", "Key", "name", "Name"} {
			if key = entry[name]; key != nil && key != false {
				break
			}
		}
		name, isText := key.(string)
		if !isText {
			return fromEntries(v)
		}
		value, has := entry["value"]
		if !has {
			value = entry["Value"]
		}
		joined[name] = value
	}
	return joined
}
