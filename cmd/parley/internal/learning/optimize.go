package learning

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/judge"
	"github.com/parley-tools/parley/host/learn/model"
	"github.com/parley-tools/parley/host/learn/optimize"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/learn/suggest"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/manifest"
)

var docsOptimizeCommand = &command.Command[*docsOptimizeOptions]{
	Use: "optimize NAME", Run: runDocsOptimize, Words: command.CompleteNames,
	Short: "Let a model rewrite documentation, and keep what is better",
	Long: "NAME is a plugin, a group or a tool. The configured model (model.url) proposes texts from calls that " +
		"succeeded and that\nfailed, after a question at the terminal. Then it chooses tools for queries that it did not " +
		"see, by the old texts and the\nnew ones. What is better there, not worse for any sibling tool, and passes the " +
		"gate of docs apply, becomes an edit of\nyours; otherwise the original is kept. Without calls in the traces, " +
		"examples are called in the sandbox.",
	Example: "parley docs optimize text.hash --dry-run\nparley docs optimize text --max-cost 0.5\n" +
		"parley docs optimize text.hash --replay exchanges.jsonl",
}

// runDocsOptimize lets the configured model rewrite the documentation of tools. It applies texts that measure better
// and pass the gate. Tools with the most failed calls come first.
func runDocsOptimize(ctx context.Context, app *command.App, opts *docsOptimizeOptions) error {
	at, tools, err := toolsBelow(app, opts.Name)
	if err != nil {
		return err
	}
	catalog, scope, records, err := recorded(app, opts.Name, opts.Since)
	if err != nil {
		return err
	}
	plan := modelPlan{what: "better documentation of " + manifest.Plural(len(tools), "tool") + " of " + at.Plugin,
		sends: sentOfCalls(app), calls: len(tools) * optimize.MaxQuestions}
	plan.tokens = plan.calls * tokensOfQuestion
	client, err := modelOf(app, opts.modelOptions, plan)
	if err != nil {
		return err
	}
	failed := map[string]int{}
	for _, t := range stats.Compute(records, catalog, scope).Tools {
		failed[t.Name] = t.Failed
	}
	slices.SortStableFunc(tools, func(a, b *manifest.Tool) int {
		return cmp.Compare(failed[at.Plugin+"."+b.Name], failed[at.Plugin+"."+a.Name])
	})
	op := &optimize.Optimizer{Gate: &suggest.Gate{Catalog: catalog, Run: app.Parley().TryExample}, Provider: at.Provider,
		Ask: client.Ask, Records: records, Scores: scores(records, catalog, client), Seed: opts.Seed}
	data := struct {
		Results []*optimize.Result `json:"results"`
		Applied []appliedEdit      `json:"applied"`
		DryRun  bool               `json:"dry_run,omitempty"`
		Model   modelRun           `json:"model"`
	}{Results: []*optimize.Result{}, DryRun: opts.DryRun}
	edits, err := newEdits(app, opts.DryRun)
	if err != nil {
		return err
	}
	for i, t := range tools {
		told(app, i, len(tools), at.Plugin+"."+t.Name)
		current, err := edits.overlay(at.Provider)
		if err != nil {
			return err
		}
		r, err := op.Tool(ctx, current, t.Name)
		if (i > 0 || client.Usage().Calls > 0) && data.Model.stop(err) {
			r.Why = "the budget was used up before it was measured"
			data.Results = append(data.Results, r)
			break
		}
		if err != nil {
			return err
		}
		if err := edits.check(ctx, at.Plugin, optimized(r, client.Endpoint.Name)); err != nil {
			return err
		}
		data.Results = append(data.Results, r)
	}
	data.Model.Usage, data.Applied = client.Usage(), edits.data.Applied
	if err := edits.write(ctx, opts.Yes); err != nil {
		return err
	}
	next := command.Either(len(data.Applied) == 0 || opts.DryRun, []string{"parley docs suggest"},
		[]string{"parley docs diff", "parley docs revert " + opts.Name})
	return app.Print(data, next, func(w io.Writer) {
		for _, r := range data.Results {
			optimizedText(app, w, r)
		}
		editsText(w, len(data.Applied), data.DryRun, "")
		modelText(w, &data.Model)
	})
}

// optimizedText prints the outcome for a tool: the texts before and after, or that the original is kept, with
// figures.
func optimizedText(a *command.App, w io.Writer, r *optimize.Result) {
	fmt.Fprintf(w, "%s (%s, %s%s)\n", manifest.CleanLine(r.Tool), manifest.Plural(r.Calls, "call"),
		manifest.Plural(r.Failed, "failure"), command.When(r.Cold, ", cold start"))
	scoreText(w, "before", r.BeforeScore)
	scoreText(w, "after", r.AfterScore)
	command.PrintIf(w, !r.Accepted, "%s\n",
		command.Wrapped("  kept the original: "+manifest.CleanLine(r.Why), a.Columns(), "    "))
	for i, c := range r.Candidates {
		if c.Rejected != "" {
			a.Wrap(w, "    ", "  rejected candidate %d: %s", i+1, manifest.CleanLine(c.Rejected))
		}
	}
	before := map[string]string{overlay.Brief: r.Before.Brief, overlay.Standard: r.Before.Standard,
		overlay.When: r.Before.When, overlay.WhenNot: r.Before.WhenNot}
	for _, e := range r.Edits {
		fmt.Fprintln(w, "  "+manifest.CleanLine(e.Field+" "+e.Param))
		changeText(a, w, cmp.Or(before[e.Field], r.Before.Params[e.Param]), e.Value)
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

// docsOptimizeOptions select the tools that [runDocsOptimize] optimizes. Name is a plugin, a group or a tool.
type docsOptimizeOptions struct {
	Name  string `word:""`
	Since string `flag:"since" usage:"only records since: 24h, 7d, 2026-11-21"`
	Seed  uint64 `flag:"seed" default:"1" usage:"split the queries in another way"`
	modelEditOptions
}

// tokensOfQuestion is the estimated number of tokens of a question of an optimization.
const tokensOfQuestion = 4000

// optimized returns the accepted edits of a tool.
func optimized(r *optimize.Result, by string) (proposals []suggest.Proposal) {
	if !r.Accepted {
		return nil
	}
	for _, e := range r.Edits {
		e.Origin = "model " + manifest.CleanLine(by)
		e.Scores = &overlay.Scores{Before: r.BeforeScore.Score, After: r.AfterScore.Score}
		proposals = append(proposals, suggest.Proposal{Edit: e})
	}
	return proposals
}

// scores returns how well sessions did: 0 if the last call failed, else the score of the verdict in the recording, else
// 1.
func scores(records []host.Record, catalog *host.Catalog, client *model.Client) map[string]float64 {
	found := map[string]float64{}
	for _, s := range judge.Sessions(records) {
		if s.CodesPass() { // the codes outrank the verdict
			found[s.Name] = 1
			if v := recordedVerdict(client, s, catalog); v != nil {
				found[s.Name] = v.Score
			}
		}
	}
	return found
}
