package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
)

// retyped returns the command line that was given, with --param for each unknown option that is a parameter of the
// tool, such as --expression. It returns "" if that would still not be a valid command line.
func (a *App) retyped(cmd *cobra.Command) string {
	words := cmd.Flags().Args()
	if len(words) == 0 || cmd.HasParent() && cmd.Name() != "call" {
		return ""
	}
	catalog, err := a.deps.Catalog()
	if err != nil {
		return ""
	}
	at, _, err := command.Find(catalog, words, false)
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
		isSwitch := params[i].Type == "boolean" && (len(rest) == 0 || rest[0] != "true" && rest[0] != "false")
		switch {
		case given:
		case isSwitch:
			value = "true"
		case len(rest) == 0:
			return ""
		default:
			value, rest = rest[0], rest[1:]
		}
		if strings.HasPrefix(value, "@") { // which --param would read as a file
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

// plainName returns a name in the form in which return-by-value and returnByValue are equal.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}
