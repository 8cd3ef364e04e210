package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Forms of misstatement. A misstatement is something wrong that the documentation of a tool says. What the tool
// accepts, and what the host validates, is the same with it and without.
const (
	formBound      = "bound"             // a number that the range of a parameter denies
	formValues     = "values"            // a value that the list of a parameter does not have
	formFormat     = "format"            // another format, or another pattern
	formDefault    = "default"           // another default
	formOptional   = "called optional"   // that a required parameter may be left out
	formRequired   = "called required"   // that an optional parameter must be given
	formUnit       = "unit"              // another unit than the name of the parameter has
	formField      = "field name"        // a parameter that does not exist
	formTool       = "tool name"         // a tool that does not exist
	formBrief      = "brief"             // the brief of a sibling, which has this one's
	formWhen       = "when"              // that another tool does what this one is for
	formValue      = "example value"     // an example with a value that is not valid
	formParameter  = "example parameter" // an example with a parameter that does not exist
	formUseless    = "example useless"   // an example with an optional parameter that makes the result useless
	formDeprecated = "deprecated"        // that the tool is replaced by one that does not exist
)

// wordings are the sentences of each form. One that names {param} becomes part of the tool's text, any other one part
// of the parameter's description. Brackets enclose the words without which the statement is no longer made.
//
// {wrong} is the wrong number, value, name or unit, {low} a number below the range, {a} and {b} valid values, and
// {task} what the tool is for.
var wordings = map[string][]string{
	formBound: {
		"At most [{wrong}].",
		"Up to [{wrong}] per call.",
		"Must be between {low2} and [{wrong}].",
		"The maximum is [{wrong}]; larger values are refused.",
		"Anything from {low2} to [{wrong}] is accepted.",
		"Can be raised to [{wrong}] if needed.",
		"Values above [{wrong}] are cut.",
		"Pass [{low}] for no limit.",
		"Starts at [{low}].",
		"`{param}` may be as large as [{wrong}].",
		"You can set {param} to [{wrong}] to get more in one call.",
		"The largest `{param}` is [{wrong}].",
	},
	formValues: {
		"One of {a}, {b} or [{wrong}].",
		"Use [{wrong}] for the usual case.",
		"Also accepts [{wrong}].",
		"[\"{wrong}\"] is allowed, too.",
		"Pass \"[{wrong}]\" to get everything.",
		"Either {a} or [{wrong}].",
		"Can be `{a}`, `{b}` or `[{wrong}]`.",
		"Possible values: {a}, {b}, [{wrong}].",
		"With `{param}` set to `[{wrong}]` it behaves as most people expect.",
		"Set {param} to [{wrong}] unless you need something else.",
		"`{param}` takes {a}, {b} and [{wrong}].",
	},
	formDefault: {
		"Defaults to [{wrong}].",
		"[{wrong}] if left out.",
		"Without it, [{wrong}] is used.",
		"The default is [{wrong}].",
		"Omit it for [{wrong}].",
		"(default: [{wrong}])",
		"If not given, [{wrong}].",
		"Falls back to [{wrong}].",
		"Uses [{wrong}] unless `{param}` is given.",
		"If you leave out {param}, it is [{wrong}].",
		"`{param}` defaults to [{wrong}].",
	},
	formOptional: {
		"[Optional].",
		"May be [left out].",
		"[Not needed] in most calls.",
		"Can be [omitted].",
		"[Leave it empty] to get everything.",
		"You [need not] pass it.",
		"`{param}` [is optional].",
		"You can [leave out] {param}.",
		"It works [without `{param}`], too.",
		"The parameter {param} can be [skipped].",
	},
	formRequired: {
		"[Required].",
		"[Must be given].",
		"[Mandatory].",
		"This [is required].",
		"[Must not be empty] or missing.",
		"Each call [has to have] it.",
		"`{param}` [is required].",
		"[Always pass] {param}.",
		"Fails [without `{param}`].",
		"The parameter {param} [must be set].",
	},
	formUnit: {
		"In [{wrong}].",
		"Given in [{wrong}].",
		"The value in [{wrong}].",
		"Number of [{wrong}].",
		"How many [{wrong}].",
		"Expressed as [{wrong}].",
		"`{param}` is in [{wrong}].",
		"Give {param} in [{wrong}].",
		"The unit of `{param}` is [{wrong}].",
	},
	formField: {
		"Set `[{wrong}]` to narrow the result.",
		"The parameter [{wrong}] says what it is about.",
		"Pass [{wrong}] first of all.",
		"Use `[{wrong}]` for what you are after.",
		"What is meant is told by `[{wrong}]`.",
		"See the field \"[{wrong}]\".",
		"Needs the [{wrong}] parameter.",
	},
	formTool: {
		"Call `[{wrong}]` first.",
		"Use [{wrong}] to find what can be passed.",
		"See [{wrong}] for details of each item.",
		"Takes what `[{wrong}]` returns.",
		"The tool \"[{wrong}]\" shows the outcome.",
		"Run [{wrong}] before this one.",
		"Afterwards [{wrong}] is of use.",
	},
	formWhen: {
		"{task}: [{wrong}]",
		"{task}; use [{wrong}] then",
		"to {task}, use [{wrong}] instead",
		"you want to {task}: [{wrong}] does it",
		"the task is to {task}, which [{wrong}] does",
	},
	formDeprecated: {
		"Use [{wrong}] instead.",
		"Replaced by [{wrong}].",
		"Superseded by `[{wrong}]`, which does more.",
		"Will go away; move to [{wrong}].",
	},
	formBrief: {"swapped"}, formValue: {"first", "only"}, formParameter: {"first", "only"}, formUseless: {"first", "only"},
}

