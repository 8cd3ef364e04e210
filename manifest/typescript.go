package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Bounds of a declaration in bytes. The type of the result is shorter, because a program gives all parameters but
// uses only few parts of a result.
const (
	tsBytes       = 1200
	tsResultBytes = 200
	tsInner       = 12 // descriptions of fields
)

// TypeScript returns the declaration of a tool on one line, in the form in which programs call it, with its default
// values:
//
//	tools.text.hash(p: {text: string, algorithm?: "md5"|"sha256" = "sha256"}): {hex: string}  // Hash a text
//
// It shows required parameters and at most eight optional ones, and marks destructive tools. The time is bounded for
// any schema.
func TypeScript(name string, t *Tool) string {
	line := tsDeclaration(name, t, Tier2) + "  // "
	if t.Effect == EffectDestructive {
		line += "DESTRUCTIVE: "
	}
	return line + CleanLine(t.Docs.Brief)
}

// TypeScript returns the documentation as a declaration in the form of [TypeScript], preceded by a comment. t is the
// documented tool.
func (d *ToolDocs) TypeScript(t *Tool) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(" * " + strings.ReplaceAll(fmt.Sprintf(format, args...), "*/", "* /") + "\n")
	}
	b.WriteString("/**\n")
	if t.Effect == EffectDestructive {
		line("DESTRUCTIVE")
	}
	for text := range strings.Lines(cmp.Or(d.Description, d.Brief)) {
		line("%s", strings.TrimSuffix(text, "\n"))
	}
	described := 0
	for _, p := range wholeParams(t.Params, asParams) {
		i := slices.IndexFunc(d.Parameters, func(q Param) bool { return q.Name == p.Name })
		if i < 0 {
			continue
		}
		if text := d.Parameters[i].Description; text != "" {
			line("@param p.%s %s", p.Name, text)
		}
		for _, f := range p.Inner {
			if f.Description == "" {
				continue
			}
			if described++; described <= tsInner || d.Tier == Tier3 {
				line("@param p.%s %s", f.Name, f.Description)
			}
		}
	}
	if described > tsInner && d.Tier < Tier3 {
		line("… %d more about fields: %s", described-tsInner, cmp.Or(d.Deeper, "tier 3"))
	}
	if more := d.MoreText(); more != "" {
		line("%s", more)
	}
	for _, p := range d.Returns {
		if p.Description != "" {
			line("@returns %s: %s", p.Name, p.Description)
		}
	}
	for _, v := range d.Get {
		line("Get %s", v.Text())
	}
	if len(d.Needs) > 0 {
		line("Call first: %s", strings.Join(d.Needs, ", "))
	}
	for _, e := range d.ExitCodes {
		line("@throws %s: %s", e.Name, e.Meaning)
	}
	if d.WhenNot != "" {
		line("Not when %s", d.WhenNot)
	}
	for _, e := range d.Examples {
		line("@example await %s(%s)", ProgramName(d.Name), EscapeJSON(CompactJSON(e.Params)))
	}
	return b.String() + " */\n" + tsDeclaration(d.Name, t, d.Tier)
}

func tsDeclaration(name string, t *Tool, tier int) string {
	given, returned := "", "unknown"
	paramBytes, resultBytes := tsBytes, tsResultBytes
	if tier == Tier3 {
		paramBytes, resultBytes = maxListing, maxListing
	}
	if root := readNode(t.Params); len(paramsWithin(t.Params, listBytes, asParams)) > 0 {
		given, _ = fit(root, root, paramBytes, true)
		given = "p: " + given
	}
	if root := readNode(t.Returns); len(t.Returns) > 0 {
		returned, _ = fit(root, root, resultBytes, true)
	}
	return ProgramName(name) + "(" + given + "): " + returned
}

// ProgramName returns the name that programs use to call a tool: tools.text.hash.
func ProgramName(qualified string) string {
	name := "tools"
	for part := range strings.SplitSeq(qualified, ".") {
		if identifier().MatchString(part) {
			name += "." + part
		} else {
			name += "[" + quoteLine(part) + "]"
		}
	}
	return name
}
