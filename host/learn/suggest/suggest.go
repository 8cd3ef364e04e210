// Package suggest proposes better documentation from statistics of use, by rules that need no model, and decides by a
// gate which edits, from whatever source, do no harm.
package suggest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Suggestion is an edit with the reason for it.
type Suggestion struct {
	ID       string       `json:"id"`
	Plugin   string       `json:"plugin"`
	Edit     overlay.Edit `json:"edit"`
	Rule     string       `json:"rule"`
	Why      string       `json:"why"`
	Cases    int          `json:"cases"`    // calls or searches that are the evidence
	Sessions int          `json:"sessions"` // in which they were
	Calls    []string     `json:"calls"`    // ids of some of them
}

// Thresholds of evidence.
const (
	// minShare is the least share of a tool's calls, by the lower end of its interval, that a mistake has to cost.
	minShare = 0.05
	// minUses and minUsers are the successful calls, and their sessions, after which a parameter counts as never used.
	minUses  = 30
	minUsers = 3
	// minOrigin is the least share of a parameter's values, by the lower end of its interval, that comes from a result.
	minOrigin = 0.4
	// minSentAway is the least share of a tool's sessions, by the lower end of its interval, whose callers read its text
	// and then called another tool.
	minSentAway = 0.25
)

// Suggest returns edits for the tools in a report: first those that remove what a schema contradicts, for which no
// call is needed, then the others, those with most evidence first. These build on the texts without contradictions. It
// depends only on the report and the catalog.
func Suggest(r *stats.Report, catalog *host.Catalog) []Suggestion {
	s := &suggester{catalog: catalog, report: r, found: []Suggestion{}, corrected: map[string]*overlay.Overlay{}}
	for _, p := range catalog.Providers() {
		s.contradictions(p)
	}
	first := len(s.found)
	for i := range r.Tools {
		s.tool(&r.Tools[i])
	}
	each(r.Renames, s.rename)
	each(r.Confusions, s.confusion)
	each(r.Needs, s.need)
	each(r.Origins, s.origin)
	each(r.Search.Misses, s.miss)
	slices.SortStableFunc(s.found[first:], func(a, b Suggestion) int {
		return cmp.Or(b.Cases-a.Cases, cmp.Compare(a.Plugin+a.Edit.Tool, b.Plugin+b.Edit.Tool), cmp.Compare(a.ID, b.ID))
	})
	return s.found
}

func each[T any](list []T, do func(T)) {
	for _, element := range list {
		do(element)
	}
}

type suggester struct {
	catalog *host.Catalog
	report  *stats.Report
	found   []Suggestion

	corrected map[string]*overlay.Overlay // what contradictions propose, by plugin
}

// wholeOf returns the manifest of a plugin with all its tools, also of one that is built in.
func wholeOf(p host.Provider) (*manifest.Manifest, error) {
	m, err := host.WholeManifest(p)
	if err != nil || len(m.Tools) > 0 {
		return m, err
	}
	all := *m
	names, err := p.Names()
	for _, name := range names {
		t, err := p.Tool(name)
		if err != nil {
			return nil, err
		}
		all.Tools = append(all.Tools, *t)
	}
	return &all, err
}

// evidence is what a rule relies on.
type evidence struct {
	rule, why string
	stats.Evidence
}

// add proposes an edit if the evidence is enough and the edit changes anything.
func (s *suggester) add(at host.Address, edit overlay.Edit, e evidence) {
	if !e.Enough() {
		return
	}
	edit.Tool, edit.Origin = at.Tool.Name, "rule "+e.rule
	s.found = append(s.found, Suggestion{edit.ID(), at.Plugin, edit, e.rule, e.why, e.N, e.Sessions, e.Calls})
}

// find returns a tool of the catalog without its contradictions.
func (s *suggester) find(name string) (host.Address, bool) {
	at, ok := stats.Find(s.catalog, name)
	if o := s.corrected[at.Plugin]; ok && o != nil {
		at.Tool = o.Apply(at.Tool)
	}
	return at, ok
}

