package policy

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/policy/operator"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Names of the two files.
const (
	PolicyFile = "policy.toml"
	GrantsFile = "grants.toml"
)

// Values of [operator] audit: calls are recorded, calls do not run unless they can be recorded, nothing is recorded.
const (
	AuditOn       = "on"
	AuditRequired = "required"
	AuditOff      = "off"
)

// Env is the environment of a policy. The zero value means the environment of the process.
type Env struct {
	// LookupEnv reads environment variables; nil means os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// Own are the files of the host, which no grant reaches. Nil means only the root and pseudo file systems.
	Own *protect.Files
	// Store is the folder of the secret store; "" means none.
	Store string
	// Token returns a valid access token of the login for a secret; nil means that no login can be used.
	Token func(ctx context.Context, name string) (string, error)
	// Signer returns the signer of the build of a plugin that has this digest. nil means that no build is signed, so
	// that grants bound to a signer have no effect.
	Signer func(plugin, digest string) (Signer, error)
	// Owner returns who a plugin belongs to, as [host.Info.Identity], and what had its name before; nil means that no
	// plugin is known, and "" that this one is not.
	Owner func(plugin string) (identity, displaced string)
	// Outside is [host.Catalog.Outside]; nil means that no tool reaches outside a page. Decisions depend on [host.Ask]
	// alone; this is for reports before a call.
	Outside func(pattern string) bool
	// NotIsolated returns what this system lacks to isolate a plugin, with or without granted folders. Nil means that it
	// lacks nothing.
	NotIsolated func(folders bool) []string
	// Difference returns lines that say how the manifest of the found build of a plugin differs from the approved
	// build's, or why that cannot be said; nil describes nothing.
	Difference func(plugin, approved, found string) string
}

// complete returns the environment with a default for each function that is nil.
func (e Env) complete() Env {
	if e.LookupEnv == nil {
		e.LookupEnv = os.LookupEnv
	}
	if e.Signer == nil {
		e.Signer = func(string, string) (Signer, error) { return Signer{}, nil }
	}
	if e.Owner == nil {
		e.Owner = func(string) (string, string) { return "", "" }
	}
	if e.Outside == nil {
		e.Outside = func(string) bool { return false }
	}
	if e.Token == nil {
		e.Token = func(_ context.Context, name string) (string, error) {
			return "", host.Errorf(host.ConfigError, "secret %s is a login, which this host cannot use", quote(name))
		}
	}
	if e.NotIsolated == nil {
		e.NotIsolated = func(bool) []string { return nil }
	}
	return e
}

// Policy decides by the operator's files. It is safe for concurrent use.
type Policy struct {
	dir string // "" without files
	env Env

	mu     sync.Mutex
	state  *state
	stamps [2]protect.Stamp
}

var _ host.Policy = (*Policy)(nil)

// Default returns the policy that applies without files: the command line may call everything; so may MCP over stdio,
// with a confirmation for destructive tools; MCP over the network may only read; and plugins have no rights.
func Default() *Policy { return &Policy{state: &state{}, env: Env{}.complete()} }

// Load reads policy.toml and grants.toml from dir. If neither exists, [Default] applies. If a file cannot be opened,
// others may write to it, or it contains anything that the schema does not allow, the error is a *host.Error of code
// config_error, with each problem as FILE:LINE:COLUMN.
func Load(dir string, env Env) (*Policy, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "the policy's folder cannot be found: %v", err)
	}
	p := &Policy{dir: dir, env: env.complete()}
	if env.Own != nil {
		own := *env.Own
		own.Secrets = p.SecretFiles
		p.env.Own = &own
	}
	if _, err := p.current(); err != nil {
		return nil, err
	}
	return p, nil
}

// Own returns the files of the host, including the files from which the policy reads secrets.
func (p *Policy) Own() *protect.Files { return p.env.Own }

