package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/dataset"
	"github.com/parley-tools/parley/host/learn/eval"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

var searchCommand = &command.Command[*searchOptions]{
	Use: "search QUERY", Run: runSearchCommand, Words: command.OneOf(), AnyWords: true,
	Short:   "Find tools by what they do",
	Example: "parley search \"take a picture\"\nparley search cookie --plugin cdp --limit 20",
	Options: map[string]command.Completer{"plugin": command.CompleteNames,
		"effect": command.OneOf(searchWords["effect"]...), "kind": command.OneOf(searchWords["kind"]...),
		"detail": command.OneOf(searchWords["detail"]...), "category": command.OneOf(searchWords["category"]...)},
}

// runSearchCommand searches, or scores the search. It refuses options that have no effect.
func runSearchCommand(ctx context.Context, app *command.App, opts *searchOptions) error {
	const leaveOut = "leave one of them out"
	beside := command.FirstSet(opts.Flags, "plugin", "group", "effect", "category", "kind", "limit", "detail", "explain",
		"max-tokens")
	isEval := opts.Flags.Changed("eval")
	switch {
	case isEval && beside != "":
		return host.Errorf(host.InvalidArgs, "--%s cannot be combined with --eval", beside).WithNext(leaveOut)
	case isEval && len(opts.Words) > 0:
		return host.Errorf(host.InvalidArgs, "--eval takes its queries from a file; unexpected word %q after it",
			manifest.CleanValue(opts.Words[0])).WithNext(leaveOut)
	case opts.Tools != "" && opts.Eval == "":
		return host.Errorf(host.InvalidArgs, "--tools has an effect only with --eval FILE")
	}
	if err := opts.Limited.Limit(app, opts.Flags); err != nil {
		return err
	}
	return runSearch(ctx, app, opts)
}

// searchDefaults are the values that next commands leave out.
var searchDefaults = map[string]string{"kind": "tool", "detail": "names"}

// runSearch prints the tools that match, best first, with the reason and the confidence. The error is invalid_args
// for an unknown value of an option, and for a text without words.
func runSearch(ctx context.Context, app *command.App, opts *searchOptions) error {
	if opts.Eval != "" {
		return runEval(ctx, app, opts)
	}
	for _, c := range opts.words() {
		if allowed := searchWords[c[0]]; allowed != nil && c[1] != "" && !slices.Contains(allowed, c[1]) {
			return command.UnknownValue(c[0], c[1], allowed)
		}
	}
	if opts.Limit < 1 || opts.Limit > maxHits {
		return host.Errorf(host.InvalidArgs, "--limit: %d is not between 1 and %d", opts.Limit, maxHits)
	}
	if manifest.CleanLine(manifest.Strip(opts.query().Text)) == "" {
		return host.Errorf(host.InvalidArgs, "parley search requires a QUERY").WithSteps(step.Search("take a screenshot"))
	}
	var fits func(*search.Answer) bool // decides what is left out; nil means nothing
	if app.MaxTokens > 0 {
		fits = func(found *search.Answer) bool {
			next := searchNext(app, opts, found)
			return command.Fits(app, found, next, nil, func(w io.Writer) { searchText(app, w, found, next) })
		}
	}
	ctx = command.CountDocs(ctx, func(w io.Writer, docs *host.Docs) { writeFoundDocs(app, w, docs) })
	h, principal, err := app.HostPrincipal(ctx)
	if err != nil {
		return err
	}
	found, warnings, err := h.SearchDetailed(ctx, principal, opts.query(), opts.Detail, fits)
	if err != nil {
		return err
	}
	next := searchNext(app, opts, found)
	return app.PrintWarned(found, warnings, next, func(w io.Writer) { searchText(app, w, found, next) })
}

// writeFoundDocs writes the documentation of a result.
func writeFoundDocs(a *command.App, w io.Writer, d *host.Docs) {
	switch {
	case a.JSON:
		_ = command.WriteJSON(w, d, a.OutTTY)
	case a.OutTTY:
		a.Page(w).Docs(a.WithCommands(d.ToolDocs), nil)
	default:
		a.DocsText(w, a.WithCommands(d.ToolDocs))
	}
}

