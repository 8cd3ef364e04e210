package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type searchOptions struct {
	app *App
	command.SearchOptions
	eval  string // a file of queries to score instead of a search; "" means none
	tools string // with eval, a list of MCP tools to search in place of the installed plugins; "" means these
}

func newSearch(app *App) *cobra.Command {
	opts := &searchOptions{app: app}
	cmd := &cobra.Command{
		Use:               "search QUERY",
		Args:              cobra.ArbitraryArgs,
		Short:             "Find tools",
		Example:           "parley search \"take a picture\"\nparley search cookie --plugin cdp --limit 20",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("eval") {
				if err := onlyEval(cmd, args); err != nil {
					return err
				}
			}
			if opts.tools != "" && opts.eval == "" {
				return host.Errorf(host.InvalidArgs, "--tools has an effect only with --eval").
					WithNext("parley search --eval FILE --tools " + shellQuote(opts.tools))
			}
			if err := app.checkMaxTokens(cmd.Flags()); err != nil {
				return err
			}
			if opts.Limit < 1 {
				return command.InvalidLimit(opts.Limit)
			}
			opts.Text = strings.Join(args, " ")
			return runSearch(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Plugin, "plugin", "", "only this plugin")
	flags.StringVar(&opts.Group, "group", "", "only this group")
	flags.StringVar(&opts.Effect, "effect", "", "only read, write or destructive")
	flags.StringVar(&opts.Category, "category", "", "only this category")
	flags.StringVar(&opts.Kind, "kind", searchDefaults["kind"], "tool, event or type")
	flags.IntVar(&opts.Limit, "limit", 10, "how many")
	flags.StringVar(&opts.Detail, "detail", searchDefaults["detail"], "names, signatures or full")
	app.addMaxTokens(flags)
	flags.BoolVar(&opts.Explain, "explain", false, "show the parts of each score")
	flags.StringVar(&opts.eval, "eval", "", "score a JSONL file of queries with graded results")
	flags.StringVar(&opts.tools, "tools", "", "with --eval: search the tools/list result in FILE")
	flags.SortFlags = false
	for name, words := range command.SearchWords {
		completeWords(cmd, name, words...)
	}
	plugins := func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return app.completeNames(cmd, nil, typed)
	}
	_ = cmd.RegisterFlagCompletionFunc("plugin", plugins)
	return cmd
}

// onlyEval refuses what has no effect beside --eval.
func onlyEval(cmd *cobra.Command, args []string) error {
	const leaveOut = "leave one of them out"
	if name := firstSet(cmd, "plugin", "group", "effect", "category", "kind", "limit", "detail", "explain",
		"max-tokens"); name != "" {
		return host.Errorf(host.InvalidArgs, "--%s cannot be combined with --eval", name).WithNext(leaveOut)
	}
	if len(args) > 0 {
		return host.Errorf(host.InvalidArgs, "--eval takes its queries from a file; unexpected word %q after it",
			manifest.CleanLine(args[0])).WithNext(leaveOut)
	}
	return nil
}

// firstSet returns the first of these options that was given, "" if none was.
func firstSet(cmd *cobra.Command, names ...string) string {
	for _, n := range names {
		if f := cmd.Flags().Lookup(n); f != nil && f.Changed {
			return n
		}
	}
	return ""
}

// searchDefaults are the values that the commands to type next leave out.
var searchDefaults = map[string]string{"kind": "tool", "detail": "names"}

// runSearch prints the tools that match, best first, with the reason and the confidence.
func runSearch(ctx context.Context, opts *searchOptions) error {
	app := opts.app
	if opts.eval != "" {
		return runEval(ctx, opts)
	}
	if app.maxTokens > 0 {
		opts.Fits = func(found *host.SearchAnswer) bool {
			next := app.searchNext(&opts.SearchOptions, found)
			return app.fits(found, next, nil, func(w io.Writer) { app.searchText(w, found, next) })
		}
	}
	found, warnings, err := command.Search(countDocs(ctx, app.writeFoundDocs), app.deps, opts.SearchOptions)
	if err != nil {
		return err
	}
	env := &command.Envelope{OK: true, Warnings: warnings, Next: app.searchNext(&opts.SearchOptions, found)}
	if env.Data, err = manifest.Marshal(found); err != nil {
		return err
	}
	return app.printEnvelope(env, func(w io.Writer) { app.searchText(w, found, env.Next) })
}

// writeFoundDocs writes the documentation of a result.
func (a *App) writeFoundDocs(w io.Writer, d *host.Docs) {
	switch {
	case a.json:
		_ = writeJSON(w, d, a.OutTTY)
	case a.OutTTY:
		a.page(w).docs(a.deps.WithCommands(d.ToolDocs), nil)
	default:
		a.docsText(w, a.deps.WithCommands(d.ToolDocs))
	}
}

