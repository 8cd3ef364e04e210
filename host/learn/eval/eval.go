// Package eval measures a search: against queries with graded answers, and against the task phrases of the tools.
package eval

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

const (
	evalDepth   = 10      // hits that count; a tool below them is not found
	maxEvalLine = 1 << 20 // bytes
	maxEvalSize = 100_000 // queries
	maxGrade    = 10
)

// Query is a line of a set that search is evaluated with. Grades range from 0 (irrelevant, as if not named) to 10;
// 1 to 3 are usual. Kind and Half may be empty. Other members of the line are ignored.
type Query struct {
	Query    string             `json:"query"`
	Kind     string             `json:"kind"`     // such as exact, partial, typo, concept
	Half     string             `json:"half"`     // the part of the set, so that search can be tuned on one half and evaluated on the other
	Relevant map[string]float64 `json:"relevant"` // qualified name: grade
}

// Report is the result of evaluating search with a set. Scores has a row for each kind and one for all kinds (kind
// "all"), first for the whole set, then for each half.
type Report struct {
	Queries int      `json:"queries"`
	Scores  []Score  `json:"scores"`
	Misses  []Miss   `json:"misses,omitempty"`
	Unknown []string `json:"unknown,omitempty"` // names in the set that no plugin has: they count as not found
}

// Score is the mean over the queries of a kind. A hit is good if its grade is 2 or more, or the best grade of a
// query that has only lower ones.
type Score struct {
	Kind     string  `json:"kind"`
	Half     string  `json:"half,omitempty"`
	Queries  int     `json:"queries"`
	Success1 float64 `json:"success_1"` // share of queries whose first hit is good
	Success5 float64 `json:"success_5"` // share of queries with a good one among the first five
	MRR      float64 `json:"mrr"`       // 1 divided by the rank of the first good hit, 0 beyond ten
	NDCG10   float64 `json:"ndcg_10"`   // gain 2^grade-1, discount log2(rank+1), over the first ten
}

// Miss is a query without a good hit among the first five.
type Miss struct {
	Query string   `json:"query"`
	Kind  string   `json:"kind,omitempty"`
	Want  []string `json:"want"` // good hits, best first
	Got   []string `json:"got"`  // the first five hits
}

func (m Miss) String() string {
	found := cmp.Or(strings.Join(m.Got, ", "), "nothing")
	return fmt.Sprintf("%s: %q finds %s", m.Want[0], manifest.CleanValue(m.Query), found)
}

