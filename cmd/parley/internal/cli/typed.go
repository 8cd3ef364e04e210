package cli

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/tools"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// typedLine is a command line split into its parts.
type typedLine struct {
	words, own []string    // own has Parley's options, with their values
	objects    [][2]string // --params, and --param without KEY=VALUE, with their values
	params     [][2]string
	missing    bool   // a value cannot be read
	valueless  string // the option that lacks its value
}

// takeApart splits the command line into its parts. Options that Parley does not have may be parameters of the tool.
// So may a letter after a single dash, and an option of Parley for which the tool has a parameter.
func takeApart(a *command.App, root *cobra.Command, about func(option string) (isParam, isSwitch bool)) (l typedLine) {
	for rest := a.Args; len(rest) > 0; {
		word := rest[0]
		rest = rest[1:]
		name, isOption := strings.CutPrefix(word, "--")
		if session, is := strings.CutPrefix(word, "-s="); is && len(l.words) == 0 { // in the form of playwright-cli
			l.own = append(l.own, "--session", session)
			continue
		}
		if found := attached().FindStringSubmatch(word); found != nil {
			if isParam, _ := about(found[1]); isParam {
				word, name = found[1]+"="+found[2], found[1]+"="+found[2]
			}
		}
		isOption = isOption || letter().MatchString(word)
		name, value, given := strings.Cut(name, "=")
		isParam, isSwitch := false, false
		if len(rest) > 0 && pair().MatchString(rest[0]) {
			name = strings.TrimPrefix(name, "-") // -f KEY=VALUE
		}
		if isOption {
			isParam, isSwitch = about(name)
			name = strings.TrimPrefix(name, "-")
		}
		option := root.Flag(name)
		hasNext := len(rest) > 0 && !strings.HasPrefix(rest[0], "--")
		isTruth := hasNext && (rest[0] == "true" || rest[0] == "false")
		switch {
		case word == "--":
			l.words = append(l.words, rest...)
			return l
		case !isOption:
			l.words = append(l.words, word)
		case option != nil && name != "full" && (!isParam || !given && !hasNext && !isSwitch): // --full belongs to --help
			taken := []string{word}
			if !given && option.NoOptDefVal == "" && len(rest) > 0 {
				value, taken, rest = rest[0], append(taken, rest[0]), rest[1:]
			}
			key, text, isPair := strings.Cut(value, "=")
			isFile := strings.HasPrefix(value, "@") || strings.HasPrefix(text, "@") || value == "-"
			switch {
			case name != "param" && name != "params" || isFile:
				l.own = append(l.own, taken...)
			case name == "param" && isPair && paramKey().MatchString(key):
				l.params = append(l.params, [2]string{key, text})
			case name == "param" && paramKey().MatchString(value) && len(rest) > 0 && !strings.HasPrefix(rest[0], "-"):
				l.params, rest = append(l.params, [2]string{value, rest[0]}), rest[1:] // --param KEY VALUE
			default:
				l.objects = append(l.objects, [2]string{name, value})
			}
		default:
			switch {
			case given:
			case hasNext && (isTruth || !isSwitch):
				value, rest = rest[0], rest[1:]
			default:
				if value = "true"; !isSwitch {
					l.missing, l.valueless = true, name
				}
			}
			l.params = append(l.params, [2]string{name, value})
		}
	}
	return l
}

var (
	attached = lazy.Pattern(`^(-\pL)([0-9]+)$`) // -U3 means -U 3
	letter   = lazy.Pattern(`^-\pL(=|$)`)       // an option of one letter, which Parley does not have
	paramKey = lazy.Pattern(`^[A-Za-z_][\w.-]*$`)
	pair     = lazy.Pattern(`(?s)^ *([A-Za-z_][\w.-]*) ?(?:=|: )(.*)$`)
)

