package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/spelling"
	sdk "github.com/parley-tools/parley/sdk/go"
)

// ReviewParams are a document and what it is to follow.
type ReviewParams struct {
	// JSON to review, e.g. [1].
	Data json.RawMessage `json:"data" aliases:"document,doc,instance"`
	// JSON Schema, e.g. {}.
	Schema json.RawMessage `json:"schema,omitempty" from:"json.schema/schema"`
	// Right document, e.g. [2].
	Sample json.RawMessage `json:"sample,omitempty" aliases:"example,reference"`
}

// ReviewResult lists what is wrong, and a patch that puts right what can be.
type ReviewResult struct {
	// Whether there is no finding of severity error.
	Valid bool `json:"valid"`
	// What is wrong, in the order of the schema; 200 at most.
	Findings []Finding `json:"findings"`
	// All fixes as one JSON Patch.
	Patch []Operation `json:"patch"`
	// Keywords of the schema that were not checked, and where they are.
	Unchecked []string `json:"unchecked"`
}

// Finding is one fault of a document.
type Finding struct {
	// JSON pointer to the value.
	Path string `json:"path"`
	// How much it matters.
	Severity string `json:"severity" enum:"error,warning,info"`
	// Keyword that it breaks, e.g. "type".
	Rule string `json:"rule"`
	// What is there, shortened.
	Given string `json:"given"`
	// What should be there.
	Expected string `json:"expected"`
	// JSON Patch that puts it right; absent if that takes a decision.
	Fix []Operation `json:"fix,omitempty"`
}

const (
	maxFindings = 200
	maxChecks   = 1_000_000 // schemas that are applied to a value in one review
)

// Review checks a document against a JSON Schema, or against what a sample has.
func Review(c *sdk.Call, p ReviewParams) (ReviewResult, error) {
	if (p.Schema == nil) == (p.Sample == nil) {
		given := map[bool]string{true: "neither", false: "both"}[p.Schema == nil]
		return ReviewResult{}, sdk.Invalid("", "either schema or sample", given, "")
	}
	r := &reviewer{unchecked: map[string]bool{}, lenient: p.Schema == nil}
	if r.lenient {
		inferred, err := Schema(&sdk.Call{}, SchemaParams{Samples: []json.RawMessage{p.Sample}})
		if err != nil {
			return ReviewResult{}, err
		}
		p.Schema = inferred.Schema
	}
	r.root = decode(p.Schema)
	if kind := typeOf(r.root); kind != "object" && kind != "boolean" {
		return ReviewResult{}, sdk.Invalid("/schema", "a JSON Schema: an object, true or false", short(r.root), "")
	}
	r.mark(r.root, "", true)
	findings := r.check(&check{value: decode(p.Data)}, r.root)
	if r.checks > maxChecks {
		return ReviewResult{}, sdk.Invalid("/schema", "a schema whose references branch less often", "", "")
	}
	if len(findings) > maxFindings {
		c.Warn("there are %d findings; the first %d are listed", len(findings), maxFindings)
		findings = findings[:maxFindings]
	}
	result := ReviewResult{Findings: findings, Unchecked: slices.Sorted(maps.Keys(r.unchecked))}
	result.Valid = !slices.ContainsFunc(findings, isError)
	for _, f := range slices.Backward(findings) { // backward, so that later items of an array go before earlier ones
		result.Patch = append(result.Patch, f.Fix...)
	}
	if _, err := Patch(c, PatchParams{p.Data, result.Patch}); err != nil {
		c.Warn("the fixes exclude each other, apply one at a time: %s", err)
	}
	return result, nil
}

type reviewer struct {
	root      any
	lenient   bool // what differs from a sample may be right
	unchecked map[string]bool
	checks    int
	trying    int // above 0 while a replacement is checked, of which no fix is sought
}

// check is one value, the schema that it is checked against, and the keyword of it that is checked.
type check struct {
	path     string
	optional bool // a member that may be removed
	value    any
	depth    int // of references
	schema   map[string]any
	keyword  string
	want     any // the keyword's value
	findings []Finding
}

