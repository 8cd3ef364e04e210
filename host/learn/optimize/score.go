package optimize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/model"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// Score is how well texts serve. A query of the tool itself gives half a point if the tool is chosen, and half a point
// if its arguments are valid, too. A query of another tool gives a point if that tool is chosen. Score is the points
// per query, less tokenCost for each token of the tool's tier 2.
type Score struct {
	Own      int          `json:"own"` // queries of the tool
	Chosen   int          `json:"chosen"`
	Valid    int          `json:"valid"`
	Siblings int          `json:"siblings"` // queries of other tools
	Right    int          `json:"right"`    // queries of other tools for which the right tool was chosen
	Tokens   int          `json:"tokens"`
	Score    float64      `json:"score"`
	Share    *stats.Share `json:"valid_share,omitempty"` // share of Valid, from five queries on
}

// tokenCost is what a token of a text costs: 100 tokens have to gain two points in a hundred.
const tokenCost = 0.0002

// batchSize is the number of queries of one question.
const batchSize = (maxOwn + maxSiblings) / 2

// result is what was chosen for a query.
type result struct {
	query
	chosen bool // the right tool
	valid  bool // with valid arguments, too; only of a query of the tool itself
}

// outcome is what was chosen for some queries.
type outcome struct {
	own     string // local name of the tool that is measured
	tokens  int
	results []result
}

// with returns the outcome over the queries of both.
func (a *outcome) with(b *outcome) *outcome {
	return &outcome{a.own, a.tokens, slices.Concat(a.results, b.results)}
}

func (a *outcome) score() *Score {
	s := &Score{Tokens: a.tokens}
	for _, r := range a.results {
		total, right := &s.Siblings, &s.Right
		if r.tool == a.own {
			total, right = &s.Own, &s.Chosen
		}
		if *total++; r.chosen {
			*right++
		}
		if r.valid {
			s.Valid++
		}
	}
	if n := len(a.results); n > 0 {
		s.Score = math.Round((s.points()/float64(n)-tokenCost*float64(s.Tokens))*1e4) / 1e4
	}
	s.Share = stats.ShareOf(s.Valid, s.Own)
	return s
}

func (s *Score) points() float64 { return float64(s.Chosen+s.Valid)/2 + float64(s.Right) }

// worse returns in what respect the outcome after an edit is worse over the same queries, "" if in none.
func (a *outcome) worse(after *outcome) string {
	original, edited := a.score(), after.score()
	switch {
	case edited.points() < original.points():
		return fmt.Sprintf("worse over all: %g points, and the original %g", edited.points(), original.points())
	case edited.Score < original.Score:
		return fmt.Sprintf("worse over all: %.3f, and the original %.3f", edited.Score, original.Score)
	}
	for i, r := range a.results {
		if r.tool != a.own && r.chosen && !after.results[i].chosen {
			return fmt.Sprintf("%s is no longer chosen for %q", r.tool, r.text)
		}
	}
	return ""
}

const note = "Tools other than the first need no arguments."

// errMalformed says that texts cannot be measured, which differs from a bad score.
var errMalformed = errors.New("it cannot be measured: an answer of the model is malformed")

// measure lets the model choose tools for queries, by the texts that result from an overlay.
func (s *subject) measure(ctx context.Context, overlay *overlay.Overlay, queries []query) (*outcome, error) {
	docs := s.describe(overlay)
	o := &outcome{own: s.tool.Name, tokens: docs.Tokens()}
	tools := docs.Text()
	for _, t := range s.siblings {
		tools += model.ToolLine(s.plugin, t)
	}
	for batch := range slices.Chunk(queries, batchSize) {
		requests := lists.Map(batch, func(q query) string { return q.text })
		answer, err := s.Ask(ctx, model.ChoiceQuestion(tools, note, requests))
		if err != nil {
			return nil, err
		}
		calls, ok := model.ParseChoices(answer, len(batch))
		if !ok {
			return nil, errMalformed
		}
		for i, q := range batch {
			r := result{query: q, chosen: calls[i].Named(s.plugin + "." + q.tool)}
			r.valid = r.chosen && q.tool == o.own && s.valid(calls[i].Arguments)
			o.results = append(o.results, r)
		}
	}
	return o, nil
}

// describe returns tier 2 of the tool with an overlay.
func (s *subject) describe(edits *overlay.Overlay) *manifest.ToolDocs {
	p := overlay.Wrap(host.Base(s.Provider), func() (*overlay.Overlay, error) { return edits, nil }, nil)
	d := p.Features().Describe(edits.Apply(s.original), manifest.Tier2)
	for i := range d.Examples {
		d.Examples[i].NotRun = "" // says nothing about what the tool is for
	}
	return d
}
