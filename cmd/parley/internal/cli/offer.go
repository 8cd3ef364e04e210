package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/tools"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/commandline"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// placeholder matches a word of a command line that the reader must replace, such as FILE, or URL in url=URL.
var placeholder = lazy.Pattern(`(^|[=./])[A-Z]{3,}$`)

// front checks the lines that it offers in the same way as the command line itself.
type front struct {
	*command.App
	refused *parsedLine            // the meaning of the refused args; set once something was offered instead
	offered map[string]*parsedLine // by line, the meaning of an offered line; nil for a line that may not be offered
}

// newFront returns an app that checks the lines that it offers with the command line itself.
func newFront(streams *command.Streams, args []string) *command.App {
	app := command.NewApp(streams, args)
	f := &front{App: app, offered: map[string]*parsedLine{}}
	app.Offers, app.Meant = f.offers, f.meant
	app.Commands, app.LeadsTo = commandTable(), leadsTo
	return app
}

// everyday lists for each command other words by which people know it. Words after "|" mean it only within its group.
const everyday = `
approvals allow: | accept approve confirm grant
approvals deny: | decline refuse reject
audit export: csv
audit show: log logs | list tail
call: exec execute invoke
cdp close: kill
code: script
config list: configuration configure env options settings setup | edit get set show
docs diff: | show
docs export: | generate
doctor: diagnose health
help: man usage
learn: examples guide intro tutorial
list: ls plugins tools
login: oauth signin
logout: signout
mcp: daemon serve server start up
mcp config: | add install setup
plugin build: compile make
plugin check: lint validate
plugin install: add i
plugin list: | ls
plugin new: create generate init scaffold
plugin pull: download
plugin push: publish release upload
plugin remove: del delete rm uninstall
plugin show: describe info inspect
plugin update: upgrade
policy explain: permissions rights | list show
policy grant: allow authorize | add
policy revoke: deny disallow | remove
runner list: ps status
runner stop: down quit stop | end kill
search: grep lookup query
secret remove: | delete rm unset
secret set: auth key token | add create
session end: | close delete kill remove rm stop
session list: sessions | ls
stats: metrics
trace list: history traces
version: about`

// leadsTo returns the commands to suggest for an unknown word: the subcommands with that name, else the commands of
// which the word is a synonym, else those that one typo in the word may have missed. In a group only its subcommands
// count, by their synonyms.
func leadsTo(group, word string) []string {
	subcommands, others := map[string][]string{}, map[string][]string{} // lines by word
	var visit func(before string, all []command.Maker)
	visit = func(before string, all []command.Maker) {
		for _, m := range all {
			if before != "" {
				subcommands[m.Name()] = append(subcommands[m.Name()], before+m.Name())
			}
			if group, is := m.(*command.Group); is {
				visit(before+m.Name()+" ", group.Of)
			}
		}
	}
	visit("", commandTable().All())
	for line := range strings.Lines(everyday) {
		name, words, _ := strings.Cut(line, ":")
		anywhere, within, _ := strings.Cut(words, "|")
		switch {
		case group != "" && strings.HasPrefix(name, group+" ") && slices.Contains(strings.Fields(anywhere+within), word):
			return []string{name}
		case group != "":
			continue
		}
		for _, other := range strings.Fields(anywhere) {
			if len(subcommands[other]) == 0 {
				others[other] = append(others[other], name)
			}
		}
	}
	if group != "" {
		return nil
	}
	maps.Copy(subcommands, others)
	top := commandTable().Names()
	if len(subcommands[word]) > 0 || len(command.Nearest(word, top)) > 0 {
		return subcommands[word]
	}
	if near := command.Nearest(word, slices.Collect(maps.Keys(subcommands))); len(near) > 0 {
		return subcommands[near[0].Name]
	}
	return nil
}

// offers reports whether a line may be offered as the next step. A command must be valid for the command line itself,
// with names that exist and valid parameters, and must not be the command that failed. It must not lift a protection.
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
		a.refused = &parsedLine{command: "none"} // differs from every line that parses
		if refused, ok := a.parse(a.Args); ok {
			a.refused = &refused
		}
	}
	isTest := offered.command == "parley plugin test" // it fails by its findings, and is repeated to see them again
	return isTest || a.Waits || !offered.equal(*a.refused)
}

