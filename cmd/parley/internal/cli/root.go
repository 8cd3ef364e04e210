package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

const description = "Sandboxed tools that document themselves. Drives Chrome."

// newRoot builds the command tree. Help, completion and checks are all made from it.
func newRoot(app *App) *cobra.Command {
	flags := &callFlags{}
	root := &cobra.Command{
		Use:   "parley PLUGIN [TOOL] [WORD...]",
		Short: "Use a plugin's tools",
		Example: "parley cdp Network --list\n" +
			"parley cdp Network.getCookies --describe\n" +
			`parley cdp Runtime.evaluate --params '{"expression":"1+1"}'`,
		Annotations:       map[string]string{modes: "execute list describe search"},
		Args:              cobra.ArbitraryArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		ValidArgsFunction: app.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case flags.version && len(args) == 0:
				return runVersion(cmd.Context(), &versionOptions{app: app})
			case len(args) > 0:
				return app.dispatch(cmd, args, flags)
			}
			if err := checkTogether(cmd, flags); err != nil {
				return err
			}
			switch {
			case flags.list:
				return app.listPlugins()
			case cmd.Flags().Changed("search"):
				return app.search(cmd.Context(), searchWithin("", ""), flags.search)
			}
			if name := firstSet(cmd, callOnly...); name != "" {
				return host.Errorf(host.InvalidArgs, "--%s requires a tool: parley PLUGIN TOOL --%s ...", name, name).WithNext("parley --list")
			}
			return app.intro()
		},
	}
	flags.add(root.Flags())
	app.completeCall(root)
	root.Flags().BoolVar(&flags.list, "list", false, "list what there is")
	root.Flags().BoolVar(&flags.describe, "describe", false, "document a tool")
	root.Flags().IntVar(&flags.tier, "tier", manifest.Tier2, "detail, 1 to 3")
	root.Flags().StringVar(&flags.search, "search", "", "search the tools of a plugin")
	flags.addStream(root.Flags())
	root.Flags().BoolVar(&flags.diff, "diff", false, "what the browser's protocol has that ours has not")
	root.Flags().BoolVar(&flags.version, "version", false, "print the version")
	_ = root.Flags().MarkHidden("version") // the command of that name is the documented form
	root.Flags().BoolVar(&app.full, "full", false, "with --help: all commands with all options")
	root.PersistentFlags().BoolVar(&app.json, "json", app.json, "answer in JSON")
	root.PersistentFlags().BoolVar(&app.deps.Debugging, "debug", app.deps.Debugging, "say what is done and why")
	root.PersistentFlags().BoolVar(&app.deps.Live, "live", false, "take the protocol of the browser that runs")
	root.PersistentFlags().StringArrayVar(&app.deps.Plugins, "load", nil, "add a plugin FILE.wasm for this command")
	root.PersistentFlags().BoolP("help", "h", false, "explain a command")
	root.Flags().SortFlags = false

	root.AddCommand(
		newSearch(app), newCall(app), newBatch(app), newPlugin(app), newPolicy(app), newAudit(app), newSecret(app), newConfig(app), newMCP(app), newDocs(app), newLearn(app), newDoctor(app, nil),
		newList(app), newHelp(app), newVersion(app, nil), newCompletion(app),
	)
	root.SetHelpCommand(&cobra.Command{Hidden: true, Use: "no-help"})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if words := cmd.Flags().Args(); len(words) > 0 && !cmd.HasParent() {
			app.helpErr = app.helpAbout(cmd.Context(), cmd, words)
		} else {
			app.helpErr = app.help(cmd)
		}
	})
	root.SetFlagErrorFunc(app.flagError)
	root.SetOut(app.Out)
	root.SetErr(app.Err)
	return root
}

// dispatch runs what the words after parley name: a plugin, a group, a tool, an event or a type.
func (a *App) dispatch(cmd *cobra.Command, words []string, f *callFlags) error {
	a.deps.LiveBrowser = f.browser
	h, err := a.deps.Host(cmd.Context())
	if err != nil {
		return err
	}
	address, rest, err := a.resolve(cmd.Root(), h.Catalog(), words, f.sendAnyway)
	if err != nil && address.Plugin != "" && host.AsError(err).Code == host.NotFound && f.runs() {
		return a.runUnknown(cmd.Context(), h, address.Plugin+"."+rest[0])
	}
	if err != nil {
		return err
	}
	return a.act(cmd, h, address, rest, f)
}

