package vocabulary

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/lazy"
)

// Pattern is a regular expression that is tried only on texts with the literals that its matches contain. Most texts
// lack some of them, and looking for them is much cheaper. It is compiled on first use.
type Pattern struct {
	expr     func() *regexp.Regexp
	literals [][]string // in lower case; a match contains one of each list
}

// NewPattern returns the pattern of an expression, which has to be valid.
func NewPattern(expr string) *Pattern {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return &Pattern{lazy.Pattern(expr), literalsOf(parsed)}
}

// maxClass is the number of characters of a class that are looked for one by one.
const maxClass = 10

// literalsOf returns lists of texts in lower case. Every match of an expression contains one of each list.
func literalsOf(e *syntax.Regexp) (all [][]string) {
	var list []string
	switch {
	case e.Op == syntax.OpLiteral:
		list = []string{fold(string(e.Rune))}
	case e.Op == syntax.OpCharClass:
		for i := 0; i < len(e.Rune); i += 2 {
			for r := e.Rune[i]; r <= e.Rune[i+1]; r++ {
				if list = append(list, fold(string(r))); len(list) > maxClass {
					return nil
				}
			}
		}
	case e.Op == syntax.OpCapture, e.Op == syntax.OpPlus, e.Op == syntax.OpRepeat && e.Min > 0:
		return literalsOf(e.Sub[0])
	case e.Op == syntax.OpConcat:
		joined := "" // "Param" is the literals "p" of any case and "aram"
		for _, sub := range e.Sub {
			lists := literalsOf(sub)
			if sub.Op != syntax.OpLiteral {
				joined = ""
			} else if joined += lists[0][0]; joined != lists[0][0] {
				all[len(all)-1][0], lists = joined, nil
			}
			all = append(all, lists...)
		}
		return all
	case e.Op == syntax.OpAlternate:
		for _, sub := range e.Sub {
			lists := literalsOf(sub)
			if lists == nil {
				return nil
			}
			list = append(list, slices.MaxFunc(lists, func(a, b []string) int { return rarity(a) - rarity(b) })...)
		}
	}
	if list == nil {
		return nil
	}
	return [][]string{list}
}

// rarity estimates how rare the most frequent of some literals is: long ones and signs are.
func rarity(list []string) (least int) {
	for i, literal := range list {
		n := len(literal) + 3*len(strings.Trim(literal, " abcdefghijklmnopqrstuvwxyz"))
		if least = min(least, n); i == 0 {
			least = n
		}
	}
	return least
}

// fold returns a text in lower case. The long s is the one letter that matches an ASCII letter and has no lower case.
func fold(s string) string { return strings.ToLower(strings.ReplaceAll(s, "ſ", "s")) }

// on returns the expression for a text, which may be given folded, or one that matches nothing.
func (p *Pattern) on(folded string) *regexp.Regexp {
	for _, list := range p.literals {
		if !slices.ContainsFunc(list, func(l string) bool { return strings.Contains(folded, l) }) {
			return nothing()
		}
	}
	return p.expr()
}

var nothing = lazy.Pattern(`[^\x00-\x{10FFFF}]`)

func (p *Pattern) MatchString(s string) bool            { return p.on(fold(s)).MatchString(s) }
func (p *Pattern) FindString(s string) string           { return p.on(fold(s)).FindString(s) }
func (p *Pattern) FindStringIndex(s string) []int       { return p.on(fold(s)).FindStringIndex(s) }
func (p *Pattern) FindStringSubmatch(s string) []string { return p.on(fold(s)).FindStringSubmatch(s) }
func (p *Pattern) Split(s string) []string              { return p.on(fold(s)).Split(s, -1) }
func (p *Pattern) FindAllString(s string) []string      { return p.on(fold(s)).FindAllString(s, -1) }
func (p *Pattern) FindAllStringIndex(s string) [][]int {
	return p.on(fold(s)).FindAllStringIndex(s, -1)
}

func (p *Pattern) FindAllStringSubmatch(s string) [][]string {
	return p.on(fold(s)).FindAllStringSubmatch(s, -1)
}

// Patterns are alternatives.
type Patterns []*Pattern

// FindString returns the first match of the first pattern that matches a text, or "".
func (list Patterns) FindString(s string) (found string) {
	folded := fold(s)
	for i := 0; i < len(list) && found == ""; i++ {
		found = list[i].on(folded).FindString(s)
	}
	return found
}
