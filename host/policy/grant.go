package policy

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/policy/secret"
	"github.com/parley-tools/parley/manifest"
)

// Kinds of grant.
const (
	FS      = "fs"
	HTTP    = "http"
	Tool    = "tool"
	EnvVar  = "env"
	Secret  = "secret"
	Browser = "browser"
	Clock   = "clock"
	Random  = "random"
	Caller  = "caller"
)

// Grant is one right, as the operator writes it:
//
//	fs:ro:SOURCE=/GUEST          a folder of this machine, read-only (or rw), under the path that the plugin requests
//	http:GET,POST:ORIGIN         requests with these methods (see package host/origin)
//	tool:cdp.Page.*              tools of other plugins: a name, or the beginning of names followed by "*"
//	env:LANG                     an environment variable
//	secret:NAME                  the host may put the secret where the manifest says
//	secret:read:NAME             and the plugin may read it
//	browser:session              to act in the browser context of the caller's session
//	clock, random                the wall clock, randomness
//	caller                       inner calls are made as the caller, for a shipped plugin only
//
// A SOURCE may contain "=", a guest path may not: the last one separates them.
type Grant struct {
	Kind    string
	Mode    string // fs: ro or rw
	Source  string // fs: on this machine
	Path    string // fs: as the guest sees it
	Methods []string
	Origin  origin.Origin
	Name    string // tool, env, secret; browser: session
	Read    bool   // secret
}

// ParseGrant parses a grant. A relative SOURCE stays relative: see [Policy.Grant].
func ParseGrant(s string) (Grant, error) {
	const limit = 8 << 10
	if len(s) > limit {
		return Grant{}, fmt.Errorf("a grant is longer than %d characters", limit)
	}
	kind, rest, hasRest := strings.Cut(s, ":")
	g := Grant{Kind: kind}
	switch kind {
	case FS:
		return parseFS(s, rest)
	case HTTP:
		return parseHTTP(s, rest)
	case Tool:
		if _, err := parsePattern(rest); err != nil {
			return Grant{}, fmt.Errorf("grant %s: %w", quote(s), err)
		}
		g.Name = rest
	case EnvVar:
		if g.Name = rest; !secret.IsName(rest) {
			return Grant{}, fmt.Errorf("grant %s: expected env:NAME with a name of letters, digits and underscores", quote(s))
		}
	case Secret:
		name, read := strings.CutPrefix(rest, "read:")
		if g.Name, g.Read = name, read; !secret.IsName(name) {
			return Grant{}, fmt.Errorf("grant %s: expected secret:NAME or secret:read:NAME with a name of letters, digits "+
				"and underscores", quote(s))
		}
	case Browser:
		if g.Name = rest; rest != "session" {
			return Grant{}, fmt.Errorf("grant %s: expected browser:session", quote(s))
		}
	case Clock, Random, Caller:
		if hasRest {
			return Grant{}, fmt.Errorf("grant %s: expected only %q", quote(s), kind)
		}
	default:
		return Grant{}, fmt.Errorf("%s is not a grant: expected fs:ro:SOURCE=/GUEST, fs:rw:SOURCE=/GUEST, "+
			"http:GET:https://HOST, tool:NAME, "+
			"env:NAME, secret:NAME, secret:read:NAME, browser:session, clock, random or caller", quote(s))
	}
	return g, nil
}

func parseFS(s, rest string) (Grant, error) {
	mode, both, _ := strings.Cut(rest, ":")
	i := strings.LastIndexByte(both, '=')
	if mode != "ro" && mode != "rw" || i < 1 || both[:i] == "PATH" { // see Right
		return Grant{}, fmt.Errorf("grant %s: expected fs:ro:SOURCE=/GUEST or fs:rw:SOURCE=/GUEST, such as "+
			"fs:ro:/srv/data=/data", quote(s))
	}
	g := Grant{Kind: FS, Mode: mode, Source: both[:i], Path: both[i+1:]}
	if err := checkGuestPath(g.Path); err != nil {
		return Grant{}, fmt.Errorf("grant %s: %w", quote(s), err)
	}
	if manifest.Clean(g.Source) != g.Source || strings.ContainsAny(g.Source, "\n\t") {
		return Grant{}, fmt.Errorf("grant %s: the name of the folder contains invisible characters", quote(s))
	}
	g.Source = filepath.Clean(g.Source)
	return g, nil
}

// checkGuestPath requires the canonical spelling of a path, because grants and requests are compared as text.
func checkGuestPath(p string) error {
	if manifest.Clean(p) != p || strings.ContainsAny(p, "\n\t\\") {
		return fmt.Errorf("guest path %s contains a backslash or invisible characters", quote(p))
	}
	if strings.Contains(p, "=") {
		return fmt.Errorf("guest path %s contains \"=\"", quote(p))
	}
	if !strings.HasPrefix(p, "/") || path.Clean(p) != p {
		return fmt.Errorf("guest path %s is not absolute and clean: write it as %s", quote(p), path.Clean("/"+p))
	}
	return nil
}

