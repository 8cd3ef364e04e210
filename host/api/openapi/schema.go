package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// Bounds of the schemas of a tool.
const (
	maxSchema = 60 << 10 // bytes
	maxEnum   = 1000
	minNode   = 8 // bytes of a schema in a schema, with its name
	perLevel  = 3 // schemas in a schema, for each level of references
)

// depths are the depths to which schemas are taken over. The first one is used with which they are small enough. A
// deeper schema keeps only its type.
var depths = []int{4 * perLevel, 3 * perLevel, 2 * perLevel, perLevel, 2, 1, 0, -1}

// schemas turns schemas of a document into a schema of a tool. What references lead to becomes a definition.
type schemas struct {
	d       *document
	texts   *texts
	isInput bool // for parameters, without what is read-only; else for a result, of which only the shape stays
	depth   int
	room    int // bytes that are left; below zero the schema is useless
	defs    object
	names   map[string]string // reference -> name of the definition
	queue   []queued
}

type queued struct {
	name  string
	from  any
	level int
}

func (d *document) schemas(t *texts, isInput bool, depth, room int) *schemas {
	return &schemas{d: d, texts: t, isInput: isInput, depth: depth, room: room, defs: object{},
		names: map[string]string{}}
}

// finish writes the definitions that are referred to, and returns the whole, nil if it is too large.
func (s *schemas) finish(root object) json.RawMessage {
	for len(s.queue) > 0 && s.room >= 0 {
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.defs[next.name] = s.convert(next.from, next.level, 0)
	}
	if s.room < 0 {
		return nil
	}
	if len(s.defs) > 0 {
		root["$defs"] = s.defs
	}
	return jsontext.Marshal(root)
}

// isPlain reports whether a schema describes a value without parts. It is written wherever it is referred to.
func isPlain(m object) bool {
	for _, key := range []string{"properties", "items", "allOf", "anyOf", "oneOf", "additionalProperties", "$ref"} {
		if m[key] != nil {
			return false
		}
	}
	return len(list(m["enum"])) < 20
}

func (s *schemas) reference(ref string, level int) object {
	to := s.d.resolve(object{"$ref": ref})
	switch {
	case to == nil:
		return object{}
	case isPlain(to):
		return s.convert(to, level, 0)
	case level >= s.depth/perLevel:
		return bare(to)
	}
	name := s.names[ref]
	if name == "" {
		stem := kebab(words(ref[strings.LastIndexByte(ref, '/')+1:]))
		if stem == "" || s.texts.misleads("#/$defs/"+stem) {
			stem = "part"
		}
		name = stem
		for n := 2; s.defs[name] != nil; n++ {
			name = fmt.Sprintf("%s-%d", stem, n)
		}
		s.names[ref], s.defs[name] = name, object{}
		s.queue = append(s.queue, queued{name, to, level + 1})
	}
	return object{"$ref": "#/$defs/" + name}
}

// bare returns a schema with only the type of another one.
func bare(m object) object {
	switch kind := text(m["type"]); {
	case kind == "object" || m["properties"] != nil:
		return object{"type": "object"}
	case kind == "array":
		return object{"type": "array"}
	}
	return object{}
}

var kinds = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// convert converts a schema of the document into one for a tool.
func (s *schemas) convert(v any, level, nesting int) object {
	m := members(v)
	if s.room -= minNode; nesting > s.depth || s.room < 0 {
		return bare(m)
	}
	if ref, ok := m["$ref"].(string); ok {
		made := s.reference(ref, level)
		if about := s.about(m); about != "" && made["$ref"] != nil {
			made["description"] = about
		}
		return made
	}
	out := object{}
	s.convertType(m, out)
	if s.isInput {
		s.convertBounds(m, out)
	}
	s.convertParts(m, out, level, nesting)
	if isTrue(m["nullable"]) || isTrue(m["x-nullable"]) {
		out = nullable(out)
	}
	if about := s.about(m); about != "" {
		out["description"] = about
		s.room -= len(about)
	}
	return out
}

