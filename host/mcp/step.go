package mcp

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// steps turns what to type next into what to call next; what only a person at a shell can do stays as it is.
func (f *face) steps(commands []string) []string {
	steps := []string{}
	for _, c := range commands {
		if step := f.step(c); !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	return steps
}

func (f *face) step(command string) string {
	words, ok := shellWords(command)
	if !ok || len(words) < 2 || words[0] != "parley" {
		return command
	}
	words = words[1:]
	catalog := f.cfg.Host.Catalog()
	if words[0] == "search" && len(words) > 1 {
		return searchStep(words[1])
	}
	if words[0] == "--list" {
		return searchStep("what you want to do")
	}
	if words[0] == "call" {
		words = words[1:]
	}
	if len(words) == 0 {
		return command
	}
	plugin, local, _ := strings.Cut(words[0], ".")
	rest := words[1:]
	if local == "" && len(rest) > 0 && !strings.HasPrefix(rest[0], "--") {
		local, rest = rest[0], rest[1:]
	}
	at, err := catalog.FindIn(plugin, local)
	switch {
	case err != nil:
		return command
	case slices.Contains(rest, "--list") || at.Tool == nil && at.Entry == nil:
		return searchStep(strings.ReplaceAll(at.Name(), ".", " "))
	case slices.Contains(rest, "--describe"):
		return describeStep(at.Name(), rest)
	case at.Tool == nil:
		return command
	}
	if params, ok := paramsOf(at, rest); ok {
		return callStep(at.Name(), params)
	}
	return command
}

func searchStep(query string) string {
	raw, _ := manifest.Marshal(map[string]string{"query": query})
	return "search_tools " + string(raw)
}

func describeStep(name string, rest []string) string {
	if i := slices.Index(rest, "--tier"); i >= 0 && i+1 < len(rest) && rest[i+1] == "3" {
		return `describe_tool {"name":"` + name + `","tier":3}`
	}
	return `describe_tool {"name":"` + name + `"}`
}

func callStep(name string, params json.RawMessage) string {
	return `call_tool {"name":"` + name + `","arguments":` + string(manifest.EscapeJSON(manifest.CompactJSON(params))) + `}`
}

// paramsOf reads the parameters of a command line of one tool: --params, --param, and words.
func paramsOf(at host.Address, rest []string) (json.RawMessage, bool) {
	params := map[string]any{}
	place := 0
	for i := 0; i < len(rest); i++ {
		switch word := rest[i]; {
		case word == "--params" && i+1 < len(rest):
			return json.RawMessage(rest[i+1]), json.Valid([]byte(rest[i+1])) && len(rest) == 2
		case word == "--param" && i+1 < len(rest):
			i++
			key, value, ok := strings.Cut(rest[i], "=")
			if !ok || strings.Contains(key, ".") {
				return nil, false
			}
			params[key] = typed(at, key, value)
		case strings.HasPrefix(word, "--") || place >= len(at.Tool.Positional):
			return nil, false
		default:
			key := at.Tool.Positional[place]
			params[key] = typed(at, key, word)
			place++
		}
	}
	raw, err := manifest.Marshal(params)
	return raw, err == nil
}

// typed is a word as the value that the parameter takes.
func typed(at host.Address, key, word string) any {
	kind, _ := manifest.TypeAt(at.Tool.Params, key)
	if kind != "string" && json.Valid([]byte(word)) {
		return json.RawMessage(word)
	}
	if b, err := strconv.ParseBool(word); err == nil && kind == "boolean" {
		return b
	}
	return word
}

// shellWords splits a command as a POSIX shell does that has no variables: words, '...' and "...".
func shellWords(line string) ([]string, bool) {
	var words []string
	var word strings.Builder
	in, quote := false, rune(0)
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			in, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			in, quote = true, r
		case r == ' ':
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			in = true
			word.WriteRune(r)
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words, quote == 0 && !escaped
}