// tool applies the rules about the calls of one tool.
func (s *suggester) tool(t *stats.Tool) {
	at, ok := s.find(t.Name)
	if !ok {
		return
	}
	params := manifest.Params(at.Tool.Params)
	described := map[string][]evidence{} // sentences to add, by parameter
	sentences := map[string][]string{}
	for _, f := range t.Fields {
		low, _ := stats.Wilson(f.Read, f.Of)
		p := paramAt(params, f.Pointer)
		if low < minShare || p == nil {
			continue
		}
		sentence, rule := sentenceFor(at.Tool, p, &f)
		if sentence == "" || slices.Contains(sentences[p.Name], sentence) {
			continue
		}
		why := fmt.Sprintf("%d of %d calls failed at %s: expected %s", f.N, t.Calls, f.Pointer, f.Expected)
		described[p.Name] = append(described[p.Name], evidence{rule, why, f.Evidence})
		sentences[p.Name] = append(sentences[p.Name], sentence)
		if f.Keyword == "required" {
			why := fmt.Sprintf("%d of %d calls had no %s, and no example has it", f.N, t.Calls, p.Name)
			s.example(at, params, p.Name, evidence{"required example", why, f.Evidence})
		}
	}
	for _, p := range params {
		for i, e := range described[p.Name] {
			if !e.Enough() {
				continue
			}
			text := strings.TrimSpace(strings.TrimRight(p.Description, ". ") + ". " + strings.Join(sentences[p.Name][i:], " "))
			s.add(at, overlay.Edit{Field: overlay.Param, Param: p.Name, Value: strings.TrimPrefix(text, ". ")}, e)
			break // one text for all that is wrong with the parameter
		}
	}
	// A single unused parameter costs a line only, and may just be rare.
	if good := t.Calls - t.Failed; good >= minUses && t.Sessions >= minUsers && len(t.Unused) > 1 {
		for _, name := range t.Unused {
			s.add(at, overlay.Edit{Field: overlay.Rare, Param: name}, evidence{"unused",
				fmt.Sprintf("none of %d successful calls had %s", good, name), inSessions(good, t)})
		}
	}
	s.common(at, t)
	if p := t.P50; p != nil && p.Low > stats.SlowMS && !strings.Contains(at.Tool.Docs.Standard, "akes about") {
		text := strings.TrimRight(cmp.Or(at.Tool.Docs.Standard, at.Tool.Docs.Brief), ". ")
		s.add(at, overlay.Edit{Field: overlay.Standard, Value: fmt.Sprintf("%s. Takes about %.0f s.", text, p.Value/1000)},
			evidence{"slow", fmt.Sprintf("half of %d calls took more than %.1f s", p.Of, p.Value/1000), inSessions(p.Of, t)})
	}
}

// inSessions returns n cases among all calls of a tool as evidence.
func inSessions(n int, t *stats.Tool) stats.Evidence {
	return stats.Evidence{N: n, Sessions: t.Sessions}
}

// paramAt returns the parameter that a pointer leads to or into.
func paramAt(params []manifest.Param, pointer string) *manifest.Param {
	tokens, ok := jsontext.SplitPointer(pointer)
	if !ok || len(tokens) == 0 {
		return nil
	}
	return param(params, tokens[0])
}

func param(params []manifest.Param, name string) *manifest.Param {
	return lists.Find(params, func(p *manifest.Param) bool { return p.Name == name })
}

// sentenceFor returns what a description should say about a mistake of callers, in words of the schema, "" if it says
// so already, and the name of the rule.
func sentenceFor(t *manifest.Tool, p *manifest.Param, f *stats.Field) (sentence, rule string) {
	says := func(words string) bool {
		return strings.Contains(strings.ToLower(p.Description), strings.ToLower(words))
	}
	switch f.Keyword {
	case "required":
		if f.Pointer != "/"+jsontext.EscapeToken(p.Name) || says("required") {
			return "", ""
		}
		return "Required.", "required"
	case "enum":
		var values, missing []string
		enum := p.Enum
		if enum == nil && p.Items != nil {
			enum = p.Items.Enum
		}
		for _, raw := range enum {
			value := strings.Trim(string(raw), `"`)
			if values = append(values, value); !says(value) {
				missing = append(missing, value)
			}
		}
		if len(values) == 0 && !says(f.Expected) { // the schema has them deeper, where describe does not show them
			return "Expected: " + f.Expected + ".", "enum"
		}
		if len(missing) == 0 || len(values) > 12 {
			return "", ""
		}
		return "One of " + strings.Join(values, ", ") + ".", "enum"
	case "pattern", "format":
		if says(f.Expected) {
			return "", ""
		}
		sentence = "Expected: " + f.Expected + "."
		if example := worked(t, p.Name); example != "" && !says(example) {
			sentence = strings.TrimSuffix(sentence, ".") + ", such as " + example + "."
		}
		return sentence, f.Keyword
	case "type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
		"minItems", "maxItems", "items":
		if f.Pointer != "/"+jsontext.EscapeToken(p.Name) || says(f.Expected) {
			return "", ""
		}
		return "Expected: " + f.Expected + ".", "bounds"
	}
	return "", ""
}

