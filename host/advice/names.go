package advice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/peers"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Names knows what calls in other forms mean among the tools of a catalog: by the names of other products, by other
// spellings, and with words as on a command line. Its tables are built on first use.
type Names struct {
	catalog *host.Catalog
	peers   sync.Map                // Provider -> peers.Table
	latest  atomic.Pointer[meaning] // meaning of the latest name
	forms   sync.Map                // Provider -> []spelled
}

// NamesOf returns the names of a catalog.
func NamesOf(c *host.Catalog) *Names { return &Names{catalog: c} }

// Catalog returns the catalog whose names these are.
func (n *Names) Catalog() *host.Catalog { return n.catalog }

// maxName bounds the names that are looked up, in bytes.
const maxName = 200

// Meant is a call of one of the catalog's tools that a call in another form means.
type Meant struct {
	Tool    string // qualified
	Params  map[string]any
	Changes []schema.Change // changes of the parameters
	File    string          // the result goes there; only the command line has files
}

// Knows reports whether a name that the catalog does not have means something to it: the manifests know it as a tool of
// another product, or it is another spelling of a tool's own name.
func (n *Names) Knows(name string) bool {
	return len(n.rules(name).all) > 0
}

// Meant returns the calls that such a name may mean, the likeliest one first, and the nearest tool. A tool's own name
// may have words after it that belong to the name elsewhere, as in page.get_text. words are the words after the name,
// on a command line or in a step. Parameters that no rule knows are kept, because validation reports them.
func (n *Names) Meant(name string, given map[string]any, words []any) (all []Meant, see string) {
	m := n.rules(name)
	if m.isTypo && len(given)+len(words) == 0 {
		return nil, "" // the similar name says enough
	}
	add := func(tool string, params map[string]any, changes []schema.Change) {
		params, more, _ := rewrite(m.always, params, nil)
		file, _ := params[outName].(string)
		delete(params, outName)
		all = append(all, Meant{tool, params, append(changes, more...), file})
	}
	for _, r := range m.all {
		if len(all) == 0 {
			see = cmp.Or(r.See, r.Tool)
		}
		own, forms := n.paramsOf(r.Tool)
		for _, isPlaced := range []bool{false, true} {
			given, words, fits := given, words, true
			if isPlaced {
				given, words, fits = placed(own, forms, given, words)
			}
			params, isForm := r.WithWords(given, words)
			var changes []schema.Change
			if fits = fits && isForm && (!m.isGuess || knowsAll(own, given)); fits {
				params, changes, fits = rewrite([]peers.Rule{r}, params, own)
			}
			switch {
			case fits && r.Tool == "":
				return all, see
			case fits:
				add(r.Tool, params, changes)
			}
		}
	}
	if slices.ContainsFunc(m.all, func(r peers.Rule) bool { return len(r.Words) > 1 }) {
		return all, see // the words are positional
	}
	for _, r := range m.all {
		if params := unquoted(n.catalog.Exact(r.Tool).Tool, r, given, words); params != nil {
			add(r.Tool, params, nil)
		}
	}
	return all, see
}

// unquoted returns the parameters of a tool that takes one text, which came as several words because it lacks its
// quotes; nil for others.
func unquoted(t *manifest.Tool, r peers.Rule, given map[string]any, words []any) map[string]any {
	if t == nil || len(t.Positional) > 1 || len(r.Words) != 1 || len(words) < 2 || len(r.From)+len(r.To) > 0 {
		return nil
	}
	name := strings.TrimSuffix(r.Words[0], "?")
	if kind, _ := manifest.TypeAt(t.Params, name); kind != "string" || given[name] != nil {
		return nil
	}
	params := maps.Clone(given)
	params[name] = strings.TrimSuffix(fmt.Sprintln(words...), "\n") // with spaces between them
	return params
}

// verbs are words that belong to the name of a call in other products, as in "cookies clear".
var verbs = []string{"all", "clear", "delete", "get", "list", "local", "remove", "session", "set"}