// Read reads a set: one JSON object per line; empty lines are ignored. The error is invalid_args and names the
// first twenty invalid lines.
func Read(r io.Reader) ([]Query, error) {
	var set []Query
	var bad []error
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvalLine)
	number := 0
	for lines.Scan() && len(bad) < 20 {
		number++
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		q, err := readEvalLine(lines.Bytes())
		if err != nil {
			bad = append(bad, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		if set = append(set, q); len(set) > maxEvalSize {
			return nil, host.Errorf(host.InvalidArgs, "the set has more than %d queries; split it", maxEvalSize)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		bad = append(bad, fmt.Errorf("line %d: more than %d bytes", number+1, maxEvalLine))
	} else if err != nil {
		return nil, err
	}
	if len(bad) > 0 {
		return nil, host.Errorf(host.InvalidArgs, "the set cannot be read: %v", errors.Join(bad...))
	}
	if len(set) == 0 {
		return nil, host.Errorf(host.InvalidArgs, `the set is empty; expected lines such as {"query":"list cookies","kind":"concept","relevant":{"cdp.Network.getCookies":3}}`)
	}
	return set, nil
}

func readEvalLine(line []byte) (q Query, err error) {
	if err := json.Unmarshal(line, &q); err != nil {
		kind, isType := errors.AsType[*json.UnmarshalTypeError](err)
		if isType && kind.Field == "" {
			return q, fmt.Errorf("got a JSON %s; expected an object with query and relevant", kind.Value)
		} else if isType {
			return q, fmt.Errorf("%s is a JSON %s; expected %s", host.Printable(kind.Field), kind.Value,
				map[bool]string{true: "names with grades", false: "a string"}[strings.HasPrefix(kind.Field, "relevant")])
		}
		return q, fmt.Errorf("not a JSON object with query and relevant: %s", manifest.CleanLine(err.Error()))
	}
	if strings.TrimSpace(q.Query) == "" {
		return q, errors.New("query is missing")
	}
	best := 0.0
	for _, name := range slices.Sorted(maps.Keys(q.Relevant)) {
		grade := q.Relevant[name]
		if !(grade >= 0 && grade <= maxGrade) {
			return q, fmt.Errorf("%s has grade %g; expected 0 to %d", host.Printable(name), grade, maxGrade)
		}
		best = max(best, grade)
	}
	if best == 0 {
		return q, errors.New("relevant has no tool with a grade above 0")
	}
	return q, nil
}

// Hits returns the names of the tools that a search finds, none if it fails.
func Hits(catalog *host.Catalog, order search.Order, q search.Query) (names []string) {
	if data, _, err := search.Rank(catalog, q, order, nil); err == nil {
		return lists.Map(data.Results, func(r search.Result) string { return r.Name })
	}
	return nil
}

// Evaluate searches all plugins of a catalog for each query of a set. The report depends on nothing else.
func Evaluate(set []Query, catalog *host.Catalog, order search.Order) *Report {
	report, sums := &Report{Queries: len(set)}, map[[2]string]*Score{}
	for _, q := range set {
		relevant := report.resolve(catalog, q.Relevant)
		got := Hits(catalog, order, search.Query{Text: q.Query, Limit: evalDepth})
		good := goodAnswers(relevant)
		rank := slices.IndexFunc(got, func(name string) bool { return slices.Contains(good, name) })
		if rank < 0 || rank >= 5 {
			report.Misses = append(report.Misses,
				Miss{Query: q.Query, Kind: q.Kind, Want: good, Got: got[:min(5, len(got))]})
		}
		for _, half := range slices.Compact([]string{"", q.Half}) {
			for _, kind := range slices.Compact([]string{allKinds, cmp.Or(q.Kind, allKinds)}) {
				row := [2]string{half, kind}
				if sums[row] == nil {
					sums[row] = &Score{Kind: kind, Half: half}
				}
				sums[row].add(rank, ndcg(got, relevant))
			}
		}
	}
	for _, s := range sums {
		report.Scores = append(report.Scores, s.mean())
	}
	slices.SortFunc(report.Scores, func(a, b Score) int {
		return cmp.Or(cmp.Compare(a.Half, b.Half), difficulty(a.Kind)-difficulty(b.Kind), cmp.Compare(a.Kind, b.Kind))
	})
	slices.Sort(report.Unknown)
	return report
}

// resolve returns grades by the names that the catalog has, and adds the names that it does not have to the report.
func (r *Report) resolve(c *host.Catalog, grades map[string]float64) map[string]float64 {
	relevant := map[string]float64{}
	for name, grade := range grades {
		if !slices.Contains(r.Unknown, name) {
			if at, err := c.Find(name); err == nil && at.Tool != nil {
				name = at.Name()
			} else {
				r.Unknown = append(r.Unknown, name)
			}
		}
		relevant[name] = max(relevant[name], grade)
	}
	return relevant
}

// add counts a query. rank counts from 0; -1 means not found.
func (s *Score) add(rank int, gain float64) {
	s.Queries++
	s.NDCG10 += gain
	if rank < 0 {
		return
	}
	s.MRR += 1 / float64(rank+1)
	if rank == 0 {
		s.Success1++
	}
	if rank < 5 {
		s.Success5++
	}
}

// mean returns the means of what was counted.
func (s *Score) mean() Score {
	mean := func(sum float64) float64 { return math.Round(sum/float64(s.Queries)*1e4) / 1e4 }
	return Score{s.Kind, s.Half, s.Queries, mean(s.Success1), mean(s.Success5), mean(s.MRR), mean(s.NDCG10)}
}

// allKinds is the kind of the rows for all kinds.
const allKinds = "all"

// difficulty orders kinds from the easiest to the hardest, then the kinds that it does not know, then all kinds.
func difficulty(kind string) int {
	order := []string{"exact", "partial", "typo", "concept", "other", allKinds}
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return slices.Index(order, "other")
}

func goodAnswers(relevant map[string]float64) []string {
	best := slices.Max(slices.Collect(maps.Values(relevant)))
	good := lists.Filter(slices.Collect(maps.Keys(relevant)),
		func(name string) bool { return relevant[name] >= min(2, best) })
	slices.SortFunc(good,
		func(a, b string) int { return cmp.Or(cmp.Compare(relevant[b], relevant[a]), cmp.Compare(a, b)) })
	return good
}

// ndcg returns the gain of a ranking divided by the gain of the best ranking.
func ndcg(got []string, relevant map[string]float64) float64 {
	gain := func(rank int, grade float64) float64 { return (math.Exp2(grade) - 1) / math.Log2(float64(rank)+2) }
	sum, ideal := 0.0, 0.0
	for i, name := range got[:min(evalDepth, len(got))] {
		sum += gain(i, relevant[name])
	}
	grades := slices.Sorted(maps.Values(relevant))
	slices.Reverse(grades)
	for i, grade := range grades[:min(evalDepth, len(grades))] {
		ideal += gain(i, grade)
	}
	if ideal == 0 {
		return 0 // grades too small to gain anything
	}
	return sum / ideal
}

// TaskReport reports whether search finds the tools of a plugin by the task phrases in its manifest.
type TaskReport struct {
	Plugin  string `json:"plugin"`
	Tools   int    `json:"tools"`
	Phrases int    `json:"phrases"`
	Misses  []Miss `json:"misses,omitempty"` // phrases whose own tool is not among the first five hits in all plugins
}

// CheckTasks searches all plugins for each task phrase of a plugin's tools. The error is not_found for an unknown
// plugin.
func CheckTasks(catalog *host.Catalog, order search.Order, plugin string) (*TaskReport, error) {
	at, err := catalog.FindIn(plugin, "")
	if err != nil {
		return nil, err
	}
	names, err := at.Provider.Names()
	if err != nil {
		return nil, err
	}
	var set []Query
	for _, name := range names {
		tool, err := at.Provider.Tool(name)
		if err != nil {
			return nil, err
		}
		for _, phrase := range tool.Tasks {
			set = append(set, Query{Query: phrase, Relevant: map[string]float64{at.Plugin + "." + name: 1}})
		}
	}
	return &TaskReport{at.Plugin, len(names), len(set), Evaluate(set, catalog, order).Misses}, nil
}
