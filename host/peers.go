package host

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// maxName bounds the names that are looked up, in bytes.
const maxName = 200

// Meant is what a call of a tool of another product means.
type Meant struct {
	Tool    string // qualified
	Params  map[string]any
	Changes []Change // of the parameters
	See     string   // the nearest tool, where none does the same
}

// Knows reports whether a name that the catalog does not have is that of a tool of another product, which the manifests
// know, or another spelling of a tool's own name.
func (c *Catalog) Knows(name string) bool {
	all, _ := c.rules(name)
	return len(all) > 0
}

// Meant returns what a call of such a name means. Words are those of a command line, or of a step, after the name. It
// reports false where no tool does the same. The parameters keep what no rule knows: whoever validates them finds it.
func (c *Catalog) Meant(name string, given map[string]any, words []any) (meant Meant, ok bool) {
	all, always := c.rules(name)
	given, changes, _ := rewrite(always, given, nil)
	for _, r := range all {
		var schema json.RawMessage
		meant.See = cmp.Or(r.See, r.Tool)
		if at, err := c.Find(r.Tool); err == nil && at.Tool != nil {
			schema = at.Tool.Params
		}
		params, fits := r.WithWords(given, words)
		if !fits {
			continue
		}
		if params, own, fits := rewrite([]manifest.Rule{r}, params, schema); fits {
			return Meant{r.Tool, params, append(changes, own...), meant.See}, r.Tool != ""
		}
	}
	return meant, false
}

// IsSwitch reports whether an option of a command line takes no value where it stands for a parameter of such a name.
func (c *Catalog) IsSwitch(name, option string) bool {
	all, _ := c.rules(name)
	return slices.ContainsFunc(all, func(r manifest.Rule) bool {
		at, err := c.Find(r.Tool)
		if err != nil || at.Tool == nil {
			return false
		}
		_, kind, _ := manifest.ParamNamed(at.Tool.Params, option)
		own := append([]manifest.Rule{r}, c.peersOf(at.Provider).Forms[at.Tool.Name]...)
		return kind == "boolean" || slices.ContainsFunc(own, func(r manifest.Rule) bool { return r.From[option] == true })
	})
}

// rewrite applies the rules that fit to parameters of a tool, in order. It reports false if none does.
func rewrite(rules []manifest.Rule, given map[string]any, params json.RawMessage) (
	meant map[string]any, changes []Change, ok bool,
) {
	for _, rule := range rules {
		rewritten, to, fits := rule.Apply(given, params)
		if !fits {
			continue
		}
		given, ok = rewritten, true
		for _, from := range slices.Sorted(maps.Keys(to)) {
			change := Change{From: "/" + jsontext.EscapeToken(from), How: schema.Dropped}
			if to[from] != "" {
				change.To, change.How = "/"+jsontext.EscapeToken(to[from]), schema.Renamed
			}
			changes = append(changes, change)
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
// word. What a manifest says about other plugins does not count, except about the built-in one.
func (c *Catalog) rules(name string) (all, always []manifest.Rule) {
	if len(name) > maxName {
		return nil, nil
	}
	folded := manifest.FoldName(name)
	first, _, isDotted := strings.Cut(name, ".")
	_, isPlugin := c.Provider(first)
	if own := c.spelled("whole " + folded); own != nil {
		return own, nil
	}
	if own := c.spelled("exact " + name); own != nil && isDotted {
		return own, nil
	}
	if own := c.spelled("bare " + folded); own != nil && isDotted && !isPlugin {
		return own, nil
	}
	peers := map[string]manifest.Peers{}
	var prefixes []string
	for _, p := range c.Providers() {
		own := c.peersOf(p)
		peers[p.Info().Name], prefixes = own, append(prefixes, own.Prefixes...)
		always = append(always, own.Names["*"]...)
	}
	tails := manifest.NameTails(name, prefixes)
	for _, tail := range tails {
		for _, plugin := range slices.Sorted(maps.Keys(peers)) {
			p := peers[plugin]
			if all = slices.Clone(p.Named(tail)); len(all) > 0 {
				for i := range all {
					all[i].Tool, all[i].See = c.qualified(plugin, all[i].Tool), c.qualified(plugin, all[i].See)
				}
				return all, p.Names["*"]
			}
		}
	}
	for _, tail := range tails {
		if own := c.spelled("bare " + tail); own != nil {
			return own, always
		}
	}
	return c.spelled("last " + folded), always // "browser_resume" is not Debugger.resume
}

// qualified returns the name of a tool that a plugin may name: its own, or a built-in one; else "".
func (c *Catalog) qualified(plugin, tool string) string {
	if at, err := c.FindIn(plugin, tool); err == nil && at.Tool != nil {
		return at.Name()
	}
	at, err := c.Find(tool)
	if err != nil || at.Tool == nil || at.Provider.Info().Kind != manifest.KindBuiltin {
		return ""
	}
	return at.Name()
}

// indexNames returns the names of all tools by what a caller may write: with the plugin, without it, and the last word.
func (c *Catalog) indexNames() map[string][]string {
	index := map[string][]string{}
	for _, p := range c.providers {
		plugin := p.Info().Name
		names, _ := p.Names()
		for _, local := range names {
			for _, key := range []string{"whole " + manifest.FoldName(plugin+local), "exact " + local,
				"bare " + manifest.FoldName(local), "last " + manifest.FoldName(local[strings.LastIndexByte(local, '.')+1:])} {
				index[key] = append(index[key], plugin+"."+local)
			}
		}
	}
	return index
}

// spelled returns the call of the only tool of a key of the index, nil if none or several have it.
func (c *Catalog) spelled(key string) []manifest.Rule {
	index, ok := c.peers.Load("names")
	if !ok {
		index, _ = c.peers.LoadOrStore("names", c.indexNames())
	}
	found := index.(map[string][]string)[key]
	if len(found) != 1 {
		return nil
	}
	at, err := c.Find(found[0])
	if err != nil || at.Tool == nil {
		return nil
	}
	own := manifest.Rule{Tool: at.Name()}
	for i, word := range at.Tool.Positional {
		if kind, _ := manifest.TypeAt(at.Tool.Params, word); kind == "array" && i == len(at.Tool.Positional)-1 {
			word += "..."
		}
		own.Words = append(own.Words, word+"?")
	}
	return []manifest.Rule{own}
}
