package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/internal/private"
	"github.com/parley-tools/parley/manifest"
)

// Names of the two files.
const (
	PolicyFile = "policy.toml"
	GrantsFile = "grants.toml"
)

// What [operator] audit may say: calls are recorded, calls stop when they cannot be recorded, nothing is recorded.
const (
	AuditOn       = "on"
	AuditRequired = "required"
	AuditOff      = "off"
)

// maxFile bounds a policy file, in bytes.
const maxFile = 1 << 20

// Env is what a policy needs to know of its surroundings. The zero value is the process's own.
type Env struct {
	// LookupEnv reads environment variables; nil means os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// Dir is what relative folders in new grants begin at; "" means the process's current folder.
	Dir string
	// Store is the folder of the secret store; "" means that there is none.
	Store string
	// Signer tells who signed the build of a plugin that has this digest; nil knows nobody, so that grants
	// bound to a signer give nothing.
	Signer func(plugin, digest string) (Signer, error)
	// Difference shows, in lines, how the manifest of one build of a plugin differs from that of another that
	// was approved, or says why it cannot; nil shows nothing.
	Difference func(plugin, approved, found string) string
}

func (e Env) lookup(name string) (string, bool) {
	if e.LookupEnv != nil {
		return e.LookupEnv(name)
	}
	return os.LookupEnv(name)
}

// Policy decides by the operator's files. It is safe for concurrent use.
type Policy struct {
	dir string // "" without files
	env Env

	mu     sync.Mutex
	state  *state
	stamps [2]fileStamp
}

var _ host.Policy = (*Policy)(nil)

// Default is what holds with no policy file: the command line may call everything, MCP over stdio
// everything but is asked before what is destructive, MCP over the network what only reads, and plugins
// have no rights.
func Default() *Policy { return &Policy{state: &state{}} }

// Load reads policy.toml and grants.toml from dir; if neither is there, what Default says holds. A file
// that is there but cannot be opened, that others may write, or that holds anything but what the schema
// knows is a *host.Error of code config_error, with each problem as FILE:LINE:COLUMN.
func Load(dir string, env Env) (*Policy, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "the policy's folder cannot be found: %v", err)
	}
	p := &Policy{dir: dir, env: env}
	if _, err := p.current(); err != nil {
		return nil, err
	}
	return p, nil
}

// Decide answers a call. The files are read again when they have changed, so that what was revoked is
// gone from the next call on, also in a host that runs for long.
func (p *Policy) Decide(_ context.Context, ask host.Ask) (host.Decision, error) {
	s, err := p.current()
	if err != nil {
		return host.Decision{}, err
	}
	a := s.accessOf(ask)
	if name, isPlugin := strings.CutPrefix(ask.Caller, kindPlugin+":"); isPlugin && a.verdict != host.Deny && !MatchTool(ask.Held, ask.Plugin+"."+ask.Tool) {
		// What the policy grants to the name is not yet what this build of it asked for and was given.
		a = access{verdict: host.Deny, reason: "the tool is not among those that " + quote(name) + " asked for and was granted"}
	}
	d := host.Decision{Verdict: a.verdict, Reason: a.reason, Audit: s.audit()}
	if d.Verdict == host.Deny {
		if d.Next = []string{a.next}; a.next == "" {
			d.Next[0] = "parley policy explain " + ask.Plugin + "." + ask.Tool
		}
		return d, nil
	}
	e := s.entry(ask.Plugin)
	if err := s.approve(ask.Plugin, ask.Digest, p.env); err != nil {
		return d, s.describeRefusal(err, ask.Plugin, ask.Digest, p.env)
	}
	d.Limits, d.Settings = e.limits(s.timeout()), e.settings(ask.Digest, p.env)
	d.SettingsIn = "[plugin." + ask.Plugin + ".settings] in " + filepath.Join(p.dir, PolicyFile)
	if ask.Digest == "" {
		return d, nil
	}
	d.Isolate = s.isolate(ask.Plugin)
	ev := e.evaluate(ask.Capabilities, ask.Digest, p.env)
	d.Grant = ev.grant
	for _, r := range ev.rights {
		if r.refused == "" || r.optional {
			continue
		}
		why := r.why
		if r.reason != "" {
			why = strings.TrimPrefix(why+"; ", "; ") + r.reason
		}
		d.Missing = append(d.Missing, host.Denial{Right: r.refused, Why: why})
		if r.grantable != "" {
			d.Next = append(d.Next, grantCommand(ask.Plugin, r.grantable))
		}
	}
	if len(d.Missing) > len(d.Next) {
		d.Next = append(d.Next, "parley policy explain "+ask.Plugin)
	}
	return d, nil
}

