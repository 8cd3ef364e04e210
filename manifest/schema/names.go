package schema

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/spelling"
)

// unknown corrects the properties that no schema knows. It reports whether there were any.
func (c *corrector) unknown(faults []fault) bool {
	changed := false
	var done []string // pointers of the objects
	for _, f := range faults {
		if f.keyword != "additionalProperties" && f.keyword != "unevaluatedProperties" {
			continue
		}
		at := f.at.up.pointer()
		if slices.Contains(done, at) {
			continue
		}
		done = append(done, at)
		if object := c.objectAt(f.at.up); object != nil {
			changed = c.newStrangers(f, faults, object).correct() || changed
		}
	}
	for _, f := range faults { // an object that accepts any name may have the missing one misspelt
		if f.keyword != "required" || slices.Contains(done, f.at.up.pointer()) {
			continue
		}
		done = append(done, f.at.up.pointer())
		if object := c.objectAt(f.at.up); object != nil {
			changed = renameOpen(c.newStrangers(f, faults, object)) || changed
		}
	}
	return changed
}

// renameOpen gives properties that an open object does not describe the names of missing ones that they resemble. It
// reports whether there were any. Others are left: the object accepts them.
func renameOpen(s *strangers) bool {
	for _, name := range sortedKeys(s.object) {
		if propSchema(s.node.conjuncts(), name) == nil {
			s.names = append(s.names, name)
		}
	}
	before := len(s.names)
	s.rename(func(given, name string) bool { return spelling.Fold(given) == spelling.Fold(name) })
	s.rename(s.isAlias)
	s.rename(func(given, name string) bool {
		return s.resembles(given, name) && s.fits(s.prop(name), s.object[given])
	})
	return len(s.names) < before
}

// strangers are the unknown properties of one object, and the properties that they may stand for.
type strangers struct {
	*corrector
	at      *location
	object  map[string]any // of the draft
	node    *node
	names   []string        // unknown, in order
	free    []string        // known, and not given
	missing map[string]bool // required, and not given
}

func (c *corrector) newStrangers(f fault, faults []fault, object map[string]any) *strangers {
	s := &strangers{corrector: c, at: f.at.up, object: object, missing: map[string]bool{}}
	s.node = cmp.Or(c.s.schemaAt(s.at), f.node, &node{})
	at := s.at.pointer()
	known := map[string]bool{}
	for _, other := range faults {
		if other.at == nil || other.at.up.pointer() != at {
			continue
		}
		switch other.keyword {
		case "additionalProperties", "unevaluatedProperties":
			if _, given := object[other.at.token]; given && !slices.Contains(s.names, other.at.token) {
				s.names = append(s.names, other.at.token)
			}
			for _, name := range other.known {
				known[name] = true
			}
			c.unsure = c.unsure || other.ambiguous
		case "required", "dependentRequired":
			s.missing[other.at.token] = true
			known[other.at.token] = true
		}
	}
	s.free = withoutGiven(sortedKeys(known), object)
	return s
}

// withoutGiven returns the names that an object does not have.
func withoutGiven(names []string, object map[string]any) []string {
	return lists.Filter(names, func(name string) bool { _, given := object[name]; return !given })
}

// prop returns the schema of a property; it accepts any value where the schema does not say.
func (s *strangers) prop(name string) *node {
	return cmp.Or(propSchema(s.node.conjuncts(), name), &node{})
}

