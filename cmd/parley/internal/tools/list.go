package tools

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

var listCommand = &command.Command[*listOptions]{
	Use: "list [PLUGIN] [GROUP]", Run: runList, Words: command.CompleteNames, AnyWords: true,
	Short:   "List plugins, groups or tools",
	Example: "parley list cdp Network\nparley list json --category query",
	Options: map[string]command.Completer{"category": command.OneOf(searchWords["category"]...)},
}

type listOptions struct {
	Flags    *pflag.FlagSet
	Words    []string `word:""`
	Category string   `flag:"category" usage:"only this category"`
	command.Limited
}

// runList prints one level of the catalog: the level of a plugin or a group, or the first one.
func runList(ctx context.Context, app *command.App, opts *listOptions) error {
	if err := opts.Limit(app, opts.Flags); err != nil {
		return err
	}
	if allowed := searchWords["category"]; opts.Category != "" && !slices.Contains(allowed, opts.Category) {
		return command.UnknownValue("category", opts.Category, allowed)
	}
	if len(opts.Words) == 0 && opts.Category == "" {
		return listPlugins(app)
	} else if len(opts.Words) == 0 {
		catalog, err := app.Catalog()
		if err != nil {
			return err
		}
		return listCategory(app, catalog.Providers(), "", opts.Category)
	}
	at, rest, err := find(ctx, app, opts.Words, false)
	switch {
	case err != nil:
		return err
	case at.Tool != nil || at.Entry != nil:
		return notAList(app, at)
	case len(rest) > 0:
		return tooManyWords(app, at, rest[0])
	case opts.Category != "":
		return listCategory(app, []host.Provider{at.Provider}, at.Group, opts.Category)
	}
	return list(app, at)
}

// listCategory prints the tools of a category in plugins, or in a group of one.
func listCategory(a *command.App, plugins []host.Provider, group, category string) error {
	data := &struct {
		Category string      `json:"category"`
		Tools    []host.Line `json:"tools"`
		Total    int         `json:"total"`
	}{Category: category, Tools: []host.Line{}}
	for _, p := range plugins {
		names, err := p.Names()
		if err != nil {
			return err
		}
		for _, name := range names {
			t, err := p.Tool(name)
			if err != nil {
				return err
			}
			if t.Category == category && (group == "" || t.Group == group) {
				line := host.LinesOf(&manifest.Manifest{Tools: []manifest.Tool{*t}}, t.Group)
				data.Tools = append(data.Tools, qualified(p.Info().Name, line)...)
			}
		}
	}
	data.Total = len(data.Tools)
	next := []string{"parley list"}
	if data.Total > 0 {
		plugin, _, _ := strings.Cut(data.Tools[0].Name, ".")
		next = []string{describeCommand(plugin, data.Tools[0].Name)}
	}
	return a.PrintWithin(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s\n", category, manifest.Plural(data.Total, "tool"))
		toolLines(a, w, "", data.Tools)
		command.WriteLabelled(w, "Next:", next)
	}, command.WithoutDetails(data.Tools), command.WithoutLast("tools", &data.Tools))
}

// notAList returns the error for listing something that contains no tools.
func notAList(a *command.App, at host.Address) error {
	return host.Errorf(host.InvalidArgs, "%s is a tool; --list takes a plugin or a group", at.Name()).
		WithSteps(step.List(at.Plugin))
}

// list prints the content of a plugin or a group.
func list(a *command.App, at host.Address) error {
	if at.Group != "" {
		return listGroup(a, at)
	}
	return listPlugin(a, at)
}

// listPlugins prints the first level: one line for each plugin.
func listPlugins(a *command.App) error {
	catalog, err := a.Catalog()
	if err != nil {
		return err
	}
	data := &struct {
		Plugins []host.Info `json:"plugins"`
		Total   int         `json:"total"`
	}{Plugins: []host.Info{}}
	for _, p := range catalog.Providers() {
		info := p.Info()
		info.Brief = manifest.CleanLine(info.Brief)
		data.Plugins = append(data.Plugins, info)
	}
	data.Total = len(data.Plugins)
	next := []string{"parley cdp --list", "parley search \"what you want\""}
	withoutBriefs := command.WithoutTexts("briefs", data.Plugins, func(i *host.Info) []*string {
		return []*string{&i.Brief}
	})
	return a.PrintWithin(data, next, func(w io.Writer) {
		width := 0
		for _, i := range data.Plugins {
			width = max(width, len(i.Name))
		}
		p := a.Page(w)
		for _, i := range data.Plugins {
			count := command.When(i.Groups > 0, manifest.Plural(i.Groups, "group")+", ") + manifest.Plural(i.Tools, "tool")
			name := p.Style(command.Bold, i.Name) + strings.Repeat(" ", width-len(i.Name))
			brief := fitBrief(a, i.Brief, a.Columns()-width-len(count)-5)
			fmt.Fprintf(w, "%s  %s\n", name, strings.TrimPrefix(brief+" ("+count+")", " "))
		}
		fmt.Fprintf(w, "Next: %s\n", strings.Join(next, "  |  "))
	}, withoutBriefs, command.WithoutLast("plugins", &data.Plugins))
}

