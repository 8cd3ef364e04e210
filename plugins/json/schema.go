package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// SchemaParams are samples and what to make of them.
type SchemaParams struct {
	// JSON values, e.g. [{"id":1}].
	Samples []json.RawMessage `json:"samples" minItems:"1" maxItems:"1000" aliases:"sample,examples,data"`
	// What to write, e.g. "go".
	Format string `json:"format,omitempty" enum:"schema,go,typescript" default:"schema" aliases:"language,lang,to"`
	// Outermost type, e.g. "Order".
	Name string `json:"name,omitempty" pattern:"^[A-Za-z][A-Za-z0-9_-]*$" maxLength:"60" default:"Root"`
}

// SchemaResult is a complete file and what there is to know of it.
type SchemaResult struct {
	// The JSON Schema (2020-12), for format schema.
	Schema json.RawMessage `json:"schema,omitempty"`
	// The source, for format go and typescript.
	Code string `json:"code,omitempty"`
	// Suggested file name.
	Path string `json:"path"`
	// What it describes, and what it was inferred from.
	Description string `json:"description"`
	// Packages that the source imports, or the dialect of the schema.
	Dependencies []string `json:"dependencies"`
}

const dialect = "https://json-schema.org/draft/2020-12/schema"

// Schema infers a JSON Schema, Go types or TypeScript types from samples.
func Schema(c *sdk.Call, p SchemaParams) (SchemaResult, error) {
	root, err := shapeOf(p.Samples)
	if err != nil {
		return SchemaResult{}, err
	}
	if p.Name == "" {
		p.Name = "Root"
	}
	types := typeWriter{names: map[string]bool{}, imports: []string{}, ts: p.Format == "typescript"}
	name := types.reserve(p.Name)
	r := SchemaResult{Dependencies: []string{dialect}}
	kind, end := "JSON Schema", ".schema.json"
	switch p.Format {
	case "go", "typescript":
		r.Code = types.write(root, name)
		if kind, end = "Go types", ".go"; types.ts {
			kind, end = "TypeScript types", ".ts"
		}
		r.Dependencies = types.imports
	default:
		s := root.schema()
		s.Content = slices.Concat([]*yaml.Node{text("$schema"), text(dialect), text("title"), text(name)}, s.Content)
		w := yamlWriter{}
		if err := w.write(s); err != nil {
			return SchemaResult{}, err
		}
		r.Schema = w.out.Bytes()
	}
	if len(r.Code) > maxOutput {
		return SchemaResult{}, tooLarge()
	}
	r.Path = strings.ToLower(strings.Join(wordsOf(name), "_")) + end
	r.Description = fmt.Sprintf("%s of %s, inferred from %d sample(s). Required is what each object of its kind has.",
		kind, name, len(p.Samples))
	if open := root.unknown(""); len(open) > 0 {
		c.Warn("the samples do not show the type of %s: it is empty or null in each", strings.Join(open, ", "))
	}
	return r, nil
}

// shape is what the values at one place have in common.
type shape struct {
	seen                 int
	null, boolean, array bool
	integer, float, text bool
	large                bool // an integer that does not fit in 64 bits
	formats              []string
	objects              []*yaml.Node
	names                []string // of members, in the order of their appearance
	members              map[string]*shape
	items                *shape
}

func shapeOf(samples []json.RawMessage) (*shape, error) {
	root, budget := &shape{}, maxNodes
	for _, sample := range samples {
		d := json.NewDecoder(bytes.NewReader(sample))
		d.UseNumber()
		n, err := nodeOf(d, &budget)
		if err != nil {
			return nil, err
		}
		root.add(n)
	}
	return root, nil
}

func (s *shape) add(n *yaml.Node) {
	s.seen++
	switch n.ShortTag() {
	case "!!map":
		s.objects = append(s.objects, n)
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if s.members == nil {
				s.members = map[string]*shape{}
			}
			if s.members[name] == nil {
				s.members[name] = &shape{}
				s.names = append(s.names, name)
			}
			s.members[name].add(n.Content[i+1])
		}
	case "!!seq":
		if s.array = true; s.items == nil {
			s.items = &shape{}
		}
		for _, item := range n.Content {
			s.items.add(item)
		}
	case "!!int":
		s.integer = true
		_, err := strconv.ParseInt(n.Value, 10, 64)
		s.large = s.large || err != nil
	case "!!float":
		s.float = true
	case "!!bool":
		s.boolean = true
	case "!!null":
		s.null = true
	default:
		var kept []string
		for _, f := range formats {
			if (!s.text || slices.Contains(s.formats, f.name)) && f.matches(n.Value) &&
				(f.name != "uri" || strings.Contains(n.Value, "://")) { // "a:b" is hardly meant as a URI
				kept = append(kept, f.name)
			}
		}
		s.text, s.formats = true, kept
	}
}

