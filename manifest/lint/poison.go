package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/lint/letters"
	"github.com/parley-tools/parley/manifest/lint/vocabulary"
	"github.com/parley-tools/parley/manifest/spelling"
)

func checkInstructsReader(l *linter) {
	known := map[string]string{} // API documents repeat their texts
	for _, t := range l.texts {
		found, isKnown := known[t.raw]
		if !isKnown {
			found = t.instruction()
			known[t.raw] = found
		}
		if found != "" {
			l.add(t.pointer, "%s is an order to the reader; describe what the tool does, and say in \"when\" and \"when_not\" "+
				"what it is for", quoted(found))
		}
	}
}

// instruction returns the part of a text that is an order to its reader, "" if none is.
func (t *text) instruction() string {
	found := vocabulary.Orders().FindString(t.plain)
	others := letters.Readings(t.plain)
	if !letters.IsASCII(t.raw) {
		others = append(others, visible(t.raw)) // in other scripts, letters are not taken for look-alikes
	}
	for _, r := range others {
		found = cmp.Or(found, vocabulary.Orders().FindString(r))
	}
	return found
}

// Misleads returns the name of the rule that a text breaks, or "". It checks the rules against texts that mislead an
// agent, as far as they do not depend on other plugins.
func Misleads(s string) string {
	t := text{raw: s, plain: letters.Fold(visible(s))}
	switch {
	case t.instruction() != "":
		return "instructs-reader"
	case vocabulary.Praise().FindString(t.plain) != "":
		return "superlatives"
	case said("imperative").MatchString(t.plain) && (&linter{m: &manifest.Manifest{}}).otherTool(t.plain, nil, nil) != "":
		return "names-other-tools"
	}
	return ""
}

func checkSuperlatives(l *linter) {
	for _, t := range l.texts {
		if t.kind == data {
			continue
		}
		if found := vocabulary.Praise().FindString(t.plain); found != "" {
			l.add(t.pointer, "%s praises the plugin; describe what it does", quoted(found))
		}
	}
}

func checkHiddenCharacters(l *linter) {
	for _, t := range l.texts {
		if t.kind == data {
			continue // the parser and the gate of schemas check values
		}
		if r, found := manifest.FirstHidden(t.raw, true); found {
			l.add(t.pointer, "the text has the invisible or control character U+%04X; remove it", r)
		}
	}
}

var sentenceEnd = lazy.Pattern(`[.!?;]\s+|\n`)

// checkNamesOtherTools looks for names of other plugins' tools in sentences that tell a reader what to call.
func checkNamesOtherTools(l *linter) {
	for i, s := range l.m.Tutorial {
		if s.Run != "" && !l.runsItself(s.Run) {
			l.add(fmt.Sprintf("/tutorial/%d/run", i), "%s does more than call this plugin; a tutorial runs \"parley %s ...\" "+
				"with parameters, without other options, files or shell operators", quoted(s.Run), l.m.Name)
		}
	}
	distinct := l.distinctNames()
	own, known := l.ownWords(), map[string]string{}
	for _, t := range l.texts {
		if t.kind == data || t.exempt {
			continue
		}
		for _, sentence := range sentenceEnd().Split(t.plain, -1) {
			name, isKnown := known[sentence]
			if !isKnown && said("imperative").MatchString(sentence) {
				name = l.otherTool(sentence, distinct, own)
			}
			if known[sentence] = name; name != "" {
				l.add(t.pointer, "%s tells the reader to use or avoid %s, which is not a tool of this plugin; when_not, related, "+
					"needs and deprecated are for that", quoted(strings.TrimSpace(sentence)), quoted(name))
				break
			}
		}
	}
}

var (
	quotedWords   = lazy.Pattern(`'[^']*'|"[^"$` + "`" + `\\]*"`)
	shellOperator = lazy.Pattern("[;&|<>$`()\n]")
)

// runsItself reports whether a command of a tutorial only describes or calls tools of this plugin.
func (l *linter) runsItself(run string) bool {
	list := strings.Fields(quotedWords().ReplaceAllString(run, " quoted "))
	if len(list) > 2 && list[1] == "call" {
		list = slices.Delete(list, 1, 2)
	}
	if len(list) < 2 || list[0] != hostName || shellOperator().MatchString(strings.Join(list, " ")) {
		return false
	}
	if plugin, _, _ := strings.Cut(list[1], "."); !sameName(plugin, l.m.Name) {
		return false
	}
	return !slices.ContainsFunc(list[2:], func(word string) bool {
		option, _, _ := strings.Cut(word, "=")
		return strings.HasPrefix(word, "-") && !words("call-options")[option] || strings.HasPrefix(word, "@") ||
			strings.Contains(word, "=@")
	}) && !strings.Contains(run, "'@") && !strings.Contains(run, `"@`)
}

