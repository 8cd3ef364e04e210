package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Contradiction is a statement in a text of a tool that its schema, or the list of tools, denies.
type Contradiction struct {
	Pointer string // of the text, in the tool: /docs/standard, /params/properties/limit/description
	Said    string // the words of the statement, with single spaces
	Has     string // what is so instead
	Instead string // the words that would agree; "" if the statement can only be left out
}

// Contradictions returns what the texts of a tool say that its schema denies: about bounds, lengths and counts, units,
// values, formats, defaults, examples, and what is required; and the fields and tools that they name and that do not
// exist. What a schema leaves open contradicts nothing. A text about other tools needs m to have all of its tools.
func Contradictions(m *manifest.Manifest, t *manifest.Tool) []Contradiction {
	return (&linter{m: m}).contradictions(t)
}

func checkContradiction(l *linter, at string, t *manifest.Tool) {
	for _, c := range l.contradictions(t) {
		l.add(at+c.Pointer, "it says %s, but %s", quoted(c.Said), c.Has)
	}
}

func (l *linter) contradictions(t *manifest.Tool) []Contradiction {
	var all []Contradiction
	add := func(at string, found ...denial) {
		for _, d := range found {
			c := Contradiction{at, strings.Trim(d.said, " .,;:"), d.has, strings.Trim(d.instead, " .,;:")}
			if !slices.ContainsFunc(all, func(o Contradiction) bool { return o.Said == c.Said && o.Has == c.Has }) {
				all = append(all, c)
			}
		}
	}
	fields := allFields(t)
	names := &nameChecker{l: l, t: t, fields: fields}
	for i := range fields {
		if f := &fields[i]; f.description() != "" {
			add(f.pointer+"/description", f.denied(f.description())...)
			if strings.HasPrefix(f.pointer, "/params") {
				for _, s := range sentences(f.description()) {
					add(f.pointer+"/description", names.denied(s, true)...)
				}
			}
		}
	}
	for _, text := range [][2]string{{"/docs/brief", t.Docs.Brief}, {"/docs/standard", t.Docs.Standard},
		{"/docs/full", t.Docs.Full}, {"/when", t.When}, {"/when_not", t.WhenNot}} {
		for _, s := range sentences(visible(text[1])) {
			if f, named := names.subject(s); named {
				add(text[0], f.denied(s)...)
			} else if f != nil {
				add(text[0], append(f.deniedBounds(s), f.deniedDefault(s)...)...)
			}
			add(text[0], names.denied(s, false)...)
		}
	}
	return all
}

// denial is a statement that a schema denies.
type denial struct{ said, has, instead string }

// denied returns the statements of a text about a field that its schema denies.
func (f *field) denied(text string) (all []denial) {
	for _, check := range []func(*field, string) []denial{(*field).deniedBounds, (*field).deniedDefault,
		(*field).deniedValues, (*field).deniedExample, (*field).deniedFormat, (*field).deniedUnit, (*field).deniedNeed} {
		all = append(all, check(f, text)...)
	}
	return all
}

// sentences cuts a text after full stops and semicolons that end a clause.
var clauseEnd = lazy.Pattern(`[^.]{3}[.!?]\s+|;\s+|\s-\s`)

func sentences(text string) (all []string) {
	for {
		end := clauseEnd().FindStringIndex(text)
		if end == nil {
			return append(all, text)
		}
		all, text = append(all, text[:end[1]]), text[end[1]:]
	}
}

// unit is a unit of a dimension, with its size in the smallest one.
type unit struct {
	dimension string
	size      float64
	name      string
}

// units are the units that texts and names of fields use.
var units = sync.OnceValue(func() map[string]unit {
	all := map[string]unit{}
	for _, row := range strings.Split(`time .001 microseconds microsecond us
		time 1 milliseconds millisecond millis ms msec
		time 1000 seconds second secs sec s
		time 60000 minutes minute mins
		time 3600000 hours hour hrs
		time 86400000 days day
		time 604800000 weeks week
		size 1 bytes byte
		size 1024 kilobytes kilobyte kb kib
		size 1048576 megabytes megabyte mb mib
		size 1073741824 gigabytes gigabyte gb gib
		length .001 millimeters mm
		length .01 centimeters cm
		length 1 meters meter metres metre
		length 1000 kilometers kilometer kilometres km
		length 1609.344 miles mile
		length .3048 feet foot
		length .0254 inches inch
		length-px 1 pixels pixel px
		share 1 percent % pct percentage
		text 1 characters character chars char letters
		tokens 1 tokens token
		angle 1 degrees
		angle 57.29578 radians
		temperature-celsius 1 celsius
		temperature-fahrenheit 1 fahrenheit
		temperature-kelvin 1 kelvin
		weight 1 grams gram
		weight 1000 kilograms kilogram kg
		weight 453.592 pounds lbs`, "\n") {
		words := strings.Fields(row)
		size, _ := strconv.ParseFloat(words[1], 64)
		for _, word := range words[2:] {
			all[word] = unit{words[0], size, words[2]}
		}
	}
	return all
})

