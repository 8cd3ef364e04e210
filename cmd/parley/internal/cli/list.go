package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type listOptions struct {
	app   *App
	words []string // a plugin and a group, or nothing
}

func newList(app *App) *cobra.Command {
	opts := &listOptions{app: app}
	cmd := &cobra.Command{
		Use:               "list [PLUGIN] [GROUP]",
		Args:              cobra.ArbitraryArgs,
		Short:             "As --list",
		Example:           "parley list cdp Network",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := app.checkMaxTokens(cmd.Flags()); err != nil {
				return err
			}
			opts.words = args
			return runList(cmd.Context(), opts)
		},
	}
	app.addMaxTokens(cmd.Flags())
	return cmd
}

// runList prints one level of the catalog.
func runList(ctx context.Context, opts *listOptions) error {
	app := opts.app
	if len(opts.words) == 0 {
		return app.listPlugins()
	}
	at, rest, err := app.find(ctx, opts.words, false)
	switch {
	case err != nil:
		return err
	case at.Tool != nil || at.Entry != nil:
		return app.notAList(at)
	case len(rest) > 0:
		return app.tooManyWords(at, rest[0])
	}
	return app.list(at)
}

// notAList returns the error of a list of something that holds no tools.
func (a *App) notAList(at host.Address) error {
	return host.Errorf(host.InvalidArgs, "%s is a tool; --list takes a plugin or a group", at.Name()).
		WithSteps(host.ListStep(at.Plugin))
}

// list prints what a plugin or a group holds.
func (a *App) list(at host.Address) error {
	if at.Group != "" {
		return a.listGroup(at)
	}
	return a.listPlugin(at)
}

// listPlugins prints the first level: one line for each plugin.
func (a *App) listPlugins() error {
	data, err := command.ListPlugins(a.deps)
	if err != nil {
		return err
	}
	next := []string{"parley cdp --list", "parley search \"what you want\""}
	withoutBriefs := reduction{"briefs", func() (some bool) {
		for i := range data.Plugins {
			some = some || data.Plugins[i].Brief != ""
			data.Plugins[i].Brief = ""
		}
		return some
	}}
	return a.printWithin(data, next, func(w io.Writer) {
		width := 0
		for _, i := range data.Plugins {
			width = max(width, len(i.Name))
		}
		p := a.page(w)
		for _, i := range data.Plugins {
			count := manifest.Plural(i.Tools, "tool")
			if i.Groups > 0 {
				count = manifest.Plural(i.Groups, "group") + ", " + count
			}
			name := p.style(bold, i.Name) + strings.Repeat(" ", width-len(i.Name))
			brief := a.fitBrief(i.Brief, a.columns()-width-len(count)-5)
			fmt.Fprintf(w, "%s  %s\n", name, strings.TrimPrefix(brief+" ("+count+")", " "))
		}
		fmt.Fprintf(w, "Next: %s\n", strings.Join(next, "  |  "))
	}, withoutBriefs, withoutLast("plugins", &data.Plugins))
}

// listPlugin prints the second level: the groups of a plugin, and its tools that are in no group.
func (a *App) listPlugin(at host.Address) error {
	data, err := command.ListPlugin(a.deps, command.ListOptions{Plugin: at.Plugin, Coverage: a.json})
	if err != nil {
		return err
	}
	next := []string{}
	if len(data.Groups) > 0 {
		next = append(next, "parley "+data.Plugin+" "+busiest(data.Groups)+" --list")
	}
	if len(data.Tools) > 0 {
		next = append(next, describeCommand(data.Plugin, inviting(data.Tools).Name))
	}
	withoutBriefs := reduction{"briefs of groups", func() (some bool) {
		for i := range data.Groups {
			some = some || data.Groups[i].Brief != ""
			data.Groups[i].Brief = ""
		}
		return some
	}}
	withoutCoverage := reduction{"coverage", func() bool {
		had := data.Coverage != nil
		data.Coverage = nil
		return had
	}}
	return a.printWithin(data, next, func(w io.Writer) {
		groups := data.Groups
		switch {
		case len(groups) == 0:
			a.toolLines(w, data.Plugin, data.Tools)
		case len(groups) <= 20:
			for _, g := range groups {
				name := a.page(w).style(bold, g.Name)
				brief := a.fitBrief(g.Brief, a.columns()-len(g.Name)-8)
				fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%s (%d)  %s", name, g.Tools, brief), " "))
			}
			a.toolLines(w, data.Plugin, data.Tools)
		default:
			fmt.Fprintf(w, "%s with their number of tools:\n", manifest.Plural(len(groups), "group"))
			compactGroups(w, a.columns()-4, groups)
			var names []string
			for _, t := range data.Tools {
				names = append(names, local(data.Plugin, t.Name))
			}
			if len(names) > 0 {
				fmt.Fprintf(w, "Verbs: %s\n", strings.Join(names, " "))
			}
		}
		fmt.Fprintln(w, "Next: "+next[0])
	}, withoutCoverage, withoutBriefs, withoutDetails(data.Tools), withoutLast("tools", &data.Tools),
		withoutLast("groups", &data.Groups))
}

// describeCommand returns the command that documents a tool of a plugin by its qualified name.
func describeCommand(plugin, name string) string {
	return "parley " + plugin + " " + local(plugin, name) + " --describe"
}

// local returns a qualified name without its plugin.
func local(plugin, name string) string { return strings.TrimPrefix(name, plugin+".") }