var toDots = strings.NewReplacer("__", ".", "/", ".")

// otherTool returns the name by which a sentence refers to another plugin or one of its tools, "" if it does not.
func (l *linter) otherTool(sentence string, distinct, own map[string]bool) string {
	separates := func(r rune) bool { return !isNameRune(r) && r != '.' && r != '/' }
	var list []string
	if len(distinct) > 0 {
		list = strings.FieldsFunc(sentence, separates)
	}
	for _, word := range list {
		key := strings.ToLower(toDots.Replace(strings.Trim(word, ".-/")))
		if parts := strings.Split(key, "."); len(parts) > 2 && parts[0] == "mcp" {
			key = strings.Join(parts[2:], ".") // mcp__SERVER__text__hash, as clients write it
		}
		if distinct[key] && !own[key] {
			return word
		}
	}
	lower := strings.ToLower(sentence)
	for _, p := range l.others {
		name := strings.ToLower(p.Name)
		for _, form := range []string{name + " plugin", "parley " + name + " "} {
			if i := strings.Index(lower, form); i >= 0 && (i == 0 || !isNameRune(rune(lower[i-1]))) && !own[name] {
				return strings.TrimSpace(form)
			}
		}
	}
	for _, order := range []string{"unknown-tool", "agent-tool", "agent-own", "disparaged"} {
		for _, found := range said(order).FindAllStringSubmatch(sentence) {
			name := strings.Join(found[1:], "")
			if key := strings.ToLower(name); !own[key] && !strings.HasPrefix(key, strings.ToLower(l.m.Name)+".") {
				return name
			}
		}
	}
	return ""
}

// hostName is the name of the host in its commands and its MCP server.
const hostName = "parley"

// metaTools are the tools of the MCP server itself.
var metaTools = []string{"search_tools", "describe_tool", "call_tool", "plan_call", "run_code"}

// distinctNames returns the names of other plugins' tools that cannot be words of a sentence, in lower case:
// qualified names, and bare names with an inner capital, a digit or an underscore.
func (l *linter) distinctNames() map[string]bool {
	names := map[string]bool{}
	for _, name := range metaTools {
		names[name] = true
	}
	for _, p := range l.others {
		for _, t := range p.Tools {
			names[strings.ToLower(p.Name+"."+t.Name)] = true
			if strings.Contains(t.Name, ".") {
				names[strings.ToLower(t.Name)] = true
			}
			bare := manifest.LocalName(t.Name)
			if list := spelling.Words(bare); len(list) > 1 && strings.ToLower(bare) != strings.Join(list, "-") {
				names[strings.ToLower(bare)] = true
			}
		}
	}
	return names
}

// ownWords returns the names that a plugin may use in any sentence, in lower case: its own name, and the names of its
// tools and their fields.
func (l *linter) ownWords() map[string]bool {
	own := map[string]bool{strings.ToLower(l.m.Name): true}
	add := func(s string) { own[strings.ToLower(s)] = true }
	for i := range l.m.Tools {
		t := &l.m.Tools[i]
		add(t.Name)
		add(manifest.LocalName(t.Name))
		add(l.m.Name + "." + t.Name)
		for _, f := range allFields(t) {
			add(f.name)
			for _, value := range jsontext.Texts(f.schema["enum"]) {
				add(value)
			}
		}
	}
	for _, e := range l.m.ExitCodes {
		add(e.Name)
	}
	return own
}

// mixedWord returns a word of Latin letters that contains look-alikes from other scripts, "" if there is none.
func mixedWord(s string) string {
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if replaced := letters.ReplaceLookAlikes(word); replaced != word {
			latin, foreign := 0, 0
			for _, r := range word {
				switch {
				case unicode.Is(unicode.Latin, r):
					latin++
				case letters.ReplaceLookAlikes(string(r)) != string(r):
					foreign++
				default:
					foreign -= len(word) // a letter without a Latin twin shows that the word belongs to its own script
				}
			}
			if latin >= 2 && foreign > 0 {
				return word
			}
		}
	}
	return ""
}

// skeleton maps a name to what it looks like at a glance.
func skeleton(name string) string {
	return glance.Replace(strings.ToLower(letters.ReplaceLookAlikes(name)))
}

var neighborSkeleton = remembered(skeleton)

var glance = strings.NewReplacer("rn", "m", "vv", "w", "cl", "d", "0", "o", "1", "l", "i", "l", "3", "e", "4", "a",
	"5", "s", "7", "t", "_", "", "-", "", ".", "")