// inUnit is how a text says the unit of a field.
var inUnit = lazy.Pattern(`(?i)\b(?:in|as|number of) ([a-z]+|%)(?:$|[\s,.;:)])|\(([a-z]+|%)[,;)]|^([a-z]+)\b`)

// said returns the units that a text says a field is in.
func saidUnits(text string) (list []unit, words []string) {
	for _, m := range inUnit().FindAllStringSubmatch(text, -1) {
		word := cmp.Or(m[1], m[2], m[3])
		if u, ok := units()[strings.ToLower(word)]; ok && len(word) > 1 {
			list, words = append(list, u), append(words, m[0])
		}
	}
	return list, words
}

// nameUnit is the unit that ends the name of a field, as in timeout_ms.
func (f *field) nameUnit() (unit, bool) {
	words := spelling.Words(f.name)
	if len(words) == 0 {
		return unit{}, false
	}
	u, ok := units()[words[len(words)-1]]
	return u, ok && (f.is("integer") || f.is("number")) && (len(words) > 1 || len(words[0]) > 4)
}

// unit is the unit of a field, by its name or by the one that its description says.
func (f *field) unit() (unit, bool) {
	if u, ok := f.nameUnit(); ok {
		return u, true
	}
	said, _ := saidUnits(f.description())
	if len(said) == 0 || slices.ContainsFunc(said, func(u unit) bool { return u != said[0] }) {
		return unit{}, false
	}
	return said[0], true
}

// like is what a unit measures; only those of one dimension convert.
func like(u unit) string { what, _, _ := strings.Cut(u.dimension, "-"); return what }

// deniedUnit compares the unit of a text with that of the field.
func (f *field) deniedUnit(text string) []denial {
	own, ok := f.unit()
	said, words := saidUnits(text)
	if !ok || slices.Contains(said, own) {
		return nil
	}
	for i, u := range said {
		if like(u) == like(own) {
			word := inUnit().FindStringSubmatch(words[i])
			return []denial{{words[i], fmt.Sprintf("%q is in %s", f.name, own.name),
				strings.Replace(words[i], cmp.Or(word[1], word[2], word[3]), own.name, 1)}}
		}
	}
	return nil
}

// Words before and after a number that make it a bound.
var (
	numberWord = lazy.Pattern(`-?\d[\d,_]*(?:\.\d+)?|\b(?:zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b`)
	wordAfter  = lazy.Pattern(`^[ -]?(%|[a-zA-Z]+)`)
	mostBefore = lazy.Pattern(`(?i)(?:\bup to|\bat most|\bno (?:more|longer|greater|larger|higher) than|\b(?:not|never|cannot) (?:be )?` +
		`(?:exceed|more than|longer than|greater than)|\b(?:max|maximum)(?: (?:of|is|are|value|length|size|allowed|number|limit|count|` +
		`items))*|\blimited to|\bcapped at|<=|≤|\bless than or equal to)[:=]? ?$`)
	leastBefore = lazy.Pattern(`(?i)(?:\bat least|\b(?:no|not) (?:fewer|less|shorter|lower) than|\b(?:min|minimum)(?: (?:of|is|are|value|` +
		`length|size|allowed|number|limit|count|items))*|>=|≥|\bgreater than or equal to|\bstart(?:s|ing)? (?:at|from|with))[:=]? ?$`)
	mostAfter     = lazy.Pattern(`(?i)^(?: [a-z]+)? ?(?:\(?max(?:imum)?\b|or (?:less|fewer)\b|at most\b)`)
	leastAfter    = lazy.Pattern(`(?i)^(?: [a-z]+)? ?(?:\(?min(?:imum)?\b|or (?:more|greater|higher|longer)\b|at least\b)|^-(?:based|indexed)\b`)
	exactBefore   = lazy.Pattern(`(?i)\bexactly $`)
	exactAfter    = lazy.Pattern(`(?i)^[ -](?:characters?|digits?|letters?|items|elements|entries)(?: long| in length|$|[.,;)])|^-(?:character|digit|letter)\b`)
	rangeBefore   = lazy.Pattern(`(?i)\b(?:between|from) $`)
	rangeBetween  = lazy.Pattern(`(?i)^(?: ?[a-z%]+)? ?(?:-|–|—|to|and|\.\.\.?|through|,) ?$`)
	countedAs     = lazy.Words(`character characters chars char letters letter digits digit long symbols`)
	manyNumerals  = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve")
	fixedLengths  = lazy.Pattern(`^\^(?:\[[^\]]+\]|\\[dw])\{(\d+)(,\d*)?\}\$$`) // a pattern of one kind of character
	nearestNumber = func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
)

