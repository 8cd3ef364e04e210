package suggest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/eval"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/lint"
	"github.com/parley-tools/parley/manifest/peers"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Gate decides which edits may be applied. Every edit, whoever proposes it, passes all of it or is refused with the
// reason.
type Gate struct {
	// Catalog has all plugins, with their present overlays.
	Catalog *host.Catalog
	// Run runs an example of a tool that reads, without rights; nil means that examples are validated, not run.
	Run func(ctx context.Context, tool string, params json.RawMessage) error
	// Progress gets how many of the edits were checked alone. It may be nil.
	Progress func(done, total float64, message string)

	// heldOut are tools and their authors' tasks; "" for a task that does not find its tool without edits. No edit is made
	// from these. Nil until the first edit that search reads.
	heldOut [][2]string
}

// Proposal is an edit that is to pass the gate.
type Proposal struct {
	Edit overlay.Edit
	// Sessions counts the sessions behind the evidence for the edit; 0 means that somebody wrote it, without traces.
	Sessions int
}

// Refusal is an edit that did not pass, and why.
type Refusal struct {
	Edit overlay.Edit `json:"edit"`
	Why  string       `json:"why"`
}

// found is the number of first hits among which a tool counts as found.
const found = 5

// Check returns the overlay of a plugin with the edits that pass, in their order, and the refusals of the others.
func (g *Gate) Check(ctx context.Context, p host.Provider, current *overlay.Overlay, proposals []Proposal) (
	*overlay.Overlay, []Refusal, error) {
	accepted, refused := current, []Refusal{}
	base := host.Base(p)
	m, err := wholeOf(base)
	if err != nil {
		return nil, nil, err
	}
	var passed []Proposal
	for i, q := range proposals {
		if g.Progress != nil {
			g.Progress(float64(i), float64(len(proposals)), m.Name+"."+q.Edit.Tool+" "+q.Edit.Field)
		}
		if why := g.checkAlone(ctx, m, accepted, &q); why != "" {
			refused = append(refused, Refusal{q.Edit, why})
			continue
		}
		passed = append(passed, q)
		accepted = accepted.Merge([]overlay.Edit{q.Edit})
	}
	accepted, lost := g.checkSearch(base, current, passed)
	return accepted, append(refused, lost...), nil
}

// checkAlone checks an edit on top of the edits that were accepted before it, in all but search.
func (g *Gate) checkAlone(ctx context.Context, m *manifest.Manifest, accepted *overlay.Overlay, q *Proposal) string {
	e := &q.Edit
	before := m.Tool(e.Tool)
	switch {
	case before == nil:
		return m.Name + " has no tool " + manifest.CleanLine(e.Tool)
	case !slices.Contains(overlay.Fields(), e.Field):
		return fmt.Sprintf("%q is not a field that can be edited; expected one of %s", manifest.CleanValue(e.Field),
			strings.Join(overlay.Fields(), ", "))
	case strings.HasPrefix(e.Origin, "rule ") && q.Sessions < stats.MinSessions:
		return fmt.Sprintf("the evidence is from %s; at least %d are required", manifest.Plural(q.Sessions, "session"),
			stats.MinSessions)
	}
	before = accepted.Apply(before)
	after := accepted.Merge([]overlay.Edit{*e}).Apply(before)
	why := cmp.Or(g.checkValue(e, before), g.checkAlias(m, q, before))
	if why == "" && slices.Contains(texts, e.Field) && e.Origin != overlay.FromSchema {
		why = cmp.Or(g.checkCopy(m.Name, e, before), checkPromise(e, before))
	}
	if why == "" {
		why = cmp.Or(g.checkLint(m, e, before, after), checkEmptied(m.Name, e, before), g.checkExample(ctx, m, e, after))
	}
	return why
}

// maxValue bounds the value of an edit, in bytes.
const maxValue = 2000