// correct corrects as many names as it can and drops the others. It reports whether there were any.
func (s *strangers) correct() bool {
	if len(s.names) == 0 {
		return false
	}
	s.rename(func(given, name string) bool { return spelling.Fold(given) == spelling.Fold(name) })
	s.rename(func(given, name string) bool {
		inner, isObject := s.object[given].(map[string]any)
		return s.isAlias(given, name) && (!isObject || !s.belongsHere(given, inner) || s.fits(s.prop(name), inner))
	})
	s.rename(func(given, name string) bool { // the letter of a switch
		return len(given) == 1 && strings.HasPrefix(name, given) && s.object[given] == true && s.fits(s.prop(name), true)
	})
	s.convertAll()
	if s.hoistAll() {
		return true // more may be known about the members in the next round
	}
	s.sinkAll()
	s.rename(func(given, name string) bool {
		return s.resembles(given, name) && s.fits(s.prop(name), s.object[given])
	})
	s.rename(func(given, name string) bool {
		return synonymous(given, name) && (s.fits(s.prop(name), s.object[given]) || s.fits(s.prop(name), s.inList(given)))
	})
	s.rename(func(given, name string) bool { return isMember(s.prop(name), s.object[given]) })
	s.rename(s.resembles)
	if len(s.names) == 1 && len(s.missing) == 1 && len(s.names[0]) > 1 {
		// The only value without a place, and the only place without a value. A letter may be a switch: the value after it
		// is then one of the others.
		s.rename(func(given, name string) bool {
			_, isObject := s.inList(given).(map[string]any)
			return s.missing[name] && s.object[given] != nil && !meansElse(given, name) &&
				(isObject || s.fits(s.prop(name), s.object[given]))
		})
	}
	s.sinkRest()
	for _, name := range s.names {
		if s.object[name] != nil && len(nearestNames(name, s.free)) > 1 {
			s.unsure = true // which of them was meant is not clear
		}
		delete(s.object, name)
		s.drop(s.at.key(name).pointer())
	}
	return true
}

// inList returns the only value in the list that an unknown property is, nil if it is another value.
func (s *strangers) inList(given string) any {
	if list, isList := s.object[given].([]any); isList && len(list) == 1 {
		return list[0]
	}
	return nil
}

// isAlias reports whether the schema of a property has the given name as another one.
func (s *strangers) isAlias(given, name string) bool {
	return slices.ContainsFunc(s.prop(name).conjuncts(), func(n *node) bool {
		return slices.ContainsFunc(n.aliases, func(a string) bool { return spelling.Fold(a) == spelling.Fold(given) })
	})
}

// resembles reports whether a name is the only one of the free names from which a typo makes the given one.
func (s *strangers) resembles(given, name string) bool {
	near := nearestNames(given, s.free)
	return len(near) == 1 && near[0] == name && digitsOf(given) == digitsOf(name)
}

// digitsOf returns the digits of a name. Names that differ in one are different, not misspelt.
func digitsOf(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
}

// rename gives each unknown property the free name that it matches. Where it matches several, one that is required
// counts before the others; where that leaves several, or two properties match the same name, it does nothing.
func (s *strangers) rename(matches func(given, name string) bool) {
	target := map[string]string{}
	claims := map[string]int{}
	for _, given := range s.names {
		var all, required []string
		for _, name := range s.free {
			if !s.changesMeaning(given, name) && matches(given, name) {
				all = append(all, name)
				if s.missing[name] {
					required = append(required, name)
				}
			}
		}
		if len(required) == 1 {
			all = required
		}
		if len(all) == 1 {
			target[given] = all[0]
			claims[all[0]]++
		}
	}
	for _, given := range slices.Clone(s.names) {
		name := target[given]
		if name == "" || claims[name] != 1 {
			continue
		}
		s.object[name] = s.object[given]
		s.settle(given, name, s.at.key(name), Renamed)
		if text, isText := s.object[name].(string); isText && slices.ContainsFunc(aboutWords(s.prop(name)), holdsJSON) {
			s.parse(s.at.key(name), text)
		}
	}
}

// parse makes JSON in a text the value at a location that takes any.
func (s *strangers) parse(at *location, text string) {
	_, isSingle := wanted(s.prop(at.token).conjuncts())
	raw, ok := jsontext.Repair(text)
	value, err := jsontext.Decode(raw, jsontext.Limits{})
	if ok && err == nil && !isSingle && jsontext.LooksLikeJSON(text) {
		s.object[at.token] = value
		s.note(at.pointer(), at.pointer(), Parsed)
	}
}

// units are the words for units in names, and how they are compared.
var units = map[string]string{"ms": "ms", "millis": "ms", "msec": "ms", "milliseconds": "ms", "s": "s", "sec": "s",
	"secs": "s", "second": "s", "seconds": "s", "min": "min", "mins": "min", "minutes": "min", "h": "h", "hours": "h",
	"days": "d", "kb": "kb", "kib": "kb", "mb": "mb", "mib": "mb", "bytes": "b"}

// measured are the words of names whose numbers have a unit.
var measured = []string{"time", "timeout", "wait", "delay", "duration", "expires", "expiry", "age", "interval", "ttl",
	"deadline", "sleep", "pause"}

