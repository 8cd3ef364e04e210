package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// tierBudgets are the tokens that each rendered tier should stay within, for a tool of at most plainParams parameters.
var tierBudgets = [...]int{manifest.Tier1: 50, manifest.Tier2: 120, manifest.Tier3: 300}

// Tiers 2 and 3 list every parameter on a line, tier 3 also each field of parameters and results. paramTokens is
// enough for its name, its type and a phrase of about eight words, so that authors of tools with many parameters need
// not shorten descriptions until they are unclear.
const (
	plainParams = 2
	paramTokens = 15
)

// tierBudget returns the tokens that a tier of a tool should stay within.
func tierBudget(tier, params int) int {
	if tier == manifest.Tier1 {
		return tierBudgets[tier]
	}
	return tierBudgets[tier] + paramTokens*max(0, params-plainParams)
}

func checkTierLength(l *linter, at string, t *manifest.Tool) {
	params := len(manifest.Params(t.Params))
	for tier := manifest.Tier1; tier <= manifest.Tier3; tier++ {
		d := manifest.Describe(l.m, t, tier)
		for i := range d.Examples {
			d.Examples[i].NotRun = "" // the host wrote it, and no author can shorten it
		}
		listed := append(d.Parameters, d.Returns...)
		limit := tierBudget(tier, params+len(manifest.WithFields(listed))-len(listed))
		if n := d.Tokens(); n > limit {
			l.add(at, "tier %d of %q has %d tokens, the limit is %d; shorten it", tier, t.Name, n, limit)
		}
	}
}

func checkTautology(l *linter, at string, t *manifest.Tool) {
	said := stems(spelling.Words(t.Name + " " + t.Group + " " + l.m.Name))
	adds := func(s string) bool {
		return slices.ContainsFunc(spelling.Words(s), func(w string) bool {
			return !words("stop")[w] && !words("vague")[w] && !slices.Contains(said, stem(w)) && !isSynonym(w, said)
		})
	}
	if !adds(t.Docs.Brief) && !adds(t.Docs.Standard) && !adds(t.Docs.Full) {
		l.add(at+"/docs/brief", "%s says no more than the name %q; say what the tool works on and what it returns",
			quoted(t.Docs.Brief), t.Name)
	}
	for _, p := range paramsOf(t) {
		own := stems(spelling.Words(p.name))
		if d := spelling.Words(p.description()); len(d) > 0 && !slices.ContainsFunc(d, func(w string) bool {
			return !words("stop")[w] && !slices.Contains(own, stem(w))
		}) && !p.item {
			l.add(at+p.pointer, "the description of %q only repeats its name", p.name)
		}
	}
}

// isSynonym reports whether a word means the same as one of the given verb stems.
func isSynonym(word string, list []string) bool {
	base := cmp.Or(synonyms[word], synonyms[strings.TrimSuffix(word, "s")], word)
	return slices.ContainsFunc(list, func(other string) bool {
		return stem(base) == other || synonyms[other] != "" && stem(synonyms[other]) == stem(base)
	})
}

func checkPlainBrief(l *linter) {
	check := func(at, brief string) {
		if found := said("preface").FindString(visible(brief)); found != "" {
			l.add(at+"/docs/brief", "the brief begins with %s; begin with the verb: \"List ...\", \"Convert ...\"",
				quoted(found))
		}
	}
	check("", l.m.Docs.Brief)
	l.eachTool(func(at string, t *manifest.Tool) {
		check(at, t.Docs.Brief)
		for _, text := range toolTexts(t) {
			if found := said("history").FindString(text[1]); found != "" {
				l.add(at+text[0], "%s tells the reader how it was before; say what the tool does", quoted(found))
			}
		}
	})
}

func checkExample(l *linter, at string, t *manifest.Tool) {
	if len(t.Examples) == 0 {
		l.add(at, "%q has no example", t.Name)
	}
}

// taskDepth is the number of first hits that must include a tool when one of its own task phrases is searched for.
const taskDepth = 5

// maxTaskQueries bounds the searches for task phrases of one plugin.
const maxTaskQueries = 2000

