// Package peers rewrites calls in the style of other products, which callers may know, as calls of a plugin's tools.
package peers

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Table has the names and forms of calls of other products.
type Table struct {
	// Prefixes are words that may stand before a name, such as browser in browser_click.
	Prefixes []string `json:"prefixes,omitempty"`
	// Names has the calls by name. A key "a|b" stands for two names, and "" for a step that names no tool. The first
	// rule that fits applies. The rules of "*" rewrite parameters for all names.
	Names map[string][]Rule `json:"names"`
	// Forms has, by tool, rewrites of other forms of its parameters. The rules of "*" apply to all tools.
	Forms map[string][]Rule `json:"forms,omitempty"`
}

// Rule rewrites parameters.
type Rule struct {
	// From has the parameters that a call must have, with their values. "$" and "$NAME" stand for any value and bind it
	// to the name. "~PATTERN" stands for a text that matches; a group (?P<NAME>..) of the pattern binds a name, too.
	From map[string]any `json:"from,omitempty"`
	// To has the parameters that replace them, with values by name: "$width", "${width}x${height}". A parameter that is
	// null here must not be given, under any name.
	To    map[string]any `json:"to,omitempty"`
	Tool  string         `json:"tool,omitempty"`  // of the plugin, or a qualified one of cdp
	Words []string       `json:"words,omitempty"` // parameters for the words of a command line; the last may be NAME...
	See   string         `json:"see,omitempty"`   // the nearest tool, if none does the same
}

// Read decodes the peers of a manifest.
func Read(raw json.RawMessage) (t Table) {
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &t) // the schema of manifests has checked it
	}
	return t
}

// Named returns the calls for a folded name.
func (t *Table) Named(folded string) []Rule {
	for key, calls := range t.Names {
		if slices.ContainsFunc(strings.Split(key, "|"), func(one string) bool { return spelling.Fold(one) == folded }) {
			return calls
		}
	}
	return nil
}

// FormsOf returns the rewrites of other forms of a tool's parameters.
func (t *Table) FormsOf(tool string) []Rule { return slices.Concat(t.Forms["*"], t.Forms[tool]) }

var (
	camel     = lazy.Pattern(`([a-z0-9])([A-Z])`)
	separator = lazy.Pattern(`[-_./: ]+`)
)

// NameTails returns the folded forms that a name may have: the whole name, and the name without what precedes it.
// That can be a server, as in mcp__server__click or server/click, or prefixes.
func NameTails(name string, prefixes []string) []string {
	name = camel().ReplaceAllString(name, "${1}_$2")
	tails, only, start := []string{spelling.Fold(name)}, true, 0 // only: all words so far are prefixes
	for _, at := range separator().FindAllStringIndex(name, -1) {
		sign := name[at[0]:at[1]]
		isServer := len(sign) > 1 || strings.ContainsAny(sign, "/:.")
		only = isServer || only && slices.Contains(prefixes, strings.ToLower(name[start:at[0]]))
		if start = at[1]; only && start < len(name) {
			tails = append(tails, spelling.Fold(name[start:]))
		}
	}
	return tails
}

// WithWords assigns words to the parameters of r.Words, in order. Parameters without a word may be given already. It
// reports whether the words fit.
func (r *Rule) WithWords(given map[string]any, words []any) (map[string]any, bool) {
	params, need := maps.Clone(given), 0
	for i, name := range r.Words {
		name, optional := strings.CutSuffix(name, "?")
		if _, taken := given[name]; !optional && !taken {
			need = i + 1
		}
		if i >= len(words) {
			continue
		}
		name, isRest := strings.CutSuffix(name, "...")
		if _, taken := params[name]; taken {
			return nil, false
		}
		if params[name] = words[i]; isRest {
			params[name], words = words[i:], words[:i+1]
		}
	}
	return params, len(words) == 0 || need <= len(words) && len(words) <= len(r.Words)
}

