package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// useTool is the prompt that asks for one call of a tool, learn what the prompts made of tutorials begin with.
const (
	useTool = "use_tool"
	learn   = "learn_"
	// maxCompleted is what the protocol allows in one answer.
	maxCompleted = 100
)

func (f *face) addPrompts() error {
	for _, p := range f.cfg.Host.Catalog().Providers() {
		m, err := p.Manifest()
		if err != nil {
			return err
		}
		if len(m.Tutorial) == 0 {
			continue
		}
		f.server.AddPrompt(&sdk.Prompt{
			Name: learn + p.Info().Name, Title: "Learn " + p.Info().Name, Description: "First use of " + p.Info().Name + ", step by step",
		}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return prompt(f.tutorial(p.Info().Name, m.Tutorial)), nil
		})
	}
	f.server.AddPrompt(&sdk.Prompt{
		Name: useTool, Title: "Use a tool", Description: "Call one tool, with its documentation at hand",
		Arguments: []*sdk.PromptArgument{
			{Name: "tool", Description: "name of the tool", Required: true},
			{Name: "parameter", Description: "a parameter to set"},
			{Name: "value", Description: "its value"},
		},
	}, f.useTool)
	return nil
}

func prompt(message string) *sdk.GetPromptResult {
	return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: text(message)}}}
}

// tutorial writes a manifest's steps down as calls.
func (f *face) tutorial(plugin string, steps []manifest.Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Learn %s by doing. Take one step after the other, and say what came of each.\n", plugin)
	for i, s := range steps {
		fmt.Fprintf(&b, "\n%d. %s\n", i+1, manifest.CleanLine(s.Say))
		if s.Run != "" {
			fmt.Fprintf(&b, "   %s\n", f.tutorialCall(s.Run))
		}
		if s.Expect != nil && s.Expect.ExitCode != 0 {
			fmt.Fprintf(&b, "   It fails with exit code %d.\n", s.Expect.ExitCode)
		}
	}
	return b.String()
}

// tutorialCall is a step's command as the call of a tool; a command that is none stays as it is.
func (f *face) tutorialCall(line string) string {
	line = manifest.CleanLine(line)
	if s, ok := f.cfg.Host.Catalog().ReadTutorialCommand(line); ok {
		if call, ok := f.step(s); ok {
			arguments, _ := manifest.Marshal(call.Arguments)
			return call.Tool + " " + string(manifest.EscapeJSON(arguments))
		}
	}
	return line
}

func (f *face) useTool(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	c := callerOf(f.Server, r)
	docs, err := f.cfg.Host.Describe(ctx, c.name, c.session, f.qualified(r.Params.Arguments["tool"]), manifest.Tier2)
	if err != nil {
		return nil, f.invalid("", &host.Answer{Err: host.AsError(err)})
	}
	wish := ""
	if p := r.Params.Arguments["parameter"]; p != "" {
		wish = fmt.Sprintf(" with %s = %s", manifest.CleanLine(p), manifest.CleanLine(r.Params.Arguments["value"]))
	}
	return prompt(fmt.Sprintf("Call the tool %s%s.\n\n%s", docs.Name, wish, docs.Text())), nil
}

// complete answers what a name or a value may be: of plugins and tools in URIs, and of the arguments of use_tool.
func (f *face) complete(_ context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	var known map[string]string
	if r.Params.Context != nil {
		known = r.Params.Context.Arguments
	}
	var values []string
	switch argument := r.Params.Argument.Name; {
	case argument == "plugin":
		values = f.plugins()
	case argument == "tier":
		values = []string{"1", "2", "3"}
	case argument == "tool" && r.Params.Ref.Type == "ref/resource":
		values = f.tools(known["plugin"], false)
	case argument == "tool":
		values = f.tools("", true)
	case argument == "parameter" || argument == "value":
		values = f.parameter(known["tool"], known["parameter"], argument == "value")
	}
	details := sdk.CompletionResultDetails{Values: []string{}}
	typed := strings.ToLower(r.Params.Argument.Value)
	for _, matches := range []func(string) bool{
		func(v string) bool { return strings.HasPrefix(v, typed) },
		func(v string) bool { return !strings.HasPrefix(v, typed) && strings.Contains(v, typed) },
	} {
		for _, v := range values {
			if matches(strings.ToLower(v)) {
				details.Total++
				if len(details.Values) < maxCompleted {
					details.Values = append(details.Values, v)
				}
			}
		}
	}
	details.HasMore = details.Total > len(details.Values)
	return &sdk.CompleteResult{Completion: details}, nil
}

// tools are the names of a plugin's tools, or of all.
func (f *face) tools(plugin string, qualified bool) []string {
	var all []string
	for _, p := range f.cfg.Host.Catalog().Providers() {
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

// parameter completes the names of a tool's parameters, or the values of one.
func (f *face) parameter(tool, name string, value bool) []string {
	at, err := f.cfg.Host.Catalog().Find(f.qualified(tool))
	if err != nil || at.Tool == nil {
		return nil
	}
	var found []string
	for _, p := range manifest.Params(at.Tool.Params) {
		switch {
		case !value:
			found = append(found, p.Name)
		case p.Name == name:
			for _, v := range p.Enum {
				found = append(found, shown(v))
			}
			if p.Type == "boolean" {
				found = append(found, "true", "false")
			}
		}
	}
	if value {
		return found
	}
	slices.Sort(found)
	return found
}
