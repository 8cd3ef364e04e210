package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/policy/secret"
	"github.com/parley-tools/parley/host/quota"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Explanation says what a plugin requests, which line grants it, what is refused and why, and who may call one of its
// tools.
type Explanation struct {
	Plugin   string   `json:"plugin"`
	Tool     string   `json:"tool,omitempty"`
	Digest   string   `json:"digest,omitempty"`
	Signer   string   `json:"signer,omitempty"` // public key of a valid signature
	Files    []string `json:"files"`            // files that were read; without any, the defaults apply
	Isolate  string   `json:"isolate"`          // how calls are isolated: none, process or call
	Pool     string   `json:"pool,omitempty"`   // pool of the fleet that runs the plugin, if there is one
	Limits   []string `json:"limits"`           // set by the policy, such as "timeout 30s"
	Settings string   `json:"settings,omitempty"`
	Rights   []Right  `json:"rights"`
	Callers  []Access `json:"callers"` // who may call the tool
	Notes    []string `json:"notes,omitempty"`

	shipped, isolatedByDefault bool

	Unused []UnusedGrant `json:"-"` // grants without effect, which Notes also name
}

// UnusedGrant is a grant, as written in the file, that the plugin does not request, and the note about it.
type UnusedGrant struct{ Grant, Note string }