// searchText prints results: in a pipe one line each with the whole brief, on a terminal a paragraph each.
func (a *App) searchText(w io.Writer, data *host.SearchAnswer, next []string) {
	p := a.page(w)
	for i, r := range data.Results {
		head := r.Name
		if r.Signature != "" {
			head = r.Typed
		}
		switch {
		case !a.OutTTY:
			fmt.Fprintf(w, "%s  %s (%s)\n", head, manifest.CleanLine(r.Brief), reason(&r))
		case i < len(data.Docs):
			a.writeFoundDocs(w, data.Docs[i])
			p.text(0, faint, "Found by "+reason(&r))
		default:
			fmt.Fprintln(w, p.style(bold, r.Name)+strings.TrimPrefix(wrapped(head, p.width, "    "), r.Name))
			p.text(4, "", manifest.CleanLine(r.Brief))
			p.text(4, faint, reason(&r))
		}
		for _, part := range r.Parts {
			fmt.Fprintf(w, "    %+.3f  %s\n", part.Score, partText(&part))
		}
		if !a.OutTTY && i < len(data.Docs) {
			a.writeFoundDocs(w, data.Docs[i])
		}
		if a.OutTTY {
			fmt.Fprintln(w)
		}
	}
	if len(data.LeftOut) > 0 {
		fmt.Fprintf(w, "Left out for --max-tokens: %s\n", strings.Join(data.LeftOut, ", "))
	}
	switch more := data.Total - len(data.Results); {
	case more > 0 && len(data.Results) < command.MaxHits:
		fmt.Fprintf(w, "(%d more: %s)\n", more, next[len(next)-1])
	case more > 0:
		fmt.Fprintf(w, "(%d more: describe more exactly what you want)\n", more)
	}
	if data.Total == 0 {
		fmt.Fprintf(w, "nothing found for %q\n", data.Query)
	}
	if len(next) > 0 {
		fmt.Fprintln(w, p.style(bold, "Next:")+" "+next[0])
	}
	if data.Open != nil {
		fmt.Fprintln(w, p.style(bold, "Before the call:")+" "+a.deps.Command(*data.Open))
	}
}

// reason returns why a tool was found, the confidence, and whether the tool is deprecated or experimental.
func reason(r *host.SearchResult) string {
	why := fit(manifest.CleanLine(r.Why), 40) + ", " + r.Confidence
	if r.Deprecated {
		why += ", deprecated"
	} else if r.Experimental {
		why += ", experimental"
	}
	if r.Unsigned {
		why += ", unsigned"
	}
	return why
}

// partText returns the source of a part of a score: "cookie ~ cookies, typo in name", or what concerns the whole query.
func partText(p *host.SearchPart) string {
	text := p.How
	if p.Word != "" {
		text = p.Word + " ~ " + p.Match + ", " + p.How
	} else if p.Match != "" {
		text += ": " + p.Match
	}
	if p.Field != "" {
		text += " in " + p.Field
	}
	return manifest.CleanLine(text)
}

// searchNext returns what to type after a search: the documentation of the first result if it is likely, or else the
// nearest list, and how to see all.
func (a *App) searchNext(o *command.SearchOptions, data *host.SearchAnswer) []string {
	next := []string{}
	if best := data.Best(); best != nil {
		plugin, tool, _ := strings.Cut(best.Name, ".")
		next = append(next, "parley "+plugin+" "+tool+" --describe")
		if data.Open != nil {
			next = append(next, a.command(*data.Open))
		}
	} else if len(data.NearestGroups) > 0 {
		next = append(next, "parley "+strings.Replace(data.NearestGroups[0], ".", " ", 1)+" --list")
	} else if o.Plugin != "" {
		next = append(next, "parley "+shellQuote(o.Plugin)+" --list")
	} else {
		next = append(next, "parley --list")
	}
	if data.Total > len(data.Results) && len(data.Results) < command.MaxHits {
		more := "parley search " + quoteWord(o.Text)
		for _, w := range [][2]string{
			{"plugin", o.Plugin}, {"group", o.Group}, {"effect", o.Effect},
			{"category", o.Category}, {"kind", o.Kind}, {"detail", o.Detail},
		} {
			if w[1] != "" && w[1] != searchDefaults[w[0]] {
				more += " --" + w[0] + " " + quoteWord(w[1])
			}
		}
		next = append(next, fmt.Sprintf("%s --limit %d", more, min(data.Total, command.MaxHits)))
	}
	return next
}

// runEval prints how well the search does on a set of queries.
func runEval(ctx context.Context, opts *searchOptions) error {
	report, err := command.Evaluate(ctx, opts.app.deps, opts.eval, opts.tools)
	if err != nil {
		return err
	}
	return opts.app.print(report, nil, func(w io.Writer) { searchScores(w, report) })
}

// searchScores prints how well the search does, by kinds of queries.
func searchScores(w io.Writer, report *host.EvalReport) {
	fmt.Fprintf(w, "%-10s %-5s %7s %9s %9s %6s %7s\n",
		"kind", "half", "queries", "success@1", "success@5", "MRR", "NDCG@10")
	for _, s := range report.Scores {
		fmt.Fprintf(w, "%-10s %-5s %7d %9.3f %9.3f %6.3f %7.3f\n", manifest.CleanLine(s.Kind),
			manifest.CleanLine(s.Half), s.Queries, s.Success1, s.Success5, s.MRR, s.NDCG10)
	}
	for _, u := range report.Unknown {
		fmt.Fprintln(w, "unknown tool: "+manifest.CleanLine(u))
	}
}
