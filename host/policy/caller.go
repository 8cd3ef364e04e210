package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Kinds of caller. A caller over the network comes as "mcp:CLIENT" with Ask.Remote.
const (
	kindCLI    = "cli"
	kindMCP    = "mcp"
	kindHTTP   = "mcp-http"
	kindPlugin = "plugin"
)

// caller is an entry of [callers]. A list that is nil is not written.
type caller struct {
	pattern string // as written
	at      place
	lists   [3]*rules // by verb
}

// verb is one of the three lists of a caller, in the order in which they win.
type verb int

const (
	deny verb = iota
	confirm
	allow
)

var verbs = [3]string{"deny", "confirm", "allow"}

// rules is a list of a caller: which tools it is about.
type rules struct {
	at    place // zero for a default
	rules []rule
}

// rule names tools by name, by the beginning of their names, or by effect.
type rule struct {
	text    string
	effect  string
	pattern pattern
}

func (f *file) addCaller(all table, name string) {
	t, ok := all.sub(name)
	if !ok {
		return
	}
	c := &caller{pattern: name, at: all.at(name)}
	if !isCaller(name) {
		t.d.complain(c.at, "%s is no caller: expected cli, mcp:CLIENT, mcp-http:CLIENT or plugin:NAME, where \"*\" may end a name", shown(name))
		return
	}
	for _, other := range f.callers {
		if strings.EqualFold(other.pattern, name) {
			t.d.complain(c.at, "caller %s stands in line %d already; names do not differ by case", shown(name), other.at.line)
			return
		}
	}
	t.only("allow", "deny", "confirm")
	for v, key := range verbs {
		items, ok := t.list(key)
		if !ok {
			continue
		}
		list := &rules{at: t.at(key)}
		for _, it := range items {
			r, err := parseRule(it.text)
			if err != nil {
				t.d.complain(it.at, "%v", err)
				continue
			}
			list.rules = append(list.rules, r)
		}
		c.lists[v] = list
	}
	f.callers = append(f.callers, c)
}

// isCaller is the form of an entry's name. MCP clients may call themselves anything; those whose names
// are not printable ASCII, or hold "*", are met by patterns only.
func isCaller(s string) bool {
	kind, name, _ := strings.Cut(s, ":")
	switch kind {
	case kindCLI:
		return s == kindCLI
	case kindMCP, kindHTTP:
		return name == "*" || madeOf(strings.TrimSuffix(name, "*"), strings.ReplaceAll(printable, "*", " "))
	case kindPlugin:
		return name == "*" || isPlugin(strings.TrimSuffix(name, "*"))
	}
	return false
}

func parseRule(s string) (rule, error) {
	if effect, ok := strings.CutPrefix(s, "effect:"); ok {
		if severity(effect) < 0 {
			return rule{}, fmt.Errorf("%s: an effect is read, write or destructive", shown(s))
		}
		return rule{text: s, effect: effect}, nil
	}
	p, err := parsePattern(s)
	return rule{text: s, pattern: p}, err
}

// severity orders effects; -1 for what is none.
func severity(effect string) int {
	return slices.Index([]string{manifest.EffectRead, manifest.EffectWrite, manifest.EffectDestructive}, effect)
}

// matches tells whether the rule is about a tool. A name without "*" is also about everything in it, if
// it is a plugin's or a group's: deny = ["cdp.Browser"] must not mean nothing. An effect in allow is
// that effect; in deny and confirm it is that one and what is worse.
func (r rule) matches(v verb, tool, effect string) bool {
	if r.effect != "" {
		return r.effect == effect || v != allow && severity(r.effect) < severity(effect)
	}
	return r.pattern.covers(pattern{name: tool}) || !r.pattern.wild && strings.HasPrefix(tool, r.pattern.name+".")
}

// defaults are what holds where nothing is written, by kind of caller.
var defaults = map[string][3][]string{
	kindCLI:    {allow: {"*"}},
	kindMCP:    {allow: {"*"}, confirm: {"effect:destructive"}},
	kindHTTP:   {allow: {"effect:read"}},
	kindPlugin: {allow: {"*"}}, // of what it was granted by tool:
}

func defaultRules(kind string, v verb) *rules {
	list := &rules{}
	for _, s := range defaults[kind][v] {
		r, err := parseRule(s)
		if err == nil {
			list.rules = append(list.rules, r)
		}
	}
	return list
}

// judgement is a verdict and what it rests on.
type judgement struct {
	verdict host.Verdict
	reason  string
	next    string // what the operator would type, where one command helps
}

