package cli

import (
	"context"
	"errors"
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
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

const description = "Sandboxed tools that document themselves. Drives Chrome."

// rootOptions are the options of the command without a name: PLUGIN TOOL, and the modes that share its flags.
type rootOptions struct {
	app *App
	command.CallOptions
	words []string // after parley
	given []string // names of the options that were given
	flags *pflag.FlagSet

	list     bool
	describe bool
	tier     int
	search   string
	version  bool

	listen  []string
	until   string
	max     int
	trigger string
}

// newRoot returns the command tree. Help, completion and the checks of command lines are made from it.
func newRoot(app *App, run runFunc[rootOptions]) *cobra.Command {
	root := newToolCommand(app, run)
	for _, c := range commandTable() {
		root.AddCommand(c.make(app))
	}
	return checked(app, root)
}

// checked returns the tree with what all commands have: checks of their words, and errors that say what was meant.
func checked(app *App, root *cobra.Command) *cobra.Command {
	root.SetFlagErrorFunc(app.flagError)
	checkAll(root)
	return root
}

// newRootFor returns the part of the command tree that a command line needs, because to make all of it takes 0.3 ms.
func newRootFor(app *App, words []string, run runFunc[rootOptions]) *cobra.Command {
	isOption := func(word string) bool { return strings.HasPrefix(word, "-") && word != "-h" && word != "--help" }
	first := "help" // without words, parley says what it is
	if len(words) > 0 {
		first = words[0]
	}
	switch {
	case isOption(first) && !slices.ContainsFunc(words, func(word string) bool { return !isOption(word) }):
	case strings.HasPrefix(first, "-"), strings.HasPrefix(first, cobra.ShellCompRequestCmd), first == "help",
		first == "completion":
		return newRoot(app, run)
	}
	root := newToolCommand(app, run)
	for _, c := range commandTable() {
		if c.name == first {
			root.AddCommand(c.make(app))
		}
	}
	return checked(app, root)
}

type tableEntry struct {
	name string
	make func(*App) *cobra.Command
}

// commandTable returns the commands below the root.
func commandTable() []tableEntry {
	return []tableEntry{
		{"search", newSearch}, {"call", newCall}, {"batch", newBatch}, {"code", newCode},
		{"plan", newPlan}, {"result", newResult}, {"plugin", newPlugin}, {"policy", newPolicy},
		{"audit", newAudit}, {"trace", newTrace}, {"stats", newStats}, {"secret", newSecret}, {"session", newSession},
		{"runner", newRunner}, {"config", newConfig}, {"mcp", newMCP}, {"docs", newDocs}, {"learn", newLearn},
		{"doctor", newDoctor}, {"list", newList}, {"help", newHelp}, {"version", newVersion},
		{"completion", newCompletion},
	}
}

// newToolCommand returns the root command without the commands below it: what a line means that begins with a plugin.
func newToolCommand(app *App, run runFunc[rootOptions]) *cobra.Command {
	opts := &rootOptions{app: app}
	root := &cobra.Command{
		Use:   "parley PLUGIN [TOOL] [WORD...]",
		Short: "Use a plugin",
		Example: "parley cdp Network.getCookies --describe\n" +
			`parley cdp Runtime.evaluate --params '{"expression":"1+1"}'`,
		Annotations:       map[string]string{modes: "execute list describe search"},
		Args:              cobra.ArbitraryArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.words, opts.flags = args, cmd.Flags()
			opts.Unlimited = opts.MaxBytes == 0 && cmd.Flags().Changed("max-bytes")
			cmd.Flags().Visit(func(f *pflag.Flag) { opts.given = append(opts.given, f.Name) })
			return run(cmd.Context(), opts)
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if slices.Contains([]string{"doctor", "help", "version", "completion"}, cmd.Name()) {
				return nil // doctor reports what the others end with
			}
			return app.deps.Dirs().Check()
		},
	}
	flags := root.Flags()
	addCallFlags(flags, &opts.CallOptions)
	app.completeCall(root)
	flags.BoolVar(&opts.list, "list", false, "list tools")
	flags.BoolVar(&opts.describe, "describe", false, "tool docs")
	flags.IntVar(&opts.tier, "tier", manifest.Tier2, "detail, 1 to 3")
	app.addMaxTokens(flags)
	flags.StringVar(&opts.search, "search", "", "search the tools of a plugin")
	flags.Var((*texts)(&opts.listen), "listen", "stream events that match, such as Network.*")
	flags.StringVar(&opts.until, "until", "", "with --listen: end after EVENT, or EVENT:JQ of its params")
	flags.IntVar(&opts.max, "max", 0, "with --listen: end after this many events")
	flags.StringVar(&opts.trigger, "trigger", "", "with --listen: call TOOL [JSON] once listening")
	flags.BoolVar(&opts.version, "version", false, "print the version")
	_ = flags.MarkHidden("version") // the command of that name is the documented form
	flags.BoolVar(&app.full, "full", false, "with --help: all commands with all options")
	flags.SortFlags = false
	global := root.PersistentFlags()
	global.BoolVar(&app.json, "json", app.json, "print JSON")
	global.BoolVar(&app.deps.Debugging, "debug", app.deps.Debugging, "print what is done and why")
	global.BoolVar(&app.deps.Live, "live", false, "use the protocol of the running browser")
	global.Var((*sessionName)(&app.deps.SessionName), "session", "work in this session: pages and cookies of its own")
	_ = root.RegisterFlagCompletionFunc("session", app.completeSessionOption)
	global.Var((*texts)(&app.deps.Plugins), "load", "load the plugin FILE.wasm for this command")
	global.Var((*texts)(&app.deps.Accept), "accept", "accept a plugin that breaks RULE")
	global.Var((*texts)(&app.deps.Replace), "replace", "let a plugin take the NAME of another owner")
	global.BoolP("help", "h", false, "explain a command")

	root.SetHelpCommand(&cobra.Command{Hidden: true, Use: "no-help"})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if words := cmd.Flags().Args(); len(words) > 0 && !cmd.HasParent() {
			app.helpErr = app.helpAbout(cmd.Context(), cmd, words)
		} else {
			app.helpErr = app.help(cmd)
		}
	})
	root.SetOut(app.Out)
	root.SetErr(app.Err)
	return root
}