func (c *check) add(severity, expected string, fix ...Operation) {
	c.findings = append(c.findings, Finding{c.path, severity, c.keyword, short(c.value), expected, fix})
}

// keywords are those that are checked, in this order; silent are those that there is nothing to check of.
var (
	keywords = strings.Fields(`$ref type enum const required properties additionalProperties items minItems maxItems
		minLength maxLength minProperties maxProperties uniqueItems minimum maximum exclusiveMinimum exclusiveMaximum
		multipleOf pattern format allOf anyOf oneOf not`)
	silent = strings.Fields(`$schema $id $comment $defs definitions title description default examples deprecated readOnly
		writeOnly`)
)

// check returns the findings of a value.
func (r *reviewer) check(c *check, schema any) []Finding {
	if r.checks++; r.checks > maxChecks {
		return nil
	}
	c.schema, _ = schema.(map[string]any)
	if schema == false {
		c.keyword = "false"
		c.add("error", "nothing: the schema allows no value here", r.removal(c)...)
	}
	for _, c.keyword = range keywords {
		if want, ok := c.schema[c.keyword]; ok && hasForm(c.keyword, typeOf(want)) {
			c.want = want
			r.apply(c)
		}
	}
	return c.findings
}

// inner checks the same value against a schema within.
func (r *reviewer) inner(c *check, schema any) []Finding {
	return r.check(&check{path: c.path, optional: c.optional, value: c.value, depth: c.depth + 1}, schema)
}

func (r *reviewer) apply(c *check) {
	items, _ := c.value.([]any)
	switch c.keyword {
	case "$ref":
		name, _ := c.want.(string)
		path, ok := parsePointer(strings.TrimPrefix(name, "#"))
		schema, found := get(r.root, path)
		if !strings.HasPrefix(name, "#") || !ok || !found || c.depth > 100 {
			r.unchecked["$ref "+name] = true
			return
		}
		c.findings = append(c.findings, r.inner(c, schema)...)
	case "type":
		r.types(c)
	case "const":
		r.oneOf(c, []any{c.want}, c.want)
	case "enum":
		r.oneOf(c, list(c.want), resembling(c.value, list(c.want))...)
	case "required":
		r.required(c)
	case "properties", "additionalProperties":
		r.members(c)
	case "items":
		if _, isList := c.want.([]any); isList || c.schema["prefixItems"] != nil {
			r.unchecked["items by position"] = true
			return
		}
		for i, item := range items {
			c.findings = append(c.findings, r.check(&check{path: c.path + "/" + strconv.Itoa(i), value: item}, c.want)...)
		}
	case "uniqueItems":
		if c.want == true {
			r.distinct(c, items)
		}
	case "pattern", "format":
		r.text(c)
	case "allOf", "anyOf", "oneOf":
		r.combine(c)
	case "not":
		if r.passes(c, c.want, c.value) {
			c.add("error", "a value unlike "+short(c.want))
		}
	default:
		r.bound(c)
	}
}

// distinct reports items that an earlier one equals.
func (r *reviewer) distinct(c *check, items []any) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return gojq.Compare(items[a], items[b]) })
	first := map[int]int{}
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; equal(items[a], items[b]) {
			first[b] = a
		}
	}
	for _, i := range slices.Sorted(maps.Keys(first)) {
		at := c.path + "/" + strconv.Itoa(i)
		c.findings = append(c.findings, Finding{at, "error", c.keyword, short(items[i]),
			fmt.Sprintf("an item unlike %s/%d", c.path, first[i]), []Operation{{Op: "remove", Path: at}}})
	}
}

// passes reports whether a value has no error.
func (r *reviewer) passes(c *check, schema, value any) bool {
	r.trying++
	defer func() { r.trying-- }()
	return !slices.ContainsFunc(r.inner(&check{path: c.path, value: value, depth: c.depth}, schema), isError)
}

func isError(f Finding) bool { return f.Severity == "error" }

// try proposes the first replacement that the schema accepts.
func (r *reviewer) try(c *check, values ...any) []Operation {
	for _, value := range values {
		if raw, err := encode(value); err == nil && r.trying == 0 && r.passes(c, c.schema, value) {
			return []Operation{{Op: "replace", Path: c.path, Value: raw}}
		}
	}
	return nil
}

