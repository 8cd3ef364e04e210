package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type searchFlags struct {
	plugin, group, effect, category, kind, detail string
	limit                                         int
	explain                                       bool
	eval                                          string
}

const defaultLimit = 10

// searchWithin is a search of a plugin or group, of everything where both are "", as --search asks for it.
func searchWithin(plugin, group string) *searchFlags {
	return &searchFlags{
		plugin: plugin, group: group, limit: defaultLimit, kind: searchDefaults["kind"], detail: searchDefaults["detail"],
	}
}

func newSearch(app *App) *cobra.Command {
	f := &searchFlags{}
	cmd := &cobra.Command{
		Use:               "search QUERY",
		Short:             "Find tools by what you want",
		Example:           "parley search \"take a picture\"\nparley search cookie --plugin cdp --limit 20",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("eval") {
				name := firstSet(cmd, "plugin", "group", "effect", "category", "kind", "limit", "detail", "explain")
				if name != "" {
					return host.Errorf(host.InvalidArgs, "--%s cannot be combined with --eval", name).WithNext("leave one of them out")
				}
				if len(args) > 0 {
					return host.Errorf(host.InvalidArgs, "--eval takes its queries from a file; unexpected word %q after it",
						manifest.CleanLine(args[0])).WithNext("leave one of them out")
				}
				return app.evaluate(cmd.Context(), f.eval)
			}
			return app.search(cmd.Context(), f, strings.Join(args, " "))
		},
	}
	cmd.Flags().StringVar(&f.plugin, "plugin", "", "only this plugin")
	cmd.Flags().StringVar(&f.group, "group", "", "only this group")
	cmd.Flags().StringVar(&f.effect, "effect", "", "only read, write or destructive")
	cmd.Flags().StringVar(&f.category, "category", "", "only this category")
	cmd.Flags().StringVar(&f.kind, "kind", searchDefaults["kind"], "tool, event or type")
	cmd.Flags().IntVar(&f.limit, "limit", defaultLimit, "how many")
	cmd.Flags().StringVar(&f.detail, "detail", searchDefaults["detail"], "names, signatures or full")
	cmd.Flags().BoolVar(&f.explain, "explain", false, "show the parts of each score")
	cmd.Flags().StringVar(&f.eval, "eval", "", "score a JSONL set of queries with graded answers")
	cmd.Flags().SortFlags = false
	for name, values := range searchValues {
		completeWords(cmd, name, strings.Fields(values)...)
	}
	plugins := func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return app.completeNames(cmd, nil, typed)
	}
	_ = cmd.RegisterFlagCompletionFunc("plugin", plugins)
	return cmd
}

// searchDefaults are the words of options that are left out of what to type next.
var searchDefaults = map[string]string{"kind": "tool", "detail": "names"}

// searchValues are the options that take one of a few words.
var searchValues = map[string]string{
	"effect": "read write destructive", "kind": "tool event type", "detail": "names signatures full",
	"category": "generation review correction planning query action",
}

// maxLimit is how many hits may be asked for at once.
const maxLimit = 1000

// search prints the tools that fit, best first, why and how surely.
func (a *App) search(ctx context.Context, f *searchFlags, text string) error {
	for _, c := range [][2]string{{"effect", f.effect}, {"kind", f.kind}, {"detail", f.detail}, {"category", f.category}} {
		if allowed := strings.Fields(searchValues[c[0]]); c[1] != "" && !slices.Contains(allowed, c[1]) {
			return command.UnknownValue(c[0], c[1], allowed)
		}
	}
	if f.limit < 1 || f.limit > maxLimit {
		return host.Errorf(host.InvalidArgs, "--limit: %d is not between 1 and %d", f.limit, maxLimit).
			WithNext("parley help search")
	}
	if manifest.CleanLine(text) == "" {
		return missingWord("search", "a QUERY", `parley search "take a screenshot"`)
	}
	h, err := a.deps.Host(ctx)
	if err != nil {
		return err
	}
	found, warnings, err := h.SearchDetailed(ctx, "cli", a.Env("PARLEY_SESSION"), host.SearchQuery{
		Text: text, Plugin: f.plugin, Group: f.group, Effect: f.effect, Category: f.category, Kind: f.kind,
		Limit: f.limit, Explain: f.explain,
	}, f.detail)
	if err != nil {
		return err
	}
	env := &command.Envelope{OK: true, Warnings: warnings, Next: a.searchNext(f, text, found)}
	if env.Data, err = manifest.Marshal(found); err != nil {
		return err
	}
	return a.envelope(env, func(w io.Writer) { a.searchText(w, found, env.Next) })
}

