package command

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// MissingWord returns the error of a command without a word that it requires.
func MissingWord(command, word, example string) *host.Error {
	return host.Errorf(host.InvalidArgs, "parley %s requires %s", command, word).WithNext(example)
}

// Entry is a command by its name. New makes it, with those below it.
type Entry struct {
	Name string
	New  func(*App) *cobra.Command
}

// Parent returns a command that does nothing but hold others.
func Parent(name, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: children[0].Example,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				names := strings.Join(childNames(cmd), ", ")
				return host.Errorf(host.InvalidArgs, "%s requires one of %s", cmd.CommandPath(), names).
					WithNext(strings.Split(children[0].Example, "\n")...)
			}
			return UnknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(children...)
	return cmd
}

func childNames(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// UnknownCommand returns the error of a word after a command that holds others and has none of this name.
func UnknownCommand(cmd *cobra.Command, word string) error {
	e := UnknownValue("COMMAND", word, childNames(cmd))
	e.Code, e.Details = host.NotFound, nil
	e.Message = fmt.Sprintf("parley %s has no command %s", cmd.Name(), manifest.CleanLine(word))
	for i := range e.DidYouMean {
		e.DidYouMean[i].Name = cmd.Name() + " " + e.DidYouMean[i].Name
	}
	return e.WithNext("parley help " + cmd.Name())
}

// RunWith returns the RunE of a command that takes its words as options, each into its place, and runs.
func RunWith[O any](run RunFunc[O], opts *O, into ...*string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) error {
		for i, word := range words {
			*into[i] = word
		}
		return run(cmd.Context(), opts)
	}
}

// RunWord returns the RunE of a command without options that takes a word, "" if none is given.
func RunWord(
	app *App, run func(ctx context.Context, app *App, word string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) error { return run(cmd.Context(), app, OneWord(words)) }
}

// OneWord returns the word of a command that takes one or none.
func OneWord(words []string) string { return strings.Join(words, "") }

// CheckAll makes each command in a tree that does not check its words itself check them by [checkWords].
func CheckAll(cmd *cobra.Command) {
	if cmd.Args == nil {
		cmd.Args = checkWords
	}
	for _, c := range cmd.Commands() {
		CheckAll(c)
	}
}

// checkWords refuses words that the line of use of a command does not have, such as "push PLUGIN URL", "stop [PLUGIN]"
// "wrap FILE [WORD...]" or "run DIR TOOL ...".
func checkWords(cmd *cobra.Command, words []string) error {
	takes := strings.Fields(cmd.Use)[1:]
	most := len(takes)
	if strings.Contains(cmd.Use, "...") {
		most = math.MaxInt
	}
	required := slices.DeleteFunc(slices.Clone(takes), func(name string) bool { return name[0] == '[' || name == "..." })
	empty := slices.Index(words, "")
	var e *host.Error
	switch {
	case len(words) < len(required):
		e = host.Errorf(host.InvalidArgs, "%s requires %s", cmd.CommandPath(), strings.Join(required[len(words):], " and "))
		if len(cmd.ValidArgs) > 0 {
			e.Message += ", one of " + strings.Join(cmd.ValidArgs, ", ")
		}
	case len(words) > most && most == 0:
		e = host.Errorf(host.InvalidArgs, "%s takes no words; unexpected %q", cmd.CommandPath(), manifest.CleanLine(words[0]))
	case len(words) > most:
		e = host.Errorf(host.InvalidArgs, "%s takes %s only; unexpected %q", cmd.CommandPath(), strings.Join(takes, " "),
			manifest.CleanLine(words[most]))
	case empty >= 0 && empty < len(takes):
		e = host.Errorf(host.InvalidArgs, "%s: %s is empty", cmd.CommandPath(), strings.Trim(takes[empty], "[]"))
	default:
		return nil
	}
	isListed := slices.Contains(takes, "NAME") || slices.Contains(takes, "CALL")
	if p := cmd.Parent(); p != nil && isListed && slices.Contains(childNames(p), "list") {
		e = e.WithNext(p.CommandPath() + " list") // which has the names
	}
	example, _, _ := strings.Cut(cmd.Example, "\n")
	return e.WithNext(example)
}