// Conflicts reports whether words after a tool's own name mean another call in other products: "cookies clear" shows no
// cookie there, and "wait 2000" or "wait 2s" waits for no text. Only words that may do so are looked up.
func (n *Names) Conflicts(at host.Address, values []any) bool {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = jsontext.Text(value)
	}
	isNumber := func(word string) bool {
		digits := strings.TrimRight(word, " secondm")
		return digits != "" && strings.Trim(digits, "0123456789") == ""
	}
	if len(words) == 0 || len(at.Tool.Positional) == 0 ||
		!slices.Contains(verbs, words[0]) && !slices.ContainsFunc(words, isNumber) {
		return false
	}
	own := ruleOf(at)
	meant, _ := own.WithWords(map[string]any{}, values)
	for i, name := range []string{at.Name(), at.Name() + "_" + words[0]} {
		m := n.rules(name)
		for _, r := range m.all[m.itself:] {
			params, fits := r.WithWords(map[string]any{}, values[i:])
			if fits {
				own, _ := n.paramsOf(r.Tool)
				params, _, fits = r.Apply(params, own)
			}
			if isOther := r.Tool == "" && len(r.From) == 0; isOther || fits && i+len(r.From) > 0 {
				return r.Tool != at.Name() || !reflect.DeepEqual(params, meant)
			}
		}
	}
	return false
}

// paramsOf returns the schema of the parameters of a tool, and the rewrites of their other forms; nil without a tool.
func (n *Names) paramsOf(name string) (own json.RawMessage, forms []peers.Rule) {
	if at := n.catalog.Exact(name); at.Tool != nil {
		table := n.PeersOf(at.Provider)
		own, forms = at.Tool.Params, table.FormsOf(at.Tool.Name)
	}
	return own, forms
}

// knowsAll reports whether all parameters that are given are a tool's own.
func knowsAll(own json.RawMessage, given map[string]any) bool {
	for name := range given {
		if known, _, _ := manifest.ParamNamed(own, name); known == "" {
			return false
		}
	}
	return true
}

// outName is the name that a rule uses for the file of the result.
const outName = "--out"

// placed sets the parameters of words that can mean only one parameter, and returns the other words. Such words are
// NAME=VALUE, NAME:VALUE, NAME: and a value, a value of an enum or in another form, and the name of a switch.
func placed(params json.RawMessage, forms []peers.Rule, given map[string]any, words []any) (
	placed map[string]any, rest []any, ok bool,
) {
	placed = maps.Clone(given)
	put := func(name string, value any) bool {
		if _, taken := placed[name]; name == "" || taken {
			return false
		}
		placed[name], ok = value, true
		return true
	}
	for name, value := range given {
		if own, _, _ := manifest.ParamNamed(params, name); own == "" && value == "true" && put(homeOf(params, nil, name)) {
			delete(placed, name)
		}
	}
	for len(words) > 0 {
		text, _ := words[0].(string)
		name, value, isPair := cutPair(text)
		known, _, own := manifest.ParamNamed(params, name)
		switch {
		case put(homeOf(params, forms, text)):
		case own && isPair && value == "" && text != name+"=" && len(words) > 1 && put(known, words[1]):
			words = words[1:]
		case own && isPair && put(known, value):
		default:
			rest = append(rest, words[0])
		}
		words = words[1:]
	}
	return placed, rest, ok
}

// cutPair splits NAME=VALUE or NAME:VALUE.
func cutPair(text string) (name, value string, isPair bool) {
	i := strings.IndexAny(text, "=:")
	if i < 0 {
		return text, "", false
	}
	return text[:i], strings.TrimSpace(text[i+1:]), true
}

// homeOf returns the only parameter that a word can mean: as one of its values, as the name of a switch, or else as a
// value in another form.
func homeOf(params json.RawMessage, forms []peers.Rule, word string) (name string, value any) {
	found := 0
	for _, p := range manifest.Params(params) {
		if p.Type == "boolean" && spelling.Fold(p.Name) == spelling.Fold(word) {
			name, value, found = p.Name, true, found+1
		} else if slices.ContainsFunc(p.Enum, func(v json.RawMessage) bool { return string(v) == `"`+word+`"` }) {
			name, value, found = p.Name, word, found+1
		}
	}
	for i := 0; found == 0 && i < len(forms); i++ {
		for from, want := range forms[i].From {
			if len(forms[i].From) == 1 && want == any(word) {
				name, value, found = from, word, 1
			}
		}
	}
	if found != 1 {
		return "", nil
	}
	return name, value
}