// checkValue checks what an edit refers to, and that its value suits the field.
func (g *Gate) checkValue(e *overlay.Edit, t *manifest.Tool) string {
	if e.Value != manifest.Clean(e.Value) || len(e.Value) > maxValue {
		return fmt.Sprintf("the value has invisible characters, or more than %d bytes", maxValue)
	}
	switch e.Field {
	case overlay.Param, overlay.ParamAlias, overlay.From, overlay.Rare:
		p := param(manifest.Params(t.Params), e.Param)
		if p == nil {
			return fmt.Sprintf("%s has no parameter %s", t.Name, manifest.CleanLine(e.Param))
		}
		if e.Field == overlay.Rare && p.Required {
			return e.Param + " is required"
		}
	}
	switch e.Field {
	case overlay.Alias, overlay.ParamAlias, overlay.Keyword:
		if !plainName().MatchString(e.Value) {
			return fmt.Sprintf("%q is not a word", manifest.CleanValue(manifest.Clip(e.Value, 60)))
		}
	case overlay.Need:
		if _, ok := stats.Find(g.Catalog, e.Value); !ok {
			return "there is no tool " + manifest.CleanLine(e.Value)
		}
	case overlay.From:
		tool, _, ok := manifest.SplitSource(e.Value)
		if _, known := stats.Find(g.Catalog, tool); !ok || !known {
			return fmt.Sprintf("%q is not the result of a tool", manifest.CleanValue(e.Value))
		}
	case overlay.Example:
		if e.Example == nil {
			return "there is no example"
		}
	case overlay.Rare:
	default:
		if strings.TrimSpace(e.Value) == "" && (e.Field == overlay.Brief || e.Origin != overlay.FromSchema) {
			return "the text is empty"
		}
	}
	return ""
}

// fewWords is the number of words below which a text says next to nothing.
const fewWords = 3

// fillers are words that say nothing.
var fillers = strings.Fields(`a all always an and any are argument as be can do does for here if in is it its na need
	needed needs never nil no none not nothing null of on or parameter same see some something tba tbd text that the thing
	things this to todo tool undefined unknown use used uses using value want wants what when which xx xxx you your`)

// checkEmptied refuses a text that says nothing but the tool's own name, and one that says next to nothing in place of
// one that says something.
func checkEmptied(plugin string, e *overlay.Edit, t *manifest.Tool) string {
	if !slices.Contains(texts, e.Field) && e.Field != overlay.WhenNot || e.Origin == overlay.FromSchema {
		return ""
	}
	words := spelling.Words(e.Value)
	isFiller := func(word string) bool { return len(word) == 1 && word[0] < 128 || slices.Contains(fillers, word) }
	names := spelling.Words(plugin + " " + t.Name + " " + e.Param)
	said := slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		return isFiller(word) || slices.Contains(names, strings.TrimSuffix(word, "s"))
	})
	if before := len(strings.Fields(e.Replaced(t))); len(words) < fewWords && before >= 2*fewWords {
		return fmt.Sprintf("it drops most of the text that it replaces: %d words are left of %d", len(words), before)
	}
	if e.Field == overlay.WhenNot && t.When != "" && slices.Equal(words, spelling.Words(t.When)) {
		return fmt.Sprintf("%q repeats when to use %s", manifest.CleanValue(e.Value), t.Name)
	}
	if len(said) == 0 {
		return fmt.Sprintf("%q says nothing about %s", manifest.CleanValue(e.Value), t.Name)
	}
	return ""
}