// Decide decides about a call. It reads the files again when they have changed, so that revoked rights are gone from
// the next call on, also in a long-running host.
func (p *Policy) Decide(_ context.Context, ask host.Ask) (host.Decision, error) {
	s, err := p.current()
	if err != nil {
		return host.Decision{}, err
	}
	a := s.accessOf(ask)
	if name, isPlugin := strings.CutPrefix(ask.Principal.Name, kindPlugin+":"); isPlugin &&
		a.verdict != host.Deny && !ask.OnBehalf &&
		!MatchTool(ask.Principal.Tools, ask.Plugin+"."+ask.Tool, ask.Outside) {
		// The policy grants rights to the name; this build must have requested and been given them.
		a = access{verdict: host.Deny, reason: "the tool is not among those that " + quote(name) +
			" requested and was granted"}
	}
	d := host.Decision{Verdict: a.verdict, Reason: a.reason, Audit: s.audit(), Files: s.filesOf(ask),
		Quota: s.quotaOf(ask.Principal)}
	if d.Verdict == host.Deny {
		if d.Steps = a.steps; len(d.Steps) == 0 {
			d.Steps = []step.Step{step.Operator(step.OpPolicyExplain, ask.Plugin+"."+ask.Tool)}
		}
		return d, nil
	}
	e := s.entry(ask.Plugin)
	if err := s.approve(ask.Plugin, ask.Digest, p.env); err != nil {
		return d, s.describeRefusal(err, ask.Plugin, ask.Digest, p.env)
	}
	if d.Limits = e.limits(s.timeout()).Limits; ask.Digest == "" { // built in
		d.Limits = grant.Limits{Timeout: d.Limits.Timeout}
		return d, nil
	}
	d.Settings = e.settings(ask.Digest, p.env)
	d.SettingsIn = "[plugin." + ask.Plugin + ".settings] in " + filepath.Join(p.dir, PolicyFile)
	d.Isolate, d.Pool = s.isolate(ask.Plugin), e.pool()
	allowed, err := parseAllowed(ask.Allowed, ask.Plugin)
	if err != nil {
		return d, err
	}
	ev := e.evaluate(ask.Capabilities, ask.Digest, ask.Owner == host.OwnerShipped, p.env, allowed...)
	d.Grant, d.Allowable = ev.grant, true
	for _, r := range ev.rights {
		if r.Granted || r.Optional {
			continue
		}
		why := r.Why
		if r.Reason != "" {
			why = strings.TrimPrefix(why+"; ", "; ") + r.Reason
		}
		d.Missing = append(d.Missing, grant.Denial{Right: r.Refused, Why: why})
		if r.Grantable == "" {
			d.Allowable = false
		} else if !r.NeedsFolder {
			d.Steps = append(d.Steps, step.Operator(step.OpPolicyGrant, ask.Plugin, r.Grantable))
		}
	}
	if len(d.Missing) > len(d.Steps) {
		d.Steps = append(d.Steps, step.Operator(step.OpPolicyExplain, ask.Plugin))
	}
	return d, nil
}

// parseAllowed parses the rights that a person allowed for one call.
func parseAllowed(rights []string, plugin string) ([]Grant, error) {
	var grants []Grant
	for _, right := range rights {
		g, err := ParseGrant(right)
		if err == nil && g.Kind == FS && !filepath.IsAbs(g.Source) {
			err = fmt.Errorf("%s does not name a folder of this machine by its absolute path", quote(right))
		}
		if err != nil {
			return nil, host.Errorf(host.Denied, "%v; nothing was run", err).
				WithSteps(step.Operator(step.OpPolicyExplain, plugin))
		}
		grants = append(grants, g)
	}
	return grants, nil
}

// ask returns what the present files say.
func ask[T any](p *Policy, say func(*state) T) (said T, err error) {
	s, err := p.current()
	if err != nil {
		return said, err
	}
	return say(s), nil
}

