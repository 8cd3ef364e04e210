package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"

	"github.com/parley-tools/parley/bench/internal/ranked"
)

// proseRule is the rule that compares prose with the schema. While lint has no such rule, the findings of all rules
// count.
const proseRule = "contradiction"

// contradiction is a text that contradicts its tool.
type contradiction struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	At     string `json:"at"` // JSON pointer to the string that Text replaces
	Text   string `json:"text"`
	Kind   string `json:"kind"`
	Truth  string `json:"truth"`
}

// importedTool returns a tool of a list as one of a manifest.
func importedTool(raw json.RawMessage) (tool manifest.Tool, err error) {
	var listed struct {
		Name        string
		Description string
		InputSchema json.RawMessage
		Annotations struct {
			ReadOnlyHint bool
		}
	}
	if err := json.Unmarshal(raw, &listed); err != nil {
		return tool, err
	}
	tool = manifest.Tool{Name: listed.Name, Params: listed.InputSchema, Effect: manifest.EffectWrite}
	if listed.Annotations.ReadOnlyHint {
		tool.Effect = manifest.EffectRead
	}
	tool.Docs.Brief, tool.Docs.Standard = ranked.Described(strings.TrimSpace(listed.Description))
	return tool, nil
}

// replaced returns a tool with another text at a JSON pointer, which has to point to a string.
func replaced(raw json.RawMessage, at, text string) (json.RawMessage, error) {
	var tool any
	if err := json.Unmarshal(raw, &tool); err != nil {
		return nil, err
	}
	keys := strings.Split(at, "/")[1:]
	object, _ := tool.(map[string]any)
	for _, key := range keys[:len(keys)-1] {
		object, _ = object[key].(map[string]any)
	}
	last := keys[len(keys)-1]
	if _, ok := object[last].(string); !ok {
		return nil, fmt.Errorf("%s is not the pointer of a string", at)
	}
	object[last] = text
	return json.Marshal(tool)
}

// findings returns what the rule of prose finds in a tool among the others of its server. The tool is checked as the
// first one, because lint lists only the first findings of a rule.
func findings(m *manifest.Manifest, i int, tool manifest.Tool) (list []lint.Finding) {
	ruled := slices.ContainsFunc(lint.Rules(), func(r lint.Rule) bool { return r.Name == proseRule })
	checked := *m
	checked.Tools = slices.Concat([]manifest.Tool{tool}, m.Tools[:i], m.Tools[i+1:])
	for _, f := range lint.Check(&checked, lint.Neighbors{}) {
		if strings.HasPrefix(f.Pointer+"/", "/tools/0/") && (f.Rule == proseRule || !ruled) {
			list = append(list, f)
		}
	}
	return list
}

// names reports whether a finding is about the damaged text: about its field, or, for the description of a tool, about
// any part of it.
func (c contradiction) names(f lint.Finding) bool {
	at := strings.TrimSuffix(strings.Replace(c.At, "/inputSchema", "/params", 1), "/description")
	return strings.HasPrefix(f.Pointer+"/", "/tools/0"+at+"/")
}

// measureProse counts the contradictions that lint finds, and what it finds in the lists as they are.
func measureProse(tools map[string][]json.RawMessage, verbose bool) (string, error) {
	damages, err := read[contradiction]("contradictions.jsonl")
	if err != nil {
		return "", err
	}
	before, count, falsely := map[string][]lint.Finding{}, 0, 0
	for _, s := range servers {
		m, err := imported(s.Name, tools[s.Name])
		if err != nil {
			return "", err
		}
		for i, tool := range m.Tools {
			list := findings(m, i, tool)
			before[s.Name+"."+tool.Name] = list
			falsely += len(list)
			for _, f := range list {
				if verbose {
					fmt.Fprintf(os.Stderr, "as it is: %s.%s: %v\n", s.Name, tool.Name, f)
				}
			}
			count++
		}
	}
	hits := map[string][2]int{} // by kind: contradictions, found ones
	for _, c := range damages {
		m, err := imported(c.Server, tools[c.Server])
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(m.Tools, func(t manifest.Tool) bool { return t.Name == c.Tool })
		if i < 0 {
			return "", fmt.Errorf("%s has no tool %s", c.Server, c.Tool)
		}
		raw, err := replaced(tools[c.Server][i], c.At, c.Text)
		if err != nil {
			return "", fmt.Errorf("%s.%s: %w", c.Server, c.Tool, err)
		}
		damaged, err := importedTool(raw)
		if err != nil {
			return "", err
		}
		at := slices.IndexFunc(findings(m, i, damaged), func(f lint.Finding) bool {
			return c.names(f) && !slices.Contains(before[c.Server+"."+c.Tool], f)
		})
		of, all := hits[c.Kind], hits["all"]
		of[0], all[0] = of[0]+1, all[0]+1
		if at >= 0 {
			of[1], all[1] = of[1]+1, all[1]+1
		}
		hits[c.Kind], hits["all"] = of, all
		if verbose {
			fmt.Fprintf(os.Stderr, "found: %t: %s.%s%s: %s\n", at >= 0, c.Server, c.Tool, c.At, c.Text)
		}
	}
	return prose(hits, count, falsely), nil
}

// prose writes the figures of the contradictions in Markdown.
func prose(hits map[string][2]int, tools, falsely int) string {
	var t strings.Builder
	fmt.Fprint(&t, "| kind of contradiction | planted | found |\n|---|---:|---:|\n")
	for _, kind := range []string{"maximum", "minimum", "number", "unit", "values", "format", "example", "required",
		"default", "field", "tool", "deprecated", "all"} {
		fmt.Fprintf(&t, "| %s | %d | %d |\n", kind, hits[kind][0], hits[kind][1])
	}
	by := "the rule " + proseRule
	if !slices.ContainsFunc(lint.Rules(), func(r lint.Rule) bool { return r.Name == proseRule }) {
		by = "any rule, as there is no rule " + proseRule
	}
	fmt.Fprintf(&t, "\nFound by %s. In the lists as they are it has %d findings, %.1f per 100 of %d tools.\n", by, falsely,
		100*float64(falsely)/float64(max(1, tools)), tools)
	return t.String()
}