// objectOf returns the parameters in a text, or nil if it has none. The text is an object, maybe in quotation marks
// that a shell should have removed, or KEY=VALUE or KEY: VALUE, maybe several separated by commas.
func objectOf(text string) (object map[string]any, isJSON bool) {
	quoted := strings.Trim(strings.TrimSpace(text), `'"`)
	for _, form := range []string{quoted, strings.ReplaceAll(quoted, `\"`, `"`)} {
		raw, _ := jsontext.Repair(form)
		value, _ := jsontext.Decode(raw, jsontext.Limits{Bytes: host.MaxParams})
		if object, isJSON = value.(map[string]any); isJSON {
			return object, true
		}
	}
	for _, parts := range [][]string{strings.Split(text, ","), {text}} {
		object = map[string]any{}
		for _, part := range parts {
			if found := pair().FindStringSubmatch(part); found != nil {
				object[found[1]] = found[2]
			}
		}
		if len(object) == len(parts) {
			return object, false
		}
	}
	return nil, false
}

// retyped is the error of a command line with options that are parameters of the tool. args is the line with --param
// instead of these options.
type retyped struct {
	error
	args []string
}

// named returns the tool that the command line names, and the words after it.
func named(a *command.App, root *cobra.Command, names *advice.Names) (at host.Address, words, rest []string) {
	words = withoutLead(names, takeApart(a, root, func(string) (bool, bool) { return false, true }).words)
	if len(words) == 0 || slices.Contains(a.Commands.Names(), words[0]) && !names.OfPeers(words[:min(len(words), 2)]...) {
		return at, nil, nil
	}
	at, rest, err := command.Find(names.Catalog(), words, false)
	if err != nil {
		return host.Address{}, words, nil
	}
	return at, words, rest
}

// withoutLead returns the words starting at the name of a tool.
func withoutLead(names *advice.Names, words []string) []string {
	for len(words) > 1 && slices.Contains(lead, words[0]) {
		_, isPlugin := names.Catalog().Provider(words[1])
		if !isPlugin && !slices.Contains(lead, words[1]) && !names.Knows(words[1]) {
			break
		}
		words = words[1:]
	}
	if len(words) > 2 && slices.Contains(lead, words[1]) && !names.Knows(words[0]+"."+words[1]) {
		words = slices.Concat(words[:1], words[2:]) // cdp send Page.navigate
	}
	return words
}

// lead are words that precede the name of a tool in other programs.
var lead = []string{"parley", "mcp", "tool", "tools", "call", "call_tool", "tools/call", "run", "exec", "invoke", "use",
	"send"}

// retype returns the command line with --param in place of each option that Parley does not have. It returns nil if
// an option cannot be a parameter of the tool. With foreign, any name can be, because the host interprets it.
func retype(a *command.App, root *cobra.Command, foreign bool) []string {
	catalog, err := a.Catalog()
	if err != nil {
		return nil
	}
	names := advice.NamesOf(catalog)
	at, _, _ := named(a, root, names)
	if at.Tool == nil {
		return nil
	}
	l := takeApart(a, root, func(option string) (isParam, isSwitch bool) {
		isParam, isSwitch = names.Option(at.Name(), option)
		return isParam && strings.HasPrefix(option, "-"), isSwitch
	})
	if len(l.params) == 0 {
		return nil
	}
	args := append(slices.Clone(l.words), l.own...)
	for _, o := range l.objects {
		args = append(args, "--"+o[0], o[1])
	}
	for _, p := range l.params {
		name, _, own := manifest.ParamNamed(at.Tool.Params, p[0])
		hasValue := p[0] != l.valueless
		if object, _ := objectOf(p[1]); name == "" && (!foreign || !hasValue || object != nil) {
			return nil
		} else if !own {
			name = p[0]
		}
		args = append(args, "--param", name+command.When(hasValue, "="+p[1]))
	}
	return args
}

// identifier matches a word that may be a part of a tool's name.
var identifier = lazy.Pattern(`^[A-Za-z][A-Za-z0-9_-]*$`)

// carried are the options of Parley that the replacing call has, too.
var carried = []string{"json", "debug", "dry-run", "session", "browser", "target", "context", "timeout", "max-bytes",
	"jq", "on-dialog", "wait", "isolate", "out"}

