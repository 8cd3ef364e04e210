package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// runCode is the meta-tool of mode code that runs a program, which is a call of codeTool.
const (
	runCode     = "run_code"
	codeTool    = "js.run"
	searchTools = "search_tools"
)

// Of each query, a search for programs declares so many tools, and names so many more: fewer if the first is likely the
// best, and if there are further queries.
func codeHits(queries int, best string) (declared, named int) {
	switch {
	case queries > 1 && best == "high":
		return 1, 2
	case best == "high":
		return 2, 2
	case queries > 1:
		return 3, 0
	}
	return 5, 0
}

// codeTools are the meta-tools that mode code lists.
func codeTools() []metaTool {
	return []metaTool{
		{runCode, "Run JavaScript, the body of an async function: `await tools.PLUGIN.TOOL(params)`, then `return` what " +
			"you need; only that is shown, and pictures by parley.image(base64). Promise.all runs calls at once.",
			`{"type":"object","properties":{"source":{"type":"string","minLength":1,` +
				`"x-aliases":["code","program","script","javascript","js"]},` +
				`"inputs":{"type":"object"},"options":{"type":"object","description":"timeout, e.g. 2s; default 10s"}},` +
				`"required":["source"],"additionalProperties":false}`, false, (*modeServer).runCode},
		{searchTools, "Find tools. Each hit is a line of TypeScript; the exact name of a tool gets its documentation",
			`{"type":"object","properties":{"queries":{"type":"array","items":{"type":"string"},"minItems":1,` +
				`"maxItems":8,"x-aliases":["query","q","text","search","keywords","name"]}},` +
				`"required":["queries"],"additionalProperties":false}`, true, (*modeServer).searchForCode},
	}
}

// metaTools are those that the server of the mode runs. [modeServer.lists] says which of them it lists.
func (m *modeServer) metaTools() []metaTool {
	if m.mode != Code {
		return metaTools()
	}
	return append(codeTools(), slices.DeleteFunc(metaTools(), func(t metaTool) bool { return t.name == searchTools })...)
}

// listsMeta reports whether tools/list has a meta-tool. Clients can call all of them.
func (m *modeServer) listsMeta(name string) bool {
	switch m.mode {
	case Code:
		return name == runCode || name == searchTools
	case Minimal:
		return name != planCall
	}
	return true
}

