package query

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/itchyny/gojq"
)

// owner tracks the containers to which only the accumulator of one reduce or foreach refers. They are changed in place.
type owner struct {
	// containers has the addresses of objects and of the first items of arrays. As pointers they keep the containers
	// alive, so that no other container gets the address.
	containers map[unsafe.Pointer]struct{}
	texts      map[*byte]*strings.Builder // by the address of their data
}

// minText is the length from which on a text is extended instead of copied.
const minText = 256

func address(v any) unsafe.Pointer {
	switch v := v.(type) {
	case map[string]any:
		return *(*unsafe.Pointer)(unsafe.Pointer(&v)) // a map is a pointer
	case []any:
		if cap(v) > 0 {
			return unsafe.Pointer(unsafe.SliceData(v))
		}
	}
	return nil
}

func (o *owner) owns(v any) bool {
	at := address(v)
	_, ok := o.containers[at]
	return ok && at != nil
}

func (o *owner) own(v any) {
	if o.containers == nil {
		o.containers = map[unsafe.Pointer]struct{}{}
	}
	if at := address(v); at != nil {
		o.containers[at] = struct{}{}
	}
}

// share ends the ownership of everything if v is a container, because v may belong to the accumulator or contain parts.
func (o *owner) share(v any) any {
	if address(v) != nil {
		o.containers = nil
	}
	return v
}

// object returns an object with the content of v that may be changed.
func (o *owner) object(v map[string]any) map[string]any {
	if o.owns(v) {
		return v
	}
	own := make(map[string]any, len(v)+1)
	maps.Copy(own, v)
	o.own(own)
	return own
}

// array returns an array with the content of v that may be changed, and has space for more items.
func (o *owner) array(v []any, more int) []any {
	owned := o.owns(v)
	if owned && cap(v)-len(v) >= more {
		return v
	}
	if owned {
		delete(o.containers, address(v))
	}
	own := append(make([]any, 0, max(4, 2*len(v), len(v)+more)), v...)
	o.own(own)
	return own
}

// update returns v with the value at a path replaced by the result of change. ok is false for unusual keys and for
// updates that fail, which are left to gojq.
func (o *owner) update(v any, path []any, change func(old any) any) (updated any, ok bool) {
	if len(path) == 0 {
		return change(v), true
	}
	switch key := path[0].(type) {
	case string:
		object, ok := v.(map[string]any)
		if !ok && v != nil {
			return nil, false
		}
		value, ok := o.update(object[key], path[1:], change)
		if ok {
			object = o.object(object)
			object[key] = value
		}
		return object, ok
	case json.Number:
		if i, ok := integer(key).(int); ok {
			return o.update(v, append([]any{i}, path[1:]...), change)
		}
	case int:
		array, ok := v.([]any)
		if !ok && v != nil || key < 0 || key > len(array) {
			return nil, false
		}
		if key == len(array) {
			value, ok := o.update(nil, path[1:], change)
			if ok {
				array = append(o.array(array, 1), value)
			}
			return array, ok
		}
		value, ok := o.update(array[key], path[1:], change)
		if ok {
			array = o.array(array, 0)
			array[key] = value
		}
		return array, ok
	}
	return nil, false
}

// get returns the value at a path. ok is as for [owner.update].
func get(v any, path []any) (any, bool) {
	for _, key := range path {
		if n, ok := key.(json.Number); ok {
			key = integer(n)
		}
		switch key := key.(type) {
		case string:
			object, ok := v.(map[string]any)
			if !ok && v != nil {
				return nil, false
			}
			v = object[key]
		case int:
			array, ok := v.([]any)
			if !ok && v != nil || key < 0 || key > len(array) {
				return nil, false
			}
			if v = nil; key < len(array) {
				v = array[key]
			}
		default:
			return nil, false
		}
	}
	return v, true
}

// The functions below leave unusual cases to gojq, and return its result or error.

var (
	addition       = plainly("$l + $r", "$l", "$r")
	multiplication = plainly("$l * $r", "$l", "$r")
	setting        = plainly("setpath($p; $v)", "$p", "$v")
)

// plainly returns a filter that gojq runs, as a function of its input and its variables. It is compiled on first use.
func plainly(text string, variables ...string) func(v any, values ...any) any {
	code := sync.OnceValue(func() *gojq.Code {
		q, err := gojq.Parse(text)
		if err != nil {
			panic(err) // the texts are constants, or were part of a valid filter
		}
		code, err := gojq.Compile(q, gojq.WithVariables(variables))
		if err != nil {
			panic(err)
		}
		return code
	})
	return func(v any, values ...any) any {
		result, _ := code().Run(v, values...).Next()
		return result
	}
}

