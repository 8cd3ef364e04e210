package suggest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/reference"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Composite is a batch of calls that many sessions make one by one.
type Composite struct {
	ID       string   `json:"id"`
	Tools    []string `json:"tools"`
	Why      string   `json:"why"`
	Cases    int      `json:"cases"`
	Sessions int      `json:"sessions"`
	Calls    []string `json:"calls"` // ids of the first calls of some of them
	// Parameters are what a caller gives, Lines the calls, as `parley batch` reads them: "${param.NAME}" is a parameter,
	// "${2.id}" a value of the result of call 2.
	Parameters []Parameter       `json:"parameters"`
	Lines      []json.RawMessage `json:"lines"`
	// Test has values of the parameters with which the batch should succeed, from the author's examples; nil if the
	// author has none for one of them.
	Test json.RawMessage `json:"test,omitempty"`
}

// Parameter is a parameter of a composite.
type Parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
}

// Composites returns a batch for each sequence of a report whose tools are all in the catalog.
func Composites(r *stats.Report, catalog *host.Catalog) []Composite {
	list := []Composite{}
	for i := range r.Sequences {
		c := composer{sequence: &r.Sequences[i], catalog: catalog, test: map[string]json.RawMessage{},
			made: Composite{Parameters: []Parameter{}}}
		if c.compose() {
			list = append(list, c.made)
		}
	}
	return list
}

// maxMeaning is the length of a description in bytes.
const maxMeaning = 160

type composer struct {
	sequence *stats.Sequence
	catalog  *host.Catalog
	made     Composite
	test     map[string]json.RawMessage // those values of parameters that the author gives
}

func (c *composer) compose() bool {
	s := c.sequence
	for i, name := range s.Tools {
		at, ok := stats.Find(c.catalog, name)
		if !ok {
			return false
		}
		raw, _ := manifest.Marshal(struct { // the values are JSON
			ID     int            `json:"id"`
			Tool   string         `json:"tool"`
			Params map[string]any `json:"params,omitempty"`
		}{i + 1, at.Name(), c.params(at.Tool, s.Arguments[i], i)})
		c.made.Lines = append(c.made.Lines, raw)
	}
	if len(c.test) == len(c.made.Parameters) {
		c.made.Test, _ = manifest.Marshal(c.test)
	}
	sum := sha256.Sum256([]byte(strings.Join(s.Tools, "\n")))
	c.made.ID, c.made.Tools = "s"+hex.EncodeToString(sum[:4]), s.Tools
	c.made.Cases, c.made.Sessions, c.made.Calls = s.N, s.Sessions, s.Calls
	c.made.Why = fmt.Sprintf("%d sessions called %s in this order, %d times", s.Sessions, strings.Join(s.Tools, ", "), s.N)
	return true
}

// params returns the parameters of a call: those that most sequences gave it.
func (c *composer) params(t *manifest.Tool, arguments []stats.Argument, call int) map[string]any {
	params := map[string]any{}
	known := manifest.Params(t.Params)
	for _, a := range arguments {
		p := param(known, a.Name)
		if p == nil || 2*a.N <= c.sequence.N {
			continue
		}
		fixed := constant(p, a.Shape)
		switch {
		case a.From > 0 && a.From <= call:
			params[a.Name] = fmt.Sprintf("${%d%s}", a.From, strings.ReplaceAll(jsontext.UnescapeToken(a.Result), "/", "."))
		case fixed != nil:
			params[a.Name] = fixed
		default:
			params[a.Name] = "${" + reference.Params + "." + c.parameter(t, p) + "}"
		}
	}
	return params
}

// constant returns the value that a parameter always had, if that is a boolean, a number or in the schema's own words:
// other values are the callers'.
func constant(p *manifest.Param, shape json.RawMessage) json.RawMessage {
	var text string
	isText := json.Unmarshal(shape, &text) == nil
	word, isMember := strings.CutPrefix(text, "enum(")
	if isMember {
		text = strings.TrimSuffix(word, ")")
	}
	value := json.RawMessage(jsontext.Marshal(text))
	switch {
	case len(shape) == 0:
		return nil
	case isText && slices.ContainsFunc(p.Enum, func(v json.RawMessage) bool { return string(v) == string(value) }):
		return value
	case shape[0] == 't' || shape[0] == 'f' || shape[0] == '-' || shape[0] >= '0' && shape[0] <= '9':
		return shape
	}
	return nil
}

// parameter adds a parameter of the composite, and returns its name.
func (c *composer) parameter(t *manifest.Tool, p *manifest.Param) string {
	name := p.Name
	for n := 2; slices.ContainsFunc(c.made.Parameters, func(o Parameter) bool { return o.Name == name }); n++ {
		name = fmt.Sprintf("%s%d", p.Name, n)
	}
	c.made.Parameters = append(c.made.Parameters,
		Parameter{name, p.Type, manifest.Clip(manifest.CleanLine(p.Description), maxMeaning)})
	if value := exampleValue(t, p.Name); value != nil {
		c.test[name] = value
	}
	return name
}
