package policy

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Match is what a rule of the files applies to today.
type Match struct {
	Where      string          `json:"where"` // FILE:LINE
	Rule       string          `json:"rule"`
	Matches    int             `json:"matches"`
	First      []string        `json:"first"`               // at most three of them
	NoEffect   string          `json:"no_effect,omitempty"` // why it can apply to nothing, and what to do
	DidYouMean []host.NearName `json:"did_you_mean,omitempty"`
}

// Matches says of each rule of the files which tools, plugins or origins of a catalog it applies to, in the order of
// the files. A rule that applies to none may be misspelled.
func (p *Policy) Matches(c *host.Catalog) ([]Match, error) {
	s, err := p.current()
	if err != nil {
		return nil, err
	}
	found := matches{effects: map[string]string{}, asks: map[string]manifest.Capabilities{}, list: []Match{}}
	for _, provider := range c.Providers() {
		found.read(provider)
	}
	for _, f := range s.files() {
		for _, c := range f.callers {
			if plugin, ok := strings.CutPrefix(c.pattern, kindPlugin+":"); ok && manifest.Builtin(plugin) {
				found.list = append(found.list, Match{c.pos.String(), "[callers." + quote(c.pattern) + "]", 0, []string{},
					plugin + " is built in and calls no tools; remove it", nil})
				continue
			}
			for v, list := range c.lists {
				if list != nil {
					found.addRules(c.pattern, verb(v), list)
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(f.plugins)) {
			found.addPlugin(f.plugins[name])
		}
		for _, name := range slices.Sorted(maps.Keys(f.secrets)) {
			to := slices.Clone(f.secrets[name].origins)
			for _, plugin := range found.plugins {
				asked := found.asks[plugin].Secrets
				if slices.ContainsFunc(asked, func(c manifest.SecretCapability) bool { return c.Name == name }) {
					to = append(to, plugin)
				}
			}
			found.add(f.secrets[name].pos, "[secrets."+name+"]", to, "")
		}
	}
	return found.list, nil
}

// builtinReason says why only limits.timeout applies to a built-in plugin, and what to do about the rest.
func (p *plugin) builtinReason() string {
	text := p.name + " is built in, without a sandbox and rights of its own; remove it"
	if filepath.Base(p.pos.file) == GrantsFile {
		text += ": parley policy revoke " + p.name
	}
	return text
}

type matches struct {
	names, plugins []string          // in the catalog's order
	effects        map[string]string // by the name of a tool
	asks           map[string]manifest.Capabilities
	list           []Match
}

func (m *matches) read(provider host.Provider) {
	plugin := provider.Info().Name
	m.plugins = append(m.plugins, plugin)
	if of, err := provider.Manifest(); err == nil {
		m.asks[plugin] = of.Capabilities
	}
	names, _ := provider.Names()
	for _, name := range names {
		if tool, err := provider.Tool(name); err == nil && tool != nil {
			m.names = append(m.names, plugin+"."+name)
			m.effects[plugin+"."+name] = tool.Effect
		}
	}
}

// add adds a rule. Typed is the name in it; "" if none can be misspelled.
func (m *matches) add(pos position, rule string, to []string, typed string) {
	match := Match{Where: pos.String(), Rule: rule, Matches: len(to), First: append([]string{}, to[:min(3, len(to))]...)}
	if len(to) == 0 && typed != "" {
		match.DidYouMean = spelling.Nearest(strings.TrimRight(typed, ".*"), slices.Concat(m.plugins, m.names), 3)
	}
	m.list = append(m.list, match)
}

func (m *matches) addRules(caller string, v verb, list *rules) {
	for _, r := range list.rules {
		var to []string
		for _, name := range m.names {
			if r.matches(v, strings.ToLower(name), m.effects[name]) {
				to = append(to, name)
			}
		}
		typed := r.text
		if r.effect != "" {
			typed = ""
		}
		m.add(list.pos, caller+" "+verbs[v]+" "+r.text, to, typed)
	}
}

func (m *matches) addPlugin(p *plugin) {
	if manifest.Builtin(p.name) {
		if p.limits.Timeout > 0 {
			m.add(p.pos, "[plugin."+p.name+"] limits.timeout", []string{p.name}, "")
		}
		for _, k := range p.guestKeys {
			m.list = append(m.list, Match{k.pos.String(), "[plugin." + p.name + "] " + k.text, 0, []string{},
				p.builtinReason(), nil})
		}
		return
	}
	i := slices.IndexFunc(m.plugins, func(n string) bool { return strings.EqualFold(n, p.name) })
	own := m.plugins[max(i, 0) : i+1]
	if i < 0 || len(p.grants) == 0 {
		m.add(p.pos, "[plugin."+p.name+"]", own, p.name)
	}
	for _, g := range p.grants {
		var to []string
		typed := ""
		if g.Kind == Tool {
			typed = g.Name
			rule, err := parsePattern(g.Name)
			for _, tool := range m.names {
				if err == nil && rule.covers(pattern{name: strings.ToLower(tool)}) {
					to = append(to, tool)
				}
			}
		} else if i >= 0 && g.RequestedBy(m.asks[m.plugins[i]]) {
			to = own
		}
		m.add(g.pos, p.name+" grant "+g.String(), to, typed)
	}
}
