// Package cli is Parley's command line as a whole: the tree of commands, the handling of unknown lines, and the
// checks of the lines that are offered as next steps.
package cli

import (
	"errors"
	"fmt"
	"log"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/admin"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/history"
	"github.com/parley-tools/parley/cmd/parley/internal/learning"
	"github.com/parley-tools/parley/cmd/parley/internal/plugins"
	"github.com/parley-tools/parley/cmd/parley/internal/serve"
	"github.com/parley-tools/parley/cmd/parley/internal/tools"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Main runs one command line and returns its exit code.
func Main(args []string, streams *command.Streams) (code int) {
	app := newFront(streams, args)
	defer app.Close()
	// Libraries log foreign text, so their lines are cleaned, and shown only with --debug.
	log.SetFlags(0)
	log.SetOutput(lines(func(line string) { app.Debugf("%s", manifest.CleanLine(line)) }))
	defer func() {
		if fault := recover(); fault != nil {
			app.Debugf("%s", debug.Stack())
			code = app.Fail(host.Errorf(host.Internal, "internal error: %v", fault))
		}
	}()

	root := newRootFor(app, args, nil)
	root.SetArgs(args)
	err := root.ExecuteContext(command.CountDocs(app.Signaled, app.WriteErrorDocs))
	if err == nil {
		err = app.HelpErr // cobra's help cannot fail
	}
	if err == nil {
		app.ToText()
		return 0
	}
	if again, is := errors.AsType[*retyped](err); is {
		return Main(again.args, streams)
	}
	if ended, is := errors.AsType[*command.ExitStatus](err); is {
		app.ToText()
		return ended.Code // everything has been printed
	}
	return app.Fail(err)
}

// lines is a writer that passes each write to a function.
type lines func(string)

func (f lines) Write(p []byte) (int, error) {
	f(string(p))
	return len(p), nil
}

// newRootFor returns the part of the command tree that a command line needs, because creating all of it takes 0.3 ms.
// Help, completion and the checks of command lines use it, too.
func newRootFor(app *command.App, words []string, run tools.RunRootFunc) *cobra.Command {
	isOption := func(word string) bool { return strings.HasPrefix(word, "-") && word != "-h" && word != "--help" }
	first := "help" // without words, parley introduces itself
	if len(words) > 0 {
		first = words[0]
	}
	isAll := false
	switch {
	case isOption(first) && !slices.ContainsFunc(words, func(word string) bool { return !isOption(word) }):
	case strings.HasPrefix(first, "-"), strings.HasPrefix(first, cobra.ShellCompRequestCmd), first == "help",
		first == "completion":
		isAll = true
	}
	root := tools.NewToolCommand(app, run)
	for _, c := range commandTable().All() {
		if isAll || c.Name() == first {
			root.AddCommand(c.New(app))
		}
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(app, cmd, err) })
	return root
}

// commandTable returns the commands below the root. It is created once, because each check of a line needs it.
var commandTable = sync.OnceValue(func() command.Help {
	table := command.Help{{Chapter: "Find and run tools"}, {Chapter: "Connect agents"}, {Chapter: "Add plugins"},
		{Chapter: "Decide what they may do"}, {Chapter: "See what happened"}, {Chapter: "Set up"}}
	for i := range table {
		for _, of := range []command.Chapters{serve.Commands, plugins.Commands, admin.Commands, tools.Commands,
			learning.Commands, history.Commands} {
			table[i].Of = append(table[i].Of, of[table[i].Chapter]...)
		}
	}
	return table
})

// flagError turns an error of pflag into one that says what was given, what exists and what to type next.
func flagError(a *command.App, cmd *cobra.Command, err error) error {
	e := &host.Error{Code: host.InvalidArgs, Message: manifest.CleanLine(err.Error()), Cause: err}
	var invalid *host.Error // the error of a value that validates itself
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		path := strings.Fields(cmd.CommandPath())[1:]
		if n := len(path); cmd.HasSubCommands() && n < len(a.Args) && slices.Equal(path, a.Args[:n]) {
			if word := a.Args[n]; !strings.HasPrefix(word, "-") && n > 0 {
				return command.UnknownCommand(a, cmd, word)
			}
		}
		if catalog, broken := a.Catalog(); !cmd.HasParent() && broken == nil && !strings.HasPrefix(a.Args[0], "-") {
			first := a.Args[0]
			isUnknown := len(leadsTo("", first)) > 0 || !advice.NamesOf(catalog).Knows(first)
			if at, _, err := command.Find(catalog, a.Args[:1], false); err != nil && at.Plugin == "" && isUnknown {
				return cmd.RunE(cmd, a.Args[:1]) // it refuses the word
			}
		}
		given := unknown.GetSpecifiedName()
		dashes := "--"
		if unknown.GetSpecifiedShortnames() != "" {
			dashes, given = "-", unknown.GetSpecifiedShortnames()
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		e.Message = fmt.Sprintf("unknown option %s%s", dashes, manifest.CleanLine(given))
		e.DidYouMean = command.Map(command.Nearest(given, names), func(n spelling.Near) spelling.Near {
			return spelling.Near{Name: "--" + n.Name, Distance: n.Distance}
		})
		e.Next = withOwnOption(a, cmd, dashes+given)
		if len(e.DidYouMean) > 0 && isWhole(a.Args, cmd, dashes+given, e.DidYouMean[0].Name) {
			e.Next = append(e.Next, command.Instead(a.Args, dashes+given, e.DidYouMean[0].Name))
		}
		if args := asCommand(a.Args, given); args != nil && !cmd.HasParent() {
			return &retyped{e, args}
		}
		// A single letter may be an option of another program.
		isWord := dashes == "-" && len(given) > 1 && !attached().MatchString("-"+given)
		if args := retype(a, cmd.Root(), len(e.DidYouMean)+len(e.Next) == 0); args != nil && !isWord {
			return &retyped{e, args}
		} else if isWord && !cmd.HasParent() {
			e.Next = append(e.Next, "words that begin with a dash go after --")
		}
		if catalog, broken := a.Catalog(); !cmd.HasParent() && broken == nil {
			if at, _, _ := named(a, cmd, advice.NamesOf(catalog)); at.Tool != nil {
				e.Next = append(e.Next, a.Command(step.Describe(at.Name(), 0)))
			}
			e.Next = append(e.Next, "a tool's own parameters go into --param KEY=VALUE or --params JSON")
		}
	case errors.As(err, &value) && errors.As(err, &invalid):
		e.Message = "--" + value.GetFlag().Name + ": " + invalid.Message
	case errors.As(err, &value):
		name, given := value.GetFlag().Name, manifest.CleanValue(value.GetValue())
		expected := tools.OptionType(value.GetFlag())
		e.Message = fmt.Sprintf("option --%s: %q is not a valid %s", name, given, expected)
		e.Details = []host.Detail{{Parameter: "--" + name, Keyword: "type", Provided: given, Expected: expected}}
		if expected == "duration" {
			e.Message += " such as 10s"
			if n, err := strconv.ParseFloat(given, 64); err == nil {
				unit := "s"
				if n >= 1000 { // most tools count in milliseconds
					unit = "ms"
				}
				e.Next = append(e.Next, command.Instead(a.Args, given, given+unit), "--"+name+" "+given+unit)
			}
		}
	case errors.As(err, &missing):
		e.Message = "option --" + missing.GetSpecifiedName() + " requires a value"
	}
	return e.WithNext("parley help" + strings.TrimPrefix(cmd.CommandPath(), "parley"))
}

