package cli

import (
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// runWith returns the RunE of a command that takes its words as options, each into its place, and runs.
func runWith[O any](run runFunc[O], opts *O, into ...*string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) error {
		for i, word := range words {
			*into[i] = word
		}
		return run(cmd.Context(), opts)
	}
}

// oneWord returns the word of a command that takes one or none.
func oneWord(words []string) string { return strings.Join(words, "") }

// checkAll makes each command in a tree that does not check its words itself check them by [checkWords].
func checkAll(cmd *cobra.Command) {
	if cmd.Args == nil {
		cmd.Args = checkWords
	}
	for _, c := range cmd.Commands() {
		checkAll(c)
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
