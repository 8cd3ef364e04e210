// Package tools has the commands that find, describe and call tools, and the root command, which does the same for a
// line that begins with a plugin.
package tools

import (
	"context"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Commands are the commands that this package has.
var Commands = command.Chapters{
	"Find and run tools": {
		searchCommand, listCommand, planCommand, callCommand, batchCommand, codeCommand, resultCommand,
	},
	"Set up": {helpCommand, command.Plain("version", "Print the version", "parley version --json", runVersion)},
}

const description = "Sandboxed tools that document themselves. Drives Chrome."

// RootOptions are the options of the command without a name: PLUGIN TOOL, and the modes that share its flags.
type RootOptions struct {
	app *command.App
	CallOptions
	Line []string `word:""` // the words after parley

	List     bool `flag:"list" usage:"list tools"`
	Describe bool `flag:"describe" usage:"its docs"`
	Tier     int  `flag:"tier" default:"2" usage:"detail, 1 to 3"`
	command.Limited
	Search  string   `flag:"search" usage:"search the tools of a plugin"`
	Listen  []string `flag:"listen" usage:"stream events that match, such as Network.*"`
	Until   string   `flag:"until" usage:"with --listen: end after EVENT, or EVENT:JQ of its params"`
	Max     int      `flag:"max" usage:"with --listen: end after this many events"`
	Trigger string   `flag:"trigger" usage:"with --listen: call TOOL [JSON] once listening"`
	Version bool     `flag:"version" usage:"print the version"`
}

// RunRootFunc runs the command without a name.
type RunRootFunc func(ctx context.Context, opts *RootOptions) error

// NewToolCommand returns the root command without subcommands. It handles lines that begin with a plugin. If run is
// nil, it lists, describes, searches, listens or calls, depending on the options.
func NewToolCommand(app *command.App, run RunRootFunc) *cobra.Command {
	root := (&command.Command[*RootOptions]{
		Use: "parley PLUGIN [TOOL] [WORD...]", Words: command.CompleteNames, AnyWords: true, Finish: command.CompleteCall,
		Short: "Use a plugin",
		Example: "parley cdp Network.getCookies --describe\n" +
			`parley cdp Runtime.evaluate --params '{"expression":"1+1"}'`,
		Run: func(ctx context.Context, app *command.App, opts *RootOptions) error {
			if opts.app = app; run == nil {
				return runRoot(ctx, opts)
			}
			return run(ctx, opts)
		},
	}).New(app)
	root.Annotations = map[string]string{modes: "execute list describe search"}
	root.SilenceErrors, root.SilenceUsage, root.CompletionOptions.DisableDefaultCmd = true, true, true
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if slices.Contains([]string{"doctor", "help", "version", "completion"}, cmd.Name()) {
			return nil // for doctor, which reports errors that end other commands
		}
		return app.Dirs().Check()
	}
	_ = root.Flags().MarkHidden("version") // the command version is the documented form
	root.Flags().BoolVar(&app.Full, "full", false, "with --help: all commands with all options")
	app.AddOptions(root)
	root.SetHelpCommand(&cobra.Command{Hidden: true, Use: "no-help"})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if words := cmd.Flags().Args(); len(words) > 0 && !cmd.HasParent() {
			app.HelpErr = helpAbout(cmd.Context(), app, cmd, words)
		} else {
			app.HelpErr = help(app, cmd)
		}
	})
	root.SetOut(app.Out)
	root.SetErr(app.Err)
	return root
}

func runRoot(ctx context.Context, opts *RootOptions) error {
	app := opts.app
	if len(opts.Line) > 0 {
		return runWords(ctx, app, opts)
	}
	if opts.Version {
		return runVersion(ctx, app, "")
	}
	if err := opts.Check(); err != nil {
		return err
	}
	switch {
	case opts.List:
		return listPlugins(app)
	case opts.has("search"):
		return runSearch(ctx, app, opts.searchIn("", ""))
	}
	if name := opts.FirstOf(callOnly...); name != "" {
		return host.Errorf(host.InvalidArgs, "--%s requires a tool: parley PLUGIN TOOL --%s ...", name, name).
			WithNext("parley --list")
	}
	return intro(app)
}

