package lint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// The kinds of [Change].
const (
	kindRemoved    = "removed"  // a tool, a parameter or a field of a result is gone
	kindRenamed    = "renamed"  // a tool or a parameter has another name
	kindNarrowed   = "narrowed" // parameters or settings that were valid are not any more
	kindResult     = "result"   // something on which callers could rely is missing in a result
	kindEffect     = "effect"   // a tool does more than it did
	kindRights     = "rights"   // the plugin asks for other rights
	kindExitCode   = "exit_code"
	kindDefault    = "default"
	kindAdded      = "added"
	kindDeprecated = "deprecated"
)

// Change is one difference between two versions of a plugin, as it concerns callers of its tools and operators who
// grant its rights.
type Change struct {
	Kind    string `json:"kind"`
	Breaks  bool   `json:"breaks"`
	Tool    string `json:"tool,omitempty"` // local; "" for a change of the plugin
	Message string `json:"message"`
	// Uses says who called the tool lately. It is "" if nobody did, or if that makes no difference.
	Uses string `json:"uses,omitempty"`
}

func (c Change) String() string {
	text := strings.TrimPrefix(c.Tool+": "+c.Message, ": ")
	if c.Uses != "" {
		text += " (in the last 7 days " + c.Uses + ")"
	}
	return text
}

// WithUses adds who called the tools that are removed, broken or deprecated. uses has the callers by a tool's local
// name.
func WithUses(changes []Change, uses map[string]string) []Change {
	for i, c := range changes {
		if c.Breaks || c.Kind == kindDeprecated {
			changes[i].Uses = uses[c.Tool]
		}
	}
	return changes
}

// Breaking returns the changes that break callers, or that require more of the operator.
func Breaking(changes []Change) []Change {
	return lists.Filter(changes, func(c Change) bool { return c.Breaks })
}

// IsMajor reports whether a new version announces that it breaks: its first number is higher.
func IsMajor(before, after string) bool { return manifest.Major(after) > manifest.Major(before) }

// Compare returns how a new version of a plugin differs from an old one. Breaking changes come first.
func Compare(before, after *manifest.Manifest) []Change {
	c := &comparer{}
	c.tools(before, after)
	c.rights(before, after)
	c.tool = ""
	c.compare("settings", before.Settings, after.Settings, c.accepts)
	return append(Breaking(c.found), slices.DeleteFunc(c.found, func(c Change) bool { return c.Breaks })...)
}

type comparer struct {
	tool     string
	what     string // what is compared: the parameters, the result or the settings
	old, now any    // the documents of the schemas
	found    []Change
}

// compare compares two schemas with a method for the values at a path, such as options.depth.
func (c *comparer) compare(what string, before, after json.RawMessage, by func(path string, depth int, old, now any)) {
	c.what = what
	c.old, c.now = schemaNode(before), schemaNode(after)
	by("", 0, c.old, c.now)
}

func (c *comparer) add(kind string, breaks bool, format string, args ...any) {
	message := manifest.Clip(manifest.CleanLine(fmt.Sprintf(format, args...)), 400)
	c.found = append(c.found, Change{Kind: kind, Breaks: breaks, Tool: manifest.CleanLine(c.tool), Message: message})
}

func (c *comparer) tools(before, after *manifest.Manifest) {
	added := lists.Filter(after.Tools, func(t manifest.Tool) bool { return before.Tool(t.Name) == nil })
	for i := range before.Tools {
		old := &before.Tools[i]
		c.tool = old.Name
		if now := after.Tool(old.Name); now != nil {
			c.compareTool(before, after, old, now)
			continue
		}
		successor := slices.IndexFunc(added, func(t manifest.Tool) bool { return succeeds(old, &t, before.Name) })
		if successor < 0 {
			if old.Deprecated != nil && old.Deprecated.RemoveIn != "" {
				c.add(kindRemoved, true, "the tool is removed, as announced for %s", old.Deprecated.RemoveIn)
			} else {
				c.add(kindRemoved, true, "the tool is removed")
			}
			continue
		}
		now := added[successor]
		added = slices.Delete(added, successor, successor+1)
		c.add(kindRenamed, true, "the tool is renamed to %s", now.Name)
		c.compareTool(before, after, old, &now)
	}
	for _, t := range added {
		c.tool = t.Name
		c.add(kindAdded, false, "the tool is new: %s", t.Docs.Brief)
	}
}