// meant returns the step that a command line in the form of another product means, or nil if it means none. The step
// is the call or, if a value cannot be expressed in it, the documentation.
func (a *front) meant() *step.Step {
	own := newFront(&command.Streams{In: a.In, Out: a.Out, Err: a.Err, Env: a.Env}, nil)
	defer own.Close()
	deps := a.App
	if _, err := deps.Catalog(); err != nil {
		deps, a.Plugins = own, nil // --load is a parameter of the tool
	}
	h, err := deps.Parley().Host()
	if err != nil {
		return nil
	}
	var opts *tools.RootOptions
	root := tools.NewToolCommand(own, func(_ context.Context, o *tools.RootOptions) error {
		opts = o
		return nil
	})
	at, words, rest := named(a.App, root, h.Names())
	ofPeers := func(n int) bool { return h.Names().OfPeers(words[:min(len(words), n)]...) }
	if at.Tool == nil && len(words) > 0 && len(leadsTo("", words[0])) > 0 && !ofPeers(1) && !ofPeers(2) {
		if _, isPlugin := h.Catalog().Provider(words[0]); !isPlugin {
			return nil
		}
	}
	var describe *step.Step
	for _, name := range candidates(h.Names(), at, words, rest) {
		l := takeApart(a.App, root, func(option string) (bool, bool) { return h.Names().Option(name.means, option) })
		after := withoutLead(h.Names(), l.words)
		if len(after) < name.words || !slices.Equal(after[:name.words], words[:name.words]) {
			continue // it is the value of an option
		}
		var values []any
		_, see := h.Names().Meant(name.means, map[string]any{}, nil)
		for _, word := range after[name.words:] {
			if text, isFile := a.read(h.Catalog().Exact(see), at.Tool != nil, word); isFile {
				values = append(values, text)
			} else if object, isJSON := objectOf(word); isJSON && holdsParams(h.Names(), name.means, object) {
				l.objects = append(l.objects, [2]string{"params", word})
			} else {
				values = append(values, word)
			}
		}
		given, exact := l.given(h.Names(), name.means)
		all, see := h.Names().Meant(name.means, given, values)
		isLost := l.missing || root.ParseFlags(l.own) != nil || root.RunE(root, words) != nil
		root.Flags().Visit(func(f *pflag.Flag) { isLost = isLost || !slices.Contains(carried, f.Name) })
		for _, m := range all {
			if isLost || m.File != "" && opts.Out != "" {
				continue
			}
			call := host.Call{Name: m.Tool, Options: opts.Options(), Given: opts.Options().StepOptions()}
			call.Given.Session, call.Given.File = own.SessionName, cmp.Or(m.File, opts.Out)
			call.Given.Out = call.Given.File != ""
			if step := stepOf(h, call, m.Params, exact); step != nil && a.offers(a.Command(*step)) {
				return step
			}
		}
		if at.Tool == nil && see != "" && describe == nil {
			describe = new(step.Describe(see, 0))
		}
	}
	return describe
}

// read returns the contents of the file that a word names as @FILE, FILE or -, unless the word is itself a value. It
// is not for a tool that takes no words, or for the counterpart of a program that reads files, such as sha256sum.
func (a *front) read(at host.Address, isOwn bool, word string) (text string, isFile bool) {
	if at.Tool == nil || len(at.Tool.Positional) > 0 && (isOwn || at.Provider.Info().Kind == manifest.KindBuiltin) {
		return "", false
	}
	path := strings.TrimPrefix(word, "@")
	for _, f := range a.Files { // it may have been read already, for another name
		if f.Path == path {
			return string(f.Data), utf8.Valid(f.Data)
		}
	}
	if info, err := os.Stat(path); path != "-" && (err != nil || !info.Mode().IsRegular()) {
		return "", false
	}
	ctx, cancel := context.WithTimeout(context.Background(), inputTime)
	defer cancel()
	data, err := command.ReadGiven(ctx, a.App, path)
	return string(data), err == nil && utf8.Valid(data)
}

// inputTime bounds how long an error waits for the standard input that the command line names.
const inputTime = 5 * time.Second

