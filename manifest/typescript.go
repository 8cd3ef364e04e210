package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Bounds of a declaration: optional parameters and values of an enum that it shows, levels of references that it
// resolves, and bytes of one type. A program gives parameters, and uses few parts of a result, so the type of the
// result is shorter: where it is longer than tsResultBytes, it leaves out what is in optional objects.
const (
	tsOptional    = 8
	tsEnum        = 12
	tsRefs        = 2
	tsBytes       = 1200
	tsResultEnum  = 4
	tsResultBytes = 200
)

// TypeScript returns the declaration of a tool in one line, as programs call it, with its default values:
//
//	tools.text.hash(p: {text: string, algorithm?: "md5"|"sha256" = "sha256"}): {hex: string}  // Hash a text
//
// It shows required parameters and at most eight optional ones, and marks what is destructive. Any schema is read in
// bounded time.
func TypeScript(name string, t *Tool) string {
	line := tsDeclaration(name, t) + "  // "
	if t.Effect == EffectDestructive {
		line += "DESTRUCTIVE: "
	}
	return line + CleanLine(t.Docs.Brief)
}

// TypeScript returns the documentation in the spelling of [TypeScript], with a comment before it. t is the tool that is
// documented.
func (d *ToolDocs) TypeScript(t *Tool) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(" * " + strings.ReplaceAll(fmt.Sprintf(format, args...), "*/", "* /") + "\n")
	}
	b.WriteString("/**\n")
	if t.Effect == EffectDestructive {
		line("DESTRUCTIVE")
	}
	for text := range strings.Lines(firstOf(d.Description, d.Brief)) {
		line("%s", strings.TrimSuffix(text, "\n"))
	}
	for _, p := range d.Parameters {
		if p.Description != "" {
			line("@param p.%s %s", p.Name, p.Description)
		}
	}
	if len(d.MoreParameters) > 0 {
		line("More: %s", strings.Join(d.MoreParameters, ", "))
	}
	for _, p := range d.Returns {
		if p.Description != "" {
			line("@returns %s: %s", p.Name, p.Description)
		}
	}
	for _, v := range d.Get {
		line("Get %s", v.Text())
	}
	if len(d.Needs) > 0 {
		line("Call first: %s", strings.Join(d.Needs, ", "))
	}
	for _, e := range d.ExitCodes {
		line("@throws %s: %s", e.Name, e.Meaning)
	}
	if d.WhenNot != "" {
		line("Not when %s", d.WhenNot)
	}
	for _, e := range d.Examples {
		line("@example await %s(%s)", ProgramName(d.Name), EscapeJSON(CompactJSON(e.Params)))
	}
	return b.String() + " */\n" + tsDeclaration(d.Name, t)
}

func tsDeclaration(name string, t *Tool) string {
	params := tsParams(t.Params)
	if params != "" {
		params = "p: " + params
	}
	return ProgramName(name) + "(" + params + "): " + tsResult(t.Returns)
}

func tsResult(schema json.RawMessage) string {
	if len(schema) == 0 {
		return "unknown"
	}
	root := readNode(schema)
	p := tsPrinter{root: root, left: tsBytes, enum: tsResultEnum}
	whole := p
	text := whole.typeOf(root, tsRefs)
	if len(text) <= tsResultBytes {
		return text
	}
	p.isBrief = true
	return p.typeOf(root, tsRefs)
}

var tsIdentifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`) })

// ProgramName returns the name by which programs call a tool: tools.text.hash.
func ProgramName(qualified string) string {
	name := "tools"
	for part := range strings.SplitSeq(qualified, ".") {
		if tsIdentifier().MatchString(part) {
			name += "." + part
		} else {
			name += "[" + tsQuote(part) + "]"
		}
	}
	return name
}

func tsQuote(s string) string {
	quoted, _ := Marshal(CleanLine(s))
	return string(quoted)
}

// tsParams returns the type of parameters, "" if there are none.
func tsParams(schema json.RawMessage) string {
	root := readNode(schema)
	target, _ := root.resolve(root)
	names := target.at("properties").names()
	if len(names) == 0 {
		return ""
	}
	p := &tsPrinter{root: root, left: tsBytes, enum: tsEnum}
	return p.object(target, tsRefs, tsOptional)
}

// tsPrinter prints types until it has printed enough.
type tsPrinter struct {
	root *node
	left int // bytes
	enum int // values that are shown of an enum

	isBrief bool // optional objects are printed as `object`
}

func (p *tsPrinter) print(text string) string {
	p.left -= len(text)
	return text
}

// typeOf returns the type of a schema, with references resolved so many levels deep. Deeper ones are names.
func (p *tsPrinter) typeOf(n *node, refs int) string {
	if p.left <= 0 {
		return "…"
	}
	target, ref := n.resolve(p.root)
	if ref != "" && target != n {
		if refs == 0 && target.has("properties") {
			return p.print("object")
		}
		refs = max(refs-1, 0)
	}
	if values := target.enum(); len(values) > 0 {
		return p.print(tsValues(values, p.enum))
	}
	if target.text("contentEncoding") == "base64" {
		return p.print("string /*base64*/")
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if branches := target.list(key); len(branches) > 0 {
			var types []string
			for _, branch := range branches[:min(len(branches), tsEnum)] {
				if t := p.typeOf(readNode(branch), refs); !slices.Contains(types, t) {
					types = append(types, t)
				}
			}
			return strings.Join(types, "|")
		}
	}
	var types []string
	for name := range strings.SplitSeq(target.typeName(p.root), "|") {
		switch {
		case name == "integer" || name == "number":
			name = p.print("number")
		case name == "object":
			name = p.object(target, refs, maxFields)
		case name == "array":
			name = p.array(target, refs)
		case name == "string" || name == "boolean" || name == "null":
			p.print(name)
		default:
			name = p.print("unknown")
		}
		if !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	return strings.Join(types, "|")
}

func (p *tsPrinter) array(n *node, refs int) string {
	if !n.has("items") {
		return p.print("unknown[]")
	}
	item := p.typeOf(n.at("items"), refs)
	if strings.ContainsAny(item, "| ") && !strings.HasPrefix(item, "{") {
		item = "(" + item + ")"
	}
	return item + "[]"
}

// object returns the properties of an object, required ones first, and at most so many optional ones.
func (p *tsPrinter) object(n *node, refs, optional int) string {
	properties := n.at("properties")
	if len(properties.names()) == 0 {
		values := n.at("additionalProperties")
		if values != nil && strings.HasPrefix(strings.TrimSpace(string(values.raw)), "{") {
			return "Record<string, " + p.typeOf(values, refs) + ">"
		}
		return p.print("object")
	}
	required := n.strings("required")
	var fields []string
	for _, name := range properties.names() {
		if slices.Contains(required, name) {
			fields = append(fields, p.field(name, ": ", properties.at(name), refs))
		}
	}
	shown := 0
	for _, name := range properties.names() {
		if slices.Contains(required, name) {
			continue
		}
		if shown++; shown > optional || p.left <= 0 {
			fields = append(fields, "…")
			break
		}
		fields = append(fields, p.field(name, "?: ", properties.at(name), refs))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (p *tsPrinter) field(name, mark string, n *node, refs int) string {
	if !tsIdentifier().MatchString(name) {
		name = tsQuote(name)
	}
	text := p.print(name + mark)
	target, _ := n.resolve(p.root)
	if p.isBrief && mark == "?: " && target.at("properties") != nil {
		return text + p.print("object")
	}
	text += p.typeOf(n, refs)
	for _, from := range []*node{n, target} {
		value := string(from.value("default"))
		if value != "" && len(value) <= 40 && value != "{}" && value != "[]" {
			return text + p.print(" = "+value)
		}
	}
	return text
}

func tsValues(values []json.RawMessage, most int) string {
	var words []string
	for _, v := range values[:min(len(values), most)] {
		words = append(words, string(v))
	}
	if len(values) > most {
		words = append(words, "…")
	}
	return strings.Join(words, "|")
}
