// Package vocabulary recognizes bounds, defaults, units and names in texts, by the expressions and units of
// prose.txt.
package vocabulary

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/parley-tools/parley/internal/lazy"
)

// Unit is a unit, with its dimension and its size; see prose.txt.
type Unit struct {
	Dimension string
	Size      float64
	Name      string
}

//go:embed prose.txt
var proseText string

// Verbs are words that names of tools begin with. Many of them are nouns, too.
//
//go:embed verbs.txt
var Verbs string

var (
	//go:embed orders.txt
	orders string
	//go:embed praise.txt
	praise string
)

// Orders match sentences that give orders to a reader, or pretend to come from somebody other than the author. An agent
// reads a tool's text next to its user's request, so an order in the text competes with that request. Praise matches
// superlatives.
var Orders, Praise = listOf(orders), listOf(praise)

// listOf reads a list of expressions, one a line, when it is first used. Lines with # are headings.
func listOf(lines string) func() Patterns {
	return sync.OnceValue(func() (list Patterns) {
		for line := range strings.Lines(lines) {
			if expr := strings.TrimSpace(line); expr != "" && expr[0] != '#' {
				list = append(list, NewPattern(`(?i)`+expr))
			}
		}
		return list
	})
}

// all are the expressions and sets of words of prose.txt by name, and its units by their words.
var all = sync.OnceValue(func() (all struct {
	patterns map[string]func() *Pattern
	words    map[string]func() map[string]bool
	units    map[string]Unit
}) {
	all.patterns, all.units = map[string]func() *Pattern{}, map[string]Unit{}
	all.words = map[string]func() map[string]bool{}
	known := []string{"\n\t", ""}
	for _, line := range strings.Split(strings.ReplaceAll(proseText, "\n\t", ""), "\n") {
		switch name, rest, ok := strings.Cut(line, " "); {
		case !ok || name == "#":
		case name == "words":
			name, list, _ := strings.Cut(rest, " ")
			all.words[name] = lazy.Words(list)
		case name == "unit":
			words := strings.Fields(rest)
			size, _ := strconv.ParseFloat(words[1], 64)
			for _, word := range words[2:] {
				all.units[word] = Unit{words[0], size, words[2]}
			}
		default:
			expr := strings.NewReplacer(known...).Replace(rest)
			known = append(known, "{"+name+"}", expr)
			all.patterns[name] = sync.OnceValue(func() *Pattern { return NewPattern(expr) })
		}
	}
	return all
})

// Said returns an expression of prose.txt.
func Said(name string) *Pattern { return all().patterns[name]() }

// Words returns a set of words of prose.txt.
func Words(name string) map[string]bool { return all().words[name]() }

// Units returns the units by their words.
func Units() map[string]Unit { return all().units }

// numberWords are the words for the numbers up to twenty, and then for the tens.
var numberWords = strings.Fields(`zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
	fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred`)

var scales = strings.NewReplacer(",", "", "_", "", "k", " 1000", "thousand", "1000", "million", "1000000", "a ", "")

// valueOf returns the value of a number, in digits or in words.
func valueOf(literal string) (value float64, err error) {
	value = 1
	for _, word := range strings.Fields(scales.Replace(strings.ToLower(literal))) {
		of := float64(slices.Index(numberWords, word))
		if of < 0 {
			of, err = strconv.ParseFloat(word, 64)
		} else if of > 20 {
			of = 10 * (of - 18)
		}
		value *= of
	}
	return value, err
}

// Numeral is a number in a text, with the word after it.
type Numeral struct {
	From, To int
	Value    float64
	After    string
}

// Numerals returns the numbers in a text, in digits or in words.
func Numerals(text string) (all []Numeral) {
	for _, at := range Said("number").FindAllStringIndex(text) {
		literal := strings.TrimRight(text[at[0]:at[1]], ",_")
		n := Numeral{From: at[0], To: at[0] + len(literal)}
		var err error
		if n.Value, err = valueOf(literal); err != nil {
			continue
		}
		if n.From > 0 && text[n.From] == '-' && !strings.ContainsRune(" ([", rune(text[n.From-1])) {
			n.From, n.Value = n.From+1, -n.Value // the end of a range
		}
		if m := Said("after-number").FindStringSubmatch(text[n.To:]); m != nil {
			n.After = strings.ToLower(m[1])
		}
		all = append(all, n)
	}
	return all
}