// worked returns a value of a parameter from an example of the author, as short JSON.
func worked(t *manifest.Tool, name string) string {
	if raw := exampleValue(t, name); raw != nil && len(raw) <= 40 {
		return string(manifest.EscapeJSON(raw))
	}
	return ""
}

// exampleValue returns a value that the author gave a parameter: in an example that succeeds, as a default, or as the
// first of an enum. Values of callers are never used.
func exampleValue(t *manifest.Tool, name string) json.RawMessage {
	for _, e := range t.Examples {
		if value := given(e)[name]; e.ExitCode == 0 && len(e.Before) == 0 && value != nil {
			return value
		}
	}
	if p := param(manifest.Params(t.Params), name); p != nil {
		return schemaValue(p)
	}
	return nil
}

// schemaValue returns the default of a parameter, else the first value of its enum, nil if it has neither.
func schemaValue(p *manifest.Param) json.RawMessage {
	if p.Default == nil && len(p.Enum) > 0 {
		return p.Enum[0]
	}
	return p.Default
}

// given returns the parameters of an example.
func given(e manifest.Example) (params map[string]json.RawMessage) {
	if json.Unmarshal(e.Params, &params) != nil {
		return nil
	}
	return params
}

// example proposes an example with all required parameters if none has this one.
func (s *suggester) example(at host.Address, params []manifest.Param, name string, e evidence) {
	if slices.ContainsFunc(at.Tool.Examples, func(x manifest.Example) bool {
		return x.ExitCode == 0 && given(x)[name] != nil
	}) {
		return
	}
	required := lists.Filter(params, func(p manifest.Param) bool { return p.Required })
	names := lists.Map(required, func(p manifest.Param) string { return p.Name })
	s.addExample(at, names, "minimal", "The required parameters", e)
}

// common proposes as the first example the parameters that most calls have, if no example has just these.
func (s *suggester) common(at host.Address, t *stats.Tool) {
	good := t.Calls - t.Failed
	if len(t.Arguments) == 0 || good < 2*stats.MinCases || t.Arguments[0].Name == "" {
		return
	}
	top := t.Arguments[0]
	if low, _ := stats.Wilson(top.N, good); low < 0.4 {
		return
	}
	if len(at.Tool.Examples) > 0 && len(at.Tool.Examples[0].Before) > 0 {
		return // the first example needs calls before it; a shorter one would not run
	}
	for _, x := range at.Tool.Examples {
		if strings.Join(slices.Sorted(maps.Keys(given(x))), ", ") == top.Name {
			return
		}
	}
	s.addExample(at, strings.Split(top.Name, ", "), "common", "As it is used most", evidence{"common example",
		fmt.Sprintf("%d of %d successful calls had just %s, and no example has", top.N, good, top.Name),
		inSessions(top.N, t)})
}

// addExample proposes an example of named parameters, if the author gave values for all of them.
func (s *suggester) addExample(at host.Address, names []string, kind, title string, e evidence) {
	if len(names) == 0 {
		return
	}
	params := map[string]json.RawMessage{}
	for _, name := range names {
		if params[name] = exampleValue(at.Tool, name); params[name] == nil {
			return
		}
	}
	raw, _ := manifest.Marshal(params) // the values are JSON
	s.add(at, overlay.Edit{Field: overlay.Example, Example: &manifest.Example{Title: title, Kind: kind, Params: raw}}, e)
}

// plainName is what a word of callers must look like to become part of documentation.
var plainName = lazy.Pattern(`^[A-Za-z][A-Za-z0-9_-]{0,39}$`)