// numeral is a number in a text, with the word after it.
type numeral struct {
	from, to int
	value    float64
	after    string
}

func numerals(text string) (all []numeral) {
	for _, at := range numberWord().FindAllStringIndex(text, -1) {
		literal := strings.TrimRight(text[at[0]:at[1]], ",_")
		n := numeral{from: at[0], to: at[0] + len(literal)}
		if i := slices.Index(manyNumerals, strings.ToLower(literal)); i >= 0 {
			n.value = float64(i)
		} else if v, err := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(literal), 64); err == nil {
			n.value = v
		} else {
			continue
		}
		if n.from > 0 && text[n.from] == '-' && text[n.from-1] != ' ' && text[n.from-1] != '(' && text[n.from-1] != '[' {
			n.from, n.value = n.from+1, -n.value // the end of a range
		}
		if m := wordAfter().FindStringSubmatch(text[n.to:]); m != nil {
			n.after = strings.ToLower(m[1])
		}
		all = append(all, n)
	}
	return all
}

// in returns the value of a numeral in the unit of a field, and false if it is a number of something else.
func (n *numeral) in(f *field, of string) (float64, float64, bool) {
	u, measured := units()[n.after]
	switch own, known := f.unit(); {
	case of != "":
		return n.value, 1, countedAs()[n.after] == (of == "characters") && (!measured || of == "characters")
	case !measured || known && own == u:
		return n.value, 1, !countedAs()[n.after] && !strings.HasPrefix(n.after, "kmb")
	case known && own.dimension == u.dimension:
		return n.value * u.size / own.size, own.size / u.size, true
	}
	return 0, 0, false
}

// bounds are those of a field's values, lengths or counts, by keywords.
type bounds struct {
	least, most         *float64
	leastName, mostName string
	of                  string // characters, items or "" for the value itself
}

func (f *field) bounds() (b bounds) {
	get := func(key string, step float64) *float64 {
		n, ok := f.schema[key].(json.Number)
		v, err := n.Float64()
		if !ok || err != nil || schema.IsTypeEnd(n.String()) || math.Abs(v) > 1e15 {
			return nil
		}
		if f.is("integer") {
			v += step
		}
		return &v
	}
	switch {
	case f.is("integer") || f.is("number"):
		return bounds{cmp.Or(get("minimum", 0), get("exclusiveMinimum", 1)), cmp.Or(get("maximum", 0), get("exclusiveMaximum", -1)),
			"minimum", "maximum", ""}
	case f.is("array"):
		return bounds{get("minItems", 0), get("maxItems", 0), "minItems", "maxItems", "items"}
	case !f.is("string"):
		return bounds{}
	}
	b = bounds{get("minLength", 0), get("maxLength", 0), "minLength", "maxLength", "characters"}
	pattern, _ := f.schema["pattern"].(string)
	if m := fixedLengths().FindStringSubmatch(pattern); m != nil && b.least == nil && b.most == nil {
		least, _ := strconv.ParseFloat(m[1], 64)
		b.least, b.leastName, b.mostName = &least, "a pattern of length", "a pattern of length"
		if most, err := strconv.ParseFloat(cmp.Or(strings.TrimPrefix(m[2], ","), m[1]), 64); err == nil && m[2] != "," {
			b.most = &most
		}
	}
	return b
}

// deniedBounds compares the bounds that a text says with those of the schema. Where a text says several, one that agrees
// is enough: the others are about something else.
func (f *field) deniedBounds(text string) (all []denial) {
	b := f.bounds()
	if b.least == nil && b.most == nil {
		return nil
	}
	var wrong [2]*denial // of the least and of the most
	var right [2]bool
	list := numerals(text)
	compare := func(i int, n numeral, from int) {
		said, scale, ok := n.in(f, b.of)
		has, name := b.least, b.leastName
		if i == 1 {
			has, name = b.most, b.mostName
		}
		switch {
		case !ok || has == nil:
		case math.Abs(said-*has) < 1e-9*math.Max(1, math.Abs(said)):
			right[i] = true
		case wrong[i] == nil:
			wrong[i] = &denial{text[from:n.to], fmt.Sprintf("the schema of %q has %s %s", f.name, name, nearestNumber(*has)),
				text[from:n.from] + nearestNumber(*has*scale)}
		}
	}
	for i, n := range list {
		before, after := text[:n.from], text[n.to:]
		start := func(p *regexp.Regexp) int { return p.FindStringIndex(before)[0] }
		if i+1 < len(list) {
			between := text[n.to:list[i+1].from]
			if m := rangeBetween().FindString(between); m != "" && (!strings.Contains(between, "and") || rangeBefore().MatchString(before)) &&
				(!strings.Contains(between, ",") || strings.HasSuffix(before, "[") || strings.HasSuffix(before, "(")) {
				n.after = list[i+1].after
				compare(0, n, n.from)
				compare(1, list[i+1], n.from)
				continue
			}
		}
		switch {
		case mostBefore().MatchString(before):
			compare(1, n, start(mostBefore()))
		case leastBefore().MatchString(before):
			compare(0, n, start(leastBefore()))
		case exactBefore().MatchString(before) || exactAfter().MatchString(after):
			for i, outside := range []func(said, has float64) bool{func(s, h float64) bool { return s < h }, func(s, h float64) bool { return s > h }} {
				if has := []*float64{b.least, b.most}[i]; has != nil && outside(n.value, *has) {
					compare(i, n, n.from)
				}
			}
		case mostAfter().MatchString(after):
			compare(1, n, n.from)
		case leastAfter().MatchString(after):
			compare(0, n, n.from)
		}
	}
	for i, d := range wrong {
		if d != nil && !right[i] {
			all = append(all, *d)
		}
	}
	return all
}

