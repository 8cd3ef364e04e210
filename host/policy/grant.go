package policy

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// Kinds of grant.
const (
	FS     = "fs"
	HTTP   = "http"
	Tool   = "tool"
	EnvVar = "env"
	Secret = "secret"
	Clock  = "clock"
	Random = "random"
)

// Grant is one right as the operator writes it:
//
//	fs:ro:SOURCE=/GUEST          a folder of this machine, read-only (or rw), under the path that the plugin asks for
//	http:GET,POST:ORIGIN         requests by these methods (see Origin)
//	tool:cdp.Page.*              tools of other plugins: a name, or the beginning of names followed by "*"
//	env:LANG                     an environment variable
//	secret:NAME                  the host may put the secret where the manifest says
//	secret:read:NAME             and the plugin may read it
//	clock, random                the wall clock, randomness
//
// A SOURCE may hold "=", a guest path may not: the last one counts.
type Grant struct {
	Kind    string
	Mode    string // fs: ro or rw
	Source  string // fs: on this machine
	Path    string // fs: as the guest sees it
	Methods []string
	Origin  Origin
	Name    string // tool, env, secret
	Read    bool   // secret
}

// ParseGrant reads a grant. A relative SOURCE stays relative: see Absolute.
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
		p, err := parsePattern(rest)
		if err != nil {
			return Grant{}, fmt.Errorf("grant %s: %w", quote(s), err)
		}
		if p.wild && onlyOutsidePage(p.name) {
			return Grant{}, fmt.Errorf("grant %s: what reaches outside a page is never granted by a wildcard; name each tool", quote(s))
		}
		g.Name = rest
	case EnvVar:
		if g.Name = rest; !isName(rest) {
			return Grant{}, fmt.Errorf("grant %s: expected env:NAME with a name of letters, digits and underscores", quote(s))
		}
	case Secret:
		name, read := strings.CutPrefix(rest, "read:")
		if g.Name, g.Read = name, read; !isName(name) {
			return Grant{}, fmt.Errorf("grant %s: expected secret:NAME or secret:read:NAME with a name of letters, digits and underscores", quote(s))
		}
	case Clock, Random:
		if hasRest {
			return Grant{}, fmt.Errorf("grant %s: expected only %q", quote(s), kind)
		}
	default:
		return Grant{}, fmt.Errorf("%s is no grant: expected fs:ro:SOURCE=/GUEST, fs:rw:SOURCE=/GUEST, http:GET:https://HOST, tool:NAME, env:NAME, secret:NAME, secret:read:NAME, clock or random", quote(s))
	}
	return g, nil
}

func parseFS(s, rest string) (Grant, error) {
	mode, both, _ := strings.Cut(rest, ":")
	i := strings.LastIndexByte(both, '=')
	if mode != "ro" && mode != "rw" || i < 1 {
		return Grant{}, fmt.Errorf("grant %s: expected fs:ro:SOURCE=/GUEST or fs:rw:SOURCE=/GUEST, such as fs:ro:/srv/data=/data", quote(s))
	}
	g := Grant{Kind: FS, Mode: mode, Source: both[:i], Path: both[i+1:]}
	if err := checkGuestPath(g.Path); err != nil {
		return Grant{}, fmt.Errorf("grant %s: %w", quote(s), err)
	}
	if manifest.Clean(g.Source) != g.Source || strings.ContainsAny(g.Source, "\n\t") {
		return Grant{}, fmt.Errorf("grant %s: the folder's name holds characters that cannot be seen", quote(s))
	}
	g.Source = filepath.Clean(g.Source)
	return g, nil
}

// checkGuestPath wants the one spelling of a path, because grants and asks are compared by it.
func checkGuestPath(p string) error {
	if manifest.Clean(p) != p || strings.ContainsAny(p, "\n\t\\") {
		return fmt.Errorf("guest path %s holds a backslash or characters that cannot be seen", quote(p))
	}
	if strings.Contains(p, "=") {
		return fmt.Errorf("guest path %s holds \"=\"", quote(p))
	}
	if !strings.HasPrefix(p, "/") || path.Clean(p) != p {
		return fmt.Errorf("guest path %s is not absolute and plain: write it as %s", quote(p), path.Clean("/"+p))
	}
	return nil
}

func parseHTTP(s, rest string) (Grant, error) {
	methods, origin, ok := strings.Cut(rest, ":")
	g := Grant{Kind: HTTP, Methods: strings.Split(methods, ",")}
	for i, m := range g.Methods {
		if !ok || !consistsOf(m, capitals) || slices.Contains(g.Methods[:i], m) {
			return Grant{}, fmt.Errorf("grant %s: expected http:METHODS:ORIGIN with methods in capitals, each once, such as http:GET,POST:https://api.example.com", quote(s))
		}
	}
	o, err := ParseOrigin(origin)
	if err != nil {
		return Grant{}, fmt.Errorf("grant %s: %w", quote(s), err)
	}
	g.Origin = o
	return g, nil
}

// Absolute returns the grant with its SOURCE made absolute, from dir if it is relative.
func (g Grant) Absolute(dir string) Grant {
	if g.Kind == FS && !filepath.IsAbs(g.Source) {
		g.Source = filepath.Join(dir, g.Source)
	}
	return g
}

// String is the canonical spelling, which ParseGrant reads back.
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
	case Clock, Random:
		return g.Kind
	}
	return g.Kind + ":" + g.Name
}

// subject is what the grant is about: of two grants about the same, one replaces the other.
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

// below tells whether path p is dir or lies below it, component by component.
func below(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// pattern names tools: one, or all whose qualified name begins with name. Letters' case does not count,
// because tools are found without regard to it.
type pattern struct {
	name string // in lower case, without the "*"
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
		return pattern{}, fmt.Errorf("%s names no tools: expected PLUGIN.TOOL, or the beginning of such names and then \"*\", as in cdp.Page.* or *", quote(s))
	}
	return pattern{strings.ToLower(name), wild}, nil
}

// covers tells whether everything that q names is named by p.
func (p pattern) covers(q pattern) bool {
	if p.wild {
		return strings.HasPrefix(q.name, p.name)
	}
	return !q.wild && p.name == q.name
}

// grants tells whether p, as a grant, gives the one tool of this name: what reaches outside a page must be named.
func (p pattern) grants(name string) bool {
	return p.covers(pattern{name: name}) && (!p.wild || !outsidePage(name))
}

// Forms of names. No regular expressions: compiling them would be paid for at each start of the program.
const (
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters  = capitals + "abcdefghijklmnopqrstuvwxyz"
	digits   = "0123456789"
)

// consistsOf tells whether s is one or more characters of a set.
func consistsOf(s, of string) bool { return s != "" && strings.Trim(s, of) == "" }

// isName is the form of names of variables and secrets.
func isName(s string) bool {
	return len(s) <= 200 && consistsOf(s, letters+digits+"_") && !strings.Contains(digits, s[:1])
}

// isIdentifier is the form of plugins' names, and of groups' and tools'.
func isIdentifier(s string) bool {
	return consistsOf(s, letters+digits+"_-") && strings.Contains(letters, s[:1])
}
