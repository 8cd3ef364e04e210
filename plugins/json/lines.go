package main

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// fault is where a parser stops. Line and other, the line that it contradicts if there is one, count from 0.
type fault struct {
	line, other int
	left        int // lines that the parser did not understand; less is better
	message     string
}

// lineFix repairs one line. It returns what the line may be meant as, the likeliest first.
type lineFix struct {
	fault, assumed string
	anywhere       bool // the parser notices the fault in a later line
	apply          func(lines []string, i int) []string
}

const (
	maxTried = 32 << 20 // bytes that are parsed to repair one text
	maxTimes = 4        // faults of one line
)

// repairLines repairs a text line by line: the first change after which the parser understands more is made.
func repairLines(text, format string, check func(string) *fault, fixes []lineFix) ([]jsontext.Edit, error) {
	lines := strings.SplitAfter(text, "\n")
	made := make([]jsontext.Edit, len(lines))
	at := 0
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, "\r\n")
		made[i] = jsontext.Edit{Start: at, End: at + len(lines[i])}
		at += len(line)
	}
	given, tried, times := slices.Clone(lines), 0, make([]int, len(lines))
	join := func() string {
		edits := slices.Clone(made)
		for i := range edits {
			edits[i].Text = lines[i]
		}
		changed := jsontext.Apply(text, edits)
		tried += len(changed)
		return changed
	}
	// next makes the first change after which the parser gets further, or else stops for another reason.
	next := func(f *fault, further bool) *fault {
		for _, fix := range fixes {
			for _, i := range around(f, fix, len(lines)) {
				before := lines[i]
				for _, lines[i] = range fix.apply(lines, i) {
					if lines[i] == before || times[i] == maxTimes || tried > maxTried {
						continue
					}
					if g := check(join()); g == nil || g.left < f.left || !further && g.left == f.left && g.message != f.message {
						times[i]++
						made[i].Fault = strings.TrimPrefix(made[i].Fault+", "+fix.fault, ", ")
						made[i].Assumed = strings.Trim(made[i].Assumed+", "+fix.assumed, ", ")
						return g
					}
				}
				lines[i] = before
			}
		}
		return f
	}
	f := check(text)
	reached := f // without changes after which the parser stops no later
	for f != nil {
		g := next(f, true)
		if g != f {
			reached = g
		} else if g = next(f, false); g == f {
			return nil, unrepairable(format, text, reached.line+1, 1, reached.message)
		}
		f = g
	}
	var edits []jsontext.Edit
	for i, e := range made {
		if e.Text = lines[i]; lines[i] != given[i] {
			edits = append(edits, e)
		}
	}
	return edits, nil
}

// around returns the lines that a fix may be for, the likeliest first.
func around(f *fault, fix lineFix, n int) (lines []int) {
	if f.other >= 0 || fix.fault == duplicate {
		if f.other >= 0 && f.other != f.line && fix.fault == duplicate {
			lines = []int{f.other}
		}
		return lines
	}
	for _, i := range []int{f.line, f.line - 1, f.line + 1} {
		if i >= 0 && i < n {
			lines = append(lines, i)
		}
	}
	for i := min(f.line, n) - 2; fix.anywhere && i >= max(0, f.line-200); i-- {
		lines = append(lines, i)
	}
	return lines
}

// duplicate is the fault of a line that a later one contradicts.
const duplicate = "duplicate key"

var (
	yamlErrorLine = lazy.Pattern(`line (\d+): (.*)`)
	yamlAnchor    = lazy.Pattern(`unknown anchor '(.*)' referenced`)
)

// checkYAML returns where YAML does not parse, or where a mapping has a key twice.
func checkYAML(text string) *fault {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		f := duplicateIn(&document)
		if err != nil {
			f = &fault{other: -1, message: strings.TrimPrefix(err.Error(), "yaml: ")}
			if m := yamlErrorLine().FindStringSubmatch(err.Error()); m != nil {
				f.line, _ = strconv.Atoi(m[1])
				if f.message = m[2]; !strings.HasPrefix(f.message, "did not find expected") {
					f.line-- // the scanner counts from 1, the parser from 0
				}
			} else if m := yamlAnchor().FindStringSubmatch(f.message); m != nil {
				before, _, _ := strings.Cut(text, "*"+m[1])
				f.line = strings.Count(before, "\n")
				f.other = f.line // no change of a line can be right
			}
		}
		if f != nil {
			f.left = strings.Count(text, "\n") + 1 - f.line
			if err != nil {
				f.left += 1 << 30 // a text that parses is always better
			}
			return f
		}
	}
}

