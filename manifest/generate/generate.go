// Package generate generates test data for tools: values that a JSON Schema accepts, and values that differ from them
// in one place. The same seed generates the same values.
package generate

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// Generator makes values by one schema. It is not safe for concurrent use.
type Generator struct {
	root any
	rand *rand.Rand
}

// New returns a generator for a schema that the gate of package schema accepts.
func New(raw json.RawMessage, seed uint64) (*Generator, error) {
	root, err := jsontext.Decode(raw, jsontext.Limits{})
	if err != nil {
		return nil, err
	}
	return &Generator{root: root, rand: rand.New(rand.NewPCG(seed, 1))}, nil
}

// Value returns a value that follows the keywords that describe values. Keywords such as "not" and "if" only forbid
// values, so the result may be invalid where a schema has them: validate it.
func (g *Generator) Value() any { return g.value(g.root, 0) }

// hostile returns strings that programs often handle wrongly. Two of them are long, so they are built only when
// needed.
func hostile() []string {
	return []string{
		"", " ", "\x00", "a\x00b", "\n", "\r\n", "\t", "../../etc/passwd", "/", "-", "--help", "'; DROP TABLE t; --",
		"$(id)", "`id`", "%s%n%x", "{name}", "\\", "\"", "\\u0000", "<script>", "\u202eabc", "\ufeff", "e\u0301", "😀",
		"\U0010ffff", "null", "1e400", "-0", "9223372036854775808", strings.Repeat("a", 1<<16), strings.Repeat("[", 10000),
	}
}

// Hostile returns at most most copies of a value. In each of them one string is replaced by one that programs often
// handle wrongly.
func (g *Generator) Hostile(value any, most int) []any {
	return g.variants(value, most, func(at []string, inner any, add func(at []string, with any)) {
		if _, isText := inner.(string); isText {
			for _, s := range hostile() {
				add(at, s)
			}
		}
	})
}

// variants returns at most most copies of a value, each with a change in one place.
func (g *Generator) variants(value any, most int, change func(at []string, inner any, add func([]string, any))) []any {
	var all []any
	jsontext.Values(value, func(at []string, inner any) {
		change(at, inner, func(at []string, with any) { all = append(all, replaced(value, at, with)) })
	})
	g.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(most, len(all))]
}

// Mutants returns copies of a value that differ in one place: a member is missing or added, or a value has another type
// or is far out of bounds. There are at most most of them, and some may still be valid.
func (g *Generator) Mutants(value any, most int) []any {
	return g.variants(value, most, func(at []string, inner any, add func(at []string, with any)) {
		switch v := inner.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				add(append(slices.Clone(at), name), nil)
			}
			add(append(slices.Clone(at), "no such parameter"), true)
		case json.Number:
			add(at, json.Number("-1e300"))
			add(at, json.Number("0.5"))
		case string:
			add(at, "")
			add(at, strings.Repeat("~", 1<<16))
		}
		if len(at) > 0 {
			add(at, map[string]any{"a": []any{}})
			add(at, false)
		}
	})
}

// maxDepth limits schemas that refer to themselves.
const maxDepth = 12

func (g *Generator) value(node any, depth int) any {
	schema := g.resolve(node)
	if schema == nil {
		return map[string]any{}
	}
	if depth > 4*maxDepth { // the schema requires itself, so no value is valid
		return nil
	}
	if v, ok := g.listed(schema); ok {
		return v
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if branches, ok := schema[keyword].([]any); ok && len(branches) > 0 {
			schema = merged(schema, g.resolve(branches[g.rand.IntN(len(branches))]), keyword)
		}
	}
	if parts, ok := schema["allOf"].([]any); ok {
		for _, part := range parts {
			schema = merged(schema, g.resolve(part), "allOf")
		}
	}
	if v, ok := g.listed(schema); ok {
		return v
	}
	switch g.typeOf(schema) {
	case "object":
		return g.object(schema, depth)
	case "array":
		return g.array(schema, depth)
	case "integer":
		return g.integer(schema)
	case "number":
		if g.rand.IntN(2) == 0 {
			return g.integer(schema)
		}
		low, high := bounds(schema)
		return json.Number(strconv.FormatFloat(low+(high-low)*g.rand.Float64(), 'g', 6, 64))
	case "boolean":
		return g.rand.IntN(2) == 0
	case "null":
		return nil
	}
	return g.text(schema)
}

// listed returns a value that the schema lists.
func (g *Generator) listed(schema map[string]any) (any, bool) {
	if v, ok := schema["const"]; ok {
		return v, true
	}
	values, _ := schema["enum"].([]any)
	if len(values) == 0 {
		return nil, false
	}
	return values[g.rand.IntN(len(values))], true
}

func (g *Generator) resolve(node any) map[string]any {
	s, _ := schema.Resolve(g.root, node, nil)
	return s
}

// merged returns a schema with the keywords of another one. Properties of both are kept.
func merged(a, b map[string]any, without string) map[string]any {
	out := maps.Clone(a)
	delete(out, without)
	for k, v := range b {
		was, both := out[k].(map[string]any)
		now, _ := v.(map[string]any)
		if both && k == "properties" {
			v = merged(was, now, "")
		}
		if names, ok := out[k].([]any); ok && k == "required" {
			more, _ := v.([]any)
			v = append(slices.Clone(names), more...)
		}
		out[k] = v
	}
	return out
}