// Isolate is how a plugin's calls are run: "none" or "process".
func (p *Policy) Isolate(plugin string) (string, error) {
	s, err := p.current()
	if err != nil {
		return "", err
	}
	return s.isolate(plugin), nil
}

// Egress is what the operator says of the network as a whole.
func (p *Policy) Egress() (host.EgressRules, error) {
	s, err := p.current()
	if err != nil {
		return host.EgressRules{}, err
	}
	var rules host.EgressRules
	for _, f := range s.files() {
		if rules.Networks == nil {
			rules.Networks = f.networks
		}
		rules.Proxy = rules.Proxy || f.proxy == proxyEnvironment
	}
	return rules, nil
}

// AttachHosts are the hosts outside of this machine whose browsers may be attached to, in lower case.
func (p *Policy) AttachHosts() ([]string, error) {
	s, err := p.current()
	if err != nil {
		return nil, err
	}
	for _, f := range s.files() {
		if f.attach != nil {
			return f.attach, nil
		}
	}
	return nil, nil
}

// Audit is how calls depend on the audit log: AuditOn, AuditRequired or AuditOff.
func (p *Policy) Audit() (string, error) {
	s, err := p.current()
	if err != nil {
		return "", err
	}
	return s.audit(), nil
}

// AllowYes tells whether --yes may stand for a person where there is no terminal.
func (p *Policy) AllowYes() (bool, error) {
	s, err := p.current()
	if err != nil {
		return false, err
	}
	for _, f := range s.files() {
		if f.allowYes != nil {
			return *f.allowYes, nil
		}
	}
	return false, nil
}

// current returns the rules as the files have them now.
func (p *Policy) current() (*state, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		return p.state, nil
	}
	manualPath, generatedPath := filepath.Join(p.dir, PolicyFile), filepath.Join(p.dir, GrantsFile)
	stamps := [2]fileStamp{stampOf(manualPath), stampOf(generatedPath)}
	if p.state != nil && stamps == p.stamps {
		return p.state, nil
	}
	s, err := readState(p.dir, manualPath, generatedPath)
	if err != nil {
		p.state = nil // fail closed until the files are whole again
		return nil, err
	}
	p.state, p.stamps = s, stamps
	return s, nil
}

// fileStamp tells whether a file may have changed.
type fileStamp struct {
	exists   bool
	modified time.Time
	size     int64
	mode     fs.FileMode
	inode    uint64
}

func stampOf(path string) fileStamp {
	// A link that leads nowhere is there: it changes the stamp, and reading it fails.
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return fileStamp{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{exists: true}
	}
	return fileStamp{true, info.ModTime(), info.Size(), info.Mode(), inode(info)}
}

// state is both files as they were read. A file that is not there is nil.
type state struct {
	manual, generated *file
}

func readState(dir, manualPath, generatedPath string) (*state, error) {
	s := &state{}
	var problems []problem
	for _, f := range []struct {
		path string
		into **file
	}{{manualPath, &s.manual}, {generatedPath, &s.generated}} {
		data, exists, err := readPolicyFile(dir, f.path)
		if err != nil {
			return nil, err
		}
		if !exists {
			continue
		}
		parsed, found := parseFile(f.path, data)
		*f.into = parsed
		problems = append(problems, found...)
	}
	if len(problems) > 0 {
		return nil, configError(problems)
	}
	return s, nil
}

func configError(problems []problem) *host.Error {
	const limit = 8
	var lines []string
	for i, p := range problems {
		if i == limit {
			lines = append(lines, fmt.Sprintf("and %d more", len(problems)-limit))
			break
		}
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", p.pos.file, p.pos.line, p.pos.column, manifest.CleanLine(p.text)))
	}
	return host.Errorf(host.ConfigError, "%s", strings.Join(lines, "\n")).WithNext("parley policy check")
}

