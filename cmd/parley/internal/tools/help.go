package tools

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/documents"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// modes is the annotation that lists the modes of a command.
const modes = "modes"

// essential are the options that the compact help explains: the options of a first call. The full help explains all.
var essential = []string{"list", "describe", "params", "param", "jq", "out"}

// listsMore are the commands that agents use. The compact help names their other options. It names options that a
// command shares with the root only at the root.
var listsMore = []string{"parley", "batch", "list", "plan", "result", "search"}

// agentHint is a part of the description that only the help has.
const agentHint = " PARLEY_AGENT=1: 32 KiB answers, binary in files."

type helpOptions struct {
	Cmd   *cobra.Command
	Words []string `word:""`
}

var helpCommand = &command.Command[*helpOptions]{
	Use: "help [TOPIC]", Run: runHelp, Words: completeCommands, AnyWords: true,
	Short:   "Explain a command or a document",
	Example: "parley help search\nparley help authors\nparley help mcp.md sessions",
}

// runHelp prints the help of a command, a document, or the help for a word that may follow parley. A command takes
// precedence over the document of the same name, which can also be named by its file.
func runHelp(ctx context.Context, app *command.App, opts *helpOptions) error {
	root, words := opts.Cmd.Root(), opts.Words
	target, rest, err := root.Find(words)
	topic, text, isDocument := documents.Find(append(words, "")[0])
	switch {
	case err == nil && len(rest) == 0:
		err = help(app, target)
		if isDocument && err == nil && !app.JSON {
			err = command.WriteText(app, command.Text("Document: parley help %s.md\n", topic))
		}
		return err
	case isDocument && (target == root || strings.HasSuffix(words[0], ".md")):
		return documents.Print(app, topic, text, words[1:])
	case err == nil && target.HasSubCommands() && target.HasParent():
		return command.UnknownCommand(app, target, rest[0])
	}
	if err = helpAbout(ctx, app, root, words); err != nil && len(words) == 1 {
		err = nearTopic(app, words[0], err)
	}
	return err
}

// completeCommands completes the subcommands of the preceding words.
func completeCommands(_ *command.App, cmd *cobra.Command, args []string, typed string) (
	found []string, _ cobra.ShellCompDirective) {
	target, _, err := cmd.Root().Find(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, c := range target.Commands() {
		if c.IsAvailableCommand() {
			found = append(found, c.Name()+"\t"+c.Short)
		}
	}
	if len(args) == 0 {
		found = append(found, command.Map(documents.Topics(), func(t string) string { return t + "\tdocument" })...)
	}
	return command.StartingWith(typed, found), cobra.ShellCompDirectiveNoFileComp
}

// helpAbout prints how to use what the words after parley name: a plugin, a group, a tool, an event or a type. With
// --json it prints the list or the documentation.
func helpAbout(ctx context.Context, a *command.App, root *cobra.Command, words []string) error {
	at, _, err := find(ctx, a, words, false)
	if err != nil {
		return err
	}
	if at.Tool != nil || at.Entry != nil {
		return printDescribed(ctx, a, at.Name(), manifest.Tier2, func(w io.Writer, doc *describedTool) {
			if a.JSON {
				_ = command.WriteJSON(w, doc, a.OutTTY)
				return
			}
			toolUsage(a, w, root, at, doc)
		})
	}
	if a.JSON {
		return list(a, at)
	}
	return pluginUsage(a, root, at)
}

// help prints the help of a command. The root's help is about all commands.
func help(a *command.App, cmd *cobra.Command) error {
	if cmd.HasParent() {
		doc := helpOf(a, cmd, true)
		if a.JSON {
			return a.PrintDocument(doc)
		}
		doc.More = append(doc.More, "(explained by parley --help --full)")
		return command.WriteText(a, func(w io.Writer) { helpText(w, doc, true) })
	}
	if a.OutTTY && !a.Full && !a.JSON {
		return command.WriteText(a, func(w io.Writer) { peopleHelp(a, w, cmd) })
	}
	doc := rootHelp(a, cmd)
	if a.JSON {
		return a.PrintDocument(doc)
	}
	return command.WriteText(a, func(w io.Writer) {
		fmt.Fprintf(w, "%s\n\n", command.Wrapped("parley "+doc.Version+": "+doc.Description, 80, ""))
		for i, c := range doc.Commands {
			helpText(w, c, i == 0 || a.Full)
		}
		fmt.Fprintln(w, "\nExit codes:")
		for _, o := range exitTable() {
			fmt.Fprintf(w, "  %-5s %s\n", o[0], o[1])
		}
		fmt.Fprintln(w, "\nNext:")
		command.WriteLines(w, "  ", doc.Next)
		topics := command.Wrapped("  "+strings.Join(documents.Topics(), " "), 80, "  ")
		fmt.Fprintf(w, "\nDocuments, for parley help TOPIC:\n%s\n", topics)
	})
}

// rootHelp returns the help of all commands.
func rootHelp(a *command.App, root *cobra.Command) HelpData {
	doc := HelpData{
		Name: "parley", Version: parley.Version, Description: description + agentHint, ExitCodes: map[string]string{},
		Next: []string{"parley --list", `parley search "what you want"`, "parley CMD --help --json",
			"parley --help --json --full"},
	}
	doc.Commands = append(doc.Commands, helpOf(a, root, a.Full))
	for _, c := range root.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		doc.Commands = append(doc.Commands, helpOf(a, c, a.Full))
		if a.Full {
			for _, sub := range c.Commands() {
				doc.Commands = append(doc.Commands, helpOf(a, sub, true))
			}
		}
	}
	for _, row := range exitTable() {
		meaning := row[1]
		if !a.Full { // for agents, the names are enough
			meaning, _, _ = strings.Cut(meaning, ":")
		}
		doc.ExitCodes[row[0]] = meaning
	}
	return doc
}