// searchText prints results: in a pipe one line each, with the whole brief; on a terminal a paragraph each.
func searchText(a *command.App, w io.Writer, data *search.Answer, next []string) {
	p := a.Page(w)
	for i, r := range data.Results {
		head := command.Either(r.Signature != "", r.Typed, r.Name)
		switch {
		case !a.OutTTY:
			fmt.Fprintf(w, "%s  %s (%s)\n", head, manifest.CleanLine(r.Brief), reason(&r))
			if r.Template != nil {
				fmt.Fprintf(w, "  %s\n", r.Template)
			}
		case i < len(data.Docs):
			writeFoundDocs(a, w, data.Docs[i])
			p.Text(0, command.Faint, "Found by "+reason(&r))
		default:
			fmt.Fprintln(w, p.Style(command.Bold, r.Name)+strings.TrimPrefix(command.Wrapped(head, p.Width, "    "), r.Name))
			p.Text(4, "", manifest.CleanLine(r.Brief))
			p.Text(4, command.Faint, reason(&r))
		}
		for _, part := range r.Parts {
			fmt.Fprintf(w, "    %+.3f  %s\n", part.Score, partText(&part))
		}
		if !a.OutTTY && i < len(data.Docs) {
			writeFoundDocs(a, w, data.Docs[i])
		}
		if a.OutTTY {
			fmt.Fprintln(w)
		}
	}
	command.PrintIf(w, len(data.LeftOut) > 0, "Left out for --max-tokens: %s\n", strings.Join(data.LeftOut, ", "))
	switch more := data.Total - len(data.Results); {
	case more > 0 && strings.HasPrefix(next[len(next)-1], "parley search "):
		fmt.Fprintf(w, "(%d more of %d: %s)\n", more, data.Total, next[len(next)-1])
	case more > 0:
		fmt.Fprintf(w, "(%d more of %d: describe more exactly what you want)\n", more, data.Total)
	case data.Total > 1:
		fmt.Fprintf(w, "(%d found)\n", data.Total)
	}
	command.PrintIf(w, data.Total == 0, "nothing found for %q\n", data.Query)
	if len(next) > 0 {
		fmt.Fprintln(w, p.Style(command.Bold, "Next:")+" "+next[0])
	}
	if data.Open != nil {
		fmt.Fprintln(w, p.Style(command.Bold, "Before the call:")+" "+a.Command(*data.Open))
	}
}

// reason returns why a tool was found, the confidence, and whether the tool is deprecated or experimental.
func reason(r *search.Result) string {
	return command.Fit(manifest.CleanLine(r.Why), 40) + ", " + r.Confidence + command.When(r.Deprecated, ", deprecated") +
		command.When(r.Experimental && !r.Deprecated, ", experimental") + command.When(r.Unsigned, ", unsigned")
}

// partText describes a part of a score: "cookie ~ cookies, typo in name", or a part that concerns the whole query.
func partText(p *search.Part) string {
	text := p.How
	if p.Word != "" {
		text = p.Word + " ~ " + p.Match + ", " + p.How
	} else if p.Match != "" {
		text += ": " + p.Match
	}
	return manifest.CleanLine(text + command.When(p.Field != "", " in "+p.Field))
}

// searchNext returns the next commands after a search: the documentation of the first result if it is likely, or else
// the nearest list, and how to see all results.
func searchNext(a *command.App, o *searchOptions, data *search.Answer) []string {
	next := []string{}
	switch best := data.Best(); {
	case best != nil:
		next = append(next, "parley "+strings.Replace(best.Name, ".", " ", 1)+" --describe")
		if data.Open != nil {
			next = append(next, a.Command(*data.Open))
		}
	case len(data.NearestGroups) > 0:
		next = append(next, "parley "+strings.Replace(data.NearestGroups[0], ".", " ", 1)+" --list")
	case o.Plugin != "":
		next = append(next, "parley "+command.ShellQuote(o.Plugin)+" --list")
	default:
		next = append(next, "parley --list")
	}
	if data.Total > len(data.Results) && len(data.Results) < maxHits && data.Whole {
		more := "parley search " + command.QuoteWord(o.query().Text)
		for _, w := range o.words() {
			more += command.When(w[1] != "" && w[1] != searchDefaults[w[0]], " --"+w[0]+" "+command.QuoteWord(w[1]))
		}
		next = append(next, fmt.Sprintf("%s --limit %d", more, min(data.Total, maxHits)))
	}
	return next
}

