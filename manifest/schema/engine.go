package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/kaptinlin/jsonschema"
	"github.com/xeipuuv/gojsonreference"
	"github.com/xeipuuv/gojsonschema"
)

// engine is the last word on whether a value is valid.
type engine interface {
	valid(v any) (bool, error)
}

type trustedEngine struct{ schema *gojsonschema.Schema }

func newTrustedEngine(p *printer, root *node) (engine, error) {
	loader := gojsonschema.NewSchemaLoader()
	loader.AutoDetect = false
	loader.Draft = gojsonschema.Draft7
	s, err := loader.Compile(closedLoader{p.document(root)})
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return trustedEngine{s}, nil
}

func (e trustedEngine) valid(v any) (bool, error) {
	r, err := e.schema.Validate(gojsonschema.NewRawLoader(v))
	if err != nil {
		return false, fmt.Errorf("schema: %w", err)
	}
	return r.Valid(), nil
}

// closedLoader gives gojsonschema one document in memory and refuses every other: by itself it would fetch references
// from the network and the disk, without a timeout.
type closedLoader struct{ doc any }

func (l closedLoader) JsonSource() any        { return l.doc }
func (l closedLoader) LoadJSON() (any, error) { return l.doc, nil }
func (l closedLoader) JsonReference() (gojsonreference.JsonReference, error) {
	return gojsonreference.NewJsonReference("#")
}
func (l closedLoader) LoaderFactory() gojsonschema.JSONLoaderFactory { return closedFactory{} }

type closedFactory struct{}

func (closedFactory) New(source string) gojsonschema.JSONLoader { return noLoader{source} }

type noLoader struct{ source string }

func (l noLoader) JsonSource() any { return l.source }
func (l noLoader) LoadJSON() (any, error) {
	return nil, errors.New("no document is loaded: " + l.source)
}
func (l noLoader) JsonReference() (gojsonreference.JsonReference, error) {
	return gojsonreference.NewJsonReference(l.source)
}
func (l noLoader) LoaderFactory() gojsonschema.JSONLoaderFactory { return closedFactory{} }

type untrustedEngine struct {
	schema *jsonschema.Schema
	// v0.9.8 compiles patterns while it validates and keeps them in the schema without a lock.
	mu       sync.Mutex
	patterns bool
}

func newUntrustedEngine(p *printer, root *node) (engine, error) {
	c := jsonschema.NewCompiler()
	clear(c.Loaders) // no network, whatever the schema says
	doc := p.document(root)
	s, err := c.Compile(Marshal(doc))
	if err != nil {
		return nil, refuse("", "%v", err)
	}
	if left := s.UnresolvedReferenceURIs(); len(left) > 0 {
		return nil, refuse("", "unresolved reference %s", quoteCut(left[0]))
	}
	return &untrustedEngine{schema: s, patterns: p.patterns}, nil
}

func (e *untrustedEngine) valid(v any) (bool, error) {
	if e.patterns {
		e.mu.Lock()
		defer e.mu.Unlock()
	}
	return e.schema.ValidateStruct(v).IsValid(), nil
}

// A printer writes a compiled graph as the one document that an engine reads: assertions only, every target of a
// reference in one flat map of definitions, each keyword in its plainest form.
type printer struct {
	draft7   bool
	names    map[*node]string // of the targets of references
	targets  []*node
	patterns bool // whether the document holds regular expressions
}

func newPrinter(c *compiler) *printer {
	p := &printer{draft7: !c.untrusted, names: map[*node]string{}, targets: c.targets}
	for i, n := range c.targets {
		p.names[n] = "t" + strconv.Itoa(i)
	}
	return p
}

func (p *printer) defs() string {
	if p.draft7 {
		return "definitions"
	}
	return "$defs"
}

func (p *printer) document(root *node) any {
	defs := map[string]any{}
	for _, n := range p.targets {
		defs[p.names[n]] = p.body(n)
	}
	doc := p.schema(root)
	if len(defs) == 0 {
		return doc
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return doc
	}
	m[p.defs()] = defs
	return m
}

// schema prints n as a place that applies it.
func (p *printer) schema(n *node) any {
	if name, ok := p.names[n]; ok {
		return map[string]any{"$ref": "#/" + p.defs() + "/" + name}
	}
	return p.body(n)
}