func (g *Generator) typeOf(schema map[string]any) string {
	switch t := schema["type"].(type) {
	case string:
		return t
	case []any:
		if s, ok := t[g.rand.IntN(len(t))].(string); ok {
			return s
		}
	}
	switch {
	case schema["properties"] != nil:
		return "object"
	case schema["items"] != nil:
		return "array"
	}
	return "string"
}

func (g *Generator) object(schema map[string]any, depth int) any {
	out := map[string]any{}
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || depth < maxDepth && g.rand.IntN(2) == 0 {
			out[name] = g.value(properties[name], depth+1)
		}
	}
	for _, name := range required {
		if s, ok := name.(string); ok && properties[s] == nil {
			out[s] = "a"
		}
	}
	return out
}

func (g *Generator) array(schema map[string]any, depth int) any {
	low, high := size(schema, "minItems"), size(schema, "maxItems")
	if high < 0 || high > max(low, 0)+3 {
		high = max(low, 0) + 3
	}
	out := []any{}
	for n := max(low, 0) + g.rand.IntN(high-max(low, 0)+1); len(out) < n && (depth < maxDepth || len(out) < low); {
		item := g.value(schema["items"], depth+1)
		if schema["items"] == nil {
			item = json.Number(strconv.Itoa(len(out)))
		}
		out = append(out, item)
	}
	return out
}

func (g *Generator) integer(schema map[string]any) any {
	low, high := bounds(schema)
	switch g.rand.IntN(4) { // the bounds are where mistakes are
	case 0:
		return json.Number(strconv.FormatInt(int64(low), 10))
	case 1:
		return json.Number(strconv.FormatInt(int64(high), 10))
	}
	return json.Number(strconv.FormatInt(int64(low)+g.rand.Int64N(max(1, int64(high)-int64(low)+1)), 10))
}

func (g *Generator) text(schema map[string]any) any {
	if pattern, ok := schema["pattern"].(string); ok {
		if re, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			var b strings.Builder
			g.match(&b, re.Simplify())
			return b.String()
		}
	}
	if schema["contentEncoding"] == "base64" {
		return base64.StdEncoding.EncodeToString([]byte("any bytes")[:g.rand.IntN(9)])
	}
	if schema["x-assert"] == true { // the host validates it
		return time.Unix(g.rand.Int64N(1<<32), 0).UTC().Format(time.RFC3339)
	}
	low, high := max(size(schema, "minLength"), 0), size(schema, "maxLength")
	if high < 0 || high > low+20 {
		high = low + 20
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,-_äß日"
	alphabet := []rune(letters)
	var b strings.Builder
	for range low + g.rand.IntN(high-low+1) {
		b.WriteRune(alphabet[g.rand.IntN(len(alphabet))])
	}
	return b.String()
}

// match writes a string that a regular expression matches.
func (g *Generator) match(b *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if n := len(re.Rune) / 2; n > 0 {
			i := g.rand.IntN(n) * 2
			low, high := re.Rune[i], min(re.Rune[i+1], max(re.Rune[i], '~'))
			if low < ' ' && high >= ' ' {
				low = ' '
			}
			b.WriteRune(low + rune(g.rand.IntN(int(high-low)+1)))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte("abcxyz019"[g.rand.IntN(9)])
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			g.match(b, sub)
		}
	case syntax.OpAlternate:
		g.match(b, re.Sub[g.rand.IntN(len(re.Sub))])
	case syntax.OpQuest:
		g.repeat(b, re, g.rand.IntN(2))
	case syntax.OpStar:
		g.repeat(b, re, g.rand.IntN(4))
	case syntax.OpPlus:
		g.repeat(b, re, 1+g.rand.IntN(4))
	case syntax.OpRepeat:
		g.repeat(b, re, re.Min)
	}
}

func (g *Generator) repeat(b *strings.Builder, re *syntax.Regexp, n int) {
	for range n {
		g.match(b, re.Sub[0])
	}
}

// bounds returns the bounds of a number. Without bounds the range is small, so that no generated call is large.
func bounds(of map[string]any) (low, high float64) {
	number := func(key string) (float64, bool) {
		n, ok := of[key].(json.Number)
		f, err := n.Float64()
		return f, ok && err == nil && !schema.IsTypeEnd(n.String())
	}
	low, hasLow := number("minimum")
	if above, ok := number("exclusiveMinimum"); ok {
		low, hasLow = above+1, true
	}
	high, hasHigh := number("maximum")
	if below, ok := number("exclusiveMaximum"); ok {
		high, hasHigh = below-1, true
	}
	switch {
	case !hasLow && !hasHigh:
		low, high = -10, 100
	case !hasLow:
		low = high - 100
	case !hasHigh:
		high = low + 100
	}
	const safe = 1 << 53
	return max(low, -safe), min(max(low, high), safe)
}

func size(schema map[string]any, key string) int {
	if n, ok := schema[key].(json.Number); ok {
		if f, err := n.Float64(); err == nil && f >= 0 && f < 1<<20 {
			return int(f)
		}
	}
	return -1
}

// replaced returns a copy of a value in which the value at a path is with. A member that becomes nil is removed.
func replaced(value any, path []string, with any) any {
	if len(path) == 0 {
		return with
	}
	switch v := value.(type) {
	case map[string]any:
		out, name := maps.Clone(v), path[0]
		if out[name] = replaced(v[name], path[1:], with); len(path) == 1 && with == nil {
			delete(out, name)
		}
		return out
	case []any:
		out := slices.Clone(v)
		i, _ := strconv.Atoi(path[0])
		out[i] = replaced(v[i], path[1:], with)
		return out
	}
	return with
}
