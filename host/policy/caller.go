package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/quota"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// Kinds of caller.
const (
	kindCLI    = "cli"
	kindMCP    = "mcp"
	kindHTTP   = "mcp-http"
	kindPlugin = "plugin"
)

// callerEntry is an entry of [callers]. A nil list is not in the file.
type callerEntry struct {
	pattern string // as in the file
	pos     position
	lists   [4]*rules // by verb
	// files are the folders whose files an MCP client may name in parameters; nil is not in the file.
	files []string
	quota grant.Quota
}

// verb is one of the lists of a caller.
type verb int

const (
	deny verb = iota
	confirm
	allow
	unconfirmed // exempt from confirmation, although confirm matches
)

var verbs = [4]string{"deny", "confirm", "allow", "unconfirmed"}

// rules is one list of a caller.
type rules struct {
	pos   position // for a default: a text instead of a file, without a line
	rules []rule
}

// rule matches tools by name, by the beginning of their names, or by effect.
type rule struct {
	text    string
	effect  string
	pattern pattern
}

func (f *file) addCaller(all, t table, name string) {
	c := &callerEntry{pattern: name, pos: all.keyPos(name)}
	if !isCaller(name) {
		t.doc.addProblem(c.pos, "%s is not a caller: expected cli, mcp:CLIENT, mcp-http:CLIENT or plugin:NAME, "+
			"where \"*\" may end a name", quote(name))
		return
	}
	for _, other := range f.callers {
		if strings.EqualFold(other.pattern, name) {
			t.doc.addProblem(c.pos, "caller %s is already in line %d; names do not differ by case", quote(name), other.pos.line)
			return
		}
	}
	t.allowKeys(append(verbs[:], "files", quota.Rate, "concurrent", "daily_calls", "daily_bytes")...)
	c.addQuota(t)
	folders, given := t.list("files")
	if given && !strings.HasPrefix(name, kindMCP) {
		t.doc.addProblem(t.keyPos("files"), "files is for callers mcp: and mcp-http:; a plugin has fs: grants")
	}
	if given {
		c.files = []string{}
	}
	for _, element := range folders {
		if !filepath.IsAbs(element.text) || filepath.Clean(element.text) != element.text {
			t.doc.addProblem(element.pos, "files takes absolute folders in their shortest form, not %s", quote(element.text))
			continue
		}
		c.files = append(c.files, element.text)
	}
	for v, key := range verbs {
		items, ok := t.list(key)
		if !ok {
			continue
		}
		list := &rules{pos: t.keyPos(key)}
		for _, element := range items {
			r, err := parseRule(element.text)
			if err != nil {
				t.doc.addProblem(element.pos, "%v", err)
				continue
			}
			list.rules = append(list.rules, r)
		}
		c.lists[v] = list
	}
	f.callers = append(f.callers, c)
}

// isCaller reports whether s is a valid name for an entry. MCP clients may have any name; those whose names are not
// printable ASCII, or contain "*", are matched by patterns only.
func isCaller(s string) bool {
	kind, name, _ := strings.Cut(s, ":")
	switch kind {
	case kindCLI:
		return s == kindCLI
	case kindMCP, kindHTTP:
		return name == "*" || consistsOf(strings.TrimSuffix(name, "*"), strings.ReplaceAll(printable, "*", " "))
	case kindPlugin:
		return name == "*" || isPlugin(strings.TrimSuffix(name, "*"))
	}
	return false
}

func parseRule(s string) (rule, error) {
	if effect, ok := strings.CutPrefix(s, "effect:"); ok {
		if severity(effect) < 0 {
			return rule{}, fmt.Errorf("%s: an effect is read, write or destructive", quote(s))
		}
		return rule{text: s, effect: effect}, nil
	}
	p, err := parsePattern(s)
	return rule{text: s, pattern: p}, err
}

// severity returns the rank of an effect, -1 for an unknown one.
func severity(effect string) int {
	return slices.Index([]string{manifest.EffectRead, manifest.EffectWrite, manifest.EffectDestructive}, effect)
}

// matches reports whether the rule applies to a tool. A name without "*" also applies to everything in it, if it is a
// plugin or a group: deny = ["cdp.Browser"] must not be without effect. In deny and confirm, an effect includes the
// worse ones; elsewhere it is that effect alone.
func (r rule) matches(v verb, tool, effect string) bool {
	if r.effect != "" {
		return r.effect == effect || (v == deny || v == confirm) && severity(r.effect) < severity(effect)
	}
	return r.pattern.covers(pattern{name: tool}) || !r.pattern.wild && strings.HasPrefix(tool, r.pattern.name+".")
}

// match returns the first rule that applies to a tool, or nil.
func (l *rules) match(v verb, tool, effect string) *rule {
	if l != nil {
		for i, r := range l.rules {
			if r.matches(v, tool, effect) {
				return &l.rules[i]
			}
		}
	}
	return nil
}