// runWords runs what the words after parley name: a plugin, a group, a tool, an event or a type.
func runWords(ctx context.Context, app *command.App, opts *RootOptions) error {
	app.LiveBrowser = opts.Browser
	at, rest, err := find(ctx, app, opts.Line, opts.SendAnyway)
	call := &opts.CallOptions
	if err != nil && at.Plugin != "" && host.AsError(err).Code == host.NotFound && opts.IsCall() {
		call.Tool = at.Plugin + "." + rest[0] // the host refuses the call and records it
		return RunCall(ctx, app, call)
	}
	if err == nil {
		err = opts.callBesideListen(ctx, at, rest)
	}
	if err == nil {
		err = opts.Check()
	}
	if err != nil {
		return err
	}
	isTool := at.Tool != nil || at.Entry != nil
	switch {
	case opts.has("out") && checkOut(opts.Out) != nil:
		return checkOut(opts.Out)
	case len(rest) > 0 && !isTool:
		return tooManyWords(app, at, rest[0])
	case opts.has("search"):
		return runSearch(ctx, app, opts.searchIn(at.Plugin, at.Group))
	case opts.List && isTool:
		return notAList(app, at)
	case opts.Describe || at.Entry != nil && opts.FirstOf(callOnly...) == "":
		if !isTool {
			return host.Errorf(host.InvalidArgs, "%s has no documentation of its own; name one of its tools", at.Name()).
				WithSteps(at.ListStep())
		}
		return runDescribe(ctx, app, at.Name(), opts.Tier)
	case len(opts.Listen) > 0 && isTool:
		return host.Errorf(host.InvalidArgs, "--listen streams events and does not call %s", at.Name()).
			WithNext("parley "+at.Plugin+" --listen EVENT --trigger "+local(at.Plugin, at.Name()), "leave out --listen")
	case len(opts.Listen) > 0:
		return runListen(ctx, app, at.Plugin, opts)
	case isTool && opts.has("max-tokens"):
		return host.Errorf(host.InvalidArgs,
			"--max-tokens requires --list, --describe or --search; --max-bytes cuts a result").
			WithSteps(step.Describe(at.Name(), 0))
	case isTool:
		if opts.has("full") { // it is an option of --help
			call.Set = append(call.Set, "full=true")
		}
		call.Tool, call.At, call.Words = at.Name(), at, rest
		if i := slices.Index(app.Args, "--json"); i >= 0 && at.Tool != nil && hasJSON(at.Tool, app.Args[i+1:], rest) {
			return host.Errorf(host.InvalidArgs, "--json prints JSON and takes no value; the parameter json goes into --param")
		}
		return RunCall(ctx, app, call)
	}
	if name := opts.FirstOf(callOnly...); name != "" {
		return host.Errorf(host.InvalidArgs, "--%s requires a tool, and %s is a %s", name, at.Name(), kindOf(at)).
			WithSteps(at.ListStep())
	}
	return list(app, at)
}

// hasJSON reports whether the words after --json begin with the tool's parameter of that name.
func hasJSON(t *manifest.Tool, after, words []string) bool {
	kind, _ := manifest.TypeAt(t.Params, "json")
	return kind != "" && len(after) > 0 && len(words) > 0 && after[0] == words[0] && jsontext.LooksLikeJSON(words[0])
}

// IsCall reports whether the options ask for a call and for no other mode.
func (o *RootOptions) IsCall() bool {
	return !o.List && !o.Describe && o.Search == "" && len(o.Listen) == 0
}

// has reports whether an option was given.
func (o *RootOptions) has(name string) bool { return o.Flags.Changed(name) }

// FirstOf returns the first of these options that was given, "" if none was.
func (o *RootOptions) FirstOf(names ...string) string { return command.FirstSet(o.Flags, names...) }

// searchIn returns the search of --search in a plugin or a group, or in everything if both are "".
func (o *RootOptions) searchIn(plugin, group string) *searchOptions {
	return &searchOptions{Words: []string{o.Search}, Plugin: plugin, Group: group, Limit: defaultHits}
}

// Check refuses options that have no effect together with the others, so that none is ignored.
func (o *RootOptions) Check() error {
	if name := o.FirstOf("until", "max", "trigger"); name != "" && len(o.Listen) == 0 {
		return host.Errorf(host.InvalidArgs, "--%s requires --listen EVENT", name).
			WithNext("parley cdp --listen 'Network.*' --max 10")
	}
	if err := o.Limit(o.app, o.Flags); err != nil {
		return err
	}
	if o.has("max") && o.Max < 1 {
		return host.Errorf(host.InvalidArgs, "--max must be at least 1, got %d", o.Max).WithNext("--max 10, or leave it out")
	}
	if name := o.FirstOf("accept", "replace"); name != "" && len(o.app.Plugins) == 0 {
		return host.Errorf(host.InvalidArgs, "--%s is about a plugin to load; it requires --load FILE.wasm", name).
			WithNext("leave it out")
	}
	asked := o.FirstOf("list", "describe", "search", "listen")
	if asked == "" {
		return nil
	}
	useless := command.Either(asked == "listen", []string{"params", "param", "out", "drain", "all"}, callOnly)
	if name := o.FirstOf(useless...); name != "" {
		return host.Errorf(host.InvalidArgs, "--%s cannot be combined with --%s", name, asked).
			WithNext("leave one of them out")
	}
	return nil
}