func checkLookAlikeName(l *linter) {
	for _, p := range l.others {
		if looksLike(l.m.Name, p.Name) && (l.owner != p.Owner || !isNumbered(l.m.Name, p.Name)) {
			l.add("/name", "%q can be mistaken for the plugin %q; choose another name", l.m.Name, p.Name)
		}
	}
	qualified, local := map[string]string{}, map[string]string{}
	for _, p := range l.others {
		for _, t := range p.Tools {
			full := p.Name + "." + t.Name
			if qualified[neighborSkeleton(p.Name+t.Name)] = full; strings.Contains(t.Name, ".") {
				local[neighborSkeleton(t.Name)] = full
			}
		}
	}
	if looksLike(l.m.Name, hostName) || sameName(l.m.Name, hostName) {
		l.add("/name", "%q can be mistaken for the host itself; choose another name", l.m.Name)
	}
	for i, g := range l.m.Groups {
		for _, p := range l.others {
			if sameName(g.Name, p.Name) && len(p.Name) > 1 && slices.ContainsFunc(p.Tools, func(t *manifest.Tool) bool {
				return l.m.Tool(g.Name+"."+t.Name) != nil
			}) {
				l.add(fmt.Sprintf("/groups/%d/name", i), "the group %q has the name and tools of the plugin %q; rename it",
					g.Name, p.Name)
			}
		}
	}
	l.eachTool(func(at string, t *manifest.Tool) {
		if slices.ContainsFunc(metaTools, func(m string) bool { return sameName(m, t.Name) }) {
			l.add(at+"/name", "%q is the name of a tool of the MCP server itself; choose another name", t.Name)
		} else if other := qualified[skeleton(t.Name)]; other != "" {
			l.add(at+"/name", "%q can be mistaken for the tool %q; choose another name", t.Name, other)
		} else if other := qualified[skeleton(l.m.Name+t.Name)]; other != "" {
			l.add(at+"/name", "%q can be mistaken for the tool %q; choose another name", l.m.Name+"."+t.Name, other)
		}
		for i, alias := range t.Aliases {
			other := cmp.Or(qualified[skeleton(alias)], local[skeleton(alias)])
			if other != "" && strings.ContainsAny(alias, "._") {
				l.add(fmt.Sprintf("%s/aliases/%d", at, i), "%s is the name of the tool %q", quoted(alias), other)
			}
		}
		for _, f := range paramsOf(t) {
			if word := mixedWord(f.name); word != "" {
				l.add(at+f.pointer, "the name %s mixes letters of several scripts that look alike", quoted(word))
			}
		}
	})
	for _, t := range l.texts {
		if word := mixedWord(t.raw); word != "" && t.kind != data {
			l.add(t.pointer, "%s mixes letters of several scripts that look alike", quoted(word))
		}
	}
}

// isNumbered reports whether two names differ only in a number, as db1 and db12.
func isNumbered(a, b string) bool {
	const digits = "0123456789"
	stem := strings.TrimRight(a, digits)
	return stem != a && stem != b && strings.EqualFold(stem, strings.TrimRight(b, digits))
}

// looksLike reports whether one name can be mistaken for another: they look the same, or differ by one letter that is
// doubled, left out, added or exchanged with its neighbor.
func looksLike(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if len(a) > len(b) {
		a, b = b, a
	}
	switch {
	case a == b:
		return false
	case skeleton(a) == skeleton(b) || len(a) >= 4 && a+"s" == b:
		return true
	case spelling.Distance(a, b) != 1:
		return false
	case len(a) == len(b): // letters are swapped, or one differs
		isSwapped := slices.Equal(slices.Sorted(slices.Values([]byte(a))), slices.Sorted(slices.Values([]byte(b))))
		return len(a) >= 3 && isSwapped || len(a) >= 6
	case len(a) < 4:
		return len(a) == 3 && isDoubled(b, a)
	}
	return a[0] == b[0] && len(b) == len(a)+1
}

// isDoubled reports whether long is short with one of its letters doubled.
func isDoubled(long, short string) bool {
	for i := range short {
		if long == short[:i]+short[i:i+1]+short[i:] {
			return true
		}
	}
	return false
}

// maxQueries bounds the searches of one check.
const maxQueries = 400

