package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Classes of damage. A damage removes one fact from the documentation of a tool. What the tool accepts, and what the
// host validates, stays the same.
const (
	classEnum      = "enum"      // the values of a parameter: the schema has them where describe does not show them
	classForm      = "form"      // the pattern or the range of a parameter's values
	classRequired  = "required"  // that a parameter is required: the schema says so in a condition, no example has it
	classAlias     = "alias"     // the everyday name of a parameter: it is called as a variable in some program
	classSearch    = "search"    // tasks and keywords
	classExample   = "example"   // the example of the usual call; that with all parameters stays
	classConfusion = "confusion" // which of two similar tools is for what: no when and when_not on both
	classSlow      = "slow"      // how long a call takes
	classClutter   = "clutter"   // there are three more optional parameters, which nobody uses
	classNeeds     = "needs"     // which tool has to be called before
	classFrom      = "from"      // which tool returns the value of a parameter
)

// classes are all, those first that fewest tools have the fact for.
var classes = []string{classNeeds, classConfusion, classFrom, classSlow, classForm, classEnum, classExample,
	classRequired, classAlias, classSearch, classClutter}

// fact is something that the documentation of a tool has to state.
type fact struct {
	class string
	param *param // that it is about; nil if it is about the tool
	name  string // of that parameter in the documentation
}

// damage is what was done to a tool.
type damage struct {
	tool *tool
	fact fact
	form string // how a class with several forms was damaged
	odd  string // the name that the parameter has now; "" for its own

	wrong  *misstatement // says something wrong instead; nil if it removes a fact
	isTrue bool          // says what is right, in the words of the misstatement
}

// states reports whether documentation, as it was delivered, states a fact. Agents know what it states, a damage
// removes it, and an edit repairs the damage if the documentation states it again.
func states(d *manifest.ToolDocs, t *tool, f fact) bool {
	i := slices.IndexFunc(d.Parameters, func(p manifest.Param) bool { return p.Name == f.name })
	var p manifest.Param
	if i >= 0 {
		p = d.Parameters[i]
	}
	switch f.class {
	case classEnum:
		return !slices.ContainsFunc(f.param.Enum, func(v json.RawMessage) bool {
			return !containsRaw(p.Enum, v) && !hasWord(p.Description, strings.Trim(string(v), `"`))
		})
	case classForm:
		return f.param.isFormIn(p.Description) || f.isFormOf(d.Examples)
	case classRequired:
		return p.Required || hasWord(p.Description, "required") || given(d.Examples, f.name) != nil
	case classAlias:
		return i >= 0
	case classExample:
		return len(d.Examples) > 0 && slices.Equal(t.usual, membersOf(d.Examples[0].Params))
	case classConfusion:
		return hasWord(d.WhenNot, t.sibling.doc.Name)
	case classSlow:
		seconds, ok := secondsIn(d.Description)
		stated := time.Duration(seconds) * time.Second
		return ok && 2*stated >= t.takes && stated <= 2*t.takes
	case classNeeds:
		return slices.Contains(d.Needs, t.needs.name())
	case classFrom:
		return slices.ContainsFunc(d.Get, func(v manifest.ValueDoc) bool {
			return v.Parameter == f.name && slices.Contains(v.From, t.from.name())
		})
	}
	return false
}

// hasWord reports whether a text has a word, in any case.
func hasWord(text, word string) bool {
	i := strings.Index(strings.ToLower(text), strings.ToLower(word))
	if i < 0 {
		return false
	}
	isPart := func(s string) bool { return s != "" && regexp.MustCompile(`[A-Za-z0-9_]`).MatchString(s) }
	return !isPart(text[max(0, i-1):i]) && !isPart(text[i+len(word):min(len(text), i+len(word)+1)])
}

// isFormIn reports whether a text tells the form of the parameter's values: the pattern, both ends of the range, or a
// value of that form.
func (p *param) isFormIn(text string) bool {
	k := &p.keywords
	tokens := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t,;()\"'", r) })
	has := func(word string) bool {
		return slices.ContainsFunc(tokens, func(t string) bool { return strings.TrimRight(t, ".") == word })
	}
	if k.Minimum != nil && k.Maximum != nil {
		return has(k.Minimum.String()) && has(k.Maximum.String())
	}
	return strings.Contains(text, k.Pattern) ||
		slices.ContainsFunc(tokens, func(t string) bool { return p.isTelling(strings.TrimRight(t, ".")) })
}