// succeeds reports whether a new tool replaces one that is gone.
func succeeds(old, now *manifest.Tool, plugin string) bool {
	if d := old.Deprecated; d != nil && (sameName(d.Use, now.Name) || sameName(d.Use, plugin+"."+now.Name)) {
		return true
	}
	if slices.ContainsFunc(now.Aliases, func(a string) bool {
		return sameName(a, old.Name) || sameName(a, manifest.LocalName(old.Name))
	}) {
		return true
	}
	return old.Effect == now.Effect && sameJSON(old.Params, now.Params) && sameJSON(old.Returns, now.Returns) &&
		(len(paramsOf(old)) > 0 || old.Docs.Brief == now.Docs.Brief)
}

func sameJSON(a, b json.RawMessage) bool { return isEqual(schemaNode(a), schemaNode(b)) }

func isEqual(a, b any) bool { return bytes.Equal(jsontext.Marshal(a), jsontext.Marshal(b)) }

// effectOrder ranks effects from harmless to destructive.
var effectOrder = []string{manifest.EffectRead, manifest.EffectWrite, manifest.EffectDestructive}

func (c *comparer) compareTool(before, after *manifest.Manifest, old, now *manifest.Tool) {
	if was, is := slices.Index(effectOrder, old.Effect), slices.Index(effectOrder, now.Effect); was != is {
		c.add(kindEffect, is > was, "its effect changes from %s to %s", old.Effect, now.Effect)
	}
	if old.Idempotent && !now.Idempotent {
		c.add(kindEffect, true, "it is no longer idempotent: repeating a call has an effect")
	}
	if !old.OpenWorld && now.OpenWorld {
		c.add(kindEffect, true, "it now reaches systems outside the plugin")
	}
	c.compare("parameter", old.Params, now.Params, c.accepts)
	c.positional(old.Positional, now.Positional)
	if len(old.Returns) > 0 && len(now.Returns) == 0 {
		c.add(kindResult, true, "it no longer declares what it returns")
	} else if len(old.Returns) > 0 {
		c.compare("result", old.Returns, now.Returns, c.promises)
	}
	c.exitCodes(before, after, old, now)
	if old.Deprecated == nil && now.Deprecated != nil {
		use := cmp.Or(now.Deprecated.Use, now.Deprecated.Message, "another tool")
		c.add(kindDeprecated, false, "it is deprecated; use %s", use)
	}
}

func (c *comparer) positional(old, now []string) {
	if len(now) < len(old) || !slices.Equal(old, now[:len(old)]) {
		c.add(kindNarrowed, true, "the words after its name now set %s; before they set %s", listed(now), listed(old))
	}
}

