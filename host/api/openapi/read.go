package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Bounds of a document. The largest public ones have 13 MB and 600,000 values.
const (
	MaxDocument = 32 << 20 // bytes
	maxValues   = 4 << 20
	maxDepth    = 200
)

type object = map[string]any

func refuse(format string, args ...any) error { return host.Errorf(host.InvalidArgs, format, args...) }

// document is a decoded document. err is the first fault that makes all of it useless.
type document struct {
	root      object
	isSwagger bool
	err       error
}

// read decodes a document in JSON or YAML, and checks its version.
func read(data []byte) (*document, error) {
	if len(data) > MaxDocument {
		return nil, refuse("the document has %d bytes; at most %d are accepted", len(data), MaxDocument)
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	var root any
	var err error
	if bytes.HasPrefix(data, []byte("{")) {
		root, err = jsontext.Decode(data, jsontext.Limits{Bytes: MaxDocument, Values: maxValues, Depth: maxDepth})
	} else {
		root, err = readYAML(data)
	}
	if err != nil {
		return nil, refuse("the document cannot be read: %s", manifest.CleanLine(err.Error()))
	}
	d := &document{root: members(root)}
	version := scalar(d.root["openapi"])
	d.isSwagger = scalar(d.root["swagger"]) == "2.0" || scalar(d.root["swagger"]) == "2"
	if _, hasVersion := d.root["swagger"]; version == "" && !hasVersion {
		return nil, refuse("the document is %s; expected OpenAPI 3.0 or 3.1, or swagger: \"2.0\": convert it to one of "+
			"them", kindOf(d.root))
	}
	if !d.isSwagger && !strings.HasPrefix(version, "3.0") && !strings.HasPrefix(version, "3.1") && version != "3" {
		return nil, refuse("the document says openapi: %q and swagger: %q; expected OpenAPI 3.0 or 3.1, or swagger: \"2.0\"",
			manifest.CleanValue(version), manifest.CleanValue(scalar(d.root["swagger"])))
	}
	return d, nil
}

// kindOf says what a document is that has neither openapi nor swagger.
func kindOf(root object) string {
	for _, k := range []struct{ key, inner, is string }{
		{"asyncapi", "", "AsyncAPI"}, {"info", "_postman_id", "a Postman collection"}, {"item", "", "a Postman collection"},
		{"log", "entries", "an HTTP archive (HAR)"}, {"__schema", "", "a GraphQL schema"},
		{"data", "__schema", "a GraphQL schema"},
		{"swaggerVersion", "", "Swagger 1"}, {"resources", "", "an Insomnia export or a Google discovery document"},
		{"mcpServers", "", "a configuration of MCP servers"}, {"tools", "", "a list of tools"},
	} {
		value, has := root[k.key]
		if _, hasInner := members(value)[k.inner]; has && (k.inner == "" || hasInner) {
			return k.is
		}
	}
	return "of no known kind, and has neither openapi nor swagger"
}

// yamlReader makes values of the nodes of a YAML document. An anchor is read once, and all its aliases share the
// value. Each alias counts in full, because a manifest has the value once for each.
type yamlReader struct {
	made   map[*yaml.Node]any
	sizes  map[*yaml.Node]int // number of values in each of made
	open   map[*yaml.Node]bool
	values int
}

func readYAML(data []byte) (any, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, err
	}
	if node.Kind != yaml.DocumentNode || len(node.Content) != 1 {
		return nil, errors.New("it is empty")
	}
	r := &yamlReader{map[*yaml.Node]any{}, map[*yaml.Node]int{}, map[*yaml.Node]bool{}, 0}
	return r.value(node.Content[0], 0)
}

func (r *yamlReader) value(n *yaml.Node, depth int) (any, error) {
	if r.values++; depth > maxDepth || r.values > maxValues {
		return nil, fmt.Errorf("line %d exceeds a limit: %d levels, or %d values with those that aliases stand for", n.Line,
			maxDepth, maxValues)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.value(n.Alias, depth+1)
	case yaml.ScalarNode:
		return yamlScalar(n), nil
	}
	if v, ok := r.made[n]; ok {
		r.values += r.sizes[n]
		return v, nil
	}
	if r.open[n] {
		return nil, fmt.Errorf("the anchor in line %d contains itself", n.Line)
	}
	r.open[n] = true
	before := r.values
	v, err := r.container(n, depth)
	if n.Anchor != "" {
		r.made[n], r.sizes[n] = v, r.values-before
	}
	delete(r.open, n)
	return v, err
}

func (r *yamlReader) container(n *yaml.Node, depth int) (any, error) {
	if n.Kind == yaml.SequenceNode {
		all := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			v, err := r.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	}
	all, own := make(object, len(n.Content)/2), make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		v, err := r.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if key.Tag == "!!merge" {
			for _, from := range append(list(v), v) {
				for name, value := range members(from) {
					if _, has := all[name]; !has {
						all[name] = value
					}
				}
			}
			continue
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d has a key that is not a text", key.Line)
		}
		if own[key.Value] {
			return nil, fmt.Errorf("line %d has the key %q a second time", key.Line, key.Value)
		}
		own[key.Value] = true
		all[key.Value] = v
	}
	return all, nil
}

func yamlScalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		var number int64
		if jsontext.ValidNumber(n.Value) {
			return json.Number(n.Value)
		} else if n.Decode(&number) == nil {
			return json.Number(strconv.FormatInt(number, 10))
		}
	}
	return n.Value
}

func members(v any) object { m, _ := v.(object); return m }
func list(v any) []any     { l, _ := v.([]any); return l }
func text(v any) string    { s, _ := v.(string); return s }
func isTrue(v any) bool    { b, _ := v.(bool); return b }

// scalar returns a text, or a number as it is written.
func scalar(v any) string {
	if n, ok := v.(json.Number); ok {
		return n.String()
	}
	return text(v)
}

// target returns what a reference leads to, nil if nothing is there.
func (d *document) target(ref string) any {
	if !strings.HasPrefix(ref, "#") {
		if d.err == nil {
			d.err = refuse("the reference %q leads to another file; bundle the document first, for instance with "+
				"\"redocly bundle api.yaml -o bundled.yaml\"", manifest.CleanValue(ref))
		}
		return nil
	}
	pointer, err := url.PathUnescape(ref[1:])
	if err != nil {
		pointer = ref[1:]
	}
	tokens, ok := jsontext.SplitPointer(pointer)
	if !ok {
		return nil
	}
	v, _ := jsontext.Lookup(d.root, tokens)
	return v
}

// resolve follows references. It returns nil where they lead nowhere or to themselves.
func (d *document) resolve(v any) object {
	for range 20 {
		m := members(v)
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		v = d.target(ref)
	}
	return nil
}

// sorted returns a list without duplicates, in order.
func sorted(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}