// checkTakesFirstPlace compares search results with and without the plugin. A search by a phrase of another tool must
// still find that tool. This is tried for phrases that share at least half of their words with a phrase of this
// plugin. A phrase of this plugin belongs to another plugin's tool if it finds that tool with high confidence and
// only rewords the tool's text. The words that a derived manifest repeats of a name or a path are not tried: a document
// names its operations like those of other APIs.
func checkTakesFirstPlace(l *linter) {
	if l.search == nil {
		return
	}
	own := map[string]string{}        // phrase -> pointer
	having := map[string][][]string{} // word -> phrases of this plugin that have it
	l.eachTool(func(at string, t *manifest.Tool) {
		var named []string
		if l.m.Derived() {
			named = contentWords(t.Name + " " + t.HTTP.Path)
		}
		isNew := func(w string) bool { return !slices.Contains(named, w) }
		for k, phrases := range [][]string{t.Aliases, t.Tasks, t.Keywords} {
			for i, phrase := range phrases {
				if list := contentWords(phrase); own[phrase] == "" && slices.ContainsFunc(list, isNew) {
					own[phrase] = fmt.Sprintf("%s/%s/%d", at, []string{"aliases", "tasks", "keywords"}[k], i)
					for _, w := range list {
						having[w] = append(having[w], list)
					}
				}
			}
		}
	})
	likeness := map[string]float64{} // of a phrase of another tool to the nearest phrase of this plugin
	nearness := func(list []string) (most float64) {
		for _, w := range list {
			for _, mine := range having[w] {
				most = max(most, overlap(list, mine))
			}
		}
		return most
	}
	owners := map[string][]string{} // phrase of another tool -> the tools that have it
	for _, p := range l.others {
		for _, t := range p.Tools {
			full := p.Name + "." + t.Name
			for _, phrase := range append(append([]string{full, manifest.LocalName(t.Name)}, t.Aliases...), t.Tasks...) {
				key := strings.ToLower(phrase)
				if o := nearness(neighborWords(phrase)); o >= 0.5 {
					owners[key], likeness[key] = append(owners[key], full), max(o, likeness[key])
				}
			}
		}
	}
	queries := sortedKeys(owners)
	slices.SortStableFunc(queries, func(a, b string) int { return cmp.Compare(likeness[b], likeness[a]) })
	reported := map[string]bool{}
	takes := func(q string, from Hit) {
		after := l.search(q, true)
		if len(after) == 0 || !l.isOwn(after[0].Name) || reported[after[0].Name+from.Name] {
			return
		}
		// Without a pointer, it was found by its name or its documentation, which other rules check.
		if at := l.pointerOf(after[0].Name, q, own); at != "" {
			reported[after[0].Name+from.Name] = true
			l.add(at, "a search for %s, which is what %s does, would find %s first; use other words", quoted(q), from.Name,
				after[0].Name)
		}
	}
	for _, q := range queries[:min(len(queries), maxQueries)] {
		before := l.search(q, false)
		if len(before) > 0 && slices.Contains(owners[q], before[0].Name) {
			takes(q, before[0])
		}
	}
	for _, q := range sortedKeys(own)[:min(len(own), maxQueries)] {
		if before := l.search(q, false); len(before) > 0 && before[0].Sure && l.rewords(q, before[0].Name) {
			takes(q, before[0])
		}
	}
}

func (l *linter) isOwn(full string) bool {
	plugin, _, _ := strings.Cut(full, ".")
	return sameName(plugin, l.m.Name)
}

// rewords reports whether a phrase has most of its words in common with one phrase, or the brief, of a tool of another
// plugin that is shipped or signed. A single word belongs to nobody, and a phrase that names this plugin is its own.
func (l *linter) rewords(phrase, full string) bool {
	const most, least = 0.6, 2
	plugin, local, _ := strings.Cut(full, ".")
	p, words := l.plugin(plugin), contentWords(phrase)
	if p == nil || p.tool(local) == nil || !p.Owned || len(words) < least ||
		slices.Contains(spelling.Words(phrase), strings.ToLower(l.m.Name)) {
		return false
	}
	t := p.tool(local)
	brief, _, _ := strings.Cut(t.Docs.Brief, ":")
	return slices.ContainsFunc(slices.Concat(t.Aliases, t.Tasks, []string{brief}), func(its string) bool {
		return overlap(words, contentWords(its)) >= most
	})
}

// pointerOf returns the pointer of the phrase of a tool of this plugin that is nearest to a query, "" if none shares a
// word with it.
func (l *linter) pointerOf(full, query string, own map[string]string) string {
	_, local, _ := strings.Cut(full, ".")
	best, at := 0.0, "" // none found yet
	for i := range l.m.Tools {
		if !sameName(l.m.Tools[i].Name, local) {
			continue
		}
		prefix := fmt.Sprintf("/tools/%d", i)
		for _, phrase := range sortedKeys(own) {
			if o := overlap(contentWords(query), contentWords(phrase)); strings.HasPrefix(own[phrase], prefix+"/") && o > best {
				best, at = o, own[phrase]
			}
		}
	}
	return at
}

// contentWords returns the stems of a phrase without stop words.
func contentWords(phrase string) []string {
	var list []string
	for _, w := range spelling.Words(phrase) {
		if s := stem(w); !words("stop")[w] && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

var neighborWords = remembered(contentWords)

// overlap returns the number of words that two lists share, divided by the number of words in either.
func overlap(a, b []string) float64 {
	shared := len(lists.Filter(a, func(w string) bool { return slices.Contains(b, w) }))
	if shared == 0 {
		return 0
	}
	return float64(shared) / float64(len(a)+len(b)-shared)
}
