// Package lint checks manifests against the rules of manifest/RULES.md, and says how the manifest of a new version
// breaks callers of the old one. A manifest that [manifest.Parse] accepts is valid; these rules say whether agents can
// find, understand and trust what it describes.
package lint

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// Severity says what a finding means for a plugin that is neither shipped nor signed with a trusted key.
type Severity string

// The severities, in the order of findings. An error refuses the plugin unless the operator accepts its rule; a warning
// advises the author.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Rule is one rule. Its name identifies it in reports and for --accept; manifest/RULES.md says what it requires.
type Rule struct {
	Name     string
	Severity Severity

	check func(*linter)
}

// Finding is a part of a manifest that breaks a rule.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Pointer  string   `json:"pointer"` // JSON pointer into the manifest
	Message  string   `json:"message"`
}

func (f Finding) String() string {
	return fmt.Sprintf("%s %s: %s: %s", f.Severity, f.Rule, f.Pointer, f.Message)
}

// Neighbors are the other plugins and tools that a plugin is compared with. The zero value skips the rules that need
// them.
type Neighbors struct {
	Owner string // the owner of the checked plugin
	// Plugins are the other plugins. One with the name of the checked plugin is ignored.
	Plugins []Plugin
	// Search returns the tools that a search for a phrase finds, the best first: among all plugins including the checked
	// one, or, if with is false, among the others only. It may be nil.
	Search func(phrase string, with bool) []Hit
}

// Hit is a tool that a search finds.
type Hit struct {
	Name string // qualified
	Sure bool   // with high confidence
}

// Plugin is what rules need to know about another plugin.
type Plugin struct {
	Name    string
	Owner   string
	Shipped bool // every host has it
	Owned   bool // it is shipped or signed
	Tools   []*manifest.Tool
}

// Rules returns all rules in the order of manifest/RULES.md.
func Rules() []Rule { return slices.Clone(rules) }

// maxFindings bounds the findings of one rule, because a manifest can have thousands of tools.
const maxFindings = 20

// Check returns what is wrong with a manifest, errors first, then in the order of the rules. At most 20 findings of a
// rule are listed; one more says how many were left out.
func Check(m *manifest.Manifest, beside Neighbors) []Finding {
	l := &linter{m: m, owner: beside.Owner, texts: collectTexts(m), search: beside.Search}
	l.others = lists.Filter(beside.Plugins, func(p Plugin) bool { return !sameName(p.Name, m.Name) })
	for i := range rules {
		if m.Derived() && rules[i].Severity == Warning {
			continue // the person who installs it cannot fix the style of somebody else's document
		}
		l.rule, l.count = &rules[i], 0
		rules[i].check(l)
		if more := l.count - maxFindings; more > 0 {
			l.found = append(l.found, Finding{l.rule.Name, l.rule.Severity, "", fmt.Sprintf("and %d more", more)})
		}
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return l.found
}

// linter checks one manifest.
type linter struct {
	m      *manifest.Manifest
	owner  string
	texts  []text
	others []Plugin
	search func(phrase string, with bool) []Hit

	rule  *Rule
	count int
	found []Finding
}

// add records a finding of the current rule.
func (l *linter) add(pointer, format string, args ...any) {
	if l.count++; l.count <= maxFindings {
		l.found = append(l.found, Finding{l.rule.Name, l.rule.Severity, manifest.CleanLine(pointer),
			manifest.Clip(manifest.CleanLine(fmt.Sprintf(format, args...)), 400)})
	}
}

// remembered returns a function that remembers its results. It is for texts of neighbors, which are the same for each
// plugin that one process checks.
func remembered[T any](f func(text string) T) func(text string) T {
	const most = 1 << 14 // results
	var mu sync.Mutex
	known := map[string]T{}
	return func(text string) T {
		mu.Lock()
		defer mu.Unlock()
		result, isKnown := known[text]
		if !isKnown {
			if len(known) == most {
				clear(known)
			}
			result = f(text)
			known[text] = result
		}
		return result
	}
}

// eachTool calls check for each tool with its pointer.
func (l *linter) eachTool(check func(at string, t *manifest.Tool)) {
	for i := range l.m.Tools {
		check(fmt.Sprintf("/tools/%d", i), &l.m.Tools[i])
	}
}

// eachTool returns a rule that checks each tool.
func eachTool(check func(l *linter, at string, t *manifest.Tool)) func(*linter) {
	return func(l *linter) { l.eachTool(func(at string, t *manifest.Tool) { check(l, at, t) }) }
}

// eachParam returns a rule that checks each parameter, at any depth.
func eachParam(check func(l *linter, at string, f field)) func(*linter) {
	return func(l *linter) {
		l.eachTool(func(at string, t *manifest.Tool) {
			for _, f := range paramsOf(t) {
				check(l, at+f.pointer, f)
			}
		})
	}
}

// plugin returns the neighbor with a name, nil if there is none.
func (l *linter) plugin(name string) *Plugin {
	return lists.Find(l.others, func(p *Plugin) bool { return sameName(p.Name, name) })
}

// tool returns the tool with a local name, nil if there is none.
func (p *Plugin) tool(name string) *manifest.Tool {
	at := slices.IndexFunc(p.Tools, func(t *manifest.Tool) bool { return sameName(t.Name, name) })
	if at < 0 {
		return nil
	}
	return p.Tools[at]
}

// rules are all rules. manifest/RULES.md documents them in this order.
var rules = []Rule{
	{"verb-name", Warning, checkVerbName},
	{"near-duplicate", Warning, checkNearDuplicate},
	{"one-task", Warning, eachTool(checkOneTask)},
	{"tier-length", Warning, eachTool(checkTierLength)},
	{"tautology", Warning, eachTool(checkTautology)},
	{"plain-brief", Warning, checkPlainBrief},
	{"example", Warning, eachTool(checkExample)},
	{"tasks", Warning, checkTasks},
	{"typed", Warning, eachTool(checkTyped)},
	{"described", Warning, checkDescribed},
	{"constraints", Warning, eachTool(checkConstraints)},
	{"enum-in-prose", Warning, eachParam(checkEnumInProse)},
	{"additional-properties", Warning, eachTool(checkAdditionalProperties)},
	{"nesting", Warning, eachTool(checkNesting)},
	{"values-validate", Warning, eachTool(checkValuesValidate)},
	{"required", Warning, eachTool(checkRequired)},
	{"optional-default", Warning, eachParam(checkOptionalDefault)},
	{"contradiction", Warning, eachTool(checkContradiction)},
	{"effect-verb", Warning, eachTool(checkEffectVerb)},
	{"effect-rights", Warning, checkEffectRights},
	{"deprecation", Warning, eachTool(checkDeprecation)},
	{"reference", Warning, checkReferences},
	{"flow", Warning, eachTool(checkFlow)},
	{"category-returns", Warning, eachTool(checkCategory)},
	{"instructs-reader", Error, checkInstructsReader},
	{"names-other-tools", Error, checkNamesOtherTools},
	{"superlatives", Error, checkSuperlatives},
	{"hidden-characters", Error, checkHiddenCharacters},
	{"look-alike-name", Error, checkLookAlikeName},
	{"takes-first-place", Error, checkTakesFirstPlace},
}