func parseHTTP(s, rest string) (Grant, error) {
	methods, url, ok := strings.Cut(rest, ":")
	g := Grant{Kind: HTTP, Methods: strings.Split(methods, ",")}
	for i, m := range g.Methods {
		if !ok || !consistsOf(m, capitals) || slices.Contains(g.Methods[:i], m) {
			return Grant{}, fmt.Errorf("grant %s: expected http:METHODS:ORIGIN with methods in capitals, each once, such as "+
				"http:GET,POST:https://api.example.com", quote(s))
		}
	}
	o, err := origin.Parse(url)
	if err != nil {
		return Grant{}, fmt.Errorf("grant %s: %w", quote(s), err)
	}
	g.Origin = o
	return g, nil
}

// CheckReach returns a config_error with the position of each grant, and of each list of files for a caller, that has
// no effect because a folder is out of reach: calls that need it are denied. The warnings are about files in a folder
// that the rule does not reach.
func (p *Policy) CheckReach() (warnings []string, err error) {
	s, err := p.current()
	if err != nil {
		return nil, err
	}
	var problems []problem
	check := func(pos position, rule, folder string, writable bool) {
		if err := p.env.Own.Check(folder, writable); err != nil {
			problems = append(problems, problem{pos, rule + " has no effect: " + err.Error()})
			return
		}
		for _, file := range p.env.Own.Holds(folder) {
			warnings = append(warnings, fmt.Sprintf("%s: %s does not reach %s, which Parley reads itself, and nothing can be "+
				"saved in its folder; name a folder without it, such as %s", pos, rule, file, filepath.Join(folder, "work")))
		}
	}
	for _, f := range s.files() {
		for _, c := range f.callers {
			for _, folder := range c.files {
				check(c.pos, "files of caller "+quote(c.pattern), folder, false)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(f.plugins)) {
			for _, g := range f.plugins[name].grants {
				if g.Kind == FS {
					check(g.pos, "grant "+quote(g.String()), g.Source, g.Mode == "rw")
				}
			}
		}
	}
	if len(problems) > 0 {
		return warnings, configError(problems)
	}
	return warnings, nil
}

// SecretFiles returns the files from which secrets are read, the programs that print secrets, and the files that their
// command lines name.
func (p *Policy) SecretFiles() []string {
	s, err := p.current()
	if err != nil {
		return nil
	}
	var paths []string
	for _, f := range s.files() {
		for _, name := range slices.Sorted(maps.Keys(f.secrets)) { // the name of a runner depends on the order
			paths = append(paths, secret.Files(f.secrets[name].from)...)
		}
	}
	return paths
}

// String returns the canonical spelling, which [ParseGrant] accepts.
func (g Grant) String() string {
	switch g.Kind {
	case FS:
		return "fs:" + g.Mode + ":" + g.Source + "=" + g.Path
	case HTTP:
		return "http:" + strings.Join(g.Methods, ",") + ":" + g.Origin.String()
	case Secret:
		if g.Read {
			return "secret:read:" + g.Name
		}
	case Clock, Random, Caller:
		return g.Kind
	}
	return g.Kind + ":" + g.Name
}

// subject returns what the grant is for: of two grants with the same subject, one replaces the other.
func (g Grant) subject() string {
	switch g.Kind {
	case FS:
		return "fs:" + g.Path
	case HTTP:
		return "http:" + g.Origin.String()
	case Tool:
		return "tool:" + strings.ToLower(g.Name)
	}
	return g.Kind + ":" + g.Name
}

// below reports whether path p is dir or below it, component by component.
func below(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// pattern matches tools: one, or all whose qualified name begins with name. Case does not matter, as in calls.
type pattern struct {
	name string // in lower case, without "*"
	wild bool
}

func parsePattern(s string) (pattern, error) {
	const limit = 200
	name, wild := strings.CutSuffix(s, "*")
	if wild && name == "" {
		return pattern{wild: true}, nil
	}
	plain := name
	if wild {
		plain = strings.TrimSuffix(name, ".")
	}
	parts := strings.Split(plain, ".")
	if len(s) > limit || len(parts) > 3 || slices.ContainsFunc(parts, func(p string) bool { return !isIdentifier(p) }) {
		return pattern{}, fmt.Errorf("%s is not a tool name or pattern: expected PLUGIN.TOOL, or the beginning of such "+
			"names followed by \"*\", "+
			"as in cdp.Page.* or *", quote(s))
	}
	return pattern{strings.ToLower(name), wild}, nil
}

// covers reports whether p matches everything that q matches.
func (p pattern) covers(q pattern) bool {
	if p.wild {
		return strings.HasPrefix(q.name, p.name)
	}
	return !q.wild && p.name == q.name
}

// grants reports whether p, as a grant, includes the one tool of this name: one that reaches outside a page must be
// named.
func (p pattern) grants(name string, outside bool) bool {
	return p.covers(pattern{name: name}) && (!p.wild || !outside)
}

// Character sets of names. Regular expressions would have to be compiled at each start of the program.
const (
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters  = capitals + "abcdefghijklmnopqrstuvwxyz"
	digits   = "0123456789"
)

// consistsOf reports whether s is one or more characters of a set.
func consistsOf(s, of string) bool { return s != "" && strings.Trim(s, of) == "" }

// isIdentifier reports whether s is a valid name for a plugin, a group or a tool.
func isIdentifier(s string) bool {
	return consistsOf(s, letters+digits+"_-") && strings.Contains(letters, s[:1])
}

// quote quotes untrusted text for an error.
func quote(s string) string { return origin.Quote(s) }
