package command

import (
	"cmp"
	"context"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp/envelope"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// MissingWord returns the error of a command that lacks a required word.
func MissingWord(command, word, example string) *host.Error {
	return host.Errorf(host.InvalidArgs, "parley %s requires %s", command, word).WithNext(example)
}

// Maker is a command with its name. New creates it, with its subcommands.
type Maker interface {
	Name() string
	New(*App) *cobra.Command
}

// Chapters are commands by the titles of the chapters of the help for people.
type Chapters map[string][]Maker

// Help is all commands, in the order of the help for people.
type Help []struct {
	Chapter string
	Of      []Maker
}

// All returns the commands of all chapters.
func (h Help) All() (all []Maker) {
	for _, chapter := range h {
		all = append(all, chapter.Of...)
	}
	return all
}

// Names returns their names.
func (h Help) Names() []string { return Map(h.All(), Maker.Name) }

// Group is a command that only has subcommands.
type Group struct {
	Use, Short, Long string
	Of               []Maker
}

// Name implements [Maker].
func (g *Group) Name() string { return g.Use }

// New implements [Maker].
func (g *Group) New(app *App) *cobra.Command {
	cmd := &cobra.Command{Use: g.Use, Short: g.Short, Long: g.Long, Args: cobra.ArbitraryArgs}
	for _, m := range g.Of {
		child := m.New(app)
		cmd.AddCommand(child)
		cmd.Example = cmp.Or(cmd.Example, child.Example)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			names := strings.Join(childNames(cmd), ", ")
			return host.Errorf(host.InvalidArgs, "%s requires one of %s", cmd.CommandPath(), names).
				WithNext(strings.Split(cmd.Example, "\n")...).WithNext(helpLine(cmd))
		}
		return UnknownCommand(app, cmd, args[0])
	}
	return cmd
}

// helpLine returns the line that explains a command. It can be offered if the command's examples name things that do
// not exist here.
func helpLine(cmd *cobra.Command) string {
	return "parley help" + strings.TrimPrefix(cmd.CommandPath(), "parley")
}

func childNames(cmd *cobra.Command) []string { return Map(cmd.Commands(), (*cobra.Command).Name) }

// UnknownCommand returns the error for a word after a command whose subcommands do not include it.
func UnknownCommand(app *App, cmd *cobra.Command, word string) error {
	e := UnknownValue("COMMAND", word, childNames(cmd))
	e.Code, e.Details, e.Message = host.NotFound, nil, cmd.CommandPath()+" has no command "+host.Printable(word)
	group, at := strings.TrimPrefix(cmd.CommandPath(), "parley "), slices.Index(app.Args, word)
	for i := range e.DidYouMean {
		e.DidYouMean[i].Name = group + " " + e.DidYouMean[i].Name
	}
	args := slices.Clone(app.Args)
	if len(args) > at+1 && slices.Contains(childNames(cmd), args[at+1]) { // plugin NAME show
		args[at], args[at+1] = args[at+1], args[at]
		e.DidYouMean = []spelling.Near{{Name: group + " " + args[at]}}
		e = e.WithNext("parley " + strings.Join(Map(args, ShellQuote), " "))
	}
	known := app.LeadsTo(group, word)
	if len(known) > 0 {
		e.DidYouMean = []spelling.Near{{Name: known[0]}}
	}
	if len(e.DidYouMean) > 0 {
		meant, _, _ := cmd.Find(strings.Fields(e.DidYouMean[0].Name)[1:])
		isWord := func(arg string) bool { return !strings.HasPrefix(arg, "-") }
		if slices.ContainsFunc(args[at+1:], isWord) { // else it may need one
			e = e.WithNext(Instead(app.Args, word, meant.Name()))
		}
		if example, _, _ := strings.Cut(meant.Example, "\n"); len(known) > 0 {
			e = e.WithNext(example)
		}
		e = e.WithNext(helpLine(meant))
	}
	return e.WithNext(helpLine(cmd))
}

// Command is a command that runs with options. O is a pointer to a struct whose tags say where the fields come from,
// or string for the only word, "" if none is given. A field with the tag flag is an option. A field with the tag word
// takes the next word of the command line; a list takes all further words.
type Command[O any] struct {
	Use, Short, Long, Example string
	Run                       func(ctx context.Context, app *App, opts O) error
	Words                     Completer                  // completes the words; nil completes file names
	Options                   map[string]Completer       // complete the values of options, each as a first word
	AnyWords                  bool                       // Run checks the words, not Use
	Finish                    func(*App, *cobra.Command) // changes the created command; may be nil
}