func (r *reviewer) removal(c *check) []Operation {
	if !c.optional {
		return nil
	}
	return []Operation{{Op: "remove", Path: c.path}}
}

// mark notes the keywords that are not checked. A map of schemas is no schema itself.
func (r *reviewer) mark(schema any, path string, isSchema bool) {
	for i, inner := range list(schema) {
		if object, ok := inner.(map[string]any); !ok {
			continue
		} else if _, isList := schema.([]any); isList {
			r.mark(object, path+"/"+strconv.Itoa(i), true)
			continue
		}
		for name, value := range inner.(map[string]any) {
			at := path + "/" + escape(name)
			isMap := isSchema && (name == "properties" || name == "$defs" || name == "definitions")
			switch {
			case isSchema && !hasForm(name, typeOf(value)), !isSchema && !slices.Contains(schemaTypes, typeOf(value)):
				r.unchecked[at] = true // the form of another draft, or a mistake
			case !isSchema || isMap || slices.Contains(keywords, name) && name != "enum" && name != "const":
				r.mark(value, at, !isMap)
			case !slices.Contains(keywords, name) && !slices.Contains(silent, name) && !strings.HasPrefix(name, "x-"):
				r.unchecked[at] = true
			}
		}
	}
}

var schemaTypes = []string{"object", "boolean"}

// hasForm reports whether a keyword that is checked has a value of the type that it requires.
func hasForm(keyword, is string) bool {
	switch keyword {
	case "items":
		return is == "array" || slices.Contains(schemaTypes, is)
	case "additionalProperties", "not":
		return slices.Contains(schemaTypes, is)
	case "properties", "$defs", "definitions":
		return is == "object"
	case "enum", "required", "allOf", "anyOf", "oneOf":
		return is == "array"
	case "type":
		return is == "array" || is == "string"
	case "$ref", "pattern", "format":
		return is == "string"
	case "uniqueItems":
		return is == "boolean"
	}
	return keyword == "const" || !slices.Contains(keywords, keyword) || is == "integer" || is == "number"
}

func (r *reviewer) types(c *check) {
	var names []string
	var others []any
	for _, t := range list(c.want) {
		if is := typeOf(c.value); t == is || t == "number" && is == "integer" {
			return
		}
		names = append(names, fmt.Sprint(t))
		others = append(others, asType(names[len(names)-1], c.value)...)
	}
	fix := r.try(c, others...)
	if c.value == nil {
		fix = r.removal(c)
	}
	c.add("error", "type "+strings.Join(names, " or "), fix...)
}

// asType returns what a value probably means as another type.
func asType(t string, value any) []any {
	s, isText := value.(string)
	s = strings.ToLower(strings.TrimSpace(s))
	is := typeOf(value)
	switch {
	case t == "array" && value != nil:
		return []any{[]any{value}}
	case t == "string" && (is == "integer" || is == "number" || is == "boolean"):
		return []any{fmt.Sprint(value)}
	case isText && json.Valid([]byte(s)) && !strings.ContainsAny(s, `"[{`):
		return []any{decode(json.RawMessage(s))}
	}
	return nil
}

// typeOf returns the type of JSON Schema; a number without a fraction is an integer.
func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	if n, ok := rational(value); ok && n.IsInt() {
		return "integer"
	}
	return "number"
}