var (
	token      = `("[^"]*"|'[^']*'|` + "`[^`]*`" + `|-?\d[\d,_]*(?:\.\d+)?|[A-Za-z][\w-]*)`
	defaultsTo = lazy.Pattern(`(?i)\bdefault(?:s|ed)?(?: value)?(?: ?(?:is|to|as|of|:|=))*( )?` + token + `(?: ?(%|[a-zA-Z]+))?([.,;)\]]|$| )`)
	byDefault  = lazy.Pattern(`(?i)` + token + `(?: ([a-z]+))? (?:by default\b|\(default\))`)
	exampleIs  = lazy.Pattern(`(?i)(?:\be\.g\.|\bfor example|\bexamples?:|\bsuch as)[,:]? ("[^"]*"|'[^']*'|` + "`[^`]*`" +
		`|-?\d+(?:\.\d+)?(?:[.,;)]?(?: |$)))`)
	placeholder = lazy.Pattern(`[<>{}\[\]*…=]|\.\.\.|XXX|^/`)
	emptyWords  = lazy.Words(`none null nil empty undefined unset nothing not no the a an to and or is of for if when in`)
	yesNo       = map[string]string{"yes": "true", "on": "true", "enabled": "true", "no": "false", "off": "false", "disabled": "false"}
)

// unquote returns a value as a text has it, and reports whether it stands in quotes.
func unquote(s string) (string, bool) {
	if len(s) > 1 && strings.ContainsRune("\"'`", rune(s[0])) {
		return strings.Trim(s[1:len(s)-1], "\"'"), true
	}
	return s, false
}

// deniedDefault compares the default that a text says with that of the schema, or with what the schema allows.
func (f *field) deniedDefault(text string) []denial {
	want, given := f.schema["default"]
	var wrong *denial
	check := func(said, raw, after string, quote bool) (right bool) {
		value := strings.ToLower(strings.TrimSpace(raw))
		has := fmt.Sprint(want)
		switch want := want.(type) {
		case json.Number:
			list := numerals(raw + " " + after)
			if len(list) == 0 || list[0].from > 0 {
				return false
			}
			said, scale, ok := list[0].in(f, "")
			v, err := want.Float64()
			if !ok || err != nil {
				return false
			}
			has = nearestNumber(v * scale)
			right = said == v
		case bool:
			value = cmp.Or(yesNo[value], value)
			if right = value == has; value != "true" && value != "false" {
				return false
			}
		case string:
			_, listed := f.enum()[value]
			if right = strings.EqualFold(value, want); want == "" || !quote && !listed && !right && strings.Contains(want, " ") {
				return false
			}
		default: // none, or one that words do not say
			values := f.enum()
			if given || len(values) == 0 || !quote || strings.ContainsAny(raw, " ./") {
				return false
			}
			_, right = values[value]
			has = ""
		}
		if !right && wrong == nil {
			wrong = &denial{said, fmt.Sprintf("the schema of %q has %s", f.name, cmp.Or(prefixed("default ", has), "no such value")),
				prefixed("", has)}
			if has != "" {
				wrong.instead = strings.Replace(said, strings.Trim(raw, "`'\""), has, 1)
			}
		}
		return right
	}
	for _, m := range defaultsTo().FindAllStringSubmatchIndex(text, -1) {
		part := func(i int) string { return text[max(0, m[2*i]):max(0, m[2*i+1])] }
		raw, quote := unquote(part(2))
		isWord := !quote && numberWord().FindString(raw) == ""
		if isWord && (emptyWords()[strings.ToLower(raw)] || part(3) != "" || part(4) == " " ||
			!strings.ContainsAny(text[m[0]:m[4]], ":=") && !strings.Contains(text[m[0]:m[4]], " to ") && !strings.Contains(text[m[0]:m[4]], " is ")) {
			continue
		}
		if check(text[m[0]:m[5]], raw, part(3), quote) {
			return nil
		}
	}
	for _, m := range byDefault().FindAllStringSubmatch(text, -1) {
		raw, quote := unquote(m[1])
		if numberWord().FindString(raw) != "" || quote || m[2] == "" && (f.enum()[strings.ToLower(raw)] != "" || f.is("boolean")) {
			if check(m[0], raw, m[2], quote) {
				return nil
			}
		}
	}
	if wrong == nil {
		return nil
	}
	return []denial{*wrong}
}

