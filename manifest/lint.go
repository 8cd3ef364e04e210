package manifest

import (
	"fmt"
	"strings"
)

// tierBudgets are the tokens that each rendered tier should stay within. Exceeding one is a hint to authors, not an
// error.
var tierBudgets = [4]int{0, 50, 120, 300}

// Lint returns what an author could improve: tiers over their budget, tools without an example or without the phrases
// that an agent would search for, parameters without a description.
func Lint(m *Manifest) []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, CleanLine(fmt.Sprintf(format, args...))) }
	for i := range m.Tools {
		t := &m.Tools[i]
		for tier := Tier1; tier <= Tier3; tier++ {
			if n := Describe(m, t, tier).Tokens(); n > tierBudgets[tier] {
				add("%s: tier %d is %d tokens; aim for at most %d", t.Name, tier, n, tierBudgets[tier])
			}
		}
		if len(t.Examples) == 0 {
			add("%s: no example", t.Name)
		}
		if len(t.Tasks) == 0 {
			add("%s: no tasks: add the phrases that an agent would search for", t.Name)
		}
		for _, p := range Params(t.Params) {
			if p.Description == "" {
				add("%s: parameter %s has no description", t.Name, p.Name)
			}
		}
		if strings.EqualFold(t.Docs.Brief, t.Name) {
			add("%s: the brief only repeats the name", t.Name)
		}
	}
	return found
}