// rational returns a number exactly. It refuses exponents that take much memory.
func rational(value any) (*big.Rat, bool) {
	_, isInt := value.(int)
	number, _ := value.(json.Number)
	s := strings.ToLower(fmt.Sprint(value))
	_, exponent, _ := strings.Cut(s, "e")
	if n, err := strconv.Atoi("0" + strings.TrimLeft(exponent, "+-")); !isInt && number == "" || err != nil || n > 400 {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

func (r *reviewer) oneOf(c *check, allowed []any, meant ...any) {
	if !slices.ContainsFunc(allowed, func(v any) bool { return equal(v, c.value) }) {
		c.add("error", "one of "+short(allowed), r.try(c, meant...)...)
	}
}

// resembling returns the text that another one is a misspelling of.
func resembling(value any, allowed []any) (near []any) {
	s, isText := value.(string)
	for _, v := range allowed {
		if t, ok := v.(string); ok && isText && alike(s, t) {
			near = append(near, t)
		}
	}
	return near[:len(near)&1] // of two or more, none is meant
}

// alike reports whether two names differ in signs or in a few letters.
func alike(a, b string) bool {
	distance, ok := spelling.Resembles(a, b)
	return spelling.Fold(a) == spelling.Fold(b) || ok && distance <= 2
}

func (r *reviewer) required(c *check) {
	object, isObject := c.value.(map[string]any)
	severity := "error"
	if r.lenient {
		severity = "warning"
	}
	for _, name := range list(c.want) {
		key, _ := name.(string)
		if _, has := object[key]; has || !isObject {
			continue
		}
		var fix []Operation
		expected, at := "the member "+strconv.Quote(key), c.path+"/"+escape(key)
		schema := asObject(asObject(c.schema["properties"])[key])
		if wrong := r.misspelt(c, object, key); wrong != "" {
			expected += ", which " + strconv.Quote(wrong) + " probably is"
			fix = []Operation{{Op: "move", From: c.path + "/" + escape(wrong), Path: at}}
		} else if value := cmp.Or(schema["default"], schema["const"]); value != nil {
			raw, _ := encode(value)
			fix = []Operation{{Op: "add", Path: at, Value: raw}}
		}
		c.add(severity, expected, fix...)
	}
}

// misspelt returns the member that the schema does not know, whose name is like that of a missing one and whose value
// is right for it.
func (r *reviewer) misspelt(c *check, object map[string]any, missing string) string {
	properties := asObject(c.schema["properties"])
	for _, name := range sortedKeys(object) {
		if _, known := properties[name]; !known && r.trying == 0 && alike(name, missing) &&
			(properties[missing] == nil || r.passes(c, properties[missing], object[name])) {
			return name
		}
	}
	return ""
}

// members checks the members of an object that a keyword is about.
func (r *reviewer) members(c *check) {
	object, properties := asObject(c.value), asObject(c.schema["properties"])
	for _, name := range sortedKeys(object) {
		schema, known := properties[name]
		at := &check{path: c.path + "/" + escape(name), value: object[name], keyword: c.keyword,
			optional: !slices.Contains(list(c.schema["required"]), any(name))}
		switch {
		case c.keyword == "properties" && known:
			r.check(at, schema)
		case c.keyword == "properties" && r.lenient:
			at.add("info", "no member of this name, as in the sample")
		case c.keyword == "properties" || known || c.schema["patternProperties"] != nil:
		case c.want == false:
			at.add("error", "none but "+strings.Join(spelling.AtMost(sortedKeys(properties), 20), ", "),
				r.rename(c, object, name)...)
		default:
			r.check(at, c.want)
		}
		c.findings = append(c.findings, at.findings...)
	}
}

// rename proposes the name that an unknown member should have, or its removal. A required one has that fix already.
func (r *reviewer) rename(c *check, object map[string]any, name string) []Operation {
	at := c.path + "/" + escape(name)
	for _, key := range sortedKeys(asObject(c.schema["properties"])) {
		if _, has := object[key]; has || r.misspelt(c, object, key) != name {
			continue
		}
		if slices.Contains(list(c.schema["required"]), any(key)) {
			return nil
		}
		return []Operation{{Op: "move", From: at, Path: c.path + "/" + escape(key)}}
	}
	return []Operation{{Op: "remove", Path: at}}
}

// bound checks a number, or a number of items, characters or members, exactly.
func (r *reviewer) bound(c *check) {
	n, isNumber := rational(c.value)
	unit := map[string]string{"array": "Items", "string": "Length", "object": "Properties"}[typeOf(c.value)]
	if unit != "" && strings.HasSuffix(c.keyword, unit) {
		s, _ := c.value.(string)
		items, _ := c.value.([]any)
		n = big.NewRat(int64(utf8.RuneCountInString(s)+len(items)+len(asObject(c.value))), 1)
	} else if !isNumber || strings.HasPrefix(c.keyword, "m") && !slices.Contains([]string{"minimum", "maximum",
		"multipleOf"}, c.keyword) {
		return
	}
	limit, ok := rational(c.want)
	if !ok {
		return
	}
	order, isLeast := n.Cmp(limit), strings.HasPrefix(strings.ToLower(c.keyword), "min") || c.keyword == "exclusiveMinimum"
	switch {
	case c.keyword == "multipleOf":
		if limit.Sign() <= 0 || new(big.Rat).Quo(n, limit).IsInt() {
			return
		}
	case isLeast && order > 0, !isLeast && order < 0, order == 0 && !strings.HasPrefix(c.keyword, "exclusive"):
		return
	}
	c.add("error", c.keyword+" "+short(c.want))
}

// text checks the pattern or the format of a text. In JSON Schema a format is a remark, so that it gives a warning.
func (r *reviewer) text(c *check) {
	s, isText := c.value.(string)
	want, _ := c.want.(string)
	matches, severity := r.matcher(c.keyword, want), "error"
	if matches == nil {
		r.unchecked[c.keyword+" "+want] = true
	}
	if !isText || matches == nil || matches(s) {
		return
	}
	if c.keyword == "format" {
		severity = "warning"
	}
	var better []any
	for _, text := range []string{strings.TrimSpace(s), strings.Replace(s, " ", "T", 1), dashed(s)} {
		if matches(text) {
			better = append(better, text)
		}
	}
	c.add(severity, c.keyword+" "+want, r.try(c, better...)...)
}

// matcher returns what checks a pattern or a format, nil for one that is unknown.
func (r *reviewer) matcher(keyword, want string) func(string) bool {
	if keyword == "pattern" {
		if _, err := regexp.Compile(want); err == nil {
			return pattern(want)
		}
	} else if i := slices.IndexFunc(formats, func(f format) bool { return f.name == want }); i >= 0 {
		return formats[i].matches
	}
	return nil
}

// dashed writes a date such as 2026/1/5 as 2026-01-05.
func dashed(s string) string {
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '.' || r == '-' })
	return strings.Join(lists.Map(parts, func(part string) string {
		return strings.Repeat("0", max(0, 2-len(part))) + part
	}), "-")
}

