package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// codeHits returns how many tools a search for programs declares for each query, and how many more it names. There are
// fewer if the first is likely the best, and if there are several queries.
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
				`"inputs":{"type":"object"},"options":{"type":"object","description":"timeout (default 10s)"}},` +
				`"required":["source"],"additionalProperties":false}`, false, taking((*modeServer).runCode)},
		{searchTools, "Find tools, as lines of TypeScript; the exact name of one gets its documentation",
			`{"type":"object","properties":{"queries":{"type":"array","items":{"type":"string"},"minItems":1,` +
				`"maxItems":8,"x-aliases":["query","q","text","search","keywords","name"]}},` +
				`"required":["queries"],"additionalProperties":false}`, true, taking((*modeServer).searchForCode)},
	}
}

// codeArguments are the arguments of run_code.
type codeArguments struct {
	Source  json.RawMessage `json:"source"`
	Inputs  json.RawMessage `json:"inputs,omitempty"`
	Options json.RawMessage `json:"options,omitempty"`
}

func (m *modeServer) runCode(ctx context.Context, r *sdk.CallToolRequest, p codeArguments) (
	*sdk.CallToolResult, error) {
	options, err := option.Parse(p.Options)
	if err != nil {
		return m.taughtResult(r, &host.Answer{Tool: runCode, Err: host.AsError(err)}), nil
	}
	p.Options = nil
	params, _ := manifest.Marshal(p)
	return m.run(ctx, r, host.Call{Name: codeTool, Params: params}, options)
}

// searchForCode answers each query with the declarations of the tools that it finds, or with the documentation of the
// tool that it names. A tool that two queries find is declared once.
func (m *modeServer) searchForCode(ctx context.Context, r *sdk.CallToolRequest, p struct{ Queries []string }) (
	*sdk.CallToolResult, error) {
	c := callerOf(m.of, r)
	var b strings.Builder
	var warnings []string
	shown := map[string]bool{}
	for _, query := range p.Queries {
		query = manifest.CleanLine(query)
		if len(p.Queries) > 1 {
			fmt.Fprintf(&b, "// %s\n", query)
		}
		if at, tier, ok := m.named(query); ok {
			asCode := host.WithDocsSize(ctx, func(d *host.Docs, _ bool) int { return len(d.TypeScript(at.Tool)) })
			d, err := m.host.Describe(asCode, c, at.Name(), tier)
			if err != nil {
				return nil, err
			}
			d.Deeper = searchTools + ` "` + at.Name() + wholeDocs + `"`
			b.WriteString(d.TypeScript(at.Tool) + "\n")
			continue
		}
		most, _ := codeHits(1, "")
		found, more, err := m.host.SearchDetailed(ctx, c, search.Query{Text: query, Limit: most}, "names", nil)
		if err != nil {
			return nil, err
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
			at, ok := m.names.Find(r.Name)
			unlikely := r.Confidence == "low" && found.Results[0].Confidence != "low" // if all are, the warning says so
			switch {
			case !ok || unlikely || shown[at.Name()] || at.Name() == codeTool: // run_code runs it
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

// wholeDocs after the name of a tool asks for all of its documentation.
const wholeDocs = " tier 3"

// named returns the tool if a query is its whole name, as a program or a list spells it, and the requested tier.
func (m *modeServer) named(query string) (at host.Address, tier int, ok bool) {
	tier = manifest.Tier2
	if whole, found := strings.CutSuffix(query, wholeDocs); found {
		query, tier = whole, manifest.Tier3
	}
	name := m.names.Qualified(strings.TrimPrefix(strings.TrimSuffix(query, "()"), "tools."))
	if !strings.ContainsAny(name, "._") {
		return at, tier, false
	}
	at, ok = m.names.Find(name)
	return at, tier, ok && strings.EqualFold(at.Name(), strings.ReplaceAll(name, "__", "."))
}

// unusual returns what speaks against a hit, such as that it is deprecated.
func unusual(r *search.Result) string {
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
func (w *renderer) codeStep(s step.Step) (nextCall, bool) {
	search := func(query string) nextCall {
		return nextCall{Tool: searchTools, Arguments: map[string][]string{"queries": {query}}}
	}
	switch s.Op {
	case step.OpSearch:
		return search(s.Query), true
	case step.OpList:
		return search(strings.ReplaceAll(s.Tool, ".", " ")), s.Tool != ""
	case step.OpDescribe, step.OpPlan:
		query := s.Tool
		if s.Options.Tier == manifest.Tier3 {
			query += wholeDocs
		}
		return search(query), s.Tool != codeTool // a failed program does not lead to the page on programs
	case step.OpCall:
		if w.mustChoose(s) {
			return search(s.Tool), true
		}
	default:
		return nextCall{}, false
	}
	params, options := paramsOf(s), optionsOf(s.Options)
	if s.Tool == codeTool { // no program may call it
		arguments := map[string]any{}
		_ = json.Unmarshal(params, &arguments)
		if options != nil {
			arguments["options"] = options
		}
		return nextCall{Tool: runCode, Arguments: arguments, Choose: s.Choose}, true
	}
	source := fmt.Sprintf("return await %s(%s)", manifest.ProgramName(s.Tool), params)
	if options != nil {
		given, _ := manifest.Marshal(options)
		source = strings.TrimSuffix(source, ")") + ", " + string(given) + ")"
	}
	return nextCall{Tool: runCode, Arguments: map[string]string{"source": source}, Choose: s.Choose}, true
}

// codeInstructions are the instructions for models in mode code.
const codeInstructions = "Sandboxed tools for programs. search_tools finds tools by what you want to do (several " +
	"queries at once) and declares them in TypeScript; run_code runs a JavaScript program that calls them. Do several " +
	"steps in one program. Errors say what to correct. Plugins: "