// prefixed is a text with a prefix, "" if it is empty.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// enum returns the texts of an enum of a field, or of its items, by their lower case.
func (f *field) enum() map[string]string {
	all := map[string]string{}
	items, _ := f.schema["items"].(map[string]any)
	for _, s := range []map[string]any{f.schema, items} {
		list := jsontext.Texts(s["enum"])
		if raw, ok := s["enum"].([]any); ok && len(list) < len(raw) {
			return map[string]string{} // not of texts alone
		}
		for _, value := range list {
			all[strings.ToLower(value)] = value
		}
	}
	return all
}

var (
	listWords = lazy.Pattern(`(?i)\b(?:one of|either|(?:allowed|possible|valid|accepted|supported|available) \w+(?: are| include)?|must be|can be)` +
		`(?: the following)?:? ?\(?|[:(] ?`)
	listItem     = lazy.Pattern(`^("[\w.-]+"|'[\w.-]+'|` + "`[\\w.-]+`" + `|[\w-]+)(,? or |,? and |, | ?/ ?| ?\| ?)?`)
	listEnd      = lazy.Pattern(`^(?:[.,;:)]|$)`)
	betweenItems = lazy.Pattern(`^(?: ?\([^)]*\))?(?:,|,? or|,? and| ?/| ?\|) ?$`)
	quotedWord   = lazy.Pattern(`"[\w.-]+"|'[\w.-]+'|` + "`[\\w.-]+`")
)

// deniedValues compares lists of values, and values in quotes beside others, with an enum.
func (f *field) deniedValues(text string) []denial {
	values := f.enum()
	if len(values) == 0 {
		return nil
	}
	allowed := strings.Join(f.enumInOrder(), ", ")
	has := fmt.Sprintf("the schema of %q has the values %s", f.name, allowed)
	for _, at := range listWords().FindAllStringIndex(text, -1) {
		end, known, unknown, quotes, last := at[1], 0, 0, 0, ""
		for more := true; more; {
			m := listItem().FindStringSubmatch(text[end:])
			item, quote := "", false
			if m != nil {
				item, quote = unquote(m[1])
			}
			if m == nil || !quote && quotes > 0 {
				break
			}
			end, last, more = end+len(m[0]), m[2], m[2] != ""
			if quote {
				quotes++
			}
			if _, ok := values[strings.ToLower(item)]; ok {
				known++
			} else {
				unknown++
			}
		}
		end -= len(last)
		if unknown > 0 && known >= unknown && (quotes > 0 || listEnd().MatchString(text[end:])) {
			return []denial{{text[at[0]:end], has, text[at[0]:at[1]] + allowed}}
		}
	}
	list, wrong := quotedWord().FindAllStringIndex(text, -1), ""
	for i, at := range list {
		word, _ := unquote(text[at[0]:at[1]])
		if _, ok := values[strings.ToLower(word)]; ok || spelling.Fold(word) == spelling.Fold(f.name) {
			continue
		}
		if beside := func(a, b int) bool {
			if a < 0 || b >= len(list) {
				return false
			}
			other := list[i+(a-i)+(b-i)]
			word, _ := unquote(text[other[0]:other[1]])
			_, ok := values[strings.ToLower(word)]
			return ok && betweenItems().MatchString(text[list[a][1]:list[b][0]])
		}; beside(i-1, i) || beside(i, i+1) {
			wrong = text[at[0]:at[1]]
		}
	}
	if wrong == "" {
		return nil
	}
	return []denial{{wrong, has, ""}}
}

func (f *field) enumInOrder() []string {
	items, _ := f.schema["items"].(map[string]any)
	return append(jsontext.Texts(f.schema["enum"]), jsontext.Texts(items["enum"])...)
}