// formats are the wordings of formFormat, by the format in the schema or by "pattern", each with a value of that form.
var formats = map[string][][2]string{
	"date": {{"As [DD/MM/YYYY].", "14/03/2026"}, {"A [Unix timestamp].", "1773446400"},
		{"Written as in [March 14, 2026].", "March 14, 2026"}, {"An [RFC 3339 time].", "2026-03-14T00:00:00Z"}},
	"date-time": {{"A [Unix timestamp] in seconds.", "1773480600"}, {"Only the day: [YYYY-MM-DD].", "2026-03-14"},
		{"As [HH:MM].", "09:30"}, {"In the form [MM/DD/YYYY HH:MM].", "03/14/2026 09:30"}},
	"uri": {{"Only the [host name], without a scheme.", "example.org"}, {"A [path relative] to the root.", "/b"},
		{"The [domain], such as example.org.", "example.org"}, {"[Without https://].", "example.org/b"}},
	"email": {{"The [display name] of the person.", "Bob Example"}, {"The [user name], without the domain.", "bob"},
		{"A [phone number] works as well.", "+49 30 1234"}, {"[Numeric id] of the account.", "4711"}},
	"pattern": {{"A plain [number].", "1234"}, {"Such as [4711].", "4711"},
		{"A [UUID].", "7d444840-9dc0-11d1-b245-5ffdce74fad2"},
		{"Starts with [#], as in #1234.", "#1234"}, {"The [name] works as well.", "north harbour"},
		{"[Digits] only.", "1234"}},
}

// misstatement is a form of misstatement that a tool has.
type misstatement struct {
	tool    *tool
	other   *tool // whose brief it has, or to which it sends
	form    string
	wording string          // with brackets
	param   *param          // that it is about; nil if it is about the tool
	wrong   string          // the word in the place of {wrong}
	core    string          // the words without which it is not made
	text    string          // the sentence
	value   json.RawMessage // what a believer passes for the parameter
	instead bool            // it takes the place of what the description said about the form of values
}

// half returns the part to which a name belongs: 0, on which rules may be improved, or 1, which is held apart.
func half(name string) int {
	h := fnv.New64a()
	h.Write([]byte(name))
	return int(h.Sum64() >> 20 & 1)
}

// wordingsOf returns the wordings of a form for the tools of a half, which the other half does not have.
func wordingsOf(form string, part int) []string {
	all := wordings[form]
	if len(all) < 3 {
		return all // these have no words
	}
	return slices.DeleteFunc(slices.Clone(all), func(w string) bool { return half(form+w) != part })
}

// forms are all, those first that fewest tools can have.
var forms = []string{formBrief, formUnit, formDefault, formFormat, formBound, formValues, formValue, formRequired,
	formUseless, formWhen, formTool, formField, formDeprecated, formParameter, formOptional}