// Access is what a caller may do with the tool: allow, confirm or deny.
type Access struct {
	Caller  string `json:"caller"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
}

// Explain explains a plugin, or one tool of it (tool is its local name, which must be in m.Tools; "" for none). Where
// the files are invalid, the notes say so.
func (p *Policy) Explain(info host.Info, m *manifest.Manifest, tool string) Explanation {
	x := Explanation{Plugin: info.Name, Tool: tool, Digest: info.Digest, Files: []string{}, Rights: []Right{},
		Callers: []Access{}, Limits: []string{}}
	s, err := p.current()
	if err != nil {
		x.Notes = append(x.Notes, err.Error(), "no call runs until that is fixed")
		return x
	}
	for _, f := range s.files() {
		x.Files = append(x.Files, f.path)
	}
	e := s.entry(info.Name)
	l := e.limits(s.timeout())
	if info.Kind == manifest.KindBuiltin {
		l = limits{Limits: grant.Limits{Timeout: l.Timeout}}
		x.Notes = append(x.Notes, x.Plugin+" is built in: it is part of Parley, runs without a sandbox, and needs no rights")
		for _, p := range e.parts() {
			for _, k := range p.guestKeys {
				x.Notes = append(x.Notes, fmt.Sprintf("%s (%s) has no effect: %s", k.text, k.pos, p.builtinReason()))
			}
		}
	} else {
		x.Settings = string(e.settings(info.Digest, p.env))
	}
	if l.Timeout > 0 {
		x.Limits = append(x.Limits, fmt.Sprintf("timeout %s", l.Timeout))
	}
	if l.CompileTime > 0 {
		x.Limits = append(x.Limits, fmt.Sprintf("compile time %s", l.CompileTime))
	}
	for _, b := range bounds {
		if n := *b.of(&l); n > 0 {
			x.Limits = append(x.Limits, fmt.Sprintf(b.text, n))
		}
	}
	if by, err := p.env.Signer(info.Name, info.Digest); err == nil {
		x.Signer = by.Key
	}
	if err := s.approve(info.Name, info.Digest, p.env); err != nil {
		x.Notes = append(x.Notes, "it does not run: "+err.Error())
	}
	if info.Digest != "" && m != nil {
		x.shipped = info.Identity() == host.OwnerShipped
		x.explainRights(e, m, p.env)
	}
	x.explainIsolation(s, p.env)
	if info.Kind == manifest.KindBuiltin && (tool == "" || strings.EqualFold(tool, "type")) {
		x.explainTyping(s)
	}
	if tool != "" {
		ask := host.Ask{Plugin: info.Name, Tool: tool, Owner: info.Identity(), ReplacedOwner: info.ReplacedOwner}
		if m == nil {
			m = &manifest.Manifest{}
		}
		if t := m.Tool(tool); t != nil {
			ask.Tool, ask.Effect, ask.Outside = t.Name, t.Effect, p.env.Outside(info.Name+"."+t.Name)
		}
		x.explainCallers(s, ask)
	}
	return x
}

func (x *Explanation) explainRights(e entry, m *manifest.Manifest, env Env) {
	used := map[string]bool{}
	for _, r := range e.evaluate(m.Capabilities, x.Digest, x.shipped, env).rights {
		for _, g := range r.grantedBy {
			r.Grants = append(r.Grants, g.String())
			r.By = append(r.By, fmt.Sprintf("%s (%s)", g, g.pos))
			used[g.subject()] = true
		}
		if r.Grantable != "" && r.Reason == "" {
			r.Reason = "no grant gives it"
			if len(r.grantedBy) > 0 {
				r.Reason = "no grant gives all of it"
			}
		}
		if r.login != "" {
			r.Login, r.NeedsLogin = loginState(env, r.login)
		}
		x.Rights = append(x.Rights, r)
	}
	p := e.grantSource()
	if p == nil {
		return
	}
	if why := e.unboundReason(p, x.Digest, env); why != "" && len(p.grants) > 0 {
		x.Notes = append(x.Notes, fmt.Sprintf("none of its grants in %s applies: %s", p.pos, why))
	} else {
		for _, g := range p.grants {
			if !used[g.subject()] {
				why := "the manifest does not request it"
				if callee := pluginOf(g.Name); g.Kind == Tool && callee != "" {
					identity, displaced := env.Owner(callee)
					why = cmp.Or(p.foreignOwner(callee, identity, displaced), why)
				}
				unused := UnusedGrant{g.String(), fmt.Sprintf("%s (%s) has no effect: %s", g, g.pos, why)}
				x.Unused, x.Notes = append(x.Unused, unused), append(x.Notes, unused.Note)
			}
		}
	}
	if e.manual != nil && e.manual.granted && e.generated != nil && e.generated.granted {
		x.Notes = append(x.Notes, fmt.Sprintf("the %s in %s are ignored: %s sets grants",
			manifest.Plural(len(e.generated.grants), "grant"), e.generated.pos, e.manual.grantsPos))
	}
}

// loginState returns what the store has for a secret that a person logs in to get, and whether a login is needed.
func loginState(env Env, name string) (state string, needed bool) {
	store := secret.Store{Dir: env.Store}
	if l, err := store.Login(name); err == nil {
		state, lasts := l.State()
		return state, !lasts
	}
	if _, err := secret.Fetch(context.Background(), name, "store", env.LookupEnv, store); err == nil {
		return "not logged in: a value is stored instead", false
	}
	return "not logged in", true
}

// explainTyping notes which secrets may be typed into pages.
func (x *Explanation) explainTyping(s *state) {
	seen := map[string]bool{}
	for _, f := range s.files() {
		for _, name := range slices.Sorted(maps.Keys(f.secrets)) {
			if found := f.secrets[name]; !seen[name] && len(found.origins) > 0 {
				x.Notes = append(x.Notes, fmt.Sprintf("secret %s may be typed into pages of %s (%s)", name,
					strings.Join(found.origins, ", "), found.pos))
			}
			seen[name] = true
		}
	}
}

// explainCallers shows each caller that a file names, and the other callers of each kind.
func (x *Explanation) explainCallers(s *state, ask host.Ask) {
	patterns := []string{"cli", "mcp:*", "mcp-http:*"}
	for _, f := range s.files() {
		for _, c := range f.callers {
			patterns = append(patterns, c.pattern)
		}
		for _, p := range f.plugins {
			callsTools := slices.ContainsFunc(p.grants, func(g locatedGrant) bool { return g.Kind == Tool })
			if callsTools && !manifest.Builtin(p.name) {
				patterns = append(patterns, "plugin:"+p.name)
			}
		}
	}
	slices.Sort(patterns[3:])
	seen := map[string]bool{}
	for _, pattern := range patterns {
		if seen[strings.ToLower(pattern)] {
			continue
		}
		seen[strings.ToLower(pattern)] = true
		ask := ask
		ask.Principal.Bound = true
		// "mcp:*" stands for clients that no other entry matches: no client has this name.
		ask.Principal.Name = strings.Replace(pattern, "*", "\x00", 1)
		a := s.accessOf(ask)
		verdict := [...]string{host.Deny: "deny", host.Allow: "allow", host.Confirm: "confirm"}[a.verdict]
		reason := strings.ReplaceAll(a.reason, "\x00", "*") + quota.Explain(s.quotaOf(ask.Principal))
		x.Callers = append(x.Callers, Access{pattern, verdict, reason})
	}
}

// explainIsolation says how calls of the plugin are isolated on this system. Its rights are explained already.
func (x *Explanation) explainIsolation(s *state, env Env) {
	x.Isolate, x.Pool = s.isolate(x.Plugin), s.entry(x.Plugin).pool()
	if x.Digest == "" { // built in
		x.Isolate, x.Pool = isolateNone, ""
	}
	folders := slices.ContainsFunc(x.Rights, func(r Right) bool {
		return strings.HasPrefix(r.Right, "fs:") && len(r.Grants) > 0
	})
	lacks := strings.Join(env.NotIsolated(folders), "; ")
	switch {
	case x.Isolate == isolateNone:
	case x.Isolate != "" && lacks != "":
		x.Notes = append(x.Notes, fmt.Sprintf("it does not run: isolate = %q cannot hold here: %s", x.Isolate, lacks))
	case x.Isolate == "" && lacks != "":
		x.Isolate = isolateNone
		x.Notes = append(x.Notes, "it runs in Parley's own process, because it cannot be isolated here: "+lacks)
	case x.Isolate == "":
		x.Isolate, x.isolatedByDefault = isolateProcess, true
	}
}

// String returns the explanation as text.
func (x Explanation) String() string {
	var b strings.Builder
	name := x.Plugin
	if x.Tool != "" {
		name += "." + x.Tool
	}
	files := lists.Map(x.Files, filepath.Base)
	if len(files) == 0 {
		files = []string{"no file, so the defaults apply"}
	}
	fmt.Fprintf(&b, "%s by %s\n", name, strings.Join(files, " and "))
	isolate := x.Isolate
	if x.isolatedByDefault {
		isolate += " (default)"
	}
	for _, line := range [][2]string{{"digest", x.Digest}, {"signer", x.Signer}, {"isolate", isolate}, {"pool", x.Pool},
		{"limits", strings.Join(x.Limits, ", ")}, {"settings", x.Settings}} {
		if line[1] != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", line[0], line[1])
		}
	}
	if x.Digest != "" {
		b.WriteString("\nRequested rights\n")
		if len(x.Rights) == 0 {
			b.WriteString("  none\n")
		}
		for _, r := range x.Rights {
			b.WriteString("  " + r.text())
		}
	}
	if len(x.Callers) > 0 {
		b.WriteString("\nCallers\n")
		for _, c := range x.Callers {
			fmt.Fprintf(&b, "  %-8s %s: %s\n", c.Verdict, c.Caller, c.Reason)
		}
	}
	if len(x.Notes) > 0 {
		b.WriteString("\nNotes\n")
		for _, n := range x.Notes {
			b.WriteString("  " + n + "\n")
		}
	}
	return b.String()
}

func (r Right) text() string {
	var b strings.Builder
	switch {
	case r.Granted:
		b.WriteString("granted  ")
	case len(r.By) > 0:
		b.WriteString("in part  ")
	default:
		b.WriteString("refused  ")
	}
	b.WriteString(r.Right)
	if r.Optional {
		b.WriteString(" (optional)")
	}
	if r.Why != "" {
		b.WriteString(": " + r.Why)
	}
	b.WriteString("\n")
	for _, g := range r.By {
		b.WriteString("             by " + g + "\n")
	}
	if !r.Granted {
		b.WriteString("             " + r.Reason + "\n")
	}
	if r.Login != "" {
		b.WriteString("             " + r.Login + "\n")
	}
	if r.Next != "" {
		b.WriteString("             " + r.Next + "\n")
	}
	return b.String()
}

// Match is what a rule of the files applies to today.
type Match struct {
	Where      string          `json:"where"` // FILE:LINE
	Rule       string          `json:"rule"`
	Matches    int             `json:"matches"`
	First      []string        `json:"first"`               // at most three of them
	NoEffect   string          `json:"no_effect,omitempty"` // why it can apply to nothing, and what to do
	DidYouMean []spelling.Near `json:"did_you_mean,omitempty"`
}

// Matches returns which tools, plugins or origins of a catalog each rule of the files applies to, in the order of the
// files. A rule that applies to none may be misspelled.
func (p *Policy) Matches(c *host.Catalog) ([]Match, error) {
	s, err := p.current()
	if err != nil {
		return nil, err
	}
	found := matches{effects: map[string]string{}, asks: map[string]manifest.Capabilities{},
		settings: map[string]json.RawMessage{}, list: []Match{}}
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
			for _, f := range s.files() { // either file may have the origin that uses it for logins
				to = append(to, lists.Filter(slices.Sorted(maps.Keys(f.origins)), func(of string) bool {
					return f.origins[of].login == name
				})...)
			}
			found.add(f.secrets[name].pos, "[secrets."+name+"]", to, "")
		}
		for _, of := range slices.Sorted(maps.Keys(f.origins)) {
			r, says := f.origins[of], []string{}
			if r.tls != "" {
				says = append(says, "tls "+r.tls)
			}
			if r.login != "" {
				says = append(says, "login secret:"+r.login)
			}
			found.add(r.pos, "[origins."+quote(of)+"]", says, "")
		}
	}
	return found.list, nil
}

// builtinReason returns why only limits.timeout applies to a built-in plugin, and what to do about the rest.
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
	settings       map[string]json.RawMessage // the schemas of plugins that have settings
	list           []Match
}

func (m *matches) read(provider host.Provider) {
	plugin := provider.Info().Name
	m.plugins = append(m.plugins, plugin)
	if of, err := provider.Manifest(); err == nil {
		m.asks[plugin], m.settings[plugin] = of.Capabilities, of.Settings
	}
	names, _ := provider.Names()
	for _, name := range names {
		if tool, err := provider.Tool(name); err == nil && tool != nil {
			m.names = append(m.names, plugin+"."+name)
			m.effects[plugin+"."+name] = tool.Effect
		}
	}
}

// add adds a rule. typed is the name in it that may be misspelled, or "".
func (m *matches) add(pos position, rule string, to []string, typed string) {
	match := Match{Where: pos.String(), Rule: rule, Matches: len(to), First: append([]string{}, to[:min(3, len(to))]...)}
	if len(to) == 0 && typed != "" {
		match.DidYouMean = spelling.Nearest(strings.TrimRight(typed, ".*"), slices.Concat(m.plugins, m.names), 3)
	}
	m.list = append(m.list, match)
}

// addSettings adds a rule for each setting of a plugin. It applies to the plugins whose schema has the setting.
func (m *matches) addSettings(p *plugin, own []string) {
	var given map[string]json.RawMessage
	_ = json.Unmarshal(p.settings, &given)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		var to []string
		for _, plugin := range own {
			known := manifest.Params(m.settings[plugin])
			isKnown := slices.ContainsFunc(known, func(p manifest.Param) bool { return p.Name == name })
			if isKnown || len(known) == 0 && len(m.settings[plugin]) > 0 {
				to = append(to, plugin)
			}
		}
		m.add(p.settingsPos, p.name+" setting "+name, to, "")
	}
}

func (m *matches) addRules(caller string, v verb, list *rules) {
	for _, r := range list.rules {
		to := lists.Filter(m.names, func(name string) bool {
			return r.matches(v, strings.ToLower(name), m.effects[name])
		})
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
	if i < 0 || len(p.grants) == 0 || p.isolate+p.pool != "" || p.limits != (limits{}) {
		m.add(p.pos, "[plugin."+p.name+"]", own, p.name)
	}
	m.addSettings(p, own)
	for _, g := range p.grants {
		var to []string
		typed := ""
		if g.Kind == Tool {
			typed = g.Name
			rule, err := parsePattern(g.Name)
			to = lists.Filter(m.names, func(tool string) bool {
				return err == nil && rule.covers(pattern{name: strings.ToLower(tool)})
			})
		} else if i >= 0 && g.RequestedBy(m.asks[m.plugins[i]]) {
			to = own
		}
		m.add(g.pos, p.name+" grant "+g.String(), to, typed)
	}
}
