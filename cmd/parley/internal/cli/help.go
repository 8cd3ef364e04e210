package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// modes is the annotation that lists the modes of a command.
const modes = "modes"

// essential are the options that the compact help explains: those of a first call. The full help explains all.
var essential = map[string][]string{
	"parley": {"list", "describe", "params", "param", "jq", "out"},
}

// listsMore are the commands whose other options the compact help names: those that agents use. Options that a command
// shares with the root stand there.
var listsMore = []string{"parley", "batch", "plan", "result", "search"}

// agentHint is the part of the description that only the help has.
const agentHint = " PARLEY_AGENT=1: <= 32 KiB, binary in files."

type helpOptions struct {
	app   *App
	root  *cobra.Command
	words []string // a command, or what follows parley
}

func newHelp(app *App) *cobra.Command {
	opts := &helpOptions{app: app}
	return &cobra.Command{
		Use:               "help [COMMAND]",
		Args:              cobra.ArbitraryArgs,
		Short:             "Help",
		Example:           "parley help search",
		ValidArgsFunction: completeCommands,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.root, opts.words = cmd.Root(), args
			return runHelp(cmd.Context(), opts)
		},
	}
}

func runHelp(ctx context.Context, opts *helpOptions) error {
	target, rest, err := opts.root.Find(opts.words)
	switch {
	case err == nil && len(rest) == 0:
		return opts.app.help(target)
	case err == nil && target.HasSubCommands() && target.HasParent():
		return unknownCommand(target, rest[0])
	}
	return opts.app.helpAbout(ctx, opts.root, opts.words)
}