// Egress returns what the operator allows for the network as a whole.
func (p *Policy) Egress() (outbound.Rules, error) {
	return ask(p, func(s *state) (rules outbound.Rules) {
		rules.Networks = first(s.files(), func(f *file) ([]netip.Prefix, bool) { return f.networks, f.networks != nil })
		proxy := first(s.files(), func(f *file) (string, bool) { return f.proxy, f.proxy != "" })
		rules.Proxy = proxy == proxyEnvironment
		return rules
	})
}

// ModuleLimits returns the limits that the files set for the module of a plugin. The error is config_error.
func (p *Policy) ModuleLimits(plugin string) (grant.ModuleLimits, error) {
	return ask(p, func(s *state) grant.ModuleLimits { return s.entry(plugin).limits(0).ModuleLimits })
}

// AttachHosts returns the other machines whose browsers may be attached to, in lower case.
func (p *Policy) AttachHosts() ([]string, error) {
	return ask(p, func(s *state) []string {
		return first(s.files(), func(f *file) ([]string, bool) { return f.attach, f.attach != nil })
	})
}

// Audit returns whether calls depend on the audit log: AuditOn, AuditRequired or AuditOff.
func (p *Policy) Audit() (string, error) { return ask(p, (*state).audit) }

// AllowYes reports whether --yes may confirm where there is no terminal.
func (p *Policy) AllowYes() (bool, error) {
	return ask(p, func(s *state) bool {
		yes := first(s.files(), func(f *file) (*bool, bool) { return f.allowYes, f.allowYes != nil })
		return yes != nil && *yes
	})
}

// current returns the present content of the files.
func (p *Policy) current() (*state, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		return p.state, nil
	}
	stamps := [2]protect.Stamp{protect.StampOf(filepath.Join(p.dir, PolicyFile)),
		protect.StampOf(filepath.Join(p.dir, GrantsFile))}
	if p.state != nil && stamps[0].Same(p.stamps[0]) && stamps[1].Same(p.stamps[1]) {
		return p.state, nil
	}
	s, err := readState(p.dir)
	if err != nil {
		p.state = nil // fail closed until the files are valid again
		return nil, err
	}
	p.state, p.stamps = s, stamps
	return s, nil
}

// state is the content of both files; nil for one that does not exist.
type state struct {
	manual, generated *file
}

func readState(dir string) (*state, error) {
	s := &state{}
	var problems []problem
	for _, f := range []struct {
		name string
		into **file
	}{{PolicyFile, &s.manual}, {GrantsFile, &s.generated}} {
		path := filepath.Join(dir, f.name)
		data, exists, err := operator.File{Path: path}.Read()
		if err != nil {
			return nil, err
		}
		if exists {
			parsed, found := parseFile(path, data)
			*f.into, problems = parsed, append(problems, found...)
		}
	}
	if len(problems) > 0 {
		return nil, configError(problems)
	}
	return s, nil
}

// Check reports what is not valid in the text of a policy file, as [Load] does. Messages call the file by path.
func Check(path string, text []byte) error {
	if _, problems := parseFile(path, text); len(problems) > 0 {
		return configError(problems)
	}
	return nil
}

func configError(problems []problem) *host.Error {
	const limit = 8
	lines := lists.Map(problems, func(p problem) string {
		return fmt.Sprintf("%s:%d:%d: %s", p.pos.file, p.pos.line, p.pos.column, manifest.CleanLine(p.text))
	})
	text := strings.Join(spelling.AtMost(lines, limit), "\n")
	return host.Errorf(host.ConfigError, "%s", text).WithSteps(step.Operator(step.OpPolicyCheck))
}

// files returns the files that exist, the one with precedence first.
func (s *state) files() []*file {
	return slices.DeleteFunc([]*file{s.manual, s.generated}, func(f *file) bool { return f == nil })
}

// first returns the value of the first part that has one, or the zero value.
func first[P, T any](parts []P, say func(P) (T, bool)) (said T) {
	for _, p := range parts {
		if v, ok := say(p); ok {
			return v
		}
	}
	return said
}

