package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
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

// renderSteps renders steps as calls. Those that a client cannot take, such as an operator's, are left out.
func (m *modeServer) renderSteps(steps []host.Step) []nextCall {
	calls := []nextCall{}
	seen := map[string]bool{}
	for _, s := range steps {
		call, ok := m.renderStep(s)
		if !ok {
			continue
		}
		if key, _ := manifest.Marshal(call); !seen[string(key)] {
			seen[string(key)] = true
			calls = append(calls, call)
		}
	}
	return calls
}

// renderStep renders one step. It reports false for one that a client cannot take.
func (m *modeServer) renderStep(s host.Step) (nextCall, bool) {
	if m.mode == Code {
		return m.codeStep(s)
	}
	switch s.Op {
	case host.OpSearch:
		return searchStep(s.Query, 0), true
	case host.OpList:
		return searchStep(strings.ReplaceAll(s.Tool, ".", " "), 0), s.Tool != ""
	case host.OpDescribe:
		return describeStep(s.Tool, s.Options.Tier), true
	case host.OpPlan:
		if m.mode == Minimal { // which does not list plan_call; the description names the sources
			return describeStep(s.Tool, 0), true
		}
		return planStep(s), true
	case host.OpListen:
		raw, _ := manifest.Marshal(map[string][]string{"match": {s.Query}})
		return callStep(host.CallStep(s.Tool+".events", raw)), true
	case host.OpCall:
		if m.mustChoose(s) {
			return describeStep(s.Tool, 0), true
		}
		call := callStep(s)
		call.Choose = s.Choose
		return call, true
	}
	return nextCall{}, false
}

// mustChoose reports whether a value that its tool requires is missing in a step.
func (m *modeServer) mustChoose(s host.Step) bool {
	if len(s.Choose) == 0 {
		return false
	}
	at, err := m.cfg.Host.Catalog().Find(s.Tool)
	if err != nil || at.Tool == nil {
		return true
	}
	return slices.ContainsFunc(manifest.Params(at.Tool.Params), func(p manifest.Param) bool {
		return p.Required && slices.Contains(s.Choose, p.Name)
	})
}

func searchStep(query string, limit int) nextCall {
	return nextCall{Tool: searchTools, Arguments: struct {
		Query string `json:"query"`
		Limit int    `json:"limit,omitempty"`
	}{query, limit}}
}

func describeStep(name string, tier int) nextCall {
	return nextCall{Tool: "describe_tool", Arguments: struct {
		Name string `json:"name"`
		Tier int    `json:"tier,omitempty"`
	}{name, tier}}
}

func planStep(s host.Step) nextCall {
	return nextCall{Tool: planCall, Arguments: struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Options   map[string]any  `json:"options,omitempty"`
	}{s.Tool, s.Params, placeOf(s)}, Choose: s.Choose}
}

// placeOf returns the options that name the browser and the page of a step.
func placeOf(s host.Step) map[string]any {
	options := map[string]any{}
	if s.Options.Browser != "" {
		options["browser"] = s.Options.Browser
	}
	if s.Options.Target != "" {
		options["target"] = s.Options.Target
	}
	return options
}

func callStep(s host.Step) nextCall {
	params, options := stepArguments(s)
	return nextCall{Tool: callTool, Arguments: struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Options   map[string]any  `json:"options,omitempty"`
	}{s.Tool, params, options}}
}

// stepArguments returns the parameters and the options of the call of a step.
func stepArguments(s host.Step) (params json.RawMessage, options map[string]any) {
	options = placeOf(s)
	if s.Options.Timeout > 0 {
		options["timeout"] = s.Options.Timeout.String()
	}
	if s.Options.DryRun {
		options["dry_run"] = true
	}
	if s.Options.MaxBytes > 0 || s.Options.Unlimited {
		options["max_bytes"] = s.Options.MaxBytes
	}
	if s.Options.JQ != "" {
		options["jq"] = s.Options.JQ
	}
	if s.Options.Wait != "" {
		options["wait"] = s.Options.Wait
	}
	if s.Options.OnDialog != "" {
		options["on_dialog"] = s.Options.OnDialog
	}
	if s.Options.SendAnyway {
		options["send_anyway"] = true
	}
	if params = s.Params; len(params) == 0 {
		params = json.RawMessage("{}")
	}
	return manifest.EscapeJSON(manifest.CompactJSON(params)), options
}

// describedTool is the documentation of a tool, with next steps.
type describedTool struct {
	*manifest.ToolDocs
	Next []nextCall `json:"next"`
}

func (m *modeServer) described(d *host.Docs) describedTool {
	return describedTool{d.ToolDocs, m.renderSteps(d.Next)}
}

// withDescribedSize returns a context for descriptions that are sent as a describedTool.
func (m *modeServer) withDescribedSize(ctx context.Context) context.Context {
	return host.WithDocsSize(ctx, func(d *host.Docs, _ bool) int { return jsonSize(m.described(d)) })
}
