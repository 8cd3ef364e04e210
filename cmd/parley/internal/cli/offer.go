package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/tools"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/commandline"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// placeholder matches a word of a command line that the reader must replace, such as FILE or url=URL.
var placeholder = lazy.Pattern(`(^|[=./])[A-Z]{3,}$`)

// front is the command line as it checks what it offers.
type front struct {
	*command.App
	refused *parsedLine            // what args mean, once something was offered instead
	offered map[string]*parsedLine // what the lines mean that were offered; nil for one that may not be
}

// newFront returns an app whose offers are checked by the command line itself.
func newFront(streams *command.Streams, args []string) *command.App {
	app := command.NewApp(streams, args)
	f := &front{App: app, offered: map[string]*parsedLine{}}
	app.Offers, app.Meant = f.offers, f.meant
	app.Commands = command.Map(commandTable(), command.Maker.Name)
	return app
}

// offers reports whether a line may be offered as next: a command must parse as the command line itself does, with
// names that exist and valid parameters, and must not be the command that failed. Nothing lifts a protection.
func (a *front) offers(line string) bool {
	offered, known := a.offered[line]
	if !known {
		offered = a.parseOffer(line)
		a.offered[line] = offered
	}
	if offered == nil || !a.Failing {
		return offered != nil
	}
	if a.refused == nil {
		a.refused = &parsedLine{command: "none"} // what parses is something else
		if refused, ok := a.parse(a.Args); ok {
			a.refused = &refused
		}
	}
	isTest := offered.command == "parley plugin test" // which fails by what it finds, and is repeated to see that again
	return isTest || !offered.equal(*a.refused)
}

// parseOffer parses a line: a command, or advice in words, which is no command. It returns nil for one that may not be
// offered.
func (a *front) parseOffer(line string) *parsedLine {
	words, ok := commandline.Words(line)
	if command, _, reads := strings.Cut(line, " < "); !ok && reads {
		words, ok = commandline.Words(command)
	}
	if !ok || len(words) == 0 || words[0] != "parley" {
		if strings.HasPrefix(line, "parley ") || advice.Lifts(strings.Fields(line)) {
			return nil
		}
		return &parsedLine{command: line}
	}
	if advice.Lifts(words[1:]) {
		return nil
	}
	if offered, ok := a.parse(words[1:]); ok {
		return &offered
	}
	return nil
}

// parsedLine is what a command line means: two spellings of one call are equal.
type parsedLine struct {
	command string // its path
	words   []string
	options map[string]string
	call    host.Step // of a line that calls a tool
}

func (p parsedLine) equal(other parsedLine) bool {
	return p.command == other.command && slices.Equal(p.words, other.words) && maps.Equal(p.options, other.options) &&
		p.call.Tool == other.call.Tool && string(p.call.Params) == string(other.call.Params)
}

// parse parses the words after parley, and runs nothing. It reports whether they are a valid command line.
func (a *front) parse(words []string) (p parsedLine, ok bool) {
	if len(words) > 1 && words[0] == "call" && strings.ContainsAny(words[1], "._") {
		words = words[1:]
	}
	var opts *tools.RootOptions
	app := newFront(&command.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Env: a.Env}, words)
	root := newRootFor(app, words, func(_ context.Context, o *tools.RootOptions) error {
		opts = o
		return nil
	})
	cmd, rest, err := root.Find(words)
	if err != nil {
		return p, false
	}
	if err = cmd.ParseFlags(rest); errors.Is(err, pflag.ErrHelp) || err == nil && cmd.Flags().Changed("help") {
		return p, true
	} else if err != nil {
		return p, false
	}
	p = parsedLine{command: cmd.CommandPath(), words: cmd.Flags().Args(), options: map[string]string{}}
	cmd.Flags().Visit(func(f *pflag.Flag) { p.options[f.Name] = f.Value.String() })
	delete(p.options, "json")
	delete(p.options, "debug")
	ask := a.ApproveChange
	a.ApproveChange = nil // a check asks nobody
	catalog, err := a.Catalog()
	a.ApproveChange = ask
	switch {
	case cmd.ValidateArgs(p.words) != nil || cmd.HasSubCommands() && !cmd.LocalNonPersistentFlags().HasFlags():
		return p, false // or only others below it can be run
	case err != nil || app.Live && !a.Live || !slices.Equal(app.Plugins, a.Plugins):
		return p, true // the names cannot be checked
	case cmd.Name() == "help":
		about, more, err := root.Find(p.words)
		if err == nil && (about != root || len(p.words) == 0) {
			return p, len(more) == 0
		}
		_, _, err = command.Find(catalog, p.words, false)
		return p, err == nil
	case cmd.Name() == "plan" && len(p.words) > 0:
		_, err := catalog.Find(p.words[0])
		return p, err == nil
	case cmd != root:
		return p, true
	}
	if cmd.RunE(cmd, p.words) != nil || opts.Check() != nil || len(p.words) == 0 {
		return p, opts.Check() == nil
	}
	return a.parseTool(p, catalog, opts)
}

// parseTool is parse for words that name a plugin, a tool or what it has.
func (a *front) parseTool(p parsedLine, catalog *host.Catalog, opts *tools.RootOptions) (parsedLine, bool) {
	at, rest, err := command.Find(catalog, p.words, opts.SendAnyway)
	switch {
	case err != nil:
		return p, false
	case at.Tool == nil || opts.Describe:
		p.words = []string{at.Name()}
		return p, len(rest) == 0 && (at.Tool != nil || !opts.Describe || at.Entry != nil)
	case !opts.IsCall() || opts.FirstOf("list", "search") != "":
		return p, false
	}
	opts.Words = rest
	params, known := tools.ParamsOf(a.App, at.Tool, opts.CallOptions)
	if advice.NamesOf(catalog).Conflicts(at, rest) {
		return p, false
	}
	if !known || slices.ContainsFunc(append(rest, opts.Set...), placeholder().MatchString) {
		return p, true
	}
	value, err := jsontext.Decode([]byte(cmp.Or(string(params), "{}")), jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		return p, false
	}
	p.words, p.call = nil, host.CallStep(at.Name(), jsontext.Marshal(value))
	for _, name := range []string{"params", "param", "all"} {
		delete(p.options, name)
	}
	h, err := a.Parley().Host()
	if err != nil {
		return p, true
	}
	_, ok := advice.Holds(h.Names(), p.call)
	return p, ok
}