func (s *schemas) convertType(m, out object) {
	var all []any
	for _, kind := range append(slices.Clone(list(m["type"])), m["type"]) { // a list, or one
		if slices.Contains(kinds, text(kind)) && !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	switch {
	case text(m["type"]) == "file":
		out["type"], out["contentEncoding"] = "string", "base64"
	case len(all) == 1:
		out["type"] = all[0]
	case len(all) > 0:
		out["type"] = all
	}
	if out["type"] == nil && m["properties"] != nil {
		out["type"] = "object"
	}
	if media := mediaKind(text(m["contentMediaType"])); s.isInput && mediaName().MatchString(media) {
		out["contentMediaType"] = media
	}
	switch format := text(m["format"]); {
	case text(out["type"]) == "string" && (format == "binary" || format == "byte"):
		out["contentEncoding"] = "base64"
	case text(m["contentEncoding"]) == "base64":
		out["contentEncoding"] = "base64"
	case format != "" && len(format) < 40 && s.isInput && !strings.HasPrefix(format, "int"):
		out["format"] = format
	}
}

// convertBounds takes over what bounds the values of a parameter, as far as it can be applied.
func (s *schemas) convertBounds(m, out object) {
	var values []any
	seen := map[string]bool{}
	for _, v := range list(m["enum"]) {
		_, isHidden := manifest.FirstHidden(text(v), false)
		if number := scalar(v); number != "" && out["type"] == "string" { // YAML without quotes: 1.10
			v = number
		}
		if key := jsontext.Text(v); !seen[key] && !isHidden {
			seen[key] = true
			values = append(values, v)
		}
	}
	if len(values) > 0 && len(values) <= maxEnum {
		out["enum"] = values
	}
	if v, ok := m["const"]; ok {
		out["const"] = v
	}
	for _, key := range []string{"minimum", "maximum"} {
		exclusive := "exclusiveM" + key[1:]
		if n, ok := m[key].(json.Number); ok {
			out[map[bool]string{true: exclusive, false: key}[isTrue(m[exclusive])]] = n
		}
		if n, ok := m[exclusive].(json.Number); ok {
			out[exclusive] = n
		}
	}
	for _, key := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
		n := scalar(m[key])
		if digits, ok := jsontext.Integer(n); ok && len(digits) < 10 && digits[0] != '-' {
			out[key] = json.Number(digits)
		}
	}
	if n, ok := m["multipleOf"].(json.Number); ok && strings.Trim(n.String(), "0.") != "" && n.String()[0] != '-' {
		out["multipleOf"] = n
	}
	if isTrue(m["uniqueItems"]) {
		out["uniqueItems"] = true
	}
	if p := text(m["pattern"]); p != "" && len(p) <= 1<<10 {
		if _, err := regexp.Compile(p); err == nil {
			out["pattern"] = p
		}
	}
}

// convertParts takes over the schemas in a schema.
func (s *schemas) convertParts(m, out object, level, nesting int) {
	if given := members(m["properties"]); len(given)*minNode > s.room {
		s.room = -1
	} else if given != nil {
		props := object{}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			to := s.d.resolve(given[name])
			if _, isHidden := manifest.FirstHidden(name, false); isHidden || isTrue(to[map[bool]string{
				true: "readOnly", false: "writeOnly"}[s.isInput]]) {
				continue
			}
			props[name] = s.convert(given[name], level, nesting+1)
		}
		out["properties"] = props
		if needed := requiredOf(m, props); s.isInput && len(needed) > 0 {
			out["required"] = needed
		}
	}
	if more, isMap := m["additionalProperties"].(object); isMap {
		out["additionalProperties"] = s.convert(more, level, nesting+1)
	} else if s.isInput && m["additionalProperties"] == false {
		out["additionalProperties"] = false
	}
	if items := members(m["items"]); items != nil {
		out["items"] = s.convert(items, level, nesting+1)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		var all []any
		for _, branch := range list(m[key]) {
			all = append(all, s.convert(branch, level, nesting+1))
		}
		if key == "oneOf" {
			key = "anyOf" // a value that fits two branches is for the API to judge
		}
		if len(all) > 0 && out[key] == nil {
			out[key] = all
		}
	}
}

