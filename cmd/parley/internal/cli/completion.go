package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion(app *App) *cobra.Command {
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print completions",
		Example:   "parley completion bash",
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("completion", "one SHELL of "+strings.Join(shells, ", "), "parley completion bash")
			}
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(app.Out, true)
			case "zsh":
				return root.GenZshCompletion(app.Out)
			case "fish":
				return root.GenFishCompletion(app.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(app.Out)
			}
			return unknownValue("SHELL", args[0], shells)
		},
	}
}

// unknownValue is the error of a word that must be one of a few.
func unknownValue(option, given string, allowed []string) *host.Error {
	given = manifest.CleanLine(given)
	name := option
	if strings.ToLower(option) == option {
		name = "--" + option
	}
	e := host.Errorf(host.InvalidArgs, "%s: %q is not one of %s", name, given, strings.Join(allowed, ", "))
	e.Details = []host.Detail{{Parameter: name, Keyword: "enum", Provided: given, Expected: "one of " + strings.Join(allowed, ", ")}}
	for _, n := range schema.Nearest(given, allowed, 3) {
		e.DidYouMean = append(e.DidYouMean, host.NearName(n))
	}
	return e
}

// completeNames completes plugins first, then the groups and tools of the one that was named.
func (a *App) completeNames(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	catalog, err := a.catalog()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	offer := func(name, brief string) {
		if strings.HasPrefix(strings.ToLower(name), strings.ToLower(typed)) {
			found = append(found, name+"\t"+manifest.CleanLine(brief))
		}
	}
	switch len(args) {
	case 0:
		for _, p := range catalog.Providers() {
			offer(p.Info().Name, p.Info().Brief)
		}
	case 1:
		p, ok := catalog.Provider(args[0])
		if !ok {
			break
		}
		groups, _ := p.Groups()
		for _, g := range groups {
			offer(g.Name, g.Brief)
			if group, _, dotted := strings.Cut(typed, "."); dotted && strings.EqualFold(group, g.Name) {
				lines, _ := p.Lines(g.Name)
				for _, l := range lines {
					offer(l.Name, l.Brief)
				}
			}
		}
		lines, _ := p.Lines("")
		for _, l := range lines {
			offer(l.Name, l.Brief)
		}
	default:
		return nil, cobra.ShellCompDirectiveDefault
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completePlugins completes the name of one plugin.
func (a *App) completePlugins(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNames(cmd, nil, typed)
}

func completeDialog(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("on-dialog", cobra.FixedCompletions([]string{"accept", "dismiss", "fail"}, cobra.ShellCompDirectiveNoFileComp))
}

// completeQualified completes plugin.tool in one word.
func (a *App) completeQualified(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	plugin, rest, dotted := strings.Cut(typed, ".")
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if !dotted {
		names, _ := a.completeNames(cmd, nil, typed)
		for i, n := range names {
			name, brief, _ := strings.Cut(n, "\t")
			names[i] = name + ".\t" + brief
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	names, directive := a.completeNames(cmd, []string{plugin}, rest)
	for i := range names {
		names[i] = plugin + "." + names[i]
	}
	return names, directive
}
