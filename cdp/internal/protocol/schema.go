package protocol

import (
	"cmp"
	"slices"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// ParamsSchema returns the draft-07 JSON Schema of the command's parameters. It rejects unknown parameters, which
// Chrome would silently ignore. Enums are inlined, named objects and arrays are defined once under definitions, and
// properties keep the protocol's order.
func (p *Protocol) ParamsSchema(c *Command) []byte {
	w := schemaWriter{p: p, strict: true, b: make([]byte, 0, schemaCapacity)}
	return w.objectSchema(c.source.domain, c.source.Parameters)
}

// ReturnsSchema returns the draft-07 JSON Schema of the command's result. It allows fields that a newer browser adds. A
// string that contains base64 has contentEncoding and contentMediaType.
func (p *Protocol) ReturnsSchema(c *Command) []byte {
	w := schemaWriter{p: p, command: c.source.qualified, b: make([]byte, 0, schemaCapacity)}
	return w.objectSchema(c.source.domain, c.source.Returns)
}

// EntrySchema returns the draft-07 JSON Schema of an event's parameters, or of a named type.
func (p *Protocol) EntrySchema(e *Entry) []byte {
	w, m := schemaWriter{p: p}, &e.source
	switch {
	case e.Kind == KindEvent:
		return w.objectSchema(m.domain, m.Parameters)
	case m.Type == "object" && len(m.Properties) > 0:
		return w.objectSchema(m.domain, m.Properties)
	}
	w.raw(`{"$schema":"http://json-schema.org/draft-07/schema#",`)
	w.body(m.domain, &m.node, true)
	w.definitions()
	w.raw(`}`)
	return w.b
}

type schemaWriter struct {
	p       *Protocol
	strict  bool   // objects reject unknown properties
	command string // the command whose result this is
	b       []byte
	queue   []string // qualified names that need a definition, in order of occurrence
	queued  map[string]bool
}

// schemaCapacity is large enough for most schemas.
const schemaCapacity = 8 << 10

func (w *schemaWriter) raw(s string) { w.b = append(w.b, s...) }

func (w *schemaWriter) str(s string) { w.b = jsontext.AppendString(w.b, s) }

func (w *schemaWriter) strs(list []string) { w.b = jsontext.Append(w.b, list) }

func (w *schemaWriter) objectSchema(domain string, nodes []node) []byte {
	w.raw(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"`)
	w.properties(domain, nodes, true)
	w.definitions()
	w.raw(`}`)
	return w.b
}

func (w *schemaWriter) definitions() {
	for i := 0; i < len(w.queue); i++ {
		if i == 0 {
			w.raw(`,"definitions":{`)
		} else {
			w.raw(`,`)
		}
		name := w.queue[i]
		t, _ := w.p.typeRecord(name) // the queue has only names that exist
		w.str(t.qualified)
		w.raw(`:{`)
		w.body(t.domain, &t.node, false)
		w.raw(`}`)
	}
	if len(w.queue) > 0 {
		w.raw(`}`)
	}
}

// properties completes an object's schema after its type. An object type without properties allows any property.
func (w *schemaWriter) properties(domain string, nodes []node, top bool) {
	var required []string
	if len(nodes) > 0 || top {
		w.raw(`,"properties":{`)
		for i := range nodes {
			n := &nodes[i]
			if i > 0 {
				w.raw(`,`)
			}
			w.str(n.Name)
			w.raw(`:{`)
			w.body(domain, n, top)
			if names := aliasesOf(n.Name); w.strict && top && names != nil {
				w.raw(`,"x-aliases":`) // a command's parameter, whose schema is never empty
				w.strs(names)
			}
			w.raw(`}`)
			if !n.Optional {
				required = append(required, n.Name)
			}
		}
		w.raw(`}`)
	}
	if len(required) > 0 {
		w.raw(`,"required":`)
		w.strs(required)
	}
	if w.strict && (len(nodes) > 0 || top) {
		w.raw(`,"additionalProperties":false`)
	}
}

// body writes the members of a schema. At the top it writes whole descriptions, below only their first sentence.
// Deprecation uses the keyword of later drafts, which draft-07 ignores.
func (w *schemaWriter) body(domain string, n *node, top bool) {
	start := len(w.b)
	field := func(key string) {
		if len(w.b) > start {
			w.raw(`,`)
		}
		w.str(key)
		w.raw(`:`)
	}
	description, binary := splitBinaryMark(n)
	if !top {
		description = sentence(description)
	}
	if description == "" && top {
		description = w.p.param(domain, n).Description
	}

	typed, enum, items := n.Type, n.Enum, n.Items
	itemsDomain := domain
	reference := ""
	if n.Ref != "" {
		t, ok := w.p.typeRecord(qualify(domain, n.Ref))
		switch {
		case !ok: // a live protocol refers to a type that it does not define: allow anything
		case t.Type == "object" && len(t.Properties) > 0, t.Type == "array":
			reference = t.qualified
		default:
			typed, enum, items, itemsDomain = t.Type, t.Enum, t.Items, t.domain
		}
	}

	if description != "" {
		field("description")
		w.str(oneLine(description))
	}
	if n.Deprecated {
		field("deprecated")
		w.raw("true")
	}
	if n.Experimental && top {
		field("x-experimental")
		w.raw("true")
	}
	if reference != "" {
		field("$ref")
		w.ref(reference)
		return
	}
	if isJSONType(typed) {
		field("type")
		w.str(typed)
	}
	if len(enum) > 0 {
		field("enum")
		w.strs(enum)
	}
	if binary {
		field("contentEncoding")
		w.str("base64")
		if w.command != "" {
			field("contentMediaType")
			w.str(mediaType(w.command))
		}
	}
	if items != nil {
		field("items")
		w.raw(`{`)
		w.body(itemsDomain, items, false)
		w.raw(`}`)
	}
	if typed == "object" && n.Properties != nil {
		w.properties(domain, n.Properties, false)
	}
}

func (w *schemaWriter) ref(name string) {
	if !w.queued[name] {
		if w.queued == nil {
			w.queued = map[string]bool{}
		}
		w.queued[name] = true
		w.queue = append(w.queue, name)
	}
	w.str("#/definitions/" + name)
}

// isJSONType reports whether t is also a type of JSON Schema. "any" is the absence of a type.
func isJSONType(t string) bool {
	return slices.Contains([]string{"string", "integer", "number", "boolean", "object", "array"}, t)
}

// mediaType returns the media type of a command's binary result. A screenshot is PNG unless its format parameter says
// otherwise.
func mediaType(command string) string {
	known := map[string]string{
		"Page.captureScreenshot": "image/png", "HeadlessExperimental.beginFrame": "image/png",
		"Page.printToPDF": "application/pdf", "Audits.getEncodedResponse": "image/webp",
		"Debugger.getScriptSource": "application/wasm", "Debugger.getWasmBytecode": "application/wasm",
	}
	return cmp.Or(known[command], "application/octet-stream")
}