// rename proposes another name of a parameter. Names that the host recognizes as a typo need none.
func (s *suggester) rename(n stats.Rename) {
	at, ok := s.find(n.Tool)
	if !ok || !plainName().MatchString(n.Sent) {
		return
	}
	params := manifest.Params(at.Tool.Params)
	if param(params, n.Meant) == nil || param(params, n.Sent) != nil {
		return
	}
	s.add(at, overlay.Edit{Field: overlay.ParamAlias, Param: n.Meant, Value: n.Sent}, evidence{"alias",
		fmt.Sprintf("%d calls sent %s and then, with success, %s", n.N, n.Sent, n.Meant), n.Evidence})
}

// confusion proposes an alias for a name that no tool has. Otherwise it proposes to say on each of the two tools what
// the other one is for.
func (s *suggester) confusion(c stats.Confusion) {
	meant, ok := s.find(c.Meant)
	if !ok || c.MeantWorks.Fails() {
		return
	}
	e := evidence{"confusion", fmt.Sprintf("%d calls of %s failed, and then one of %s succeeded", c.N, c.Called, c.Meant),
		c.Evidence}
	called, ok := s.find(c.Called)
	if !ok {
		plugin, name, _ := strings.Cut(c.Called, ".")
		group, _, _ := strings.Cut(name, ".")
		if _, near := spelling.Resembles(name, meant.Tool.Name); near || !strings.EqualFold(plugin, meant.Plugin) ||
			!plainName().MatchString(group) || !plainName().MatchString(manifest.LocalName(name)) {
			return
		}
		e.rule = "tool alias"
		s.add(meant, overlay.Edit{Field: overlay.Alias, Value: manifest.LocalName(name)}, e)
		return
	}
	if called.Plugin != meant.Plugin || called.Tool.Deprecated != nil || meant.Tool.Deprecated != nil {
		return // a plugin's texts do not lead to tools of others, and a deprecation says which tool to use
	}
	if stats.ComesBefore(called, c.Meant) || slices.ContainsFunc(s.report.Needs, func(n stats.Need) bool {
		return n.Tool == c.Called && n.Before == c.Meant
	}) {
		return // it was called to prepare the other one
	}
	if s.sendsAway(c, called.Tool, meant.Tool) {
		s.correct(meant.Plugin, meant.Tool, overlay.Edit{Field: overlay.WhenNot,
			Value: withoutClause(meant.Tool.WhenNot, called.Tool.Name)}, "callers who read it call "+c.Called+
			", which fails, and come back", c.Evidence)
		return
	}
	for _, of := range [][2]*manifest.Tool{{called.Tool, meant.Tool}, {meant.Tool, called.Tool}} {
		t, other := of[0], of[1]
		if strings.Contains(t.WhenNot, other.Name) || other == called.Tool && c.CalledWorks.Fails() {
			continue
		}
		hint := "to " + lowerFirst(other.Docs.Brief) + ": " + other.Name
		if t.WhenNot != "" {
			hint = t.WhenNot + "; " + hint
		}
		s.add(host.Address{Plugin: called.Plugin, Tool: t}, overlay.Edit{Field: overlay.WhenNot, Value: hint}, e)
	}
}

// sendsAway reports whether a text wrongly sends callers from the tool that they mean to another one: many of those
// who read it go there, and come back. Two tools whose texts tell them apart, each with the other's name, are not a
// mistake.
func (s *suggester) sendsAway(c stats.Confusion, called, meant *manifest.Tool) bool {
	t := lists.Find(s.report.Tools, func(t *stats.Tool) bool { return t.Name == c.Meant })
	if t == nil || !strings.Contains(meant.WhenNot, called.Name) || strings.Contains(called.WhenNot, meant.Name) {
		return false
	}
	low, _ := stats.Wilson(min(c.SentAway, t.Sessions), t.Sessions)
	return c.SentAway >= stats.MinCases && low >= minSentAway
}

// withoutClause returns a text without the clause that names a tool, and without the clause that this continues.
func withoutClause(text, tool string) string {
	var kept []string
	for clause := range strings.SplitSeq(text, "; ") {
		if !strings.Contains(clause, tool) {
			kept = append(kept, clause)
		} else if strings.HasPrefix(clause, "use ") || strings.HasPrefix(clause, "call ") {
			kept = kept[:max(0, len(kept)-1)]
		}
	}
	return strings.Join(kept, "; ")
}

