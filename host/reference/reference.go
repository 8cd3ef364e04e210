// Package reference replaces references to the results of earlier calls, such as ${1.nodeId}, in later ones.
package reference

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Results are the data of the calls of a batch that succeeded, by id. "${ID.path}" in the parameters of a later call
// refers to a part of one; "$${" are the characters themselves. They are parsed when something refers to them.
type Results map[string]json.RawMessage

// Params is the id under which [Results] has the parameters of the batch itself, as an object.
const Params = "param"

// Substitute replaces references to results in the strings of a call's parameters, or of its options. The error is
// invalid_args: for params that are not JSON, and for a reference to what does not exist.
func (r Results) Substitute(params json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(params, []byte("${")) {
		return params, nil
	}
	value, err := jsontext.Decode(params, jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s", manifest.CleanLine(err.Error()))
	}
	replaced, err := replaceRefs(value, r)
	if err != nil {
		return nil, err
	}
	return jsontext.Marshal(replaced), nil
}

func replaceRefs(value any, earlier Results) (any, error) {
	switch v := value.(type) {
	case string:
		return expand(v, earlier)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = replaceRefs(v[i], earlier); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			var err error
			if out[k], err = replaceRefs(v[k], earlier); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}

// expand replaces each ${id.path} of a string. A string that is exactly one reference becomes the value with its type.
// Within a longer text the value must be a string, a number or a boolean.
func expand(s string, earlier Results) (any, error) {
	var b strings.Builder
	for rest := s; ; {
		at := strings.Index(rest, "${")
		if at < 0 {
			b.WriteString(rest)
			return b.String(), nil
		}
		if at > 0 && rest[at-1] == '$' {
			b.WriteString(rest[:at-1] + "${")
			rest = rest[at+2:]
			continue
		}
		end := strings.IndexByte(rest[at:], '}')
		if end < 0 {
			return nil, host.Errorf(host.InvalidArgs, "%q has a ${ without }; write $${ for the characters themselves",
				manifest.CleanLine(s))
		}
		value, err := lookUp(rest[at+2:at+end], earlier)
		if err != nil {
			return nil, err
		}
		if at == 0 && end == len(s)-1 && len(rest) == len(s) {
			return value, nil
		}
		b.WriteString(rest[:at])
		switch v := value.(type) {
		case string:
			b.WriteString(v)
		case json.Number, bool:
			fmt.Fprint(&b, v)
		default:
			return nil, host.Errorf(host.InvalidArgs,
				"${%s} is neither a string nor a number, so it cannot be part of a longer text",
				manifest.CleanLine(rest[at+2:at+end]))
		}
		rest = rest[at+end+1:]
	}
}

// Empty returns the first reference in params to a result that has nothing for it: no such member, null, or 0 where an
// id is expected. It returns "" if there is none.
func (r Results) Empty(params json.RawMessage) string {
	for rest := string(params); ; {
		_, after, found := strings.Cut(rest, "${")
		ref, after, closed := strings.Cut(after, "}")
		if !found || !closed {
			return ""
		}
		if rest = after; strings.Contains(ref, `"`) || r[strings.Split(ref, ".")[0]] == nil {
			continue
		}
		value, err := lookUp(ref, r)
		if zero, isNumber := value.(json.Number); err != nil || value == nil ||
			isNumber && zero == "0" && strings.HasSuffix(ref, "Id") {
			return ref
		}
	}
}

// find splits a reference at the dot after an id. An id may have dots itself, so the longest known id counts.
func (r Results) find(ref string) (id, path string, data json.RawMessage, ok bool) {
	for end := len(ref); end >= 0; end = strings.LastIndexByte(ref[:end], '.') {
		if data, ok := r[ref[:end]]; ok {
			return ref[:end], strings.TrimPrefix(ref[end:], "."), data, true
		}
	}
	id, path, _ = strings.Cut(ref, ".")
	return id, path, nil, false
}

// lookUp returns the value that a reference names.
func lookUp(ref string, earlier Results) (any, error) {
	id, path, data, ok := earlier.find(ref)
	name := manifest.CleanLine(id)
	invalid := func(format string, args ...any) error {
		return host.Errorf(host.InvalidArgs, "${%s}: "+format, append([]any{manifest.CleanLine(ref)}, args...)...)
	}
	if !ok && id == Params {
		data = json.RawMessage("{}")
	} else if !ok {
		ids := slices.DeleteFunc(slices.Sorted(maps.Keys(earlier)), func(id string) bool { return id == Params })
		return nil, invalid("no earlier call that succeeded has the id %s; expected %s", name,
			cmp.Or(some(ids), "the id of a call before this one"))
	}
	value, err := jsontext.Decode(data, jsontext.Limits{Bytes: max(1, len(data))})
	if err != nil {
		return nil, invalid("the result of %s cannot be read: %s", name, manifest.CleanLine(err.Error()))
	}
	if path == "" {
		return value, nil
	}
	for _, step := range strings.Split(path, ".") {
		var has []string
		switch v := value.(type) {
		case map[string]any:
			has = slices.Sorted(maps.Keys(v))
			value, ok = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			ok = err == nil && i >= 0 && i < len(v)
			if ok {
				value = v[i]
			}
		default:
			ok = false
		}
		if !ok && id == Params {
			return nil, invalid("the batch was given no parameter %s; give --param %[2]s=VALUE", manifest.CleanLine(path))
		} else if !ok && len(has) > 0 {
			return nil, invalid("the result of %s has no %s; expected %s", name, manifest.CleanLine(step), some(has))
		} else if !ok {
			return nil, invalid("the result of %s has no %s", name, manifest.CleanLine(step))
		}
	}
	return value, nil
}

// some lists the first names for a message.
func some(names []string) string {
	return manifest.CleanLine(strings.Join(names[:min(len(names), 8)], ", "))
}