// add returns left + right. left is changed if it is owned.
func (o *owner) add(left, right any) any {
	l, r := left, right
	if n, ok := left.(json.Number); ok {
		l = integer(n)
	}
	if n, ok := right.(json.Number); ok {
		r = integer(n)
	}
	switch l := l.(type) {
	case nil:
		if _, ok := r.(json.Number); !ok {
			return r
		}
	case int:
		if r, ok := r.(int); ok {
			if sum := l + r; (sum >= l) == (r >= 0) {
				return sum
			}
		}
	case string:
		if r, ok := r.(string); ok {
			return o.text(l, r)
		}
	case []any:
		if r, ok := r.([]any); ok && len(l) > 0 && len(r) > 0 {
			return append(o.array(l, len(r)), r...)
		}
	case map[string]any:
		if r, ok := r.(map[string]any); ok && len(l) > 0 && len(r) > 0 {
			object := o.object(l)
			maps.Copy(object, r)
			return object
		}
	}
	return addition(nil, left, right)
}

// multiply returns left * right. left and the objects in it are changed if they are owned.
func (o *owner) multiply(left, right any) any {
	l, ok := left.(map[string]any)
	if r, both := right.(map[string]any); ok && both {
		return o.merge(l, r)
	}
	return multiplication(nil, left, right)
}

func (o *owner) merge(l, r map[string]any) any {
	l = o.object(l)
	for key, value := range r {
		old, ok := l[key].(map[string]any)
		if new, both := value.(map[string]any); ok && both {
			value = o.merge(old, new)
		}
		l[key] = value
	}
	return l
}

// integer returns an int if the number has the digits of one.
func integer(n json.Number) any {
	if i, err := strconv.Atoi(string(n)); err == nil && strconv.Itoa(i) == string(n) {
		return i
	}
	return n
}

// text returns l + r. The end of a text is in a buffer of its own, to which the next text is appended.
func (o *owner) text(l, r string) any {
	if len(l) < minText {
		return l + r
	}
	b := o.texts[unsafe.StringData(l)]
	if b == nil || b.Len() != len(l) {
		b = &strings.Builder{}
		b.Grow(2 * (len(l) + len(r)))
		b.WriteString(l)
	}
	delete(o.texts, unsafe.StringData(l))
	b.WriteString(r)
	if o.texts == nil {
		o.texts = map[*byte]*strings.Builder{}
	}
	o.texts[unsafe.StringData(b.String())] = b
	return b.String()
}

// setPath is setpath.
func (o *owner) setPath(v, path, value any) any {
	if keys, ok := path.([]any); ok {
		if updated, ok := o.update(v, keys, func(any) any { return value }); ok {
			return updated
		}
	}
	return setting(v, path, value)
}

// keysOf returns the keys of a path, with those that were evaluated.
func (p *path) keysOf(evaluated []any) []any {
	keys := make([]any, len(p.keys))
	for i, key := range p.keys {
		if key == nil {
			key, evaluated = evaluated[0], evaluated[1:]
		}
		keys[i] = key
	}
	return keys
}

func variablesOf(evaluated int, more ...string) []string {
	var names []string
	for i := range evaluated {
		names = append(names, "$k"+strconv.Itoa(i))
	}
	return append(names, more...)
}

// set is fnSet.
func (c *compiler) set(v any, args []any) any {
	o, p := args[0].(*owner), c.paths[args[1].(int)]
	evaluated, value := args[2:len(args)-1], args[len(args)-1]
	if updated, ok := o.update(v, p.keysOf(evaluated), func(any) any { return value }); ok {
		return updated
	}
	assign := plainly(p.left.String()+" = $v", variablesOf(len(evaluated), "$v")...)
	return assign(v, append(append([]any{}, evaluated...), value)...)
}

// cursor is a position in an accumulator.
type cursor struct {
	*owner
	root any
	keys []any
	old  any
}

// at is fnAt.
func (c *compiler) at(v any, args []any) any {
	o, p := args[0].(*owner), c.paths[args[1].(int)]
	evaluated := args[2:]
	at := &cursor{owner: o, root: v, keys: p.keysOf(evaluated)}
	old, ok := get(v, at.keys)
	if !ok {
		find := plainly("[path("+p.left.String()+")][0] as $p | [$p, getpath($p)]", variablesOf(len(evaluated))...)
		switch found := find(v, append([]any{}, evaluated...)...).(type) {
		case error:
			return found
		case []any:
			at.keys, old = found[0].([]any), found[1]
		}
	}
	at.old = old
	return at
}

// put returns the root with another value at the cursor.
func (at *cursor) put(v any) any {
	return at.setPath(at.root, at.keys, v)
}