func listed(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

func (c *comparer) exitCodes(before, after *manifest.Manifest, old, now *manifest.Tool) {
	number := func(m *manifest.Manifest, name string) int {
		if e := lists.Find(m.ExitCodes, func(e *manifest.ExitCode) bool { return e.Name == name }); e != nil {
			return e.Code
		}
		return 0
	}
	for _, name := range old.ExitCodes {
		was, is := number(before, name), number(after, name)
		switch {
		case !slices.Contains(now.ExitCodes, name):
			c.add(kindExitCode, true, "it no longer ends in exit code %d %s", was, name)
		case was != is:
			c.add(kindExitCode, true, "its exit code %s changes from %d to %d", name, was, is)
		}
	}
	for _, name := range now.ExitCodes {
		if !slices.Contains(old.ExitCodes, name) {
			c.add(kindExitCode, false, "it can end in exit code %d %s", number(after, name), name)
		}
	}
}

// rights compares the requested rights, method by method.
func (c *comparer) rights(before, after *manifest.Manifest) {
	c.tool = ""
	was, is := eachRight(before.Capabilities), eachRight(after.Capabilities)
	for _, name := range sortedKeys(is) {
		required, before := is[name], was[name]
		_, known := was[name]
		switch {
		case !known && required:
			c.add(kindRights, true, "the plugin asks for a further right: %s", name)
		case !known:
			c.add(kindRights, false, "the plugin asks for a further right, which is optional: %s", name)
		case required && !before:
			c.add(kindRights, true, "the plugin requires a right that was optional: %s", name)
		}
	}
	for _, name := range sortedKeys(was) {
		if _, still := is[name]; !still {
			c.add(kindRights, false, "the plugin no longer asks for %s", name)
		}
	}
}

// eachRight returns the rights that a manifest requests, each with whether it is required. An implied right counts as
// a right: a folder for writing includes one for reading, and each method of a URL is listed separately.
func eachRight(c manifest.Capabilities) map[string]bool {
	all := map[string]bool{}
	for _, r := range c.Rights() {
		kind, rest, _ := strings.Cut(r.Name, ":")
		names := []string{r.Name}
		switch {
		case r.For != "":
			names = []string{r.Name + " for " + r.For}
		case kind == "fs" && strings.HasPrefix(rest, "rw:"):
			names = append(names, "fs:ro:"+strings.TrimPrefix(rest, "rw:"))
		case kind == "http":
			methods, url, _ := strings.Cut(rest, ":")
			names = strings.Split(methods, ",")
			for i, m := range names {
				names[i] = "http:" + m + ":" + url
			}
		}
		for _, name := range names {
			all[name] = all[name] || !r.Optional
		}
	}
	return all
}

func schemaNode(raw json.RawMessage) any {
	v, _ := jsontext.Decode(raw, jsontext.Limits{}) // nil for a schema that Parse refuses
	return v
}

// schemaMap returns the members of a schema, or nil if it has none.
func schemaMap(raw json.RawMessage) map[string]any {
	m, _ := schemaNode(raw).(map[string]any)
	return m
}

// maxCompareDepth bounds how deep two schemas are compared; a schema can contain itself.
const maxCompareDepth = 12

// pathOf returns the path of a property of the value at a path.
func pathOf(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// describe names the value at a path: the parameter days, the field days[].rain of the result.
func (c *comparer) describe(path string) string {
	switch {
	case path == "" && c.what == "parameter":
		return "the object of parameters"
	case path == "":
		return "the " + c.what
	case c.what == "result":
		return "the field " + path + " of the result"
	case c.what == "settings":
		return "the setting " + path
	}
	return "the " + c.what + " " + path
}

// objects returns two schemas as objects, each nil if it is not an object.
func (c *comparer) objects(old, now any) (a, b map[string]any) {
	a, _ = schema.Resolve(c.old, old, nil)
	b, _ = schema.Resolve(c.now, now, nil)
	return a, b
}

// accepts reports what the new schema no longer accepts.
func (c *comparer) accepts(path string, depth int, old, now any) {
	a, b := c.objects(old, now)
	name := c.describe(path)
	narrowed := func(format string, args ...any) {
		c.add(kindNarrowed, true, "%s %s", name, fmt.Sprintf(format, args...))
	}
	if depth >= maxCompareDepth {
		return
	}
	if b == nil {
		if now == false && a != nil {
			narrowed("is refused")
		}
		return
	}
	was, is := jsontext.Texts(a["type"]), jsontext.Texts(b["type"])
	for _, kind := range was {
		if !acceptsType(is, kind) {
			narrowed("no longer accepts %s", article(kind))
		}
	}
	if len(was) == 0 && len(is) > 0 && a["enum"] == nil && a["const"] == nil && len(a) > 0 {
		narrowed("accepts only %s", strings.Join(is, " or "))
	}
	if values, limited := valuesOf(b); limited {
		if before, was := valuesOf(a); !was {
			narrowed("accepts only %s", shown(values))
		} else if gone := withoutValues(before, values); len(gone) > 0 {
			narrowed("no longer accepts %s", shown(gone))
		}
	}
	for _, key := range []string{"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"} {
		c.bound(name, key, a[key], b[key], 1)
	}
	for _, key := range []string{"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"} {
		c.bound(name, key, a[key], b[key], -1)
	}
	for _, key := range []string{"pattern", "format", "multipleOf", "uniqueItems", "not", "if", "then", "else", "contains",
		"propertyNames", "dependencies", "dependentRequired", "dependentSchemas", "allOf"} {
		v, ok := b[key]
		switch before, was := a[key]; {
		case !ok || v == false || isEqual(v, before):
		case was:
			narrowed("has another %s: %s", key, manifest.Clip(string(jsontext.Marshal(v)), 80))
		default:
			narrowed("now has %s %s", key, manifest.Clip(string(jsontext.Marshal(v)), 80))
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		list, limited := b[key].([]any)
		before, isBefore := a[key].([]any)
		switch {
		case limited && !isBefore && len(was) == 0 && len(a) > 0:
			narrowed("accepts only some alternatives (%s)", key)
		case limited && isBefore && len(withoutValues(before, list)) > 0:
			narrowed("no longer accepts some alternatives (%s)", key)
		}
	}
	if v, ok := b["default"]; ok && a["default"] != nil && !isEqual(v, a["default"]) {
		c.add(kindDefault, false, "the default of %s changes from %s to %s", name, jsontext.Marshal(a["default"]),
			jsontext.Marshal(v))
	}
	c.properties(path, depth, a, b)
	if items, ok := b["items"]; ok && a["items"] != nil {
		c.accepts(path+"[]", depth+1, a["items"], items)
	}
}

// bound compares a limit; sign is 1 for lower limits and -1 for upper ones.
func (c *comparer) bound(name, key string, old, now any, sign int) {
	limit, ok := rational(now)
	before, was := rational(old)
	switch {
	case !ok || was && limit.Cmp(before)*sign <= 0:
	case was:
		c.add(kindNarrowed, true, "%s: %s changes from %s to %s", name, key, jsontext.Marshal(old), jsontext.Marshal(now))
	default:
		c.add(kindNarrowed, true, "%s: %s is now %s", name, key, jsontext.Marshal(now))
	}
}

// rational returns the value of a bound. The end of a type does not count: values beyond it never worked.
func rational(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 64 || schema.IsTypeEnd(n.String()) {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}

// properties compares the properties of objects: what is gone, renamed, or newly required.
func (c *comparer) properties(path string, depth int, a, b map[string]any) {
	was, _ := a["properties"].(map[string]any)
	is, _ := b["properties"].(map[string]any)
	requires, required := jsontext.Texts(b["required"]), jsontext.Texts(a["required"])
	successors := map[string]bool{}
	for _, name := range sortedKeys(was) {
		at := pathOf(path, name)
		if below, still := is[name]; still {
			c.accepts(at, depth+1, was[name], below)
			continue
		}
		candidates := slices.DeleteFunc(sortedKeys(is), func(other string) bool {
			_, known := was[other]
			return known || successors[other] || !c.isRenamed(name, was[name], is[other])
		})
		if len(candidates) == 1 {
			successors[candidates[0]] = true
			c.add(kindRenamed, true, "%s is renamed to %s", c.describe(at), pathOf(path, candidates[0]))
		} else {
			c.add(kindRemoved, true, "%s is removed", c.describe(at))
		}
	}
	for _, name := range sortedKeys(is) {
		_, known := was[name]
		isRequired := slices.Contains(requires, name) && !slices.Contains(required, name)
		switch {
		case successors[name]:
		case isRequired && (known || len(a) > 0 || path == ""):
			c.add(kindNarrowed, true, "%s is required now", c.describe(pathOf(path, name)))
		case !known:
			c.add(kindAdded, false, "%s is new", c.describe(pathOf(path, name)))
		}
	}
	if b["additionalProperties"] == false && a["additionalProperties"] != false && len(a) > 0 {
		c.add(kindNarrowed, true, "%s no longer takes further properties", c.describe(path))
	}
}

// isRenamed reports whether the new parameter may be the old one with another name: it has the old name as an alias,
// or the same schema.
func (c *comparer) isRenamed(name string, old, now any) bool {
	a, b := c.objects(old, now)
	if slices.Contains(jsontext.Texts(b["x-aliases"]), name) {
		return true
	}
	strip := func(s map[string]any) map[string]any {
		rest := maps.Clone(s)
		for _, key := range []string{"description", "title", "default", "examples"} {
			delete(rest, key)
		}
		return rest
	}
	return a != nil && b != nil && isEqual(strip(a), strip(b))
}

// promises reports what the new schema of a result no longer promises.
func (c *comparer) promises(path string, depth int, old, now any) {
	a, b := c.objects(old, now)
	if a == nil || depth >= maxCompareDepth {
		return
	}
	name := c.describe(path)
	before, kinds := jsontext.Texts(a["type"]), jsontext.Texts(b["type"])
	for _, kind := range kinds {
		if len(before) > 0 && !acceptsType(before, kind) {
			c.add(kindResult, true, "%s can be %s", name, article(kind))
		}
	}
	isAny := len(kinds) == 0 && b["enum"] == nil && b["const"] == nil && b["anyOf"] == nil && b["oneOf"] == nil
	if len(before) > 0 && isAny {
		c.add(kindResult, true, "%s can be of any type", name)
	}
	if before, was := valuesOf(a); was {
		values, limited := valuesOf(b)
		if more := withoutValues(values, before); limited && len(more) > 0 {
			c.add(kindAdded, false, "%s can also be %s", name, shown(more))
		} else if !limited {
			c.add(kindResult, true, "%s can have other values than before", name)
		}
	}
	was, _ := a["properties"].(map[string]any)
	is, _ := b["properties"].(map[string]any)
	for _, key := range sortedKeys(was) {
		at := pathOf(path, key)
		below, still := is[key]
		switch {
		case !still:
			c.add(kindRemoved, true, "%s is removed", c.describe(at))
			continue
		case slices.Contains(jsontext.Texts(a["required"]), key) && !slices.Contains(jsontext.Texts(b["required"]), key):
			c.add(kindResult, true, "%s can be missing", c.describe(at))
		}
		c.promises(at, depth+1, was[key], below)
	}
	for _, key := range sortedKeys(is) {
		if _, known := was[key]; !known {
			c.add(kindAdded, false, "%s is new", c.describe(pathOf(path, key)))
		}
	}
	if items, ok := a["items"]; ok && b["items"] != nil {
		c.promises(path+"[]", depth+1, items, b["items"])
	}
}

func acceptsType(types []string, kind string) bool {
	return len(types) == 0 || slices.Contains(types, kind) || kind == "integer" && slices.Contains(types, "number")
}

func article(kind string) string {
	switch kind {
	case "null":
		return kind
	case "integer", "array", "object":
		return "an " + kind
	}
	return "a " + kind
}

// valuesOf returns the values that a schema is limited to.
func valuesOf(s map[string]any) ([]any, bool) {
	if v, ok := s["const"]; ok {
		return []any{v}, true
	}
	list, ok := s["enum"].([]any)
	return list, ok
}

// withoutValues returns the values of a that b does not have.
func withoutValues(a, b []any) []any {
	return lists.Filter(a, func(v any) bool {
		return !slices.ContainsFunc(b, func(o any) bool { return isEqual(v, o) })
	})
}

func shown(values []any) string {
	list := lists.Map(values, func(v any) string { return manifest.Clip(string(jsontext.Marshal(v)), 40) })
	return strings.Join(spelling.AtMost(list, 5), ", ")
}
