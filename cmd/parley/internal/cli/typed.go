package cli

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/tools"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// typedLine is a command line taken apart.
type typedLine struct {
	words, own []string // own are Parley's options, with their values
	params     [][2]string
	missing    bool // an option has no value and is no switch
}

// takeApart takes the command line apart: options that Parley does not have may be parameters of the tool, and so may a
// letter after one dash, and an option of Parley's that the tool has a parameter for.
func takeApart(a *command.App, root *cobra.Command, about func(option string) (isParam, isSwitch bool)) (l typedLine) {
	for rest := a.Args; len(rest) > 0; {
		word := rest[0]
		rest = rest[1:]
		name, isOption := strings.CutPrefix(word, "--")
		if len(word) == 2 && word[0] == '-' && unicode.IsLetter(rune(word[1])) {
			name, isOption = word[1:], true
		}
		name, value, given := strings.Cut(name, "=")
		option := root.Flag(name)
		isParam, isSwitch := false, false
		if isOption {
			isParam, isSwitch = about(name)
		}
		hasNext := len(rest) > 0 && !strings.HasPrefix(rest[0], "--")
		isTruth := hasNext && (rest[0] == "true" || rest[0] == "false")
		switch {
		case word == "--":
			l.words = append(l.words, rest...)
			return l
		case !isOption:
			l.words = append(l.words, word)
		case option != nil && name != "full" && (!isParam || !given && !hasNext && !isSwitch): // --full is of --help
			taken := []string{word}
			if !given && option.NoOptDefVal == "" && len(rest) > 0 {
				value, taken, rest = rest[0], append(taken, rest[0]), rest[1:]
			}
			if key, text, isPair := strings.Cut(value, "="); name == "param" && isPair && !strings.HasPrefix(text, "@") {
				l.params = append(l.params, [2]string{key, text})
			} else {
				l.own = append(l.own, taken...)
			}
		default:
			switch {
			case given:
			case hasNext && (isTruth || !isSwitch):
				value, rest = rest[0], rest[1:]
			default:
				value, l.missing = "true", l.missing || !isSwitch
			}
			l.params = append(l.params, [2]string{name, value})
		}
	}
	return l
}

// retyped is the error of a command line with options that are parameters of the tool: in args they are --param.
type retyped struct {
	error
	args []string
}

// named returns the tool that the command line names, and the words after it.
func named(a *command.App, root *cobra.Command, catalog *host.Catalog) (at host.Address, words, rest []string) {
	words = takeApart(a, root, func(string) (bool, bool) { return false, true }).words
	if len(words) > 0 && words[0] == "call" {
		words = words[1:]
	}
	if len(words) == 0 || slices.Contains(a.Commands, words[0]) {
		return at, nil, nil
	}
	at, rest, err := command.Find(catalog, words, false)
	if err != nil {
		return host.Address{}, words, nil
	}
	return at, words, rest
}

// retype returns the command line with --param for each option that Parley does not have. It returns nil if one cannot
// be a parameter of the tool; with foreign, any name can be: the host says what it means.
func retype(a *command.App, root *cobra.Command, foreign bool) []string {
	catalog, err := a.Catalog()
	if err != nil {
		return nil
	}
	at, _, _ := named(a, root, catalog)
	if at.Tool == nil {
		return nil
	}
	l := takeApart(a, root, func(option string) (_, isSwitch bool) {
		_, isSwitch = catalog.Option(at.Name(), option)
		return false, isSwitch
	})
	if len(l.params) == 0 || l.missing {
		return nil
	}
	args := append(slices.Clone(l.words), l.own...)
	for _, p := range l.params {
		name, _, own := manifest.ParamNamed(at.Tool.Params, p[0])
		if name == "" && !foreign {
			return nil
		} else if !own {
			name = p[0]
		}
		args = append(args, "--param", name+"="+p[1])
	}
	return args
}

