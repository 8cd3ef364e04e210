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

// Style returns text in a style, or unchanged if the page has no colours.
func (p *Page) Style(sequence, text string) string {
	return Either(p.color && sequence != "" && text != "", sequence+text+reset, text)
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

// row writes a name and wrapped text that begins at a column. A name that reaches the column gets its own line.
func (p *Page) row(column int, name, text string) {
	lead := strings.Repeat(" ", column)
	wrapped := Wrapped(lead+text, p.Width, lead)
	switch n := utf8.RuneCountInString(name); {
	case text == "":
		wrapped = ""
	case n+4 <= column:
		wrapped = wrapped[2+n:]
	default:
		wrapped = "\n" + wrapped
	}
	fmt.Fprintln(p.W, "  "+p.Style(cyan, name)+wrapped)
}

// column returns the column at which the text of rows begins, after their names.
func column[R any](p *Page, rows []R, name func(R) string) int {
	widest := 0
	for _, r := range rows {
		widest = max(widest, utf8.RuneCountInString(name(r)))
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
		{When(d.Reach != "" && d.Reach != manifest.ReachPage, "reaches the "+d.Reach), yellow},
		{When(d.Experimental, "experimental"), yellow},
		{When(d.Deprecated, "deprecated"), red},
	} {
		PrintIf(p.W, m[0] != "", "  %s", p.Style(cmp.Or(m[1], Faint), m[0]))
	}
	fmt.Fprintln(p.W)
	p.Text(0, "", d.Brief)
	p.Text(0, red, d.DeprecationMessage)
}

// DocsBody writes everything after the title: the description and a section for each kind of fact.
func (p *Page) DocsBody(d *manifest.ToolDocs, next []string) {
	if said := strings.TrimRight(d.Description, "."); said != "" && said != strings.TrimRight(d.Brief, ".") {
		fmt.Fprintln(p.W)
		p.Text(0, "", d.Description)
	}
	p.params("Parameters", d.Parameters)
	p.Text(2, "", d.MoreText())
	p.params("Returns", d.Returns)
	if d.MoreReturns > 0 {
		p.Text(2, "", fmt.Sprintf("… %d more: %s", d.MoreReturns, d.Deeper))
	}
	section(p, "Examples", d.Examples, func(e manifest.ExampleDoc) {
		p.Text(2, "", e.Title+When(e.ExitCode != 0, fmt.Sprintf(" (exit code %d)", e.ExitCode))+
			When(e.Differs != "", "; not as declared: "+e.Differs)+When(e.NotRun != "", "; not verified: "+e.NotRun))
		fmt.Fprintln(p.W, "    "+p.Style(cyan, "$ "+d.Call(e)))
	})
	p.Rows("Exit codes", Map(d.ExitCodes, func(c manifest.ExitCodeDoc) [2]string {
		return [2]string{fmt.Sprintf("%d %s", c.Code, c.Name), c.Meaning}
	}))
	p.lines("When", d.When)
	p.lines("When not", d.WhenNot)
	p.Rows("Related", Map(d.Related, func(r manifest.Related) [2]string { return [2]string{r.Tool, r.Why} }))
	p.lines("Limitations", d.Limitations...)
	p.lines("Note", d.Note)
	p.Commands("Next", next)
}

// section writes a title and items. Without items it writes nothing.
func section[T any](p *Page, title string, items []T, write func(T)) {
	if len(items) > 0 {
		p.Heading(title)
	}
	for _, item := range items {
		write(item)
	}
}

// params writes a section with the name of each parameter, its type, whether it is required, and what it means.
func (p *Page) params(title string, params []manifest.Param) {
	column := column(p, params, func(q manifest.Param) string { return q.Name })
	section(p, title, params, func(q manifest.Param) {
		facts, ref := q.TypeText(), q.Ref
		if q.Items != nil {
			ref = cmp.Or(q.Items.Ref, ref)
		}
		facts += When(ref != "", " ("+ref+")")
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
	})
}

// Rows writes a section of names and texts.
func (p *Page) Rows(title string, rows [][2]string) {
	column := column(p, rows, func(r [2]string) string { return r[0] })
	section(p, title, rows, func(r [2]string) { p.row(column, r[0], r[1]) })
}

// lines writes a section of the texts that are not empty.
func (p *Page) lines(title string, texts ...string) {
	texts = slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
	section(p, title, texts, func(t string) { p.Text(2, "", t) })
}

// Commands writes a section of commands, each on one line of any length.
func (p *Page) Commands(title string, commands []string) {
	section(p, title, commands, func(c string) { fmt.Fprintln(p.W, "  "+p.Style(cyan, c)) })
}

// When returns a text if it applies, and otherwise "".
func When(applies bool, text string) string { return Either(applies, text, "") }

// Either returns the first value if it applies, and otherwise the other.
func Either[T any](applies bool, value, other T) T {
	if applies {
		return value
	}
	return other
}