// unitOf returns the unit that a name of several words says.
func unitOf(name string) string {
	if words := spelling.Words(name); len(words) > 1 {
		return units[words[len(words)-1]]
	}
	return ""
}

// places are the words of names whose values say where something is. The value itself goes by another name.
var places = []string{"path", "file", "filename", "filepath", "dir", "directory", "folder"}

// changesMeaning reports whether a value would get a name that means something else: a number one that may stand for
// another unit, and the path of a file the name of its contents. An alias means the same: its author says so.
func (s *strangers) changesMeaning(given, name string) bool {
	if spelling.Fold(given) == spelling.Fold(name) || s.isAlias(given, name) {
		return false
	}
	has := func(name string, words []string) bool {
		return slices.ContainsFunc(spelling.Words(name), func(w string) bool { return slices.Contains(words, w) })
	}
	if is, meant := has(given, places), has(name, places); is != meant && !grouped(given, name) &&
		(is || !isMistyped(given, name)) {
		return true
	}
	if text := jsontext.Text(s.object[given]); !jsontext.ValidNumber(text) || unitOf(given) != "" &&
		unitOf(given) == unitOf(name) {
		return false
	}
	isMeasure := func(name string) bool { return unitOf(name) != "" || has(name, measured) }
	return isMeasure(given) || isMeasure(name)
}

// isMistyped reports whether a letter is missing, twice or exchanged with its neighbor, which seldom makes another word
// of one: "pth" and "paht" are no words, "fill" is.
func isMistyped(given, name string) bool {
	letters := func(s string) []byte { return slices.Sorted(slices.Values([]byte(spelling.Fold(s)))) }
	return spelling.Distance(given, name) == 1 && !strings.HasSuffix(given, "s") &&
		(len(given) != len(name) || slices.Equal(letters(given), letters(name)))
}

// meansElse reports whether a name is a common one for something else than another name, or what a page calls a field.
func meansElse(given, name string) bool {
	return unicode.IsUpper(rune(given[0])) ||
		!synonymous(given, name) && (grouped(given, given) || slices.Contains(measured, spelling.Fold(given)))
}

// convertAll gives a number whose name is another one with a unit, as timeout_seconds is of timeout, that name, and the
// unit that its schema says.
func (s *strangers) convertAll() {
	for _, given := range slices.Clone(s.names) {
		words, value := spelling.Words(given), jsontext.Text(s.object[given])
		i := slices.IndexFunc(s.free, func(name string) bool {
			return unitOf(given) != "" && spelling.Fold(name) == strings.Join(words[:len(words)-1], "")
		})
		if i < 0 || !jsontext.ValidNumber(value) {
			continue
		}
		name := s.free[i]
		if meant := inUnit(s.prop(name), value+unitOf(given)); meant != nil {
			s.object[name] = meant
			s.settle(given, name, s.at.key(name), Renamed)
		}
	}
}

// settle records where an unknown property has its place, and removes it, and the name that is now taken.
func (s *strangers) settle(given, name string, to *location, how string) {
	s.move(s.at.key(given).pointer(), to.pointer(), how)
	delete(s.object, given)
	s.names = slices.DeleteFunc(s.names, func(n string) bool { return n == given })
	s.free = slices.DeleteFunc(s.free, func(n string) bool { return n == name })
	delete(s.missing, name)
}

// wrappers are names of an object around all parameters.
var wrappers = []string{"params", "parameters", "param", "arguments", "args", "argument", "input", "inputs", "options",
	"payload", "body", "data", "json", "request", "kwargs", "value"}

// hoistAll corrects parameters that are one level too deep: an unknown object whose members are free names here. It
// reports whether there was one.
func (s *strangers) hoistAll() (hoisted bool) {
	for _, given := range slices.Clone(s.names) {
		value, from := s.object[given], s.at.key(given)
		if only := s.inList(given); only != nil {
			value, from = only, from.index(0)
		}
		inner, isObject := value.(map[string]any)
		text, _ := value.(string)
		how := Unwrapped
		if parsed, ok := repaired(text, '{'); ok {
			inner, isObject = parsed.(map[string]any)
			how = Parsed
		}
		if isObject && s.joinNames(given, from, inner) {
			hoisted = true
			continue
		}
		if !isObject || !s.belongsHere(given, inner) {
			continue
		}
		delete(s.object, given)
		s.unwrapMembers(from.pointer(), s.at.pointer(), inner, how)
		if how == Parsed { // there is no pointer into a text
			from := s.origin(from.pointer())
			for i, x := range s.changes {
				if x.How == Parsed && isWithin(x.From, from) {
					s.changes[i].From = from
				}
			}
		}
		maps.Copy(s.object, inner)
		hoisted = true
	}
	return hoisted
}

