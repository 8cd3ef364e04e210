package host

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// maxName bounds the names that are looked up, in bytes.
const maxName = 200

// Meant is a call of one of the catalog's tools that a call in another form means.
type Meant struct {
	Tool    string // qualified
	Params  map[string]any
	Changes []Change // of the parameters
	File    string   // the result goes there; only the command line has files
}

// Knows reports whether a name that the catalog does not have is that of a tool of another product, which the manifests
// know, or another spelling of a tool's own name.
func (c *Catalog) Knows(name string) bool {
	all, _ := c.rules(name)
	return len(all) > 0
}

// Meant returns the calls that such a name may mean, the likeliest one first, and the nearest tool. A tool's own name
// may have words after it that belong to the name elsewhere, as in page.get_text. Words are those of a command line, or
// of a step, after the name. The parameters keep what no rule knows: whoever validates them finds it.
func (c *Catalog) Meant(name string, given map[string]any, words []any) (all []Meant, see string) {
	rules, always := c.rules(name)
	for _, r := range rules {
		var own json.RawMessage
		if len(all) == 0 {
			see = cmp.Or(r.See, r.Tool)
		}
		if at, err := c.Find(r.Tool); err == nil && at.Tool != nil {
			own = at.Tool.Params
		}
		for _, isPlaced := range []bool{false, true} {
			given, words, fits := given, words, true
			if isPlaced {
				given, words, fits = placed(own, given, words)
			}
			params, isForm := r.WithWords(given, words)
			var changes []Change
			if fits = fits && isForm; fits {
				params, changes, fits = rewrite([]manifest.Rule{r}, params, own)
			}
			switch {
			case fits && r.Tool == "":
				return all, see
			case fits:
				params, more, _ := rewrite(always, params, nil)
				file, _ := params[outName].(string)
				delete(params, outName)
				all = append(all, Meant{r.Tool, params, append(changes, more...), file})
			}
		}
	}
	return all, see
}

// outName is the name by which a rule says in which file the result goes.
const outName = "--out"

// placed takes the words out that only one parameter can mean: NAME=VALUE, a value of its enum, the name of a switch.
func placed(params json.RawMessage, given map[string]any, words []any) (placed map[string]any, rest []any, ok bool) {
	placed = maps.Clone(given)
	put := func(name string, value any) bool {
		if _, taken := placed[name]; name == "" || taken {
			return false
		}
		placed[name], ok = value, true
		return true
	}
	for name, value := range given {
		if known, _, _ := manifest.ParamNamed(params, name); known == "" && value == "true" && put(homeOf(params, name)) {
			delete(placed, name)
		}
	}
	for _, word := range words {
		text, _ := word.(string)
		name, value, _ := strings.Cut(text, "=")
		if known, _, own := manifest.ParamNamed(params, name); !put(homeOf(params, text)) && !(own && put(known, value)) {
			rest = append(rest, word)
		}
	}
	return placed, rest, ok
}

// homeOf returns the only parameter that a word can mean, as one of its values or as the name of a switch.
func homeOf(params json.RawMessage, word string) (name string, value any) {
	found := 0
	for _, p := range manifest.Params(params) {
		if p.Type == "boolean" && schema.FoldName(p.Name) == schema.FoldName(word) {
			name, value, found = p.Name, true, found+1
		} else if slices.ContainsFunc(p.Enum, func(v json.RawMessage) bool { return string(v) == `"`+word+`"` }) {
			name, value, found = p.Name, word, found+1
		}
	}
	if found != 1 {
		return "", nil
	}
	return name, value
}

// Option returns what an option of a command line stands for after such a name: whether a rule or the tool itself has a
// parameter of that name, which for an option of every call has to be its own one, and whether it takes no value.
func (c *Catalog) Option(name, option string) (isParam, isSwitch bool) {
	all, always := c.rules(name)
	always = slices.DeleteFunc(slices.Clone(always), func(r manifest.Rule) bool { return len(r.From) > 1 })
	for _, r := range all {
		at, err := c.Find(r.Tool)
		if err != nil || at.Tool == nil {
			continue
		}
		known, kind, own := manifest.ParamNamed(at.Tool.Params, option)
		home, _ := homeOf(at.Tool.Params, option)
		isParam = isParam || own || known != "" && !IsOption(option)
		isSwitch = isSwitch || kind == "boolean" || kind == "" && home != ""
		for _, r := range slices.Concat(always, []manifest.Rule{r}, c.peersOf(at.Provider).Forms[at.Tool.Name]) {
			for from, want := range r.From {
				if schema.FoldName(from) == schema.FoldName(option) {
					isParam, isSwitch = true, isSwitch || want == true
				}
			}
		}
	}
	return isParam, isSwitch
}

// rewrite applies the rules that fit to parameters of a tool, in order. It reports false if none does.
func rewrite(rules []manifest.Rule, given map[string]any, params json.RawMessage) (
	meant map[string]any, changes []Change, ok bool,
) {
	for _, rule := range rules {
		if rewritten, own, fits := rule.Apply(given, params); fits {
			given, changes, ok = rewritten, append(changes, own...), true
		}
	}
	return given, changes, ok
}

