package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// ConvertParams is either YAML or JSON.
type ConvertParams struct {
	// YAML text to read, e.g. "a: 1".
	YAML *string `json:"yaml,omitempty" aliases:"text"`
	// JSON to write as YAML, e.g. {"a":1}.
	JSON json.RawMessage `json:"json,omitempty"`
	// Read all YAML documents, as an array.
	All bool `json:"all,omitempty"`
}

// ConvertResult is the input in the other format.
type ConvertResult struct {
	// The YAML as JSON.
	JSON json.RawMessage `json:"json,omitempty"`
	// The JSON as YAML.
	YAML string `json:"yaml,omitempty"`
}

// Convert turns YAML into JSON or JSON into YAML; members keep their order.
func Convert(_ *sdk.Call, p ConvertParams) (ConvertResult, error) {
	switch {
	case p.YAML != nil && p.JSON == nil:
		raw, err := fromYAML(*p.YAML, p.All)
		return ConvertResult{JSON: raw}, err
	case p.YAML == nil && p.JSON != nil:
		text, err := toYAML(p.JSON)
		return ConvertResult{YAML: text}, err
	}
	provided := "neither"
	if p.YAML != nil {
		provided = "both"
	}
	return ConvertResult{}, sdk.Invalid("", "either yaml or json", provided, `{"yaml":"a: 1"}`)
}

func fromYAML(text string, all bool) (json.RawMessage, error) {
	w := yamlWriter{}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	n := 0
	for ; ; n++ {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, sdk.Exit("malformed", err.Error(), nil)
		}
		if n == 1 && !all {
			return nil, sdk.Invalid("/all", "true, as the text holds several documents", "false", "true")
		}
		if n > 0 {
			w.out.WriteByte(',')
		}
		if err := w.write(&document); err != nil {
			return nil, err
		}
	}
	if all {
		return json.RawMessage("[" + w.out.String() + "]"), nil
	}
	if n == 0 {
		return json.RawMessage("null"), nil
	}
	return w.out.Bytes(), nil
}

// yamlWriter writes YAML nodes as JSON. It stops at maxOutput, which also bounds
// aliases of aliases.
type yamlWriter struct {
	out     bytes.Buffer
	aliases []*yaml.Node // being written; one that contains itself would never end
}

func (w *yamlWriter) write(n *yaml.Node) error {
	if w.out.Len() > maxOutput {
		return tooLarge()
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return w.write(n.Content[0])
	case yaml.AliasNode:
		if slices.Contains(w.aliases, n.Alias) {
			return malformed(n, "the alias *"+n.Value+" is inside the node that it refers to")
		}
		w.aliases = append(w.aliases, n.Alias)
		err := w.write(n.Alias)
		w.aliases = w.aliases[:len(w.aliases)-1]
		return err
	case yaml.SequenceNode:
		return w.writeAll('[', n.Content, ']', nil)
	case yaml.MappingNode:
		names, values, err := membersOf(n, 0)
		if err != nil {
			return err
		}
		return w.writeAll('{', values, '}', names)
	case yaml.ScalarNode:
		return w.writeScalar(n)
	}
	w.out.WriteString("null")
	return nil
}

// writeAll writes the items of an array, or the members of an object, which have names.
func (w *yamlWriter) writeAll(open byte, values []*yaml.Node, end byte, names []string) error {
	w.out.WriteByte(open)
	for i, value := range values {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if names != nil {
			w.writeString(names[i])
			w.out.WriteByte(':')
		}
		if err := w.write(value); err != nil {
			return err
		}
	}
	w.out.WriteByte(end)
	return nil
}

func (w *yamlWriter) writeScalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		w.out.WriteString("null")
	case "!!bool", "!!int", "!!float":
		if json.Valid([]byte(n.Value)) { // keeps the spelling, so that large numbers stay exact
			w.out.WriteString(n.Value)
			return nil
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return malformed(n, err.Error())
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return malformed(n, n.Value+" has no JSON representation")
		}
		w.out.Write(raw)
	default: // dates, binaries and custom tags keep their spelling
		w.writeString(n.Value)
	}
	return nil
}

func (w *yamlWriter) writeString(s string) {
	e := json.NewEncoder(&w.out)
	e.SetEscapeHTML(false)
	e.Encode(s) // encoding a string cannot fail
	w.out.Truncate(w.out.Len() - 1)
}

// membersOf returns a mapping's own members, followed by the missing ones that "<<" merges in.
func membersOf(n *yaml.Node, depth int) (names []string, values []*yaml.Node, err error) {
	if depth > 100 {
		return nil, nil, malformed(n, "merge keys are nested too deeply")
	}
	var merged []*yaml.Node
	has := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		if key.ShortTag() == "!!merge" {
			if value.Kind == yaml.SequenceNode {
				merged = append(merged, value.Content...)
			} else {
				merged = append(merged, value)
			}
			continue
		}
		name := resolve(key)
		if name.Kind != yaml.ScalarNode {
			return nil, nil, malformed(key, "a key must be a scalar, not a list or a mapping")
		}
		if has[name.Value] {
			return nil, nil, malformed(key, fmt.Sprintf("duplicate key %q", name.Value))
		}
		has[name.Value] = true
		names, values = append(names, name.Value), append(values, n.Content[i+1])
	}
	for _, source := range merged {
		source = resolve(source)
		if source.Kind != yaml.MappingNode {
			return nil, nil, malformed(source, "<< takes a mapping or a list of mappings")
		}
		more, theirs, err := membersOf(source, depth+1)
		if err != nil {
			return nil, nil, err
		}
		for i, name := range more {
			if !has[name] {
				has[name] = true
				names, values = append(names, name), append(values, theirs[i])
			}
		}
	}
	return names, values, nil
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func malformed(n *yaml.Node, message string) error {
	return sdk.Exit("malformed", fmt.Sprintf("line %d: %s", n.Line, message),
		map[string]any{"line": n.Line, "column": n.Column})
}

func toYAML(raw json.RawMessage) (string, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	budget := maxNodes
	n, err := nodeOf(d, &budget)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(n), e.Close()); err != nil {
		return "", err
	}
	if out.Len() > maxOutput {
		return "", tooLarge()
	}
	return out.String(), nil
}

// maxNodes limits the keys and values of YAML output, which take several hundred bytes of memory each.
const maxNodes = 200_000

// nodeOf reads one JSON value as a YAML node and keeps the order of members. Each node counts against budget.
func nodeOf(d *json.Decoder, budget *int) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if *budget--; *budget < 0 {
		return nil, sdk.Exit("too_large", fmt.Sprintf("YAML output is limited to %d keys and values", maxNodes), nil)
	}
	switch t := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		if t == '{' {
			n = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		for d.More() {
			item, err := nodeOf(d, budget) // of an object: key and value in turn
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		_, err := d.Token()
		return n, err
	case string:
		n := &yaml.Node{}
		n.SetString(t)
		return n, nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(t.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}
