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

// unknown corrects properties that no schema knows. It reports whether there were any.
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
	for _, f := range faults { // in an object that accepts any name, a missing property may be misspelt
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

// renameOpen handles an object that accepts any name. It renames undescribed properties to missing ones that they
// resemble, and reports whether it renamed any. Other properties stay, because the object accepts them.
func renameOpen(s *strangers) bool {
	s.names = lists.Filter(sortedKeys(s.object), func(name string) bool {
		return propSchema(s.node.conjuncts(), name) == nil
	})
	before := len(s.names)
	s.rename(func(given, name string) bool { return spelling.Fold(given) == spelling.Fold(name) })
	s.rename(s.isAlias)
	s.rename(func(given, name string) bool {
		return s.resembles(given, name) && s.fits(s.prop(name), s.object[given])
	})
	return len(s.names) < before
}

// strangers are the unknown properties of one object, and the properties that they may mean.
type strangers struct {
	*corrector
	at      *location
	object  map[string]any // an object of the draft
	node    *node
	names   []string        // unknown names, in order
	free    []string        // known names that were not given
	missing map[string]bool // required names that were not given
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

// withoutGiven returns those names that are not properties of an object.
func withoutGiven(names []string, object map[string]any) []string {
	return lists.Filter(names, func(name string) bool { _, given := object[name]; return !given })
}

// prop returns the schema of a property. If the schema does not describe it, that is a schema that accepts any value.
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
	s.rename(func(given, name string) bool { // the one-letter form of a switch
		return len(given) == 1 && strings.HasPrefix(name, given) && s.object[given] == true && s.fits(s.prop(name), true)
	})
	s.convertAll()
	if s.hoistAll() {
		return true // the next round may know more about the members
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
		// Match the only value that is left with the only property that is left. A letter may be a switch: its value is
		// then one of the others.
		s.rename(func(given, name string) bool {
			_, isObject := s.inList(given).(map[string]any)
			return s.missing[name] && s.object[given] != nil && !meansElse(given, name) &&
				(isObject || s.fits(s.prop(name), s.object[given]))
		})
	}
	s.sinkRest()
	for _, name := range s.names {
		if s.object[name] != nil && len(nearestNames(name, s.free)) > 1 {
			s.unsure = true // it is unclear which one was meant
		}
		delete(s.object, name)
		s.drop(s.at.key(name).pointer())
	}
	return true
}

// inList returns the only element of an unknown property that is a list, or nil.
func (s *strangers) inList(given string) any {
	if list, isList := s.object[given].([]any); isList && len(list) == 1 {
		return list[0]
	}
	return nil
}

// isAlias reports whether the schema of a property has the given name as an alias.
func (s *strangers) isAlias(given, name string) bool {
	return slices.ContainsFunc(s.prop(name).conjuncts(), func(n *node) bool {
		return slices.ContainsFunc(n.aliases, func(a string) bool { return spelling.Fold(a) == spelling.Fold(given) })
	})
}

// resembles reports whether the given name is a typo of a free name, and of no other free name.
func (s *strangers) resembles(given, name string) bool {
	near := nearestNames(given, s.free)
	return len(near) == 1 && near[0] == name && digitsOf(given) == digitsOf(name)
}

// digitsOf returns the digits of a name. Names with different digits are different, not misspelt.
func digitsOf(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
}

// rename gives each unknown property the free name that it matches. If it matches several, required names are
// preferred. If it still matches several, or if two properties match the same name, rename does nothing.
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

// parse replaces a text at a location by the JSON value in it, if the schema there allows values of several types.
func (s *strangers) parse(at *location, text string) {
	_, isSingle := wanted(s.prop(at.token).conjuncts())
	raw, ok := jsontext.Repair(text)
	value, err := jsontext.Decode(raw, jsontext.Limits{})
	if ok && err == nil && !isSingle && jsontext.LooksLikeJSON(text) {
		s.object[at.token] = value
		s.note(at.pointer(), at.pointer(), Parsed)
	}
}

// units maps the words for units in names to a canonical unit.
var units = map[string]string{"ms": "ms", "millis": "ms", "msec": "ms", "milliseconds": "ms", "s": "s", "sec": "s",
	"secs": "s", "second": "s", "seconds": "s", "min": "min", "mins": "min", "minutes": "min", "h": "h", "hours": "h",
	"days": "d", "kb": "kb", "kib": "kb", "mb": "mb", "mib": "mb", "bytes": "b"}

// measured are words in the names of numbers that have a unit.
var measured = []string{"time", "timeout", "wait", "delay", "duration", "expires", "expiry", "age", "interval", "ttl",
	"deadline", "sleep", "pause"}

// unitOf returns the unit at the end of a name of several words, or "".
func unitOf(name string) string {
	if words := spelling.Words(name); len(words) > 1 {
		return units[words[len(words)-1]]
	}
	return ""
}

// places are words in the names of values that say where something is, not what it is.
var places = []string{"path", "file", "filename", "filepath", "dir", "directory", "folder"}

// changesMeaning reports whether a new name would change the meaning of a value: if a number gets a name that may
// imply another unit, or the path of a file gets a name for the contents, or if values are in the name, because JSON
// became one: "tags": ["a"]. An alias keeps the meaning, because the author declared it.
func (s *strangers) changesMeaning(given, name string) bool {
	if spelling.Fold(given) == spelling.Fold(name) || s.isAlias(given, name) {
		return false
	}
	has := func(name string, words []string) bool {
		return slices.ContainsFunc(spelling.Words(name), func(w string) bool { return slices.Contains(words, w) })
	}
	if is, meant := has(given, places), has(name, places); strings.Contains(given, `"`) || is != meant &&
		!grouped(given, name) && (is || !isMistyped(given, name)) {
		return true
	}
	if text := jsontext.Text(s.object[given]); !jsontext.ValidNumber(text) || unitOf(given) != "" &&
		unitOf(given) == unitOf(name) {
		return false
	}
	isMeasure := func(name string) bool { return unitOf(name) != "" || has(name, measured) }
	return isMeasure(given) || isMeasure(name)
}

// isMistyped reports whether a letter is missing, doubled or swapped with its neighbor. Such a typo seldom makes
// another word: "pth" and "paht" are not words, but "fill" is.
func isMistyped(given, name string) bool {
	letters := func(s string) []byte { return slices.Sorted(slices.Values([]byte(spelling.Fold(s)))) }
	return spelling.Distance(given, name) == 1 && !strings.HasSuffix(given, "s") &&
		(len(given) != len(name) || slices.Equal(letters(given), letters(name)))
}

// meansElse reports whether the given name commonly means something different from name, or is what a page calls a
// field.
func meansElse(given, name string) bool {
	return unicode.IsUpper(rune(given[0])) ||
		!synonymous(given, name) && (grouped(given, given) || slices.Contains(measured, spelling.Fold(given)))
}

// convertAll handles numbers whose name is a free name plus a unit, such as timeout_seconds for timeout. It renames
// them, and converts them to the unit in the schema of the free name.
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

// settle records where an unknown property has moved, removes it from the object, and marks the name as used.
func (s *strangers) settle(given, name string, to *location, how string) {
	s.move(s.at.key(given).pointer(), to.pointer(), how)
	delete(s.object, given)
	s.names = slices.DeleteFunc(s.names, func(n string) bool { return n == given })
	s.free = slices.DeleteFunc(s.free, func(n string) bool { return n == name })
	delete(s.missing, name)
}

// wrappers are common names of an object around all parameters.
var wrappers = []string{"params", "parameters", "param", "arguments", "args", "argument", "input", "inputs", "options",
	"payload", "body", "data", "json", "request", "kwargs", "value"}

// hoistAll corrects parameters that are one level too deep: an unknown object whose members are free names of the
// object around it. It reports whether there was one.
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
		if how == Parsed { // there are no pointers into a text
			from := s.origin(from.pointer())
			for i, x := range s.changes {
				if x.How == Parsed && jsontext.IsWithin(x.From, from) {
					s.changes[i].From = from
				}
			}
		}
		maps.Copy(s.object, inner)
		hoisted = true
	}
	return hoisted
}

// joinNames corrects an unknown object whose name and members join to names of the object around it, such as
// margin.top for marginTop. It returns false if a member has no such name.
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

// belongsHere reports whether the members of an unknown object are meant as properties of the object around it.
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

// sinkAll corrects parameters that are one level too shallow: unknown properties that exactly one object in this
// object has, or the items of one missing list.
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

// sinkRest moves the remaining properties into the only object that accepts any name. That object must be missing, or
// a text must mention the properties in it, such as inputs.x in a program.
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

// synonymous reports whether two names mean the same: they are in one group, one is a prefix of the other, or one has
// all words of the other.
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

// hasWords reports whether other has all words of a name.
func hasWords(name, other string) bool {
	words, all := spelling.Words(name), spelling.Words(other)
	return len(words) > 0 && len(words) < len(all) &&
		!slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(all, w) })
}

// respelled returns the allowed value that v means, if there is only one: in another case, with a single typo, or as
// another type. It is stricter than [Nearest], because its result is offered as a call to make.
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
