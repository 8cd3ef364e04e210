package optimize

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/choose"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/manifest"
)

// Score is how well texts serve. A query of the tool itself gives half a point if the tool is chosen, and half if its
// arguments are valid, too; one of another tool gives a point if that is chosen. Score is points per query, less
// tokenCost for each token of the tool's tier 2.
type Score struct {
	Own      int          `json:"own"` // queries of the tool
	Chosen   int          `json:"chosen"`
	Valid    int          `json:"valid"`
	Siblings int          `json:"siblings"` // queries of other tools
	Right    int          `json:"right"`    // of these
	Tokens   int          `json:"tokens"`
	Score    float64      `json:"score"`
	Share    *stats.Share `json:"valid_share,omitempty"` // of Valid, from five queries on
}

// tokenCost is what a token of a text costs: 100 tokens have to gain two points in a hundred.
const tokenCost = 0.0002

// batchSize is the number of queries of one question.
const batchSize = (maxOwn + maxSiblings) / 2

// outcome is what was chosen for some queries.
type outcome struct {
	sums  Score
	right map[string]bool // queries of other tools that were served right
	wrong map[string]bool
}

// with returns the outcome over the queries of both.
func (a *outcome) with(b *outcome) *outcome {
	sum := &outcome{right: map[string]bool{}, wrong: map[string]bool{}}
	for _, o := range []*outcome{a, b} {
		sum.sums.Own += o.sums.Own
		sum.sums.Chosen += o.sums.Chosen
		sum.sums.Valid += o.sums.Valid
		sum.sums.Siblings += o.sums.Siblings
		sum.sums.Right += o.sums.Right
		sum.sums.Tokens = o.sums.Tokens
		for q := range o.right {
			sum.right[q] = true
		}
		for q := range o.wrong {
			sum.wrong[q] = true
		}
	}
	return sum
}

func (a *outcome) points() float64 {
	return float64(a.sums.Chosen+a.sums.Valid)/2 + float64(a.sums.Right)
}

func (a *outcome) score() *Score {
	s := a.sums
	if n := s.Own + s.Siblings; n > 0 {
		s.Score = math.Round((a.points()/float64(n)-tokenCost*float64(s.Tokens))*1e4) / 1e4
	}
	s.Share = stats.ShareOf(s.Valid, s.Own)
	return &s
}

// worse returns in what an outcome over the same queries is worse, "" if in nothing.
func (a *outcome) worse(after *outcome) string {
	switch {
	case after.points() < a.points():
		return fmt.Sprintf("worse over all: %g points, and the original %g", after.points(), a.points())
	case after.score().Score < a.score().Score:
		return fmt.Sprintf("worse over all: %.3f, and the original %.3f", after.score().Score, a.score().Score)
	}
	for q := range a.right {
		if after.wrong[q] {
			tool, text, _ := strings.Cut(q, "\x00")
			return fmt.Sprintf("%s is no longer chosen for %q", tool, text)
		}
	}
	return ""
}

const note = "Tools other than the first need no arguments."

// measure lets the model choose tools for queries, by the texts that an overlay makes. why says that it cannot be
// measured, because an answer is malformed: that is no bad score.
func (s *subject) measure(ctx context.Context, overlay *host.Overlay, queries []query) (o *outcome, why string,
	err error) {
	docs, err := s.describe(overlay)
	if err != nil {
		return nil, "", err
	}
	o = &outcome{sums: Score{Tokens: docs.Tokens()}, right: map[string]bool{}, wrong: map[string]bool{}}
	tools := docs.Text()
	for _, t := range s.siblings {
		tools += choose.Line(s.plugin, t)
	}
	valid := s.validator()
	for batch := range slices.Chunk(queries, batchSize) {
		var requests []string
		for _, q := range batch {
			requests = append(requests, q.text)
		}
		answer, err := s.Ask(ctx, choose.Question(tools, note, requests))
		if err != nil {
			return nil, "", err
		}
		calls, ok := choose.Parse(answer, len(batch))
		if !ok {
			return nil, "it cannot be measured: an answer of the model is malformed", nil
		}
		for i, q := range batch {
			s.count(o, q, calls[i], valid)
		}
	}
	return o, "", nil
}

// count counts what was chosen for a query.
func (s *subject) count(o *outcome, q query, c choose.Call, valid func(json.RawMessage) bool) {
	chosen := c.Named(s.plugin + "." + q.tool)
	if q.tool != s.tool.Name {
		o.sums.Siblings++
		key := q.tool + "\x00" + q.text
		if !chosen {
			o.wrong[key] = true
			return
		}
		o.right[key] = true
		o.sums.Right++
		return
	}
	o.sums.Own++
	if chosen {
		o.sums.Chosen++
		if valid(c.Arguments) {
			o.sums.Valid++
		}
	}
}

// describe returns tier 2 of the tool with an overlay.
func (s *subject) describe(overlay *host.Overlay) (*manifest.ToolDocs, error) {
	p := host.Overlaid(host.Base(s.Provider), func() (*host.Overlay, error) { return overlay, nil }, nil)
	t, err := p.Tool(s.tool.Name)
	if err != nil {
		return nil, err
	}
	return p.Features().Describe(t, manifest.Tier2), nil
}