func lowerFirst(s string) string {
	s = strings.TrimRight(manifest.CleanLine(s), ".")
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// need proposes that a tool has to be called before another one.
func (s *suggester) need(n stats.Need) {
	at, ok := s.find(n.Tool)
	before, known := s.find(n.Before)
	if !ok || !known || slices.Contains(at.Tool.Needs, before.Name()) {
		return
	}
	if stats.ComesBefore(at, before.Name()) || slices.ContainsFunc(s.report.Origins, func(o stats.Origin) bool {
		return o.Tool == n.Tool && strings.HasPrefix(o.From, n.Before+"/") && s.isOrigin(o)
	}) {
		return // it needs a value of the other tool's result
	}
	s.add(at, overlay.Edit{Field: overlay.Need, Value: before.Name()}, evidence{"need",
		fmt.Sprintf("%d times it failed, and succeeded after %s; it never succeeded without", n.N, before.Name()),
		n.Evidence})
}

// origin proposes that the value of a parameter comes from the result of another tool.
func (s *suggester) origin(o stats.Origin) {
	if !s.isOrigin(o) {
		return
	}
	at, _ := s.find(o.Tool)
	source, _, _ := manifest.SplitSource(o.From)
	for _, v := range at.FlowOf().Values {
		if v.Pointer == "/"+jsontext.EscapeToken(o.Parameter) && slices.ContainsFunc(v.From, func(f manifest.Source) bool {
			return strings.EqualFold(f.Tool, source)
		}) {
			return
		}
	}
	s.add(at, overlay.Edit{Field: overlay.From, Param: o.Parameter, Value: o.From}, evidence{"origin",
		fmt.Sprintf("%d of %d values of %s were those of %s", o.N, o.Of, o.Parameter, o.From), o.Evidence})
}

// isOrigin reports whether a result is where most values of a parameter come from. Values that the schema lists need no
// origin.
func (s *suggester) isOrigin(o stats.Origin) bool {
	at, ok := s.find(o.Tool)
	source, _, valid := manifest.SplitSource(o.From)
	if _, known := s.find(source); !ok || !valid || !known || strings.EqualFold(source, o.Tool) {
		return false
	}
	p := param(manifest.Params(at.Tool.Params), o.Parameter)
	low, _ := stats.Wilson(o.N, o.Of)
	return p != nil && p.Enum == nil && low >= minOrigin
}

// maxWords is how many keywords a tool gets from searches at once.
const maxWords = 3

// plainWord is a word of a query that may become a keyword; a whole query, which is free text, never does.
var plainWord = lazy.Pattern(`^[a-z]{3,20}$`)

// miss proposes as keywords the words that most of the queries have that did not find the tool.
func (s *suggester) miss(m stats.Miss) {
	at, ok := s.find(m.Tool)
	if !ok || !m.Enough() {
		return
	}
	known := strings.ToLower(strings.Join(slices.Concat([]string{at.Plugin, at.Tool.Name, at.Tool.Docs.Brief,
		at.Tool.Docs.Standard}, at.Tool.Keywords, at.Tool.Aliases, at.Tool.Tasks), " "))
	counts := map[string]int{}
	for _, query := range m.Queries {
		for _, word := range lists.Add(nil, strings.Fields(strings.ToLower(query))...) {
			if plainWord().MatchString(word) && !strings.Contains(known, word) && !slices.Contains(common, word) {
				counts[word]++
			}
		}
	}
	words := lists.Filter(slices.Collect(maps.Keys(counts)), func(word string) bool {
		return counts[word] >= stats.MinSessions && 2*counts[word] >= len(m.Queries)
	})
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	for _, word := range words[:min(len(words), maxWords)] {
		s.add(at, overlay.Edit{Field: overlay.Keyword, Value: word}, evidence{"search miss",
			fmt.Sprintf("%d searches did not find it among the first five; %d different queries had the word %s", m.N,
				counts[word], word), m.Evidence})
	}
}

// common are words that say nothing about a tool.
var common = strings.Fields(`the and for with from into that this what how can you want need please all any are its out get
	make use using tool page one some when where which then them they there text data value file now`)