// exitTable returns the exit codes and their meanings, with a row for the codes that tools declare.
func exitTable() [][2]string {
	var rows [][2]string
	for _, o := range host.Outcomes() {
		rows = append(rows, [2]string{strconv.Itoa(o.Exit), o.Meaning()})
		if o.Exit == 1 {
			rows = append(rows, [2]string{"2-79", "the tool's own"})
		}
	}
	return rows
}

// helpOf returns the help of one command. Unless full is set, it explains only the options of a first call, and names
// the others, as it does with the global options.
func helpOf(a *command.App, cmd *cobra.Command, full bool) CommandHelp {
	h := CommandHelp{
		Name: strings.TrimPrefix(commandName(cmd), "parley "), Description: cmd.Short,
		Modes: strings.Fields(cmd.Annotations[modes]),
	}
	if full {
		h.Options, h.Examples = []optionHelp{}, []string{}
	}
	if cmd.Example != "" && (full || !cmd.HasParent()) {
		h.Examples = strings.Split(cmd.Example, "\n")
	}
	if full && cmd.Long != "" {
		h.Description = cmd.Short + ". " + cmd.Long
	}
	visit := func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		global := full && cmd.InheritedFlags().Lookup(f.Name) != nil
		if global || !full && (cmd.HasParent() || !slices.Contains(essential, f.Name)) {
			shared := cmd.HasParent() && cmd.Root().Flags().Lookup(f.Name) != nil
			if global || slices.Contains(listsMore, cmd.Name()) && !shared {
				h.More = append(h.More, "--"+f.Name)
			}
			return
		}
		o := optionHelp{Name: "--" + f.Name, Type: OptionType(f), Description: f.Usage, Default: optionDefault(f)}
		h.Options = append(h.Options, o)
	}
	if full {
		for _, word := range strings.Fields(cmd.Use)[1:] {
			name, optional := strings.CutPrefix(strings.TrimSuffix(word, "..."), "[")
			if optional {
				name = strings.TrimSuffix(strings.TrimSuffix(name, "]"), "...")
			}
			h.Options = append(h.Options, optionHelp{Name: name, Type: "string", Required: !optional, Description: "positional"})
		}
	}
	cmd.LocalFlags().VisitAll(visit)
	if full && !a.Full && cmd.HasParent() { // the root's help has the global options
		cmd.InheritedFlags().VisitAll(visit)
		for _, child := range cmd.Commands() {
			h.Commands = append(h.Commands, subcommandHelp{
				Name: strings.TrimPrefix(commandName(child), "parley "), Description: child.Short,
			})
		}
	}
	return h
}

// commandName returns the path of a command and its positional words.
func commandName(cmd *cobra.Command) string {
	_, words, _ := strings.Cut(cmd.Use, " ")
	return strings.TrimSpace(cmd.CommandPath() + " " + words)
}

