package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/lint/vocabulary"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Contradiction is a statement in a text of a tool that its schema, or the list of tools, denies.
type Contradiction struct {
	Pointer string // to the text, within the tool: /docs/standard, /params/properties/limit/description
	Said    string // the words of the statement, with single spaces
	Has     string // what is true instead
	Instead string // words that would agree with the schema; "" if the statement can only be left out
}

func (c Contradiction) String() string {
	return fmt.Sprintf("it says %s, but %s", quoted(c.Said), c.Has)
}

// Contradictions returns the statements in the texts of a tool that its schema denies: about bounds, lengths and
// counts, units, values, formats, defaults, examples, and what is required. It also returns parameters and tools that
// the texts name and that do not exist. Where the schema says nothing, nothing contradicts it. m must have all tools
// that the texts may name.
func Contradictions(m *manifest.Manifest, t *manifest.Tool) []Contradiction {
	return (&linter{m: m}).contradictions(t, nil)
}

func checkContradiction(l *linter, at string, t *manifest.Tool) {
	for _, c := range l.contradictions(t, nil) {
		l.add(at+c.Pointer, "%s", c)
	}
}

// toolTexts returns the texts of a tool that are searched for contradictions, each with its pointer.
func toolTexts(t *manifest.Tool) [][2]string {
	return [][2]string{{"/docs/brief", visible(t.Docs.Brief)}, {"/docs/standard", visible(t.Docs.Standard)},
		{"/docs/full", visible(t.Docs.Full)}, {"/when", visible(t.When)}, {"/when_not", visible(t.WhenNot)}}
}

// contradictions returns the statements in texts that are wrong, and with evidence also those that misled callers.
func (l *linter) contradictions(t *manifest.Tool, e *Evidence) (all []Contradiction) {
	add := func(at string, found []Contradiction) {
		for _, c := range found {
			c.Pointer, c.Said, c.Instead = at, strings.Trim(c.Said, " .,;:"), strings.Trim(c.Instead, " .,;:")
			all = lists.Add(all, c)
		}
	}
	names := &nameChecker{l: l, t: t, fields: allFields(t)}
	for i := range names.fields {
		f := &names.fields[i]
		if f.depth == 1 && !f.item && !f.isResult() {
			names.params = append(names.params, f)
		}
		at, text := f.pointer+"/description", f.description()
		add(at, f.denied(text, names))
		for _, s := range sentences(text) {
			if !f.isResult() && !f.isOpen() {
				add(at, names.denied(s, true))
			}
		}
		if e != nil && slices.Contains(names.params, f) {
			add(at, names.misleading(text, f, e))
		}
	}
	for _, text := range toolTexts(t) {
		for _, s := range sentences(text[1]) {
			if f, isNamed := names.subject(s); isNamed {
				add(text[0], f.denied(s, nil))
			} else if f != nil {
				add(text[0], append(f.deniedBounds(s), f.deniedDefault(s)...))
			} else {
				for _, f := range names.params {
					add(text[0], f.deniedLists(s, names))
				}
			}
			add(text[0], names.denied(s, false))
			for _, m := range said("both-required").FindAllStringSubmatch(s) {
				for _, f := range names.params {
					i := slices.IndexFunc(m, func(name string) bool { return sameName(name, f.name) })
					if i > 0 && names.knows(m[3-i]) && !f.required && !said("condition").MatchString(s) {
						add(text[0], []Contradiction{{"", m[0], fmt.Sprintf("%q is optional", f.name), ""}})
					}
				}
			}
			only := append(said("only-required").FindStringSubmatch(s), said("all-optional").FindString(s), "")
			needed := lists.Find(names.fields, func(f *field) bool { return f.isNeeded() && !sameName(f.name, only[1]) })
			if only[0] != "" && needed != nil && (only[1] == "" || names.knows(only[1])) {
				add(text[0], []Contradiction{{"", only[0], fmt.Sprintf("%q is required", needed.name), ""}})
			}
		}
		add(text[0], names.deniedObjects(text[1]))
		if e != nil {
			add(text[0], names.misleading(text[1], nil, e))
		}
	}
	return all
}

