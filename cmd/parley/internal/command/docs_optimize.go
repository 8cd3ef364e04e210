package command

import (
	"cmp"
	"context"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/stats"
	"github.com/parley-tools/parley/host/stats/judge"
	"github.com/parley-tools/parley/host/stats/model"
	"github.com/parley-tools/parley/host/stats/optimize"
	"github.com/parley-tools/parley/host/stats/suggest"
	"github.com/parley-tools/parley/manifest"
)

// OptimizeOptions say which tools [DocsOptimize] optimizes.
type OptimizeOptions struct {
	Name   string // a plugin, a group or a tool
	Since  string // as in TraceFilter
	Seed   uint64 // of the split of queries
	DryRun bool   // only say what would be applied
}

// OptimizeData says what came of each tool.
type OptimizeData struct {
	Results []*optimize.Result `json:"results"`
	Applied []AppliedEdit      `json:"applied"`
	DryRun  bool               `json:"dry_run,omitempty"`
	Model   ModelRun           `json:"model"`
}

// tokensOfQuestion is what a question of an optimization takes, for the estimate of a run.
const tokensOfQuestion = 4000

// DocsOptimize lets the configured model rewrite the documentation of tools, and applies what measures better and
// passes the gate. Those tools come first of which most calls failed.
func DocsOptimize(ctx context.Context, d *Deps, o OptimizeOptions, m ModelOptions) (*OptimizeData, error) {
	at, tools, err := d.toolsBelow(o.Name)
	if err != nil {
		return nil, err
	}
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	records, err := d.records(o.Since)
	if err != nil {
		return nil, err
	}
	plan := modelPlan{what: "better documentation of " + manifest.Plural(len(tools), "tool") + " of " + at.Plugin,
		sends: d.sentOfCalls(), calls: len(tools) * optimize.MaxQuestions}
	plan.tokens = plan.calls * tokensOfQuestion
	client, err := d.model(m, plan)
	if err != nil {
		return nil, err
	}
	failed := map[string]int{}
	report := stats.Compute(slices.Values(records), catalog, at.Name())
	for _, t := range report.Tools {
		failed[t.Name] = t.Failed
	}
	slices.SortStableFunc(tools, func(a, b *manifest.Tool) int {
		return cmp.Compare(failed[at.Plugin+"."+b.Name], failed[at.Plugin+"."+a.Name])
	})
	op := &optimize.Optimizer{Catalog: catalog, Provider: at.Provider, Ask: client.Ask, Try: d.Parley().TryExample,
		Gate:    &suggest.Gate{Catalog: catalog, Run: d.Parley().TryExample},
		Records: records, Scores: scores(records, catalog, client), Seed: o.Seed}
	data := &OptimizeData{Results: []*optimize.Result{}, DryRun: o.DryRun}
	edits, err := d.newEdits(m.edits(o.DryRun))
	if err != nil {
		return nil, err
	}
	for i, t := range tools {
		m.told(i, len(tools), at.Plugin+"."+t.Name)
		current, err := edits.overlay(at.Provider)
		if err != nil {
			return nil, err
		}
		r, err := op.Tool(ctx, current, t.Name)
		if (i > 0 || client.Usage().Calls > 0) && data.Model.stop(err) {
			r.Why = "the budget was used up before it was measured"
			data.Results = append(data.Results, r)
			break
		}
		if err != nil {
			return nil, err
		}
		if err := edits.check(ctx, at.Plugin, optimized(r, client.Endpoint.Name)); err != nil {
			return nil, err
		}
		data.Results = append(data.Results, r)
	}
	data.Model.Usage, data.Applied = client.Usage(), edits.data.Applied
	return data, edits.write(ctx)
}

// optimized returns what was accepted of a tool.
func optimized(r *optimize.Result, by string) (proposals []suggest.Proposal) {
	if !r.Accepted {
		return nil
	}
	for _, e := range r.Edits {
		e.Origin = "model " + manifest.CleanLine(by)
		e.Scores = &host.EditScores{Before: r.BeforeScore.Score, After: r.AfterScore.Score}
		proposals = append(proposals, suggest.Proposal{Edit: e})
	}
	return proposals
}

// scores returns the scores of the sessions on which the recording has a verdict.
func scores(records []host.Record, catalog *host.Catalog, client *model.Client) map[string]float64 {
	found := map[string]float64{}
	for _, s := range judge.Sessions(records) {
		answer, ok := client.Recorded(s.Question(catalog))
		if v, err := judge.Parse(answer); ok && err == nil {
			if found[s.Name] = v.Score; !s.CodesPass() { // which outrank it
				found[s.Name] = 0
			}
		}
	}
	return found
}