// Option returns what an option of a command line, typed without dashes or as -i, stands for after such a name.
// isParam reports whether a rule or the tool itself has a parameter with that name; if every call has such an option,
// it must be the tool's own name of the parameter. isSwitch reports whether the option takes no value.
func (n *Names) Option(name, typed string) (isParam, isSwitch bool) {
	m := n.rules(name)
	always := slices.DeleteFunc(slices.Clone(m.always), func(r peers.Rule) bool { return len(r.From) > 1 })
	for _, r := range m.all {
		params, forms := n.paramsOf(r.Tool)
		known, kind, own := manifest.ParamNamed(params, typed)
		home, _ := homeOf(params, nil, typed)
		isParam = isParam || own || known != "" && !option.Is(typed)
		isSwitch = isSwitch || kind == "boolean" || kind == "" && home != ""
		for _, r := range slices.Concat(always, []peers.Rule{r}, forms) {
			for from, want := range r.From {
				if spelling.Fold(from) == spelling.Fold(typed) {
					isParam, isSwitch = true, want == true || kind == "boolean" // a rule knows it better than an enum
				}
			}
		}
		if !isParam && len(switches(params, typed)) == 1 {
			isParam, isSwitch = true, true
		}
	}
	return isParam, isSwitch
}

// switches returns the switches that begin with the letter of an option such as -i.
func switches(params json.RawMessage, typed string) []manifest.Param {
	letter, isLetter := strings.CutPrefix(typed, "-")
	return slices.DeleteFunc(manifest.Params(params), func(p manifest.Param) bool {
		return !isLetter || p.Type != "boolean" || !strings.HasPrefix(p.Name, letter)
	})
}

// rewrite applies the rules that fit to parameters of a tool, in order. A JSON text is decoded if a rule puts it into
// a parameter for any value. ok is false if no rule fits.
func rewrite(rules []peers.Rule, given map[string]any, params json.RawMessage) (
	meant map[string]any, changes []schema.Change, ok bool,
) {
	for _, rule := range rules {
		if rewritten, own, fits := rule.Apply(given, params); fits {
			given, changes, ok = rewritten, append(changes, own...), true
			for _, name := range append(slices.Collect(maps.Keys(rule.To)), rule.Words...) {
				name = strings.TrimSuffix(name, "?")
				text, _ := given[name].(string)
				value, err := jsontext.Decode([]byte(text), jsontext.Limits{})
				kind, _ := manifest.TypeAt(params, name)
				if kind == "any" && err == nil && jsontext.LooksLikeJSON(text) {
					at := "/" + jsontext.EscapeToken(name)
					given[name] = value
					changes = append(changes, schema.Change{From: at, To: at, How: schema.Parsed})
				}
			}
		}
	}
	return given, changes, ok
}

// PeersOf returns what a plugin's manifest knows about calls of other products.
func (n *Names) PeersOf(p host.Provider) (table peers.Table) {
	if known, ok := n.peers.Load(p); ok {
		return known.(peers.Table)
	}
	if m, err := p.Manifest(); err == nil {
		table = peers.Read(m.Peers)
	}
	n.peers.Store(p, table)
	return table
}

// OfPeers reports whether a manifest knows words as the name of a tool of another product.
func (n *Names) OfPeers(words ...string) bool {
	return slices.ContainsFunc(n.catalog.Providers(), func(p host.Provider) bool {
		table := n.PeersOf(p)
		return len(table.Named(spelling.Fold(strings.Join(words, "_")))) > 0
	})
}

// meaning is what a name means: the calls, with qualified names, and the rewrites that apply to all of them.
type meaning struct {
	name        string
	all, always []peers.Rule
	itself      int  // how many of the calls are of the tool with this name
	isGuess     bool // only its last word names a tool, or a tool's name is nearly the same
	isTypo      bool
}

