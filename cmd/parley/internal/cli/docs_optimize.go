package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/stats/optimize"
	"github.com/parley-tools/parley/manifest"
)

type docsOptimizeOptions struct {
	app *App
	command.OptimizeOptions
	model command.ModelOptions
}

func newDocsOptimize(app *App) *cobra.Command {
	opts := &docsOptimizeOptions{app: app}
	cmd := &cobra.Command{
		Use:   "optimize NAME",
		Short: "Let a model rewrite documentation, and keep what is better",
		Long: "NAME is a plugin, a group or a tool. The configured model (model.url) proposes texts from calls that " +
			"succeeded and that\nfailed, after a question at the terminal. Then it chooses tools for queries that it did not " +
			"see, by the old texts and the\nnew ones. What is better there, not worse for any sibling tool, and passes the " +
			"gate of docs apply, becomes an edit of\nyours; otherwise the original is kept. Without calls in the traces, " +
			"examples are called in the sandbox.",
		Example: "parley docs optimize text.hash --dry-run\nparley docs optimize text --max-cost 0.5\n" +
			"parley docs optimize text.hash --replay exchanges.jsonl",
		ValidArgsFunction: app.completeNames,
		RunE:              runWith(runDocsOptimize, opts, &opts.Name),
	}
	cmd.Flags().StringVar(&opts.Since, "since", "", "only records since: 24h, 7d, 2026-11-21")
	cmd.Flags().Uint64Var(&opts.Seed, "seed", 1, "split the queries in another way")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only say what would be applied")
	app.addModel(cmd, &opts.model)
	cmd.Flags().SortFlags = false
	return cmd
}

func runDocsOptimize(ctx context.Context, opts *docsOptimizeOptions) error {
	app := opts.app
	opts.model.Progress = app.progress()
	data, err := command.DocsOptimize(ctx, app.deps, opts.OptimizeOptions, opts.model)
	if err != nil {
		return err
	}
	next := []string{"parley docs suggest"}
	if len(data.Applied) > 0 && !opts.DryRun {
		next = []string{"parley docs diff", "parley docs revert " + opts.Name}
	}
	return app.print(data, next, func(w io.Writer) {
		for _, r := range data.Results {
			app.optimizedText(w, r)
		}
		verb := "applied"
		if opts.DryRun {
			verb = "would be applied"
		}
		fmt.Fprintf(w, "%s %s\n", manifest.Plural(len(data.Applied), "edit"), verb)
		modelText(w, &data.Model)
	})
}

// optimizedText prints what came of a tool: the texts before and after, or that the original is kept, with figures.
func (a *App) optimizedText(w io.Writer, r *optimize.Result) {
	from := manifest.Plural(r.Calls, "call") + ", " + manifest.Plural(r.Failed, "failure")
	if r.Cold {
		from += ", cold start"
	}
	fmt.Fprintf(w, "%s (%s)\n", manifest.CleanLine(r.Tool), from)
	scoreText(w, "before", r.BeforeScore)
	scoreText(w, "after", r.AfterScore)
	if !r.Accepted {
		fmt.Fprintln(w, wrapped("  kept the original: "+manifest.CleanLine(r.Why), a.columns(), "    "))
	}
	for i, c := range r.Candidates {
		if c.Rejected != "" {
			text := fmt.Sprintf("  not candidate %d: %s", i+1, manifest.CleanLine(c.Rejected))
			fmt.Fprintln(w, wrapped(text, a.columns(), "    "))
		}
	}
	before := func(e *host.Edit) string {
		switch e.Field {
		case host.EditBrief:
			return r.Before.Brief
		case host.EditStandard:
			return r.Before.Standard
		case host.EditWhen:
			return r.Before.When
		case host.EditWhenNot:
			return r.Before.WhenNot
		}
		return r.Before.Params[e.Param]
	}
	for i := range r.Edits {
		e := &r.Edits[i]
		fmt.Fprintln(w, "  "+manifest.CleanLine(e.Field+" "+e.Param))
		if old := before(e); old != "" {
			fmt.Fprintln(w, wrapped("  - "+manifest.CleanLine(old), a.columns(), "    "))
		}
		fmt.Fprintln(w, wrapped("  + "+manifest.CleanLine(e.Value), a.columns(), "    "))
	}
}

// scoreText prints a score, if there is one.
func scoreText(w io.Writer, title string, s *optimize.Score) {
	if s == nil {
		return
	}
	fmt.Fprintf(w, "  %-6s  score %.3f: chosen for %d of %d, arguments valid in %d", title, s.Score, s.Chosen, s.Own,
		s.Valid)
	if s.Share != nil {
		fmt.Fprintf(w, " (%.0f-%.0f %%)", 100*s.Share.Low, 100*s.Share.High)
	}
	fmt.Fprintf(w, "; others right %d of %d; %d tokens\n", s.Right, s.Siblings, s.Tokens)
}