// Correction is a text of a tool without its contradictions.
type Correction struct {
	Pointer string // to the text, within the tool
	Param   string // the parameter that it describes; "" for a text of the tool
	Text    string // "" if nothing is left; never "" for a brief
	Why     string // what was wrong, as a sentence
}

// Corrections returns the texts of a tool, and the descriptions of its top-level parameters, that contain
// contradictions. Each wrong statement is replaced by what the schema says, or removed. With evidence, sentences that
// misled callers are removed, too.
func Corrections(m *manifest.Manifest, t *manifest.Tool, e *Evidence) (all []Correction) {
	texts := lists.Map(toolTexts(t), func(s [2]string) Correction { return Correction{Pointer: s[0], Text: s[1]} })
	for _, f := range paramsOf(t) {
		if f.depth == 1 && !f.item {
			texts = append(texts, Correction{Pointer: f.pointer + "/description", Param: f.name, Text: f.description()})
		}
	}
	for _, c := range (&linter{m: m}).contradictions(t, e) {
		at := func(o *Correction) bool { return o.Pointer == c.Pointer }
		if text := lists.Find(texts, at); text != nil {
			text.Text, text.Why = c.corrected(text.Text), cmp.Or(text.Why, c.String())
		}
	}
	return lists.Filter(texts, func(c Correction) bool {
		return c.Why != "" && (c.Text != "" || c.Pointer != "/docs/brief")
	})
}

func (c *Contradiction) corrected(text string) string {
	before, after, ok := strings.Cut(text, c.Said)
	switch {
	case !ok: // it was removed with another statement
		return text
	case c.Instead != "":
		return before + c.Instead + after
	case said("aside").MatchString(c.Said) && !said("ended").MatchString(before):
		return strings.TrimRight(before, " ,;:(") + strings.TrimLeft(after, ")")
	}
	kept := strings.TrimSpace(strings.Join(lists.Filter(sentences(text), func(s string) bool {
		return !strings.Contains(s, c.Said)
	}), ""))
	if start, continues := strings.CutSuffix(kept, ";"); continues {
		return start + "."
	}
	return kept
}

// sentences returns the sentences of a text, and the parts of sentences that stand alone.
func sentences(text string) (all []string) {
	for {
		end := said("sentence").FindStringIndex(text)
		if end == nil {
			return append(all, text)
		}
		all, text = append(all, text[:end[1]]), text[end[1]:]
	}
}

// isOpen reports whether a field holds objects whose members its schema does not name. Its text may name them.
func (f *field) isOpen() bool {
	items := field{schema: schemaOf(f.schema["items"])}
	return !f.has("properties") && f.is("object") || items.isMixed() && !items.has("properties")
}

// isMixed reports whether values of a field can be objects, or of several types.
func (f *field) isMixed() bool { return f.is("object") || f.has("anyOf", "oneOf", "allOf") }

func (f *field) isNeeded() bool {
	return f.required && f.depth == 1 && !f.item && !f.isResult() && !f.has("default")
}

func (f *field) isResult() bool  { return strings.HasPrefix(f.pointer, "/returns") }
func (f *field) isNumeric() bool { return f.is("integer") || f.is("number") }

// denied returns the statements of a text about a field that its schema denies. names is nil unless the text is the
// field's description.
func (f *field) denied(text string, names *nameChecker) (all []Contradiction) {
	for _, check := range []func(*field, string) []Contradiction{(*field).deniedBounds, (*field).deniedUnit,
		(*field).deniedDefault, (*field).deniedValues, (*field).deniedExample, (*field).deniedLiteral,
		(*field).deniedCharacters, (*field).deniedFormat, (*field).deniedNeed} {
		all = append(all, check(f, text)...)
	}
	if names != nil {
		all = append(all, f.strays(text, names)...)
	}
	return lists.Filter(all, func(c Contradiction) bool { // not if a part of it already says which words are wrong
		return !slices.ContainsFunc(all, func(o Contradiction) bool {
			return len(o.Said) < len(c.Said) && strings.Contains(c.Said, o.Said)
		})
	})
}

