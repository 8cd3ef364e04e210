// Package commandline reads command lines of parley, such as the steps of a tutorial: their words, and what they call.
package commandline

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Read parses a command line from the `run` field of a tutorial in a manifest. It returns false with a zero step for a
// line that is not a command on the catalog or has an unknown name, and false with the bare call for a call with
// arguments that a step cannot express.
func Read(c *host.Catalog, line string) (step.Step, bool) {
	words, ok := Words(line)
	if !ok || len(words) < 2 || words[0] != "parley" {
		return step.Step{}, false
	}
	words = words[1:]
	switch words[0] {
	case "search":
		return step.Search(wordAfter(words, "search")), len(words) > 1
	case "--list":
		return step.List(""), true
	case "call":
		words = words[1:]
	}
	if len(words) == 0 {
		return step.Step{}, false
	}
	plugin, local, _ := strings.Cut(words[0], ".")
	rest := words[1:]
	if local == "" && len(rest) > 0 && !strings.HasPrefix(rest[0], "--") {
		local, rest = rest[0], rest[1:]
	}
	if slices.Contains(rest, "--listen") {
		return step.Step{Op: step.OpListen, Tool: plugin, Query: wordAfter(rest, "--listen")}, true
	}
	at, err := c.FindIn(plugin, local)
	switch {
	case err != nil:
		return step.Step{}, false
	case slices.Contains(rest, "--search"):
		return step.Step{Op: step.OpSearch, Tool: at.Plugin, Query: wordAfter(rest, "--search")}, true
	case slices.Contains(rest, "--describe") || at.Entry != nil:
		tier, _ := strconv.Atoi(wordAfter(rest, "--tier"))
		return step.Describe(at.Name(), tier), true
	case slices.Contains(rest, "--list") || at.Tool == nil:
		return at.ListStep(), true
	}
	return callOf(at, rest)
}

// callOf parses the words after the name of a tool: --params, --param, positional parameters and options.
func callOf(at host.Address, words []string) (step.Step, bool) {
	s := step.Call(at.Name(), nil)
	params := map[string]any{}
	positional := at.Tool.Positional
	for len(words) > 0 {
		word, value := words[0], ""
		words = words[1:]
		if strings.HasPrefix(word, "--") {
			if len(words) == 0 {
				return step.Call(at.Name(), nil), false
			}
			value, words = words[0], words[1:]
		}
		switch {
		case word == "--params" && s.Params == nil && json.Valid([]byte(value)):
			s.Params = json.RawMessage(value)
		case word == "--param":
			key, text, ok := strings.Cut(value, "=")
			if !ok || strings.Contains(key, ".") {
				return step.Call(at.Name(), nil), false
			}
			params[key] = typedValue(at, key, text)
		case word == "--browser":
			s.Options.Browser = value
		case word == "--target":
			s.Options.Target = value
		case word == "--context":
			s.Options.Context = value
		case word == "--timeout":
			timeout, err := time.ParseDuration(value)
			if err != nil {
				return step.Call(at.Name(), nil), false
			}
			s.Options.Timeout = timeout
		case word == "--out":
			s.Options.Out = true
		case strings.HasPrefix(word, "--") || len(positional) == 0:
			return step.Call(at.Name(), nil), false
		default:
			params[positional[0]] = typedValue(at, positional[0], word)
			positional = positional[1:]
		}
	}
	if s.Params != nil {
		return s, len(params) == 0
	}
	return s.With(params), true
}

// typedValue returns a word as a value of the type of a parameter.
func typedValue(at host.Address, key, word string) any {
	kind, _ := manifest.TypeAt(at.Tool.Params, key)
	if kind != "string" && json.Valid([]byte(word)) {
		return json.RawMessage(word)
	}
	return word
}

// wordAfter returns the word that follows another, or "".
func wordAfter(words []string, word string) string {
	if i := slices.Index(words, word); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}

// Words splits a line as a POSIX shell does. It knows words, '...', "..." and backslashes; ok is false for other
// syntax.
func Words(line string) (words []string, ok bool) {
	word, inWord, quote := "", false, rune(0)
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			word, escaped = word+string(r), false
		case quote == '\'' && r != '\'':
			word += string(r)
		case r == '\\':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inWord = r, true
		case quote == '"' && (r == '$' || r == '`'):
			return nil, false
		case quote == 0 && r == ' ':
			if inWord {
				words = append(words, word)
			}
			word, inWord = "", false
		case quote == 0 && strings.ContainsRune("$`|&;<>(){}!*?\n", r):
			return nil, false
		default:
			word += string(r)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word)
	}
	return words, quote == 0 && !escaped
}
