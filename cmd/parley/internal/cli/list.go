package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

func newList(app *App) *cobra.Command {
	return &cobra.Command{
		Use:               "list [PLUGIN] [GROUP]",
		Short:             "Same as --list",
		Example:           "parley list cdp Network",
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return app.listPlugins()
			}
			return app.dispatch(cmd, args, &callFlags{list: true})
		},
	}
}

// listPlugins is the first level: every plugin, one line each.
func (a *App) listPlugins() error {
	catalog, err := a.deps.Catalog()
	if err != nil {
		return err
	}
	infos := []host.Info{}
	for _, p := range catalog.Providers() {
		info := p.Info()
		info.Brief = manifest.CleanLine(info.Brief)
		infos = append(infos, info)
	}
	next := []string{"parley cdp --list", "parley search \"what you want\""}
	data := map[string]any{"plugins": infos, "total": len(infos)}
	return a.answer(data, next, func(w io.Writer) {
		width := 0
		for _, i := range infos {
			width = max(width, len(i.Name))
		}
		p := a.page(w)
		for _, i := range infos {
			count := plural(i.Tools, "tool")
			if i.Groups > 0 {
				count = plural(i.Groups, "group") + ", " + count
			}
			name := p.style(bold, i.Name) + strings.Repeat(" ", width-len(i.Name))
			fmt.Fprintf(w, "%s  %s (%s)\n", name, a.fitBrief(i.Brief, a.columns()-width-len(count)-5), count)
		}
		fmt.Fprintf(w, "Next: %s\n", strings.Join(next, "  |  "))
	})
}

// pluginList is the second level: the groups of a plugin, and the tools that stand in none.
type pluginList struct {
	Plugin   string           `json:"plugin"`
	Groups   []host.GroupLine `json:"groups"`
	Tools    []host.Line      `json:"tools"`
	Total    int              `json:"total"`
	Coverage any              `json:"coverage,omitempty"`
}

