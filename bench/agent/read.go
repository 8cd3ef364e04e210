package main

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"
)

// hit is a result of a search.
type hit struct{ Name, Signature string }

// hits returns the results of a search: those of the command line's JSON, or one a line of the text over MCP.
func (a answer) hits() ([]hit, error) {
	var found struct{ Results []hit }
	if err := json.Unmarshal(a.data, &found); err == nil {
		return found.Results, nil
	}
	var hits []hit
	for line := range strings.Lines(a.text) {
		head, _, ok := strings.Cut(line, "  ")
		if !ok || strings.Contains(head, ": ") && !strings.Contains(head, "(") {
			continue
		}
		name, list, typed := strings.Cut(head, "(")
		h := hit{Name: name}
		if typed {
			list, _, _ = strings.Cut(list, ") -> ")
			h.Signature = name + "(" + strings.TrimSuffix(list, ")") + ")"
		}
		hits = append(hits, h)
	}
	if len(hits) == 0 {
		return nil, fmt.Errorf("a search returned %.200s", a.text)
	}
	return hits, nil
}

// docs is the description of a tool, as far as an agent uses it.
type docs struct {
	Name       string
	Tier       int
	Parameters []parameter
	Examples   []example

	ParamsSchema json.RawMessage `json:"params_schema"`
	text         string          // the description, if it is a text
}

type parameter struct {
	Name     string
	Required bool
}

type example struct {
	Kind     string
	Params   json.RawMessage
	ExitCode int `json:"exit_code"`
}

// key tells descriptions apart: those of different tools, and of different tiers.
func (d *docs) key() string {
	if d.text != "" {
		return fmt.Sprintf("%s %08x", d.Name, crc32.ChecksumIEEE([]byte(d.text)))
	}
	return fmt.Sprintf("%s tier %d", d.Name, d.Tier)
}

// UnmarshalJSON reads a description as JSON, or the text of one.
func (d *docs) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		d.readText(text)
		return nil
	}
	type plain docs
	return json.Unmarshal(raw, (*plain)(d))
}

// described reads the description in an answer.
func (a answer) described() (d docs, err error) {
	if len(a.data) > 0 && a.data[0] == '{' {
		err = json.Unmarshal(a.data, &d)
	} else {
		d.readText(a.text)
	}
	return d, err
}

// readText reads the text of a description: the name first, a line for each parameter, and examples as calls.
func (d *docs) readText(text string) {
	d.text = text
	d.Name, _, _ = strings.Cut(text, ": ")
	for line := range strings.Lines(text) {
		if param, ok := strings.CutPrefix(line, "  "); ok && !strings.HasPrefix(param, " ") {
			if name, _, ok := strings.Cut(param, ": "); ok && !strings.Contains(name, " ") {
				d.Parameters = append(d.Parameters, parameter{strings.TrimSuffix(name, "?"), !strings.HasSuffix(name, "?")})
			}
		}
		if call, ok := strings.CutPrefix(line, "Example: "+d.Name); ok {
			if call = strings.TrimSpace(call); call == "" {
				call = "{}"
			}
			d.Examples = append(d.Examples, example{Params: json.RawMessage(call)})
		}
	}
}
