package policy

import (
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// evaluation is which of the rights that its manifest requests a plugin gets.
type evaluation struct {
	grant  grant.Grant
	rights []Right
}

// Right is a right that the manifest requests, in the grammar of grants. PATH stands for a folder that only the
// operator knows; a grant names that folder instead.
type Right struct {
	Right    string   `json:"right"`
	Why      string   `json:"why,omitempty"` // the manifest's words, cleaned
	Optional bool     `json:"optional,omitempty"`
	Granted  bool     `json:"granted"`           // in whole
	By       []string `json:"by,omitempty"`      // grants and their lines, including those that give a part
	Refused  string   `json:"refused,omitempty"` // the part that is not granted
	Reason   string   `json:"reason,omitempty"`
	Login    string   `json:"login,omitempty"` // until when a login lasts, for a secret that a person logs in to get
	Next     string   `json:"next,omitempty"`  // the command that would grant it; a front end that has commands sets it

	Grants      []string `json:"-"` // grants that include the right, or a part of it
	Grantable   string   `json:"-"` // the right to grant, if nothing else is missing
	NeedsFolder bool     `json:"-"` // a grant must name a folder in place of PATH
	NeedsLogin  bool     `json:"-"` // parley login is needed before the secret has a value

	grantedBy []locatedGrant // Grants and By
	login     string         // the secret that parley login gets; "" for another right
}

// evaluate returns the rights that are both requested and granted: by the files, or by a person for one call. A
// shipped plugin has the rights that its manifest names, unless policy.toml lists its grants. Folders are left to the
// operator, because only the operator can name them.
func (e entry) evaluate(caps manifest.Capabilities, digest string, shipped bool, env Env, allowed ...Grant) evaluation {
	ev := &evaluator{env: env, part: &plugin{}, plugin: e.name}
	if p := e.grantSource(); p != nil && len(p.grants) > 0 {
		ev.part = p
		if ev.unboundReason = e.unboundReason(p, digest, env); ev.unboundReason == "" {
			ev.grants = p.grants
		}
	}
	ev.allow(allowed)
	if shipped && (e.manual == nil || !e.manual.granted) {
		ev.grants = append(slices.Clone(ev.grants), shippedGrants(caps)...)
	}
	ev.fs(caps.FS)
	for _, c := range caps.HTTP {
		ev.http(c)
	}
	for _, c := range caps.Secrets {
		ev.secret(c)
	}
	for _, c := range caps.Env {
		if len(ev.named(Grant{Kind: EnvVar, Name: c.Name}, c.Why, c.Optional)) > 0 {
			ev.setVariable(c.Name)
		}
	}
	for _, c := range caps.Tools {
		ev.tool(c)
	}
	if b := caps.Browser; b != nil {
		ev.grant.Browser = len(ev.named(Grant{Kind: Browser, Name: b.Context}, b.Why, b.Optional)) > 0
	}
	if c := caps.Clock; c != nil {
		ev.grant.Clock = len(ev.named(Grant{Kind: Clock}, c.Why, c.Optional)) > 0
	}
	if c := caps.Random; c != nil {
		ev.grant.Random = len(ev.named(Grant{Kind: Random}, c.Why, c.Optional)) > 0
	}
	if c := caps.Caller; c != nil && shipped {
		ev.grant.Caller = len(ev.named(Grant{Kind: Caller}, c.Why, c.Optional)) > 0
	} else if c != nil {
		ev.add(Right{Right: Caller, Why: c.Why, Optional: c.Optional}, Caller,
			"only plugins that ship with Parley can make calls as their caller; ask for the tools by name")
	}
	return ev.evaluation
}

// shippedGrants returns the grants of a shipped plugin: everything that its manifest names except folders.
func shippedGrants(caps manifest.Capabilities) []locatedGrant {
	caps.FS = nil
	var grants []locatedGrant
	for _, a := range grant.Requested(caps) {
		if g, err := ParseGrant(a.Right); err == nil {
			grants = append(grants, locatedGrant{g, position{file: host.OwnerShipped}})
		}
	}
	return grants
}

type evaluator struct {
	evaluation
	env           Env
	plugin        string // its name
	grants        []locatedGrant
	part          *plugin // the part that has these grants
	unboundReason string  // why no grant applies
}

// allow adds grants that hold for one call. A guest path can have one folder only, so they replace those of the files.
func (ev *evaluator) allow(grants []Grant) {
	for _, g := range grants {
		ev.grants = lists.Filter(ev.grants, func(other locatedGrant) bool {
			return g.Kind != FS || other.subject() != g.subject()
		})
		ev.grants = append(ev.grants, locatedGrant{Grant: g})
	}
}

// add adds a right. missing is the part of it that is refused. ungrantable says why no grant can give it, or is "".
func (ev *evaluator) add(r Right, missing, ungrantable string) {
	r.Right, r.Refused, r.Why = manifest.CleanLine(r.Right), manifest.CleanLine(missing), manifest.CleanLine(r.Why)
	switch {
	case missing == "":
		r.Granted = true
	case ungrantable != "":
		r.Reason = ungrantable
	default:
		r.Reason, r.Grantable = ev.unboundReason, r.Refused
	}
	ev.rights = append(ev.rights, r)
}

func (ev *evaluator) ofKind(kind string) []locatedGrant {
	return lists.Filter(ev.grants, func(g locatedGrant) bool { return g.Kind == kind })
}

// fs mounts each granted folder whose guest path was requested, or is below a requested one. A grant is never narrowed
// to a folder inside of it: a plugin with write access could have replaced that folder with a link. So a grant for /
// does not give /data; one for /data gives what is below. A folder of the host's own is never mounted, even if a grant
// names it: the check is repeated here, because a link may lead there in the meantime.
func (ev *evaluator) fs(asks []manifest.FSCapability) {
	outOfReach := map[string]error{} // by guest path
	for _, g := range ev.ofKind(FS) {
		mode := ""
		for _, a := range asks {
			if checkGuestPath(a.Path) == nil && below(g.Path, a.Path) {
				if mode = "ro"; a.Mode == "rw" && g.Mode == "rw" {
					mode = "rw"
					break
				}
			}
		}
		if err := ev.env.Own.Check(g.Source, mode == "rw"); err != nil {
			outOfReach[g.Path] = err
			continue
		}
		if mode != "" {
			ev.grant.FS = append(ev.grant.FS, grant.FS{Path: g.Path, Source: g.Source, Mode: mode})
		}
	}
	for _, a := range asks {
		r := Right{Right: "fs:" + a.Mode + ":PATH=" + a.Path, Why: a.Why, Optional: a.Optional, NeedsFolder: true}
		if err := checkGuestPath(a.Path); err != nil {
			ev.add(r, r.Right, err.Error())
			continue
		}
		missing, reason := r.Right, ""
		for _, f := range ev.grant.FS {
			if below(a.Path, f.Path) {
				if f.Mode == "rw" || a.Mode == "ro" {
					missing = ""
				}
			} else if !below(f.Path, a.Path) {
				continue
			}
			r.grantedBy = append(r.grantedBy, ev.bySubject("fs:"+f.Path))
		}
		for path, err := range outOfReach {
			if below(a.Path, path) || below(path, a.Path) {
				r.grantedBy = append(r.grantedBy, ev.bySubject("fs:"+path))
				reason = "the granted folder is out of reach: " + err.Error()
			}
		}
		ev.add(r, missing, reason)
	}
}

func (ev *evaluator) bySubject(subject string) locatedGrant {
	i := slices.IndexFunc(ev.grants, func(g locatedGrant) bool { return g.subject() == subject })
	return ev.grants[i]
}

func (ev *evaluator) http(a manifest.HTTPCapability) {
	requested := a.Methods
	if len(requested) == 0 {
		requested = []string{"GET"}
	}
	r := Right{Right: "http:" + strings.Join(requested, ",") + ":" + a.URL, Why: a.Why, Optional: a.Optional}
	to, err := origin.Parse(a.URL)
	if err != nil {
		ev.add(r, r.Right, "the manifest requests an invalid origin: "+err.Error())
		return
	}
	missing := slices.Clone(requested)
	for _, g := range ev.ofKind(HTTP) {
		methods := lists.Filter(requested, func(m string) bool { return slices.Contains(g.Methods, m) })
		granted := to
		switch {
		case len(methods) == 0:
			continue
		case g.Origin.Covers(to):
			missing = slices.DeleteFunc(missing, func(m string) bool { return slices.Contains(methods, m) })
		case to.Covers(g.Origin):
			granted = g.Origin
		default:
			continue
		}
		r.grantedBy = append(r.grantedBy, g)
		ev.addHTTP(granted.String(), methods)
	}
	refused := ""
	if len(missing) > 0 {
		refused = "http:" + strings.Join(missing, ",") + ":" + to.String()
	}
	ev.add(r, refused, "")
}

// addHTTP keeps one grant per origin.
func (ev *evaluator) addHTTP(origin string, methods []string) {
	i := slices.IndexFunc(ev.grant.HTTP, func(h grant.HTTP) bool { return h.URL == origin })
	if i < 0 {
		ev.grant.HTTP = append(ev.grant.HTTP, grant.HTTP{URL: origin})
		i = len(ev.grant.HTTP) - 1
	}
	ev.grant.HTTP[i].Methods = lists.Add(slices.Clone(ev.grant.HTTP[i].Methods), methods...)
}

func (ev *evaluator) secret(a manifest.SecretCapability) {
	by := ev.named(Grant{Kind: Secret, Name: a.Name, Read: a.Read}, a.Why, a.Optional)
	read := a.Read && slices.ContainsFunc(by, readable)
	grant := grant.Secret{Name: a.Name, Read: read, URL: a.URL, Header: a.Header, Query: a.Query}
	if a.OAuth != nil {
		grant.Login = ev.plugin
		ev.rights[len(ev.rights)-1].login = a.Name
	}
	if len(by) > 0 && (read || a.Header+a.Query != "" || !a.Read) {
		ev.grant.Secrets = lists.Add(ev.grant.Secrets, grant)
	}
}

// setVariable gives the plugin a variable. A variable that is not set here is not set for the plugin either.
func (ev *evaluator) setVariable(name string) {
	if value, ok := ev.env.LookupEnv(name); ok {
		if ev.grant.Env == nil {
			ev.grant.Env = map[string]string{}
		}
		ev.grant.Env[name] = value
	}
}

func readable(g locatedGrant) bool { return g.Read }

// named evaluates a right that grants of the same name give, and returns these grants. All rights of a kind without
// names are the same.
func (ev *evaluator) named(asked Grant, why string, optional bool) (by []locatedGrant) {
	by = lists.Filter(ev.ofKind(asked.Kind), func(g locatedGrant) bool {
		return g.Name == asked.Name || asked.Kind == Browser
	})
	r := Right{Right: asked.String(), Why: why, Optional: optional, grantedBy: by}
	missing := ""
	if len(by) == 0 || asked.Read && !slices.ContainsFunc(by, readable) {
		missing = r.Right
	}
	ev.add(r, missing, "")
	return by
}

func (ev *evaluator) tool(a manifest.NamedCapability) {
	r := Right{Right: "tool:" + a.Name, Why: a.Why, Optional: a.Optional}
	requested, err := parsePattern(a.Name)
	if err != nil {
		ev.add(r, r.Right, "the manifest requests an invalid tool name: "+err.Error())
		return
	}
	ungrantable := ""
	if requested.wild && ev.env.Outside(a.Name) {
		ungrantable = "tools that reach outside a page are never granted by a wildcard: " +
			"grant those that the plugin needs by name, if it can work with fewer"
	}
	missing, foreign := r.Right, ""
	for _, g := range ev.ofKind(Tool) {
		p, err := parsePattern(g.Name)
		granted := ""
		if callee := pluginOf(a.Name, g.Name); callee != "" && err == nil && (p.covers(requested) || requested.covers(p)) {
			identity, displaced := ev.env.Owner(callee)
			if why := ev.part.foreignOwner(callee, identity, displaced); why != "" {
				foreign = why
				continue
			}
		}
		switch {
		case err != nil:
			continue
		case p.covers(requested):
			if !requested.wild && !p.grants(requested.name, p.wild && ev.env.Outside(a.Name)) {
				continue // the grant is a wildcard, and the tool must be named
			}
			granted, missing = a.Name, ""
		case requested.covers(p):
			granted = g.Name
		default:
			continue
		}
		r.grantedBy = append(r.grantedBy, g)
		ev.grant.Tools = lists.Add(ev.grant.Tools, granted)
	}
	if ev.add(r, missing, ungrantable); missing != "" && ungrantable == "" && foreign != "" {
		ev.rights[len(ev.rights)-1].Reason = foreign
	}
}

// pluginOf returns the plugin of the first pattern that names a plugin; "" if none does.
func pluginOf(patterns ...string) string {
	for _, p := range patterns {
		if plugin, _, dotted := strings.Cut(p, "."); dotted && isPlugin(plugin) {
			return plugin
		}
	}
	return ""
}

// MatchTool reports whether granted names and patterns, as in [grant.Grant], include the tool of this qualified name. A
// pattern never includes a tool that reaches outside a page.
func MatchTool(granted []string, name string, outside bool) bool {
	name = strings.ToLower(name)
	for _, g := range granted {
		if p, err := parsePattern(g); err == nil && p.grants(name, outside) {
			return true
		}
	}
	return false
}

// RequestedBy reports whether a manifest requests what a grant gives: the same name with the whole mode, all methods
// and the reading of the secret. What exceeds the request has no effect, and is most likely meant for another plugin.
func (g Grant) RequestedBy(caps manifest.Capabilities) bool {
	only := entry{generated: &plugin{granted: true, grants: []locatedGrant{{Grant: g}}}}
	env := Env{LookupEnv: func(string) (string, bool) { return "", true }}.complete()
	granted := only.evaluate(caps, "", false, env).grant
	switch g.Kind {
	case HTTP:
		return !slices.ContainsFunc(g.Methods, func(m string) bool {
			return !slices.ContainsFunc(granted.HTTP, func(h grant.HTTP) bool { return slices.Contains(h.Methods, m) })
		})
	case Tool: // a part of what the grant names may be requested
		return len(granted.Tools) > 0
	}
	return slices.Contains(granted.Names(), g.String())
}