// completeCommands completes the commands below the words before.
func completeCommands(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	target, _, err := cmd.Root().Find(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, c := range target.Commands() {
		if c.IsAvailableCommand() && strings.HasPrefix(c.Name(), typed) {
			found = append(found, c.Name()+"\t"+c.Short)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// helpAbout prints how the thing is used that words after parley name: a plugin, a group, a tool, an event or a type.
// With --json it prints the list or the documentation.
func (a *App) helpAbout(ctx context.Context, root *cobra.Command, words []string) error {
	at, _, err := a.find(ctx, words, false)
	if err != nil {
		return err
	}
	if at.Tool != nil || at.Entry != nil {
		write := func(w io.Writer, doc *command.DescribedTool) {
			if a.json {
				_ = writeJSON(w, doc, a.OutTTY)
				return
			}
			a.toolUsage(w, root, at, doc)
		}
		count := func(w io.Writer, docs *host.Docs) { write(w, a.deps.Described(docs)) }
		doc, err := command.Describe(countDocs(ctx, count), a.deps,
			command.DescribeOptions{Tool: at.Name(), Tier: manifest.Tier2})
		if err != nil {
			return err
		}
		return a.write(func(w io.Writer) { write(w, doc) })
	}
	if a.json {
		return a.list(at)
	}
	return a.pluginUsage(root, at)
}

// help prints the help of a command; that of the root is about all commands.
func (a *App) help(cmd *cobra.Command) error {
	if cmd.HasParent() {
		doc := a.helpOf(cmd, true)
		if a.json {
			return a.printDocument(doc)
		}
		return a.write(func(w io.Writer) { helpText(w, doc, true) })
	}
	doc := a.rootHelp(cmd)
	if a.json {
		return a.printDocument(doc)
	}
	return a.write(func(w io.Writer) {
		fmt.Fprintf(w, "%s\n\n", wrapped("parley "+doc.Version+": "+doc.Description, 80, ""))
		for i, c := range doc.Commands {
			helpText(w, c, i == 0 || a.full)
		}
		fmt.Fprintln(w, "\nExit codes:")
		for _, o := range exitTable() {
			fmt.Fprintf(w, "  %-5s %s\n", o[0], o[1])
		}
		fmt.Fprintln(w, "\nNext:")
		for _, n := range doc.Next {
			fmt.Fprintln(w, "  "+n)
		}
	})
}

// write prints text to stdout in one write.
func (a *App) write(text func(io.Writer)) error {
	var b strings.Builder
	text(&b)
	_, err := io.WriteString(a.Out, b.String())
	return writeError(err)
}

// rootHelp returns the help of all commands.
func (a *App) rootHelp(root *cobra.Command) command.HelpData {
	doc := command.HelpData{
		Name: "parley", Version: parley.Version, Description: description + agentHint, ExitCodes: map[string]string{},
		Next: []string{"parley --list", `parley search "what you want"`, "parley --help --json --full"},
	}
	doc.Commands = append(doc.Commands, a.helpOf(root, a.full))
	for _, c := range root.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		doc.Commands = append(doc.Commands, a.helpOf(c, a.full))
		if a.full {
			for _, sub := range c.Commands() {
				doc.Commands = append(doc.Commands, a.helpOf(sub, true))
			}
		}
	}
	for _, row := range exitTable() {
		meaning := row[1]
		if !a.full { // the names are enough for agents
			meaning, _, _ = strings.Cut(meaning, ":")
		}
		doc.ExitCodes[row[0]] = meaning
	}
	return doc
}

// exitTable returns the exit codes and their meanings, with a row for those that tools declare.
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

// helpOf returns the help of one command. Unless full is set, it explains the options of a first call only, and has the
// others by name.
func (a *App) helpOf(cmd *cobra.Command, full bool) command.CommandHelp {
	h := command.CommandHelp{
		Name:        strings.TrimPrefix(commandName(cmd), "parley "),
		Description: cmd.Short, Options: []command.OptionHelp{}, Examples: []string{},
	}
	if m := cmd.Annotations[modes]; m != "" {
		h.Modes = strings.Fields(m)
	}
	if cmd.Example != "" {
		h.Examples = strings.Split(cmd.Example, "\n")
	}
	if !full && cmd.HasParent() {
		h.Examples = []string{}
	}
	if full && cmd.Long != "" {
		h.Description = cmd.Short + ". " + cmd.Long
	}
	wanted := essential[cmd.Name()]
	visit := func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if !full && !slices.Contains(wanted, f.Name) {
			shared := cmd.HasParent() && cmd.Root().Flags().Lookup(f.Name) != nil
			if slices.Contains(listsMore, cmd.Name()) && !shared {
				h.More = append(h.More, "--"+f.Name)
			}
			return
		}
		o := command.OptionHelp{Name: "--" + f.Name, Type: optionType(f), Description: f.Usage, Default: optionDefault(f)}
		h.Options = append(h.Options, o)
	}
	if full {
		for _, word := range strings.Fields(cmd.Use)[1:] {
			name := strings.TrimSuffix(word, "...")
			if optional, is := strings.CutPrefix(name, "["); is {
				name = strings.TrimSuffix(strings.TrimSuffix(optional, "]"), "...")
			}
			required := !strings.HasPrefix(word, "[")
			h.Options = append(h.Options,
				command.OptionHelp{Name: name, Type: "string", Required: required, Description: "positional"})
		}
	}
	cmd.LocalFlags().VisitAll(visit)
	if !cmd.HasParent() {
		return h
	}
	if full && a.full {
		return h // the help of the root has the global options
	}
	if full {
		cmd.InheritedFlags().VisitAll(visit)
		for _, child := range cmd.Commands() {
			h.Commands = append(h.Commands, command.SubcommandHelp{
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

// optionType returns the type of an option in the words of JSON Schema.
func optionType(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "boolean"
	case "int":
		return "integer"
	case "stringArray":
		return "array"
	case "duration":
		return "duration"
	}
	return "string"
}

// optionDefault returns the default of an option, nil if it is the zero value.
func optionDefault(f *pflag.Flag) any {
	switch f.Value.Type() {
	case "bool":
		return nil // every switch is off
	case "int":
		if n, err := strconv.Atoi(f.DefValue); err == nil && n != 0 {
			return n
		}
		return nil
	case "duration", "stringArray":
		return nil
	}
	if f.DefValue == "" {
		return nil
	}
	return f.DefValue
}

// helpText prints the help of a command for people. In full it has options and examples.
func helpText(w io.Writer, c command.CommandHelp, full bool) {
	more := func() {
		if len(c.More) > 0 {
			fmt.Fprintln(w, wrapped("    also: "+strings.Join(c.More, " "), 80, "          "))
		}
	}
	if !full {
		fmt.Fprintf(w, "  %-28s %s\n", "parley "+c.Name, fit(c.Description, 49))
		for _, o := range c.Options {
			fmt.Fprintf(w, "    %-26s %s\n", o.Name, o.Description)
		}
		more()
		return
	}
	fmt.Fprintf(w, "parley %s\n", c.Name)
	fmt.Fprintln(w, wrapped("  "+strings.ReplaceAll(c.Description, "\n", " "), 80, "  "))
	for _, child := range c.Commands {
		fmt.Fprintf(w, "    %-26s %s\n", child.Name, fit(child.Description, 49))
	}
	optionLines(w, c.Options, 80)
	more()
	for _, e := range c.Examples {
		fmt.Fprintf(w, "  $ %s\n", e)
	}
}

// optionLines writes each option with its type, description and default.
func optionLines(w io.Writer, options []command.OptionHelp, width int) {
	for _, o := range options {
		text := o.Description
		if o.Default != nil {
			text += fmt.Sprintf(" (default %v)", o.Default)
		}
		name := o.Name
		if o.Type != "boolean" && strings.HasPrefix(name, "--") {
			name += " " + strings.ToUpper(o.Type)
		}
		// The text is wrapped as if it began after the name, which then replaces its indentation.
		indent := strings.Repeat(" ", 27)
		lead := fmt.Sprintf("    %-22s ", name)
		fmt.Fprintln(w, lead+strings.TrimLeft(wrapped(strings.Repeat(" ", max(27, len(lead)))+text, width, indent), " "))
	}
}