// Apply rewrites the parameters of a tool. ok is false if they do not have the form, or if a new parameter already
// has another value. For each parameter that is gone, changes says where its value is now, or that it was dropped
// because the call means the same without it.
func (r *Rule) Apply(given map[string]any, own json.RawMessage) (
	params map[string]any, changes []schema.Change, ok bool,
) {
	params = maps.Clone(given)
	bound := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(r.From)) {
		key, has := paramOf(given, name, own)
		parts := map[string]any{}
		if !has || !matches(r.From[name], given[key], name, parts) {
			return nil, nil, false
		}
		maps.Copy(bound, parts)
		delete(params, key)
		from, known := "/"+jsontext.EscapeToken(key), len(changes)
		for _, place := range slices.Sorted(maps.Keys(r.To)) {
			if form := r.To[place]; form != nil && (holds(form, parts) ||
				len(r.To) == 1 && (len(parts) == 0 || !strings.Contains(jsontext.Text(form), "$"))) {
				to := "/" + jsontext.EscapeToken(place)
				changes = append(changes, schema.Change{From: from, To: to, How: schema.Renamed})
			}
		}
		if len(changes) == known {
			changes = append(changes, schema.Change{From: from, How: schema.Dropped})
		}
	}
	for name, form := range r.To {
		value := fill(form, bound)
		before, taken := params[name]
		if _, has := paramOf(params, name, own); form == nil && has ||
			taken && jsontext.Text(before) != jsontext.Text(value) {
			return nil, nil, false
		} else if form != nil {
			params[name] = value
		}
	}
	return params, changes, true
}

// holds reports whether a form refers to one of the names.
func holds(form any, names map[string]any) bool {
	text := string(jsontext.Marshal(form))
	for name := range names {
		if name != "" && (strings.Contains(text, "$"+name) || strings.Contains(text, "${"+name+"}")) {
			return true
		}
	}
	return false
}

// paramOf returns the name under which a parameter was given: in any spelling, or by an alias.
func paramOf(given map[string]any, name string, own json.RawMessage) (key string, has bool) {
	if _, has = given[name]; has {
		return name, true
	}
	for key := range given {
		if known, _, _ := manifest.ParamNamed(own, key); spelling.Fold(key) == spelling.Fold(name) || known == name {
			return key, true
		}
	}
	return "", false
}

// matches reports whether a value has a form, and binds the names in the form to parts of the value.
func matches(want, value any, name string, bound map[string]any) bool {
	switch want := want.(type) {
	case string:
		if pattern, is := strings.CutPrefix(want, "~"); is {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return false
			}
			found := re.FindStringSubmatch(jsontext.Text(value))
			for i := range found {
				bound[re.SubexpNames()[i]] = found[i]
			}
			bound[name] = value
			return found != nil
		} else if other, is := strings.CutPrefix(want, "$"); is {
			if other != "" {
				name = other
			}
			bound[name] = value
			return value != nil
		}
	case map[string]any:
		object, _ := value.(map[string]any)
		for member, inner := range want {
			if !matches(inner, object[member], member, bound) {
				return false
			}
		}
		return len(object) == len(want)
	case []any:
		list, _ := value.([]any)
		for i := range min(len(want), len(list)) {
			if !matches(want[i], list[i], name, bound) {
				return false
			}
		}
		return len(list) == len(want)
	}
	if list, isList := value.([]any); isList && len(list) == 1 {
		value = list[0]
	}
	return jsontext.Text(want) == jsontext.Text(value)
}

// fill replaces the names in a form by their bound values.
func fill(form any, bound map[string]any) any {
	switch form := form.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range form {
			out[jsontext.Text(fill(name, bound))] = fill(inner, bound)
		}
		return out
	case []any:
		out := make([]any, len(form))
		for i, inner := range form {
			out[i] = fill(inner, bound)
		}
		return out
	case string:
		if value, has := bound[strings.TrimPrefix(form, "$")]; has && form[0] == '$' {
			return value
		}
		return os.Expand(form, func(name string) string { return jsontext.Text(bound[name]) })
	}
	return form
}