// deny returns a statement that contradicts has, which the schema of the field says.
func (f *field) deny(said, has, instead string) Contradiction {
	return Contradiction{"", said, fmt.Sprintf("the schema of %q has %s", f.name, has), instead}
}

// yesNo maps words for values of flags to booleans.
var yesNo = map[string]string{"yes": "true", "on": "true", "enabled": "true", "no": "false", "off": "false",
	"disabled": "false", "true": "true", "false": "false"}

// unquote returns a value of a text without its quotes, and reports whether it has quotes.
func unquote(s string) (string, bool) {
	if len(s) > 1 && strings.ContainsRune("\"'`", rune(s[0])) {
		return strings.Trim(s[1:len(s)-1], "\"'"), true
	}
	return s, false
}

// deniedDefault compares the defaults that a text says with the default of the schema. If one of them agrees, there
// is no contradiction.
func (f *field) deniedDefault(text string) (found []Contradiction) {
	_, values := f.enum()
	for _, p := range []string{"marked-default", "default-is", "is-default", "absent-is"} {
		for _, m := range said(p).FindAllStringSubmatch(text) {
			raw, quote := unquote(m[2])
			isWord := !quote && said("number").FindString(raw) == ""
			isPlain := m[1] == "" && !values[strings.ToLower(raw)] && !f.is("boolean")
			if isWord && (m[3] != "" || isPlain || said("no-default").MatchString(raw)) {
				continue
			}
			if !strings.Contains(m[0], "(") {
				m[0] = strings.TrimRight(m[0], " .,;)]")
			}
			switch has, same, known := f.isDefault(raw, m[3], quote); {
			case same:
				return nil
			case known && has == "":
				found = append(found, f.deny(m[0], "no such value", ""))
			case known:
				found = append(found, f.deny(m[0], "default "+has, strings.Replace(m[0], raw, has, 1)))
			}
		}
	}
	if len(found) == 0 {
		return f.impliedDefault(text)
	}
	return found[:1]
}

// impliedDefault compares the default with the values in clauses about a missing parameter.
func (f *field) impliedDefault(text string) []Contradiction {
	_, values := f.enum()
	for _, clause := range said("clause").Split(text) {
		if clause = strings.Trim(clause, " .,;:"); !said("absence").MatchString(clause) {
			continue
		}
		for _, m := range said("word").FindAllStringSubmatch(clause) {
			raw, quote := unquote(m[1])
			lower := strings.ToLower(raw)
			isFlag := f.is("boolean") && yesNo[lower] != "" && (quote || lower != "on" && lower != "no")
			if !isFlag && !values[lower] && said("number").FindString(raw) == "" {
				continue
			}
			if has, same, known := f.isDefault(raw, m[2], true); known && !same && has != "" {
				return []Contradiction{f.deny(clause, "default "+has, strings.Replace(clause, raw, has, 1))}
			}
			break
		}
	}
	return nil
}

// isDefault compares a value, followed by the word after, with the default. has is the default in the unit of that
// word.
func (f *field) isDefault(raw, after string, quote bool) (has string, same, known bool) {
	lower := strings.ToLower(raw)
	switch want := f.schema["default"].(type) {
	case json.Number:
		list := vocabulary.Numerals(raw + " " + after)
		v, err := want.Float64()
		if len(list) != 1 || list[0].From > 0 || err != nil {
			return "", false, false
		}
		said, scale, ok := f.in(&list[0], "")
		return digits(v * scale), ok && said == v, ok
	case bool:
		return fmt.Sprint(want), yesNo[lower] == fmt.Sprint(want), yesNo[lower] != ""
	case string:
		return want, strings.EqualFold(raw, want), quote && want != "" || said("plain").MatchString(want)
	}
	_, values := f.enum()
	return "", values[lower], len(values) > 0 && !f.has("default") && quote && said("plain").MatchString(raw)
}