// isTelling reports whether a value shows the form: an everyday word of that form does not.
func (p *param) isTelling(value any) bool { return p.accepts(value) && !p.accepts("text") }

// isFormOf reports whether the first example has a value that shows the form.
func (f *fact) isFormOf(examples []manifest.ExampleDoc) bool {
	k := &f.param.keywords
	var value any
	raw := given(examples, f.name)
	return raw != nil && k.Minimum == nil && json.Unmarshal(raw, &value) == nil && f.param.isTelling(value)
}

// given returns the value of a parameter in the first example, nil if it has none.
func given(examples []manifest.ExampleDoc, name string) json.RawMessage {
	var params map[string]json.RawMessage
	if len(examples) == 0 || json.Unmarshal(examples[0].Params, &params) != nil {
		return nil
	}
	return params[name]
}

// membersOf returns the sorted names in an object.
func membersOf(object json.RawMessage) []string {
	var params map[string]json.RawMessage
	_ = json.Unmarshal(object, &params) // anything else has none
	names := []string{}
	for name := range params {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var inSeconds = regexp.MustCompile(`[Tt]akes about (\d+) s\b\.?`)

// secondsIn returns the duration that a text states.
func secondsIn(text string) (seconds int, ok bool) {
	m := inSeconds.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	_, err := fmt.Sscan(m[1], &seconds)
	return seconds, err == nil
}

// describe returns tier 2 of a tool's documentation, as a host delivers it.
func (t *tool) describe(doc *manifest.Tool) *manifest.ToolDocs {
	return manifest.Describe(&manifest.Manifest{Name: t.plugin, Kind: manifest.KindParley}, doc, manifest.Tier2)
}

// factsOf returns what the documentation of a tool states now in a class, by which it can be damaged.
func (t *tool) factsOf(class string) (facts []fact) {
	add := func(p *param) {
		f := fact{class: class, param: p}
		if p != nil {
			f.name = p.Name
		}
		if class == classSearch || class == classClutter || states(t.describe(&t.doc), t, f) {
			facts = append(facts, f)
		}
	}
	switch class {
	case classEnum, classForm, classRequired, classAlias:
		for i := range t.params {
			p := &t.params[i]
			switch {
			case class == classEnum && p.Type == "string" && len(p.Enum) > 1 && len(p.bad) > 0,
				class == classForm && p.hasForm() && len(p.bad) > 0,
				class == classRequired && p.Required, class == classAlias && t.from == nil:
				add(p)
			}
		}
	case classFrom:
		if t.from != nil {
			add(&t.params[0])
		}
	case classSearch:
		if t.hidden {
			add(nil)
		}
	case classClutter:
		add(nil)
	case classExample:
		if len(t.usual) > 0 && len(t.params) > len(t.usual) { // a usual call with enums alone is made from the schema
			d := damage{tool: t, fact: fact{class: class}}
			doc := d.apply(t.doc)
			if !states(t.describe(&doc), t, d.fact) {
				add(nil)
			}
		}
	case classConfusion:
		if t.sibling != nil && states(t.sibling.describe(&t.sibling.doc), t.sibling, fact{class: class}) {
			add(nil)
		}
	case classSlow:
		if t.isSlow() {
			add(nil)
		}
	case classNeeds:
		if t.needs != nil {
			add(nil)
		}
	}
	return facts
}

// deal damages each tool that somebody wants in one class, so that the classes have about as many each. A pair of
// similar tools is damaged together. The order is by chance.
func deal(c *catalog, r *rand.Rand) map[*tool]*damage {
	tools := c.wanted()
	r.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
	done, counts := map[*tool]*damage{}, map[string]int{}
	for len(done) < len(tools) {
		before := len(done)
		for _, class := range classes {
			for _, t := range tools {
				facts := []fact{}
				if done[t] == nil && !(class == classConfusion && done[t.sibling] != nil) {
					facts = t.factsOf(class)
				}
				if len(facts) == 0 {
					continue
				}
				done[t] = newDamage(t, facts[r.IntN(len(facts))], counts[class])
				if class == classConfusion {
					done[t.sibling] = newDamage(t.sibling, facts[0], counts[class])
				}
				counts[class]++
				break
			}
		}
		if len(done) == before {
			break
		}
	}
	return done
}

// oddNames are what parameters are called in classAlias.
var oddNames = []string{"src_ref", "entity_blob", "arg0_spec", "xparam", "raw_operand"}

// clutter are optional parameters that nobody uses.
var clutter = []clutterParam{
	{"trace_context", `{"type":"string","description":"Identifier of the trace in the caller's own system."}`},
	{"consistency", `{"type":"string","enum":["eventual","strong"],"default":"eventual","description":"Of reads."}`},
	{"partner_code", `{"type":"string","description":"Code that resellers have from their contract."}`},
}

type clutterParam struct{ name, schema string }

// enumForms are the forms in which a schema has the values of a parameter, and describe does not show them: conditions.
var enumForms = []string{"then of strings", "else of null", "then of constants"}

// newDamage plans the damage of a fact. n counts those of the class before.
func newDamage(t *tool, f fact, n int) *damage {
	d := &damage{tool: t, fact: f}
	switch f.class {
	case classEnum:
		d.form = enumForms[n%len(enumForms)]
	case classForm:
		if d.form = "range"; f.param.keywords.Pattern != "" {
			d.form = "pattern"
		}
	case classAlias:
		d.odd = oddNames[n%len(oddNames)]
	case classExample:
		d.form = "values elsewhere"
		for _, name := range t.usual {
			if len(d.apply(t.doc).Examples) == len(without(d.apply(t.doc).Examples, name)) {
				d.form = "no other values"
			}
		}
	}
	return d
}

// apply returns the documentation with the damage.
func (d *damage) apply(doc manifest.Tool) manifest.Tool {
	switch {
	case d.isTrue:
		return d.wrong.applyTruth(doc)
	case d.wrong != nil:
		return d.wrong.apply(doc)
	}
	name := d.fact.name
	at := []string{"properties", name}
	switch d.fact.class {
	case classEnum:
		hidden := map[string]string{enumForms[0]: `{"if":{"type":"string"},"then":{"enum":%s}}`,
			enumForms[1]: `{"if":{"type":"null"},"else":{"enum":%s}}`}[d.form]
		choices := string(mustMarshal(d.fact.param.Enum))
		if d.form == enumForms[2] {
			hidden = `{"if":{"type":"string"},"then":{"anyOf":[%s]}}`
			choices = `{"const":` + strings.Join(rawTexts(d.fact.param.Enum), `},{"const":`) + `}`
		}
		doc.Params = changeProperty(doc.Params, name, func(p map[string]json.RawMessage) {
			var merged map[string]json.RawMessage
			_ = json.Unmarshal(fmt.Appendf(nil, hidden, choices), &merged)
			p["description"] = mustMarshal("The " + words(name) + ".")
			for _, shown := range []string{"enum", "default", "type"} {
				delete(p, shown)
			}
			maps.Copy(p, merged)
		})
	case classForm:
		doc.Params = jsontext.Set(doc.Params, at, "description", mustMarshal("The "+words(name)+"."))
		doc.Examples = without(doc.Examples, name)
	case classRequired:
		required := slices.DeleteFunc(readSchema(doc.Params).Required, func(n string) bool { return n == name })
		doc.Params = jsontext.Set(doc.Params, nil, "required", mustMarshal(required))
		doc.Params = jsontext.Set(doc.Params, nil, "if", mustMarshal(map[string]any{"type": "object"}))
		doc.Params = jsontext.Set(doc.Params, nil, "then", mustMarshal(map[string]any{"required": at[1:]}))
		doc.Examples = without(doc.Examples, name)
	case classAlias:
		doc.Params = changeProperty(doc.Params, name, func(p map[string]json.RawMessage) { delete(p, "x-aliases") })
		doc.Params = rename(doc.Params, name, d.odd)
		doc.Examples = slices.Clone(doc.Examples)
		for i := range doc.Examples {
			doc.Examples[i].Params = renameMember(doc.Examples[i].Params, name, d.odd)
		}
	case classSearch:
		doc.Tasks, doc.Keywords, doc.Aliases = nil, nil, nil
	case classExample:
		doc.Examples = slices.DeleteFunc(slices.Clone(doc.Examples), func(e manifest.Example) bool {
			return slices.Equal(membersOf(e.Params), d.tool.usual)
		})
	case classConfusion:
		doc.When, doc.WhenNot = "", ""
	case classSlow:
		doc.Docs.Standard = strings.TrimSpace(inSeconds.ReplaceAllString(doc.Docs.Standard, ""))
	case classClutter:
		for _, c := range clutter {
			doc.Params = jsontext.Set(doc.Params, []string{"properties"}, c.name, []byte(c.schema))
		}
	case classNeeds:
		doc.Needs = nil
	case classFrom:
		doc.Params = changeProperty(doc.Params, name, func(p map[string]json.RawMessage) { delete(p, "x-from") })
	}
	return doc
}

func rawTexts(list []json.RawMessage) (texts []string) {
	for _, raw := range list {
		texts = append(texts, string(raw))
	}
	return texts
}

// without returns the examples that do not have a parameter.
func without(examples []manifest.Example, name string) []manifest.Example {
	return slices.DeleteFunc(slices.Clone(examples), func(e manifest.Example) bool {
		return slices.Contains(membersOf(e.Params), name)
	})
}

// schemaOf is what damages change in the schema of parameters.
type schemaOf struct {
	Properties map[string]json.RawMessage
	Required   []string
}

func readSchema(params json.RawMessage) (s schemaOf) {
	if err := json.Unmarshal(params, &s); err != nil {
		panic(err) // it was read before
	}
	return s
}

// changeProperty changes the schema of a parameter.
func changeProperty(params json.RawMessage, name string, change func(map[string]json.RawMessage)) json.RawMessage {
	property := map[string]json.RawMessage{}
	_ = json.Unmarshal(readSchema(params).Properties[name], &property) // it was read before
	change(property)
	return jsontext.Set(params, []string{"properties"}, name, mustMarshal(property))
}

// rename renames a parameter. The order stays.
func rename(params json.RawMessage, name, to string) json.RawMessage {
	s := readSchema(params)
	var members []string
	for _, p := range manifest.Params(params) {
		key := p.Name
		if key == name {
			key = to
		}
		members = append(members, string(mustMarshal(key))+":"+string(s.Properties[p.Name]))
	}
	s.Required = renameIn(s.Required, name, to)
	params = jsontext.Set(params, nil, "properties", []byte("{"+strings.Join(members, ",")+"}"))
	var d struct {
		DependentRequired map[string][]string
		AnyOf             []json.RawMessage
	}
	if json.Unmarshal(params, &d) != nil {
		return params
	}
	for i, alternative := range d.AnyOf {
		if required := readSchema(alternative).Required; slices.Contains(required, name) {
			d.AnyOf[i] = jsontext.Set(alternative, nil, "required", mustMarshal(renameIn(required, name, to)))
			params = jsontext.Set(params, nil, "anyOf", mustMarshal(d.AnyOf))
		}
	}
	if len(d.DependentRequired) > 0 {
		renamed := map[string][]string{}
		for by, needs := range d.DependentRequired {
			if by == name {
				by = to
			}
			renamed[by] = renameIn(needs, name, to)
		}
		params = jsontext.Set(params, nil, "dependentRequired", mustMarshal(renamed))
	}
	if len(s.Required) == 0 {
		return params
	}
	return jsontext.Set(params, nil, "required", mustMarshal(s.Required))
}

// renameIn returns a list in which one name stands for another.
func renameIn(names []string, name, to string) []string {
	renamed := slices.Clone(names)
	if i := slices.Index(renamed, name); i >= 0 {
		renamed[i] = to
	}
	return renamed
}

// renameMember renames a member of an object, if it has it.
func renameMember(object json.RawMessage, name, to string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || members[name] == nil {
		return object
	}
	members[to] = members[name]
	delete(members, name)
	return mustMarshal(members)
}