// peersOf returns what a plugin's manifest knows about calls of other products.
func (c *Catalog) peersOf(p Provider) (peers manifest.Peers) {
	if known, ok := c.peers.Load(p); ok {
		return known.(manifest.Peers)
	}
	if m, err := p.Manifest(); err == nil {
		peers = manifest.ReadPeers(m.Peers)
	}
	c.peers.Store(p, peers)
	return peers
}

// rules returns the calls that a name may mean, with qualified names, and the rewrites that apply to all of them: those
// of the tool whose own name it spells, else those that manifests have, else those of the only tool with such a last
// word. What a manifest says about other plugins does not count, except about the built-in one. For a tool's own name
// they are the call itself, and then those of its plugin's manifest.
func (c *Catalog) rules(name string) (all, always []manifest.Rule) {
	if latest := c.meaning.Load(); latest != nil && latest.name == name { // a caller asks several times
		return latest.all, latest.always
	}
	all, always = c.findRules(name)
	c.meaning.Store(&meaning{name, all, always})
	return all, always
}

// meaning is what a name means.
type meaning struct {
	name        string
	all, always []manifest.Rule
}

func (c *Catalog) findRules(name string) (all, always []manifest.Rule) {
	if len(name) > maxName {
		return nil, nil
	}
	first, local, isDotted := strings.Cut(name, ".")
	_, isPlugin := c.Provider(first)
	var itself []manifest.Rule
	if at := c.tool(first, local); at.Tool != nil {
		itself = []manifest.Rule{at.rule()}
	} else if other := c.spelled(name, wholeName); other != nil {
		return other, nil
	}
	if isDotted && !isPlugin {
		if own := c.spelled(name, bareName); own != nil {
			return own, nil
		}
	}
	peers := map[string]manifest.Peers{}
	var prefixes []string
	for _, p := range c.Providers() {
		if plugin := p.Info().Name; !isDotted || !isPlugin || plugin == first {
			own := c.peersOf(p)
			peers[plugin], prefixes = own, append(prefixes, own.Prefixes...)
			always = append(always, own.Names["*"]...)
		}
	}
	tails := manifest.NameTails(name, prefixes)
	for _, tail := range tails {
		for _, plugin := range slices.Sorted(maps.Keys(peers)) {
			p := peers[plugin]
			if all = slices.Clone(p.Named(tail)); len(all) > 0 {
				for i := range all {
					all[i].Tool, all[i].See = c.qualified(plugin, all[i].Tool), c.qualified(plugin, all[i].See)
				}
				return append(itself, all...), p.Names["*"]
			}
		}
	}
	if itself != nil {
		return itself, always
	}
	for _, tail := range tails {
		if own := c.spelled(tail, bareName); own != nil {
			return own, always
		}
	}
	return c.spelled(name, lastWord), always // "browser_resume" is not Debugger.resume
}

// qualified returns the name of a tool that a plugin may name: its own, or a built-in one; else "".
func (c *Catalog) qualified(plugin, tool string) string {
	at := c.tool(plugin, tool)
	if first, local, _ := strings.Cut(tool, "."); at.Tool == nil {
		at = c.tool(first, local)
	}
	if at.Tool == nil || at.Plugin != plugin && at.Provider.Info().Kind != manifest.KindBuiltin {
		return ""
	}
	return at.Name()
}

// tool returns a tool by its exact name; without one, the address has none.
func (c *Catalog) tool(plugin, local string) (at Address) {
	if p, ok := c.Provider(plugin); ok && local != "" {
		if t, err := p.Tool(local); err == nil && t != nil && t.Name == local {
			at = Address{catalog: c, Provider: p, Plugin: p.Info().Name, Tool: t}
		}
	}
	return at
}

// The forms in which a caller may write a name: with the plugin, without it, and the last word.
func wholeName(plugin, local string) string { return plugin + local }
func bareName(_, local string) string       { return local }
func lastWord(_, local string) string       { return local[strings.LastIndexByte(local, '.')+1:] }

// spelled returns the call of the only tool whose name is that in a form, in any spelling; nil if none or several are.
func (c *Catalog) spelled(name string, form func(plugin, local string) string) []manifest.Rule {
	var found []string
	name = schema.FoldName(name)
	for _, p := range c.providers {
		names, _ := p.Names()
		for _, local := range names {
			if plugin := p.Info().Name; schema.FoldName(form(plugin, local)) == name {
				found = append(found, plugin+"."+local)
			}
		}
	}
	if len(found) != 1 {
		return nil
	}
	at, err := c.Find(found[0])
	if err != nil || at.Tool == nil {
		return nil
	}
	return []manifest.Rule{at.rule()}
}

// rule returns the call of a tool with its own words.
func (a Address) rule() manifest.Rule {
	own := manifest.Rule{Tool: a.Name()}
	for i, word := range a.Tool.Positional {
		if kind, _ := manifest.TypeAt(a.Tool.Params, word); kind == "array" && i == len(a.Tool.Positional)-1 {
			word += "..."
		}
		own.Words = append(own.Words, word+"?")
	}
	return own
}
