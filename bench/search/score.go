package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-tools/parley/host/learn/eval"
	"github.com/parley-tools/parley/host/search"

	"github.com/parley-tools/parley/bench/internal/ranked"
)

// evaluate returns the score of each query of each set without a part.
func evaluate(sets []set, left part) (scores [][]ranked.Score, err error) {
	for _, s := range sets {
		catalog, err := s.catalog(left)
		if err != nil {
			return nil, err
		}
		of := make([]ranked.Score, len(s.queries))
		for i, q := range s.queries {
			q.Kind, q.Half = "", "" // one row
			r := eval.Evaluate([]eval.Query{q}, catalog, search.Order{}).Scores[0]
			of[i] = ranked.Score{r.Success1, r.Success5, r.NDCG10}
		}
		scores = append(scores, of)
	}
	return scores, nil
}

// substrings returns the scores of the simplest search: tools are ordered by how many words of the query, of three
// letters or more, their names and their whole documentation contain, and then by name.
func (s *set) substrings() []ranked.Score {
	texts := map[string]string{} // by qualified name
	for _, p := range s.plugins {
		for _, d := range p.Docs {
			text := slices.Concat([]string{d.Name, d.Brief, d.Text}, d.Aliases, d.Keywords, d.Tasks)
			for _, param := range d.Params {
				text = append(append(text, param.Name, param.Text), param.Enum...)
			}
			if d.Kind == "" {
				texts[p.About.Name+"."+d.Name] = strings.ToLower(strings.Join(text, "\n"))
			}
		}
	}
	scores := make([]ranked.Score, len(s.queries))
	for i, q := range s.queries {
		words := strings.FieldsFunc(strings.ToLower(q.Query), func(r rune) bool { return !unicode.IsLetter(r) })
		slices.Sort(words)
		contained := map[string]int{}
		for name, text := range texts {
			for _, w := range slices.Compact(slices.Clone(words)) {
				if len(w) > 2 && strings.Contains(text, w) {
					contained[name]++
				}
			}
		}
		scores[i] = ranked.Rate(slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
			return cmp.Or(cmp.Compare(contained[b], contained[a]), cmp.Compare(a, b))
		})[:10], q.Relevant)
	}
	return scores
}

// header is that of the table of parts.
const header = "| queries | search | success@1 | success@5 | NDCG@10 | difference of success@1 | of NDCG@10 |\n" +
	"|---|---|---|---|---|---|---|\n"

// row returns the row of a part, with the differences to the scores with everything, if these are others. A difference
// whose interval does not contain 0 is bold.
func (s *set) row(name string, scores, whole []ranked.Score) string {
	line := fmt.Sprintf("| %s, %d | %s |%s", s.name, len(scores), name, columns(scores))
	for _, measure := range []int{0, 2} {
		if whole == nil {
			line += " |"
			continue
		}
		pairs := make([]float64, len(scores))
		for i := range scores {
			pairs[i] = scores[i][measure] - whole[i][measure]
		}
		text, low, high := ranked.Interval("%+.3f", pairs)
		if low > 0 || high < 0 {
			text = "**" + text + "**"
		}
		line += " " + text + " |"
	}
	return line + "\n"
}

// kinds returns the table of the kinds of the queries.
func (s *set) kinds(scores []ranked.Score) string {
	byKind := map[string][]ranked.Score{}
	for i, q := range s.queries {
		byKind[q.Kind] = append(byKind[q.Kind], scores[i])
	}
	table := "| kind | queries | success@1 | success@5 | NDCG@10 |\n|---|---|---|---|---|\n"
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		table += fmt.Sprintf("| %s | %d |%s\n", kind, len(byKind[kind]), columns(byKind[kind]))
	}
	return table
}

func columns(scores []ranked.Score) (text string) {
	for measure := range 3 {
		values := make([]float64, len(scores))
		for i := range scores {
			values[i] = scores[i][measure]
		}
		column, _, _ := ranked.Interval("%.3f", values)
		text += " " + column + " |"
	}
	return text
}