// candidate is a possible meaning of the first words of a command line.
type candidate struct {
	means string
	words int
}

// candidates returns the names that a command line may mean, longer ones first, and a tool's name before its
// plugin's.
func candidates(names *advice.Names, at host.Address, words, rest []string) (all []candidate) {
	if len(words) == 0 {
		return nil
	}
	prefix, ahead, least := "", words, 1
	if _, isPlugin := names.Catalog().Provider(words[0]); at.Tool != nil {
		prefix, ahead, least = at.Name()+"_", rest, 0
	} else if isPlugin && len(words) > 1 {
		prefix, ahead = words[0]+".", words[1:]
	}
	n := least
	for n < min(len(ahead), 4) && identifier().MatchString(ahead[n]) {
		n++
	}
	for ; n >= least; n-- {
		name := strings.TrimSuffix(prefix+strings.Join(ahead[:n], "_"), "_")
		if _, isPlugin := names.Catalog().Provider(name); !isPlugin && names.Knows(name) {
			all = append(all, candidate{name, len(words) - len(ahead) + n})
			break
		}
	}
	if p, isPlugin := names.Catalog().Provider(words[0]); isPlugin && len(all) == 0 && at.Tool == nil {
		if tools, err := p.Names(); err == nil && len(tools) == 1 {
			return []candidate{{words[0] + "." + tools[0], 1}}
		}
	}
	if at.Tool == nil && len(words) > 1 && identifier().MatchString(words[0]) {
		if _, isPlugin := names.Catalog().Provider(words[1]); isPlugin && names.Knows(words[1]+"."+words[0]) {
			swapped := candidate{words[1] + "." + words[0], 2}
			if _, see := names.Meant(words[0], map[string]any{}, nil); see == swapped.means {
				return []candidate{swapped}
			}
			all = append(all, swapped)
		}
	}
	return all
}

// given returns the parameters of the line. The value of an option that the tool does not have may be KEY=VALUE, or
// an object of the tool's parameters. exact are the texts that came from JSON, and so already have their type.
func (l *typedLine) given(names *advice.Names, name string) (given map[string]any, exact []string) {
	given = map[string]any{}
	add := func(name string, value any) {
		switch before := given[name].(type) {
		case nil:
			given[name] = value
		case []any:
			given[name] = append(before, value)
		default:
			given[name] = []any{before, value}
		}
	}
	addAll := func(text string) bool {
		object, isJSON := objectOf(text)
		for name, value := range object {
			if text, isText := value.(string); isText && isJSON {
				exact = append(exact, text)
			}
			add(name, value)
		}
		return object != nil
	}
	for _, o := range l.objects {
		l.missing = !addAll(o[1]) || l.missing
	}
	for _, p := range l.params {
		object, _ := objectOf(p[1])
		if isKnown, _ := names.Option(name, p[0]); isKnown || !holdsParams(names, name, object) || !addAll(p[1]) {
			add(p[0], p[1])
		}
	}
	return given, exact
}

// holdsParams reports whether an object consists of parameters of a name's tool.
func holdsParams(names *advice.Names, name string, object map[string]any) bool {
	for key := range object {
		if isParam, _ := names.Option(name, key); !isParam {
			return false
		}
	}
	return len(object) > 0
}

// stepOf returns the step that makes a call with the parameters of a command line, or nil if they cannot be
// corrected.
func stepOf(h *call.Host, c host.Call, params map[string]any, exact []string) *step.Step {
	at, err := h.Catalog().Find(c.Name)
	if err != nil {
		return nil
	}
	for name, value := range params {
		if text, isText := value.(string); !isText || !slices.Contains(exact, text) {
			params[name] = tools.Typed(at.Tool, name, value)
		}
	}
	c.Params = jsontext.Marshal(params)
	if e := advice.CheckCall(h.Names(), c); e != nil {
		return e.Retry
	}
	step := step.Call(c.Name, c.Params)
	step.Options = c.Given
	step.Options.DryRun = c.Given.DryRun || at.Tool.Effect == manifest.EffectDestructive
	return &step
}
