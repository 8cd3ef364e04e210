package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// Choice is a call that a model chose for a request, knowing only the documentation of tools. Choices measure the
// documentation.
type Choice struct {
	ID        int             `json:"id"` // number of the request, from 1
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

const chooseInstructions = `You are an agent with the tools below and no others. For each request, choose the one tool that serves it best and
the arguments of its call, by the documentation alone. Where none serves it, the tool is "". Return JSON alone:
{"calls":[{"id":1,"tool":"..","arguments":{}}]}, one call for each request. `

// maxChoices bounds the answer to a question, in tokens.
const maxChoices = 2500

// ChoiceQuestion returns the question which tools serve some requests. note is one more sentence for the model.
func ChoiceQuestion(tools, note string, requests []string) Question {
	var b strings.Builder
	fmt.Fprintf(&b, "Tools:\n%s\nRequests:\n", tools)
	for i, r := range requests {
		fmt.Fprintf(&b, "%d. %s\n", i+1, manifest.CleanLine(r))
	}
	return Question{Kind: "choose", System: chooseInstructions + note, Text: manifest.Clean(b.String()), Limit: maxChoices}
}

// ParseChoices returns the choices for n requests, in their order. It reports false unless the answer has one for each.
func ParseChoices(answer string, n int) ([]Choice, bool) {
	var got struct{ Calls []Choice }
	if Object(answer, &got) != nil || len(got.Calls) != n {
		return nil, false
	}
	calls := make([]Choice, n)
	for _, c := range got.Calls {
		if c.ID < 1 || c.ID > n || calls[c.ID-1].ID != 0 {
			return nil, false
		}
		calls[c.ID-1] = c
	}
	return calls, true
}

// Named reports whether the chosen tool has a qualified name. Models write it as it is listed, with or without the
// plugin, and with "__" for dots.
func (c *Choice) Named(name string) bool {
	chosen := strings.ReplaceAll(c.Tool, "__", ".")
	_, local, _ := strings.Cut(name, ".")
	return strings.EqualFold(chosen, name) || strings.EqualFold(chosen, local)
}

// ToolLine returns a tool on one line: its signature, brief and when to use it.
func ToolLine(plugin string, t *manifest.Tool) string {
	line := manifest.Signature(plugin+"."+t.Name, manifest.Params(t.Params)) + ": " + manifest.CleanLine(t.Docs.Brief)
	if t.When != "" {
		line += ". When: " + manifest.CleanLine(t.When)
	}
	return line + "\n"
}