// otherOptions lists for each option the ones of other programs that mean it, some only with a value. Those of "-"
// change nothing here.
const otherOptions = `
-: q quiet s silent no-color format=table format=text output=table output=text
debug: v verbose trace
docs: mode
json: format=json o=json output=json f=json
limit: count first head k last max max-results n tail top top-k
out: o output output-file
since: after from last`

// withOwnOption returns the command lines that have an option of Parley in place of another program's.
func withOwnOption(a *command.App, cmd *cobra.Command, given string) (lines []string) {
	at := slices.IndexFunc(a.Args, func(arg string) bool { return arg == given || strings.HasPrefix(arg, given+"=") })
	if at < 0 {
		return nil
	}
	_, value, isAttached := strings.Cut(a.Args[at], "=")
	hasNext := !isAttached && at+1 < len(a.Args) && !strings.HasPrefix(a.Args[at+1], "-")
	if hasNext {
		value = a.Args[at+1]
	}
	for line := range strings.Lines(otherOptions) {
		name, others, _ := strings.Cut(strings.TrimSpace(line), ":")
		option := cmd.Flag(name)
		for _, other := range strings.Fields(others) {
			key, only, hasOnly := strings.Cut(other, "=")
			if key != strings.TrimLeft(given, "-") || hasOnly && only != value || option == nil && name != "-" {
				continue
			}
			var own []string
			takesValue := option != nil && option.NoOptDefVal == ""
			if option != nil {
				own = append(own, "--"+name)
			}
			if takesValue {
				own = append(own, value)
			}
			end := at + 1 + command.Either(hasNext && (takesValue || hasOnly), 1, 0)
			words := slices.Concat(a.Args[:at], own, a.Args[end:])
			lines = append(lines, "parley "+strings.Join(command.Map(words, command.ShellQuote), " "))
		}
	}
	return lines
}

// isWhole reports whether a line may lack nothing but the right name of an option: the option has its value, and the
// command has words.
func isWhole(line []string, cmd *cobra.Command, given, meant string) bool {
	isOption := func(arg string) bool { return strings.HasPrefix(arg, "-") }
	words := slices.DeleteFunc(slices.Clone(line), isOption)
	at, option := slices.Index(line, given), cmd.Flag(strings.TrimPrefix(meant, "--"))
	hasValue := at < 0 || option == nil || option.NoOptDefVal != "" || at+1 < len(line) && !isOption(line[at+1])
	return hasValue && len(words) >= len(strings.Fields(cmd.CommandPath()))
}

// asCommand returns the command for a line with --search or --list and an option that only the command search or list
// has: parley cdp --search cookie --limit 30. It returns nil for any other line.
func asCommand(line []string, option string) []string {
	var words, rest, args []string
	for i := 0; i < len(line); i++ {
		query, isSearch := strings.CutPrefix(line[i], "--search=")
		switch {
		case line[i] == "--search" && i+1 < len(line):
			i++
			args = []string{"search", line[i]}
		case isSearch:
			args = []string{"search", query}
		case line[i] == "--list":
			args = []string{"list"}
		case len(rest) > 0 || strings.HasPrefix(line[i], "-"):
			rest = append(rest, line[i])
		default:
			words = append(words, line[i])
		}
	}
	switch {
	case args == nil || len(words) > 2:
		return nil
	case args[0] == "list" && option == "category":
		return slices.Concat(args, words, rest)
	case args[0] == "list" || !slices.Contains(strings.Fields("category detail effect explain kind limit"), option):
		return nil
	}
	for i, word := range words {
		args = append(args, []string{"--plugin", "--group"}[i], word)
	}
	return append(args, rest...)
}