// parseOffer parses a line: a command, or advice in words. It returns nil for a line that may not be offered.
func (a *front) parseOffer(line string) *parsedLine {
	words, ok := commandline.Words(line)
	if command, file, reads := strings.Cut(line, " < "); !ok && reads {
		_, err := os.Stat(file)
		if words, ok = commandline.Words(command); a.Failing && err != nil {
			return nil
		}
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

// parsedLine is the meaning of a command line: two spellings of the same call are equal.
type parsedLine struct {
	command string // the command's path
	words   []string
	options map[string]string
	call    step.Step // for a line that calls a tool
}

func (p parsedLine) equal(other parsedLine) bool {
	return p.command == other.command && slices.Equal(p.words, other.words) && maps.Equal(p.options, other.options) &&
		p.call.Tool == other.call.Tool && string(p.call.Params) == string(other.call.Params)
}

// parse parses the words after parley, without running anything. ok says that they are a valid command line.
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
	cmd.SetContext(context.Background())
	p = parsedLine{command: cmd.CommandPath(), words: cmd.Flags().Args(), options: map[string]string{}}
	cmd.Flags().Visit(func(f *pflag.Flag) { p.options[f.Name] = f.Value.String() })
	delete(p.options, "json")
	delete(p.options, "debug")
	a.AskNobody = true // a check must not ask
	catalog, err := a.Catalog()
	a.AskNobody = false
	switch {
	case cmd.ValidateArgs(p.words) != nil || cmd.HasSubCommands() && !cmd.LocalNonPersistentFlags().HasFlags():
		return p, false // none, or only its subcommands can be run
	case err != nil || app.Live && !a.Live || !slices.Equal(app.Plugins, a.Plugins):
		return p, true // without a catalog the names cannot be checked
	case cmd.Name() == "help":
		about, more, err := root.Find(p.words)
		if err == nil && (about != root || len(p.words) == 0) {
			return p, len(more) == 0
		}
		_, _, err = command.Find(catalog, p.words, false)
		return p, err == nil || completes(cmd, nil, strings.TrimSuffix(p.words[0], ".md"))
	case cmd.Name() == "plan" && len(p.words) > 0:
		_, err := catalog.Find(p.words[0])
		return p, err == nil
	case cmd != root:
		return p, !a.Failing || namesExist(cmd, p, catalog)
	}
	if cmd.RunE(cmd, p.words) != nil || opts.Check() != nil || len(p.words) == 0 {
		return p, opts.Check() == nil
	}
	return a.parseTool(p, catalog, opts)
}

// free are the placeholders in lines of use whose words need not name anything that exists. id matches ids of
// records, whose form is enough.
var (
	free = strings.Fields("WORD RIGHT QUERY ...")
	id   = lazy.Pattern(`^([a-z][0-9a-f]{8}|sha256:[0-9a-f]+|RW[\w+/=]{20,})$`)
)

// readOptions are the options whose value names a file to read.
var readOptions = strings.Fields("dataset from import key manifest remove replay tls-cert tls-key token-file tools")

// namesExist reports whether the words and the options of a command name files, plugins, tools and so on that exist.
// A word that the reader must replace does not count as existing.
func namesExist(cmd *cobra.Command, p parsedLine, catalog *host.Catalog) bool {
	isFile := func(name string) bool {
		_, err := os.Stat(name)
		return err == nil
	}
	takes := strings.Fields(cmd.Use)[1:]
	if len(p.words)+len(p.options) == 0 && len(takes) > 0 && !strings.HasPrefix(takes[0], "[") {
		return false // a search without a query
	}
	for i, word := range p.words {
		kinds := strings.Split(strings.Trim(takes[min(i, len(takes)-1)], "[]."), "|")
		exists := slices.ContainsFunc(kinds, func(kind string) bool {
			switch _, _, err := command.Find(catalog, []string{word}, false); {
			case kind == "-":
				return word == kind
			case kind == "URL":
				return strings.Contains(word, "://") && !strings.Contains(word, ".example") // hosts in .example never exist
			case kind == "DIR", strings.HasPrefix(kind, "FILE"):
				return isFile(word)
			case slices.Contains(free, kind), i > 0 && kind == "TOOL", cmd.Name() == "new", cmd.Name() == "set":
				return true
			default:
				return err == nil || id().MatchString(word) || isFile(word) || completes(cmd, p.words[:i], word)
			}
		})
		if !exists || placeholder().MatchString(word) {
			return false
		}
	}
	for name, value := range p.options {
		exists := isFile(value) || id().MatchString(value)
		if placeholder().MatchString(value) || slices.Contains(readOptions, name) && !exists {
			return false
		}
	}
	return true
}

// completes reports whether a word is a possible completion of the words before it.
func completes(cmd *cobra.Command, before []string, word string) bool {
	found := cmd.ValidArgs
	if cmd.ValidArgsFunction != nil {
		found, _ = cmd.ValidArgsFunction(cmd, before, word)
	}
	return slices.ContainsFunc(found, func(one string) bool {
		name, _, _ := strings.Cut(one, "\t")
		return name == word
	})
}

// parseTool is [front.parse] for words that name a plugin, a tool or something in a plugin.
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
	if advice.NamesOf(catalog).Conflicts(at, opts.Values()) {
		return p, false
	}
	if !known || slices.ContainsFunc(append(rest, opts.Set...), placeholder().MatchString) {
		return p, true
	}
	value, err := jsontext.Decode([]byte(cmp.Or(string(params), "{}")), jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		return p, false
	}
	p.words, p.call = nil, step.Call(at.Name(), jsontext.Marshal(value))
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