// resolve finds what the first one or two words name and returns the words after it. Of a name that stands for
// nothing within a plugin, the address is the plugin and the first word the name.
func (a *App) resolve(root *cobra.Command, catalog *host.Catalog, words []string, anyway bool) (host.Address, []string, error) {
	plugin, local, rest := words[0], "", words[1:]
	if _, ok := catalog.Provider(plugin); !ok {
		first, inner, _ := strings.Cut(strings.ReplaceAll(plugin, "__", "."), ".")
		if _, ok := catalog.Provider(first); !ok {
			return host.Address{}, nil, a.unknownWord(root, catalog, words[0])
		}
		plugin, local = first, inner
	} else if len(rest) > 0 {
		local, rest = rest[0], rest[1:]
	}
	address, err := catalog.FindIn(plugin, local)
	if err != nil && anyway {
		address, err = catalog.FindAnyway(plugin + "." + local)
	}
	if err != nil {
		return host.Address{Plugin: plugin}, append([]string{local}, rest...), err
	}
	return address, rest, nil
}

func (a *App) unknownWord(root *cobra.Command, catalog *host.Catalog, word string) *host.Error {
	if strings.TrimSpace(word) == "" {
		return host.Errorf(host.NotFound, "the first word is empty; expected a command or a plugin").WithNext("parley --list")
	}
	_, err := catalog.FindIn(word, "")
	e := host.AsError(err)
	e.Message = fmt.Sprintf("no command or plugin is named %s", strings.TrimPrefix(e.Message, "no plugin is named "))
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if near := schema.Nearest(word, names, 3); len(near) > 0 {
		e.DidYouMean = slices.DeleteFunc(e.DidYouMean, func(s host.NearName) bool { return s.Distance > 3 }) // found by search
		for _, n := range near {
			e.DidYouMean = append(e.DidYouMean, host.NearName(n))
		}
		e.DidYouMean = host.Closest(e.DidYouMean)
	}
	return e
}

// act does what the flags ask with what was found: list, describe, search, stream or run.
func (a *App) act(cmd *cobra.Command, h *host.Host, at host.Address, rest []string, f *callFlags) error {
	isTool := at.Tool != nil || at.Entry != nil
	if err := checkTogether(cmd, f); err != nil {
		return err
	}
	if cmd.Flags().Changed("out") && (f.out == "" || f.out == "-") {
		return host.Errorf(host.InvalidArgs, "--out needs the name of a file, and got %q", f.out).WithNext("--out page.png, or --out /dev/stdout")
	}
	if len(rest) > 0 && !isTool {
		return tooManyWords(h.Catalog(), at, rest[0])
	}
	switch {
	case f.diff:
		return a.diff(cmd.Context(), at, f.browser)
	case cmd.Flags().Changed("search"):
		return a.search(cmd.Context(), searchWithin(at.Plugin, at.Group), f.search)
	case f.list && isTool:
		return host.Errorf(host.InvalidArgs, "%s is a tool; --list takes a plugin or a group", at.Name()).
			WithNext("parley " + at.Plugin + " --list")
	case f.describe || at.Entry != nil && firstSet(cmd, callOnly...) == "":
		if !isTool {
			return host.Errorf(host.InvalidArgs, "%s has no documentation of its own; name one of its tools", at.Name()).WithSteps(at.ListStep())
		}
		return a.describe(cmd.Context(), h, at.Name(), f.tier)
	case len(f.listen) > 0 && isTool:
		return host.Errorf(host.InvalidArgs, "--listen streams events and does not call %s", at.Name()).
			WithNext("parley "+at.Plugin+" --listen EVENT --trigger "+strings.TrimPrefix(at.Name(), at.Plugin+"."), "leave out --listen")
	case len(f.listen) > 0:
		return a.listen(cmd.Context(), h, at, f)
	case isTool:
		return a.run(cmd.Context(), h, at, rest, f)
	}
	if name := firstSet(cmd, callOnly...); name != "" {
		return host.Errorf(host.InvalidArgs, "--%s requires a tool, and %s is not one", name, at.Name()).WithSteps(at.ListStep())
	}
	if at.Group != "" {
		return a.listGroup(at)
	}
	return a.listPlugin(at)
}