// misstate gives each tool that somebody wants a misstatement, so that the forms have about as many each. Two siblings
// swap their briefs. The order is by chance.
func misstate(c *catalog, r *rand.Rand) map[*tool]*misstatement {
	tools := c.wanted()
	r.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
	done := map[*tool]*misstatement{}
	for before := -1; before < len(done); {
		before = len(done)
		for _, form := range forms {
			for _, t := range tools {
				if done[t] != nil || form == formBrief && (t.sibling == nil || done[t.sibling] != nil) {
					continue
				}
				m := newMisstatement(c, t, form, r)
				if m == nil {
					continue
				}
				done[t] = m
				if form == formBrief {
					done[t.sibling] = newMisstatement(c, t.sibling, form, r)
				}
				break
			}
		}
	}
	return done
}

// newMisstatement returns a misstatement of a form for a tool, nil if the tool has nothing that it could be about.
func newMisstatement(c *catalog, t *tool, form string, r *rand.Rand) *misstatement {
	m := &misstatement{tool: t, form: form}
	m.instead = r.IntN(2) == 0 && (form == formBound || form == formFormat)
	var fit []*param
	for i := range t.params {
		if p := &t.params[i]; p.fits(form) {
			fit = append(fit, p)
		}
	}
	isAboutParam := !slices.Contains([]string{formTool, formBrief, formWhen, formParameter, formDeprecated}, form)
	if isAboutParam && len(fit) == 0 {
		return nil
	}
	if isAboutParam {
		m.param = fit[r.IntN(len(fit))]
	}
	list := wordingsOf(form, half(t.name()))
	if form == formFormat {
		fit := slices.DeleteFunc(slices.Clone(formats[m.param.formatKey()]), func(f [2]string) bool {
			return half(form+f[0]) != half(t.name()) || m.param.keywords.Pattern != "" && m.param.accepts(f[1])
		})
		if len(fit) == 0 {
			return nil
		}
		pair := fit[r.IntN(len(fit))]
		m.wording, m.value = pair[0], mustMarshal(pair[1])
	} else {
		m.wording = list[r.IntN(len(list))]
	}
	if !m.choose(c, r) {
		return nil
	}
	m.text = m.fill(m.wrong)
	return m
}

// fits reports whether a form of misstatement can be about a parameter.
func (p *param) fits(form string) bool {
	k := &p.keywords
	switch form {
	case formBound:
		return k.Minimum != nil && k.Maximum != nil
	case formValues, formValue:
		return p.Type == "string" && len(p.Enum) > 1 && p.wordOutside() != "" ||
			form == formValue && k.Minimum != nil && k.Maximum != nil
	case formDefault:
		return p.Default != nil && p.otherThanDefault() != nil
	case formFormat:
		return formats[p.formatKey()] != nil
	case formOptional:
		return p.Required
	case formRequired:
		return !p.Required && p.Default == nil
	case formUseless:
		return !p.Required
	case formUnit:
		return unitOf(p.Name) != nil
	case formField:
		return true
	}
	return false
}

func (p *param) formatKey() string {
	if p.Format == "" && p.keywords.Pattern != "" && p.accepts("ab-1234") {
		return "pattern"
	}
	return p.Format
}

var oneWord = regexp.MustCompile(`^"[A-Za-z]+"$`)

// wordOutside returns a word that is not among the values of a parameter, though somebody might think so.
func (p *param) wordOutside() string {
	for _, raw := range p.bad {
		if oneWord.Match(raw) && string(raw) != `"`+p.Name+`"` {
			return strings.Trim(string(raw), `"`)
		}
	}
	return ""
}

// otherThanDefault returns a valid value that is not the default, and can be told in a word.
func (p *param) otherThanDefault() json.RawMessage {
	for _, raw := range p.good {
		if string(raw) != string(p.Default) && len(raw) < 20 && !strings.ContainsAny(string(raw), " [{") {
			return raw
		}
	}
	return nil
}

// unit is the end of a name that says in which unit a value is.
type unit struct {
	end          *regexp.Regexp
	right, wrong string
	factor       float64 // a value in the wrong unit is so many times smaller
}