// enum returns the texts of the enum of a field and of its items, and the set of them in lower case. It ignores an
// enum with values that are not texts.
func (f *field) enum() (list []string, set map[string]bool) {
	items, _ := f.schema["items"].(map[string]any)
	set = map[string]bool{}
	for _, s := range []map[string]any{f.schema, items} {
		raw, _ := s["enum"].([]any)
		if texts := jsontext.Texts(s["enum"]); len(texts) == len(raw) {
			list = append(list, texts...)
		}
	}
	for _, v := range list {
		set[strings.ToLower(v)] = true
	}
	return list, set
}

// deniedValues compares the values in a text with an enum.
func (f *field) deniedValues(text string) []Contradiction {
	return append(f.deniedLists(text, nil), f.deniedKeys(text)...)
}

// deniedLists compares the lists of values in a text with an enum. names is set for a text that does not name the
// field. Such a text counts only if a list has several values of the field, and one that names does not know.
func (f *field) deniedLists(text string, names *nameChecker) []Contradiction {
	list, values := f.enum()
	enum := strings.Join(list, ", ")
	properties, _ := schemaOf(f.root)["properties"].(map[string]any)
	if len(values) == 0 {
		return nil
	}
	single := said("one-value").FindAllStringSubmatch(text)
	for i, m := range append(single, said("list").FindAllStringSubmatch(text)...) {
		list, known, unknown := cmp.Or(m[1:]...), 0, 0
		quotes := strings.ContainsAny(list, "\"'`")
		for _, raw := range said("item").FindAllString(list) {
			switch item, quote := unquote(raw); {
			case values[strings.ToLower(item)]:
				known++
			case names != nil && (names.knows(item) || len(item) < 3):
			case properties[item] == nil && quote == quotes && !said("no-value").MatchString(item) &&
				spelling.Fold(item) != spelling.Fold(f.name):
				unknown++
			}
		}
		// A plain word may mean anything, unless most words of the list are values.
		isOne, isPlain := i < len(single), i >= len(single) && (m[3] != "" || strings.HasPrefix(m[0], "(") && !quotes)
		isElse := names != nil && (known < 2 || isOne || strings.Contains(list, "/"))
		isAll := (quotes || strings.Contains(list, "|")) && said("explicit-list").MatchString(m[0])
		if unknown > 0 && !isElse && (isOne || isAll || known >= unknown && (!isPlain || known > unknown)) {
			instead := strings.Replace(m[0], strings.TrimRight(list, ".,;:)"), enum, 1)
			if isOne { // what is said about the value is not true of another one
				instead = ""
			}
			return []Contradiction{f.deny(m[0], "the values "+enum, instead)}
		}
	}
	return nil
}

// deniedKeys compares the values in a text that are each followed by an explanation with an enum.
func (f *field) deniedKeys(text string) []Contradiction {
	list, values := f.enum()
	known, unknown := map[string]bool{}, ""
	for _, m := range said("keyed-item").FindAllStringSubmatch(text) {
		item, _ := unquote(cmp.Or(m[1:]...))
		switch item = strings.ToLower(item); {
		case values[item]:
			known[item] = true
		case spelling.Fold(item) != spelling.Fold(f.name):
			unknown = cmp.Or(unknown, item)
		}
	}
	if unknown == "" || len(known) < 2 || len(known) < len(list)-1 {
		return nil
	}
	return []Contradiction{f.deny(unknown, "the values "+strings.Join(list, ", "), "")}
}

