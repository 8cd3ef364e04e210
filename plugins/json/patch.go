package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// Operation is one step of a JSON Patch (RFC 6902).
type Operation struct {
	// What to do.
	Op string `json:"op" enum:"add,remove,replace,move,copy,test"`
	// JSON pointer to where, e.g. "/a/0"; "/a/-" appends.
	Path string `json:"path"`
	// JSON pointer to the source of move and copy.
	From string `json:"from,omitempty"`
	// Value of add, replace and test.
	Value json.RawMessage `json:"value,omitempty"`
}

// DiffParams are two versions of a value.
type DiffParams struct {
	// The old JSON, e.g. {"a":1}.
	Before json.RawMessage `json:"before"`
	// The new JSON, e.g. {"a":2}.
	After json.RawMessage `json:"after"`
}

// DiffResult is a patch that turns one value into another.
type DiffResult struct {
	// JSON Patch from before to after; empty if equal.
	Patch []Operation `json:"patch"`
}

// Diff compares two values. Numbers are compared by value: 1 and 1.0 are equal.
func Diff(_ *sdk.Call, p DiffParams) (DiffResult, error) {
	d := differ{}
	d.compare("", decode(p.Before), decode(p.After))
	return DiffResult{d.patch}, d.err
}

// differ collects operations. Their size is limited like that of every result.
type differ struct {
	patch []Operation
	size  int
	err   error
}

func (d *differ) add(op, path string, value any, hasValue bool) {
	if d.err != nil {
		return
	}
	o := Operation{Op: op, Path: path}
	if hasValue {
		o.Value, d.err = encode(value)
	}
	if d.size += len(path) + len(o.Value) + 32; d.size > maxOutput {
		d.err = tooLarge()
	}
	d.patch = append(d.patch, o)
}

func (d *differ) compare(path string, a, b any) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			d.objects(path, a, b)
			return
		}
	case []any:
		if b, ok := b.([]any); ok {
			d.arrays(path, a, b)
			return
		}
	}
	if !equal(a, b) {
		d.add("replace", path, b, true)
	}
}

func (d *differ) objects(path string, a, b map[string]any) {
	for _, key := range sortedKeys(a) {
		if value, kept := b[key]; kept {
			d.compare(path+"/"+escape(key), a[key], value)
		} else {
			d.add("remove", path+"/"+escape(key), nil, false)
		}
	}
	for _, key := range sortedKeys(b) {
		if _, old := a[key]; !old {
			d.add("add", path+"/"+escape(key), b[key], true)
		}
	}
}

