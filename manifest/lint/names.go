package lint

import (
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/lint/vocabulary"
	"github.com/parley-tools/parley/manifest/spelling"
)

// verbs are words that names of tools begin with.
var verbs = lazy.Words(vocabulary.Verbs)

// checkVerbName accepts a name that begins with a verb, or whose noun occurs in the brief or in the result's schema.
// A first word that most tools of the plugin share, as in git_commit, is not counted as a part of the name.
func checkVerbName(l *linter) {
	first := map[string]int{}
	for _, t := range l.m.Tools {
		if list := spelling.Words(manifest.LocalName(t.Name)); len(list) > 1 {
			first[list[0]]++
		}
	}
	l.eachTool(func(at string, t *manifest.Tool) {
		list := spelling.Words(manifest.LocalName(t.Name))
		if len(list) > 1 && (list[0] == strings.ToLower(l.m.Name) ||
			first[list[0]] > 2 && first[list[0]]*2 > len(l.m.Tools)) {
			list = list[1:]
		}
		if len(list) == 0 || verbs()[list[0]] || isAction(list[0]) {
			return
		}
		noun := stem(list[len(list)-1])
		for _, described := range []string{t.Docs.Brief, t.Docs.Standard} {
			// The first word of a brief is its verb.
			if all := stems(spelling.Words(described)); len(all) > 1 && slices.Contains(all[1:], noun) {
				return
			}
		}
		for _, f := range resultsOf(t) {
			if slices.Contains(stems(spelling.Words(f.name+" "+f.description())), noun) {
				return
			}
		}
		better := append([]string{"get"}, list...)
		if last := list[len(list)-1]; verbs()[last] && len(list) > 1 {
			better = append([]string{last}, list[:len(list)-1]...)
		}
		l.add(at+"/name", "%q does not begin with a verb and is not the noun of a result; name it after what it does, "+
			"such as %q", t.Name, strings.Join(better, "_"))
	})
}

// isAction reports whether a word is a verb with a prefix, such as recalculate.
func isAction(word string) bool {
	return slices.ContainsFunc([]string{"re", "un", "de", "dis", "pre", "over"}, func(prefix string) bool {
		rest, ok := strings.CutPrefix(word, prefix)
		return ok && verbs()[rest]
	})
}

// synonyms maps verbs to a verb of the same meaning. "find" and "search" do not mean "get": they select differently.
var synonyms = map[string]string{
	"fetch": "get", "retrieve": "get", "obtain": "get", "remove": "delete", "erase": "delete", "destroy": "delete",
	"make": "create", "enumerate": "list", "modify": "update", "change": "update", "execute": "run", "invoke": "run",
}

func checkNearDuplicate(l *linter) {
	byName, byBrief := map[string]string{}, map[string]string{}
	l.eachTool(func(at string, t *manifest.Tool) {
		list := spelling.Words(t.Name)
		if t.Group != "" && len(list) > 1 && sameName(list[0], t.Group) {
			list = list[1:]
		}
		if len(list) > 0 && synonyms[list[0]] != "" {
			list[0] = synonyms[list[0]]
		}
		if !slices.Contains(list, "to") && !slices.Contains(list, "from") { // text_to_speech is not speech_to_text
			slices.Sort(list)
		}
		key := strings.ToLower(t.Group) + " " + strings.Join(list, " ")
		if other := byName[key]; other != "" {
			l.add(at+"/name", "%q differs from %q only by spelling, order or a synonym; an agent cannot tell which one to "+
				"call", t.Name, other)
			return
		}
		byName[key] = t.Name
		brief := gist(t.Docs.Brief)
		if other := byBrief[brief]; other != "" && t.Deprecated == nil {
			l.add(at+"/docs/brief", "%q has the same brief as %q; say how they differ", t.Name, other)
			return
		}
		byBrief[brief] = t.Name
		for _, p := range l.others {
			if i := slices.IndexFunc(p.Tools, func(o *manifest.Tool) bool {
				return t.Deprecated == nil && o.Docs.Brief != "" && neighborGist(o.Docs.Brief) == brief
			}); i >= 0 {
				l.add(at+"/docs/brief", "%q has the same brief as %s; say how they differ", t.Name, p.Name+"."+p.Tools[i].Name)
				return
			}
		}
	})
}

