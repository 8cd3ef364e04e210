package main

import (
	_ "embed" // lessons.json
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
	sdk "github.com/parley-tools/parley/sdk/go"
)

// RepairParams are a text that does not parse and what is known of its fault.
type RepairParams struct {
	// Text to repair, e.g. "{a: 1,}".
	Text string `json:"text" minLength:"1" maxLength:"1000000" aliases:"content,source,input,json,yaml,toml"`
	// What the text is meant to be, guessed by default.
	Format string `json:"format,omitempty" enum:"json,yaml,toml" aliases:"language,type"`
	// What the parser said, e.g. "line 3: expected ','".
	Error string `json:"error,omitempty" maxLength:"10000" aliases:"message,diagnostic"`
}

// RepairResult is a text that parses, and how it came about.
type RepairResult struct {
	// The repaired text.
	Text string `json:"text"`
	// What it parses as: json, yaml or toml.
	Format string `json:"format"`
	// Each change: line and column, the fault, what was assumed; 200 at most.
	Changes []string `json:"changes"`
	// All changes as a unified diff.
	Diff string `json:"diff"`
	// What to do otherwise next time, one sentence for each kind of fault.
	Lessons []string `json:"lessons"`
}

// Repair changes as little as makes a text parse. It changes nothing in one that does.
func Repair(c *sdk.Call, p RepairParams) (RepairResult, error) {
	r := RepairResult{Format: p.Format, Lessons: []string{}}
	if r.Format == "" {
		r.Format = guessFormat(p.Text, p.Error)
	}
	var edits []jsontext.Edit
	var err error
	switch r.Format {
	case "json":
		if edits, err = jsontext.Repairs(p.Text); err != nil {
			at := err.(*jsontext.SyntaxError)
			err = unrepairable(r.Format, p.Text, at.Line, at.Column, at.Msg)
		}
	case "yaml":
		edits, err = repairLines(p.Text, r.Format, checkYAML, yamlFixes)
	default:
		edits, err = repairLines(p.Text, r.Format, checkTOML, tomlFixes)
	}
	if err != nil {
		return RepairResult{}, err
	}
	r.Text, r.Diff = jsontext.Apply(p.Text, edits), unified(p.Text, edits)
	for _, e := range edits {
		for _, name := range strings.Split(e.Fault, ", ") {
			r.Lessons = lists.Add(r.Lessons, lessons()[name])
		}
		if len(r.Changes) == 200 {
			c.Warn("there are %d changes; the first 200 are listed, the diff has all", len(edits))
			break
		}
		line, column := position(p.Text, e.Start)
		change := fmt.Sprintf("%d:%d %s", line, column, e.Fault)
		if e.Assumed != "" {
			change += "; assumed: " + e.Assumed
		}
		r.Changes = append(r.Changes, change)
	}
	if line := lineIn(p.Error, p.Text); line > 0 && !slices.ContainsFunc(edits, func(e jsontext.Edit) bool {
		at, _ := position(p.Text, e.Start)
		return at-line <= 1 && line-at <= 1
	}) {
		c.Warn("the error names line %d, where nothing had to be changed: it may be about another text", line)
	}
	if len(r.Text)+len(r.Diff) > maxOutput {
		return RepairResult{}, tooLarge()
	}
	return r, nil
}

// lessonsJSON has a sentence for each fault that a repair names.
//
//go:embed lessons.json
var lessonsJSON []byte

// lessons say what each fault teaches.
var lessons = sync.OnceValue(func() (byFault map[string]string) {
	_ = json.Unmarshal(lessonsJSON, &byFault) // a test reads it
	return byFault
})

func clip(s string) string {
	if runes := []rune(s); len(runes) > 80 {
		return string(runes[:77]) + "..."
	}
	return s
}

func position(text string, at int) (line, column int) {
	start := strings.LastIndexByte(text[:at], '\n') + 1
	return strings.Count(text[:start], "\n") + 1, utf8.RuneCountInString(text[start:at]) + 1
}

// unrepairable is the error for a text whose fault has no plain repair.
func unrepairable(format, text string, line, column int, why string) error {
	lines := strings.Split(text, "\n")
	return sdk.Exit("unrepairable", fmt.Sprintf("the %s cannot be repaired: line %d: %s", format, line, why),
		map[string]any{"line": line, "column": column, "snippet": clip(lines[min(line, len(lines))-1])})
}

var (
	errorLine   = lazy.Pattern(`(?i)\bline:? ?(\d+)|:(\d+):\d+`)
	errorOffset = lazy.Pattern(`(?i)\b(?:position|char|offset|byte) ?(\d+)`)
	tomlLine    = lazy.Pattern(`(?m)^\s*(\[\[?[A-Za-z_][\w.-]*\]?\]?\s*(#.*)?$|[\w.-]+\s*=)`)
	yamlLine    = lazy.Pattern(`(?m)^(---|\s*(- )*[\w./-]+\s*:(\s|$)|\s*- )`)
)

// lineIn returns the line that the message of a parser names, 0 for none.
func lineIn(message, text string) int {
	if m := errorLine().FindStringSubmatch(message); m != nil {
		n, _ := strconv.Atoi(m[1] + m[2])
		return n
	}
	if m := errorOffset().FindStringSubmatch(message); m != nil {
		n, _ := strconv.Atoi(m[1])
		line, _ := position(text, min(max(n, 0), len(text)))
		return line
	}
	return 0
}

func guessFormat(text, message string) string {
	head := strings.TrimSpace(text)
	message = strings.ToLower(message)
	for _, format := range []string{"yaml", "toml", "json"} {
		if strings.Contains(message, format) || strings.HasPrefix(head, "```"+format) {
			return format
		}
	}
	switch {
	case json.Valid([]byte(text)):
	case tomlLine().MatchString(text) && !strings.HasPrefix(head, "{"):
		return "toml"
	case yamlLine().MatchString(text) && !strings.ContainsAny(head[:min(1, len(head))], "{[\"'"):
		return "yaml"
	}
	return "json"
}

// unified writes edits as a unified diff, without lines around them.
func unified(text string, edits []jsontext.Edit) string {
	var out strings.Builder
	grown := 0 // lines that earlier hunks added
	for i := 0; i < len(edits); {
		first, end := i, 0
		start := strings.LastIndexByte(text[:edits[i].Start], '\n') + 1
		for i == first || i < len(edits) && (edits[i].Start < end || edits[i].Start == end && text[end-1] != '\n') {
			e := &edits[i]
			line, _, _ := strings.Cut(text[e.End:], "\n")
			end = min(e.End+len(line)+1, len(text))
			i++
		}
		var after strings.Builder
		at := start
		for _, e := range edits[first:i] {
			after.WriteString(text[at:e.Start] + e.Text)
			at = e.End
		}
		old, now := strings.SplitAfter(text[start:end], "\n"), strings.SplitAfter(after.String()+text[at:end], "\n")
		removed, n := prefixed("-", old)
		added, m := prefixed("+", now)
		from := strings.Count(text[:start], "\n") + 1
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n%s%s", from, n, from+grown, m, removed, added)
		grown += m - n
	}
	return out.String()
}

func prefixed(sign string, lines []string) (text string, n int) {
	for _, line := range lines {
		if line == "" {
			continue // what follows the last line break
		}
		if !strings.HasSuffix(line, "\n") {
			line += "\n\\ No newline at end of file\n"
		}
		text += sign + line
		n++
	}
	return text, n
}