// deniedExample validates the examples of a text.
func (f *field) deniedExample(text string) (all []denial) {
	if f.schema == nil || f.is("object") || f.has("anyOf", "oneOf", "allOf") || !f.has("type", "enum") {
		return nil
	}
	for _, m := range exampleIs().FindAllStringSubmatch(text, -1) {
		raw, quote := unquote(strings.TrimRight(m[1], " .,;)"))
		if placeholder().MatchString(raw) || raw == "" || f.has("enum") && strings.ContainsAny(raw, " ./") {
			continue
		}
		candidates := []any{raw}
		if v, err := jsontext.Decode([]byte(raw), jsontext.Limits{}); err == nil {
			candidates = append(candidates, v)
		} else if !quote {
			continue
		}
		fields := []*field{f}
		if f.is("array") {
			if items, ok := f.schema["items"].(map[string]any); ok {
				fields = append(fields, &field{name: f.name, schema: items, root: f.root})
			}
		}
		valid, expected := false, ""
		for _, f := range fields {
			compiled, err := f.compile()
			if err != nil {
				return nil
			}
			for _, v := range candidates {
				violations, err := compiled.Validate(v)
				if valid = valid || err != nil || len(violations) == 0; len(violations) > 0 && expected == "" {
					expected = violations[0].Expected
				}
			}
		}
		if !valid {
			all = append(all, denial{strings.TrimRight(m[0], " .,;)"), fmt.Sprintf("the schema of %q expects %s", f.name, expected), ""})
		}
	}
	return all
}

// formatWord is how texts say a format.
type formatWord struct {
	format, words string
	said          func() *regexp.Regexp
}

var formatWords = []formatWord{
	{"date", "YYYY-MM-DD", lazy.Pattern(`(?i)\bYYYY-MM-DD(?:[^T\w]|$)|\bISO[- ]?8601 (?:calendar )?date(?:[^-\w ]|$)`)},
	{"date-time", "ISO 8601 date-time", lazy.Pattern(`(?i)\bISO[- ]?8601\b|\bRFC ?3339\b|\bdate-?time\b|\bYYYY-MM-DDT`)},
	{"time", "HH:MM:SS", lazy.Pattern(`(?i)(?:^|[^T])\bHH:MM\b`)},
	{"unix", "", lazy.Pattern(`(?i)\bunix (?:timestamp|time|epoch)|\bepoch (?:time|seconds|milliseconds)|\bsince (?:the )?(?:unix )?epoch`)},
	{"local", "", lazy.Pattern(`(?i)\b(?:DD|MM)[/.-](?:DD|MM)[/.-]YYYY\b`)},
	{"email", "email address", lazy.Pattern(`(?i)^(?:an? |the |valid )*(?:\w+ )?e-?mail address|\b(?:valid|an|as|be) e-?mail address`)},
	{"uri", "URL", lazy.Pattern(`^(?i:an? |the |valid |full |absolute )*(?:\w+ )?UR[LI]\b|\b(?i:valid|as a|be a|full|absolute) UR[LI]\b`)},
	{"uuid", "UUID", lazy.Pattern(`\b[UG]UID\b`)},
}

// sameFormats are formats that texts call like others.
var sameFormats = map[string]string{"uri-reference": "uri", "iri": "uri", "url": "uri", "idn-email": "email", "datetime": "date-time"}

// deniedFormat compares the format that a text says with that of the schema, and with its type.
func (f *field) deniedFormat(text string) []denial {
	given, _ := f.schema["format"].(string)
	format, instead := cmp.Or(sameFormats[given], given), ""
	numeric := f.is("integer") || f.is("number")
	i := slices.IndexFunc(formatWords, func(w formatWord) bool { return w.format == format })
	if !numeric && (!f.is("string") || i < 0) {
		return nil
	}
	has := fmt.Sprintf("the schema of %q has format %s", f.name, given)
	if numeric {
		has = fmt.Sprintf("%q is of type %s", f.name, jsontext.Texts(f.schema["type"])[0])
	} else {
		instead = formatWords[i].words
	}
	var found []denial
	for _, w := range formatWords {
		m := strings.Trim(w.said().FindString(text), " .,;:)`'\"")
		switch {
		case m == "":
		case numeric && w.format == "unix", w.format == format,
			strings.Contains(m, "8601") && (format == "time" || strings.HasPrefix(format, "date")):
			return nil
		default:
			found = append(found, denial{m, has, instead})
		}
	}
	return found[:min(1, len(found))]
}

var (
	saysRequired = lazy.Pattern(`(?i)^\[?(?:required|mandatory)\]?(?:[.:,;!]|$| -)|\((?:required|mandatory)\)|\.\s+required(?:\.|$)|` +
		`\bthis (?:field|parameter|argument|property|value) is (?:always )?(?:required|mandatory)(?:[.;,)]|$)|\bmust always be (?:given|provided|set|specified)\b`)
	saysOptional = lazy.Pattern(`(?i)^\[?optional\]?(?:[.:,;!]|$| -)|\(optional\)|\.\s+optional(?:\.|$)|` +
		`\bthis (?:field|parameter|argument|property|value) is optional(?:[.;,)]|$)|\b(?:can|may) be (?:omitted|left out)(?:[.;,)]|$)`)
	sentenceStart = lazy.Pattern("(?i)(?:^|[.;] )(?:the |a )?(?:parameter |field |argument )?[`'\"]?$")
	conditional   = lazy.Pattern(`(?i)\b(?:if|when|unless|for|where|only|except|but|with|without)\b`)
)