func checkTasks(l *linter) {
	queries := 0
	l.eachTool(func(at string, t *manifest.Tool) {
		if t.Deprecated != nil {
			return
		}
		if len(t.Tasks) == 0 {
			l.add(at, "%q has no tasks; add the phrases that an agent would search for", t.Name)
			return
		}
		if l.search == nil {
			return
		}
		full := l.m.Name + "." + t.Name
		for i, task := range t.Tasks {
			if queries++; queries > maxTaskQueries {
				return
			}
			hits := l.search(task, true)
			hits = hits[:min(taskDepth, len(hits))]
			if !slices.ContainsFunc(hits, func(h Hit) bool { return sameName(h.Name, full) }) {
				found := "nothing"
				if len(hits) > 0 {
					found = hits[0].Name
				}
				l.add(fmt.Sprintf("%s/tasks/%d", at, i), "a search for %s finds %s first and %q not among the first %d",
					quoted(task), found, full, taskDepth)
			}
		}
	})
}

func checkDeprecation(l *linter, at string, t *manifest.Tool) {
	if t.Since != "" && manifest.Newer(t.Since, l.m.Version) {
		l.add(at+"/since", "%q is from version %s, and this is %s", t.Name, t.Since, l.m.Version)
	}
	d := t.Deprecated
	if d == nil {
		return
	}
	at += "/deprecated"
	switch target := l.findTool(d.Use); {
	case d.Use == "" && d.Message == "":
		l.add(at, "%q is deprecated without a replacement or a reason; set \"use\" or \"message\"", t.Name)
	case d.Use == "":
	case target == missing:
		l.add(at+"/use", "there is no tool %s; name the tool that replaces %q", quoted(d.Use), t.Name)
	case target == obsolete:
		l.add(at+"/use", "%s is deprecated itself; name the tool that replaces both", quoted(d.Use))
	case sameName(d.Use, l.m.Name+"."+t.Name) || sameName(d.Use, t.Name):
		l.add(at+"/use", "%q cannot replace itself", t.Name)
	}
	for _, v := range []struct{ earlier, later, message string }{
		{t.Since, d.Since, "it is deprecated since %[2]s, before it was introduced in %[1]s"},
		{d.Since, l.m.Version, "it is deprecated since %[1]s, but this is %[2]s"},
		{d.Since, d.RemoveIn, "it is to be removed in %[2]s, before it is deprecated in %[1]s"},
	} {
		if v.earlier != "" && v.later != "" && manifest.Newer(v.earlier, v.later) {
			l.add(at, v.message, v.earlier, v.later)
		}
	}
	if d.RemoveIn != "" && !manifest.Newer(d.RemoveIn, l.m.Version) {
		l.add(at+"/remove_in", "%q was to be removed in %s, and this is %s; remove it and every reference to it", t.Name,
			d.RemoveIn, l.m.Version)
	}
}

// state says what a reference leads to.
type state int

const (
	missing  state = iota
	obsolete       // a deprecated tool of this plugin
	present
	unknown // a tool of a plugin that is not among the neighbors
)

// findTool looks up a qualified name, or the local name of a tool of this plugin.
func (l *linter) findTool(name string) state {
	name = strings.ReplaceAll(manifest.CleanLine(name), "__", ".")
	for _, local := range []string{name, strings.TrimPrefix(name, l.m.Name+".")} {
		if t := l.m.Tool(local); t != nil {
			if t.Deprecated != nil {
				return obsolete
			}
			return present
		}
	}
	plugin, local, qualified := strings.Cut(name, ".")
	switch {
	case !qualified || sameName(plugin, l.m.Name):
		return missing
	case slices.ContainsFunc(l.m.Groups, func(g manifest.Group) bool { return sameName(g.Name, plugin) }):
		return missing
	}
	switch other := l.plugin(plugin); {
	case other == nil:
		return unknown
	case other.tool(local) == nil:
		return missing
	}
	return present
}