// checkAlias refuses an alias that means something else: the name or an alias of another tool or of a parameter, the
// name of an option of calls, or a name that the manifest knows for another tool. For the alias of a parameter, the
// parameters of the plugin's other tools count only without evidence, because callers use one name for all of them.
func (g *Gate) checkAlias(m *manifest.Manifest, q *Proposal, t *manifest.Tool) string {
	e, why := &q.Edit, ""
	isName := func(name string) bool { return spelling.Fold(name) == spelling.Fold(e.Value) }
	taken := func(what string, names ...string) {
		if why == "" && slices.ContainsFunc(names, isName) {
			why = fmt.Sprintf("%s is a name of %s", manifest.CleanLine(e.Value), manifest.CleanLine(what))
		}
	}
	switch e.Field {
	case overlay.ParamAlias:
		if name, _, _ := manifest.ParamNamed(t.Params, e.Value); name != "" && name != e.Param {
			taken("the parameter "+name, e.Value)
		} else if meant := option.Named(e.Value); meant != "" {
			taken("the option "+meant, e.Value)
		}
	case overlay.Alias:
		table := peers.Read(m.Peers)
		for _, r := range table.Named(spelling.Fold(e.Value)) {
			if r.Tool != t.Name {
				taken(cmp.Or(r.Tool, r.See, "another tool")+" in other products", e.Value)
			}
		}
	default:
		return ""
	}
	ofParam := ""
	for p, name := range stats.Names(g.Catalog) {
		full := p.Info().Name + "." + name
		known := []string{full}
		if p.Info().Name == m.Name {
			other, err := p.Tool(name)
			if err != nil || other == nil {
				continue
			}
			param, _, own := manifest.ParamNamed(other.Params, e.Value)
			if param != "" && (e.Field == overlay.Alias || own && param != e.Param && q.Sessions == 0) {
				ofParam = fmt.Sprintf("%s is a name of the parameter %s of %s", e.Value, param, full)
			}
			known = append(append(known, name, manifest.LocalName(name)), other.Aliases...)
		}
		if e.Field == overlay.Alias && !strings.EqualFold(full, m.Name+"."+t.Name) {
			taken(full, known...)
		}
	}
	return cmp.Or(why, ofParam)
}

// texts are the fields whose value is prose.
var texts = []string{overlay.Brief, overlay.Standard, overlay.Full, overlay.When, overlay.Param, overlay.Task,
	overlay.Phrase}

// copyWords is the length of the runs of words that are compared with the texts of other tools.
const copyWords = 4

// checkCopy refuses a text if half of it is also in the texts of another tool.
func (g *Gate) checkCopy(plugin string, e *overlay.Edit, t *manifest.Tool) string {
	all := runs(e.Value)
	fresh := maps.Clone(all)
	for run := range runs(docsOf(t)) {
		delete(fresh, run)
	}
	if len(fresh) == 0 {
		return ""
	}
	for p, name := range stats.Names(g.Catalog) {
		full := p.Info().Name + "." + name
		other, err := p.Tool(name)
		if err != nil || other == nil || strings.EqualFold(full, plugin+"."+t.Name) {
			continue
		}
		copied := 0
		for run := range runs(docsOf(other)) {
			if fresh[run] {
				copied++
			}
		}
		if 2*copied >= len(all) {
			return "half of the text is that of " + full
		}
	}
	return ""
}

// docsOf returns the texts of a tool.
func docsOf(t *manifest.Tool) string {
	return strings.Join(slices.Concat([]string{t.Docs.Brief, t.Docs.Standard, t.Docs.Full, t.When}, t.Tasks), " . ")
}

// runs returns the runs of words of a text; a short text is one.
func runs(text string) map[string]bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r != '.' && !isLetter(r) })
	set := map[string]bool{}
	for i := range max(1, len(words)-copyWords+1) {
		if run := strings.Join(words[i:min(len(words), i+copyWords)], " "); run != "" {
			set[run] = true
		}
	}
	return set
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127 }

// checkPromise refuses a text that says that the tool does more than it does.
func checkPromise(e *overlay.Edit, t *manifest.Tool) string {
	before := strings.Join(slices.Concat([]string{t.Name, docsOf(t), string(t.Params)}, t.Keywords, t.Aliases), " ")
	if verbs := lint.Promises(before, e.Value, t.Effect); len(verbs) > 0 {
		return fmt.Sprintf("the text says %q, and %s is of effect %s", strings.Join(verbs, ", "), t.Name, t.Effect)
	}
	return ""
}