// defaults are the lists that apply where no file sets them, by kind of caller.
var defaults = map[string][4][]string{
	kindCLI:    {allow: {"*"}},
	kindMCP:    {allow: {"*"}, confirm: {"effect:destructive"}},
	kindHTTP:   {allow: {"effect:read"}},
	kindPlugin: {allow: {"*"}}, // of the tools that its tool: grants include
}

// access is a verdict and its reason.
type access struct {
	verdict host.Verdict
	reason  string
	steps   []step.Step // what the operator can do, if one step helps
}

// accessOf decides whether a caller may call a tool. It uses only the caller, the tool and its effect.
func (s *state) accessOf(ask host.Ask) access {
	caller := ask.Principal.Name
	kind, name, _ := strings.Cut(caller, ":")
	if _, known := defaults[kind]; !known || (kind == kindCLI) != (caller == kindCLI) || kind != kindCLI && name == "" {
		return access{verdict: host.Deny, reason: "the policy does not know the caller " + quote(caller)}
	}
	tool := strings.ToLower(ask.Plugin + "." + ask.Tool)
	effect := ask.Effect
	if severity(effect) < 0 {
		effect = manifest.EffectDestructive // an undeclared effect may be anything
	}
	switch {
	case ask.OnBehalf:
		return s.deniedByName(kind, name, caller, tool)
	case kind == kindHTTP:
		a := s.accessRemote(name, tool, effect)
		if !ask.Principal.Bound {
			// Any client can give this name: what its entries loosen does not apply.
			if other := s.accessRemote(nobody, tool, effect); stricter(other.verdict, a.verdict) {
				other.reason += "; the client has no token that is bound to the name " + quote(name)
				return other
			}
		}
		return a
	}
	a := s.accessAs(caller, tool, effect, true)
	if kind == kindPlugin && !ask.Trusted && a.verdict != host.Deny {
		by, refused := s.grantFor(name, ask)
		if refused != "" {
			grant := step.Operator(step.OpPolicyGrant, name, "tool:"+ask.Plugin+"."+ask.Tool)
			return access{host.Deny, refused, []step.Step{grant}}
		}
		if a.verdict == host.Allow {
			a.reason += "; " + by
		}
	}
	return a
}

// nobody is a name that no client has, so that only entries for all clients match it.
const nobody = "\x00"

// accessRemote is accessAs for a client over the network. The entries for mcp apply as well: a deny for mcp:* is meant
// for all of MCP.
func (s *state) accessRemote(name, tool, effect string) access {
	a := s.accessAs(kindHTTP+":"+name, tool, effect, true)
	if byMCP := s.accessAs(kindMCP+":"+name, tool, effect, false); stricter(byMCP.verdict, a.verdict) {
		return byMCP
	}
	return a
}

// deniedByName applies the rules that deny a tool by its name to a caller on whose behalf a shipped plugin calls.
func (s *state) deniedByName(kind, name, caller, tool string) access {
	callers := []string{caller}
	if kind == kindHTTP {
		callers = []string{kindMCP + ":" + name, caller}
	}
	for _, caller := range callers {
		list := s.rulesFor(caller, deny, false)
		if r := list.match(deny, tool, ""); r != nil {
			return access{verdict: host.Deny, reason: list.pos.String() + " denies " + r.text}
		}
	}
	return access{verdict: host.Allow, reason: "a shipped plugin calls on its behalf"}
}

func stricter(a, b host.Verdict) bool {
	order := []host.Verdict{host.Allow, host.Confirm, host.Deny}
	return slices.Index(order, a) > slices.Index(order, b)
}

// accessAs applies the lists of one caller. Without fallback, lists that no file sets restrict nothing.
func (s *state) accessAs(caller, tool, effect string, fallback bool) access {
	list := s.rulesFor(caller, deny, fallback)
	if r := list.match(deny, tool, effect); r != nil {
		return access{verdict: host.Deny, reason: list.pos.String() + " denies " + r.text}
	}
	a := access{verdict: host.Allow}
	if list = s.rulesFor(caller, allow, fallback); list != nil {
		r := list.match(allow, tool, effect)
		if r == nil {
			return access{verdict: host.Deny, reason: list.pos.String() + " allows " + list.only()}
		}
		a.reason = list.pos.String() + " allows " + r.text
	}
	list = s.rulesFor(caller, confirm, fallback)
	if r := list.match(confirm, tool, effect); r != nil {
		if by := s.exemption(caller, tool, effect, list); by != "" {
			a.reason = by
			return a
		}
		return access{verdict: host.Confirm, reason: list.pos.String() + " requires confirmation of " + r.text}
	}
	return a
}