// compactGroups writes groups as "Name count" in running text, so that a plugin of sixty groups costs an agent few
// tokens.
func compactGroups(w io.Writer, width int, groups []host.GroupLine) {
	line := ""
	for _, g := range groups {
		word := fmt.Sprintf("%s %d", g.Name, g.Tools)
		if line != "" && len(line)+len(word) > width {
			fmt.Fprintln(w, line)
			line = ""
		}
		if line != "" {
			line += ", "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}

// listGroup prints the third level: the tools and events of a group.
func (a *App) listGroup(at host.Address) error {
	data, err := command.ListGroup(a.deps, command.ListOptions{Plugin: at.Plugin, Group: at.Group})
	if err != nil {
		return err
	}
	next := []string{}
	if len(data.Tools) > 0 {
		next = append(next, describeCommand(data.Plugin, inviting(data.Tools).Name))
	} else if len(data.Events) > 0 {
		next = append(next, describeCommand(data.Plugin, data.Events[0].Name))
	}
	return a.printWithin(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s.%s: %s\n", data.Plugin, data.Group, manifest.Plural(data.Total, "tool"))
		a.toolLines(w, data.Plugin, data.Tools)
		if len(data.Events) > 0 {
			names := make([]string, 0, len(data.Events))
			for _, e := range data.Events {
				names = append(names, e.Name[strings.LastIndexByte(e.Name, '.')+1:])
			}
			text := manifest.Plural(len(names), "event") + ": " + strings.Join(names, " ")
			fmt.Fprintln(w, wrapped(text, a.columns()-1, ""))
		}
		for _, n := range next {
			fmt.Fprintln(w, "Next: "+n)
		}
	}, reduction{"events", func() bool {
		had := len(data.Events) > 0
		data.Events = []host.EventLine{}
		return had
	}}, withoutDetails(data.Tools), withoutLast("tools", &data.Tools))
}

// pipedLine limits the line of a tool in a pipe, in columns: below 22 tokens, the budget of a list for each tool.
const pipedLine = 97

// toolLines writes one line for each tool: its name with the required parameters, its brief and its effect. In a pipe
// the parameters are shown only if the brief fits beside them. On a terminal the brief gets the width that they leave.
func (a *App) toolLines(w io.Writer, plugin string, tools []host.Line) {
	p := a.page(w)
	for _, t := range tools {
		t.Name = local(plugin, t.Name)
		mark := markOf(t)
		brief, width := manifest.CleanLine(t.Brief), a.columns()
		head, needed := "", len(mark)
		if a.OutTTY {
			head = shortSignature(t, width-40)
		} else {
			width, needed = pipedLine, needed+len(brief)+2
			head = shortSignature(t, min(40, width-len(brief)-len(mark)-len("(, …)  ")))
		}
		if utf8.RuneCountInString(head)+needed > width {
			head = t.Name
		}
		if rest := width - utf8.RuneCountInString(head) - len(mark) - 2; rest >= 12 && brief != "" {
			brief = "  " + fit(brief, rest)
		} else {
			brief = ""
		}
		head = p.style(bold, t.Name) + strings.TrimPrefix(head, t.Name)
		fmt.Fprintf(w, "%s%s%s\n", head, brief, p.style(cmp.Or(effectStyle[t.Effect], faint), mark))
	}
}

// markOf returns the marks of a tool that is not a stable one with the effect read: " [write, deprecated]".
func markOf(t host.Line) string {
	var marks []string
	if t.Effect != manifest.EffectRead {
		marks = append(marks, t.Effect)
	}
	if t.Deprecated {
		marks = append(marks, "deprecated")
	} else if t.Experimental {
		marks = append(marks, "experimental")
	}
	if len(marks) == 0 {
		return ""
	}
	return " [" + strings.Join(marks, ", ") + "]"
}

// shortSignature returns the name of a tool with as many of its required parameters as fit. An ellipsis stands for the
// others.
func shortSignature(t host.Line, width int) string {
	if !strings.Contains(t.Signature, "(") {
		return t.Name
	}
	var kept []string
	more := false
	for _, name := range manifest.SignatureNames(t.Signature) {
		switch {
		case strings.HasSuffix(name, "?"), len(t.Name)+len(strings.Join(kept, ", "))+len(name) > width:
			more = true
		default:
			kept = append(kept, name)
		}
	}
	if more {
		kept = append(kept, "…")
	}
	return t.Name + "(" + strings.Join(kept, ", ") + ")"
}

// inviting returns the tool to show a newcomer: the first that is neither deprecated nor experimental, and that changes
// the least. There must be one tool.
func inviting(tools []host.Line) host.Line {
	for _, effect := range []string{manifest.EffectRead, manifest.EffectWrite, manifest.EffectDestructive} {
		for _, t := range tools {
			if t.Effect == effect && !t.Deprecated && !t.Experimental && !strings.HasSuffix(t.Name, "able") {
				return t
			}
		}
	}
	return tools[0]
}

// busiest returns the group to show a newcomer: Network, or the one with the most tools. There must be one group.
func busiest(groups []host.GroupLine) string {
	for _, g := range groups {
		if g.Name == "Network" {
			return g.Name
		}
	}
	return slices.MaxFunc(groups, func(x, y host.GroupLine) int { return x.Tools - y.Tools }).Name
}

// maxBrief is how long a brief of a manifest may be. Only those of a protocol or of another system are longer.
const maxBrief = 64

// fitBrief returns a brief as a list shows it: cut to a width on a terminal, and whole in a pipe.
func (a *App) fitBrief(brief string, width int) string {
	if !a.OutTTY {
		width = maxBrief
	}
	return fit(manifest.CleanLine(brief), width)
}

// fit cuts a text at a word so that it takes at most width columns.
func fit(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width || width < 2 {
		return s
	}
	cut := string(runes[:width-1])
	if at := strings.LastIndexByte(cut, ' '); at > width/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,.;:") + "…"
}
