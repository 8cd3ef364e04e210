package ranked

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"

	"github.com/parley-tools/parley/host/segment"
)

// BM25F ranks the tools of plugins by the textbook's formula over three fields (names, descriptions, parameters), with
// Porter2 stems: what search is compared with.
type BM25F struct {
	names []string             // qualified
	terms []map[string]float64 // of each document: by stem, how often it occurs, weighted by field and its length
	docs  map[string]float64   // by stem: number of documents that contain it
}

// boosts are the weights of the fields.
var boosts = [3]float64{3, 1.5, 1}

// NewBM25F indexes the tools of plugins.
func NewBM25F(plugins []Plugin) *BM25F {
	b := &BM25F{docs: map[string]float64{}}
	var fields [][3][]string
	var mean [3]float64
	for _, p := range plugins {
		for _, d := range p.Docs {
			if d.Kind == "" || d.Kind == "tool" {
				of := fieldsOf(p.About.Name, d)
				for f := range of {
					mean[f] += float64(len(of[f]))
				}
				b.names, fields = append(b.names, p.About.Name+"."+d.Name), append(fields, of)
			}
		}
	}
	for _, of := range fields {
		terms := map[string]float64{}
		for f, words := range of {
			for _, w := range words {
				terms[w] += boosts[f] / (0.25 + 0.75*float64(len(words)*len(fields))/mean[f])
			}
		}
		for w := range terms {
			b.docs[w]++
		}
		b.terms = append(b.terms, terms)
	}
	return b
}

// Rank returns the qualified names of the ten best tools for a query.
func (b *BM25F) Rank(query string) (names []string) {
	scores, order := make([]float64, len(b.names)), []int{}
	for i, terms := range b.terms {
		for _, w := range stems(query) {
			n, of := b.docs[w], float64(len(b.names))
			scores[i] += math.Log(1+(of-n+0.5)/(n+0.5)) * terms[w] / (1.2 + terms[w])
		}
		if scores[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(scores[y], scores[x]), cmp.Compare(b.names[x], b.names[y]))
	})
	for _, i := range order[:min(10, len(order))] {
		names = append(names, b.names[i])
	}
	return names
}

// fieldsOf returns the stems of the names, of the descriptions and phrases, and of the parameters of a tool.
func fieldsOf(plugin string, d segment.Doc) [3][]string {
	text := slices.Concat([]string{d.Brief, d.Text}, d.Aliases, d.Keywords, d.Tasks)
	var params []string
	for _, p := range d.Params {
		params = append(append(params, p.Name, p.Text), p.Enum...)
	}
	return [3][]string{stems(plugin + " " + d.Name), stems(strings.Join(text, " ")), stems(strings.Join(params, " "))}
}

// stems returns the stems of the words of a text, without those that carry no meaning. Names are split at humps.
func stems(text string) (list []string) {
	var spaced strings.Builder
	before := ' '
	for _, r := range text {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(r)
		before = r
	}
	for _, w := range strings.FieldsFunc(strings.ToLower(spaced.String()), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if !slices.Contains(empty, w) {
			env := snowballstem.NewEnv(w)
			english.Stem(env)
			list = append(list, env.Current())
		}
	}
	return list
}

// empty are words that carry no meaning.
var empty = strings.Fields("a about after all am an and any are as at be been before but by can could did do does " +
	"for from had has have how i if in into is it its me my no not of on or our s so t than that the their them then " +
	"there these they this those to up was we were what when where which while who why will with would you your")
