package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/commandline"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

const (
	// useToolName is the prompt that asks for one call of a tool. learnPrefix begins the names of the prompts that are
	// made from tutorials.
	useToolName = "use_tool"
	learnPrefix = "learn_"
	// maxCompleted is the number of values that the protocol allows in one completion.
	maxCompleted = 100
)

// addPrompts lists the prompts that do not depend on the catalog.
func (m *modeServer) addPrompts() {
	m.server.AddPrompt(&sdk.Prompt{
		Name: useToolName, Title: "Use a tool", Description: "Call one tool, with its documentation at hand",
		Arguments: []*sdk.PromptArgument{
			{Name: "tool", Description: "name of the tool", Required: true},
			{Name: "parameter", Description: "a parameter to set"},
			{Name: "value", Description: "its value"},
		},
	}, m.useTool)
}

// addPrompt lists the tutorial of a plugin, if it has one.
func (l *listing) addPrompt(p host.Provider) error {
	parsed, err := p.Manifest()
	if err != nil {
		return err
	}
	if len(parsed.Tutorial) > 0 {
		plugin := p.Info().Name
		l.prompts[learnPrefix+plugin] = &sdk.Prompt{
			Name: learnPrefix + plugin, Title: "Learn " + plugin, Description: "First use of " + plugin + ", step by step",
		}
	}
	return nil
}

// learn returns the tutorial of a plugin.
func (m *modeServer) learn(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	at, err := m.host.Catalog().Find(strings.TrimPrefix(r.Params.Name, learnPrefix))
	var parsed *manifest.Manifest
	if err == nil {
		parsed, err = at.Provider.Manifest()
	}
	if err != nil {
		return nil, m.out.protocolError("", &host.Answer{Err: host.AsError(err)})
	}
	return promptResult(m.out.tutorial(at.Plugin, parsed.Tutorial)), nil
}

func promptResult(message string) *sdk.GetPromptResult {
	return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: textContent(message)}}}
}

// tutorial renders the steps of a tutorial as calls.
func (w *renderer) tutorial(plugin string, steps []manifest.Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Learn %s by doing. Take one step after the other, and report the result of each.\n", plugin)
	for i, s := range steps {
		fmt.Fprintf(&b, "\n%d. %s\n", i+1, manifest.CleanLine(s.Say))
		if s.Run != "" {
			fmt.Fprintf(&b, "   %s\n", w.tutorialCall(s.Run))
		}
		if s.Expect != nil && s.Expect.ExitCode != 0 {
			fmt.Fprintf(&b, "   It fails with exit code %d.\n", s.Expect.ExitCode)
		}
	}
	return b.String()
}

// tutorialCall renders the command of a step as the call of a tool. A command that is not a call stays as it is.
func (w *renderer) tutorialCall(line string) string {
	line = manifest.CleanLine(line)
	if s, ok := commandline.Read(w.host.Catalog(), line); ok {
		if call, ok := w.step(s); ok {
			arguments, _ := manifest.Marshal(call.Arguments)
			return call.Tool + " " + string(manifest.EscapeJSON(arguments))
		}
	}
	return line
}

func (m *modeServer) useTool(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	c := callerOf(m.of, r)
	name := m.names.Qualified(r.Params.Arguments["tool"])
	ctx = host.WithDocsSize(ctx, func(d *host.Docs, _ bool) int { return len(d.Text()) })
	docs, err := m.host.Describe(ctx, c, name, manifest.Tier2)
	if err != nil {
		return nil, m.out.protocolError("", &host.Answer{Err: host.AsError(err)})
	}
	assignment := ""
	if p := r.Params.Arguments["parameter"]; p != "" {
		assignment = fmt.Sprintf(" with %s = %s", manifest.CleanLine(p), manifest.CleanLine(r.Params.Arguments["value"]))
	}
	return promptResult(fmt.Sprintf("Call the tool %s%s.\n\n%s", docs.Name, assignment, docs.Text())), nil
}

// complete returns the names and values that complete what a person typed: plugins and tools in URIs, and the arguments
// of use_tool.
func (m *modeServer) complete(_ context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	var known map[string]string
	if r.Params.Context != nil {
		known = r.Params.Context.Arguments
	}
	var values []string
	switch argument := r.Params.Argument.Name; {
	case argument == "plugin":
		values = m.of.plugins()
	case argument == "tier":
		values = []string{"1", "2", "3"}
	case argument == "tool" && r.Params.Ref.Type == "ref/resource":
		values = m.tools(known["plugin"], false)
	case argument == "tool":
		values = m.tools("", true)
	case argument == "parameter" || argument == "value":
		values = m.parameter(known["tool"], known["parameter"], argument == "value")
	}
	typed := strings.ToLower(r.Params.Argument.Value)
	at := func(v string) int { return strings.Index(strings.ToLower(v), typed) }
	values = slices.DeleteFunc(values, func(v string) bool { return at(v) < 0 })
	slices.SortStableFunc(values, func(a, b string) int { return min(at(a), 1) - min(at(b), 1) }) // prefix matches first
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{
		Values: append([]string{}, values[:min(len(values), maxCompleted)]...), Total: len(values),
		HasMore: len(values) > maxCompleted,
	}}, nil
}

// tools returns the names of a plugin's tools, or of all tools.
func (m *modeServer) tools(plugin string, qualified bool) []string {
	var all []string
	for _, p := range m.host.Catalog().Providers() {
		if plugin != "" && !strings.EqualFold(plugin, p.Info().Name) {
			continue
		}
		names, _ := p.Names()
		for _, n := range names {
			if qualified {
				n = p.Info().Name + "." + n
			}
			all = append(all, n)
		}
	}
	return all
}

// parameter returns the names of a tool's parameters, or the values of one parameter.
func (m *modeServer) parameter(tool, name string, value bool) []string {
	at, ok := m.names.Find(m.names.Qualified(tool))
	if !ok {
		return nil
	}
	var found []string
	for _, p := range manifest.Params(at.Tool.Params) {
		switch {
		case !value:
			found = append(found, p.Name)
		case p.Name == name:
			found = append(found, lists.Map(p.Enum, displayText)...)
			if p.Type == "boolean" {
				found = append(found, "true", "false")
			}
		}
	}
	if !value {
		slices.Sort(found)
	}
	return found
}
