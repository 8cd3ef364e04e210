// Package vocabulary knows how texts say bounds, defaults, units and names: the expressions and units of prose.txt.
package vocabulary

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/parley-tools/parley/internal/lazy"
)

// Unit is a unit of what it measures, with its size; see prose.txt.
type Unit struct {
	Dimension string
	Size      float64
	Name      string
}

//go:embed prose.txt
var proseText string

// all has the expressions of prose.txt by their names, and its units by their words.
var all = sync.OnceValues(func() (map[string]func() *regexp.Regexp, map[string]Unit) {
	patterns, units := map[string]func() *regexp.Regexp{}, map[string]Unit{}
	known := []string{"\n\t", ""}
	for _, line := range strings.Split(strings.ReplaceAll(proseText, "\n\t", ""), "\n") {
		switch name, rest, ok := strings.Cut(line, " "); {
		case !ok || name == "#":
		case name == "unit":
			words := strings.Fields(rest)
			size, _ := strconv.ParseFloat(words[1], 64)
			for _, word := range words[2:] {
				units[word] = Unit{words[0], size, words[2]}
			}
		default:
			expr := strings.NewReplacer(known...).Replace(rest)
			known, patterns[name] = append(known, "{"+name+"}", expr), lazy.Pattern(expr)
		}
	}
	return patterns, units
})

// Said returns an expression of prose.txt.
func Said(name string) *regexp.Regexp {
	patterns, _ := all()
	return patterns[name]()
}

// Units are the units by their words.
func Units() map[string]Unit {
	_, units := all()
	return units
}

var numberWords = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve")

// Numeral is a number in a text, with the word after it.
type Numeral struct {
	From, To int
	Value    float64
	After    string
}

// Numerals returns the numbers in a text, in digits or in words up to twelve.
func Numerals(text string) (all []Numeral) {
	for _, at := range Said("number").FindAllStringIndex(text, -1) {
		literal := strings.TrimRight(text[at[0]:at[1]], ",_")
		n := Numeral{From: at[0], To: at[0] + len(literal)}
		if n.Value = float64(slices.Index(numberWords, strings.ToLower(literal))); n.Value < 0 {
			var err error
			if n.Value, err = strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(literal), 64); err != nil {
				continue
			}
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
