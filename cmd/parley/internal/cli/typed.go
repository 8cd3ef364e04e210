package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
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

// takeApart takes the command line apart: options that Parley does not have may be parameters of the tool. With
// letters, so may a letter after one dash.
func (a *App) takeApart(root *cobra.Command, letters bool, isSwitch func(option string) bool) (l typedLine) {
	for rest := a.args; len(rest) > 0; {
		word := rest[0]
		rest = rest[1:]
		name, isOption := strings.CutPrefix(word, "--")
		if letters && len(word) == 2 && word[0] == '-' && word != "--" {
			name, isOption = word[1:], true
		}
		name, value, given := strings.Cut(name, "=")
		option := root.Flag(name)
		switch {
		case word == "--":
			l.words = append(l.words, rest...)
			return l
		case !isOption:
			l.words = append(l.words, word)
		case option != nil && name != "full": // --full is an option of --help
			l.own = append(l.own, word)
			if !given && option.NoOptDefVal == "" && len(rest) > 0 {
				l.own, rest = append(l.own, rest[0]), rest[1:]
			}
		default:
			hasNext := len(rest) > 0 && !strings.HasPrefix(rest[0], "--")
			isTruth := hasNext && (rest[0] == "true" || rest[0] == "false")
			switch {
			case given:
			case hasNext && (isTruth || !isSwitch(name)):
				value, rest = rest[0], rest[1:]
			default:
				value, l.missing = "true", l.missing || !isSwitch(name)
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

// retype returns the command line with --param for each option that Parley does not have. It returns nil if one cannot
// be a parameter of the tool; with foreign, any name can be: the host says what it means.
func (a *App) retype(root *cobra.Command, foreign bool) []string {
	words := a.args
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") }); i >= 0 {
		words = words[:i]
	}
	if len(words) > 0 && words[0] == "call" {
		words = words[1:]
	}
	catalog, err := a.deps.Catalog()
	if err != nil || len(words) == 0 {
		return nil
	}
	at, _, err := command.Find(catalog, words, false)
	if err != nil || at.Tool == nil {
		return nil
	}
	l := a.takeApart(root, false, func(option string) bool {
		_, kind, _ := manifest.ParamNamed(at.Tool.Params, option)
		return kind == "boolean"
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

// dashed returns the command line that was given, with what begins with one dash as words of the tool.
func (a *App) dashed() string {
	isWord := func(word string) bool { return len(word) > 1 && word[0] == '-' && word[1] != '-' }
	line := []string{"parley"}
	for _, dashes := range []bool{false, true} {
		for _, word := range a.args {
			if isWord(word) == dashes {
				line = append(line, quoteWord(word))
			}
		}
		if !dashes {
			line = append(line, "--")
		}
	}
	return strings.Join(line, " ")
}

// identifier matches a word that may be a part of a tool's name.
var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// meant returns the step that a command line means by the name of another product's tool, nil if it means none: the
// call or, where a value has no place in it, the documentation.
func (a *App) meant() *host.Step {
	catalog, err := a.deps.Catalog()
	if err != nil {
		return nil
	}
	root := newRoot(newApp(&Streams{In: a.In, Out: a.Out, Err: a.Err, Env: a.Env}, nil), nil)
	words := a.takeApart(root, true, func(string) bool { return true }).words
	if len(words) > 0 && words[0] == "call" {
		words = words[1:]
	}
	if len(words) == 0 || slices.Contains(a.commands, words[0]) {
		return nil
	}
	if at, _, err := command.Find(catalog, words, false); err == nil && at.Tool != nil {
		return nil
	}
	n := 1
	for n < min(len(words), 4) && identifier.MatchString(words[n]) {
		n++
	}
	for n > 1 && !catalog.Knows(strings.Join(words[:n], "_")) {
		n--
	}
	name := strings.Join(words[:n], "_")
	if _, isPlugin := catalog.Provider(name); isPlugin || !catalog.Knows(name) {
		return nil
	}
	l := a.takeApart(root, true, func(option string) bool { return catalog.IsSwitch(name, option) })
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
	var after []any
	for _, word := range l.words[slices.Index(l.words, words[0]):][n:] {
		after = append(after, word)
	}
	meant, ok := catalog.Meant(name, given, after)
	h, err := a.deps.Parley().Host()
	if err != nil || meant.See == "" {
		return nil
	}
	describe := host.DescribeStep(meant.See, 0)
	lost := slices.ContainsFunc(l.own, func(option string) bool {
		return !slices.Contains([]string{"--json", "--debug", "--dry-run"}, option)
	})
	if !ok || lost || l.missing {
		return &describe
	}
	step := host.CallStep(meant.Tool, jsontext.Marshal(meant.Params))
	if e := h.CheckCall(host.Call{Name: step.Tool, Params: step.Params}); e != nil && e.Corrected == nil {
		return &describe
	} else if e != nil {
		step.Params = e.Corrected
		if e.Retry != nil {
			step.Options = e.Retry.Options // such as a timeout that was among the parameters
		}
	}
	if at, err := catalog.Find(meant.Tool); err == nil {
		step.Options.DryRun = at.Tool.Effect == manifest.EffectDestructive
	}
	return &step
}