// Plain returns a command without options that takes at most one word. words has at most one completer, for that
// word.
func Plain(use, short, example string, run func(ctx context.Context, app *App, word string) error,
	words ...Completer) *Command[string] {
	return &Command[string]{Use: use, Short: short, Example: example, Run: run, Words: append(words, nil)[0]}
}

// Name implements [Maker].
func (c *Command[O]) Name() string {
	name, _, _ := strings.Cut(c.Use, " ")
	return name
}

// New implements [Maker].
func (c *Command[O]) New(app *App) *cobra.Command {
	cmd := &cobra.Command{Use: c.Use, Short: c.Short, Long: c.Long, Example: c.Example, Args: checkWords}
	cmd.Flags().SortFlags = false // list them in the order of the fields
	if c.AnyWords {
		cmd.Args = cobra.ArbitraryArgs
	}
	if c.Words != nil {
		cmd.ValidArgsFunction = c.Words.of(app)
	}
	var opts O
	places := []any{&opts}
	if _, isWord := places[0].(*string); !isWord {
		made := reflect.New(reflect.TypeFor[O]().Elem())
		opts, places = made.Interface().(O), addFlags(cmd, cmd.Flags(), made.Elem(), nil)
	}
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		if app.Help, app.Words = "", ""; cmd.HasParent() {
			app.Help, app.Words = helpLine(cmd), strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		}
		for i, place := range places {
			switch place := place.(type) {
			case *[]string:
				*place = words[min(i, len(words)):]
			case *string:
				if i < len(words) {
					*place = words[i]
				}
			}
		}
		return c.Run(cmd.Context(), app, opts)
	}
	for option, words := range c.Options {
		completeOption(app, cmd, option, words)
	}
	if c.Finish != nil {
		c.Finish(app, cmd)
	}
	return cmd
}

// addFlags adds an option for each field of a struct with the tag flag, which has the option's name. The tags usage
// and default describe it, too. Fields of nested structs are included. An option with the tag once is refused if it
// is given again; the tag then says what to do. A field of the type *pflag.FlagSet is set to the flags, and one of
// *cobra.Command to the command. addFlags appends pointers to the fields with the tag word.
func addFlags(cmd *cobra.Command, flags *pflag.FlagSet, opts reflect.Value, words []any) []any {
	for i := range opts.NumField() {
		field, at := opts.Type().Field(i), opts.Field(i)
		name, usage, fallback := field.Tag.Get("flag"), field.Tag.Get("usage"), field.Tag.Get("default")
		_, isWord := field.Tag.Lookup("word")
		switch {
		case isWord:
			words = append(words, at.Addr().Interface())
		case at.Kind() == reflect.Struct:
			words = addFlags(cmd, flags, at, words)
		case at.Type() == reflect.TypeFor[*pflag.FlagSet]():
			at.Set(reflect.ValueOf(flags))
		case at.Type() == reflect.TypeFor[*cobra.Command]():
			at.Set(reflect.ValueOf(cmd))
		}
		if name == "" {
			continue
		}
		switch place := at.Addr().Interface().(type) {
		case *bool:
			flags.BoolVar(place, name, *place, usage)
		case *string:
			flags.StringVar(place, name, fallback, usage)
		case *[]string:
			flags.Var((*Texts)(place), name, usage)
		case *time.Duration:
			flags.DurationVar(place, name, 0, usage)
		case *float64:
			flags.Float64Var(place, name, 0, usage)
		case *int:
			n, _ := strconv.Atoi(fallback)
			flags.IntVar(place, name, n, usage)
		case *uint64:
			n, _ := strconv.ParseUint(fallback, 10, 64)
			flags.Uint64Var(place, name, n, usage)
		default:
			panic("--" + name + " has the type " + at.Type().String())
		}
		if once := field.Tag.Get("once"); once != "" {
			option := flags.Lookup(name)
			option.Value = &onceOnly{option.Value, once, false}
		}
	}
	return words
}