// find returns the address that the first one or two words name, and the words after them; see [command.Find].
func find(ctx context.Context, a *command.App, words []string, anyway bool) (host.Address, []string, error) {
	h, err := a.Host(ctx)
	if err != nil {
		return host.Address{}, nil, err
	}
	at, rest, err := command.Find(h.Catalog(), words, anyway)
	if err != nil && at.Plugin == "" {
		err = unknownWord(a, h.Catalog(), words, host.AsError(err))
	}
	return at, rest, err
}

// naming are commands whose first word names something new and which take more words. For these only their help is
// offered.
var naming = []string{"plugin new", "secret set"}

// unknownWord returns the error for a first word that is not a plugin, with the commands and plugins that may have
// been meant, and the line with the nearest of them in its place.
func unknownWord(a *command.App, catalog *host.Catalog, words []string, e *host.Error) *host.Error {
	word := words[0]
	if strings.TrimSpace(word) == "" {
		return host.Errorf(host.NotFound, "the first word is empty; expected a command or a plugin").WithNext("parley --list")
	}
	e.Message = "no command or plugin is named " + strings.TrimPrefix(e.Message, "no plugin is named ")
	lines, near, next, help := a.LeadsTo("", word), e.DidYouMean, []string{}, []string{}
	at, _, err := command.Find(catalog, append(words[1:], ""), false) // as in: parley describe PLUGIN.TOOL
	if at.Tool != nil {
		e.DidYouMean, e.Steps = nil, []step.Step{step.Describe(at.Name(), 0)}
		return e
	}
	isTool := len(words) > 1 && strings.Contains(words[1], ".") && len(command.Nearest(word, a.Commands.Names())) == 0
	if err != nil && isTool && len(host.AsError(err).DidYouMean) > 0 {
		return host.AsError(err)
	}
	if len(lines) > 0 { // suggest commands, and no tools that have the word in their name
		near = slices.DeleteFunc(near, func(n spelling.Near) bool { return strings.Contains(n.Name, ".") })
		e.Steps = nil
	}
	for _, line := range lines {
		near = append(near, spelling.Near{Name: line})
		if len(words) > 1 && !slices.Contains(naming, line) {
			next = append(next, command.Instead(a.Args, word, line))
		}
		help = append(help, "parley help "+line)
	}
	near = append(near, command.Nearest(word, a.Commands.Names())...)
	e.DidYouMean = host.Closest(near)
	for _, n := range e.DidYouMean {
		if n.Distance == 0 || len(lines) > 0 && len(words) == 1 {
			continue
		}
		meant, about := command.Instead(a.Args, word, n.Name), "parley help "+n.Name
		if _, isPlugin := catalog.Provider(n.Name); isPlugin {
			about = "parley " + n.Name + " --list"
			meant = command.Either(len(words) > 1, meant, about)
		}
		e.Steps, next, help = nil, append(next, meant), append(help, about)
	}
	return e.WithNext(append(next, help...)...)
}

// tooManyWords returns the error of a word after a plugin or a group.
func tooManyWords(a *command.App, at host.Address, word string) error {
	if catalog, err := a.Catalog(); err == nil {
		if inGroup, err := catalog.FindIn(at.Plugin, at.Group+"."+word); err == nil && inGroup.Tool != nil {
			return host.Errorf(host.NotFound, "%s is a group; its tool %s is named with a dot", at.Name(), word).
				WithSteps(step.Describe(inGroup.Name(), 0))
		}
	}
	return host.Errorf(host.InvalidArgs, "%s is a %s; unexpected word %q after it",
		at.Name(), kindOf(at), manifest.CleanValue(word)).WithSteps(at.ListStep())
}

func kindOf(at host.Address) string {
	return command.Either(at.Group != "", "group", "plugin")
}

// intro introduces parley and says where to begin.
func intro(a *command.App) error {
	next := []string{
		"parley --help --json", "parley --list", `parley search "take a screenshot"`, "parley cdp open https://example.com",
	}
	data := struct {
		Description string `json:"description"`
		Name        string `json:"name"`
		Version     string `json:"version"`
	}{Name: "parley", Version: parley.Version, Description: description}
	return a.Print(data, next, command.Text("parley %s: %s\n\n%s", parley.Version, description, introLines))
}

const introLines = `  parley --list                        list the plugins
  parley PLUGIN --list                 list its tools
  parley PLUGIN TOOL --describe        show how to use a tool
  parley PLUGIN TOOL --params '{...}'  run it
  parley search "what you want"        find a tool
  parley --help [--json]               everything else
`

func runVersion(_ context.Context, app *command.App, _ string) error {
	data := struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Go      string `json:"go"`
		OS      string `json:"os"`
		Arch    string `json:"arch"`
	}{"parley", parley.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
	return app.Print(data, nil, command.Text("parley %s\n", data.Version))
}
