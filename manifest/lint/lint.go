// Package lint checks manifests against the rules of manifest/RULES.md, and says how the manifest of a new version
// breaks callers of the old one. A manifest that [manifest.Parse] accepts is valid; these rules say whether agents can
// find, understand and trust what it describes.
package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

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

// Rule is one rule. Its name identifies it in reports and for --accept.
type Rule struct {
	Name     string
	Severity Severity
	Summary  string // one sentence: what the rule requires

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

// Neighbors is what a plugin is compared with. The zero value skips the rules that need it.
type Neighbors struct {
	// Plugins are the other plugins. One with the name of the checked plugin is ignored.
	Plugins []Plugin
	// Search returns the best hits for a phrase, best first: among all plugins including the checked one, or, if with is
	// false, among the others only. It may be nil.
	Search func(phrase string, with bool) []Hit
}

// Plugin is another plugin, as far as rules compare with it.
type Plugin struct {
	Name    string
	Shipped bool // every host has it
	Tools   []Tool
}

// Tool is a tool of another plugin.
type Tool struct {
	Name           string // local
	Aliases, Tasks []string
	Returns        json.RawMessage // its schema; nil if it declares none
}

// Hit is a tool that a search found.
type Hit struct {
	Name string // qualified
	Sure bool   // the search is confident that the tool fits
}

// Rules returns all rules in the order of manifest/RULES.md.
func Rules() []Rule { return slices.Clone(rules) }

// maxFindings bounds the findings of one rule, because a manifest can have thousands of tools.
const maxFindings = 20

// Check returns what is wrong with a manifest, errors first, then in the order of the rules. At most 20 findings of a
// rule are listed; one more says how many were left out.
func Check(m *manifest.Manifest, beside Neighbors) []Finding {
	l := &linter{m: m, texts: collectTexts(m), search: beside.Search}
	l.others = lists.Filter(beside.Plugins, func(p Plugin) bool { return !sameName(p.Name, m.Name) })
	for i := range rules {
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

// eachTool calls check for each tool with its pointer.
func (l *linter) eachTool(check func(at string, t *manifest.Tool)) {
	for i := range l.m.Tools {
		check(fmt.Sprintf("/tools/%d", i), &l.m.Tools[i])
	}
}

// eachTool makes a rule of a check of one tool.
func eachTool(check func(l *linter, at string, t *manifest.Tool)) func(*linter) {
	return func(l *linter) { l.eachTool(func(at string, t *manifest.Tool) { check(l, at, t) }) }
}

// eachParam makes a rule of a check of one parameter, at any depth.
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
func (p *Plugin) tool(name string) *Tool {
	return lists.Find(p.Tools, func(t *Tool) bool { return sameName(t.Name, name) })
}

// rules are all rules. manifest/RULES.md documents them in this order.
var rules = []Rule{
	{"verb-name", Warning, "A tool's name begins with a verb, or is the noun of what it returns.", checkVerbName},
	{"near-duplicate", Warning, "Two tools differ by more than spelling, word order or a synonym.", checkNearDuplicate},
	{"one-task", Warning, "A tool does one thing: no verbs joined by \"and\", no parameter that selects an action.",
		eachTool(checkOneTask)},
	{"tier-length", Warning, "Each tier of documentation stays within its budget of tokens.", eachTool(checkTierLength)},
	{"tautology", Warning, "A description says more than the name.", eachTool(checkTautology)},
	{"plain-brief", Warning, "A brief says what the tool does, as a command, without a preface.", checkPlainBrief},
	{"example", Warning, "A tool has an example that can run.", eachTool(checkExample)},
	{"tasks", Warning, "A tool has task phrases, and search finds it by each of them.", checkTasks},
	{"typed", Warning, "Each field has a type, each object its properties, each array its items.", eachTool(checkTyped)},
	{"described", Warning, "Each parameter and each field of a result has a description.", checkDescribed},
	{"constraints", Warning, "Limits are given as keywords and in words: bounds, formats and patterns.",
		eachParam(checkConstraints)},
	{"enum-in-prose", Warning, "A limited set of values is an enum, not prose.", eachParam(checkEnumInProse)},
	{"additional-properties", Warning, "An object of parameters says whether it takes further properties.",
		eachTool(checkAdditionalProperties)},
	{"nesting", Warning, "Parameters nest at most three levels deep.", eachTool(checkNesting)},
	{"values-validate", Warning, "Defaults and examples within a schema are valid by it.", eachTool(checkValuesValidate)},
	{"required", Warning, "Some parameters are required: neither all of many, nor none without defaults.",
		eachTool(checkRequired)},
	{"optional-default", Warning, "An optional choice says what happens without it.", eachParam(checkOptionalDefault)},
	{"effect-verb", Warning, "The declared effect fits the verb of the name.", eachTool(checkEffectVerb)},
	{"effect-rights", Warning, "The declared effects fit the rights that are asked for, and each right has a reason.",
		checkEffectRights},
	{"deprecation", Warning, "A deprecated tool names a replacement that exists, with versions in order.",
		eachTool(checkDeprecation)},
	{"reference", Warning, "Each tool and parameter that a text refers to exists.", checkReferences},
	{"flow", Warning, "What comes before a tool, or returns a value for it, exists wherever the plugin runs.",
		eachTool(checkFlow)},
	{"category-returns", Warning, "A tool returns what tools of its category return.", eachTool(checkCategory)},
	{"instructs-reader", Error, "Texts describe the plugin. They do not instruct their reader.",
		checkInstructsReader},
	{"names-other-tools", Error, "Texts do not say to call, prefer or avoid tools of other plugins or of the agent.",
		checkNamesOtherTools},
	{"superlatives", Error, "Texts do not praise the plugin over others, and claim no endorsement.", checkSuperlatives},
	{"hidden-characters", Error, "Texts have no invisible characters, bidi controls or terminal sequences.",
		checkHiddenCharacters},
	{"look-alike-name", Error, "No name can be mistaken for that of another plugin or tool, or of the host.",
		checkLookAlikeName},
	{"takes-first-place", Error, "No task, alias or keyword takes the first place in search from another plugin's tool.",
		checkTakesFirstPlace},
}