// runRoot lists, describes, searches, listens or calls, depending on the options.
func runRoot(ctx context.Context, opts *rootOptions) error {
	app := opts.app
	if len(opts.words) > 0 {
		return runWords(ctx, opts)
	}
	if opts.version {
		return runVersion(ctx, &versionOptions{app: app})
	}
	if err := opts.check(); err != nil {
		return err
	}
	switch {
	case opts.list:
		return app.listPlugins()
	case opts.has("search"):
		return runSearch(ctx, opts.searchIn("", ""))
	}
	if name := opts.firstOf(callOnly...); name != "" {
		return host.Errorf(host.InvalidArgs, "--%s requires a tool: parley PLUGIN TOOL --%s ...", name, name).
			WithNext("parley --list")
	}
	return app.intro()
}

// runWords runs what the words after parley name: a plugin, a group, a tool, an event or a type.
func runWords(ctx context.Context, opts *rootOptions) error {
	app := opts.app
	app.deps.LiveBrowser = opts.Browser
	at, rest, err := app.find(ctx, opts.words, opts.SendAnyway)
	call := &callOptions{app: app, CallOptions: opts.CallOptions}
	if err != nil && at.Plugin != "" && host.AsError(err).Code == host.NotFound && opts.isCall() {
		call.Tool = at.Plugin + "." + rest[0] // the host refuses the call and records it
		return runCall(ctx, call)
	}
	if err == nil {
		err = opts.callBesideListen(ctx, at, rest)
	}
	if err == nil {
		err = opts.check()
	}
	if err != nil {
		return err
	}
	isTool := at.Tool != nil || at.Entry != nil
	switch {
	case opts.has("out") && checkOut(opts.Out) != nil:
		return checkOut(opts.Out)
	case len(rest) > 0 && !isTool:
		return app.tooManyWords(at, rest[0])
	case opts.has("search"):
		return runSearch(ctx, opts.searchIn(at.Plugin, at.Group))
	case opts.list && isTool:
		return app.notAList(at)
	case opts.describe || at.Entry != nil && opts.firstOf(callOnly...) == "":
		if !isTool {
			return host.Errorf(host.InvalidArgs, "%s has no documentation of its own; name one of its tools", at.Name()).
				WithSteps(at.ListStep())
		}
		return runDescribe(ctx, app, command.DescribeOptions{Tool: at.Name(), Tier: opts.tier})
	case len(opts.listen) > 0 && isTool:
		return host.Errorf(host.InvalidArgs, "--listen streams events and does not call %s", at.Name()).
			WithNext("parley "+at.Plugin+" --listen EVENT --trigger "+local(at.Plugin, at.Name()), "leave out --listen")
	case len(opts.listen) > 0:
		return runListen(ctx, app, command.ListenOptions{
			Plugin: at.Plugin, Match: opts.listen, Options: opts.Options, Until: opts.until, Max: opts.max,
			Trigger: opts.trigger,
		})
	case isTool && opts.has("max-tokens"):
		return host.Errorf(host.InvalidArgs,
			"--max-tokens requires --list, --describe or --search; --max-bytes cuts a result").
			WithSteps(host.DescribeStep(at.Name(), 0))
	case isTool:
		if opts.has("full") { // an option of --help
			call.Set = append(call.Set, "full=true")
		}
		call.Tool, call.Words = at.Name(), rest
		if i := slices.Index(app.args, "--json"); i >= 0 && at.Tool != nil && hasJSON(at.Tool, app.args[i+1:], rest) {
			return host.Errorf(host.InvalidArgs, "--json prints JSON and takes no value; the parameter json goes into --param")
		}
		return runCall(ctx, call)
	}
	if name := opts.firstOf(callOnly...); name != "" {
		return host.Errorf(host.InvalidArgs, "--%s requires a tool, and %s is a %s", name, at.Name(), kindOf(at)).
			WithSteps(at.ListStep())
	}
	return app.list(at)
}