func (a *App) listPlugin(at host.Address) error {
	data := pluginList{Plugin: at.Plugin}
	groups, err := at.Provider.Groups()
	if err != nil {
		return err
	}
	tools, err := at.Provider.Lines("")
	if err != nil {
		return err
	}
	data.Groups, data.Tools = append([]host.GroupLine{}, groups...), qualified(at.Plugin, tools)
	data.Total = len(groups)
	if len(groups) == 0 {
		data.Total = len(tools)
	}
	if s, ok := at.Provider.(host.Surveyor); ok && a.json {
		if data.Coverage, err = s.Coverage(); err != nil {
			return err
		}
	}
	next := []string{}
	if len(groups) > 0 {
		next = append(next, "parley "+at.Plugin+" "+busiest(groups)+" --list")
	}
	if len(tools) > 0 {
		next = append(next, "parley "+at.Plugin+" "+inviting(tools).Name+" --describe")
	}
	return a.answer(data, next, func(w io.Writer) {
		if len(groups) == 0 {
			a.toolLines(w, tools)
			fmt.Fprintln(w, "Next: "+next[0])
			return
		}
		if len(groups) <= 20 {
			for _, g := range groups {
				name := a.page(w).style(bold, g.Name)
				fmt.Fprintf(w, "%s (%d)  %s\n", name, g.Tools, a.fitBrief(g.Brief, a.columns()-len(g.Name)-8))
			}
			a.toolLines(w, tools)
		} else {
			fmt.Fprintf(w, "%s with their number of tools:\n", plural(len(groups), "group"))
			compactGroups(w, a.columns()-4, groups, tools)
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

// compactGroups writes many groups as "Name count" in running text: what a plugin of sixty groups costs an agent.
func compactGroups(w io.Writer, width int, groups []host.GroupLine, tools []host.Line) {
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
	if len(tools) > 0 {
		var names []string
		for _, t := range tools {
			names = append(names, t.Name)
		}
		fmt.Fprintf(w, "Verbs: %s\n", strings.Join(names, " "))
	}
}

// groupList is the third level: the tools of a group.
type groupList struct {
	Plugin string           `json:"plugin"`
	Group  string           `json:"group"`
	Tools  []host.Line      `json:"tools"`
	Events []host.EventLine `json:"events"`
	Total  int              `json:"total"`
}

func (a *App) listGroup(at host.Address) error {
	tools, err := at.Provider.Lines(at.Group)
	if err != nil {
		return err
	}
	data := groupList{
		Plugin: at.Plugin, Group: at.Group, Tools: qualified(at.Plugin, tools), Events: []host.EventLine{}, Total: len(tools),
	}
	if g, ok := at.Provider.(host.Glossary); ok {
		events, err := g.Events(at.Group)
		if err != nil {
			return err
		}
		for _, e := range events {
			data.Events = append(data.Events, host.EventLine{Name: at.Plugin + "." + e.Name, Brief: manifest.CleanLine(e.Brief)})
		}
	}
	next := []string{}
	if len(tools) > 0 {
		next = append(next, "parley "+at.Plugin+" "+inviting(tools).Name+" --describe")
	} else if len(data.Events) > 0 {
		next = append(next, "parley "+at.Plugin+" "+strings.TrimPrefix(data.Events[0].Name, at.Plugin+".")+" --describe")
	}
	return a.answer(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s.%s: %s\n", at.Plugin, at.Group, plural(len(tools), "tool"))
		a.toolLines(w, tools)
		if len(data.Events) > 0 {
			names := make([]string, 0, len(data.Events))
			for _, e := range data.Events {
				names = append(names, e.Name[strings.LastIndexByte(e.Name, '.')+1:])
			}
			fmt.Fprintln(w, wrapped(plural(len(names), "event")+": "+strings.Join(names, " "), a.columns()-1, ""))
		}
		for _, n := range next {
			fmt.Fprintln(w, "Next: "+n)
		}
	})
}

// pipedLine bounds a tool's line in a pipe: below 22 tokens, the budget of a list for each tool.
const pipedLine = 97

// toolLines writes one line a tool: its name with what it requires, its brief, its effect. In a pipe the brief is whole
// if it fits the line without the parameters; on a terminal it gets what they leave.
func (a *App) toolLines(w io.Writer, tools []host.Line) {
	p := a.page(w)
	for _, t := range tools {
		var marks []string
		if t.Effect != manifest.EffectRead {
			marks = append(marks, t.Effect)
		}
		if t.Deprecated {
			marks = append(marks, "deprecated")
		} else if t.Experimental {
			marks = append(marks, "experimental")
		}
		mark := ""
		if len(marks) > 0 {
			mark = " [" + strings.Join(marks, ", ") + "]"
		}
		brief, width := manifest.CleanLine(t.Brief), a.columns()
		head := shortSignature(t, width-40)
		if !a.OutTTY {
			width = pipedLine
			head = shortSignature(t, min(40, width-len(brief)-len(mark)-len("(, …)  ")))
		}
		need := len(mark)
		if !a.OutTTY {
			need += len(brief) + 2
		}
		if utf8.RuneCountInString(head)+need > width {
			head = t.Name
		}
		if room := width - utf8.RuneCountInString(head) - len(mark) - 2; room >= 12 {
			brief = "  " + fit(brief, room)
		} else {
			brief = ""
		}
		head = p.style(bold, t.Name) + strings.TrimPrefix(head, t.Name)
		fmt.Fprintf(w, "%s%s%s\n", head, brief, p.style(cmp.Or(effectStyle[t.Effect], faint), mark))
	}
}

// shortSignature keeps the required parameters of a signature, as many as fit, and says by an ellipsis that there
// are more.
func shortSignature(t host.Line, width int) string {
	open := strings.IndexByte(t.Signature, '(')
	if open < 0 {
		return t.Name
	}
	var kept []string
	more := false
	for _, p := range strings.Split(strings.TrimSuffix(t.Signature[open+1:], ")"), ", ") {
		name, _, _ := strings.Cut(p, ":")
		switch {
		case name == "":
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

func qualified(plugin string, lines []host.Line) []host.Line {
	out := make([]host.Line, 0, len(lines))
	for _, l := range lines {
		l.Name = plugin + "." + l.Name
		l.Brief = manifest.CleanLine(l.Brief)
		out = append(out, l)
	}
	return out
}

// inviting is the tool that a newcomer is pointed to: the first that is neither on its way out nor in, and harmless
// if there is one.
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

// busiest names the group that a newcomer most likely wants an example of.
func busiest(groups []host.GroupLine) string {
	for _, g := range groups {
		if g.Name == "Network" {
			return g.Name
		}
	}
	return slices.MaxFunc(groups, func(x, y host.GroupLine) int { return x.Tools - y.Tools }).Name
}

// maxBrief is how long a brief may be that a manifest has. Only a protocol's or a foreign one is longer.
const maxBrief = 64

// fitBrief is a brief as a list shows it: cut to the room that a terminal has, and whole in a pipe.
func (a *App) fitBrief(brief string, room int) string {
	if !a.OutTTY {
		room = maxBrief
	}
	return fit(manifest.CleanLine(brief), room)
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

func plural(n int, noun string) string { return manifest.Plural(n, noun) }