func (m *modeServer) runCode(
	ctx context.Context, r *sdk.CallToolRequest, params json.RawMessage,
) (*sdk.CallToolResult, error) {
	var p struct {
		Source  json.RawMessage `json:"source"`
		Inputs  json.RawMessage `json:"inputs,omitempty"`
		Options json.RawMessage `json:"options,omitempty"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	options, err := host.ParseOptions(p.Options)
	if err != nil {
		return m.taughtResult(runCode, params, &host.Answer{Tool: runCode, Err: host.AsError(err)})
	}
	p.Options = nil
	if params, err = manifest.Marshal(p); err != nil {
		return nil, err
	}
	return m.run(ctx, r, codeTool, params, options)
}

// searchForCode answers each query by the declarations of the tools that it finds, or by the documentation of the tool
// that it names. A tool that two queries find is declared once.
func (m *modeServer) searchForCode(
	ctx context.Context, r *sdk.CallToolRequest, params json.RawMessage,
) (*sdk.CallToolResult, error) {
	var p struct{ Queries []string }
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	c := callerOf(m.Server, r)
	var b strings.Builder
	var warnings []string
	shown := map[string]bool{}
	for _, query := range p.Queries {
		query = manifest.CleanLine(query)
		if len(p.Queries) > 1 {
			fmt.Fprintf(&b, "// %s\n", query)
		}
		if at, ok := m.named(query); ok {
			d, err := m.cfg.Host.Describe(m.withCodeSize(ctx, at.Tool), c, at.Name(), manifest.Tier2)
			if err != nil {
				return m.errorResult(&host.Answer{Err: host.AsError(err)})
			}
			b.WriteString(d.TypeScript(at.Tool) + "\n")
			continue
		}
		most, _ := codeHits(1, "")
		found, more, err := m.cfg.Host.SearchDetailed(ctx, c,
			host.SearchQuery{Text: query, Limit: most}, "names", nil)
		if err != nil {
			return m.errorResult(&host.Answer{Err: host.AsError(err)})
		}
		warnings = append(warnings, more...)
		if len(found.Results) == 0 {
			fmt.Fprintf(&b, "// nothing found for %q\n", query)
			continue
		}
		declared, named := codeHits(len(p.Queries), found.Results[0].Confidence)
		var others []string
		for i := range found.Results[:min(declared+named, len(found.Results))] {
			r := &found.Results[i]
			at, err := m.cfg.Host.Catalog().Find(r.Name)
			unlikely := i > 0 && r.Confidence == "low"
			switch {
			case err != nil || at.Tool == nil || unlikely || shown[at.Name()] || at.Name() == codeTool: // run_code runs it
			case i >= declared:
				others = append(others, at.Name())
			default:
				shown[at.Name()] = true
				b.WriteString(manifest.TypeScript(at.Name(), at.Tool) + unusual(r) + "\n")
			}
		}
		if len(others) > 0 {
			fmt.Fprintf(&b, "// or %s\n", strings.Join(others, ", "))
		}
	}
	return textResult(b.String(), slices.Compact(warnings)), nil
}

// named returns the tool whose whole name a query is, as a program or a list spells it.
func (m *modeServer) named(query string) (host.Address, bool) {
	name := m.qualified(strings.TrimPrefix(strings.TrimSuffix(query, "()"), "tools."))
	if !strings.ContainsAny(name, "._") {
		return host.Address{}, false
	}
	at, err := m.cfg.Host.Catalog().Find(name)
	return at, err == nil && at.Tool != nil && strings.EqualFold(at.Name(), strings.ReplaceAll(name, "__", "."))
}

// withCodeSize returns a context for documentation of a tool that is sent as TypeScript.
func (m *modeServer) withCodeSize(ctx context.Context, t *manifest.Tool) context.Context {
	return host.WithDocsSize(ctx, func(d *host.Docs, _ bool) int { return len(d.TypeScript(t)) })
}

// unusual says what speaks against a hit.
func unusual(r *host.SearchResult) string {
	var words []string
	if r.Deprecated {
		words = append(words, "deprecated")
	}
	if r.Experimental {
		words = append(words, "experimental")
	}
	if r.Unsigned {
		words = append(words, "unsigned")
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// codeStep renders a step in mode code: a search, or a program of one call.
func (m *modeServer) codeStep(s host.Step) (nextCall, bool) {
	search := func(query string) nextCall {
		return nextCall{Tool: searchTools, Arguments: map[string][]string{"queries": {query}}}
	}
	switch s.Op {
	case host.OpSearch:
		return search(s.Query), true
	case host.OpList:
		return search(strings.ReplaceAll(s.Tool, ".", " ")), s.Tool != ""
	case host.OpDescribe, host.OpPlan:
		return search(s.Tool), s.Tool != codeTool // a failed program is no reason to read how programs are run
	case host.OpListen:
		raw, _ := manifest.Marshal(map[string][]string{"match": {s.Query}})
		s = host.CallStep(s.Tool+".events", raw)
	case host.OpCall:
		if m.mustChoose(s) {
			return search(s.Tool), true
		}
	default:
		return nextCall{}, false
	}
	params, options := stepArguments(s)
	if s.Tool == codeTool { // no program may call it
		arguments := map[string]any{}
		_ = json.Unmarshal(params, &arguments)
		if len(options) > 0 {
			arguments["options"] = options
		}
		return nextCall{Tool: runCode, Arguments: arguments, Choose: s.Choose}, true
	}
	source := fmt.Sprintf("return await %s(%s)", manifest.ProgramName(s.Tool), params)
	if len(options) > 0 {
		given, _ := manifest.Marshal(options)
		source = strings.TrimSuffix(source, ")") + ", " + string(given) + ")"
	}
	return nextCall{Tool: runCode, Arguments: map[string]string{"source": source}, Choose: s.Choose}, true
}

// codeInstructions are the instructions for models in mode code.
const codeInstructions = "Sandboxed tools for programs. search_tools finds tools by what you want to do (several " +
	"queries at once) and declares them in TypeScript; run_code runs a JavaScript program that calls them. Do several " +
	"steps in one program. Errors say what to correct. Plugins: "