// foreignRules are rules that a plugin whose texts are generated is exempt from.
var foreignRules = []string{"tier-length", "near-duplicate", "reference", "flow", "contradiction"}

// sparse are rules that a tool may break when something wrong is taken away from it: then it says less.
var sparse = []string{"tautology", "optional-default", "constraints", "described", "deprecation", "verb-name"}

// checkLint refuses an edit that makes the tool break a rule that it keeps without it, or contradict its schema. The
// latter holds for plugins without rules of style, too.
func (g *Gate) checkLint(m *manifest.Manifest, e *overlay.Edit, before, after *manifest.Tool) string {
	known := lint.Contradictions(m, before)
	for _, c := range lint.Contradictions(m, after) {
		if !slices.ContainsFunc(known, func(o lint.Contradiction) bool { return o.Said == c.Said && o.Has == c.Has }) {
			return manifest.CleanLine(c.String())
		}
	}
	builtin := m.Kind == manifest.KindBuiltin
	beside := lint.Neighbors{}
	for _, p := range g.Catalog.Providers() {
		n := lint.Plugin{Name: p.Info().Name}
		names, _ := p.Names()
		n.Tools = lists.Map(names, func(name string) *manifest.Tool { return &manifest.Tool{Name: name} })
		beside.Plugins = append(beside.Plugins, n)
	}
	findings := func(t *manifest.Tool) []lint.Finding {
		only := *m
		only.Tools = []manifest.Tool{*t}
		if !builtin {
			only.Tools = slices.Clone(m.Tools)
			for i := range only.Tools {
				if strings.EqualFold(only.Tools[i].Name, t.Name) {
					only.Tools[i] = *t
				}
			}
		}
		return slices.DeleteFunc(lint.Check(&only, beside), func(f lint.Finding) bool {
			return builtin && slices.Contains(foreignRules, f.Rule) ||
				e.Origin == overlay.FromSchema && slices.Contains(sparse, f.Rule)
		})
	}
	counts := map[string]int{}
	for _, f := range findings(before) {
		counts[f.Rule]++
	}
	for _, f := range findings(after) {
		if counts[f.Rule]--; counts[f.Rule] < 0 {
			return "it breaks the rule " + f.Rule + ": " + f.Message
		}
	}
	return ""
}

// checkExample validates the parameters of an example, and runs it where that changes nothing.
func (g *Gate) checkExample(ctx context.Context, m *manifest.Manifest, e *overlay.Edit, t *manifest.Tool) string {
	if e.Field != overlay.Example {
		return ""
	}
	params, err := schema.CompileUntrusted(t.Params)
	if err != nil {
		return "the schema of the tool cannot be used: " + err.Error()
	}
	value, err := jsontext.Decode(e.Example.Params, jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		return "the parameters of the example are not JSON: " + err.Error()
	}
	violations, err := params.Validate(value)
	if err != nil || len(violations) > 0 {
		return fmt.Sprintf("the parameters of the example are not valid: %v %v", violations, err)
	}
	if g.Run == nil || t.Effect != manifest.EffectRead || m.Kind == manifest.KindBuiltin {
		return ""
	}
	if err := g.Run(ctx, m.Name+"."+t.Name, e.Example.Params); err != nil {
		return "the example does not run: " + manifest.CleanLine(err.Error())
	}
	return ""
}

// unsearched are the fields that search does not read.
var unsearched = []string{overlay.Example, overlay.Rare, overlay.Need, overlay.From, overlay.Param,
	overlay.WhenNot, overlay.Deprecated}