// readPolicyFile reads a file whole; there is false only if nothing of that name exists.
func readPolicyFile(dir, path string) (data []byte, exists bool, err error) {
	refuse := func(format string, args ...any) ([]byte, bool, error) {
		return nil, false, host.Errorf(host.ConfigError, "%s: %s", path, fmt.Sprintf(format, args...)).WithNext("parley policy check")
	}
	// Whoever may write in the folder can take a policy away, and put one there.
	folder, err := os.Stat(dir)
	switch {
	case err != nil: // the file will not be there either, or cannot be read
	case writableByAll(folder):
		return refuse("everybody may write in its folder %s, so it is nobody's policy: chmod o-w the folder and look through the file", dir)
	case private.OwnedByOther(folder):
		return refuse("its folder %s belongs to another user, so it is not this user's policy: look through it, then chown the folder", dir)
	}
	// Lstat, because a link that leads nowhere is a policy that cannot be read.
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return refuse("cannot be read: %v", host.WithoutPath(err))
	}
	if !info.Mode().IsRegular() {
		return refuse("is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return refuse("cannot be read: %v", host.WithoutPath(err))
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return refuse("is not a file")
	}
	if writableByAll(info) {
		return refuse("everybody may write it, so it is nobody's policy: chmod o-w it and look through it")
	}
	if private.OwnedByOther(info) {
		return refuse("belongs to another user, so it is not this user's policy: look through it, then chown it")
	}
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return refuse("cannot be read: %v", host.WithoutPath(err))
	}
	if len(data) > maxFile {
		return refuse("is larger than %d bytes", maxFile)
	}
	return data, true, nil
}

// files are the files that are there, the winning one first.
func (s *state) files() []*file {
	return slices.DeleteFunc([]*file{s.manual, s.generated}, func(f *file) bool { return f == nil })
}

func (s *state) audit() string {
	for _, f := range s.files() {
		if f.audit != "" {
			return f.audit
		}
	}
	return AuditOn
}

func (s *state) timeout() time.Duration {
	for _, f := range s.files() {
		if f.timeout > 0 {
			return f.timeout
		}
	}
	return 0
}

func (s *state) isolate(name string) string {
	e := s.entry(name)
	for _, p := range e.parts() {
		if p.isolate != "" {
			return p.isolate
		}
	}
	for _, f := range s.files() {
		if f.isolate != "" {
			return f.isolate
		}
	}
	return isolateNone
}

// entry is what both files say of one plugin; either may say nothing.
type entry struct {
	manual, generated *plugin
}

func (s *state) entry(name string) entry {
	var e entry
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

// grantSource is the part whose grants count, nil if there is none.
func (e entry) grantSource() *plugin {
	for _, p := range e.parts() {
		if p.granted {
			return p
		}
	}
	return nil
}

// grants are the grants as they are written, whoever they are bound to.
func (e entry) grants() []locatedGrant {
	if p := e.grantSource(); p != nil {
		return p.grants
	}
	return nil
}

// limits take each bound from the first file that has it.
func (e entry) limits(timeout time.Duration) host.Limits {
	var l host.Limits
	for _, p := range e.parts() {
		l.Timeout = cmp.Or(l.Timeout, p.limits.Timeout)
		l.MemoryMiB = cmp.Or(l.MemoryMiB, p.limits.MemoryMiB)
		l.OutputBytes = cmp.Or(l.OutputBytes, p.limits.OutputBytes)
		l.LogBytes = cmp.Or(l.LogBytes, p.limits.LogBytes)
		l.HostCalls = cmp.Or(l.HostCalls, p.limits.HostCalls)
		l.OpenFiles = cmp.Or(l.OpenFiles, p.limits.OpenFiles)
		l.FilesCreated = cmp.Or(l.FilesCreated, p.limits.FilesCreated)
		l.BytesWritten = cmp.Or(l.BytesWritten, p.limits.BytesWritten)
		l.ConcurrentCalls = cmp.Or(l.ConcurrentCalls, p.limits.ConcurrentCalls)
	}
	if l.Timeout == 0 {
		l.Timeout = timeout
	}
	return l
}

func (e entry) settings(digest string, env Env) []byte {
	for _, p := range e.parts() {
		if p.settings == nil {
			continue
		}
		if e.unboundReason(p, digest, env) != "" {
			return nil
		}
		return p.settings
	}
	return nil
}

// unboundReason says why a part is not about this digest; "" if it is. A digest or signer that policy.toml
// names binds what grants.toml gives as well: it is the operator's own pin.
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

// String is FILE:LINE without the folder, as explanations show it.
func (p position) String() string {
	return filepath.Base(p.file) + ":" + strconv.Itoa(p.line)
}

// grantCommand is what the operator types to grant a right.
func grantCommand(plugin, right string) string {
	return "parley policy grant " + plugin + " " + shellQuote(right)
}

// shellQuote makes one word of a text that may be foreign, for a POSIX shell.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