// gist returns the words of a brief, without articles and inflections.
func gist(brief string) string {
	return strings.Join(stems(lists.Filter(spelling.Words(brief), func(w string) bool { return !words("stop")[w] })), " ")
}

var neighborGist = remembered(gist)

// selectors are parameters that often choose what a tool does.
var selectors = lazy.Words("action operation command method verb op do task")

func checkOneTask(l *linter, at string, t *manifest.Tool) {
	list := spelling.Words(manifest.LocalName(t.Name))
	for i := 1; i+1 < len(list); i++ {
		if list[i] == "and" && verbs()[list[i+1]] && verbs()[list[0]] {
			l.add(at+"/name", "%q does two things; make it two tools", t.Name)
			return
		}
	}
	for _, f := range paramsOf(t) {
		if f.depth > 1 || f.item || !selectors()[strings.ToLower(f.name)] {
			continue
		}
		actions := 0
		for _, value := range jsontext.Texts(f.schema["enum"]) {
			if w := spelling.Words(value); len(w) > 0 && verbs()[w[0]] {
				actions++
			}
		}
		if actions >= 3 {
			l.add(at+f.pointer, "%q selects among %d actions; make them tools of their own, each with its "+
				"parameters and effect", f.name, actions)
		}
	}
}

// Promises returns the verbs of a new text whose effect is stronger than the given one, except those that the
// previous text had: a text must not promise more than the tool does.
func Promises(before, after, effect string) (verbs []string) {
	isStronger := func(verb string) bool {
		return effect != manifest.EffectDestructive &&
			(words("destroys")[verb] || effect != manifest.EffectWrite && words("writes")[verb])
	}
	had := spelling.Words(before)
	for _, word := range spelling.Words(after) {
		stem := strings.TrimSuffix(word, "s")
		if (isStronger(word) || isStronger(stem)) && !slices.Contains(had, word) && !slices.Contains(had, stem) &&
			!slices.Contains(verbs, word) {
			verbs = append(verbs, word)
		}
	}
	return verbs
}

// checkEffectVerb compares the declared effect with the verb of the name, if the effect of that verb is obvious.
func checkEffectVerb(l *linter, at string, t *manifest.Tool) {
	list := append(spelling.Words(manifest.LocalName(t.Name)), "")
	switch verb := list[0]; {
	case t.Effect == manifest.EffectRead && (words("writes")[verb] || words("destroys")[verb]) && !isPure(l.m, t):
		l.add(at+"/effect", "%q is declared as read, but its verb is %q; the effect is enforced, so declare what it does",
			t.Name, verb)
	case t.Effect == manifest.EffectDestructive && words("reads")[verb]:
		l.add(at+"/effect", "%q is declared as destructive, but its verb is %q; each call would need a confirmation",
			t.Name, verb)
	}
}

// isPure reports whether a tool can have no effect besides its result: its plugin requests no right, and it works on
// its parameters only. Tools that "replace" or "remove" parts of a text are examples.
func isPure(m *manifest.Manifest, t *manifest.Tool) bool {
	return len(m.Capabilities.Rights()) == 0 && !t.OpenWorld
}

// checkEffectRights compares the declared effects of all tools with the rights that the plugin requests.
func checkEffectRights(l *linter) {
	strongest := map[string]bool{}
	for _, t := range l.m.Tools {
		strongest[t.Effect] = true
	}
	changes := strongest[manifest.EffectWrite] || strongest[manifest.EffectDestructive]
	asked := l.m.Capabilities.Rights()
	for _, r := range asked {
		if r.Why == "" {
			l.add(r.Pointer, "the right %s has no reason; say in \"why\" what it is for", r.Name)
		}
		if r.Changes && !changes {
			l.add(r.Pointer, "every tool is declared as read, so %s can never be used; ask for less, or declare the effect of "+
				"the tools that use it", r.Name)
		}
	}
	if changes && len(asked) == 0 && l.m.Kind != manifest.KindExtism {
		l.eachTool(func(at string, t *manifest.Tool) {
			if t.Effect != manifest.EffectRead {
				l.add(at+"/effect", "%q is declared as %s, but the plugin asks for no right, so it cannot change anything",
					t.Name, t.Effect)
			}
		})
	}
}
