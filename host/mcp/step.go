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

func (f *face) step(line string) string {
	c, ok := f.cfg.Host.Catalog().Command(line)
	switch {
	case !ok:
		return line
	case c.Op == "search":
		return searchStep(c.Query)
	case c.Op == "list" && c.At.Plugin == "":
		return searchStep("what you want to do")
	case c.Op == "list":
		return searchStep(strings.ReplaceAll(c.At.Name(), ".", " "))
	case c.Op == "describe":
		return describeStep(c.At.Name(), c.Rest)
	}
	if params, ok := paramsOf(c.At, c.Rest); ok {
		return callStep(c.At.Name(), params)
	}
	return line
}

func searchStep(query string) string {
	raw, _ := manifest.Marshal(map[string]string{"query": query})
	return "search_tools " + string(raw)
}

// moreStep asks for the same again, with more of what was found.
func moreStep(query string, limit int) string {
	raw, _ := manifest.Marshal(struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}{query, limit})
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
		case word == "--out" && i+1 < len(rest):
			i++ // a client is given the content itself
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
