package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/manifest"
)

// Local returns a qualified name without its plugin.
func Local(plugin, name string) string { return strings.TrimPrefix(name, plugin+".") }

// Fit cuts a text at a word so that it takes at most width columns.
func Fit(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width || width < 2 {
		return s
	}
	cut := string(runes[:width-1])
	if at := strings.LastIndexByte(cut, ' '); at > width/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,.;:") + "…"
}

// Page writes text for people to a terminal: headings, aligned rows and wrapped text. Commands are not wrapped, so that
// they can be copied.
type Page struct {
	W     io.Writer
	Width int // columns
	color bool
}

// Page returns a page on stdout. In a pipe it has no colours and has the width of [App.Columns].
func (a *App) Page(w io.Writer) *Page {
	return &Page{W: w, Width: a.Columns(), color: a.color(a.OutTTY, reset) != ""}
}

// Sequences of a terminal.
const (
	Bold   = "\x1b[1m"
	Faint  = "\x1b[2m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	reset  = "\x1b[0m"
)

// EffectStyle has the style of each effect that changes something.
var EffectStyle = map[string]string{manifest.EffectWrite: yellow, manifest.EffectDestructive: red}

// Style returns text in a style, or as it is if the page has no colours.
func (p *Page) Style(sequence, text string) string {
	if !p.color || sequence == "" || text == "" {
		return text
	}
	return sequence + text + reset
}

// Heading writes the title of a section.
func (p *Page) Heading(title string) { fmt.Fprintf(p.W, "\n%s\n", p.Style(Bold, title)) }

// Text writes lines of text, each wrapped and indented.
func (p *Page) Text(indent int, style, text string) {
	lead := strings.Repeat(" ", indent)
	for line := range strings.Lines(text) {
		for part := range strings.Lines(Wrapped(lead+strings.TrimSpace(line), p.Width, lead)) {
			fmt.Fprintln(p.W, p.Style(style, strings.TrimRight(part, "\n")))
		}
	}
}

// row writes a name and, from a column on, wrapped text. A name that reaches the column gets its own line.
func (p *Page) row(column int, name, text string) {
	lead := strings.Repeat(" ", column)
	if text == "" {
		fmt.Fprintln(p.W, "  "+p.Style(cyan, name))
		return
	}
	text = Wrapped(lead+text, p.Width, lead)
	if n := utf8.RuneCountInString(name); n+4 <= column {
		fmt.Fprintln(p.W, "  "+p.Style(cyan, name)+text[2+n:])
		return
	}
	fmt.Fprintln(p.W, "  "+p.Style(cyan, name))
	fmt.Fprintln(p.W, text)
}

// column returns the column at which the text of rows with these names begins.
func (p *Page) column(names []string) int {
	widest := 0
	for _, n := range names {
		widest = max(widest, utf8.RuneCountInString(n))
	}
	return min(widest+4, max(p.Width/3, 8))
}

// Docs writes the documentation of a tool, an event or a type.
func (p *Page) Docs(d *manifest.ToolDocs, next []string) {
	p.Title(d)
	p.DocsBody(d, next)
}

// Title writes the name, the kind and the brief.
func (p *Page) Title(d *manifest.ToolDocs) {
	fmt.Fprint(p.W, p.Style(Bold, d.Name))
	for _, m := range [][2]string{
		{cmp.Or(d.Effect, d.Kind), EffectStyle[d.Effect]},
		{mark(d.Reach != "" && d.Reach != manifest.ReachPage, "reaches the "+d.Reach), yellow},
		{mark(d.Experimental, "experimental"), yellow},
		{mark(d.Deprecated, "deprecated"), red},
	} {
		if m[0] != "" {
			fmt.Fprint(p.W, "  "+p.Style(cmp.Or(m[1], Faint), m[0]))
		}
	}
	fmt.Fprintln(p.W)
	p.Text(0, "", d.Brief)
	p.Text(0, red, d.DeprecationMessage)
}

// DocsBody writes what follows the title: the description and a section for each kind of fact.
func (p *Page) DocsBody(d *manifest.ToolDocs, next []string) {
	if said := strings.TrimRight(d.Description, "."); said != "" && said != strings.TrimRight(d.Brief, ".") {
		fmt.Fprintln(p.W)
		p.Text(0, "", d.Description)
	}
	p.params("Parameters", d.Parameters)
	shown := *d
	shown.Deeper = "--tier 3"
	p.Text(2, "", shown.MoreText())
	p.params("Returns", d.Returns)
	if d.MoreReturns > 0 {
		p.Text(2, "", fmt.Sprintf("… %d more: --tier 3", d.MoreReturns))
	}
	if len(d.Examples) > 0 {
		p.Heading("Examples")
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
		p.Text(2, "", title)
		fmt.Fprintln(p.W, "    "+p.Style(cyan, "$ "+d.Call(e)))
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
	p.Commands("Next", next)
}

// params writes a section with the name of each parameter, its type, whether it is required, and what it means.
func (p *Page) params(title string, params []manifest.Param) {
	if len(params) == 0 {
		return
	}
	p.Heading(title)
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
		p.Text(column, "", q.Description)
		for _, f := range q.Inner {
			p.Text(column, Faint, f.Text())
		}
	}
}

// rows writes a section of names and texts. Without rows it writes nothing.
func (p *Page) rows(title string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	p.Heading(title)
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
func (p *Page) lines(title string, texts ...string) {
	texts = slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
	if len(texts) == 0 {
		return
	}
	p.Heading(title)
	for _, t := range texts {
		p.Text(2, "", t)
	}
}

// Commands writes a section of commands, each on one line of any length. Without commands it writes nothing.
func (p *Page) Commands(title string, commands []string) {
	if len(commands) == 0 {
		return
	}
	p.Heading(title)
	for _, c := range commands {
		fmt.Fprintln(p.W, "  "+p.Style(cyan, c))
	}
}

// mark returns word if on is set, else "".
func mark(on bool, word string) string {
	if on {
		return word
	}
	return ""
}
