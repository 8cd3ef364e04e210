// Package optimize lets a model rewrite the documentation of a tool, and keeps the new texts only if they measure
// better. The model that writes sees calls that succeeded and calls that failed, and none of the queries by which the
// result is measured. A measurement is whether a model, given the texts, chooses the right tool for a query, with
// valid arguments; tokens count against a text. Texts that the gate of package suggest refuses are not measured at
// all.
package optimize

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/eval"
	"github.com/parley-tools/parley/host/learn/model"
	"github.com/parley-tools/parley/host/learn/suggest"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// Optimizer optimizes the tools of one plugin. It is not safe for concurrent use.
type Optimizer struct {
	// Gate decides which texts are measured. Its Run also tries calls of a tool that reads if traces have none.
	Gate     *suggest.Gate
	Provider host.Provider // the plugin, one of the gate's catalog
	// Ask asks the model.
	Ask     func(ctx context.Context, q model.Question) (string, error)
	Records []host.Record      // the traces
	Scores  map[string]float64 // how well sessions did, from 0 to 1
	Seed    uint64             // seed of the split, and of generated calls
}

// MaxQuestions is the most that is asked about one tool: one question for queries, one for candidates, and two for the
// score of the original and of each candidate.
const MaxQuestions = 2 + 2*(1+maxCandidates)

// maxCandidates is how many candidates a model is asked for.
const maxCandidates = 3

// Result is the outcome for a tool.
type Result struct {
	Tool     string         `json:"tool"`     // qualified
	Accepted bool           `json:"accepted"` // otherwise the original is kept
	Why      string         `json:"why"`
	Edits    []overlay.Edit `json:"edits"`
	Before   Texts          `json:"before"`
	After    Texts          `json:"after"` // as Before if the original is kept
	// BeforeScore and AfterScore are measured over all queries. They are nil if nothing was measured to the end.
	BeforeScore *Score       `json:"before_score,omitempty"`
	AfterScore  *Score       `json:"after_score,omitempty"`
	Candidates  []*Candidate `json:"candidates"`
	Calls       int          `json:"calls"`   // in the traces
	Failed      int          `json:"failed"`  // failed calls in the traces
	Queries     int          `json:"queries"` // queries of the tool itself
	Cold        bool         `json:"cold_start,omitempty"`
}

// Candidate is a proposal and how far it came.
type Candidate struct {
	Texts     Texts  `json:"texts"`
	Rejected  string `json:"rejected,omitempty"` // why
	Minibatch *Score `json:"minibatch,omitempty"`

	edits []overlay.Edit
	first *outcome // outcome of the minibatch
}

// Tool optimizes a tool, whose name is local, on top of an overlay. It changes nothing: the edits are in the result.
func (o *Optimizer) Tool(ctx context.Context, current *overlay.Overlay, name string) (*Result, error) {
	s, err := o.newSubject(current, name)
	if err != nil {
		return nil, err
	}
	r := &Result{Tool: s.full, Before: textsOf(s.tool), After: textsOf(s.tool), Edits: []overlay.Edit{},
		Candidates: []*Candidate{}, Calls: len(s.calls), Failed: s.failures}
	own, err := s.queries(ctx)
	r.Cold = s.cold
	if err != nil {
		return r, err
	}
	r.Queries = len(own)
	if len(own) < minQueries {
		r.Why = fmt.Sprintf("it has %d queries; at least %d are required", len(own), minQueries)
		return r, nil
	}
	if err := s.choose(ctx, r, own); err == errMalformed {
		r.Why = err.Error()
	} else if err != nil {
		return r, err
	}
	return r, nil
}