// judge says whether a caller may call a tool. All that is needed of ask is who, what and its effect.
func (p *state) judge(ask host.Ask) judgement {
	kind, name, _ := strings.Cut(ask.Caller, ":")
	remote := ask.Remote
	if kind == kindHTTP {
		kind, remote = kindMCP, true
	}
	if _, known := defaults[kind]; !known || (kind == kindCLI) != (ask.Caller == kindCLI) || kind != kindCLI && name == "" {
		return judgement{verdict: host.Deny, reason: "the policy knows no caller " + shown(ask.Caller)}
	}
	if kind == kindCLI && remote {
		return judgement{verdict: host.Deny, reason: "the command line is not reached over the network"}
	}
	tool := strings.ToLower(ask.Plugin + "." + ask.Tool)
	effect := ask.Effect
	if severity(effect) < 0 {
		effect = manifest.EffectDestructive // nobody said that it is harmless
	}
	if kind != kindMCP || !remote {
		j := p.judgeAs(kind, name, tool, effect, true)
		if kind == kindPlugin && j.verdict != host.Deny {
			by, refused := p.mayCall(name, ask.Plugin+"."+ask.Tool)
			if refused != "" {
				return judgement{host.Deny, refused, grantCommand(name, "tool:"+ask.Plugin+"."+ask.Tool)}
			}
			if j.verdict == host.Allow {
				j.reason += "; " + by
			}
		}
		return j
	}
	// Over the network the entries for mcp hold as well: a deny written for mcp:* is meant for all of MCP.
	j := p.judgeAs(kindHTTP, name, tool, effect, true)
	if both := p.judgeAs(kindMCP, name, tool, effect, false); stricter(both.verdict, j.verdict) {
		return both
	}
	return j
}

func stricter(a, b host.Verdict) bool {
	order := []host.Verdict{host.Allow, host.Confirm, host.Deny}
	return slices.Index(order, a) > slices.Index(order, b)
}

// judgeAs applies the lists of one kind. Without fallback, what is not written restricts nothing.
func (p *state) judgeAs(kind, name, tool, effect string, fallback bool) judgement {
	who := kind
	if kind != kindCLI {
		who += ":" + name
	}
	find := func(v verb) (*rules, string, bool) {
		if list := p.rulesFor(who, v); list != nil {
			return list, list.at.String(), true
		}
		return defaultRules(kind, v), "the default for " + kind, fallback
	}
	for _, v := range []verb{deny, confirm} {
		list, origin, ok := find(v)
		if !ok {
			continue
		}
		for _, r := range list.rules {
			if !r.matches(v, tool, effect) {
				continue
			}
			if v == deny {
				return judgement{verdict: host.Deny, reason: origin + " denies " + r.text}
			}
			if j := p.allowed(kind, who, tool, effect, fallback); j.verdict != host.Allow {
				return j
			}
			return judgement{verdict: host.Confirm, reason: origin + " wants " + r.text + " confirmed"}
		}
	}
	return p.allowed(kind, who, tool, effect, fallback)
}

func (p *state) allowed(kind, who, tool, effect string, fallback bool) judgement {
	list := p.rulesFor(who, allow)
	origin := "the default for " + kind
	if list != nil {
		origin = list.at.String()
	} else if list = defaultRules(kind, allow); !fallback {
		return judgement{verdict: host.Allow}
	}
	words := make([]string, 0, len(list.rules))
	for _, r := range list.rules {
		if r.matches(allow, tool, effect) {
			return judgement{verdict: host.Allow, reason: origin + " allows " + r.text}
		}
		words = append(words, r.text)
	}
	if len(words) == 0 {
		return judgement{verdict: host.Deny, reason: origin + " allows nothing"}
	}
	return judgement{verdict: host.Deny, reason: origin + " allows only " + strings.Join(words, ", ")}
}

// rulesFor finds the list of the most specific entry that has one: an exact name before a pattern, a
// longer pattern before a shorter one, policy.toml before grants.toml.
func (p *state) rulesFor(who string, v verb) *rules {
	var best *rules
	bestLen := -1
	for _, f := range p.files() {
		for _, c := range f.callers {
			if n := c.fits(who); n > bestLen && c.lists[v] != nil {
				best, bestLen = c.lists[v], n
			}
		}
	}
	return best
}

// fits returns how specifically an entry is about a caller, -1 if it is not.
func (c *caller) fits(who string) int {
	prefix, wild := strings.CutSuffix(c.pattern, "*")
	if !wild {
		if strings.EqualFold(c.pattern, who) {
			return 1 << 20
		}
		return -1
	}
	if len(who) >= len(prefix) && strings.EqualFold(who[:len(prefix)], prefix) {
		return len(prefix)
	}
	return -1
}

// mayCall says by which grant a plugin may call a tool, or else why it may not. Whether the plugin asked
// for it and is the one that it was granted to was decided when its own call began: the grant of that
// call names the tools. Here only what a wildcard never gives is held back.
func (p *state) mayCall(plugin, tool string) (by, refused string) {
	for _, g := range p.entry(plugin).grants() {
		if g.Kind != Tool {
			continue
		}
		if pat, err := parsePattern(g.Name); err == nil && pat.grants(strings.ToLower(tool)) {
			return fmt.Sprintf("%s (%s) gives it", g, g.at), ""
		}
	}
	if outsidePage(strings.ToLower(tool)) {
		return "", fmt.Sprintf("plugin %s is not granted tool:%s by name, and it reaches outside a page", plugin, tool)
	}
	return "", fmt.Sprintf("plugin %s is not granted tool:%s", plugin, tool)
}