// optionTypes maps types of options that are not strings to types of JSON Schema.
var optionTypes = map[string]string{"bool": "boolean", "int": "integer", "stringArray": "array", "duration": "duration"}

// OptionType returns the type of an option as a type of JSON Schema.
func OptionType(f *pflag.Flag) string { return cmp.Or(optionTypes[f.Value.Type()], "string") }

// optionDefault returns the default of an option, or nil if it is the zero value.
func optionDefault(f *pflag.Flag) any {
	n, err := strconv.Atoi(f.DefValue)
	switch kind := f.Value.Type(); {
	case slices.Contains([]string{"bool", "duration", "stringArray"}, kind), f.DefValue == "", kind == "int" && n == 0:
		return nil
	case kind == "int" && err == nil:
		return n
	}
	return f.DefValue
}

// helpText prints the help of a command for people. If full is set, it includes options and examples.
func helpText(w io.Writer, c CommandHelp, full bool) {
	more := func() {
		command.PrintIf(w, len(c.More) > 0, "%s\n", command.Wrapped("    also: "+strings.Join(c.More, " "), 80, "          "))
	}
	if !full {
		fmt.Fprintf(w, "  %-28s %s\n", "parley "+c.Name, command.Fit(c.Description, 49))
		more()
		return
	}
	text, rows, _ := strings.Cut(c.Description, "\n\n")
	fmt.Fprintf(w, "parley %s\n%s\n", c.Name, command.Wrapped("  "+strings.ReplaceAll(text, "\n", " "), 80, "  "))
	for row := range strings.Lines(rows) {
		fmt.Fprintln(w, command.Wrapped("    "+row, 80, "      "))
	}
	for _, child := range c.Commands {
		fmt.Fprintf(w, "    %-26s %s\n", child.Name, command.Fit(child.Description, 49))
	}
	optionLines(w, c.Options, 80)
	more()
	command.WriteLines(w, "  $ ", c.Examples)
}

// optionLines writes each option with its type, description and default.
func optionLines(w io.Writer, options []optionHelp, width int) {
	for _, o := range options {
		text := o.Description + command.When(o.Default != nil, fmt.Sprintf(" (default %v)", o.Default))
		isValued := o.Type != "boolean" && strings.HasPrefix(o.Name, "--")
		name := o.Name + command.When(isValued, " "+strings.ToUpper(o.Type))
		// The text is wrapped as if it began after the name. The name then replaces the text's indentation.
		indent := strings.Repeat(" ", 27)
		lead := fmt.Sprintf("    %-22s ", name)
		fmt.Fprintln(w, lead+strings.TrimLeft(command.Wrapped(strings.Repeat(" ", max(27, len(lead)))+text, width, indent),
			" "))
	}
}

// HelpData is the document of --help --json: everything that an agent needs before its first call.
type HelpData struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	Commands    []CommandHelp     `json:"commands"`
	ExitCodes   map[string]string `json:"exit_codes"`
	Next        []string          `json:"next"`
}

// CommandHelp is the help of a command.
type CommandHelp struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Modes       []string     `json:"modes,omitempty"`
	Options     []optionHelp `json:"options,omitzero"`       // the compact form omits empty ones
	More        []string     `json:"more_options,omitempty"` // names only; the full form explains them
	Examples    []string     `json:"examples,omitzero"`
	// Commands are the subcommands, in the help of a single command.
	Commands []subcommandHelp `json:"commands,omitempty"`
}

// subcommandHelp is a line about a subcommand.
type subcommandHelp struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// optionHelp is the help of an option or of a positional word.
type optionHelp struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Required    bool   `json:"required"`
	Default     any    `json:"default,omitempty"` // nil if there is none, or for a switch that is off by default
	Description string `json:"description,omitempty"`
}

// runDescribe prints documentation: a page on a terminal, otherwise the document itself.
func runDescribe(ctx context.Context, app *command.App, tool string, tier int) error {
	ctx = advice.WithMaxTokens(ctx, app.MaxTokens)
	return printDescribed(ctx, app, tool, tier, func(w io.Writer, doc *describedTool) {
		if app.OutTTY && !app.JSON {
			app.Page(w).Docs(doc.ToolDocs, doc.Next)
			return
		}
		_ = command.WriteJSON(w, doc, app.OutTTY)
	})
}