// deniedNeed compares whether a parameter is required by a text and by the schema.
func (f *field) deniedNeed(text string) []denial {
	root := field{schema: schemaOf(f.root)}
	if f.item || strings.HasPrefix(f.pointer, "/returns") || root.has("anyOf", "oneOf", "allOf", "if") ||
		strings.Contains(f.pointer, "Of/") || f.has("default") && f.required {
		return nil
	}
	says, is, not := saysRequired(), "required", "optional"
	if f.required {
		says, is, not = saysOptional(), "optional", "required"
	}
	m := says.FindString(text)
	if at := strings.Index(text, f.name); m == "" && at >= 0 && sentenceStart().MatchString(text[:at]) {
		about := regexp.MustCompile("^[`'\"]?(?: (?:field|parameter|argument))? is " + is + `(?:[.;,)]|$)`)
		if m = about.FindString(text[at+len(f.name):]); m != "" {
			m = text[max(0, at-1) : at+len(f.name)+len(m)]
		}
	}
	i := strings.Index(text, m)
	if m == "" || conditional().MatchString(text[strings.LastIndexByte(text[:i], '.')+1:i]) {
		return nil
	}
	return []denial{{m, fmt.Sprintf("%q is %s", f.name, not), ""}}
}

func schemaOf(root any) map[string]any { s, _ := root.(map[string]any); return s }

// nameChecker looks for names of fields and tools that do not exist.
type nameChecker struct {
	l      *linter
	t      *manifest.Tool
	fields []field
	known  map[string]bool // folded names and values of the tool; nil until they are needed
}

const inQuotes = "[`'\"]([A-Za-z_]\\w*)[`'\"]"

const shapedName = `[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z]+[a-z0-9]*(?:[A-Z][a-z0-9]+)+`

var (
	paramNamed = lazy.Pattern(`\b(?:[Pp]arameter|[Pp]aram|[Aa]rgument)s?(?: named| called)? (?:` + inQuotes + `|(` + shapedName + `)\b)|` + inQuotes +
		` (?:parameter|param|argument)s?\b|\b(` + shapedName + `) (?:parameter|param|argument)\b`)
	fieldNamed = lazy.Pattern(`\b[Ff]ields?(?: named| called)? (?:` + inQuotes + `|(` + shapedName + `)\b)|` + inQuotes + ` fields?\b|\b(` + shapedName +
		`) field\b`)
	fieldSet = lazy.Pattern(`\b(?:[Ss]et(?:ting)?|[Pp]ass(?:ing)?|[Pp]rovide|[Ss]pecify|[Ss]upply|[Oo]mit|[Cc]ombined? with|[Tt]ogether with|[Rr]equires|` +
		`[Ff]ilter(?:ed|s)? (?:by|with)|[Nn]arrow(?:ed|s)? (?:by|with)|[Aa]lso (?:takes|accepts)) (?:the |a |an )?` + "`([A-Za-z_]\\w*)`")
	toolNamed = lazy.Pattern(`\b(?:[Ss]ee|[Uu]s(?:e|ing)|[Cc]all(?:ing)?|[Rr]un|[Ii]nvoke|[Pp]refer|[Tt]ry|[Vv]ia|[Ff]rom|[Bb]y|[Ww]ith|[Aa]fter|[Bb]efore|[Tt]ool) ` +
		`(?:the |a |first )?(?:[` + "`'\"" + `]([A-Za-z][\w-]*)[` + "`'\"" + `]|(` + shapedName + `)\b)( tool\b|\(\))?|[` + "`'\"" + `]([A-Za-z][\w-]*)[` + "`'\"" + `] tool\b|\b(` + shapedName + `) tool\b`)
	ofResult = lazy.Pattern(`(?i)\b(?:in|of|from|with|on) (?:(?:the|each|a|an|its|every|returned) )?(?:\w+ )?(?:results?|respon\w+|output|headers?|cookies?|` +
		`env\w*|schema|body|endpoints?|operations?|objects?|settings?|propert\w+|items?|entry|entries)\b|\breturn(?:s|ed)?\b|\b(?:endpoint|operation|` +
		`media type|header|response)\b`)
)

