package mcp

import (
	"encoding/json"
	"slices"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/mcp/envelope"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// nextCall is a step in the form that a client can take: a call of a meta-tool.
type nextCall struct {
	Tool      string `json:"tool"`
	Arguments any    `json:"arguments"`
	// Choose names optional parameters whose values are for the client to choose: the call works without them, but
	// does little, such as opening an empty page.
	Choose []string `json:"choose,omitempty"`
}

// renderer renders what the host answers for the clients in one mode.
type renderer struct {
	host *hostcall.Host
	mode string
}

// steps renders steps as calls. Those that a client cannot take, such as an operator's, are left out.
func (w *renderer) steps(steps []step.Step) []nextCall {
	calls, seen := []nextCall{}, map[string]bool{}
	for _, s := range steps {
		call, ok := w.step(s)
		if key, _ := manifest.Marshal(call); ok && !seen[string(key)] {
			seen[string(key)] = true
			calls = append(calls, call)
		}
	}
	return calls
}

// step renders one step. It reports false for one that a client cannot take.
func (w *renderer) step(s step.Step) (nextCall, bool) {
	if s.Op == step.OpListen {
		raw, _ := manifest.Marshal(map[string][]string{"match": {s.Query}})
		s = step.Call(s.Tool+".events", raw)
	}
	if w.mode == Code {
		return w.codeStep(s)
	}
	switch s.Op {
	case step.OpSearch:
		return searchStep(s.Query, 0), true
	case step.OpList:
		return describeStep(s.Tool, 0), s.Tool != ""
	case step.OpDescribe:
		return describeStep(s.Tool, s.Options.Tier), true
	case step.OpPlan:
		if w.mode == Minimal { // this mode does not list plan_call; the description names the sources
			return describeStep(s.Tool, 0), true
		}
		options := optionsOf(step.Options{Place: s.Options.Place})
		return nextCall{planCall, metaArguments{Name: s.Tool, Arguments: s.Params, Options: options}, s.Choose}, true
	case step.OpCall:
		if w.mustChoose(s) {
			return describeStep(s.Tool, 0), true
		}
		return callStep(s), true
	}
	return nextCall{}, false
}

// mustChoose reports whether a value that its tool requires is missing in a step.
func (w *renderer) mustChoose(s step.Step) bool {
	if len(s.Choose) == 0 {
		return false
	}
	at, err := w.host.Catalog().Find(s.Tool)
	if err != nil || at.Tool == nil {
		return true
	}
	return slices.ContainsFunc(manifest.Params(at.Tool.Params), func(p manifest.Param) bool {
		return p.Required && slices.Contains(s.Choose, p.Name)
	})
}

// metaArguments are the arguments of the meta-tools.
type metaArguments struct {
	Query     string          `json:"query,omitempty"`
	Limit     int             `json:"limit,omitempty"`
	Name      string          `json:"name,omitempty"`
	Tier      int             `json:"tier,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Options   *callOptions    `json:"options,omitempty"`
}

func searchStep(query string, limit int) nextCall {
	return nextCall{Tool: searchTools, Arguments: metaArguments{Query: query, Limit: limit}}
}

func describeStep(name string, tier int) nextCall {
	return nextCall{Tool: envelope.DescribeTool, Arguments: metaArguments{Name: name, Tier: tier}}
}

func callStep(s step.Step) nextCall {
	return nextCall{callTool, metaArguments{Name: s.Tool, Arguments: paramsOf(s), Options: optionsOf(s.Options)}, s.Choose}
}

// paramsOf returns the parameters of the call of a step.
func paramsOf(s step.Step) json.RawMessage {
	if len(s.Params) == 0 {
		return json.RawMessage("{}")
	}
	return manifest.EscapeJSON(manifest.CompactJSON(s.Params))
}

// callOptions are the options of a call, sorted by name.
type callOptions struct {
	Browser    string `json:"browser,omitempty"`
	Context    string `json:"context,omitempty"`
	DryRun     bool   `json:"dry_run,omitempty"`
	JQ         string `json:"jq,omitempty"`
	MaxBytes   *int   `json:"max_bytes,omitempty"`
	OnDialog   string `json:"on_dialog,omitempty"`
	SendAnyway bool   `json:"send_anyway,omitempty"`
	Target     string `json:"target,omitempty"`
	Timeout    string `json:"timeout,omitempty"`
	Wait       string `json:"wait,omitempty"`
}

// optionsOf returns the options of a step that a client can give, nil if there are none.
func optionsOf(o step.Options) *callOptions {
	c := callOptions{Browser: o.Browser, DryRun: o.DryRun, JQ: o.JQ, OnDialog: o.OnDialog, SendAnyway: o.SendAnyway,
		Target: o.Target, Context: o.Context, Wait: o.Wait}
	if o.Timeout > 0 {
		c.Timeout = o.Timeout.String()
	}
	if o.MaxBytes > 0 || o.Unlimited {
		c.MaxBytes = &o.MaxBytes
	}
	if c == (callOptions{}) {
		return nil
	}
	return &c
}

// describedTool is the documentation of a tool, with next steps.
type describedTool struct {
	*manifest.ToolDocs
	Next []nextCall `json:"next"`
}

func (w *renderer) described(d *host.Docs) describedTool {
	return describedTool{d.ToolDocs, w.steps(d.Next)}
}