// deniedExample validates the examples of a text.
func (f *field) deniedExample(text string) (all []Contradiction) {
	items, _ := f.schema["items"].(map[string]any)
	_, values := f.enum()
	if f.isMixed() || f.is("boolean") || !f.has("type", "enum") || (&field{schema: items}).isMixed() {
		return nil
	}
	for _, m := range said("example").FindAllStringSubmatch(text) {
		raw, quote := unquote(strings.TrimRight(m[1], ","))
		if said("placeholder").MatchString(raw) || len(values) > 0 && !said("plain").MatchString(raw) {
			continue
		}
		candidates := []any{raw}
		if v, err := jsontext.Decode([]byte(raw), jsontext.Limits{}); err == nil {
			candidates = append(candidates, v)
		} else if isLast := !strings.HasSuffix(m[0], " "); !quote && !said("literal").MatchString(raw) &&
			(len(values) == 0 || !isLast) {
			continue
		}
		if items != nil {
			candidates = append(candidates, lists.Map(candidates, func(v any) any { return []any{v} })...)
		}
		expected, format := "", fmt.Sprint(f.schema["format"])
		isOf := slices.ContainsFunc(candidates, func(v any) bool {
			found := f.violations(v)
			for _, v := range found {
				expected = cmp.Or(expected, v.Expected)
			}
			return len(found) == 0 || found[0].Keyword == "minItems"
		})
		isLiteral := quote || format == "uuid" || said("date-like").MatchString(raw)
		if hasForm := forms[format]; isOf && hasForm != nil && isLiteral {
			isOf, expected = hasForm(raw), "the format "+format
		}
		if !isOf {
			m[0] = strings.TrimRight(m[0], " .,;)")
			all = append(all, Contradiction{"", m[0], fmt.Sprintf("the schema of %q expects %s", f.name, expected), ""})
		}
	}
	return all
}

// deniedLiteral validates the lists in JSON that a text gives as examples.
func (f *field) deniedLiteral(text string) (all []Contradiction) {
	for _, at := range said("list-example").FindAllStringIndex(text) {
		var given []any
		in := json.NewDecoder(strings.NewReader(text[at[1]-1:]))
		if in.UseNumber(); !f.is("array") || in.Decode(&given) != nil {
			continue
		}
		if v := f.violations(given); len(v) > 0 {
			all = append(all, Contradiction{"", text[at[0] : at[1]-1+int(in.InputOffset())],
				fmt.Sprintf("the schema of %q expects %s", f.name, v[0].Expected), ""})
		}
	}
	return all
}

// deniedCharacters compares the only kind of characters that a text allows with a pattern. It tries values of up to 40
// of them.
func (f *field) deniedCharacters(text string) []Contradiction {
	for _, of := range [][]string{{"all-digits", "1", "1234567890", "0"}, {"all-lower", "a", "abcdef"},
		{"all-upper", "A", "ABCDEF"}} {
		said := said(of[0]).FindString(text)
		if said != "" && f.has("pattern") && !slices.ContainsFunc(of[1:], func(s string) bool {
			for n := range 41 {
				if len(f.violations(strings.Repeat(s, n)[:n])) == 0 {
					return true
				}
			}
			return false
		}) {
			return []Contradiction{f.deny(said, fmt.Sprintf("pattern %v", f.schema["pattern"]), "")}
		}
	}
	return nil
}

// strays returns the sentences in the description of a field that have a word in quotes that its schema refuses.
// Nothing else must say that the word is not a value.
func (f *field) strays(text string, names *nameChecker) (all []Contradiction) {
	_, values := f.enum()
	isFormed := len(values) == 0 && f.is("string") && f.has("pattern", "maxLength", "minLength")
	for _, s := range sentences(text) {
		for _, at := range said("quoted-item").FindAllStringIndex(s) {
			item, _ := unquote(s[at[0]:at[1]])
			isRefused := isFormed && len(f.violations(item)) > 0 || len(values) > 0 && !values[strings.ToLower(item)]
			if isRefused && !names.knows(item) && !said("part-of-value").MatchString(s[:at[0]]) {
				all = append(all, f.deny(s, "no value "+item, ""))
			}
		}
	}
	return all
}