// listPlugin prints the second level: the groups of a plugin, and its tools that are in no group.
func listPlugin(a *command.App, at host.Address) error {
	groups, err := at.Provider.Groups()
	tools, failed := at.Provider.Lines("")
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	data := &struct {
		Plugin   string           `json:"plugin"`
		Groups   []host.GroupLine `json:"groups"`
		Tools    []host.Line      `json:"tools"`
		Total    int              `json:"total"` // number of groups, or of tools if there are no groups
		Coverage any              `json:"coverage,omitempty"`
	}{
		Plugin: at.Plugin, Groups: append([]host.GroupLine{}, groups...), Tools: qualified(at.Plugin, tools),
		Total: len(groups),
	}
	if len(groups) == 0 {
		data.Total = len(tools)
	}
	if coverage := at.Provider.Features().Coverage; coverage != nil && a.JSON { // text omits it: it takes longer
		if data.Coverage, err = coverage(); err != nil {
			return err
		}
	}
	next := []string{}
	if len(data.Groups) > 0 {
		next = append(next, "parley "+data.Plugin+" "+busiest(data.Groups)+" --list")
	}
	if len(data.Tools) > 0 {
		next = append(next, describeCommand(data.Plugin, inviting(data.Tools).Name))
	}
	withoutBriefs := command.WithoutTexts("briefs of groups", data.Groups, func(g *host.GroupLine) []*string {
		return []*string{&g.Brief}
	})
	return a.PrintWithin(data, next, func(w io.Writer) {
		groups := data.Groups
		switch {
		case len(groups) == 0:
			toolLines(a, w, data.Plugin, data.Tools)
		case len(groups) <= 20:
			for _, g := range groups {
				name := a.Page(w).Style(command.Bold, g.Name)
				brief := fitBrief(a, g.Brief, a.Columns()-len(g.Name)-8)
				fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%s (%d)  %s", name, g.Tools, brief), " "))
			}
			toolLines(a, w, data.Plugin, data.Tools)
		default:
			fmt.Fprintf(w, "%s with their number of tools:\n", manifest.Plural(len(groups), "group"))
			compactGroups(w, a.Columns()-4, groups)
			names := command.Map(data.Tools, func(t host.Line) string { return local(data.Plugin, t.Name) })
			verbs := command.Wrapped("Verbs: "+strings.Join(names, " "), a.Columns(), "  ")
			command.PrintIf(w, len(names) > 0, "%s\n", verbs)
		}
		fmt.Fprintln(w, "Next: "+next[0])
	}, command.Without("coverage", data.Coverage != nil, &data.Coverage, nil), withoutBriefs,
		command.WithoutDetails(data.Tools), command.WithoutLast("tools", &data.Tools),
		command.WithoutLast("groups", &data.Groups))
}

// local returns a qualified name without its plugin.
func local(plugin, name string) string { return strings.TrimPrefix(name, plugin+".") }

// describeCommand returns the command that documents a tool of a plugin by its qualified name.
func describeCommand(plugin, name string) string {
	return "parley " + plugin + " " + local(plugin, name) + " --describe"
}

// compactGroups writes groups as "Name count" in running text, so that a plugin with sixty groups costs an agent few
// tokens.
func compactGroups(w io.Writer, width int, groups []host.GroupLine) {
	line := ""
	for _, g := range groups {
		word := fmt.Sprintf("%s %d", g.Name, g.Tools)
		if line != "" && len(line)+len(word) > width {
			fmt.Fprintln(w, line)
			line = ""
		}
		line += command.When(line != "", ", ") + word
	}
	fmt.Fprintln(w, line)
}