// rules returns the meaning of a name. It looks for a tool with this name in any spelling, then for rules of manifests,
// then for the only tool whose name, or last word, is nearly the same. A manifest's rules about other plugins do not
// count, except about the built-in one. If the name has a plugin, tools of other plugins do not count. For a tool's own
// name the rules are the call itself, and then the rules of its plugin's manifest.
func (n *Names) rules(name string) *meaning {
	if latest := n.latest.Load(); latest != nil && latest.name == name { // a caller asks several times
		return latest
	}
	m := &meaning{name: name}
	if _, isPlugin := n.catalog.Provider(name); !isPlugin && len(name) <= maxName {
		n.findRules(m)
	}
	n.latest.Store(m)
	return m
}

func (n *Names) findRules(m *meaning) {
	first, local, isDotted := strings.Cut(m.name, ".")
	within := ""
	if p, isPlugin := n.catalog.Provider(first); isDotted && isPlugin {
		within = p.Info().Name
	}
	folded := spelling.Fold(m.name)
	if at := n.catalog.Exact(first + "." + local); at.Tool != nil {
		m.all, m.itself = []peers.Rule{ruleOf(at)}, 1
	} else if m.all = n.only(whole, folded, ""); m.all != nil {
		return
	} else if isDotted && first != within {
		// Page.navigate is a tool of cdp, and page.navigate what other products call page.open.
		if m.all = n.only(bare, folded, ""); m.all != nil {
			return
		}
	}
	tables := map[string]peers.Table{}
	var prefixes []string
	for _, p := range n.catalog.Providers() {
		if plugin := p.Info().Name; within == "" || plugin == within {
			own := n.PeersOf(p)
			tables[plugin], prefixes = own, append(prefixes, own.Prefixes...)
			m.always = append(m.always, own.Names["*"]...)
		}
	}
	tails := peers.NameTails(m.name, prefixes)
	for _, tail := range tails[1:] {
		if m.itself > 0 {
			break
		} else if own := n.only(whole, tail, ""); own != nil {
			m.all = append(m.all, own...)
			return
		}
	}
	for _, tail := range tails {
		for _, plugin := range slices.Sorted(maps.Keys(tables)) {
			p := tables[plugin]
			if all := slices.Clone(p.Named(tail)); len(all) > 0 {
				for i := range all {
					all[i].Tool, all[i].See = n.qualified(plugin, all[i].Tool), n.qualified(plugin, all[i].See)
				}
				m.all, m.always = append(m.all, all...), p.Names["*"]
				return
			}
		}
	}
	if m.itself > 0 {
		return
	}
	for i, tail := range tails {
		plugin := within
		if all := n.catalog.Providers(); i == 0 && within != "" && all[0].Info().Kind == manifest.KindBuiltin {
			plugin = all[0].Info().Name // page.captureScreenshot is a tool of the domain Page
		}
		if len(m.all) == 0 {
			m.all = n.only(bare, tail, plugin)
		}
		if len(m.all) == 0 {
			m.all = n.only(inSingular, singular(tail), plugin)
		}
	}
	if p, ok := n.catalog.Provider(within); ok && len(m.all) == 0 && p.Info().Kind != manifest.KindBuiltin {
		m.all = aliased(p, spelling.Fold(local))
	}
	if len(m.all) == 0 {
		m.all, m.isTypo = n.guess(m.name, within, local)
		m.isGuess = len(m.all) > 0
	}
}

// guess returns the call of the only tool that a name can mean: the last word of the tool's name is the word of the
// name or, in the plugin of the name, the name differs by a typo. It returns nil if no tool or several match.
func (n *Names) guess(name, within, local string) (found []peers.Rule, isTypo bool) {
	word := local
	if last := manifest.LocalName(local); within == "" {
		word = name // "browser_resume" is not Debugger.resume
	} else if last != strings.ToLower(last) { // "Page.getDocument" is DOM.getDocument, but "Page.pause" is not a tool
		word = last
	}
	p, ok := n.catalog.Provider(within)
	if found = n.only(lastWord, spelling.Fold(word), within); found != nil || !ok {
		return found, false
	}
	names, _ := p.Names()
	names = slices.DeleteFunc(slices.Clone(names), func(own string) bool { return !spelling.IsTypo(local, own) })
	if len(names) != 1 {
		return nil, false
	}
	return []peers.Rule{ruleOf(n.catalog.Exact(within + "." + names[0]))}, true
}