// forms has checks for formats that schemas do not assert.
var forms = map[string]func(string) bool{
	"date":      func(s string) bool { _, err := time.Parse(time.DateOnly, s); return err == nil },
	"date-time": func(s string) bool { _, err := time.Parse(time.RFC3339, s); return err == nil },
	"email":     func(s string) bool { return strings.Contains(s, "@") },
	"uri":       func(s string) bool { return strings.Contains(s, ":") },
	"uuid":      func(s string) bool { return len(s) == 36 && strings.Count(s, "-") == 4 },
}

// formatWords are the formats that patterns of [said] find in texts, and the words that replace them.
var formatWords = [][2]string{{"date", "YYYY-MM-DD"}, {"date-time", "ISO 8601 date-time"}, {"local", ""},
	{"time", "HH:MM:SS"}, {"unix", ""}, {"email", "email address"}, {"uri", "URL"}, {"phone", ""},
	{"uuid", "UUID"}}

// typeWords are the types that patterns of [said] find denied in texts, and the words that replace them.
var typeWords = [][2]string{{"array", "array"}, {"boolean", "true or false"}}

// sameFormats maps formats to the ones that texts call by the same name.
var sameFormats = map[string]string{"uri-reference": "uri", "iri": "uri", "url": "uri", "idn-email": "email"}

// deniedFormat compares the format that a text says with the format of the schema, and with its type.
func (f *field) deniedFormat(text string) (found []Contradiction) {
	for _, w := range typeWords {
		if m := said("not-" + w[0]).FindString(text); m != "" && f.is(w[0]) {
			return []Contradiction{f.deny(m, "type "+w[0], w[1])}
		}
	}
	given, _ := f.schema["format"].(string)
	format, instead := cmp.Or(sameFormats[given], given), ""
	for _, w := range formatWords {
		if w[0] == format && f.is("string") {
			instead = w[1]
		}
	}
	if !f.isNumeric() && instead == "" {
		return nil
	}
	for _, w := range formatWords {
		m := strings.Trim(said("format-"+w[0]).FindString(text), " .,;:)`'\"")
		switch {
		case m == "" || f.isNumeric() && (w[0] == "uri" || w[0] == "email" || w[0] == "phone"): // a number may identify one
		case f.isNumeric() && w[0] == "unix", w[0] == format,
			strings.Contains(m, "8601") && (format == "time" || strings.HasPrefix(format, "date")):
			return nil
		case f.isNumeric():
			found = append(found, f.deny(m, "type "+jsontext.Texts(f.schema["type"])[0], ""))
		default:
			found = append(found, f.deny(m, "format "+given, instead))
		}
	}
	return found[:min(1, len(found))]
}

// deniedNeed compares whether a parameter is required according to a text and to the schema.
func (f *field) deniedNeed(text string) []Contradiction {
	root := field{schema: schemaOf(f.root)}
	if f.item || f.isResult() || root.has("anyOf", "oneOf", "allOf", "if") || strings.Contains(f.pointer, "Of/") ||
		f.has("default") && f.required {
		return nil
	}
	says, not := "required", "optional"
	if f.required {
		says, not = "optional", "required"
	}
	const it = "this parameter"
	quoted, bare := "`"+f.name+"`", f.name
	if len(bare) < 3 { // a part of most words
		bare = quoted
	}
	name := strings.NewReplacer("The "+quoted, it, "The "+bare, it, quoted, it, "'"+f.name+"'", it, bare, it)
	for _, s := range sentences(text) {
		plain := name.Replace(s)
		at := said(says).FindStringIndex(plain)
		if at != nil && !said("condition").MatchString(plain[:at[0]]) && !said("condition-next").MatchString(plain[at[1]:]) {
			words := plain[at[0]:at[1]]
			if !strings.Contains(s, words) {
				words = s
			}
			return []Contradiction{{"", words, fmt.Sprintf("%q is %s", f.name, not), ""}}
		}
	}
	return nil
}