// hasJSON reports whether the words after --json begin with the tool's parameter of that name.
func hasJSON(t *manifest.Tool, after, words []string) bool {
	kind, _ := manifest.TypeAt(t.Params, "json")
	return kind != "" && len(after) > 0 && len(words) > 0 && after[0] == words[0] && jsontext.LooksLikeJSON(words[0])
}

// isCall reports whether the options ask for a call and for no other mode.
func (o *rootOptions) isCall() bool {
	return !o.list && !o.describe && o.search == "" && len(o.listen) == 0
}

// has reports whether an option was given.
func (o *rootOptions) has(name string) bool { return slices.Contains(o.given, name) }

// firstOf returns the first of these options that was given, "" if none was.
func (o *rootOptions) firstOf(names ...string) string {
	for _, n := range names {
		if o.has(n) {
			return n
		}
	}
	return ""
}

// searchIn returns the search of --search in a plugin or a group, of everything if both are "".
func (o *rootOptions) searchIn(plugin, group string) *searchOptions {
	opts := &searchOptions{app: o.app}
	opts.Text, opts.Plugin, opts.Group = o.search, plugin, group
	return opts
}

// check refuses options that have no effect beside the others, so that none is ignored.
func (o *rootOptions) check() error {
	if name := o.firstOf("until", "max", "trigger"); name != "" && len(o.listen) == 0 {
		return host.Errorf(host.InvalidArgs, "--%s requires --listen EVENT", name).
			WithNext("parley cdp --listen 'Network.*' --max 10")
	}
	if err := o.app.checkMaxTokens(o.flags); err != nil {
		return err
	}
	if o.has("max") && o.max < 1 {
		return host.Errorf(host.InvalidArgs, "--max must be at least 1, got %d", o.max).WithNext("--max 10, or leave it out")
	}
	if name := o.firstOf("accept", "replace"); name != "" && len(o.app.deps.Plugins) == 0 {
		return host.Errorf(host.InvalidArgs, "--%s is about a plugin to load; it requires --load FILE.wasm", name).
			WithNext("leave it out")
	}
	asked := o.firstOf("list", "describe", "search", "listen")
	if asked == "" {
		return nil
	}
	useless := callOnly
	if asked == "listen" {
		useless = []string{"params", "param", "out", "drain", "all"}
	}
	if name := o.firstOf(useless...); name != "" {
		return host.Errorf(host.InvalidArgs, "--%s cannot be combined with --%s", name, asked).
			WithNext("leave one of them out")
	}
	return nil
}

// find returns what the first one or two words name, and the words after it; see [command.Find].
func (a *App) find(ctx context.Context, words []string, anyway bool) (host.Address, []string, error) {
	h, err := a.deps.Host(ctx)
	if err != nil {
		return host.Address{}, nil, err
	}
	at, rest, err := command.Find(h.Catalog(), words, anyway)
	if err != nil && at.Plugin == "" {
		err = a.unknownWord(words[0], host.AsError(err))
	}
	return at, rest, err
}

// unknownWord adds the commands to the error of a word that no plugin has.
func (a *App) unknownWord(word string, e *host.Error) *host.Error {
	if strings.TrimSpace(word) == "" {
		return host.Errorf(host.NotFound, "the first word is empty; expected a command or a plugin").
			WithNext("parley --list")
	}
	e.Message = "no command or plugin is named " + strings.TrimPrefix(e.Message, "no plugin is named ")
	if near := schema.Nearest(word, a.commands, 3); len(near) > 0 {
		for _, n := range near {
			e.DidYouMean = append(e.DidYouMean, host.NearName(n))
		}
		e.DidYouMean = host.Closest(e.DidYouMean)
	}
	return e
}

