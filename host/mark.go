package host

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

const (
	// maxEcho is the maximum size of a marked text, maxEchoValue that of a value without a fault in it, in bytes.
	maxEcho      = 4 << 10
	maxEchoValue = 60
)

// Mark renders a caller's JSON with a mark at each fault, one per line:
//
//	{
//	  "urls": [
//	    3 // ✗ /urls/0: expected string, got number 3
//	  ]
//	}
//
// A missing value is marked at the end of its object. Values without a fault are shortened. A text longer than 4 KiB is
// cut and ends with "…".
func Mark(value any, faults []Detail) string {
	m := &marker{faults: faults, placed: make([]bool, len(faults)), exact: map[string][]int{}, hasBelow: map[string]bool{}}
	for i, f := range faults {
		m.exact[f.Parameter] = append(m.exact[f.Parameter], i)
		for at := strings.LastIndexByte(f.Parameter, '/'); at >= 0; at = strings.LastIndexByte(f.Parameter[:at], '/') {
			m.hasBelow[f.Parameter[:at]] = true
		}
	}
	m.write(value, "", "", "")
	return manifest.Clip(strings.TrimSuffix(m.b.String(), "\n"), maxEcho)
}

type marker struct {
	faults   []Detail
	placed   []bool
	exact    map[string][]int // pointer -> indexes of the faults there
	hasBelow map[string]bool  // pointers with a fault somewhere below
	b        strings.Builder
}

// write renders a value between before, which is its indentation and key, and after, which is a comma or nothing.
func (m *marker) write(value any, pointer, before, after string) {
	if m.b.Len() > maxEcho {
		return
	}
	indent := before[:len(before)-len(strings.TrimLeft(before, " "))]
	open, shut := "", ""
	switch value.(type) {
	case map[string]any:
		open, shut = "{", "}"
	case []any:
		open, shut = "[", "]"
	}
	if open == "" || !m.hasFaultBelow(pointer) {
		m.line(before+short(value)+after, m.take(pointer))
		return
	}
	m.line(before+open, m.take(pointer))
	m.members(value, pointer, indent+"  ")
	for i, f := range m.faults { // faults that no member took are of missing members
		if m.b.Len() <= maxEcho && !m.placed[i] && (below(f.Parameter, pointer) || pointer == "") {
			m.placed[i] = true
			m.line(indent+"  "+mark(f), nil)
		}
	}
	m.line(indent+shut+after, nil)
}

func (m *marker) members(value any, pointer, indent string) {
	switch v := value.(type) {
	case map[string]any:
		names := sortedKeys(v)
		for i, name := range names {
			m.write(v[name], pointer+"/"+jsontext.EscapeToken(name), indent+short(name)+": ", comma(i, len(names)))
		}
	case []any:
		skipped := 0
		for i, item := range v {
			at := pointer + "/" + strconv.Itoa(i)
			if m.b.Len() > maxEcho {
				return
			}
			if !m.hasFaultBelow(at) && len(m.exact[at]) == 0 && len(v) > 3 {
				skipped++
				continue
			}
			skipped = m.skip(skipped, indent)
			m.write(item, at, indent, comma(i, len(v)))
		}
		m.skip(skipped, indent)
	}
}

func (m *marker) skip(n int, indent string) int {
	if n > 0 {
		m.line(fmt.Sprintf("%s… %d more", indent, n), nil)
	}
	return 0
}

// line writes a line with the mark of the first fault. The marks of further faults follow on lines of their own.
func (m *marker) line(text string, faults []Detail) {
	for i, f := range faults {
		if i == 0 {
			text += " " + mark(f)
			continue
		}
		text += "\n" + text[:len(text)-len(strings.TrimLeft(text, " "))] + mark(f)
	}
	m.b.WriteString(text + "\n")
}

// take returns the faults at exactly this pointer that are not marked yet.
func (m *marker) take(pointer string) []Detail {
	var here []Detail
	for _, i := range m.exact[manifest.CleanLine(pointer)] {
		if !m.placed[i] && (pointer != "" || m.faults[i].Keyword != "required") {
			m.placed[i] = true
			here = append(here, m.faults[i])
		}
	}
	return here
}

// hasFaultBelow reports whether there is a fault below a pointer.
func (m *marker) hasFaultBelow(pointer string) bool { return m.hasBelow[manifest.CleanLine(pointer)] }

func below(fault, pointer string) bool {
	return strings.HasPrefix(fault, manifest.CleanLine(pointer)+"/")
}

func mark(f Detail) string {
	text := "// ✗ " + pointerOr(f.Parameter) + ": "
	if f.Provided == "" {
		return text + "expected " + f.Expected
	}
	return text + "expected " + f.Expected + ", got " + f.Provided
}

func comma(i, n int) string {
	if i == n-1 {
		return ""
	}
	return ","
}

// short returns a value as JSON on one line, cut to maxEchoValue. Invisible characters are escaped.
func short(value any) string {
	text := string(manifest.EscapeJSON(jsontext.Marshal(value)))
	if len(text) <= maxEchoValue {
		return text
	}
	cut := maxEchoValue
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// markSyntax returns the line with a syntax error, up to the error, with a mark.
func markSyntax(raw []byte, offset, line, column int, message string) string {
	offset = max(0, min(offset, len(raw)))
	from := strings.LastIndexByte(string(raw[:offset]), '\n') + 1
	from = max(from, offset-2*maxEchoValue)
	shown := manifest.CleanLine(strings.ToValidUTF8(string(raw[from:offset]), "\ufffd"))
	return fmt.Sprintf("%s // ✗ line %d, column %d: %s", shown, line, column, manifest.CleanLine(message))
}