// joinNames corrects an unknown object whose members have two words as a name here, as margin.top is marginTop. It
// reports false if one of them has none.
func (s *strangers) joinNames(given string, from *location, inner map[string]any) bool {
	names := map[string]string{}
	for member := range inner {
		free := withoutGiven(s.free, s.object)
		i := slices.IndexFunc(free, func(name string) bool { return spelling.Fold(name) == spelling.Fold(given+member) })
		if i < 0 {
			return false
		}
		names[member] = free[i]
	}
	if len(names) == 0 {
		return false
	}
	for _, member := range sortedKeys(inner) {
		s.object[names[member]] = inner[member]
		s.move(from.key(member).pointer(), s.at.key(names[member]).pointer(), Moved)
	}
	delete(s.object, given)
	return true
}

// belongsHere reports whether the members of an unknown object are meant as properties of the object that it is in.
func (s *strangers) belongsHere(given string, inner map[string]any) bool {
	known := 0
	for name := range inner {
		if _, taken := s.object[name]; taken {
			return false
		}
		isKnown := func(free string) bool { return spelling.Fold(name) == spelling.Fold(free) || s.isAlias(name, free) }
		if slices.ContainsFunc(s.free, isKnown) {
			known++
		}
	}
	if known == len(inner) && known > 0 {
		return true
	}
	return len(s.object) == 1 && (known > 0 || slices.Contains(wrappers, spelling.Fold(given)))
}

// sinkAll corrects parameters that are one level too shallow: an unknown property that only one object here knows,
// which may be the only one of a list that is missing.
func (s *strangers) sinkAll() {
	for _, given := range slices.Clone(s.names) {
		var homes []string
		for _, name := range append(slices.Clone(s.free), sortedKeys(s.object)...) {
			all := s.prop(name).conjuncts()
			inner, isObject := s.object[name].(map[string]any)
			if item := itemSchema(all, 0); item != nil && (isObject || s.missing[name]) {
				all = item.conjuncts()
			}
			if kind, ok := wanted(all); !ok || kind != kindObject {
				continue
			}
			_, taken := inner[given]
			child := propSchema(all, given)
			if child == nil || child.always != nil || taken || !isObject && s.object[name] != nil {
				continue
			}
			if declares(all, given) && !slices.Contains(homes, name) {
				homes = append(homes, name)
			}
		}
		if len(homes) != 1 {
			continue
		}
		home, _ := s.object[homes[0]].(map[string]any)
		if home == nil {
			home = map[string]any{}
			s.object[homes[0]] = home
		}
		home[given] = s.object[given]
		s.settle(given, homes[0], s.at.key(homes[0]).key(given), Moved)
	}
}

// sinkRest puts what has no place into the only object that takes any name, and is missing or named with it in a text:
// inputs.x in a program.
func (s *strangers) sinkRest() {
	texts, homes := strings.Join(jsontext.Texts(slices.Collect(maps.Values(s.object))), "\n"), []string{}
	for _, name := range s.free {
		all := s.prop(name).conjuncts()
		kind, _ := wanted(all)
		isNamed := !slices.ContainsFunc(s.names, func(given string) bool {
			return !regexp.MustCompile(`\b` + regexp.QuoteMeta(name+"."+given) + `\b`).MatchString(texts)
		})
		any := propSchema(all, "\x00")
		takesAny := kind == kindObject && (any == nil || any.always == nil || *any.always)
		if takesAny && (any != nil && s.missing[name] || isNamed) {
			homes = append(homes, name)
		} else if s.missing[name] {
			return
		}
	}
	if len(homes) != 1 || len(s.names) == 0 {
		return
	}
	home := homes[0]
	inner := map[string]any{}
	for _, given := range slices.Clone(s.names) {
		inner[given] = s.object[given]
		s.settle(given, home, s.at.key(home).key(given), Moved)
	}
	s.object[home] = inner
}

