package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// field is a property of a schema, at any depth, or the items of an array.
type field struct {
	pointer  string // within the tool
	name     string // the property's name; for items, the array's
	depth    int    // 1 for the properties of the root
	required bool
	item     bool           // the items of an array, not a property
	schema   map[string]any // with local references resolved; nil for the schemas true and false
	always   bool           // the schema is true: it accepts everything
	root     any            // the schema that contains it
}

// maxFields bounds the fields of one schema that are checked.
const maxFields = 2000

// paramsOf returns the fields of the parameters of a tool, sorted by name within each object.
func paramsOf(t *manifest.Tool) []field { return fieldsOf("params", t.Params) }

// resultsOf returns the fields of the result of a tool.
func resultsOf(t *manifest.Tool) []field { return fieldsOf("returns", t.Returns) }

// allFields returns the fields of the parameters and of the result.
func allFields(t *manifest.Tool) []field { return append(paramsOf(t), resultsOf(t)...) }

func fieldsOf(part string, raw json.RawMessage) []field {
	w := &fieldWalker{root: schemaNode(raw)}
	w.object(w.root, []string{part}, 1, nil)
	return w.fields
}

type fieldWalker struct {
	root   any
	fields []field
}

// object adds the properties of an object and of what it combines.
func (w *fieldWalker) object(v any, tokens []string, depth int, seen []string) {
	s, seen := schema.Resolve(w.root, v, seen)
	if s == nil || depth > 20 {
		return
	}
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(map[string]any)
	for _, name := range sortedKeys(properties) {
		w.field(properties[name], append(slices.Clone(tokens), "properties", name), name, depth,
			slices.Contains(required, any(name)), false, seen)
	}
	for _, combined := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[combined].([]any)
		for i, branch := range list {
			w.object(branch, append(slices.Clone(tokens), combined, fmt.Sprint(i)), depth, seen)
		}
	}
}

func (w *fieldWalker) field(v any, tokens []string, name string, depth int, required, item bool, seen []string) {
	if len(w.fields) >= maxFields {
		return
	}
	s, seen := schema.Resolve(w.root, v, seen)
	always, _ := v.(bool)
	w.fields = append(w.fields, field{jsontext.Pointer(tokens), name, depth, required, item, s, always,
		w.root})
	if s == nil {
		return
	}
	w.object(s, tokens, depth+1, seen)
	if items, ok := s["items"]; ok {
		if _, list := items.([]any); !list {
			w.field(items, append(slices.Clone(tokens), "items"), name, depth, false, true, seen)
		}
	}
}

func (f *field) description() string {
	s, _ := f.schema["description"].(string)
	return visible(s)
}

func (f *field) has(keys ...string) bool {
	for _, k := range keys {
		v, ok := f.schema[k]
		if n, _ := v.(json.Number); ok && !schema.IsTypeEnd(n.String()) {
			return true
		}
	}
	return false
}

// is reports whether a field has a type, alone or together with null.
func (f *field) is(kind string) bool {
	others := lists.Filter(jsontext.Texts(f.schema["type"]), func(t string) bool { return t != "null" || kind == "null" })
	return slices.Equal(others, []string{kind})
}