// checkWords refuses words that the line of use of a command, such as "push PLUGIN URL", "stop [PLUGIN]", "wrap FILE
// [WORD...]" or "run DIR TOOL ...", does not have.
func checkWords(cmd *cobra.Command, words []string) error {
	takes := strings.Fields(cmd.Use)[1:]
	most := Either(strings.Contains(cmd.Use, "..."), math.MaxInt, len(takes))
	required := slices.DeleteFunc(slices.Clone(takes), func(name string) bool { return name[0] == '[' || name == "..." })
	empty := slices.Index(words, "")
	var e *host.Error
	switch {
	case len(words) < len(required):
		e = host.Errorf(host.InvalidArgs, "%s requires %s", cmd.CommandPath(), strings.Join(required[len(words):], " and "))
		e.Message += When(len(cmd.ValidArgs) > 0, ", one of "+strings.Join(cmd.ValidArgs, ", "))
	case len(words) > most && most == 0:
		e = host.Errorf(host.InvalidArgs, "%s takes no words; unexpected %q", cmd.CommandPath(),
			manifest.CleanValue(words[0]))
	case len(words) > most:
		e = host.Errorf(host.InvalidArgs, "%s takes %s only; unexpected %q", cmd.CommandPath(), strings.Join(takes, " "),
			manifest.CleanValue(words[most]))
	case empty >= 0 && empty < len(takes):
		e = host.Errorf(host.InvalidArgs, "%s: %s is empty", cmd.CommandPath(), strings.Trim(takes[empty], "[]"))
	default:
		return nil
	}
	isNew := cmd.Name() == "new" || cmd.Name() == "set"
	isListed := slices.Contains(takes, "NAME") && !isNew || slices.Contains(takes, "CALL")
	if p := cmd.Parent(); p != nil && isListed && slices.Contains(childNames(p), "list") {
		e = e.WithNext(p.CommandPath() + " list") // it lists the names
	}
	return e.WithNext(strings.Split(cmd.Example, "\n")...).WithNext(helpLine(cmd))
}

// sessionName is the value of --session. It accepts only the name of a session, so that an empty shell variable never
// leads to the browser's default context.
type sessionName string

func (s *sessionName) String() string { return string(*s) }

func (s *sessionName) Type() string { return "string" }

func (s *sessionName) Set(name string) error {
	if err := session.CheckName(name); err != nil {
		return err
	}
	*s = sessionName(name)
	return nil
}

// Texts is the value of an option that can be given several times. pflag's own type writes its default as CSV, which
// takes a buffer of 4 KB for each option of each command line.
type Texts []string

func (t *Texts) String() string { return strings.Join(*t, ",") }

func (t *Texts) Type() string { return "stringArray" }

func (t *Texts) Set(text string) error {
	*t = append(*t, text)
	return nil
}

// onceOnly is the value of an option that is refused if it is given again. what says what to do instead.
type onceOnly struct {
	pflag.Value
	what  string
	isSet bool
}

func (o *onceOnly) Set(text string) error {
	if o.isSet {
		return host.Errorf(host.InvalidArgs, "it is given twice; %s", o.what)
	}
	o.isSet = true
	return o.Value.Set(text)
}

// FirstSet returns the first of these options that was given, "" if none was.
func FirstSet(flags *pflag.FlagSet, names ...string) string {
	i := slices.IndexFunc(names, flags.Changed)
	if i < 0 {
		return ""
	}
	return names[i]
}