func checkReferences(l *linter) {
	l.eachTool(func(at string, t *manifest.Tool) {
		for i, r := range t.Related {
			if l.findTool(r.Tool) == missing {
				l.add(fmt.Sprintf("%s/related/%d/tool", at, i), "there is no tool %s", quoted(r.Tool))
			}
		}
	})
	// In texts, only names of this plugin can be told from other words with a dot.
	for _, t := range l.texts {
		if t.kind != prose || strings.HasSuffix(t.pointer, "/run") {
			continue
		}
		for _, name := range l.ownNames(t.plain) {
			if l.findTool(name) == missing {
				l.add(t.pointer, "there is no tool %s", quoted(name))
			}
		}
	}
	for i, s := range l.m.Tutorial {
		list := strings.Fields(s.Run)
		if len(list) < 3 || list[0] != "parley" || !sameName(list[1], l.m.Name) || strings.HasPrefix(list[2], "-") {
			continue
		}
		group := slices.ContainsFunc(l.m.Groups, func(g manifest.Group) bool { return sameName(g.Name, list[2]) })
		if !group && l.findTool(list[2]) == missing {
			l.add(fmt.Sprintf("/tutorial/%d/run", i), "there is no tool %s", quoted(list[1]+"."+list[2]))
		}
	}
}

// ownNames returns the words of a text that have the form of a qualified name of this plugin: hello.greet.
func (l *linter) ownNames(s string) []string {
	var names []string
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return !isNameRune(r) && r != '.' }) {
		plugin, local, dotted := strings.Cut(strings.Trim(word, "."), ".")
		isUpper := func(name string) bool { return unicode.IsUpper([]rune(name + " ")[0]) }
		isType := isUpper(local) && !slices.ContainsFunc(l.m.Tools, func(t manifest.Tool) bool { return isUpper(t.Name) })
		if dotted && plugin == l.m.Name && local != "" && !isType && !words("file-endings")[strings.ToLower(local)] {
			names = append(names, plugin+"."+local)
		}
	}
	return names
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// named reports whether the name of a field is in a set, as a whole or with one of its words.
func (f *field) named(set map[string]bool) bool {
	names := append(spelling.Words(f.name), strings.ToLower(f.name))
	return slices.ContainsFunc(names, func(name string) bool { return set[name] })
}

func checkCategory(l *linter, at string, t *manifest.Tool) {
	results, params := resultsOf(t), paramsOf(t)
	has := func(fields []field, name string) bool {
		return slices.ContainsFunc(fields, func(f field) bool { return f.named(words("result-" + name)) })
	}
	list := slices.ContainsFunc(results, func(f field) bool { return f.is("array") }) ||
		slices.ContainsFunc(manifest.Params(t.Returns), func(p manifest.Param) bool {
			return p.Name == "result" && p.Type == "array"
		})
	reads := t.Effect == manifest.EffectRead
	wrong := ""
	switch t.Category {
	case "":
		return
	case "generation":
		if len(t.Returns) == 0 {
			wrong = "returns what it made; declare \"returns\""
		} else if !reads && !has(results, "identity") {
			wrong = "returns where what it made is, such as a path or an id"
		} else if has(results, "source") &&
			!(has(results, "identity") && has(results, "order")) {
			wrong = "returns where source belongs and what it needs: path and dependencies"
		}
	case "review":
		if !has(results, "patch") &&
			!(list && has(results, "location") && has(results, "finding")) {
			wrong = "returns a list of findings, each with a location and a reason"
		}
	case "correction":
		if !has(params, "fragment") || !has(params, "fault") || len(params) < 2 {
			wrong = "takes what is to be corrected and what is wrong with it: a message, a location, a snippet"
		} else if len(t.Returns) == 0 {
			wrong = "returns what it corrected; declare \"returns\""
		} else if len(results) > 0 && !has(results, "fragment") && !has(results, "patch") && !has(results, "whole") {
			wrong = "returns the corrected whole, or a patch"
		}
	case "planning":
		if !list || !has(results, "order") {
			wrong = "returns a list of steps with their order or dependencies"
		} else if !has(results, "cost") {
			wrong = "returns estimates of what the steps take, such as time, calls or tokens"
		} else if len(t.ExitCodes) == 0 {
			wrong = "fails with an exit code where there is no plan; declare it in \"exit_codes\""
		}
	case "query":
		if !reads {
			wrong = "only reads; its effect is " + t.Effect
		} else if len(t.Returns) == 0 {
			wrong = "returns what was asked for; declare \"returns\""
		}
	case "action":
		if reads {
			wrong = "changes something; its effect is read"
		}
	}
	if wrong != "" {
		l.add(at+"/category", "a tool of category %s %s", t.Category, wrong)
	}
}