// checkTogether refuses options that mean nothing beside the others: none is ignored in silence.
func checkTogether(cmd *cobra.Command, f *callFlags) error {
	if name := firstSet(cmd, "until", "max", "trigger"); name != "" && len(f.listen) == 0 {
		return host.Errorf(host.InvalidArgs, "--%s needs --listen EVENT", name).WithNext("parley cdp --listen 'Network.*' --max 10")
	}
	if cmd.Flags().Changed("max") && f.max < 1 {
		return host.Errorf(host.InvalidArgs, "--max is at least 1, and got %d", f.max).WithNext("--max 10, or leave it out")
	}
	asked := firstSet(cmd, "list", "describe", "search", "listen", "diff")
	if asked == "" {
		return nil
	}
	useless := callOnly
	if asked == "listen" {
		useless = []string{"params", "param", "out", "drain", "all"}
	}
	if name := firstSet(cmd, useless...); name != "" {
		return host.Errorf(host.InvalidArgs, "--%s cannot be combined with --%s", name, asked).WithNext("leave one of them out")
	}
	return nil
}

func tooManyWords(catalog *host.Catalog, at host.Address, word string) error {
	if inGroup, err := catalog.FindIn(at.Plugin, at.Group+"."+word); err == nil && inGroup.Tool != nil {
		return host.Errorf(host.NotFound, "%s is a group; its tool %s is named with a dot", at.Name(), word).
			WithNext("parley " + at.Plugin + " " + inGroup.Tool.Name + " --describe")
	}
	return host.Errorf(host.InvalidArgs, "%s is a %s; unexpected word %q after it", at.Name(), kindOf(at), manifest.CleanLine(word)).
		WithSteps(at.ListStep())
}

func kindOf(at host.Address) string {
	if at.Group != "" {
		return "group"
	}
	return "plugin"
}

// intro is what parley says when it is told nothing.
func (a *App) intro() error {
	next := []string{"parley --help --json", "parley --list", `parley search "take a screenshot"`, "parley cdp open https://example.com"}
	return a.answer(map[string]string{"name": "parley", "version": parley.Version, "description": description}, next, func(w io.Writer) {
		fmt.Fprintf(w, "parley %s: %s\n\n", parley.Version, description)
		for _, row := range [][2]string{
			{"parley --list", "which plugins there are"},
			{"parley PLUGIN --list", "what one can do"},
			{"parley PLUGIN TOOL --describe", "how a tool is used"},
			{"parley PLUGIN TOOL --params '{...}'", "run it"},
			{`parley search "what you want"`, "find a tool"},
			{"parley --help [--json]", "everything else"},
		} {
			fmt.Fprintf(w, "  %-36s %s\n", row[0], row[1])
		}
	})
}

// flagError turns what pflag says into what was given, what exists and what to type next.
func (a *App) flagError(cmd *cobra.Command, err error) error {
	e := &host.Error{Code: host.InvalidArgs, Message: manifest.CleanLine(err.Error()), Cause: err}
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
		if line := a.retyped(cmd); line != "" {
			e.Next = append(e.Next, line)
		} else if !cmd.HasParent() {
			e.Next = append(e.Next, "a tool's own parameters go into --param KEY=VALUE or --params JSON")
		}
	case errors.As(err, &value):
		e.Message = fmt.Sprintf("option --%s: %q is not a valid %s", value.GetFlag().Name, manifest.CleanLine(value.GetValue()), optionType(value.GetFlag()))
		e.Details = []host.Detail{{Parameter: "--" + value.GetFlag().Name, Keyword: "type",
			Provided: manifest.CleanLine(value.GetValue()), Expected: optionType(value.GetFlag())}}
	case errors.As(err, &missing):
		e.Message = "option --" + missing.GetSpecifiedName() + " needs a value"
	}
	return e.WithNext(strings.TrimSuffix("parley help "+strings.TrimPrefix(cmd.CommandPath(), "parley"), " "))
}

// firstSet returns the first of these flags that was given, or "".
func firstSet(cmd *cobra.Command, names ...string) string {
	for _, n := range names {
		if f := cmd.Flags().Lookup(n); f != nil && f.Changed {
			return n
		}
	}
	return ""
}
