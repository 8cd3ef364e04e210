package optimize

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/model"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/internal/lists"
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
	sums   Score
	others map[string]bool // queries of other tools, and whether they were served right
}

// with returns the outcome over the queries of both.
func (a *outcome) with(b *outcome) *outcome {
	sum := &outcome{a.sums, maps.Clone(a.others)}
	sum.sums.Own += b.sums.Own
	sum.sums.Chosen += b.sums.Chosen
	sum.sums.Valid += b.sums.Valid
	sum.sums.Siblings += b.sums.Siblings
	sum.sums.Right += b.sums.Right
	maps.Copy(sum.others, b.others)
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
	for q, right := range a.others {
		if is, known := after.others[q]; right && known && !is {
			tool, text, _ := strings.Cut(q, "\x00")
			return fmt.Sprintf("%s is no longer chosen for %q", tool, text)
		}
	}
	return ""
}

const note = "Tools other than the first need no arguments."

// errMalformed says that texts cannot be measured: that is no bad score.
var errMalformed = errors.New("it cannot be measured: an answer of the model is malformed")

// measure lets the model choose tools for queries, by the texts that an overlay makes.
func (s *subject) measure(ctx context.Context, overlay *overlay.Overlay, queries []query) (*outcome, error) {
	docs, err := s.describe(overlay)
	if err != nil {
		return nil, err
	}
	o := &outcome{sums: Score{Tokens: docs.Tokens()}, others: map[string]bool{}}
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
			s.count(o, q, calls[i])
		}
	}
	return o, nil
}

// count counts what was chosen for a query.
func (s *subject) count(o *outcome, q query, c model.Choice) {
	chosen := c.Named(s.plugin + "." + q.tool)
	if q.tool != s.tool.Name {
		o.sums.Siblings++
		o.others[q.tool+"\x00"+q.text] = chosen
		if chosen {
			o.sums.Right++
		}
		return
	}
	o.sums.Own++
	if chosen {
		o.sums.Chosen++
		if s.valid(c.Arguments) {
			o.sums.Valid++
		}
	}
}

// describe returns tier 2 of the tool with an overlay.
func (s *subject) describe(edits *overlay.Overlay) (*manifest.ToolDocs, error) {
	p := overlay.Wrap(host.Base(s.Provider), func() (*overlay.Overlay, error) { return edits, nil }, nil)
	t, err := p.Tool(s.tool.Name)
	if err != nil {
		return nil, err
	}
	return p.Features().Describe(t, manifest.Tier2), nil
}