func duplicateIn(n *yaml.Node) *fault {
	lines := map[string]int{}
	for i, inner := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && inner.Kind == yaml.ScalarNode {
			if first, has := lines[inner.Value]; has && inner.ShortTag() != "!!merge" {
				return &fault{line: inner.Line - 1, other: first, message: "the key " + inner.Value + " stands twice"}
			}
			lines[inner.Value] = inner.Line - 1
		}
		if f := duplicateIn(inner); f != nil {
			return f
		}
	}
	return nil
}

// replaced is a fix by a regular expression. What it makes has no fault of its own.
func replaced(expression, with string) func([]string, int) []string {
	p := lazy.Pattern(expression)
	return func(lines []string, i int) []string { return []string{p().ReplaceAllString(lines[i], with)} }
}

var tomlWord = lazy.Pattern(`"(?:[^"\\]|\\.)*"|'[^']*'|#.*|[\w.+-]+(?:\s*=)?|:`)

// tokens is a fix by what tokens are meant as, in arrays and inline tables, too. Texts, comments and names stay.
func tokens(meant map[string]string) func([]string, int) []string {
	return func(lines []string, i int) []string {
		return []string{tomlWord().ReplaceAllStringFunc(lines[i], func(t string) string { return cmp.Or(meant[t], t) })}
	}
}

// value is a fix of what follows a key or a dash, from the first group of the expression on.
func value(expression string, fix func(value string) []string) func([]string, int) []string {
	p := lazy.Pattern(expression)
	return func(lines []string, i int) (meant []string) {
		m := p().FindStringSubmatch(lines[i])
		if m == nil {
			return nil
		}
		for _, value := range fix(m[2]) {
			if value != "" {
				meant = append(meant, m[1]+value)
			}
		}
		return meant
	}
}

// inQuotes writes a value as a text in double quotes, without the quotes that it has, and what follows it as a comment.
func inQuotes(value string) []string {
	value, comment, _ := cutComment(strings.TrimSpace(value))
	for _, quotes := range [][2]string{{`"`, `"`}, {"'", "'"}, {"\u201c", "\u201d"}, {"\u2018", "\u2019"}} {
		if inner, ok := strings.CutPrefix(value, quotes[0]); ok && strings.HasSuffix(inner, quotes[1]) {
			value = strings.TrimSuffix(inner, quotes[1])
		}
	}
	return []string{string(jsontext.Marshal(value)) + comment, "'" + value + "'" + comment}
}

func cutComment(value string) (before, comment string, ok bool) {
	if i := strings.Index(value, " #"); i >= 0 {
		before = strings.TrimRight(value[:i], " ")
		return before, value[len(before):], true
	}
	return value, "", false
}

// closed adds the quote that is missing at the end or the beginning of a value.
func closed(value string) (meant []string) {
	for _, quote := range []string{`"`, "'"} {
		if value = strings.TrimRight(value, " "); strings.Count(value, quote)%2 == 0 {
			continue
		}
		bare := strings.TrimRight(value, ",;]} ")
		meant = append(meant, bare+quote+value[len(bare):])
		if before, comment, ok := cutComment(value); ok {
			meant = append(meant, before+quote+comment)
		}
		meant = append(meant, quote+value)
	}
	return meant
}

// commented keeps what a line says as a comment. What begins a mapping or a table cannot be left out alone.
func commented(lines []string, i int) []string {
	if line := strings.TrimSpace(lines[i]); line == "" || line[0] == '#' || strings.ContainsAny(line, "[{") ||
		strings.HasSuffix(line, ":") {
		return nil
	}
	return []string{"# " + lines[i]}
}

// bracketed closes the brackets that a line opens.
func bracketed(lines []string, i int) []string {
	var open []byte
	for _, c := range []byte(lines[i]) {
		switch {
		case c == '[' || c == '{':
			open = append(open, c+2)
		case len(open) > 0 && c == open[len(open)-1]:
			open = open[:len(open)-1]
		}
	}
	slices.Reverse(open)
	return []string{lines[i] + string(open)}
}

// indented gives a line the indentation of one before it, the nearest first.
func indented(lines []string, i int) (meant []string) {
	bare := strings.TrimLeft(lines[i], " \t")
	for j := i - 1; j >= max(0, i-20) && bare != ""; j-- {
		if other := strings.TrimLeft(lines[j], " "); other != "" {
			meant = append(meant, lines[j][:len(lines[j])-len(other)]+bare)
		}
	}
	return meant
}

