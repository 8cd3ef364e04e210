package policy

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Explanation says what a plugin requests, which line grants it, what is refused and why, and who may call one of its
// tools.
type Explanation struct {
	Plugin   string   `json:"plugin"`
	Tool     string   `json:"tool,omitempty"`
	Digest   string   `json:"digest,omitempty"`
	Signer   string   `json:"signer,omitempty"` // public key of a valid signature
	Files    []string `json:"files"`            // that were read; none: the defaults apply
	Isolate  string   `json:"isolate"`          // that applies: none, process or call
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
		l = limits{Limits: host.Limits{Timeout: l.Timeout}}
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
		reason := strings.ReplaceAll(a.reason, "\x00", "*")
		x.Callers = append(x.Callers, Access{pattern, verdict, reason})
	}
}

// explainIsolation says how calls of the plugin are isolated on this system. Its rights are explained already.
func (x *Explanation) explainIsolation(s *state, env Env) {
	x.Isolate = s.isolate(x.Plugin)
	if x.Digest == "" { // built in
		x.Isolate = isolateNone
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
	files := make([]string, len(x.Files))
	for i, f := range x.Files {
		files[i] = filepath.Base(f)
	}
	if len(files) == 0 {
		files = []string{"no file, so the defaults apply"}
	}
	fmt.Fprintf(&b, "%s by %s\n", name, strings.Join(files, " and "))
	isolate := x.Isolate
	if x.isolatedByDefault {
		isolate += " (default)"
	}
	for _, line := range [][2]string{{"digest", x.Digest}, {"signer", x.Signer}, {"isolate", isolate}, {"limits",
		strings.Join(x.Limits, ", ")}, {"settings", x.Settings}} {
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
	if r.Next != "" {
		b.WriteString("             " + r.Next + "\n")
	}
	return b.String()
}