func schemaOf(root any) map[string]any { s, _ := root.(map[string]any); return s }

// nameChecker looks for names of parameters and tools that do not exist.
type nameChecker struct {
	l      *linter
	t      *manifest.Tool
	fields []field
	params []*field        // the top-level parameters
	known  map[string]bool // folded names and values of the tool; nil until they are needed
}

// denied returns the names in a sentence that do not exist. own says that the sentence is from the description of a
// field.
func (n *nameChecker) denied(text string, own bool) (all []Contradiction) {
	about := strings.Join(said("number-of").Split(text), "")
	for i, p := range []string{"names-parameter", "names-field", "sets-field", "beside-field"} {
		for _, m := range said(p).FindAllStringSubmatch(text) {
			name := cmp.Or(m[1:]...)
			if !n.knows(name) && name != strings.ToUpper(name) && !words("proper")[strings.ToLower(name)] &&
				!n.ofNamedTool(name, text) && !n.ofResult(name) &&
				(i == 0 || !said("of-others").MatchString(about)) &&
				(i < 2 || !own || i == 3 || isShaped(name)) && (i < 3 || !verbs()[spelling.Words(name)[0]]) {
				all = append(all, Contradiction{"", m[0], fmt.Sprintf("%q has no parameter %s", n.t.Name, name),
					near(m[0], name, lists.Map(n.fields, func(f field) string { return f.name }))})
			}
		}
	}
	for _, m := range said("names-tool").FindAllStringSubmatch(text) {
		name := cmp.Or(m[1:]...)
		words := spelling.Words(name)
		isLike := len(words) > 1 && n.isLikeTools(name) && (verbs()[words[0]] || words[0] == spelling.Words(n.t.Name)[0])
		if !isLike && !said("surely-tool").MatchString(m[0]) {
			continue
		}
		tools := lists.Map(n.l.m.Tools, func(t manifest.Tool) string { return t.Name })
		if other := n.l.m.Tool(name); other != nil && !sameName(other.Name, n.t.Name) && (other.Deprecated != nil ||
			said("deprecated").MatchString(other.Docs.Brief+" "+other.Docs.Standard)) {
			all = append(all, Contradiction{"", m[0], name + " is deprecated", ""})
		} else if !n.knows(name) {
			all = append(all, Contradiction{"", m[0], "there is no tool " + name, near(m[0], name, tools)})
		}
	}
	return all
}

// ofNamedTool reports whether a name belongs to a field of another tool that the text names.
func (n *nameChecker) ofNamedTool(name, text string) bool {
	return slices.ContainsFunc(n.l.m.Tools, func(t manifest.Tool) bool {
		isIt := func(f field) bool { return sameName(f.name, name) }
		return strings.Contains(text, manifest.LocalName(t.Name)) && slices.ContainsFunc(allFields(&t), isIt)
	})
}

// ofResult reports whether a text of the tool names a field of its results like this.
func (n *nameChecker) ofResult(name string) bool {
	return slices.ContainsFunc(sentences(n.t.Docs.Standard+" "+n.t.Docs.Full), func(s string) bool {
		return strings.Contains(s, "`"+name+"`") && said("result-fields").MatchString(s)
	})
}

// isShaped reports whether a word is written like a name: it consists of several words without a space.
func isShaped(name string) bool { return len(spelling.Words(name)) > 1 }

// isLikeTools reports whether a name is written like the tool's name: with the same separator between its words.
func (n *nameChecker) isLikeTools(name string) bool {
	bare := manifest.LocalName(n.t.Name)
	return isShaped(bare) && strings.Contains(name, "_") == strings.Contains(bare, "_") &&
		strings.Contains(name, "-") == strings.Contains(bare, "-")
}

