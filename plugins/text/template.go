package main

import (
	"encoding/json"
	"strings"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// TemplateParams is a template and its values.
type TemplateParams struct {
	// Text with {{name}} or {{user.name}} in it.
	Template string `json:"template"`
	// Values by name, e.g. {"name":"Ada"}.
	Values map[string]json.RawMessage `json:"values"`
	// For names without a value.
	Missing string `json:"missing,omitempty" enum:"error,keep,empty" default:"error"`
}

// TemplateResult is the filled text.
type TemplateResult struct {
	// The filled text.
	Text string `json:"text"`
}

// Template fills {{name}} by plain substitution, because text/template would
// double the size of the plugin.
func Template(_ *sdk.Call, p TemplateParams) (TemplateResult, error) {
	var out strings.Builder
	var missing []string
	rest := p.Template
	for {
		before, after, found := strings.Cut(rest, "{{")
		name, tail, closed := strings.Cut(after, "}}")
		if !found || !closed {
			out.WriteString(rest)
			break
		}
		out.WriteString(before)
		rest = tail
		value, ok := lookup(p.Values, strings.TrimSpace(name))
		switch {
		case ok:
			out.WriteString(value)
		case p.Missing == "keep":
			out.WriteString("{{" + name + "}}")
		case p.Missing != "empty":
			missing = append(missing, strings.TrimSpace(name))
		}
		if out.Len() > maxReplaced {
			return TemplateResult{}, sdk.Exit("too_large", "the text would exceed 4 MiB", nil)
		}
	}
	if missing != nil {
		return TemplateResult{}, sdk.Exit("missing_value", "no value for "+strings.Join(missing, ", "),
			map[string]any{"names": missing})
	}
	return TemplateResult{out.String()}, nil
}

// lookup finds a value by its name or, in nested objects, by a dotted path. It
// returns a string verbatim and anything else as JSON.
func lookup(values map[string]json.RawMessage, name string) (string, bool) {
	value, ok := values[name]
	if !ok {
		first, rest, dotted := strings.Cut(name, ".")
		var inner map[string]json.RawMessage
		if !dotted || json.Unmarshal(values[first], &inner) != nil {
			return "", false
		}
		return lookup(inner, rest)
	}
	var text string
	if value[0] == '"' && json.Unmarshal(value, &text) == nil {
		return text, true
	}
	return string(value), true
}