// requiredOf returns the names of properties that are required and exist.
func requiredOf(m, props object) (needed []string) {
	for _, name := range list(m["required"]) {
		if props[text(name)] != nil {
			needed = append(needed, text(name))
		}
	}
	return sorted(needed)
}

// nullable returns a schema that admits null, too. What has parts would refuse it in them.
func nullable(out object) object {
	if out["allOf"] != nil || out["anyOf"] != nil {
		return object{"anyOf": []any{out, object{"type": "null"}}}
	}
	switch kind := out["type"].(type) {
	case string:
		out["type"] = []any{kind, "null"}
	case []any:
		if !slices.Contains(kind, any("null")) {
			out["type"] = append(slices.Clone(kind), "null")
		}
	}
	if values := list(out["enum"]); values != nil && !slices.Contains(values, nil) {
		out["enum"] = append(slices.Clone(values), nil)
	}
	return out
}

// about returns the description of a schema. It mentions a default, but does not apply it: the API applies its own.
func (s *schemas) about(m object) string {
	if !s.isInput {
		return s.texts.short(text(m["description"]), maxResult)
	}
	about := s.texts.short(text(m["description"]), maxProperty)
	if v, ok := m["default"]; ok && v != nil {
		if shown := jsontext.Text(v); len(shown) <= 60 {
			about = strings.TrimSpace(strings.TrimRight(about, " ") + " " + s.texts.short("Default: "+shown+".", 80))
		}
	}
	if isTrue(m["deprecated"]) {
		about = strings.TrimSpace("Deprecated. " + about)
	}
	return about
}

// merged returns a schema with the properties of all parts of its allOf, to make parameters of them.
func (d *document) merged(v any, left *int) object {
	m := d.resolve(v)
	parts := list(m["allOf"])
	if *left -= len(parts); len(parts) == 0 || *left < 0 {
		return m
	}
	out, props, needed := maps.Clone(m), object{}, list(m["required"])
	delete(out, "allOf")
	for _, part := range append(slices.Clone(parts), object{"properties": m["properties"]}) {
		from := d.merged(part, left)
		maps.Copy(props, members(from["properties"]))
		needed = append(slices.Clone(needed), list(from["required"])...)
		for _, key := range []string{"type", "anyOf", "oneOf", "additionalProperties"} {
			if out[key] == nil && from[key] != nil {
				out[key] = from[key]
			}
		}
	}
	if len(props) > 0 {
		out["properties"], out["required"] = props, needed
	}
	return out
}

// isFlat reports whether the properties of a body can be parameters of the tool.
func isFlat(m object) bool {
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		for _, branch := range list(m[key]) {
			if part := members(branch); part["properties"] != nil || part["$ref"] != nil || part["type"] != nil {
				return false
			}
		}
	}
	_, isMap := m["additionalProperties"].(object)
	n := len(members(m["properties"]))
	return n > 0 && n <= maxFlat && !isMap && !isTrue(m["additionalProperties"]) && !isTrue(m["nullable"])
}

// fits reports whether a schema is small enough for a tool, and returns it compiled; nil if calls cannot be validated.
func fits(raw json.RawMessage, size int) (isSmall bool, compiled *schema.Schema) {
	if len(raw) == 0 || len(raw) > size {
		return false, nil
	}
	listing := 0
	if len(raw) > maxSchema/15 { // a smaller one does not have enough references to become so large
		for _, p := range manifest.Params(raw) {
			listing += len(p.Text())
		}
	}
	compiled, _ = schema.CompileUntrusted(raw) // nil if it is refused
	return listing < maxSchema, compiled
}