// checkSearch accepts the edits that find their own tool, and with which every tool is still found by its own tasks.
func (g *Gate) checkSearch(base host.Provider, current *overlay.Overlay, passed []Proposal) (
	*overlay.Overlay, []Refusal) {
	if !slices.ContainsFunc(passed, func(q Proposal) bool { return !slices.Contains(unsearched, q.Edit.Field) }) {
		return merge(current, passed), nil
	}
	if g.heldOut == nil {
		for tool, task := range stats.Tasks(g.Catalog) {
			g.heldOut = append(g.heldOut, [2]string{tool, task})
		}
	}
	passed, refused := g.findThemselves(base, current, passed)
	kept, more := g.keepQueries(base, current, passed)
	return merge(current, kept), append(refused, more...)
}

func merge(o *overlay.Overlay, proposals []Proposal) *overlay.Overlay {
	return o.Merge(lists.Map(proposals, func(q Proposal) overlay.Edit { return q.Edit }))
}

// findThemselves refuses tasks, phrases and aliases that do not find the tool that they are for.
func (g *Gate) findThemselves(base host.Provider, current *overlay.Overlay, passed []Proposal) (kept []Proposal,
	refused []Refusal) {
	edited := Edited(g.Catalog, base, merge(current, passed))
	for _, q := range passed {
		isQuery := slices.Contains([]string{overlay.Task, overlay.Phrase, overlay.Alias}, q.Edit.Field)
		if isQuery && !finds(edited, q.Edit.Value, base.Info().Name+"."+q.Edit.Tool) {
			refused = append(refused, Refusal{q.Edit,
				fmt.Sprintf("searching for %q does not find %s among the first %d", q.Edit.Value, q.Edit.Tool, found)})
		} else {
			kept = append(kept, q)
		}
	}
	return kept, refused
}

// keepQueries refuses edits with which a held-out query no longer finds its tool. It tries halves of the edits, each
// on top of the edits that were kept before it.
func (g *Gate) keepQueries(base host.Provider, current *overlay.Overlay, passed []Proposal) (kept []Proposal,
	refused []Refusal) {
	lost := g.lost(base, merge(current, passed))
	switch {
	case lost == "" || len(passed) == 0:
		return passed, nil
	case len(passed) == 1:
		return nil, []Refusal{{passed[0].Edit, lost}}
	}
	half := len(passed) / 2
	kept, refused = g.keepQueries(base, current, passed[:half])
	rest, more := g.keepQueries(base, merge(current, kept), passed[half:])
	return append(slices.Clip(kept), rest...), append(refused, more...)
}

// lost returns which of the held-out queries no longer finds its tool with an overlay, "" if all do. Searches take
// most of the time, so it searches without the edits only for what is not found with them.
func (g *Gate) lost(base host.Provider, o *overlay.Overlay) string {
	edited := Edited(g.Catalog, base, o)
	for i, q := range g.heldOut {
		if q[1] == "" || finds(edited, q[1], q[0]) {
			continue
		}
		if finds(g.Catalog, q[1], q[0]) {
			return fmt.Sprintf("%s is no longer found by its task %q", q[0], q[1])
		}
		g.heldOut[i][1] = ""
	}
	return ""
}

// Edited returns a catalog with an overlay of a plugin in place of the present one.
func Edited(catalog *host.Catalog, plugin host.Provider, o *overlay.Overlay) *host.Catalog {
	providers := catalog.Providers()
	for i, p := range providers {
		if base := host.Base(p); base == host.Base(plugin) {
			providers[i] = overlay.Wrap(base, func() (*overlay.Overlay, error) { return o, nil }, nil)
		}
	}
	edited, _ := host.NewCatalog(providers...) // its names are those of a catalog
	return edited
}

// finds reports whether a tool is among the first hits of a query.
func finds(catalog *host.Catalog, query, tool string) bool {
	hits := eval.Hits(catalog, search.Order{}, search.Query{Text: query, Limit: found})
	return slices.ContainsFunc(hits, func(name string) bool { return strings.EqualFold(name, tool) })
}