// Find returns the address that the first one or two words name, and the words after them. It can be a plugin, a
// group, a tool, an event or a type. "text hash", "text.hash" and "text__hash" are the same, and so is a name of MCP's
// list that was cut. With anyway, a name that its plugin does not know may stand for a tool that the plugin passes on;
// see job.Options.
//
// The error is not_found. If the plugin exists, the address has it, and the first of the returned words is the
// unknown name.
func Find(catalog *host.Catalog, words []string, anyway bool) (host.Address, []string, error) {
	plugin, local, rest := envelope.CatalogName(catalog, words[0]), "", words[1:]
	if _, ok := catalog.Provider(plugin); !ok {
		first, inner, _ := strings.Cut(strings.ReplaceAll(plugin, "__", "."), ".")
		if _, ok := catalog.Provider(first); !ok {
			_, err := catalog.FindIn(plugin, "")
			return host.Address{}, words, err
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

// UnknownValue returns the error for a word that is not one of the allowed ones. name is an option without dashes, or
// a positional word in capitals.
func UnknownValue(name, given string, allowed []string) *host.Error {
	given = manifest.CleanValue(given)
	if strings.ToLower(name) == name {
		name = "--" + name
	}
	expected := "one of " + strings.Join(allowed, ", ")
	e := host.Errorf(host.InvalidArgs, "%s: %q is not %s", name, given, expected)
	e.Details = []host.Detail{{Parameter: name, Keyword: "enum", Provided: given, Expected: expected}}
	e.DidYouMean = Nearest(strings.TrimSpace(given), allowed)
	return e
}

// Nearest returns the names of a list that are nearest to a given one.
func Nearest(given string, names []string) []spelling.Near { return spelling.Nearest(given, names, 3) }

// Instead returns the command line of these arguments with other words in place of one, which may be an option.
func Instead(args []string, word, with string) string {
	at := slices.IndexFunc(args, func(arg string) bool { return arg == word || strings.HasPrefix(arg, word+"=") })
	if at < 0 {
		return "parley help"
	}
	words := strings.Fields(with)
	words[len(words)-1] += strings.TrimPrefix(args[at], word)
	return "parley " + strings.Join(Map(slices.Concat(args[:at], words, args[at+1:]), ShellQuote), " ")
}

// Limited is the option of commands that inform about tools.
type Limited struct {
	MaxTokens int `flag:"max-tokens" usage:"list, describe, search: leave out what does not fit"`
}

// Limit sets the app's limit to the option's value. It refuses a limit that no output can satisfy.
func (l Limited) Limit(a *App, flags *pflag.FlagSet) error {
	a.MaxTokens = l.MaxTokens
	if flags.Changed("max-tokens") && a.MaxTokens < 1 {
		return host.Errorf(host.InvalidArgs, "--max-tokens must be at least 1, got %d", a.MaxTokens).
			WithNext("--max-tokens 200, or leave it out")
	}
	return nil
}

// Fits reports whether the output of a command stays within --max-tokens: the envelope with --json, and otherwise the
// text with the warnings.
func Fits(a *App, data any, next, warnings []string, text func(w io.Writer)) bool {
	var b strings.Builder
	if a.JSON {
		env, err := newEnvelope(data, warnings, next)
		if err != nil {
			return true // printing reports the error
		}
		_ = WriteJSON(&b, env, a.OutTTY)
	} else {
		b.WriteString(strings.Join(warnings, "\n"))
		text(&b)
	}
	return manifest.Tokens(b.String()) <= a.MaxTokens
}

// Reduction is a part of a list that can be left out, such as the last line. Remove reports false if there is nothing
// left to remove; otherwise the reduction may be applied again.
type Reduction struct {
	Name   string
	Remove func() bool
}

// PrintWithin prints a list. With --max-tokens it leaves out parts, in their order, until the rest fits, and says
// what it left out.
func (a *App) PrintWithin(data any, next []string, text func(w io.Writer), parts ...Reduction) error {
	var warnings, left []string
	for a.MaxTokens > 0 && len(parts) > 0 && !Fits(a, data, next, warnings, text) {
		if !parts[0].Remove() {
			parts = parts[1:]
			continue
		}
		if len(left) == 0 || left[len(left)-1] != parts[0].Name {
			left = append(left, parts[0].Name)
		}
		warnings = []string{"left out to stay within --max-tokens: " + strings.Join(left, ", ")}
	}
	return a.PrintWarned(data, warnings, next, text)
}

// WithoutDetails removes the descriptions of the tools in a list, so that their names can stay.
func WithoutDetails(tools []host.Line) Reduction {
	return WithoutTexts("signatures and briefs", tools, func(t *host.Line) []*string {
		return []*string{&t.Signature, &t.Brief}
	})
}

// WithoutTexts removes some texts of all items of a list.
func WithoutTexts[T any](name string, items []T, texts func(*T) []*string) Reduction {
	return Reduction{name, func() (some bool) {
		for i := range items {
			for _, text := range texts(&items[i]) {
				some = some || *text != ""
				*text = ""
			}
		}
		return some
	}}
}

// Without removes a part as a whole, by setting it to its empty value. has says that the part is not empty yet.
func Without[T any](name string, has bool, part *T, empty T) Reduction {
	return Reduction{name, func() bool {
		had := has
		*part, has = empty, false
		return had
	}}
}

// WithoutLast removes the last items of a list, but keeps the first one.
func WithoutLast[T any](name string, items *[]T) Reduction {
	return Reduction{name, func() bool {
		if len(*items) < 2 {
			return false
		}
		*items = (*items)[:len(*items)-1]
		return true
	}}
}