// typedBy are keywords that describe a value in place of type.
var typedBy = []string{"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "properties", "items"}

func checkTyped(l *linter, at string, t *manifest.Tool) {
	described := map[string]string{} // by a field's pointer
	for _, f := range allFields(t) {
		described[f.pointer] = f.description()
		says := said("anything").MatchString(f.description() + " " + described[strings.TrimSuffix(f.pointer, "/items")])
		switch {
		case f.schema == nil && !f.always:
		case !f.has(typedBy...):
			if !says && !(f.item && f.isResult()) {
				l.add(at+f.pointer, "%q has no type; give one of string, number, integer, boolean, array, object, or say in its "+
					"description that it takes any JSON", f.name)
			}
		case f.is("object") && (!f.has("additionalProperties") || f.schema["additionalProperties"] == true) &&
			!f.has("properties", "patternProperties", "anyOf", "oneOf", "allOf"):
			if !said("any-object").MatchString(f.description()) {
				l.add(at+f.pointer, "the object %q declares no properties; list them, or say in its description that it takes any",
					f.name)
			}
		case f.is("array") && !f.has("items", "prefixItems"):
			l.add(at+f.pointer, "the array %q declares no items; say what it holds", f.name)
		}
	}
}

func checkDescribed(l *linter) {
	eachParam(func(l *linter, at string, f field) {
		if !f.item && f.description() == "" {
			l.add(at, "the parameter %q has no description; say what it is, with an example", f.name)
		}
	})(l)
	l.eachTool(func(at string, t *manifest.Tool) {
		for _, f := range resultsOf(t) {
			if !f.item && f.depth == 1 && f.description() == "" {
				l.add(at+f.pointer, "the field %q of the result has no description", f.name)
			}
		}
	})
}

// plainWords is the length of descriptions, in words, that are too short to describe the form of a value.
const plainWords = 6

// formatNames are names of text parameters that have a format.
var formatNames = map[string]string{"url": "uri", "uri": "uri", "email": "email", "uuid": "uuid"}

// checkConstraints checks that parameters have constraints. It accepts what an example of the tool shows as
// described.
func checkConstraints(l *linter, at string, t *manifest.Tool) {
	shown := map[string]json.RawMessage{}
	for _, e := range t.Examples {
		_ = json.Unmarshal(e.Params, &shown) // adds to shown; Parse refuses other values
	}
	l.checkKeywords(at+"/params", schemaMap(t.Params))
	for _, f := range paramsOf(t) {
		l.checkConstraint(at+f.pointer, f, shown[f.name] != nil)
		l.checkKeywords(at+f.pointer, f.schema)
	}
}

var keywords = strings.Fields("$schema $ref $defs type enum const default examples title description required " +
	"properties additionalProperties patternProperties propertyNames minProperties maxProperties items prefixItems " +
	"minItems maxItems uniqueItems contains minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength " +
	"maxLength pattern format contentEncoding contentMediaType allOf anyOf oneOf deprecated")

// checkKeywords finds misspelt keywords, which JSON Schema ignores.
func (l *linter) checkKeywords(at string, s map[string]any) {
	for _, key := range sortedKeys(s) {
		meant := lists.Filter(keywords, func(k string) bool { return spelling.IsTypo(key, k) })
		if len(meant) > 0 && !slices.Contains(keywords, key) {
			l.add(at, "%q is not a keyword of JSON Schema and constrains nothing; did you mean %q?", key, meant[0])
		}
	}
}

func (l *linter) checkConstraint(at string, f field, isShown bool) {
	description, format := f.description(), formatNames[strings.ToLower(f.name)]
	bounds, of := f.bounds()
	for _, w := range formatWords {
		if w[1] != "" && w[0] != "uri" && said("format-"+w[0]).MatchString(description) {
			format = cmp.Or(format, w[0])
		}
	}
	inWords := lists.Filter(saidBounds(description), func(b saidBound) bool {
		_, _, ok := f.in(&b.n, of)
		return ok
	})
	switch {
	case len(inWords) > 0 && bounds[0].value == nil && bounds[1].value == nil && bounds[0].name != "" && !f.item &&
		!f.has("enum", "multipleOf", "pattern", "format"):
		l.add(at, "the description of %q gives bounds (%s) that the schema does not; add %s or %s", f.name,
			quoted(description[inWords[0].from:inWords[0].to]), bounds[0].name, bounds[1].name)
	case f.is("string") && f.depth == 1 && !f.item && f.required && !isShown && description != "" &&
		len(f.schema) == 2 && len(strings.Fields(description)) <= plainWords && !said("form").MatchString(description) &&
		!said("free-text").MatchString(f.name+" "+description):
		l.add(at, "%q is any string; say what form it has: by an example, a format, a pattern, an enum or maxLength", f.name)
	case f.has("pattern") && !f.item && !said("form").MatchString(description):
		l.add(at, "%q has a pattern that its description does not explain; give an example", f.name)
	case f.is("string") && format != "" && !f.has("format", "pattern", "enum", "const"):
		l.add(at, "%q is a string of any form; add \"format\": %q or a pattern", f.name, format)
	}
}

func checkEnumInProse(l *linter, at string, f field) {
	if !f.is("string") || f.has("enum", "const", "pattern", "format", "anyOf", "oneOf") {
		return
	}
	description := f.description()
	where := said("values").FindStringIndex(description)
	if where == nil || said("example-words").MatchString(description[:where[0]]) {
		return
	}
	l.add(at, "the description of %q lists its values (%s); make them an enum", f.name,
		quoted(description[where[0]:where[1]]))
}

func checkAdditionalProperties(l *linter, at string, t *manifest.Tool) {
	root := field{schema: schemaMap(t.Params)}
	if l.m.Kind != manifest.KindExtism && // whose schemas belong to another project, and are only shown
		!root.has("additionalProperties", "unevaluatedProperties", "$ref", "allOf", "anyOf", "oneOf") {
		l.add(at+"/params", "the parameters of %q do not say \"additionalProperties\": a misspelled name would be ignored "+
			"instead of corrected", t.Name)
	}
}

// maxNesting is the depth of parameters up to which agents fill them in reliably, and maxParams their number.
// maxNewParams applies to a tool that is new in this version of its plugin.
const (
	maxNesting   = 3
	maxParams    = 16
	maxNewParams = 8
)

func checkNesting(l *linter, at string, t *manifest.Tool) {
	limit := maxParams
	isOlder := func(o manifest.Tool) bool { return o.Since != t.Since }
	if t.Since == l.m.Version && slices.ContainsFunc(l.m.Tools, isOlder) {
		limit = maxNewParams
	}
	if n := len(manifest.Params(t.Params)); n > limit {
		l.add(at+"/params", "%q has %d parameters; at most %d", t.Name, n, limit)
	}
	for _, f := range paramsOf(t) {
		if f.depth > maxNesting {
			l.add(at+f.pointer, "%q is %d levels deep; at most %d", f.name, f.depth, maxNesting)
			return
		}
	}
}

func checkValuesValidate(l *linter, at string, t *manifest.Tool) {
	for _, f := range allFields(t) {
		values := map[string]any{}
		if v, ok := f.schema["default"]; ok {
			values["/default"] = v
		}
		list, _ := f.schema["examples"].([]any)
		for i, v := range list {
			values[fmt.Sprintf("/examples/%d", i)] = v
		}
		for _, key := range sortedKeys(values) {
			l.addFirst(at+f.pointer+key, f.violations(values[key]))
		}
	}
	compiled, err := schema.CompileUntrusted(t.Params)
	if l.m.Kind != manifest.KindExtism || err != nil { // for other kinds, Parse checks the examples
		return
	}
	for i, e := range t.Examples {
		const invalidArgs = 81
		if value, err := jsontext.Decode(e.Params, jsontext.Limits{}); err == nil && e.ExitCode != invalidArgs {
			violations, _ := compiled.Validate(value)
			l.addFirst(fmt.Sprintf("%s/examples/%d/params", at, i), violations)
		}
	}
}

// addFirst reports the first violation of a value, and where it is.
func (l *linter) addFirst(at string, violations []schema.Violation) {
	if len(violations) > 0 {
		v := violations[0]
		l.add(at+v.Pointer, "expected %s, got %s", v.Expected, v.Provided)
	}
}

// violations validates a value. A value that cannot be checked counts as valid.
func (f *field) violations(value any) (all []schema.Violation) {
	if compiled, err := f.compile(); err == nil {
		all, _ = compiled.Validate(value)
	}
	return all
}

// compile compiles the schema of a field, with the definitions of the whole for its references.
func (f *field) compile() (*schema.Schema, error) {
	root, _ := f.root.(map[string]any)
	own := maps.Clone(f.schema)
	for _, key := range []string{"$defs", "definitions", "$schema"} {
		if v, ok := root[key]; ok {
			own[key] = v
		}
	}
	return schema.CompileUntrusted(jsontext.Marshal(own))
}

// manyParameters is the number from which on it needs a reason to require all parameters, or none.
const manyParameters = 4

func checkRequired(l *linter, at string, t *manifest.Tool) {
	total, required, explained := 0, 0, 0
	for _, f := range paramsOf(t) {
		if f.depth > 1 || f.item {
			continue
		}
		total++
		if f.required {
			required++
		} else if f.has("default") || f.is("boolean") || said("without").MatchString(f.description()) {
			explained++
		}
	}
	root := field{schema: schemaMap(t.Params)}
	properties, _ := root.schema["properties"].(map[string]any)
	for _, name := range jsontext.Texts(root.schema["required"]) {
		if properties[name] == nil && root.schema["additionalProperties"] == false && !root.has("patternProperties") {
			l.add(at+"/params/required", "%q is required and is not among the properties, so no call is valid", name)
		}
	}
	combined := root.has("anyOf", "oneOf", "minProperties")
	switch {
	case total > manyParameters && required == total:
		l.add(at+"/params/required", "all %d parameters of %q are required; give those that rarely differ a default", total,
			t.Name)
	case total >= manyParameters && required == 0 && explained*2 < total && !combined:
		l.add(at+"/params/required", "none of the %d parameters of %q is required, and most do not say what happens "+
			"without them", total, t.Name)
	}
}

func checkOptionalDefault(l *linter, at string, f field) {
	values, _ := f.schema["enum"].([]any)
	if f.depth > 1 || f.item || f.required || f.has("default") {
		return
	}
	without := said("without").MatchString(f.description())
	switch {
	case !without && (len(values) > 1 || f.is("boolean") && said("either-way").MatchString(f.description())):
		l.add(at, "%q is optional and has no default; say which of its values is used without it", f.name)
	case f.is("integer") && words("limits")[spelling.Fold(f.name)] && !said("no-limit").MatchString(f.description()):
		l.add(at, "%q is optional and has no default; say how many there are without it", f.name)
	}
}
