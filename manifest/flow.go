package manifest

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// Flow is what comes before a call of a tool.
type Flow struct {
	Needs  []FlowCall // calls that must have been made, in their order
	Values []Value    // the parameters whose values other tools return
}

// Returns reports whether another tool returns the value of a parameter, named as [Value.Parameter] does.
func (f *Flow) Returns(parameter string) bool {
	return slices.ContainsFunc(f.Values, func(v Value) bool { return v.Parameter() == parameter })
}

// FlowCall is a call that comes before another one.
type FlowCall struct {
	Tool   string          `json:"tool"` // qualified
	Params json.RawMessage `json:"params,omitempty"`
	Filter string          `json:"jq,omitempty"` // jq expression that filters the result; "" for none
	// Until is the event that the call causes, and that must arrive before the next call; "" for none.
	Until string `json:"until,omitempty"`
	// Values replace those of the tool's own flow, by pointer.
	Values []Value `json:"-"`
}

// Value is a parameter, or a property of one, whose value another tool returns.
type Value struct {
	Pointer  string   // JSON pointer into the parameters
	Required bool     // a call without it fails, unless one of Instead is given
	Instead  []string // names of parameters next to it
	From     []Source // the best first
	Ends     string   // when the value becomes stale; "" if unknown
}

// Source is a call that returns a value.
type Source struct {
	FlowCall
	Result string // JSON pointer to the value in the result
	Before []FlowCall
}

// Parameter returns the pointer as documentation shows it: "/location/scriptId" is location.scriptId.
func (v *Value) Parameter() string {
	names := strings.Split(strings.TrimPrefix(v.Pointer, "/"), "/")
	return strings.Join(lists.Filter(names, func(name string) bool { return name != "0" }), ".")
}

// FlowOf returns what a manifest says about what comes before a tool: its needs, and the x-from of its parameters.
func FlowOf(t *Tool) *Flow {
	f := &Flow{Needs: lists.Map(t.Needs, func(need string) FlowCall { return FlowCall{Tool: need} })}
	if strings.Contains(string(t.Params), `"x-from"`) {
		f.addValues("", readNode(t.Params), true)
	}
	return f
}

// maxFlowDepth bounds how deep in the parameters values with sources are looked for.
const maxFlowDepth = 8

// addValues adds the properties of an object that have sources, including nested ones. Of an array it takes the first
// item.
func (f *Flow) addValues(at string, object *node, required bool) {
	if strings.Count(at, "/") > maxFlowDepth {
		return
	}
	names := object.strings("required")
	for _, name := range object.at("properties").names() {
		pointer, required := at+"/"+jsontext.EscapeToken(name), required && slices.Contains(names, name)
		property := object.at("properties").at(name)
		f.addValue(pointer, property, required)
		for items := property.at("items"); items != nil; items = items.at("items") {
			property, pointer = items, pointer+"/0"
			f.addValue(pointer, property, required)
		}
		f.addValues(pointer, property, required)
	}
}

func (f *Flow) addValue(pointer string, property *node, required bool) {
	v := Value{Pointer: pointer, Required: required}
	for _, from := range property.strings("x-from") {
		if tool, result, ok := SplitSource(from); ok {
			v.From = append(v.From, Source{FlowCall: FlowCall{Tool: tool}, Result: result})
		}
	}
	if len(v.From) > 0 {
		f.Values = append(f.Values, v)
	}
}

// SplitSource splits an item of x-from, such as "cdp.DOM.querySelector/nodeId", into the qualified name of a tool and
// the JSON pointer to the value in its result. ok is false if from does not have this form.
func SplitSource(from string) (tool, result string, ok bool) {
	tool, result, ok = strings.Cut(from, "/")
	return tool, "/" + result, ok && result != "" && strings.Contains(tool, ".")
}

// ValueDoc is where the value of a parameter comes from, as documentation shows it.
type ValueDoc struct {
	Parameter string   `json:"parameter"`
	From      []string `json:"from"`           // tools, the best first
	Ends      string   `json:"ends,omitempty"` // when the value becomes stale; tier 3
}

// Text renders the source of a value on one line.
func (v *ValueDoc) Text() string {
	text := v.Parameter + ": " + strings.Join(v.From, ", ")
	if v.Ends != "" {
		text += "; stale " + v.Ends
	}
	return text
}

// SetFlow documents what comes before the tool: at tier 2 the values that a call requires, at tier 3 all values.
func (d *ToolDocs) SetFlow(f *Flow) {
	d.Get, d.Needs = nil, nil
	for _, c := range f.Needs {
		d.Needs = lists.Add(d.Needs, CleanLine(c.Tool))
	}
	for _, v := range f.Values {
		if d.Tier < Tier3 && !v.Required {
			continue
		}
		doc := ValueDoc{Parameter: CleanLine(v.Parameter())}
		if d.Tier >= Tier3 {
			doc.Ends = CleanLine(v.Ends)
		}
		for _, s := range v.From {
			doc.From = lists.Add(doc.From, CleanLine(s.Tool))
		}
		if len(doc.From) > 0 {
			d.Get = append(d.Get, doc)
		}
	}
}

// Text renders the call on one line.
func (b *BatchLine) Text() string {
	text := b.Tool
	for _, part := range []json.RawMessage{b.Params, b.Options} {
		if len(part) > 0 {
			text += " " + string(EscapeJSON(CompactJSON(part)))
		}
	}
	return text
}

// Refers reports whether the parameters refer to results of the calls before the example.
func (e *ExampleDoc) Refers() bool {
	return len(e.Before) > 0 && strings.Contains(string(e.Params), "${")
}

// WithoutReferences returns the violations of an example's parameters, without those caused by references to results
// of the calls before it. The values of these are known only when the example runs.
func WithoutReferences(e *Example, violations []schema.Violation) []schema.Violation {
	if len(e.Before) == 0 {
		return violations
	}
	return slices.DeleteFunc(violations, func(v schema.Violation) bool {
		return strings.HasPrefix(v.Provided, `string "${`)
	})
}