// tooManyWords returns the error of a word after a plugin or a group.
func (a *App) tooManyWords(at host.Address, word string) error {
	if catalog, err := a.deps.Catalog(); err == nil {
		if inGroup, err := catalog.FindIn(at.Plugin, at.Group+"."+word); err == nil && inGroup.Tool != nil {
			return host.Errorf(host.NotFound, "%s is a group; its tool %s is named with a dot", at.Name(), word).
				WithSteps(host.DescribeStep(inGroup.Name(), 0))
		}
	}
	return host.Errorf(host.InvalidArgs, "%s is a %s; unexpected word %q after it",
		at.Name(), kindOf(at), manifest.CleanLine(word)).WithSteps(at.ListStep())
}

func kindOf(at host.Address) string {
	if at.Group != "" {
		return "group"
	}
	return "plugin"
}

// intro prints what parley is and where to begin.
func (a *App) intro() error {
	next := []string{
		"parley --help --json", "parley --list", `parley search "take a screenshot"`, "parley cdp open https://example.com",
	}
	data := command.IntroData{Name: "parley", Version: parley.Version, Description: description}
	return a.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "parley %s: %s\n\n", parley.Version, description)
		for _, row := range [][2]string{
			{"parley --list", "list the plugins"},
			{"parley PLUGIN --list", "list its tools"},
			{"parley PLUGIN TOOL --describe", "show how to use a tool"},
			{"parley PLUGIN TOOL --params '{...}'", "run it"},
			{`parley search "what you want"`, "find a tool"},
			{"parley --help [--json]", "everything else"},
		} {
			fmt.Fprintf(w, "  %-36s %s\n", row[0], row[1])
		}
	})
}

// sessionName is the value of --session. It accepts the name of a session only, so that an empty shell variable never
// leads to the browser's default context.
type sessionName string

func (s *sessionName) String() string { return string(*s) }
func (s *sessionName) Type() string   { return "string" }

func (s *sessionName) Set(name string) error {
	if err := host.CheckSessionName(name); err != nil {
		return err
	}
	*s = sessionName(name)
	return nil
}

// texts is the value of an option that can be given several times. pflag's own writes its default as CSV, with a buffer
// of 4 KB for each option of each command line.
type texts []string

func (t *texts) String() string { return strings.Join(*t, ",") }
func (t *texts) Type() string   { return "stringArray" }

func (t *texts) Set(text string) error {
	*t = append(*t, text)
	return nil
}

// flagError turns an error of pflag into one that says what was given, what exists and what to type next.
func (a *App) flagError(cmd *cobra.Command, err error) error {
	e := &host.Error{Code: host.InvalidArgs, Message: manifest.CleanLine(err.Error()), Cause: err}
	var invalid *host.Error // of a value that validates itself
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		given := unknown.GetSpecifiedName()
		dashes := "--"
		if unknown.GetSpecifiedShortnames() != "" {
			dashes, given = "-", unknown.GetSpecifiedShortnames()
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		e.Message = fmt.Sprintf("unknown option %s%s", dashes, manifest.CleanLine(given))
		for _, n := range schema.Nearest(given, names, 3) {
			e.DidYouMean = append(e.DidYouMean, host.NearName{Name: "--" + n.Name, Distance: n.Distance})
		}
		if dashes == "-" && !cmd.HasParent() && len(given) > 1 { // one letter is an option elsewhere
			e.Next = append(e.Next, "words that begin with a dash go after --")
		} else if args := a.retype(cmd.Root(), len(e.DidYouMean) == 0); args != nil {
			return &retyped{e, args}
		}
		if !cmd.HasParent() {
			e.Next = append(e.Next, "a tool's own parameters go into --param KEY=VALUE or --params JSON")
		}
	case errors.As(err, &invalid):
		e.Message = "--session: " + invalid.Message
	case errors.As(err, &value):
		name, given := value.GetFlag().Name, manifest.CleanLine(value.GetValue())
		expected := optionType(value.GetFlag())
		e.Message = fmt.Sprintf("option --%s: %q is not a valid %s", name, given, expected)
		e.Details = []host.Detail{{Parameter: "--" + name, Keyword: "type", Provided: given, Expected: expected}}
		if expected == "duration" {
			e.Message += " such as 10s"
			if n, err := strconv.ParseFloat(given, 64); err == nil {
				unit := "s"
				if n >= 1000 { // as most tools count
					unit = "ms"
				}
				e.Next = append(e.Next, "--"+name+" "+given+unit)
			}
		}
	case errors.As(err, &missing):
		e.Message = "option --" + missing.GetSpecifiedName() + " requires a value"
	}
	return e.WithNext("parley help" + strings.TrimPrefix(cmd.CommandPath(), "parley"))
}