// choose measures the original and the candidates by queries, and accepts the best candidate if it is better.
func (s *subject) choose(ctx context.Context, r *Result, own []query) error {
	first, rest := s.split(own)
	base, err := s.measure(ctx, s.overlay, first)
	if err != nil {
		return err
	}
	baseRest, err := s.measure(ctx, s.overlay, rest)
	if err != nil {
		return err
	}
	whole := base.with(baseRest)
	r.BeforeScore = whole.score()
	if r.Candidates, r.Why, err = s.candidates(ctx); err != nil || r.Why != "" {
		return err
	}
	order, err := s.tryAll(ctx, r.Candidates, base, first)
	if err != nil {
		return err
	}
	for n, c := range order {
		more, err := s.measure(ctx, s.overlay.Merge(c.edits), rest)
		switch {
		case err == errMalformed:
			c.Rejected = err.Error()
			continue
		case err != nil:
			return err
		}
		after := c.first.with(more)
		if c.Rejected = whole.worse(after); c.Rejected != "" {
			continue
		}
		r.Accepted, r.Edits, r.After, r.AfterScore = true, c.edits, c.Texts, after.score()
		r.Why = "better in the minibatch, and not worse over all and for any sibling tool"
		for _, other := range order[n+1:] {
			other.Rejected = "another candidate is better"
		}
		return nil
	}
	r.Why = "no candidate was better"
	return nil
}

// tryAll measures the candidates that the gate passes in the minibatch, and returns those that are better there, the
// best first.
func (s *subject) tryAll(ctx context.Context, list []*Candidate, base *outcome, first []query) (order []*Candidate,
	err error) {
	for _, c := range list {
		if c.Rejected, err = s.refuse(ctx, c); err != nil {
			return nil, err
		}
		if c.Rejected != "" {
			continue
		}
		c.first, err = s.measure(ctx, s.overlay.Merge(c.edits), first)
		switch {
		case err == errMalformed:
			c.Rejected = err.Error()
			continue
		case err != nil:
			return nil, err
		}
		c.Minibatch = c.first.score()
		if original := base.score().Score; c.Minibatch.Score <= original {
			c.Rejected = fmt.Sprintf("not better in the minibatch: %.3f, and the original %.3f", c.Minibatch.Score, original)
			continue
		}
		order = append(order, c)
	}
	slices.SortStableFunc(order, func(a, b *Candidate) int { return cmp.Compare(b.Minibatch.Score, a.Minibatch.Score) })
	return order, nil
}

// subject is a tool that is being optimized.
type subject struct {
	*Optimizer
	full     string // qualified name
	plugin   string
	original *manifest.Tool
	tool     *manifest.Tool // with its overlay
	overlay  *overlay.Overlay
	params   *schema.Schema // nil if it cannot be compiled
	siblings []*manifest.Tool

	calls             []host.Record // in the traces
	failures          int           // failed ones of them
	succeeded, failed []example
	cold              bool
}

func (o *Optimizer) newSubject(current *overlay.Overlay, name string) (*subject, error) {
	base := host.Base(o.Provider)
	t, err := base.Tool(name)
	if err != nil {
		return nil, err
	}
	plugin := base.Info().Name
	if t == nil {
		return nil, host.Errorf(host.NotFound, "%s has no tool %s", plugin, manifest.CleanLine(name))
	}
	s := &subject{Optimizer: o, full: plugin + "." + t.Name, plugin: plugin, original: t, tool: current.Apply(t),
		overlay: current}
	s.params, _ = schema.CompileUntrusted(s.tool.Params)
	if err := s.findSiblings(base); err != nil {
		return nil, err
	}
	s.readCalls()
	return s, nil
}

// maxSiblings is how many tools a model chooses from, beside the one that is optimized.
const maxSiblings = 12

// findSiblings finds the tools of the plugin that are nearest to the one that is optimized.
func (s *subject) findSiblings(base host.Provider) error {
	hits := eval.Hits(s.Gate.Catalog, search.Order{}, search.Query{Text: s.tool.Docs.Brief, Plugin: s.plugin,
		Limit: maxSiblings + 1})
	nearest := lists.Map(hits, func(name string) string { return strings.TrimPrefix(name, s.plugin+".") })
	all, err := base.Names()
	if err != nil {
		return err
	}
	for _, name := range lists.Add(nearest, all...) {
		if strings.EqualFold(name, s.tool.Name) || len(s.siblings) == maxSiblings {
			continue
		}
		t, err := base.Tool(name)
		if err != nil {
			return err
		}
		if t != nil && t.Deprecated == nil {
			s.siblings = append(s.siblings, s.overlay.Apply(t))
		}
	}
	return nil
}