// combine checks allOf, anyOf and oneOf. Where no alternative fits, the findings are those of the closest one.
func (r *reviewer) combine(c *check) {
	schemas, passed := list(c.want), 0
	var closest []Finding
	for i, schema := range schemas {
		found := r.inner(c, schema)
		switch {
		case c.keyword == "allOf":
			c.findings = append(c.findings, found...)
			passed = 1
		case !slices.ContainsFunc(found, isError):
			passed++
		case i == 0 || rank(c, found) < rank(c, closest):
			closest = found
		}
	}
	switch {
	case passed > 1 && c.keyword == "oneOf":
		c.add("error", fmt.Sprintf("one of %d alternatives, not %d of them", len(schemas), passed))
	case passed == 0:
		for _, f := range closest {
			f.Expected += fmt.Sprintf(" (by the closest of %d alternatives)", len(schemas))
			c.findings = append(c.findings, f)
		}
	}
}

// rank is lower for an alternative that is rather meant: one whose type and constants the value has, with few findings.
func rank(c *check, findings []Finding) int {
	n := len(findings)
	for _, f := range findings {
		if f.Rule == "type" && f.Path == c.path {
			n += 1_000_000
		} else if f.Rule == "const" || f.Rule == "enum" {
			n += 1000
		}
	}
	return n
}

func asObject(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}

// list returns the items of a list, or the one value that stands for it.
func list(value any) []any {
	if list, ok := value.([]any); ok {
		return list
	}
	return []any{value}
}

// short writes a value in 80 characters at most.
func short(value any) string {
	raw, _ := encode(value)
	if s := []rune(string(raw)); len(s) > 80 {
		return string(s[:77]) + "..."
	}
	return string(raw)
}
