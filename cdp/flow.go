package cdp

import (
	"encoding/json"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/manifest"
)

// Flow returns what comes before a command; nil for a verb and for a name that is not a command.
func (p *catalog) Flow(tool string) *manifest.Flow {
	c := p.protocol.Protocol.Flow(tool)
	if len(c.Needs)+len(c.Values) == 0 {
		return nil
	}
	return new(p.protocol.flow(c))
}

// Example is an example of a command before it ran. Those of the command's tool say what happened when they ran.
type Example struct {
	Title, Kind string
	Params      json.RawMessage
	Needs       manifest.Flow // what comes before it, besides what comes before every call of the command
}

// Examples returns the examples of a command before they ran; nil for a verb and for a name that is not a command.
func (p *catalog) Examples(command string) (list []Example) {
	c, ok := p.protocol.Command(command)
	if !ok {
		return nil
	}
	for _, e := range p.protocol.Examples(c) {
		list = append(list, Example{e.Title, e.Kind, e.Params, p.protocol.flow(e.Flow())})
	}
	return list
}

func (t translation) flow(c protocol.Flow) manifest.Flow {
	f := manifest.Flow{Needs: t.flowCalls(c.Needs)}
	for _, v := range c.Values {
		f.Values = append(f.Values, t.flowValue(v))
	}
	return f
}

func (t translation) flowValue(v protocol.Value) manifest.Value {
	value := manifest.Value{Pointer: v.Pointer, Required: v.Required, Instead: v.Instead}
	for _, s := range t.Sources(v.Source) {
		if value.From == nil {
			value.Ends = s.Ends
		}
		value.From = append(value.From, manifest.Source{FlowCall: t.flowCall(s.Call), Result: s.Result,
			Before: t.flowCalls(s.Before)})
	}
	return value
}

func (t translation) flowCalls(calls []protocol.Call) (list []manifest.FlowCall) {
	for _, c := range calls {
		list = append(list, t.flowCall(c))
	}
	return list
}

// flowCall returns a call of the tables. A parameter that is "${NAME}" is a value of the source NAME.
func (t translation) flowCall(c protocol.Call) manifest.FlowCall {
	call := manifest.FlowCall{Tool: Name + "." + c.Tool, Params: c.Params, Filter: c.Filter, Until: c.Until}
	if !strings.Contains(string(c.Params), "${") {
		return call
	}
	var params map[string]any
	if json.Unmarshal(c.Params, &params) != nil {
		return call
	}
	for name, value := range params {
		text, _ := value.(string)
		if source, ok := strings.CutPrefix(text, "${"); ok {
			delete(params, name)
			call.Values = append(call.Values, t.flowValue(protocol.Value{
				Pointer: "/" + name, Required: true, Source: strings.TrimSuffix(source, "}")}))
		}
	}
	call.Params, _ = manifest.Marshal(params)
	return call
}

// example returns an example with the calls before it and what happened when it ran. One that did not do what its
// command is for is not the smallest call to copy.
func example(e *protocol.Example) manifest.Example {
	x := manifest.Example{Title: e.Title, Kind: e.Kind, Params: e.Params}
	if e.Run == nil {
		return x
	}
	run := &manifest.ExampleRun{}
	x.Params, x.Run = e.Run.Params, func() *manifest.ExampleRun { return run }
	_ = json.Unmarshal(e.Run.Before, &x.Before)
	product, _, _ := strings.Cut(protocol.Embedded().RanOn(), ".")
	if e.Run.Outcome == protocol.RunVerified {
		run.Verified, x.Result = protocol.Embedded().RanOn(), json.RawMessage(e.Run.Text)
		return x
	}
	if x.Kind == "minimal" && e.Run.Outcome != protocol.RunUnknown {
		x.Kind = "common"
	}
	run.NotRun = notRun[e.Run.Outcome] + product + ": " + e.Run.Text
	if e.Run.Outcome == protocol.RunSkipped {
		run.NotRun = e.Run.Text
	}
	return x
}

// notRun says what became of examples that did not succeed.
var notRun = map[string]string{
	protocol.RunFailed:  "failed in ",
	protocol.RunHung:    "hung in ",
	protocol.RunUnknown: "unknown to ",
}
