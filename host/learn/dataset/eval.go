package dataset

import (
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/eval"
	"github.com/parley-tools/parley/host/learn/model"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/search"
)

// Report is how a catalog does on a dataset. It depends on nothing else.
type Report struct {
	Search *eval.Report `json:"search,omitempty"` // nil without queries
	Calls  Calls        `json:"calls"`
}

// Calls are the recorded calls, validated by the schemas of a catalog. Calls without values cannot be validated.
type Calls struct {
	Calls   int `json:"calls"`
	Unknown int `json:"unknown_tool"`
	Values  int `json:"with_values"` // calls of known tools with values
	// Accepted counts the successful calls with valid arguments, Refused the calls with invalid arguments that failed
	// because of them.
	Succeeded     int          `json:"succeeded"`
	Accepted      int          `json:"accepted"`
	AcceptedShare *stats.Share `json:"accepted_share,omitempty"`
	Failed        int          `json:"failed_by_arguments"`
	Refused       int          `json:"refused"`
	RefusedShare  *stats.Share `json:"refused_share,omitempty"`
}

// Evaluate scores a catalog: search by the queries, and schemas by the calls.
func (d *Dataset) Evaluate(catalog *host.Catalog) *Report {
	r := &Report{}
	if len(d.Queries) > 0 {
		r.Search = eval.Evaluate(d.Queries, catalog, search.Order{})
	}
	c := &r.Calls
	for _, s := range d.Sessions {
		for _, call := range s.Calls {
			c.Calls++
			at, ok := stats.Find(catalog, call.Name)
			if !ok {
				c.Unknown++
				continue
			}
			if call.Shapes || len(call.Arguments) == 0 {
				continue
			}
			c.Values++
			params, err := at.SchemaOf(at.Tool.Params, "params")
			if err != nil || params == nil {
				continue
			}
			valid := stats.Valid(params, call.Arguments)
			switch {
			case call.ExitCode == 0:
				c.Succeeded++
				if valid {
					c.Accepted++
				}
			case call.Code == string(host.InvalidArgs):
				c.Failed++
				if !valid {
					c.Refused++
				}
			}
		}
	}
	c.AcceptedShare, c.RefusedShare = stats.ShareOf(c.Accepted, c.Succeeded), stats.ShareOf(c.Refused, c.Failed)
	return r
}

// Choices are what a model chose for the queries of a dataset.
type Choices struct {
	Queries   int          `json:"queries"` // answered queries
	Right     int          `json:"right"`   // answered with a tool of the best grade of the query
	Share     *stats.Share `json:"share,omitempty"`
	Malformed int          `json:"malformed"` // queries whose answer is malformed; they are in no other figure
}

const (
	batchSize  = 10 // queries of one question
	offeredPer = 5  // hits of search that are offered for each query of it
)

// Questions returns what a model is asked to choose for the queries, ten at a time. It is offered the tools that serve
// them, as far as the catalog has these, and the first five hits of each.
func (d *Dataset) Questions(catalog *host.Catalog) []model.Question {
	var questions []model.Question
	for batch := range slices.Chunk(d.Queries, batchSize) {
		offered := map[string]string{}
		offer := func(name string) {
			if at, ok := stats.Find(catalog, name); ok {
				offered[at.Name()] = model.ToolLine(at.Plugin, at.Tool)
			}
		}
		var requests []string
		for _, q := range batch {
			requests = append(requests, q.Query)
			for name := range q.Relevant {
				offer(name)
			}
			for _, name := range eval.Hits(catalog, search.Order{}, search.Query{Text: q.Query, Limit: offeredPer}) {
				offer(name)
			}
		}
		var tools strings.Builder
		for _, name := range slices.Sorted(maps.Keys(offered)) {
			tools.WriteString(offered[name])
		}
		questions = append(questions, model.ChoiceQuestion(tools.String(), "Arguments may be empty.", requests))
	}
	return questions
}

// Count counts the answer to the question with a number, from 0.
func (d *Dataset) Count(c *Choices, number int, answer string) {
	batch := d.Queries[number*batchSize : min(len(d.Queries), (number+1)*batchSize)]
	calls, ok := model.ParseChoices(answer, len(batch))
	if !ok {
		c.Malformed += len(batch)
		return
	}
	for i, q := range batch {
		c.Queries++
		best := slices.Max(slices.Collect(maps.Values(q.Relevant)))
		for name, grade := range q.Relevant {
			if grade == best && calls[i].Named(name) {
				c.Right++
				break
			}
		}
	}
	c.Share = stats.ShareOf(c.Right, c.Queries)
}
