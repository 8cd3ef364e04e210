package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/manifest"
)

// page writes text for people to a terminal: headings, aligned rows and wrapped text. Commands are not wrapped, so that
// they can be copied.
type page struct {
	w     io.Writer
	width int // columns
	color bool
}

// page returns a page on stdout. In a pipe it has no colours and has the width of [App.columns].
func (a *App) page(w io.Writer) *page {
	return &page{w: w, width: a.columns(), color: a.color(a.OutTTY, reset) != ""}
}

// Sequences of a terminal.
const (
	bold   = "\x1b[1m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	reset  = "\x1b[0m"
)

// effectStyle has the style of each effect that changes something.
var effectStyle = map[string]string{manifest.EffectWrite: yellow, manifest.EffectDestructive: red}

// style returns text in a style, or as it is if the page has no colours.
func (p *page) style(sequence, text string) string {
	if !p.color || sequence == "" || text == "" {
		return text
	}
	return sequence + text + reset
}

// heading writes the title of a section.
func (p *page) heading(title string) { fmt.Fprintf(p.w, "\n%s\n", p.style(bold, title)) }

// text writes lines of text, each wrapped and indented.
func (p *page) text(indent int, style, text string) {
	lead := strings.Repeat(" ", indent)
	for line := range strings.Lines(text) {
		for part := range strings.Lines(wrapped(lead+strings.TrimSpace(line), p.width, lead)) {
			fmt.Fprintln(p.w, p.style(style, strings.TrimRight(part, "\n")))
		}
	}
}

// row writes a name and, from a column on, wrapped text. A name that reaches the column gets its own line.
func (p *page) row(column int, name, text string) {
	lead := strings.Repeat(" ", column)
	if text == "" {
		fmt.Fprintln(p.w, "  "+p.style(cyan, name))
		return
	}
	text = wrapped(lead+text, p.width, lead)
	if n := utf8.RuneCountInString(name); n+4 <= column {
		fmt.Fprintln(p.w, "  "+p.style(cyan, name)+text[2+n:])
		return
	}
	fmt.Fprintln(p.w, "  "+p.style(cyan, name))
	fmt.Fprintln(p.w, text)
}

// column returns the column at which the text of rows with these names begins.
func (p *page) column(names []string) int {
	widest := 0
	for _, n := range names {
		widest = max(widest, utf8.RuneCountInString(n))
	}
	return min(widest+4, max(p.width/3, 8))
}

// docs writes the documentation of a tool, an event or a type.
func (p *page) docs(d *manifest.ToolDocs, next []string) {
	p.title(d)
	p.docsBody(d, next)
}

// title writes the name, the kind and the brief.
func (p *page) title(d *manifest.ToolDocs) {
	fmt.Fprint(p.w, p.style(bold, d.Name))
	for _, m := range [][2]string{
		{cmp.Or(d.Effect, d.Kind), effectStyle[d.Effect]},
		{mark(d.Reach != "" && d.Reach != manifest.ReachPage, "reaches the "+d.Reach), yellow},
		{mark(d.Experimental, "experimental"), yellow},
		{mark(d.Deprecated, "deprecated"), red},
	} {
		if m[0] != "" {
			fmt.Fprint(p.w, "  "+p.style(cmp.Or(m[1], faint), m[0]))
		}
	}
	fmt.Fprintln(p.w)
	p.text(0, "", d.Brief)
	p.text(0, red, d.DeprecationMessage)
}

// docsBody writes what follows the title: the description and a section for each kind of fact.
func (p *page) docsBody(d *manifest.ToolDocs, next []string) {
	if said := strings.TrimRight(d.Description, "."); said != "" && said != strings.TrimRight(d.Brief, ".") {
		fmt.Fprintln(p.w)
		p.text(0, "", d.Description)
	}
	p.params("Parameters", d.Parameters)
	shown := *d
	shown.Deeper = "--tier 3"
	p.text(2, "", shown.MoreText())
	p.params("Returns", d.Returns)
	if d.MoreReturns > 0 {
		p.text(2, "", fmt.Sprintf("… %d more: --tier 3", d.MoreReturns))
	}
	if len(d.Examples) > 0 {
		p.heading("Examples")
	}
	for _, e := range d.Examples {
		title := e.Title
		if e.ExitCode != 0 {
			title += fmt.Sprintf(" (exit code %d)", e.ExitCode)
		}
		if e.Differs != "" {
			title += "; not as declared: " + e.Differs
		}
		if e.NotRun != "" {
			title += "; not verified: " + e.NotRun
		}
		p.text(2, "", title)
		fmt.Fprintln(p.w, "    "+p.style(cyan, "$ "+d.Call(e)))
	}
	var codes [][2]string
	for _, c := range d.ExitCodes {
		codes = append(codes, [2]string{fmt.Sprintf("%d %s", c.Code, c.Name), c.Meaning})
	}
	p.rows("Exit codes", codes)
	p.lines("When", d.When)
	p.lines("When not", d.WhenNot)
	var related [][2]string
	for _, r := range d.Related {
		related = append(related, [2]string{r.Tool, r.Why})
	}
	p.rows("Related", related)
	p.lines("Limitations", d.Limitations...)
	p.lines("Note", d.Note)
	p.commands("Next", next)
}

// params writes a section with the name of each parameter, its type, whether it is required, and what it means.
func (p *page) params(title string, params []manifest.Param) {
	if len(params) == 0 {
		return
	}
	p.heading(title)
	var names []string
	for _, q := range params {
		names = append(names, q.Name)
	}
	column := p.column(names)
	for _, q := range params {
		facts := q.TypeText()
		if q.Items != nil && q.Items.Ref != "" {
			facts += " (" + q.Items.Ref + ")"
		} else if q.Ref != "" {
			facts += " (" + q.Ref + ")"
		}
		switch {
		case q.Default != nil:
			facts += ", default " + string(q.Default)
		case q.Required && title == "Parameters":
			facts += ", required"
		case !q.Required:
			facts += ", optional"
		}
		p.row(column, q.Name, facts)
		p.text(column, "", q.Description)
		for _, f := range q.Inner {
			p.text(column, faint, f.Text())
		}
	}
}

// rows writes a section of names and texts. Without rows it writes nothing.
func (p *page) rows(title string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	p.heading(title)
	var names []string
	for _, r := range rows {
		names = append(names, r[0])
	}
	column := p.column(names)
	for _, r := range rows {
		p.row(column, r[0], r[1])
	}
}

// lines writes a section of texts. If all are empty it writes nothing.
func (p *page) lines(title string, texts ...string) {
	texts = slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
	if len(texts) == 0 {
		return
	}
	p.heading(title)
	for _, t := range texts {
		p.text(2, "", t)
	}
}

// commands writes a section of commands, each on one line of any length. Without commands it writes nothing.
func (p *page) commands(title string, commands []string) {
	if len(commands) == 0 {
		return
	}
	p.heading(title)
	for _, c := range commands {
		fmt.Fprintln(p.w, "  "+p.style(cyan, c))
	}
}

// mark returns word if on is set, else "".
func mark(on bool, word string) string {
	if on {
		return word
	}
	return ""
}