// near replaces a name in a text by the candidate that it resembles, or returns "" if there is none.
func near(said, name string, candidates []string) string {
	if near := spelling.Nearest(name, candidates, 1); len(near) > 0 {
		return strings.Replace(said, name, near[0].Name, 1)
	}
	return ""
}

// knows reports whether a name exists as a field, a value, a tool, a group or a plugin.
func (n *nameChecker) knows(name string) bool {
	if n.known == nil {
		n.known = map[string]bool{}
		add := func(names ...string) {
			for _, name := range names {
				n.known[spelling.Fold(name)] = true
			}
		}
		for _, raw := range []json.RawMessage{n.t.Params, n.t.Returns} {
			jsontext.Values(schemaNode(raw), func(tokens []string, v any) {
				s, _ := v.(string)
				add(s)
				add(tokens[max(0, len(tokens)-1):]...)
			})
		}
		for _, t := range n.l.m.Tools {
			add(t.Name, manifest.LocalName(t.Name), t.Group)
			add(t.Aliases...)
		}
		for _, p := range n.l.others {
			add(p.Name)
			add(lists.Map(p.Tools, func(t *manifest.Tool) string { return manifest.LocalName(t.Name) })...)
		}
		add(n.l.m.Name, "true", "false", "null", "undefined")
	}
	return n.known[spelling.Fold(name)]
}

// subject returns the one parameter that a sentence is about, or nil if it names none or several. A sentence about
// the number of results is about the parameter that limits them, even if it does not name it; isNamed is then false.
func (n *nameChecker) subject(sentence string) (f *field, isNamed bool) {
	var named, limits []*field
	for _, f := range n.params {
		if words("limits")[spelling.Fold(f.name)] {
			limits = append(limits, f)
		}
		name := regexp.QuoteMeta(f.name)
		says := `\b` + name + `\b`
		if !isShaped(f.name) {
			says = "[`'\"]" + name + "[`'\"]" + `|\b(?:[Pp]arameter|[Gg]ive|[Ss]et|[Ll]eave out|[Oo]mit|[Uu]nit of) ` + name + `\b|\b` + name + `(?: (?:field|parameter|argument|option|defaults|must|can|may|is|accepts|` +
				`takes)\b|:|=| ?\()`
		}
		if strings.Contains(sentence, f.name) && regexp.MustCompile(says).MatchString(sentence) {
			named = append(named, f)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], true
	case len(named) > 0:
		return nil, false
	case len(limits) == 1 && said("results").MatchString(sentence):
		return limits[0], false
	}
	for _, number := range vocabulary.Numerals(sentence) {
		for _, f := range n.params {
			if !f.is("string") && sameName(f.name, number.After) {
				return f, false
			}
		}
	}
	return nil, false
}

// deniedObjects validates the JSON objects that a text gives as examples of parameters.
func (n *nameChecker) deniedObjects(text string) (all []Contradiction) {
	for _, at := range said("object-example").FindAllStringIndex(text) {
		var given map[string]any
		in := json.NewDecoder(strings.NewReader(text[at[1]-1:]))
		if in.UseNumber(); in.Decode(&given) != nil {
			continue
		}
		whole, known, wrong := text[at[0]:at[1]-1+int(in.InputOffset())], false, ""
		for _, key := range sortedKeys(given) {
			at := slices.IndexFunc(n.params, func(f *field) bool { return f.name == key })
			if known = known || at >= 0; at < 0 && !n.knows(key) {
				wrong = fmt.Sprintf("%q has no parameter %s", n.t.Name, key)
			} else if at >= 0 {
				for _, v := range n.params[at].violations(given[key]) {
					wrong = fmt.Sprintf("the schema of %q expects %s", key, v.Expected)
				}
			}
		}
		if known && wrong != "" {
			all = append(all, Contradiction{"", whole, wrong, ""})
		}
	}
	return all
}