// isMember reports whether a value is one of several that a schema lists.
func isMember(n *node, v any) bool {
	values := valuesOf(n)
	text, isText := v.(string)
	if !isText || len(values) == 0 {
		return false
	}
	_, ok := respelled(text, values)
	return ok || slices.ContainsFunc(values, func(x any) bool { return equal(x, v) })
}

// synonyms are names that callers use for the same thing. A name may be in several groups.
var synonyms = [][]string{
	{"text", "data", "input", "content", "contents", "body", "string", "str", "value", "txt", "message", "source"},
	{"json", "data", "input", "document", "doc", "value", "object", "body", "content", "text"},
	{"pattern", "regex", "regexp", "re", "expr", "expression", "match", "search", "find"},
	{"algorithm", "algo", "alg", "method", "hash", "digest", "type"},
	{"expression", "script", "code", "js", "javascript", "expr", "source", "snippet", "eval", "function"},
	{"query", "filter", "jq", "search", "q", "selector", "path", "term", "keyword", "keywords"},
	{"url", "uri", "link", "href", "address", "page", "site", "website", "location", "origin"},
	{"urls", "uris", "links", "pages"},
	{"path", "file", "filename", "filepath", "location"},
	{"limit", "max", "count", "maximum", "maxresults", "top", "n", "number"},
	{"selector", "css", "cssselector", "query", "xpath", "element"},
	{"name", "key", "title", "label", "id"},
	{"id", "identifier", "key", "name"},
	{"width", "w"}, {"height", "h"},
	{"format", "type", "kind", "encoding", "mime", "mimetype", "output"},
	{"encoding", "charset", "codec", "scheme", "format"},
	{"replacement", "replace", "replacewith", "with", "substitute", "new"},
	{"ignorecase", "caseinsensitive", "icase", "nocase"},
	{"timeout", "timeoutms", "wait", "delay", "duration"},
	{"language", "lang", "locale"},
	{"template", "tpl", "format", "text"},
	{"values", "vars", "variables", "context", "data"},
	{"from", "start", "begin", "since", "old", "before"},
	{"to", "end", "until", "stop", "target", "new", "after"},
	{"before", "old", "a", "left", "original", "first", "from"},
	{"after", "new", "b", "right", "changed", "second", "to"},
	{"username", "user", "login"}, {"password", "pass", "passwd", "pwd"},
	{"color", "colour"},
	{"latitude", "lat"}, {"longitude", "lng", "lon", "long"},
	{"arguments", "args", "params", "parameters", "input", "inputs"},
	{"context", "lines"},
	{"indent", "spaces", "tab"},
	{"x", "left"}, {"y", "top"},
}

// synonymous reports whether two names mean the same: they are in one group, one is the beginning of the other, or one
// has all words of the other.
func synonymous(a, b string) bool {
	x, y := spelling.Fold(a), spelling.Fold(b)
	if grouped(a, b) {
		return true
	}
	if short, long := min(len(x), len(y)), max(len(x), len(y)); short >= 3 && short < long && x[:short] == y[:short] {
		return true
	}
	return hasWords(a, b) || hasWords(b, a)
}

// grouped reports whether two names are in one group of synonyms.
func grouped(a, b string) bool {
	return slices.ContainsFunc(synonyms, func(group []string) bool {
		return slices.Contains(group, spelling.Fold(a)) && slices.Contains(group, spelling.Fold(b))
	})
}

// hasWords reports whether the words of a name are among those of another one.
func hasWords(name, other string) bool {
	words, all := spelling.Words(name), spelling.Words(other)
	return len(words) > 0 && len(words) < len(all) &&
		!slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(all, w) })
}

// respelled returns the value that v spells in another case, with a single typo or as another type, if it is the only
// one. It is stricter than [Nearest]: what it returns is offered as a call to make.
func respelled(v any, allowed []any) (any, bool) {
	_, isText := v.(string)
	text := jsontext.Text(v)
	for _, same := range []func(a string) bool{
		func(a string) bool { return a == strings.TrimSpace(text) },
		func(a string) bool { return spelling.Fold(a) == spelling.Fold(strings.TrimSpace(text)) },
		func(a string) bool { return isText && spelling.IsTypo(strings.ToLower(text), strings.ToLower(a)) },
	} {
		found := lists.Filter(allowed, func(a any) bool { return same(jsontext.Text(a)) })
		if len(found) > 0 {
			return deepCopy(found[0]), len(found) == 1
		}
	}
	return nil, false
}
