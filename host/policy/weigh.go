package policy

import (
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// weighing is what comes of the rights that a manifest asks for.
type weighing struct {
	grant  host.Grant
	rights []right
}

// right is one right that was asked for.
type right struct {
	asked     string // in the grammar of grants; PATH stands for a folder that only the operator knows
	why       string // the manifest's words, cleaned
	optional  bool
	by        []given // what gives it, in whole or in part
	refused   string  // what of it is not given; "" if all is
	remark    string  // why not
	grantable string  // what to grant, where granting helps
}

// weigh holds what is asked against what is granted: the grant holds nothing that is not in both.
func (e entry) weigh(caps manifest.Capabilities, digest string, env Env) weighing {
	w := &weigher{env: env}
	if p := e.granting(); p != nil && len(p.grants) > 0 {
		if w.remark = e.unbound(p, digest, env); w.remark == "" {
			w.grants = p.grants
		}
	}
	w.fs(caps.FS)
	for _, c := range caps.HTTP {
		w.http(c)
	}
	for _, c := range caps.Secrets {
		w.secret(c)
	}
	for _, c := range caps.Env {
		w.envVar(c)
	}
	for _, c := range caps.Tools {
		w.tool(c)
	}
	w.plain(Clock, caps.Clock, &w.grant.Clock)
	w.plain(Random, caps.Random, &w.grant.Random)
	return w.weighing
}

type weigher struct {
	weighing
	env    Env
	grants []given
	remark string // why no grant counts
}

// add notes a right. What is missing of it is refused; unless hopeless says why not, granting helps.
func (w *weigher) add(r right, missing, hopeless string) {
	r.asked, r.refused = manifest.CleanLine(r.asked), manifest.CleanLine(missing)
	r.why = manifest.CleanLine(r.why)
	if missing != "" {
		switch {
		case hopeless != "":
			r.remark = hopeless
		default:
			r.remark, r.grantable = w.remark, r.refused
		}
	}
	w.rights = append(w.rights, r)
}

func (w *weigher) of(kind string) []given {
	var found []given
	for _, g := range w.grants {
		if g.Kind == kind {
			found = append(found, g)
		}
	}
	return found
}

// fs mounts each granted folder whose guest path was asked for, or lies below one that was. A grant is
// never cut down to a folder inside of it: a plugin that may write there could have put a link in the
// place of that folder. So a grant for / does not give /data; one for /data gives what is below.
func (w *weigher) fs(asks []manifest.FSCapability) {
	for _, g := range w.of(FS) {
		mode := ""
		for _, a := range asks {
			if checkGuestPath(a.Path) == nil && below(g.Path, a.Path) {
				if mode = "ro"; a.Mode == "rw" && g.Mode == "rw" {
					mode = "rw"
					break
				}
			}
		}
		if mode != "" {
			w.grant.FS = append(w.grant.FS, host.FSGrant{Path: g.Path, Source: g.Source, Mode: mode})
		}
	}
	for _, a := range asks {
		r := right{asked: "fs:" + a.Mode + ":PATH=" + a.Path, why: a.Why, optional: a.Optional}
		if err := checkGuestPath(a.Path); err != nil {
			w.add(r, r.asked, err.Error())
			continue
		}
		given := false
		for _, f := range w.grant.FS {
			if below(a.Path, f.Path) {
				given = given || f.Mode == "rw" || a.Mode == "ro"
			} else if !below(f.Path, a.Path) {
				continue
			}
			r.by = append(r.by, w.find("fs:"+f.Path))
		}
		missing := ""
		if !given {
			missing = r.asked
		}
		w.add(r, missing, "")
	}
}

func (w *weigher) find(subject string) given {
	i := slices.IndexFunc(w.grants, func(g given) bool { return g.subject() == subject })
	return w.grants[i]
}

func (w *weigher) http(a manifest.HTTPCapability) {
	asked := a.Methods
	if len(asked) == 0 {
		asked = []string{"GET"}
	}
	r := right{asked: "http:" + strings.Join(asked, ",") + ":" + a.URL, why: a.Why, optional: a.Optional}
	origin, err := ParseOrigin(a.URL)
	if err != nil {
		w.add(r, r.asked, "the manifest asks for what is no origin: "+err.Error())
		return
	}
	missing := slices.Clone(asked)
	for _, g := range w.of(HTTP) {
		var methods []string
		for _, m := range asked {
			if slices.Contains(g.Methods, m) {
				methods = append(methods, m)
			}
		}
		both := origin
		switch {
		case len(methods) == 0:
			continue
		case g.Origin.Covers(origin):
			missing = slices.DeleteFunc(missing, func(m string) bool { return slices.Contains(methods, m) })
		case origin.Covers(g.Origin):
			both = g.Origin
		default:
			continue
		}
		r.by = append(r.by, g)
		w.addHTTP(both.String(), methods)
	}
	refused := ""
	if len(missing) > 0 {
		refused = "http:" + strings.Join(missing, ",") + ":" + origin.String()
	}
	w.add(r, refused, "")
}

// addHTTP keeps one grant for each origin.
func (w *weigher) addHTTP(origin string, methods []string) {
	i := slices.IndexFunc(w.grant.HTTP, func(h host.HTTPGrant) bool { return h.URL == origin })
	if i < 0 {
		w.grant.HTTP = append(w.grant.HTTP, host.HTTPGrant{URL: origin})
		i = len(w.grant.HTTP) - 1
	}
	for _, m := range methods {
		if !slices.Contains(w.grant.HTTP[i].Methods, m) {
			w.grant.HTTP[i].Methods = append(w.grant.HTTP[i].Methods, m)
		}
	}
}

func (w *weigher) secret(a manifest.SecretCapability) {
	g := Grant{Kind: Secret, Name: a.Name, Read: a.Read}
	r := right{asked: g.String(), why: a.Why, optional: a.Optional}
	use, read := false, false
	for _, given := range w.of(Secret) {
		if given.Name == a.Name {
			use, read = true, read || given.Read
			r.by = append(r.by, given)
		}
	}
	given := host.SecretGrant{Name: a.Name, Read: a.Read && read, URL: a.URL, Header: a.Header}
	if use && (given.Read || a.Header != "" || !a.Read) && !slices.Contains(w.grant.Secrets, given) {
		w.grant.Secrets = append(w.grant.Secrets, given)
	}
	missing := ""
	if !use || a.Read && !read {
		missing = r.asked
	}
	w.add(r, missing, "")
}

func (w *weigher) envVar(a manifest.NamedCapability) {
	r := right{asked: "env:" + a.Name, why: a.Why, optional: a.Optional}
	missing := r.asked
	for _, g := range w.of(EnvVar) {
		if g.Name != a.Name {
			continue
		}
		missing = ""
		r.by = append(r.by, g)
		// A variable that is granted and not set is not set for the plugin either.
		if value, ok := w.env.lookup(a.Name); ok {
			if w.grant.Env == nil {
				w.grant.Env = map[string]string{}
			}
			w.grant.Env[a.Name] = value
		}
	}
	w.add(r, missing, "")
}

func (w *weigher) tool(a manifest.NamedCapability) {
	r := right{asked: "tool:" + a.Name, why: a.Why, optional: a.Optional}
	asked, err := parsePattern(a.Name)
	if err != nil {
		w.add(r, r.asked, "the manifest asks for what names no tool: "+err.Error())
		return
	}
	hopeless := ""
	if asked.wild && onlyOutsidePage(asked.name) {
		hopeless = "what reaches outside a page is never granted by a wildcard: grant what the plugin needs of it by name, if it can do with less"
	}
	missing := r.asked
	for _, g := range w.of(Tool) {
		p, err := parsePattern(g.Name)
		both := ""
		switch {
		case err != nil:
			continue
		case p.covers(asked):
			if !asked.wild && !p.grants(asked.name) {
				continue // the grant is a wildcard and the tool must be named
			}
			both, missing = a.Name, ""
		case asked.covers(p):
			both = g.Name
		default:
			continue
		}
		r.by = append(r.by, g)
		if !slices.Contains(w.grant.Tools, both) {
			w.grant.Tools = append(w.grant.Tools, both)
		}
	}
	w.add(r, missing, hopeless)
}

func (w *weigher) plain(kind string, a *manifest.PlainCapability, into *bool) {
	if a == nil {
		return
	}
	r := right{asked: kind, why: a.Why, optional: a.Optional}
	if r.by = w.of(kind); len(r.by) > 0 {
		*into = true
		w.add(r, "", "")
		return
	}
	w.add(r, kind, "")
}

// MatchTool tells whether granted tools, names and globs as host.Grant has them, give the tool of this
// qualified name. A glob never gives what reaches outside a page.
func MatchTool(granted []string, name string) bool {
	name = strings.ToLower(name)
	for _, g := range granted {
		if p, err := parsePattern(g); err == nil && p.grants(name) {
			return true
		}
	}
	return false
}
