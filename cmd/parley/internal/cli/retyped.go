package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/manifest"
)

// retyped is the command line that was given, with --param for what is a parameter of its tool, not an option, such as --expression; ""
// where that would still be none.
func (a *App) retyped(cmd *cobra.Command) string {
	words := cmd.Flags().Args()
	if len(words) == 0 || cmd.HasParent() && cmd.Name() != "call" {
		return ""
	}
	catalog, err := a.deps.Catalog()
	if err != nil {
		return ""
	}
	at, _, err := a.resolve(cmd.Root(), catalog, words, false)
	if err != nil || at.Tool == nil {
		return ""
	}
	params := manifest.Params(at.Tool.Params)
	line := []string{"parley"}
	for rest := a.args; len(rest) > 0; {
		word := rest[0]
		rest = rest[1:]
		name, isOption := strings.CutPrefix(word, "--")
		name, value, given := strings.Cut(name, "=")
		option := cmd.Flag(name)
		switch {
		case !isOption || name == "":
			line = append(line, word)
			continue
		case option != nil:
			line = append(line, word)
			if !given && option.NoOptDefVal == "" && len(rest) > 0 {
				line, rest = append(line, rest[0]), rest[1:]
			}
			continue
		}
		i := slices.IndexFunc(params, func(p manifest.Param) bool { return plainName(p.Name) == plainName(name) })
		if i < 0 {
			return ""
		}
		if isSwitch := params[i].Type == "boolean" && (len(rest) == 0 || rest[0] != "true" && rest[0] != "false"); !given && isSwitch {
			value = "true"
		} else if !given && len(rest) == 0 {
			return ""
		} else if !given {
			value, rest = rest[0], rest[1:]
		}
		if strings.HasPrefix(value, "@") { // would name a file
			return ""
		}
		line = append(line, "--param", params[i].Name+"="+value)
	}
	for i, word := range line {
		if manifest.CleanLine(word) != word {
			return ""
		}
		line[i] = shellQuote(word)
	}
	return strings.Join(line, " ")
}

// plainName is what remains of a name where --return-by-value and returnByValue are one.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}
