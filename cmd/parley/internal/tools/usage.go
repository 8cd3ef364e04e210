package tools

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// browserOnly are the options that have no effect for a plugin without a browser and events.
var browserOnly = []string{
	"browser", "target", "on-dialog", "wait", "drain", "all", "send-anyway", "listen", "until", "max", "trigger",
	"live",
}

// discoveryOnly are the options that ask about tools instead of calling one.
var discoveryOnly = []string{"list", "describe", "tier", "max-tokens", "search", "listen", "until", "max", "trigger"}

// usageExamples is how many example calls the help of a plugin shows.
const usageExamples = 3

// pluginUsage prints how a plugin or a group is used: its groups and tools, options, examples and what to type next.
func pluginUsage(a *command.App, root *cobra.Command, at host.Address) error {
	groups, err := at.Provider.Groups()
	if err != nil {
		return err
	}
	tools, err := at.Provider.Lines(at.Group)
	if err != nil {
		return err
	}
	info := at.Provider.Info()
	name, brief, tool := "parley "+at.Plugin, info.Brief, "TOOL"
	if i := slices.IndexFunc(groups, func(g host.GroupLine) bool { return g.Name == at.Group }); i >= 0 {
		name, brief, tool, groups = name+" "+at.Group, groups[i].Brief, at.Group+".TOOL", nil
	}
	call := "parley " + at.Plugin + " " + tool
	return printHelp(a, func(w io.Writer) {
		p := a.Page(w)
		p.Text(0, command.Bold, name+": "+manifest.CleanLine(brief))
		usage := []string{call + " [WORD...] [OPTION...]", call + " --describe", name + " --list", name + " --search QUERY"}
		if len(groups) > 0 {
			usage = slices.Insert(usage, 3, "parley "+at.Plugin+" GROUP --list")
		}
		p.Commands("Usage", usage)
		if len(groups) > 0 {
			p.Heading(manifest.Plural(len(groups), "group") + " with their number of tools")
			compactGroups(w, a.Columns()-4, groups)
		}
		if len(tools) > 0 {
			p.Heading("Tools")
			toolLines(a, w, at.Plugin, tools)
		}
		p.Heading("Options")
		optionLines(w, usageOptions(a, root, at.Plugin, nil), a.Columns())
		p.Commands("Examples", usageCalls(a, at, groups, tools))
		next := name + " --list"
		if len(groups) > 0 {
			next = "parley " + at.Plugin + " " + busiest(groups) + " --list"
		} else if len(tools) > 0 {
			next = "parley " + at.Plugin + " " + inviting(tools).Name + " --help"
		}
		p.Commands("Next", []string{next})
	})
}

// usageCalls returns examples of calls: of tools without a group, or else of tools of the busiest group.
func usageCalls(a *command.App, at host.Address, groups []host.GroupLine, tools []host.Line) (calls []string) {
	if len(tools) == 0 && len(groups) > 0 {
		tools, _ = at.Provider.Lines(busiest(groups))
	}
	for _, line := range tools {
		if len(calls) == usageExamples {
			break
		}
		if line.Deprecated || line.Experimental {
			continue
		}
		if t, err := at.Provider.Tool(line.Name); err == nil && len(t.Examples) > 0 && t.Examples[0].ExitCode == 0 {
			calls = append(calls, a.Command(host.CallStep(at.Plugin+"."+t.Name, t.Examples[0].Params)))
		}
	}
	return calls
}

// toolUsage prints how a tool is called: its parameters, the options of a call, and the rest of its documentation. Of
// an event or a type, which cannot be called, it prints the documentation.
func toolUsage(a *command.App, w io.Writer, root *cobra.Command, at host.Address, doc *describedTool) {
	p := a.Page(w)
	p.Title(doc.ToolDocs)
	if at.Tool == nil {
		p.DocsBody(doc.ToolDocs, doc.Next)
		return
	}
	usage := "parley " + at.Plugin + " " + at.Tool.Name
	params := manifest.Params(at.Tool.Params)
	shown := 0
	for _, name := range at.Tool.Positional {
		i := slices.IndexFunc(params, func(q manifest.Param) bool { return q.Name == name })
		if i < 0 {
			continue
		}
		word := strings.ToUpper(manifest.CleanLine(name))
		if params[i].Type == "array" {
			word += "..."
		}
		if !params[i].Required {
			word = "[" + word + "]"
		}
		usage += " " + word
		shown++
	}
	for _, q := range params {
		if q.Required && !slices.Contains(at.Tool.Positional, q.Name) {
			usage += " --param " + q.Name + "=" + strings.ToUpper(q.Type)
			shown++
		}
	}
	if shown < len(params) {
		usage += " [--param NAME=VALUE...]"
	}
	p.Heading("Usage")
	fmt.Fprintln(w, command.Wrapped("  "+usage+" [OPTION...]", p.Width, "      "))
	p.DocsBody(doc.ToolDocs, nil)
	p.Heading("Options")
	optionLines(w, usageOptions(a, root, at.Plugin, discoveryOnly), a.Columns())
	p.Commands("Next", doc.Next)
}

// usageOptions returns the options that have an effect for a plugin, except those in without.
func usageOptions(a *command.App, root *cobra.Command, plugin string, without []string) []optionHelp {
	var kept []optionHelp
	for _, o := range helpOf(a, root, true).Options {
		name, isOption := strings.CutPrefix(o.Name, "--")
		if isOption && name != "full" && !slices.Contains(without, name) &&
			(plugin == cdp.Name || !slices.Contains(browserOnly, name)) {
			kept = append(kept, o)
		}
	}
	return kept
}