// listGroup prints the third level: the tools and events of a group.
func listGroup(a *command.App, at host.Address) error {
	tools, err := at.Provider.Lines(at.Group)
	if err != nil {
		return err
	}
	data := &struct {
		Plugin string           `json:"plugin"`
		Group  string           `json:"group"`
		Tools  []host.Line      `json:"tools"`
		Events []host.EventLine `json:"events"`
		Total  int              `json:"total"` // number of tools
	}{
		Plugin: at.Plugin, Group: at.Group, Tools: qualified(at.Plugin, tools), Events: []host.EventLine{},
		Total: len(tools),
	}
	if eventsOf := at.Provider.Features().Events; eventsOf != nil {
		events, err := eventsOf(at.Group)
		if err != nil {
			return err
		}
		for _, e := range events {
			data.Events = append(data.Events, host.EventLine{Name: at.Plugin + "." + e.Name, Brief: manifest.CleanLine(e.Brief)})
		}
	}
	next := []string{}
	if len(data.Tools) > 0 {
		next = append(next, describeCommand(data.Plugin, inviting(data.Tools).Name))
	} else if len(data.Events) > 0 {
		next = append(next, describeCommand(data.Plugin, data.Events[0].Name))
	}
	return a.PrintWithin(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s.%s: %s\n", data.Plugin, data.Group, manifest.Plural(data.Total, "tool"))
		toolLines(a, w, data.Plugin, data.Tools)
		if len(data.Events) > 0 {
			names := command.Map(data.Events, func(e host.EventLine) string {
				return e.Name[strings.LastIndexByte(e.Name, '.')+1:]
			})
			text := manifest.Plural(len(names), "event") + ": " + strings.Join(names, " ")
			fmt.Fprintln(w, command.Wrapped(text, a.Columns()-1, ""))
		}
		command.WriteLabelled(w, "Next:", next)
	}, command.Without("events", len(data.Events) > 0, &data.Events, []host.EventLine{}),
		command.WithoutDetails(data.Tools), command.WithoutLast("tools", &data.Tools))
}

// PipedLine limits the line of a tool in a pipe, in columns. It keeps a line below 22 tokens, the budget for each
// tool of a list.
const PipedLine = 97

// toolLines writes one line for each tool: its name with the required parameters, its brief and its effect. In a pipe
// the parameters are shown only if the brief fits next to them. On a terminal the brief gets the remaining width.
func toolLines(a *command.App, w io.Writer, plugin string, tools []host.Line) {
	p := a.Page(w)
	for _, t := range tools {
		t.Name = local(plugin, t.Name)
		mark := markOf(t)
		brief, width := manifest.CleanLine(t.Brief), a.Columns()
		head, needed := "", len(mark)
		if a.OutTTY {
			head = shortSignature(t, width-40)
		} else {
			width, needed = PipedLine, needed+len(brief)+2
			head = shortSignature(t, min(40, width-len(brief)-len(mark)-len("(, …)  ")))
		}
		if utf8.RuneCountInString(head)+needed > width {
			head = t.Name
		}
		if rest := width - utf8.RuneCountInString(head) - len(mark) - 2; rest >= 12 && brief != "" {
			brief = "  " + command.Fit(brief, rest)
		} else {
			brief = ""
		}
		head = p.Style(command.Bold, t.Name) + strings.TrimPrefix(head, t.Name)
		fmt.Fprintf(w, "%s%s%s\n", head, brief, p.Style(cmp.Or(command.EffectStyle[t.Effect], command.Faint), mark))
	}
}

// markOf returns the marks of a tool, such as " [write, deprecated]". A stable tool with the effect read has none.
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
	return command.When(marks != nil, " ["+strings.Join(marks, ", ")+"]")
}

// shortSignature returns the name of a tool with as many of its required parameters as fit. An ellipsis stands for
// the rest.
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

// inviting returns the tool to show to a newcomer: the first one that is neither deprecated nor experimental and
// changes the least. tools must not be empty.
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

// busiest returns the group to show to a newcomer: Network, or else the one with the most tools. groups must not be
// empty.
func busiest(groups []host.GroupLine) string {
	if slices.ContainsFunc(groups, func(g host.GroupLine) bool { return g.Name == "Network" }) {
		return "Network"
	}
	return slices.MaxFunc(groups, func(x, y host.GroupLine) int { return x.Tools - y.Tools }).Name
}

// maxBrief is the maximum length of a brief in a manifest. Only briefs of a protocol or of another system are longer.
const maxBrief = 64

// fitBrief returns a brief in the form of a list: cut to a width on a terminal, and whole in a pipe.
func fitBrief(a *command.App, brief string, width int) string {
	return command.Fit(manifest.CleanLine(brief), command.Either(a.OutTTY, width, maxBrief))
}

func qualified(plugin string, lines []host.Line) []host.Line {
	return command.Map(lines, func(l host.Line) host.Line {
		l.Name, l.Brief = plugin+"."+l.Name, manifest.CleanLine(l.Brief)
		return l
	})
}