// runEval scores the search by a file of queries with graded results, over the installed plugins or over a list of
// MCP tools. Authors can use it to test a set of their own in CI.
func runEval(ctx context.Context, app *command.App, opts *searchOptions) error {
	file, err := os.Open(opts.Eval)
	if err != nil {
		return host.Errorf(host.InvalidArgs, "--eval: %s", manifest.CleanLine(err.Error())).WithNext(evalLine)
	}
	defer file.Close()
	set, err := eval.Read(file)
	if err != nil {
		e := host.AsError(err)
		if e.Code == host.Internal { // reading failed, for example because it is a folder
			e = host.Errorf(host.InvalidArgs, "--eval: %s", manifest.CleanLine(err.Error()))
		}
		return e.WithNext(evalLine)
	}
	catalog, err := Measured(ctx, app, opts.Tools)
	if err != nil {
		return err
	}
	report := eval.Evaluate(set, catalog, search.Order{})
	return app.Print(report, nil, func(w io.Writer) { SearchScores(w, report) })
}

// SearchScores prints how good the search is, by kinds of queries.
func SearchScores(w io.Writer, report *eval.Report) {
	fmt.Fprintf(w, "%-10s %-5s %7s %9s %9s %6s %7s\n",
		"kind", "half", "queries", "success@1", "success@5", "MRR", "NDCG@10")
	for _, s := range report.Scores {
		fmt.Fprintf(w, "%-10s %-5s %7d %9.3f %9.3f %6.3f %7.3f\n", manifest.CleanLine(s.Kind),
			manifest.CleanLine(s.Half), s.Queries, s.Success1, s.Success5, s.MRR, s.NDCG10)
	}
	command.WriteLines(w, "unknown tool: ", command.Map(report.Unknown, manifest.CleanLine))
}

// maxToolList bounds a list of tools, in bytes.
const maxToolList = 64 << 20

// Measured returns the catalog of the installed plugins, or of a list of tools.
func Measured(ctx context.Context, app *command.App, list string) (*host.Catalog, error) {
	catalog, err := app.Catalog() // read even for a list, because it reads the settings
	if err == nil && list != "" {
		var raw []byte
		if raw, err = command.ReadValue(ctx, list, maxToolList); err == nil {
			catalog, err = dataset.ToolList(raw)
		}
		if known := (*host.Error)(nil); err != nil && !errors.As(err, &known) {
			err = host.Errorf(host.InvalidArgs, "%s: %s", list, manifest.CleanLine(err.Error())).
				WithNext("parley docs export --format mcp")
		}
	}
	return catalog, err
}

// searchOptions are the options of a search.
type searchOptions struct {
	Flags    *pflag.FlagSet
	Words    []string `word:""`
	Plugin   string   `flag:"plugin" usage:"only this plugin"`
	Group    string   `flag:"group" usage:"only this group"`
	Effect   string   `flag:"effect" usage:"only read, write or destructive"`
	Category string   `flag:"category" usage:"only this category"`
	Kind     string   `flag:"kind" default:"tool" usage:"tool, event or type"`
	Limit    int      `flag:"limit" default:"10" usage:"how many"`
	Detail   string   `flag:"detail" default:"names" usage:"names, signatures or full"`
	command.Limited
	Explain bool   `flag:"explain" usage:"show the parts of each score"`
	Eval    string `flag:"eval" usage:"score a JSONL file of queries with graded results"`
	Tools   string `flag:"tools" usage:"with --eval: search the tools/list result in FILE"`
}

// query returns the query of the search.
func (o *searchOptions) query() search.Query {
	return search.Query{Text: strings.Join(o.Words, " "), Plugin: o.Plugin, Group: o.Group, Effect: o.Effect,
		Category: o.Category, Kind: o.Kind, Limit: o.Limit, Explain: o.Explain}
}

// words returns the options that take a word, with their values.
func (o *searchOptions) words() [][2]string {
	return [][2]string{{"plugin", o.Plugin}, {"group", o.Group}, {"effect", o.Effect}, {"category", o.Category},
		{"kind", o.Kind}, {"detail", o.Detail}}
}

// A search returns defaultHits results, or as many as requested, at most maxHits.
const (
	defaultHits = 10
	maxHits     = 1000
)

// searchWords are the allowed words of a search's options, by the name of the option.
var searchWords = map[string][]string{
	"effect":   {"read", "write", "destructive"},
	"kind":     {"tool", "event", "type"},
	"detail":   {"names", "signatures", "full"},
	"category": {"generation", "review", "correction", "planning", "query", "action"},
}

// evalLine is an example of a line of an evaluation set.
const evalLine = `one line a query: {"query":"take a picture","relevant":{"cdp.Page.captureScreenshot":3}}`