// format is a format of texts in JSON Schema. An earlier one is more specific.
type format struct {
	name    string
	matches func(string) bool
}

var formats = []format{
	{"date-time", layout(time.RFC3339)}, {"date", layout(time.DateOnly)}, {"time", layout("15:04:05Z07:00")},
	{"uuid", pattern(`(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)},
	{"email", pattern(`^[^@\s]+@[^@\s.]+(\.[^@\s.]+)*$`)},
	{"ipv4", pattern(`^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.|$)){4}$`)},
	{"uri", pattern(`^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|\\^` + "`" + `]+$`)},
}

func layout(layout string) func(string) bool {
	return func(s string) bool {
		_, err := time.Parse(layout, s)
		return err == nil
	}
}

func pattern(expression string) func(string) bool {
	var compiled *regexp.Regexp // on first use: a call that needs none starts sooner
	return func(s string) bool {
		if compiled == nil {
			compiled = regexp.MustCompile(expression)
		}
		return compiled.MatchString(s)
	}
}

// format is the format that every text has, "" for none.
func (s *shape) format() string { return strings.Join(s.formats[:min(1, len(s.formats))], "") }

// types returns the types of JSON Schema that the values have.
func (s *shape) types() (types []string) {
	for _, t := range []struct {
		name string
		has  bool
	}{{"object", s.objects != nil}, {"array", s.array}, {"string", s.text}, {"number", s.float},
		{"integer", s.integer && !s.float}, {"boolean", s.boolean}, {"null", s.null}} {
		if t.has {
			types = append(types, t.name)
		}
	}
	return types
}

var isID = pattern(`^(\d[\w.:-]*|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)

// values is the shape of all members of objects whose names are data, such as dates and numbers; nil for other objects.
func (s *shape) values() *shape {
	if len(s.names) < 2 || slices.ContainsFunc(s.names, func(name string) bool { return !isID(name) }) {
		return nil
	}
	values := &shape{}
	for _, object := range s.objects {
		for i := 1; i < len(object.Content); i += 2 {
			values.add(object.Content[i])
		}
	}
	return values
}

// required reports whether each object has the member.
func (s *shape) required(name string) bool { return s.members[name].seen >= len(s.objects) }

// unknown returns the first places of which no sample shows the type.
func (s *shape) unknown(path string) (paths []string) {
	if types := s.types(); len(types) == 0 || len(types) == 1 && s.null {
		return []string{strconv.Quote(path)}
	}
	for _, name := range s.names {
		if len(paths) < 5 {
			paths = append(paths, s.members[name].unknown(path+"/"+escape(name))...)
		}
	}
	if s.array && len(paths) < 5 {
		paths = append(paths, s.items.unknown(path+"/0")...)
	}
	return paths
}

func text(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// node is a list of nodes, or an object, whose names and values take turns.
func node(kind yaml.Kind, content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: kind, Content: content}
}

func texts(list []string) *yaml.Node {
	n := node(yaml.SequenceNode)
	for _, s := range list {
		n.Content = append(n.Content, text(s))
	}
	return n
}

// schema returns the JSON Schema of a shape, with members in the order of the samples.
func (s *shape) schema() *yaml.Node {
	schema := node(yaml.MappingNode)
	set := func(name string, value *yaml.Node) { schema.Content = append(schema.Content, text(name), value) }
	switch types := s.types(); len(types) {
	case 0:
	case 1:
		set("type", text(types[0]))
	default:
		set("type", texts(types))
	}
	if f := s.format(); f != "" {
		set("format", text(f))
	}
	if values := s.values(); values != nil {
		set("additionalProperties", values.schema())
	} else if len(s.names) > 0 {
		properties, required := node(yaml.MappingNode), []string{}
		for _, name := range s.names {
			properties.Content = append(properties.Content, text(name), s.members[name].schema())
			if s.required(name) {
				required = append(required, name)
			}
		}
		set("properties", properties)
		if len(required) > 0 {
			set("required", texts(required))
		}
	}
	if s.array && s.items.seen > 0 {
		set("items", s.items.schema())
	}
	return schema
}