// searchText prints hits: in a pipe a line each with the whole brief, on a terminal a paragraph each.
func (a *App) searchText(w io.Writer, data *host.SearchAnswer, next []string) {
	p := a.page(w)
	for i, r := range data.Results {
		head := r.Name
		if r.Signature != "" {
			head = r.Name[:strings.LastIndexByte(r.Name, '.')+1] + r.Signature
		}
		switch {
		case !a.OutTTY:
			fmt.Fprintf(w, "%s  %s (%s)\n", head, manifest.CleanLine(r.Brief), reason(&r))
		case i < len(data.Docs):
			p.docs(a.deps.WithCommands(data.Docs[i].ToolDocs), nil)
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
			a.docsText(w, a.deps.WithCommands(data.Docs[i].ToolDocs))
		}
		if a.OutTTY {
			fmt.Fprintln(w)
		}
	}
	switch more := data.Total - len(data.Results); {
	case more > 0 && len(data.Results) < maxLimit:
		fmt.Fprintf(w, "(%d more: %s)\n", more, next[len(next)-1])
	case more > 0:
		fmt.Fprintf(w, "(%d more: say more exactly what you want)\n", more)
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

// reason is why a tool was found and how surely, and whether it is deprecated or experimental.
func reason(r *host.SearchResult) string {
	why := fit(manifest.CleanLine(r.Why), 40) + ", " + r.Confidence
	if r.Deprecated {
		why += ", deprecated"
	} else if r.Experimental {
		why += ", experimental"
	}
	return why
}

// partText is a part of a score: "cookie ~ cookies, typo in name", or what concerns the whole query.
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

func (a *App) searchNext(f *searchFlags, text string, data *host.SearchAnswer) []string {
	next := []string{}
	if len(data.Results) > 0 {
		plugin, tool, _ := strings.Cut(data.Results[0].Name, ".")
		next = append(next, "parley "+plugin+" "+tool+" --describe")
		if data.Open != nil {
			next = append(next, a.deps.Command(*data.Open))
		}
	} else if f.plugin != "" {
		next = append(next, "parley "+shellQuote(f.plugin)+" --list")
	} else {
		next = append(next, "parley --list")
	}
	if data.Total > len(data.Results) && len(data.Results) < maxLimit {
		more := "parley search " + shellQuote(manifest.CleanLine(text))
		for _, o := range [][2]string{
			{"plugin", f.plugin}, {"group", f.group}, {"effect", f.effect},
			{"category", f.category}, {"kind", f.kind}, {"detail", f.detail},
		} {
			if o[1] != "" && o[1] != searchDefaults[o[0]] {
				more += " --" + o[0] + " " + shellQuote(manifest.CleanLine(o[1]))
			}
		}
		next = append(next, fmt.Sprintf("%s --limit %d", more, min(data.Total, maxLimit)))
	}
	return next
}

const evalLine = `one line a query: {"query":"take a picture","relevant":{"cdp.Page.captureScreenshot":3}}`

// evaluate scores search by a set of queries, so that authors can check a set of their own in CI.
func (a *App) evaluate(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return host.Errorf(host.InvalidArgs, "--eval: %s", manifest.CleanLine(err.Error())).WithNext(evalLine)
	}
	defer file.Close()
	set, err := host.ReadEval(file)
	if err != nil {
		e := host.AsError(err)
		if e.Code == host.Internal { // it could not be read, such as a folder
			e = host.Errorf(host.InvalidArgs, "--eval: %s", manifest.CleanLine(err.Error()))
		}
		return e.WithNext(evalLine)
	}
	h, err := a.deps.Host(ctx)
	if err != nil {
		return err
	}
	report := host.Evaluate(set, h)
	return a.answer(report, nil, func(w io.Writer) {
		fmt.Fprintf(w, "%-10s %-5s %7s %9s %9s %6s %7s\n",
			"kind", "half", "queries", "success@1", "success@5", "MRR", "NDCG@10")
		for _, s := range report.Scores {
			fmt.Fprintf(w, "%-10s %-5s %7d %9.3f %9.3f %6.3f %7.3f\n",
				manifest.CleanLine(s.Kind), manifest.CleanLine(s.Half), s.Queries, s.Success1, s.Success5, s.MRR, s.NDCG10)
		}
		for _, u := range report.Unknown {
			fmt.Fprintln(w, "unknown tool: "+manifest.CleanLine(u))
		}
	})
}