func (p *printer) body(n *node) any {
	if n.always != nil {
		return *n.always
	}
	m := map[string]any{}
	if n.ref != nil {
		m["$ref"] = p.schema(n.ref).(map[string]any)["$ref"]
		if p.draft7 {
			return m
		}
	}
	p.values(m, n)
	p.objects(m, n)
	p.arrays(m, n)
	for k, list := range map[string][]*node{"allOf": n.allOf, "anyOf": n.anyOf, "oneOf": n.oneOf} {
		if list != nil {
			m[k] = p.list(list)
		}
	}
	for k, one := range map[string]*node{"not": n.not, "if": n.ifs, "then": n.then, "else": n.els} {
		p.one(m, k, one)
	}
	return m
}

func (p *printer) values(m map[string]any, n *node) {
	if n.types != 0 {
		var types []any
		for _, name := range n.types.list() {
			types = append(types, name)
		}
		m["type"] = types
	}
	if n.enum != nil {
		m["enum"] = n.enum
	}
	if n.isConst {
		m["const"] = n.constant
	}
	for k, b := range map[string]*bound{"minimum": n.min, "maximum": n.max, "exclusiveMinimum": n.exclMin,
		"exclusiveMaximum": n.exclMax, "multipleOf": n.multipleOf} {
		if b != nil {
			m[k] = b.text
		}
	}
	p.counts(m, map[string]*int{"minLength": n.minLength, "maxLength": n.maxLength})
	if n.pattern != nil {
		m["pattern"] = n.pattern.source
		p.patterns = true
	}
}

func (p *printer) objects(m map[string]any, n *node) {
	p.counts(m, map[string]*int{"minProperties": n.minProps, "maxProperties": n.maxProps})
	if len(n.props) > 0 {
		m["properties"] = p.mapOf(n.props)
	}
	if len(n.patternProps) > 0 {
		patterns := map[string]any{}
		for _, pp := range n.patternProps {
			patterns[pp.source] = p.schema(pp.node)
		}
		m["patternProperties"] = patterns
		p.patterns = true
	}
	if len(n.required) > 0 {
		m["required"] = anyList(n.required)
	}
	p.one(m, "additionalProperties", n.additional)
	p.one(m, "propertyNames", n.propertyNames)
	p.one(m, "unevaluatedProperties", n.unevalProps)
	if !p.draft7 {
		if len(n.depRequired) > 0 {
			deps := map[string]any{}
			for k, names := range n.depRequired {
				deps[k] = anyList(names)
			}
			m["dependentRequired"] = deps
		}
		if len(n.depSchemas) > 0 {
			m["dependentSchemas"] = p.mapOf(n.depSchemas)
		}
		return
	}
	deps := map[string]any{}
	for k, names := range n.depRequired {
		deps[k] = anyList(names)
	}
	for k, s := range n.depSchemas {
		if names, both := n.depRequired[k]; both {
			deps[k] = map[string]any{"allOf": []any{p.schema(s), map[string]any{"required": anyList(names)}}}
			continue
		}
		deps[k] = p.schema(s)
	}
	if len(deps) > 0 {
		m["dependencies"] = deps
	}
}

func (p *printer) arrays(m map[string]any, n *node) {
	p.counts(m, map[string]*int{"minItems": n.minItems, "maxItems": n.maxItems, "minContains": n.minContains,
		"maxContains": n.maxContains})
	if n.unique {
		m["uniqueItems"] = true
	}
	switch {
	case len(n.prefix) == 0:
		p.one(m, "items", n.items)
	case p.draft7:
		m["items"] = p.list(n.prefix)
		p.one(m, "additionalItems", n.items)
	default:
		m["prefixItems"] = p.list(n.prefix)
		p.one(m, "items", n.items)
	}
	p.one(m, "contains", n.contains)
	p.one(m, "unevaluatedItems", n.unevalItems)
}

func (p *printer) one(m map[string]any, keyword string, n *node) {
	if n != nil {
		m[keyword] = p.schema(n)
	}
}

func (p *printer) list(nodes []*node) []any {
	list := make([]any, len(nodes))
	for i, n := range nodes {
		list[i] = p.schema(n)
	}
	return list
}

func (p *printer) mapOf(nodes map[string]*node) map[string]any {
	m := make(map[string]any, len(nodes))
	for k, n := range nodes {
		m[k] = p.schema(n)
	}
	return m
}

func (p *printer) counts(m map[string]any, counts map[string]*int) {
	for k, n := range counts {
		if n != nil {
			m[k] = json.Number(strconv.Itoa(*n))
		}
	}
}

func anyList(names []string) []any {
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return list
}

func (k kinds) list() []string {
	var names []string
	for _, name := range []string{"string", "number", "integer", "boolean", "object", "array", "null"} {
		if k&kindNames[name] != 0 {
			names = append(names, name)
		}
	}
	return names
}