// describedTool is the documentation of a tool, with the next commands.
type describedTool struct {
	*manifest.ToolDocs
	Next []string `json:"next,omitempty"`
}

// printDescribed writes the documentation of a tool, an event or a type, by its qualified name, at a tier from 1 to
// 3. The error is not_found for an unknown name, and invalid_args for a tier that does not exist.
func printDescribed(ctx context.Context, app *command.App, tool string, tier int,
	write func(w io.Writer, doc *describedTool)) error {
	ctx = command.CountDocs(ctx, func(w io.Writer, docs *host.Docs) { write(w, Described(app, docs)) })
	h, principal, err := app.HostPrincipal(ctx)
	if err != nil {
		return err
	}
	docs, err := h.Describe(ctx, principal, tool, tier)
	if err != nil {
		return err
	}
	return command.WriteText(app, func(w io.Writer) { write(w, Described(app, docs)) })
}

// Described returns documentation with the commands for its next steps.
func Described(app *command.App, docs *host.Docs) *describedTool {
	return &describedTool{ToolDocs: app.WithCommands(docs.ToolDocs), Next: app.Next(docs.Next, nil)}
}

// browserOnly are the options that have no effect for a plugin that has no browser and no events.
var browserOnly = []string{
	"browser", "target", "context", "on-dialog", "wait", "drain", "all", "send-anyway", "listen", "until", "max",
	"trigger", "live",
}

// discoveryOnly are the options that ask about tools instead of calling one.
var discoveryOnly = []string{"list", "describe", "tier", "max-tokens", "search", "listen", "until", "max", "trigger"}

// usageExamples is the number of example calls in the help of a plugin.
const usageExamples = 3

// pluginUsage prints how to use a plugin or a group: its groups and tools, options, examples and what to type next.
func pluginUsage(a *command.App, root *cobra.Command, at host.Address) error {
	groups, err := at.Provider.Groups()
	tools, failed := at.Provider.Lines(at.Group)
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	info := at.Provider.Info()
	name, brief, tool := "parley "+at.Plugin, info.Brief, "TOOL"
	if i := slices.IndexFunc(groups, func(g host.GroupLine) bool { return g.Name == at.Group }); i >= 0 {
		name, brief, tool, groups = name+" "+at.Group, groups[i].Brief, at.Group+".TOOL", nil
	}
	call := "parley " + at.Plugin + " " + tool
	return command.WriteText(a, func(w io.Writer) {
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

// usageCalls returns examples of calls: of tools without a group, or else of tools in the busiest group.
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
			calls = append(calls, a.Command(step.Call(at.Plugin+"."+t.Name, t.Examples[0].Params)))
		}
	}
	return calls
}

// toolUsage prints how to call a tool: its parameters, the options of a call, and the rest of its documentation. For
// an event or a type, which cannot be called, it prints only the documentation.
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
		word := strings.ToUpper(manifest.CleanLine(name)) + command.When(params[i].Type == "array", "...")
		usage += " " + command.Either(params[i].Required, word, "["+word+"]")
		shown++
	}
	for _, q := range params {
		if q.Required && !slices.Contains(at.Tool.Positional, q.Name) {
			usage += " --param " + q.Name + "=" + strings.ToUpper(q.Type)
			shown++
		}
	}
	usage += command.When(shown < len(params), " [--param NAME=VALUE...]")
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

// nearTopic turns the error for an unknown word after help into one with the nearest document or command.
func nearTopic(a *command.App, word string, err error) error {
	e := host.AsError(err)
	if _, local, _ := strings.Cut(word, "."); e.Code != host.NotFound || local != "" && len(e.DidYouMean) > 0 {
		return err // or the name of a tool
	}
	near := command.Nearest(word, slices.Concat(documents.Topics(), a.Commands.Names()))
	if stem := strings.TrimSuffix(strings.ToLower(word), "ies"); len(near) == 0 && len(stem) > 2 { // policies means policy
		near = command.Map(slices.DeleteFunc(documents.Topics(), func(t string) bool { return !strings.HasPrefix(t, stem) }),
			func(t string) spelling.Near { return spelling.Near{Name: t, Distance: 3} })
	}
	e.Message = "no command, document or plugin is named " + host.Printable(word)
	e.Steps, e.Next = nil, nil
	if e.DidYouMean = near; len(near) > 0 {
		return e.WithNext("parley help " + near[0].Name)
	}
	return e.WithNext("parley help")
}
