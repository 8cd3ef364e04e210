package mcp

import (
	"encoding/json"
	"regexp"
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
	case !ok && strings.HasPrefix(line, "parley "):
		return listenStep(line)
	case !ok:
		return timeoutOption.ReplaceAllString(line, `options {"timeout":"$1"}`)
	case c.Op == "search":
		return searchStep(c.Query)
	case c.Op == "list" && c.At.Plugin == "":
		return searchStep("what you want to do")
	case c.Op == "list":
		return searchStep(strings.ReplaceAll(c.At.Name(), ".", " "))
	case c.Op == "describe":
		return describeStep(c.At.Name(), c.Rest)
	}
	if params, options, ok := paramsOf(c.At, c.Rest); ok {
		return callStep(c.At.Name(), params, options)
	}
	return line
}

// timeoutOption is how advice to somebody at a shell names more time.
var timeoutOption = regexp.MustCompile(`--timeout ([0-9a-z.]+)`)

// listenStep reads the events that were kept where a shell would stream them; another line stays as it is.
func listenStep(line string) string {
	words, _ := manifest.ShellWords(line)
	if len(words) != 4 || words[2] != "--listen" {
		return line
	}
	raw, _ := manifest.Marshal(map[string][]string{"match": {words[3]}})
	return callStep(words[1]+".events", raw, nil)
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

func callStep(name string, params json.RawMessage, options map[string]string) string {
	step := `call_tool {"name":"` + name + `","arguments":` + string(manifest.EscapeJSON(manifest.CompactJSON(params)))
	if len(options) > 0 {
		raw, _ := manifest.Marshal(options)
		step += `,"options":` + string(manifest.EscapeJSON(raw))
	}
	return step + "}"
}

// paramsOf reads the parameters of a command line of one tool: --params, --param, and words; and the options that a client can give too.
func paramsOf(at host.Address, rest []string) (raw json.RawMessage, options map[string]string, ok bool) {
	params, options := map[string]any{}, map[string]string{}
	place := 0
	for i := 0; i < len(rest); i++ {
		word, value := rest[i], ""
		if strings.HasPrefix(word, "--") {
			if i++; i == len(rest) {
				return nil, nil, false
			}
			value = rest[i]
		}
		switch {
		case word == "--params" && raw == nil && json.Valid([]byte(value)):
			raw = json.RawMessage(value)
		case word == "--param":
			key, text, ok := strings.Cut(value, "=")
			if !ok || strings.Contains(key, ".") {
				return nil, nil, false
			}
			params[key] = typed(at, key, text)
		case word == "--browser" || word == "--target" || word == "--timeout":
			options[strings.TrimPrefix(word, "--")] = value
		case word == "--out": // a client is given the content itself
		case strings.HasPrefix(word, "--") || place >= len(at.Tool.Positional):
			return nil, nil, false
		default:
			key := at.Tool.Positional[place]
			params[key] = typed(at, key, word)
			place++
		}
	}
	if raw != nil {
		return raw, options, len(params) == 0
	}
	raw, err := manifest.Marshal(params)
	return raw, options, err == nil
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