// spaced replaces the tabs of an indentation, by two spaces each, or by the indentation of a line before.
func spaced(lines []string, i int) []string {
	bare := strings.TrimLeft(lines[i], " \t")
	indent := lines[i][:len(lines[i])-len(bare)]
	if !strings.Contains(indent, "\t") {
		return []string{strings.ReplaceAll(lines[i], "\t", "  ")}
	}
	return append([]string{strings.ReplaceAll(indent, "\t", "  ") + bare, strings.ReplaceAll(indent, "\t", "    ") + bare},
		indented(lines, i)...)
}

const (
	yamlValue = `^(\s*(?:- +)*(?:"[^"]*"|'[^']*'|[^\s:#"'-][^:#]*):\s+)(.+)$`
	yamlItem  = `^(\s*(?:- +)+)(.+)$`
	tomlValue = `^(\s*[\w."'-]+\s*=\s*)([^\s\[{].*)$`
)

var yamlFixes = []lineFix{
	{"text around the document", "", false, replaced("^\\s*```.*$", "")},
	{"tab", "a tab is as wide as the indentation around it", false, spaced},
	{"control character", "", true, replaced(`[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]`, "")},
	{duplicate, "the last one holds; the other is kept as a comment", false, commented},
	{"missing quote", "the text ends with its line", true, value(yamlValue, closed)},
	{"missing quote", "the text ends with its line", true, value(yamlItem, closed)},
	{"missing bracket", "the list ends with its line", true, bracketed},
	{"special characters in a text", "all of it is one text, without escapes", false, value(yamlValue, inQuotes)},
	{"special characters in a text", "all of it is one text, without escapes", false, value(yamlItem, inQuotes)},
	{"missing space", "", false, replaced(`^(\s*(?:- +)*[\w.-]+):(\S.*)$`, "$1: $2")},
	{"missing space", "", true, replaced(`^(\s*)-(\w.*)$`, "$1- $2")},
	{"indentation", "it belongs beside a line above", false, indented},
	{"missing colon", "the first word is a key", true, replaced(`^(\s*(?:- +)*[\w.-]+)\s+([^\s:].*)$`, "$1: $2")},
	{"missing colon", "the word is a key", true, replaced(`^(\s*(?:- +)*[\w.-]+)\s*$`, "$1:")},
}

var tomlFixes = []lineFix{
	{"text around the document", "", false, replaced("^\\s*```.*$", "")},
	{"comment", "", false, replaced(`^(\s*)//`, "$1#")},
	{"colon for equals sign", "", false, replaced(`^(\s*[\w."'-]+)\s*:\s*(\S.*)$`, "$1 = $2")},
	{"missing bracket", "the name of the table ends with its line", false, replaced(`^(\s*\[)([\w.-]+)\s*$`, "$1$2]")},
	{"missing bracket", "the name of the table ends with its line", false, replaced(`^(\s*\[\[)([\w.-]+)\]?\s*$`, "$1$2]]")},
	{"wrong quotes", "", false, replaced("[\u201c\u201d\u201e]", `"`)},
	{"comma too many", "", false, replaced(`(,\s*),|(\[\s*),|[,;]\s*$`, "$1$2")},
	{"colon for equals sign", "", false, tokens(map[string]string{":": " ="})},
	{"word of another language", "", false, tokens(map[string]string{"True": "true", "TRUE": "true", "False": "false",
		"FALSE": "false", "yes": "true", "no": "false", "on": "true", "off": "false"})},
	{"missing value", "what is null is left out", false, replaced(`^(\s*[\w."'-]+\s*=\s*(null|None|nil)\s*)$`, "# $1")},
	{duplicate, "the last one holds; the other is kept as a comment", false, commented},
	{"escape", "a backslash belongs to the text", false, value(tomlValue, func(value string) []string {
		inner := strings.Trim(value, `"`)
		if value == inner || !strings.Contains(inner, `\`) {
			return nil
		}
		return []string{"'" + inner + "'", `"` + strings.ReplaceAll(inner, `\`, `\\`) + `"`}
	})},
	{"missing quote", "the text ends with its line", false, value(tomlValue, closed)},
	{"missing bracket", "the list ends with its line", true, bracketed},
	{"missing comma", "", false, replaced(`^(.*[\w"'\]}])\s*$`, "$1,")},
	{"text without quotes", "all of it is one text", false, value(tomlValue, inQuotes)},
	{"missing value", "it is empty", false, replaced(`^(\s*[\w."'-]+\s*=)\s*$`, `$1 ""`)},
	{"name without quotes", "it is one name", false, replaced(`^(\s*)([^\s="'\[#][^="'\[#]*?)(\s*=.*)$`, `$1"$2"$3`)},
	{"missing equals sign", "the first word is a key", false, replaced(`^(\s*[\w.-]+)\s+(["'\d\[{tf].*)$`, "$1 = $2")},
	{"control character", "", false, replaced(`[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]`, "")},
}