var units = []unit{
	{regexp.MustCompile(`(_ms|Ms|[mM]illis)$`), "milliseconds", "seconds", 1000},
	{regexp.MustCompile(`([sS]econds|_sec)$`), "seconds", "minutes", 60},
	{regexp.MustCompile(`([mM]inutes)$`), "minutes", "hours", 60},
	{regexp.MustCompile(`(^h|H|_h)ours$`), "hours", "days", 24},
	{regexp.MustCompile(`(^d|D|_d)ays$`), "days", "weeks", 7},
	{regexp.MustCompile(`_mb$`), "megabytes", "gigabytes", 1000},
	{regexp.MustCompile(`_kb$`), "kilobytes", "megabytes", 1000},
	{regexp.MustCompile(`_km$`), "kilometres", "miles", 1.6},
}

func unitOf(name string) *unit {
	i := slices.IndexFunc(units, func(u unit) bool { return u.end.MatchString(name) })
	if i < 0 {
		return nil
	}
	return &units[i]
}

// everyday are names that writers give to things whose parameter has another name.
var everyday = map[string]string{"query": "search_text", "limit": "max_results", "name": "item_name",
	"path": "file_path", "url": "page_url", "text": "input_text", "id": "identifier",
	"owner": "account_name", "repo": "repository_name",
	"title": "heading_text", "file": "source_file", "body": "content_text", "key": "entry_key"}

// choose finds what a misstatement says wrongly. It reports whether there is such a thing.
func (m *misstatement) choose(c *catalog, r *rand.Rand) bool {
	t, p := m.tool, m.param
	switch m.form {
	case formBound:
		m.wrong = number10(p.keywords.Maximum)
		m.value = json.RawMessage(m.wrong)
		if strings.Contains(m.wording, "{low}") {
			m.value = below(p.keywords.Minimum)
		}
	case formValues, formValue:
		m.wrong = p.wordOutside()
		m.value = mustMarshal(m.wrong)
		if m.wrong == "" {
			m.wrong = number10(p.keywords.Maximum)
			m.value = json.RawMessage(m.wrong)
		}
	case formDefault:
		m.value = p.otherThanDefault()
		m.wrong = strings.Trim(string(m.value), `"`)
	case formUnit:
		m.wrong = unitOf(p.Name).wrong
	case formField:
		if m.wrong = everyday[p.Name]; m.wrong == "" {
			m.wrong = strings.ReplaceAll(words(p.Name), " ", "_") + "_value"
		}
	case formTool, formDeprecated:
		m.wrong = c.deadName(t, r)
	case formWhen:
		m.other = firstTool(c.tools, func(o *tool) bool {
			return o.plugin == t.plugin && o != t && o != t.sibling && len(o.tasks) > 0 && o.needs == nil && o.from == nil
		})
		if m.other == nil || t.isShipped {
			return false
		}
		m.wrong = m.other.doc.Name
	case formBrief:
		m.other = t.sibling
	case formParameter:
		m.wrong = []string{"verbose_mode", "response_kind", "api_version", "with_details"}[r.IntN(4)]
		m.value = json.RawMessage(`"1"`)
	case formUseless:
		m.value = p.good[len(p.good)-1]
	}
	switch m.form {
	case formValue, formParameter, formUseless:
		return len(t.doc.Examples) > 0 && (m.form != formUseless || !slices.Contains(t.usual, p.Name))
	}
	return true
}

// number10 returns ten times a number.
func number10(n *json.Number) string {
	i, err := n.Int64()
	if err != nil {
		return n.String() + "0"
	}
	return fmt.Sprint(10 * max(i, 10))
}

func below(n *json.Number) json.RawMessage {
	i, _ := n.Int64() // a number that is not an integer becomes one far below
	return json.RawMessage(fmt.Sprint(i - 1))
}

