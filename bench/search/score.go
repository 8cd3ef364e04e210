package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-tools/parley/host/learn/eval"
)

// score is what a query reaches: success@1, success@5 and NDCG@10.
type score [3]float64

// evaluate returns the score of each query of each set without a part.
func evaluate(sets []set, left part) (scores [][]score, err error) {
	for _, s := range sets {
		h, err := s.host(left)
		if err != nil {
			return nil, err
		}
		of := make([]score, len(s.queries))
		for i, q := range s.queries {
			q.Kind, q.Half = "", "" // one row
			r := eval.Evaluate([]eval.Query{q}, h).Scores[0]
			of[i] = score{r.Success1, r.Success5, r.NDCG10}
		}
		scores = append(scores, of)
	}
	return scores, nil
}

// substrings returns the scores of the simplest search: tools are ordered by how many words of the query, of three
// letters or more, their names and their whole documentation contain, and then by name.
func (s *set) substrings() []score {
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
	scores := make([]score, len(s.queries))
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
		scores[i] = rate(slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
			return cmp.Or(cmp.Compare(contained[b], contained[a]), cmp.Compare(a, b))
		})[:10], q.Relevant)
	}
	return scores
}

// rate scores a ranking that is not that of a host. A test compares it with [eval.Evaluate].
func rate(ranked []string, relevant map[string]float64) (s score) {
	grades := slices.Sorted(maps.Values(relevant))
	slices.Reverse(grades)
	gain := func(rank int, grade float64) float64 { return (math.Exp2(grade) - 1) / math.Log2(float64(rank)+2) }
	ideal := 0.0
	for i, grade := range grades[:min(10, len(grades))] {
		ideal += gain(i, grade)
	}
	for i, name := range ranked {
		s[2] += gain(i, relevant[name]) / ideal
		for k, depth := range []int{1, 5} {
			if i < depth && relevant[name] >= min(2, grades[0]) {
				s[k] = 1
			}
		}
	}
	return s
}

// header is that of the table of parts.
const header = "| queries | search | success@1 | success@5 | NDCG@10 | difference of success@1 | of NDCG@10 |\n" +
	"|---|---|---|---|---|---|---|\n"

// row returns the row of a part, with the differences to the scores with everything, if these are others. A difference
// whose interval does not contain 0 is bold.
func (s *set) row(name string, scores, whole []score) string {
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
		text, low, high := interval("%+.3f", pairs)
		if low > 0 || high < 0 {
			text = "**" + text + "**"
		}
		line += " " + text + " |"
	}
	return line + "\n"
}

// kinds returns the table of the kinds of the queries.
func (s *set) kinds(scores []score) string {
	byKind := map[string][]score{}
	for i, q := range s.queries {
		byKind[q.Kind] = append(byKind[q.Kind], scores[i])
	}
	table := "| kind | queries | success@1 | success@5 | NDCG@10 |\n|---|---|---|---|---|\n"
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		table += fmt.Sprintf("| %s | %d |%s\n", kind, len(byKind[kind]), columns(byKind[kind]))
	}
	return table
}

func columns(scores []score) (text string) {
	for measure := range 3 {
		values := make([]float64, len(scores))
		for i := range scores {
			values[i] = scores[i][measure]
		}
		column, _, _ := interval("%.3f", values)
		text += " " + column + " |"
	}
	return text
}

// interval returns the mean of values with its 95 % interval: the quantiles of the means of samples with replacement.
// The samples are the same in every run.
func interval(format string, values []float64) (text string, low, high float64) {
	const samples = 4000
	random := rand.New(rand.NewPCG(1, 0))
	mean, means := 0.0, make([]float64, samples)
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for i := range means {
		for range values {
			means[i] += values[random.IntN(len(values))] / float64(len(values))
		}
	}
	slices.Sort(means)
	low, high = means[samples*25/1000], means[samples*975/1000-1]
	return fmt.Sprintf(format+" ("+format+" to "+format+")", mean, low, high), low, high
}