func (s *state) audit() string {
	return cmp.Or(first(s.files(), func(f *file) (string, bool) { return f.audit, f.audit != "" }), AuditOn)
}

func (s *state) timeout() time.Duration {
	return first(s.files(), func(f *file) (time.Duration, bool) { return f.timeout, f.timeout > 0 })
}

// isolate returns how the files isolate a plugin, "" if they do not say.
func (s *state) isolate(name string) string {
	return cmp.Or(first(s.entry(name).parts(), func(p *plugin) (string, bool) { return p.isolate, p.isolate != "" }),
		first(s.files(), func(f *file) (string, bool) { return f.isolate, f.isolate != "" }))
}

// pool returns the pool of the fleet that runs a plugin, "" if none does.
func (e entry) pool() string {
	return first(e.parts(), func(p *plugin) (string, bool) { return p.pool, p.pool != "" })
}

// secret returns the source that the files have for a secret.
func (s *state) secret(name string) (found source, ok bool) {
	found = first(s.files(), func(f *file) (src source, has bool) {
		src, has = f.secrets[name]
		ok = ok || has
		return src, has
	})
	return found, ok
}

// origin returns what the files say about an origin.
func (s *state) origin(of string) originRule {
	return first(s.files(), func(f *file) (originRule, bool) {
		r, has := f.origins[of]
		return r, has
	})
}

// entry is what both files say about one plugin; nil for a file without it.
type entry struct {
	name              string // name of the plugin
	manual, generated *plugin
}

func (s *state) entry(name string) entry {
	e := entry{name: name}
	name = strings.ToLower(name)
	if s.manual != nil {
		e.manual = s.manual.plugins[name]
	}
	if s.generated != nil {
		e.generated = s.generated.plugins[name]
	}
	return e
}

func (e entry) parts() []*plugin {
	return slices.DeleteFunc([]*plugin{e.manual, e.generated}, func(p *plugin) bool { return p == nil })
}

// grantSource returns the part whose grants apply, or nil.
func (e entry) grantSource() *plugin {
	return first(e.parts(), func(p *plugin) (*plugin, bool) { return p, p.granted })
}

// limits takes each limit from the first file that sets it.
func (e entry) limits(timeout time.Duration) (l limits) {
	for _, p := range e.parts() {
		l.Timeout = cmp.Or(l.Timeout, p.limits.Timeout)
		l.CompileTime = cmp.Or(l.CompileTime, p.limits.CompileTime)
		for _, b := range bounds {
			*b.of(&l) = cmp.Or(*b.of(&l), *b.of(&p.limits))
		}
	}
	l.Timeout = cmp.Or(l.Timeout, timeout)
	return l
}

func (e entry) settings(digest string, env Env) []byte {
	p := first(e.parts(), func(p *plugin) (*plugin, bool) { return p, p.settings != nil })
	if p == nil || e.unboundReason(p, digest, env) != "" {
		return nil
	}
	return p.settings
}

// unboundReason says why a part does not apply to a digest; "" if it does. A digest or signer in policy.toml also binds
// the grants of grants.toml: it is the operator's pin.
func (e entry) unboundReason(part *plugin, digest string, env Env) string {
	for _, bound := range []*plugin{part, e.manual} {
		if bound == nil {
			continue
		}
		if bound.digest != "" && bound.digest != digest {
			return fmt.Sprintf("granted to another digest (%s)", bound.boundPos)
		}
		if why := e.signerMismatch(bound, digest, env); why != "" {
			return why
		}
	}
	return ""
}

// location returns FILE:LINE with the folder, for errors.
func (p position) location() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// String returns FILE:LINE without the folder, for explanations.
func (p position) String() string {
	if p.line == 0 {
		return p.file
	}
	return filepath.Base(p.file) + ":" + strconv.Itoa(p.line)
}