// aliased returns the call of the only tool of a plugin that has a folded name among its aliases; nil if none or
// several do.
func aliased(p host.Provider, name string) (found []peers.Rule) {
	names, _ := p.Names()
	for _, local := range names {
		tool, err := p.Tool(local)
		isAlias := func(alias string) bool { return spelling.Fold(alias) == name }
		if err == nil && slices.ContainsFunc(tool.Aliases, isAlias) {
			found = append(found, ruleOf(host.Address{Plugin: p.Info().Name, Provider: p, Tool: tool}))
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found
}

// singular returns a folded name without the ending of a plural: query and queries are one, as are hash and hashes.
func singular(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "s"), "e")
	if stem, is := strings.CutSuffix(name, "y"); is {
		return stem + "i"
	}
	return name
}

// qualified returns the name of a tool that a plugin may name: its own, or a built-in one; else "".
func (n *Names) qualified(plugin, tool string) string {
	at := n.catalog.Exact(plugin + "." + tool)
	if first, local, _ := strings.Cut(tool, "."); at.Tool == nil {
		at = n.catalog.Exact(first + "." + local)
	}
	if at.Tool == nil || at.Plugin != plugin && at.Provider.Info().Kind != manifest.KindBuiltin {
		return ""
	}
	return at.Name()
}

// The forms in which a name can be spelled, each folded: with the plugin, without it, in the singular, and the last
// word.
const (
	whole = iota
	bare
	inSingular
	lastWord
)

// spelled is the name of a tool with its forms.
type spelled struct {
	local string
	forms [4]string
}

// only returns the call of the only tool whose name is spelled so in the given form; nil if none or several are. If
// within is set, only tools of that plugin count.
func (n *Names) only(form int, spelled, within string) (found []peers.Rule) {
	for _, p := range n.catalog.Providers() {
		plugin := p.Info().Name
		if within != "" && plugin != within || form == whole && !strings.HasPrefix(spelled, spelling.Fold(plugin)) {
			continue // its names need not be read
		}
		for _, name := range n.formsOf(p) {
			if name.forms[form] != spelled {
				continue
			} else if at := n.catalog.Exact(plugin + "." + name.local); at.Tool != nil {
				found = append(found, ruleOf(at))
			}
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found
}

// formsOf returns the names of a plugin with their forms.
func (n *Names) formsOf(p host.Provider) (all []spelled) {
	if known, ok := n.forms.Load(p); ok {
		return known.([]spelled)
	}
	plugin := spelling.Fold(p.Info().Name)
	names, _ := p.Names()
	for _, name := range names {
		own, last := spelling.Fold(name), spelling.Fold(manifest.LocalName(name))
		all = append(all, spelled{name, [4]string{plugin + own, own, singular(own), last}})
	}
	n.forms.Store(p, all)
	return all
}

// ruleOf returns the rule for a call of a tool by its own name, with its positional parameters as words.
func ruleOf(a host.Address) peers.Rule {
	own := peers.Rule{Tool: a.Name()}
	for i, word := range a.Tool.Positional {
		if kind, _ := manifest.TypeAt(a.Tool.Params, word); kind == "array" && i == len(a.Tool.Positional)-1 {
			word += "..."
		}
		own.Words = append(own.Words, word+"?")
	}
	required := slices.DeleteFunc(manifest.Params(a.Tool.Params), func(p manifest.Param) bool { return !p.Required })
	if len(own.Words) == 0 && len(required) == 1 && required[0].Type == "string" {
		own.Words = []string{required[0].Name + "?"} // cdp Runtime.evaluate 1+1
	}
	return own
}