// arrays skips the common head and tail, compares the items between them by
// position, and removes or adds the rest.
func (d *differ) arrays(path string, a, b []any) {
	head := 0
	for head < len(a) && head < len(b) && equal(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	common := min(len(a), len(b)) - head - tail
	for i := head; i < head+common; i++ {
		d.compare(path+"/"+strconv.Itoa(i), a[i], b[i])
	}
	for i := len(a) - tail - 1; i >= head+common; i-- {
		d.add("remove", path+"/"+strconv.Itoa(i), nil, false)
	}
	for i := head + common; i < len(b)-tail; i++ {
		d.add("add", path+"/"+strconv.Itoa(i), b[i], true)
	}
}

func equal(a, b any) bool { return gojq.Compare(a, b) == 0 }

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// PatchParams are operations and the value that they change.
type PatchParams struct {
	// JSON to change, e.g. {"a":1}.
	Data json.RawMessage `json:"data" aliases:"document,doc,target"`
	// Operations, in order.
	Patch []Operation `json:"patch" maxItems:"10000" from:"json.diff/patch" aliases:"operations,ops"`
}

// PatchResult is a changed value.
type PatchResult struct {
	// The changed JSON.
	Data json.RawMessage `json:"data"`
}

// Patch applies a JSON Patch. It applies all operations or none.
func Patch(_ *sdk.Call, p PatchParams) (PatchResult, error) {
	data := decode(p.Data)
	budget := maxOutput
	for i, op := range p.Patch {
		var err error
		if data, err = op.apply(data, i, &budget); err != nil {
			return PatchResult{}, err
		}
	}
	raw, err := encode(data)
	return PatchResult{raw}, err
}

// apply applies one operation. Copies count against budget, in bytes, because
// each can double the value.
func (o Operation) apply(data any, index int, budget *int) (any, error) {
	at := func(member string) string { return fmt.Sprintf("/patch/%d/%s", index, member) }
	path, ok := parsePointer(o.Path)
	if !ok {
		return nil, sdk.Invalid(at("path"), "a JSON pointer, empty or with a leading /", o.Path, "/"+
			strings.ReplaceAll(o.Path, ".", "/"))
	}
	var value any
	switch o.Op {
	case "add", "replace", "test":
		if o.Value == nil {
			return nil, sdk.Invalid(at("value"), "the value of "+o.Op, "nothing", "")
		}
		value = decode(o.Value)
	case "move", "copy":
		from, ok := parsePointer(o.From)
		if !ok {
			return nil, sdk.Invalid(at("from"), "a JSON pointer, empty or with a leading /", o.From, "")
		}
		if value, ok = get(data, from); !ok {
			return nil, missing(index, o.Op, o.From)
		}
		if o.Op == "copy" {
			raw, err := encode(value)
			if err != nil {
				return nil, err
			}
			if *budget -= len(raw); *budget < 0 {
				return nil, tooLarge()
			}
			value = decode(raw) // a shared value would change in both positions
			break
		}
		if len(path) > len(from) && slices.Equal(path[:len(from)], from) {
			return nil, sdk.Invalid(at("path"), "a location that is not inside from", o.Path, "")
		}
		if data, ok = change(data, from, remove, nil); !ok {
			return nil, missing(index, o.Op, o.From)
		}
	}
	switch o.Op {
	case "test":
		found, ok := get(data, path)
		if !ok {
			return nil, missing(index, o.Op, o.Path)
		}
		if !equal(found, value) {
			return nil, sdk.Exit("test_failed", fmt.Sprintf("operation %d: the value at %q differs", index, o.Path),
				map[string]any{"index": index, "path": o.Path, "found": found})
		}
		return data, nil
	case "remove":
		data, ok = change(data, path, remove, nil)
	case "replace":
		data, ok = change(data, path, replace, value)
	case "add", "move", "copy":
		data, ok = change(data, path, add, value)
	default:
		return nil, sdk.Invalid(at("op"), "add, remove, replace, move, copy or test", o.Op, "")
	}
	if !ok {
		return nil, missing(index, o.Op, o.Path)
	}
	return data, nil
}

func missing(index int, op, path string) error {
	return sdk.Exit("path_missing", fmt.Sprintf("operation %d: %s: there is no value at %q", index, op, path),
		map[string]any{"index": index, "path": path})
}

// parsePointer splits a JSON pointer (RFC 6901) into its names.
func parsePointer(pointer string) ([]string, bool) {
	if pointer == "" {
		return nil, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	names := strings.Split(pointer[1:], "/")
	for i, name := range names {
		names[i] = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	}
	return names, true
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func get(v any, path []string) (any, bool) {
	if len(path) == 0 {
		return v, true
	}
	switch inner := v.(type) {
	case map[string]any:
		if value, ok := inner[path[0]]; ok {
			return get(value, path[1:])
		}
	case []any:
		if i, ok := index(path[0], len(inner)-1); ok {
			return get(inner[i], path[1:])
		}
	}
	return nil, false
}

// index parses an array index: digits without a leading zero, at most last.
func index(name string, last int) (int, bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && i >= 0 && i <= last && strconv.Itoa(i) == name
}

type action int

const (
	add action = iota
	remove
	replace
)

// change performs do at path and returns the changed value. It may modify v.
func change(v any, path []string, do action, value any) (any, bool) {
	if len(path) == 0 {
		return value, true // removing the root leaves null
	}
	name, rest := path[0], path[1:]
	switch inner := v.(type) {
	case map[string]any:
		old, exists := inner[name]
		switch {
		case len(rest) > 0 && exists:
			changed, ok := change(old, rest, do, value)
			inner[name] = changed
			return inner, ok
		case len(rest) > 0 || !exists && do != add:
			return v, false
		case do == remove:
			delete(inner, name)
		default:
			inner[name] = value
		}
		return inner, true
	case []any:
		if do == add && len(rest) == 0 {
			i, ok := index(name, len(inner))
			if name == "-" {
				i, ok = len(inner), true
			}
			if !ok {
				return v, false
			}
			return slices.Insert(inner, i, value), true
		}
		i, ok := index(name, len(inner)-1)
		switch {
		case !ok:
			return v, false
		case len(rest) > 0:
			inner[i], ok = change(inner[i], rest, do, value)
			return inner, ok
		case do == remove:
			return slices.Delete(inner, i, i+1), true
		}
		inner[i] = value
		return inner, true
	}
	return v, false
}

// MergeParams are a value and its overrides.
type MergeParams struct {
	// JSON to change, e.g. {"a":1,"b":2}.
	Data json.RawMessage `json:"data" aliases:"document,doc,target,base,original,defaults"`
	// Overrides, e.g. {"b":null,"c":3}.
	Patch json.RawMessage `json:"patch" aliases:"overrides,override,overlay,changes"`
}

// Merge applies a JSON Merge Patch (RFC 7396).
func Merge(_ *sdk.Call, p MergeParams) (PatchResult, error) {
	raw, err := encode(merge(decode(p.Data), decode(p.Patch)))
	return PatchResult{raw}, err
}

func merge(data, patch any) any {
	overrides, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := data.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, value := range overrides {
		if value == nil {
			delete(object, name)
		} else {
			object[name] = merge(object[name], value)
		}
	}
	return object
}