// deadName returns the name of a tool that does not exist: that of another tool of the plugin, as it might have been
// called before.
func (c *catalog) deadName(t *tool, r *rand.Rand) string {
	var names []string
	for _, o := range c.tools {
		if o.plugin == t.plugin && o != t {
			names = append(names, o.doc.Name)
		}
	}
	base := t.doc.Name
	if len(names) > 0 {
		base = names[r.IntN(len(names))]
	}
	base = strings.ReplaceAll(words(base), " ", "_")
	for _, pair := range [][2]string{
		{"list_", "get_all_"}, {"get_", "fetch_"}, {"search_", "find_"}, {"create_", "add_"},
	} {
		if rest, ok := strings.CutPrefix(base, pair[0]); ok {
			return pair[1] + rest
		}
	}
	return base + "_v1"
}

var brackets = strings.NewReplacer("[", "", "]", "")

// fill puts the words of a misstatement in its wording, and sets the core. With the right word in the place of the
// wrong one the sentence is true.
func (m *misstatement) fill(word string) string {
	values := []string{"{wrong}", word, "{param}", "", "{a}", "", "{b}", "", "{low}", "", "{low2}", "", "{task}", ""}
	if p := m.param; p != nil {
		values[3] = p.Name
		if len(p.Enum) > 1 {
			values[5], values[7] = strings.Trim(string(p.Enum[0]), `"`), strings.Trim(string(p.Enum[1]), `"`)
		}
		if low := p.keywords.Minimum; low != nil {
			values[9], values[11] = string(below(low)), low.String()
		}
	}
	if len(m.tool.tasks) > 0 {
		task := m.tool.tasks[0]
		values[13] = strings.ToLower(task[:1]) + strings.TrimRight(task[1:], ".?")
	}
	text := strings.NewReplacer(values...).Replace(m.wording)
	if _, rest, ok := strings.Cut(text, "["); ok {
		m.core, _, _ = strings.Cut(rest, "]")
	}
	return brackets.Replace(text)
}

// truth returns the sentence of a misstatement as it would be true, "" if it cannot be.
func (m *misstatement) truth() string {
	p := m.param
	var right string
	switch m.form {
	case formBound:
		right = p.keywords.Maximum.String()
		if strings.Contains(m.wording, "{low}") {
			return ""
		}
	case formValues:
		right = strings.Trim(string(p.Enum[len(p.Enum)-1]), `"`)
	case formDefault:
		right = strings.Trim(string(p.Default), `"`)
	case formUnit:
		right = unitOf(p.Name).right
	case formField:
		right = p.Name
	case formTool:
		if len(m.tool.doc.Needs) == 0 {
			return ""
		}
		_, right, _ = strings.Cut(m.tool.doc.Needs[0], ".")
	default:
		return ""
	}
	of := *m
	return of.fill(right)
}

// applyTruth returns the documentation with the sentence as it would be true, if it can be.
func (m *misstatement) applyTruth(doc manifest.Tool) manifest.Tool {
	if text := m.truth(); text != "" {
		return m.say(doc, text)
	}
	return doc
}

// apply returns the documentation with the misstatement.
func (m *misstatement) apply(doc manifest.Tool) manifest.Tool { return m.say(doc, m.text) }

func (m *misstatement) say(doc manifest.Tool, text string) manifest.Tool {
	switch m.form {
	case formBrief:
		doc.Docs.Brief = m.other.doc.Docs.Brief
	case formWhen:
		doc.WhenNot = text
	case formDeprecated:
		doc.Deprecated = &manifest.Deprecated{Message: text, Use: m.wrong}
	case formValue, formParameter, formUseless:
		doc.Examples = slices.Clone(doc.Examples)
		if m.wording == "only" {
			doc.Examples = doc.Examples[:1]
		}
		name := m.wrong
		if m.param != nil {
			name = m.param.Name
		}
		doc.Examples[0].Params = jsontext.Set(doc.Examples[0].Params, nil, name, m.value)
	default:
		if m.param == nil || m.form == formField || strings.Contains(m.wording, "{param}") {
			doc.Docs.Standard = sentences(doc.Docs.Standard, text)
			return doc
		}
		doc.Params = changeProperty(doc.Params, m.param.Name, func(p map[string]json.RawMessage) {
			var before string
			_ = json.Unmarshal(p["description"], &before) // there may be none
			if m.instead {
				before = strings.TrimSpace(strings.Replace(before, kindOf(m.param.Name).says, "", 1))
			}
			p["description"] = mustMarshal(sentences(before, text))
		})
	}
	return doc
}