// denied returns the names in a text that name nothing. own says that it is the description of a field.
func (n *nameChecker) denied(text string, own bool) (all []denial) {
	for i, p := range []func() *regexp.Regexp{paramNamed, fieldNamed, fieldSet} {
		for _, m := range p().FindAllStringSubmatch(text, -1) {
			name := cmp.Or(m[1:]...)
			if !n.knows(name) && !n.ofNamedTool(name, text) && (i == 0 || !ofResult().MatchString(text)) && (i < 2 || !own || isShaped(name)) {
				all = append(all, denial{m[0], fmt.Sprintf("%q has no field %s", n.t.Name, name), n.near(m[0], name, n.fieldNames())})
			}
		}
	}
	for _, m := range toolNamed().FindAllStringSubmatch(text, -1) {
		name := cmp.Or(m[1], m[2], m[4], m[5])
		words := spelling.Words(name)
		if strings.HasSuffix(m[0], " tool") || m[3] != "" || len(words) > 1 && verbs()[words[0]] && n.shaped(name) {
			if other := n.l.m.Tool(name); other != nil && other.Deprecated != nil && n.t.Deprecated == nil && !sameName(other.Name, n.t.Name) {
				all = append(all, denial{m[0], name + " is deprecated", n.near(m[0], name, []string{bareName(other.Deprecated.Use)})})
			} else if !n.knows(name) {
				all = append(all, denial{m[0], "there is no tool " + name, n.near(m[0], name, n.toolNames())})
			}
		}
	}
	return all
}

// ofNamedTool reports whether a name is that of a field of another tool, which the text names.
func (n *nameChecker) ofNamedTool(name, text string) bool {
	return slices.ContainsFunc(n.l.m.Tools, func(t manifest.Tool) bool {
		return strings.Contains(text, bareName(t.Name)) && slices.ContainsFunc(allFields(&t), func(f field) bool {
			return sameName(f.name, name)
		})
	})
}

// isShaped reports whether a word is written like a name: of several words without a space.
func isShaped(name string) bool { return len(spelling.Words(name)) > 1 }

// shaped reports whether a name is written like the names of the plugin's tools: with the same sign between words.
func (n *nameChecker) shaped(name string) bool {
	sign := func(s string) string {
		switch {
		case strings.Contains(s, "_"):
			return "_"
		case strings.Contains(s, "-"):
			return "-"
		}
		return ""
	}
	return sign(name) == sign(bareName(n.t.Name)) && isShaped(bareName(n.t.Name))
}

// near replaces a name in a text by the one that it resembles, "" if there is none.
func (n *nameChecker) near(said, name string, candidates []string) string {
	if near := spelling.Nearest(name, candidates, 1); len(near) > 0 {
		return strings.Replace(said, name, near[0].Name, 1)
	}
	return ""
}

func (n *nameChecker) fieldNames() []string {
	return lists.Map(n.fields, func(f field) string { return f.name })
}

func (n *nameChecker) toolNames() []string {
	return lists.Map(n.l.m.Tools, func(t manifest.Tool) string { return t.Name })
}

// knows reports whether a name is one of a field, a value, a tool, a group or a plugin.
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
				if len(tokens) > 0 {
					add(tokens[len(tokens)-1])
				}
				if s, ok := v.(string); ok {
					add(s)
				}
			})
		}
		for i := range n.l.m.Tools {
			t := &n.l.m.Tools[i]
			add(t.Name, bareName(t.Name), t.Group)
			add(t.Aliases...)
		}
		for _, p := range n.l.others {
			add(p.Name)
			for _, t := range p.Tools {
				add(t.Name, bareName(t.Name), p.Name+"."+t.Name)
			}
		}
		add(n.l.m.Name, "true", "false", "null")
	}
	return n.known[spelling.Fold(name)]
}

// subject returns the one parameter that a sentence is about, nil if it names none or several. A sentence about how many
// results there are is about the parameter that limits them, which it does not name.
func (n *nameChecker) subject(sentence string) (f *field, isNamed bool) {
	var named, limits []*field
	for i := range n.fields {
		f := &n.fields[i]
		if f.depth > 1 || f.item || strings.HasPrefix(f.pointer, "/returns") {
			continue
		}
		if limitNames()[spelling.Fold(f.name)] {
			limits = append(limits, f)
		}
		if !strings.Contains(sentence, f.name) {
			continue
		}
		name := regexp.QuoteMeta(f.name)
		says := `\b` + name + `\b`
		if !isShaped(f.name) {
			says = "[`'\"]" + name + "[`'\"]" + `|\b` + name + `(?: (?:field|parameter|argument|option|defaults|must|can|may|is|accepts|takes)\b|:|=| ?\()`
		}
		if regexp.MustCompile(says).MatchString(sentence) {
			named = append(named, f)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], true
	case len(named) == 0 && len(limits) == 1 && resultsWords().MatchString(sentence):
		return limits[0], false
	}
	return nil, false
}

// limitNames are names of parameters that say how many results there are.
var limitNames = lazy.Words(`limit perpage pagesize maxresults numresults resultlimit maxitems maxcount count topk`)

var resultsWords = lazy.Pattern(`(?i)\b(?:returns?|returned|lists?|fetch(?:es)?|retrieves?|gets?|shows?|up to|at most|maximum of)\b.*\b(?:results?|items|records|entries|rows|` +
	`matches)\b`)