// exemption returns which list frees a tool from the confirmation that another list requires, "" if none does. Only
// policy.toml frees a tool from what policy.toml requires.
func (s *state) exemption(caller, tool, effect string, required *rules) string {
	for _, f := range s.files() {
		if f == s.generated && required.isIn(s.manual) {
			continue
		}
		for _, c := range f.callers {
			if r := c.lists[unconfirmed].match(unconfirmed, tool, effect); r != nil && c.specificity(caller) >= 0 {
				return c.lists[unconfirmed].pos.String() + " asks for no confirmation of " + r.text
			}
		}
	}
	return ""
}

// isIn reports whether the list belongs to a file.
func (l *rules) isIn(f *file) bool {
	return f != nil && slices.ContainsFunc(f.callers, func(c *callerEntry) bool { return slices.Contains(c.lists[:], l) })
}

// only returns the rules as the text of what alone is allowed.
func (l *rules) only() string {
	if len(l.rules) == 0 {
		return "nothing"
	}
	return "only " + strings.Join(lists.Map(l.rules, func(r rule) string { return r.text }), ", ")
}

// rulesFor returns the list of the most specific entry that has one: an exact name before a pattern, a longer pattern
// before a shorter one, policy.toml before grants.toml. With fallback, a list that no entry has is the default.
func (s *state) rulesFor(name string, v verb, fallback bool) *rules {
	list := mostSpecific(s, name, func(c *callerEntry) (*rules, bool) { return c.lists[v], c.lists[v] != nil })
	if list != nil || !fallback {
		return list
	}
	kind, _, _ := strings.Cut(name, ":")
	list = &rules{pos: position{file: "the default for " + kind}}
	for _, s := range defaults[kind][v] {
		if r, err := parseRule(s); err == nil {
			list.rules = append(list.rules, r)
		}
	}
	return list
}

// mostSpecific returns the value of the most specific entry for a caller that has one, or the zero value.
func mostSpecific[T any](s *state, name string, say func(*callerEntry) (T, bool)) (best T) {
	bestLen := -1
	for _, f := range s.files() {
		for _, c := range f.callers {
			if n := c.specificity(name); n > bestLen {
				if v, ok := say(c); ok {
					best, bestLen = v, n
				}
			}
		}
	}
	return best
}

// filesOf returns the folders whose files a caller may name in parameters: the list of the most specific entry that
// has one. Over the network the entries for mcp-http come first.
func (s *state) filesOf(ask host.Ask) []string {
	kind, name, _ := strings.Cut(ask.Principal.Name, ":")
	names := []string{ask.Principal.Name}
	switch {
	case kind != kindMCP && kind != kindHTTP:
		return nil
	case kind == kindHTTP:
		if !ask.Principal.Bound {
			// Any client can use this name, so its entry applies only as far as it loosens nothing.
			ask.Principal.Bound = true
			own := s.filesOf(ask)
			ask.Principal.Name = kind + ":" + nobody
			return slices.DeleteFunc(slices.Clone(s.filesOf(ask)), func(folder string) bool {
				return !slices.Contains(own, folder)
			})
		}
		names = []string{kindHTTP + ":" + name, kindMCP + ":" + name}
	}
	return first(names, func(name string) ([]string, bool) {
		files := mostSpecific(s, name, func(c *callerEntry) ([]string, bool) { return c.files, c.files != nil })
		return files, files != nil
	})
}

// specificity returns how specifically an entry matches a caller, -1 if it does not.
func (c *callerEntry) specificity(name string) int {
	prefix, wild := strings.CutSuffix(c.pattern, "*")
	if !wild {
		if strings.EqualFold(c.pattern, name) {
			return 1 << 20
		}
		return -1
	}
	if len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
		return len(prefix)
	}
	return -1
}

// grantFor returns the grant by which a plugin may call a tool, or the reason why it may not. When the plugin's own
// call began, it was decided whether the plugin requested the tool and is the build that was granted it: the grant of
// that call names the tools. This excludes only tools that have changed hands, or that a wildcard never includes.
func (s *state) grantFor(plugin string, ask host.Ask) (grantedBy, refused string) {
	tool := ask.Plugin + "." + ask.Tool
	if p := s.entry(plugin).grantSource(); p != nil {
		if why := p.foreignOwner(ask.Plugin, ask.Owner, ask.ReplacedOwner); why != "" {
			return "", fmt.Sprintf("plugin %s is not granted tool:%s: %s", plugin, tool, why)
		}
		for _, g := range p.grants {
			if g.Kind == Tool && MatchTool([]string{g.Name}, tool, ask.Outside) {
				return fmt.Sprintf("%s (%s) gives it", g, g.pos), ""
			}
		}
	}
	if ask.Outside {
		return "", fmt.Sprintf("plugin %s is not granted tool:%s by name, and it reaches outside a page", plugin, tool)
	}
	return "", fmt.Sprintf("plugin %s is not granted tool:%s", plugin, tool)
}