// identifier matches a word that may be a part of a tool's name.
var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// carried are the options of Parley's that the call in place of another one has, too.
var carried = []string{"json", "debug", "dry-run", "session", "browser", "target", "timeout", "max-bytes", "jq",
	"on-dialog", "wait", "isolate", "out"}

// meant returns the step that a command line in the form of another product, which ends with a code, means; nil if it
// means none. It is the call or, where a value has no place in it, the documentation.
func (a *front) meant(code host.Code) *host.Step {
	own := newFront(&command.Streams{In: a.In, Out: a.Out, Err: a.Err, Env: a.Env}, nil)
	defer own.Close()
	deps := a.App
	if _, err := deps.Catalog(); err != nil {
		deps, a.Plugins = own, nil // --load is meant for the tool
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
	at, words, rest := named(a.App, root, h.Catalog())
	if at.Tool != nil && code == host.NotFound { // by the tool itself
		return nil
	}
	lead, least := words, 1 // words of the name
	if at.Tool != nil {
		lead, least = rest, 0
	}
	n := least
	for n < min(len(lead), 4) && identifier.MatchString(lead[n]) {
		n++
	}
	for ; n >= least && len(words) > 0; n-- {
		name := strings.Join(lead[:n], "_")
		if at.Tool != nil {
			name = strings.TrimSuffix(at.Name()+"_"+name, "_")
		}
		if _, isPlugin := h.Catalog().Provider(name); isPlugin || !h.Catalog().Knows(name) {
			continue
		}
		l := takeApart(a.App, root, func(option string) (bool, bool) { return h.Catalog().Option(name, option) })
		named := words[:len(words)-len(lead)+n]
		after := l.words[max(0, slices.Index(l.words, words[0])):]
		if len(after) < len(named) || !slices.Equal(after[:len(named)], named) {
			continue // the value of an option
		}
		values := make([]any, len(after)-len(named))
		for i, word := range after[len(named):] {
			values[i] = word
		}
		given := map[string]any{}
		for _, p := range l.params {
			switch before := given[p[0]].(type) {
			case nil:
				given[p[0]] = p[1]
			case []any:
				given[p[0]] = append(before, p[1])
			default:
				given[p[0]] = []any{before, p[1]}
			}
		}
		all, see := h.Catalog().Meant(name, given, values)
		isLost := l.missing || root.ParseFlags(l.own) != nil || root.RunE(root, words) != nil
		root.Flags().Visit(func(f *pflag.Flag) { isLost = isLost || !slices.Contains(carried, f.Name) })
		for _, m := range all {
			if isLost || m.File != "" && opts.Out != "" {
				continue
			}
			call := host.Call{Name: m.Tool, Options: opts.Options, Given: opts.Options.StepOptions()}
			call.Given.Session, call.Given.File = own.SessionName, cmp.Or(m.File, opts.Out)
			call.Given.Out = call.Given.File != ""
			if step := stepOf(h, call, m.Params); step != nil && a.offers(a.Command(*step)) {
				return step
			}
		}
		if at.Tool == nil && see != "" {
			describe := host.DescribeStep(see, 0)
			return &describe
		}
	}
	return nil
}

// stepOf returns the step that makes a call with parameters of a command line, nil if they cannot be corrected.
func stepOf(h *host.Host, c host.Call, params map[string]any) *host.Step {
	at, err := h.Catalog().Find(c.Name)
	if err != nil {
		return nil
	}
	for name, value := range params {
		if text, isText := value.(string); isText {
			params[name] = tools.Typed(at.Tool, name, text)
		}
	}
	c.Params = jsontext.Marshal(params)
	if e := h.CheckCall(c); e != nil {
		return e.Retry
	}
	step := host.CallStep(c.Name, c.Params)
	step.Options = c.Given
	step.Options.DryRun = c.Given.DryRun || at.Tool.Effect == manifest.EffectDestructive
	return &step
}
