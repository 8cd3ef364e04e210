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
	contains condition
}

// condition is what a text contains: a literal in lower case, all of some conditions, or one of some. The zero value
// is true for all texts.
type condition struct {
	literal string
	all, or []condition
}

// NewPattern returns the pattern of an expression, which has to be valid.
func NewPattern(expr string) *Pattern {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return &Pattern{lazy.Pattern(expr), conditionOf(parsed)}
}

// maxClass is the number of characters of a class that are looked for one by one.
const maxClass = 10

// conditionOf returns what every match of an expression contains.
func conditionOf(e *syntax.Regexp) (c condition) {
	switch {
	case e.Op == syntax.OpLiteral:
		c.literal = fold(string(e.Rune))
	case e.Op == syntax.OpCharClass:
		for i := 0; i < len(e.Rune); i += 2 {
			for r := e.Rune[i]; r <= e.Rune[i+1]; r++ {
				if c.or = append(c.or, condition{literal: fold(string(r))}); len(c.or) > maxClass {
					return condition{}
				}
			}
		}
	case e.Op == syntax.OpCapture, e.Op == syntax.OpPlus, e.Op == syntax.OpRepeat && e.Min > 0:
		return conditionOf(e.Sub[0])
	case e.Op == syntax.OpConcat:
		for i, sub := range e.Sub {
			next := conditionOf(sub)
			if i > 0 && sub.Op == syntax.OpLiteral && e.Sub[i-1].Op == syntax.OpLiteral {
				c.all[i-1], next.literal = condition{}, c.all[i-1].literal+next.literal // "P" of any case and "aram"
			}
			c.all = append(c.all, next)
		}
		// Most texts contain any character.
		c.all = slices.DeleteFunc(c.all, func(c condition) bool { return len(c.literal) < 2 && c.all == nil && c.or == nil })
	case e.Op == syntax.OpAlternate:
		for _, sub := range e.Sub {
			c.or = append(c.or, conditionOf(sub))
		}
	}
	return c
}

// holds reports whether a text, which is given folded, meets the condition.
func (c *condition) holds(text string) bool {
	if !strings.Contains(text, c.literal) {
		return false
	}
	for i := range c.all {
		if !c.all[i].holds(text) {
			return false
		}
	}
	for i := range c.or {
		if c.or[i].holds(text) {
			return true
		}
	}
	return c.or == nil
}

// fold returns a text in lower case. The long s is the one letter that matches an ASCII letter and has no lower case.
func fold(s string) string { return strings.ToLower(strings.ReplaceAll(s, "ſ", "s")) }

// on returns the expression for a text, which may be given folded, or one that matches nothing.
func (p *Pattern) on(folded string) *regexp.Regexp {
	if p.contains.holds(folded) {
		return p.expr()
	}
	return nothing()
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
