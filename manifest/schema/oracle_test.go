package schema

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/xeipuuv/gojsonschema"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// oracle compiles a trusted schema with gojsonschema, a second implementation whose verdicts the tests compare with the
// walker's. gojsonschema reads the schema as the printer writes it, without the keywords that it treats differently by
// design: it enforces "format" and "contentEncoding", which are annotations here.
func oracle(t *testing.T, s *Schema) func(v any) bool {
	t.Helper()
	loader := gojsonschema.NewSchemaLoader()
	loader.AutoDetect = false
	loader.Draft = gojsonschema.Draft7
	c := &compiler{doc: s.doc}
	root, err := c.compile()
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := loader.Compile(gojsonschema.NewRawLoader(newPrinter(c).document(root)))
	if err != nil {
		t.Fatalf("gojsonschema does not compile %s: %v", jsontext.Marshal(s.Root()), err)
	}
	return func(v any) bool {
		result, err := compiled.Validate(gojsonschema.NewRawLoader(v))
		if err != nil {
			t.Fatal(err)
		}
		return result.Valid()
	}
}

// A printer writes a compiled graph as one draft-07 document: assertions only, every target of a reference in one
// flat map of definitions, each keyword in its plainest form.
type printer struct {
	names   map[*node]string // of the targets of references
	targets []*node
}

func newPrinter(c *compiler) *printer {
	p := &printer{names: map[*node]string{}, targets: c.targets}
	for i, n := range c.targets {
		p.names[n] = "t" + strconv.Itoa(i)
	}
	return p
}

func (p *printer) document(root *node) any {
	doc := p.schema(root)
	m, ok := doc.(map[string]any)
	if !ok || len(p.targets) == 0 {
		return doc
	}
	definitions := map[string]any{}
	for _, n := range p.targets {
		definitions[p.names[n]] = p.body(n)
	}
	m["definitions"] = definitions
	return m
}

// schema prints n as a subschema of another one.
func (p *printer) schema(n *node) any {
	if name, ok := p.names[n]; ok {
		return map[string]any{"$ref": "#/definitions/" + name}
	}
	return p.body(n)
}

func (p *printer) body(n *node) any {
	if n.always != nil {
		return *n.always
	}
	if n.ref != nil {
		return p.schema(n.ref) // draft-07 ignores keywords beside $ref
	}
	m := map[string]any{}
	p.values(m, n)
	p.counts(m, n)
	p.objects(m, n)
	p.items(m, n)
	for k, list := range map[string][]*node{"allOf": n.allOf, "anyOf": n.anyOf, "oneOf": n.oneOf} {
		if list != nil {
			m[k] = p.list(list)
		}
	}
	for k, one := range map[string]*node{"not": n.not, "if": n.ifs, "then": n.then, "else": n.els, "contains": n.contains,
		"additionalProperties": n.additional, "propertyNames": n.propertyNames} {
		if one != nil {
			m[k] = p.schema(one)
		}
	}
	return m
}

func (p *printer) values(m map[string]any, n *node) {
	if n.types != 0 {
		m["type"] = anyList(n.types.list())
	}
	if n.enum != nil {
		m["enum"] = n.enum
	}
	if n.isConst {
		m["const"] = n.constant
	}
	for _, b := range n.bounds {
		m[b.keyword] = b.text
	}
	if n.multipleOf != nil {
		m["multipleOf"] = n.multipleOf.text
	}
	if n.pattern != nil {
		m["pattern"] = n.pattern.source
	}
	if n.unique {
		m["uniqueItems"] = true
	}
}

func (p *printer) counts(m map[string]any, n *node) {
	for k, count := range map[string]*int{"minLength": n.length.least, "maxLength": n.length.most,
		"minItems": n.count.least, "maxItems": n.count.most, "minProperties": n.size.least, "maxProperties": n.size.most} {
		if count != nil {
			m[k] = json.Number(strconv.Itoa(*count))
		}
	}
}

func (p *printer) objects(m map[string]any, n *node) {
	if len(n.props) > 0 {
		properties := map[string]any{}
		for k, child := range n.props {
			properties[k] = p.schema(child)
		}
		m["properties"] = properties
	}
	if len(n.patternProps) > 0 {
		patterns := map[string]any{}
		for _, pp := range n.patternProps {
			patterns[pp.source] = p.schema(pp.node)
		}
		m["patternProperties"] = patterns
	}
	if len(n.required) > 0 {
		m["required"] = anyList(n.required)
	}
	dependencies := map[string]any{}
	for k, names := range n.depRequired {
		dependencies[k] = anyList(names)
	}
	for k, s := range n.depSchemas {
		dependencies[k] = p.schema(s)
		if names, both := n.depRequired[k]; both {
			dependencies[k] = map[string]any{"allOf": []any{p.schema(s), map[string]any{"required": anyList(names)}}}
		}
	}
	if len(dependencies) > 0 {
		m["dependencies"] = dependencies
	}
}

func (p *printer) items(m map[string]any, n *node) {
	keyword := "items"
	if len(n.prefix) > 0 {
		m["items"] = p.list(n.prefix)
		keyword = "additionalItems"
	}
	if n.items != nil {
		m[keyword] = p.schema(n.items)
	}
}

func (p *printer) list(nodes []*node) []any {
	list := make([]any, len(nodes))
	for i, n := range nodes {
		list[i] = p.schema(n)
	}
	return list
}

func anyList(names []string) []any {
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return list
}
