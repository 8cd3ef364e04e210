package policy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/policy/secret"
)

// file is the content of policy.toml or grants.toml.
type file struct {
	path     string
	allowYes *bool
	// requireSigner requires a trusted signature of every installed plugin.
	requireSigner    *bool
	requireSignerPos position

	networks []netip.Prefix
	proxy    string
	audit    string
	attach   []string
	timeout  time.Duration
	isolate  string
	plugins  map[string]*plugin // by lower-case name
	callers  []*callerEntry
	secrets  map[string]source
	origins  map[string]originRule // by origin, in canonical spelling
}

// plugin is what one file says about a plugin.
type plugin struct {
	name        string
	pos         position
	digest      string
	signer      string
	boundPos    position // position of digest, or else of signer
	signerPos   position // position of signer
	granted     bool     // the file has the key grants
	grantsPos   position
	grants      []locatedGrant
	owners      map[string]string // the identity that tool: grants are bound to, by the name of their plugin in lower case
	isolate     string
	pool        string // pool of the fleet that runs the plugin
	limits      limits
	settings    json.RawMessage
	settingsPos position
	guestKeys   []element // keys that have no effect on a built-in plugin
}

// limits are the limits that a file sets for a plugin and its module.
type limits struct {
	grant.Limits
	grant.ModuleLimits
}

// bounds are the limits that are whole numbers from 1 on.
var bounds = []struct {
	key  string
	most int
	text string // for people
	of   func(l *limits) *int
}{
	{"memory_mib", 4096, "memory %d MiB", func(l *limits) *int { return &l.MemoryMiB }},
	{"output_bytes", 1 << 30, "output %d bytes", func(l *limits) *int { return &l.OutputBytes }},
	{"log_bytes", 1 << 30, "log %d bytes", func(l *limits) *int { return &l.LogBytes }},
	{"host_calls", 1_000_000, "%d host calls", func(l *limits) *int { return &l.HostCalls }},
	{"open_files", 10_000, "%d open files", func(l *limits) *int { return &l.OpenFiles }},
	{"files_created", 1_000_000, "%d files created", func(l *limits) *int { return &l.FilesCreated }},
	{"bytes_written", 1 << 40, "%d bytes written", func(l *limits) *int { return &l.BytesWritten }},
	{"concurrent_calls", 1000, "%d concurrent calls", func(l *limits) *int { return &l.ConcurrentCalls }},
	{"module_mib", grant.MaxModuleMiB, "module %d MiB", func(l *limits) *int { return &l.FileMiB }},
	{"functions", grant.MaxFunctions, "%d functions", func(l *limits) *int { return &l.Functions }},
	{"table_entries", grant.MaxTableEntries, "%d table entries", func(l *limits) *int { return &l.TableEntries }},
	{"compile_memory_mib", 1 << 16, "compile memory %d MiB", func(l *limits) *int { return &l.CompileMemoryMiB }},
}

// locatedGrant is a grant and its position.
type locatedGrant struct {
	Grant
	pos position
}

// source is where a secret comes from.
type source struct {
	from          string   // "env:NAME", "file:PATH", "store" or "cmd:WORDS"
	refuseReflect bool     // a response that contains the value fails
	origins       []string // into whose pages it may be typed, in canonical spelling
	pos           position
}

const (
	isolateNone      = "none"
	isolateProcess   = "process"
	isolateCall      = "call"
	reflectAllow     = "allow"
	reflectRefuse    = "refuse"
	proxyNone        = "none"
	proxyEnvironment = "environment"
)

func isPlugin(name string) bool { return len(name) <= 40 && isIdentifier(name) }

func isDigest(s string) bool {
	sum, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(sum) == 64 && consistsOf(sum, digits+"abcdef")
}

// isSigner accepts any printable ASCII without white space, as minisign public keys are.
func isSigner(s string) bool {
	return s != "" && len(s) <= 200 && strings.Trim(s, printable) == ""
}

const printable = letters + digits + "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// parseFile reads one file; problems are everything that is wrong in it, in the order of the file.
func parseFile(path string, data []byte) (*file, []problem) {
	d := parseDocument(path, data)
	f := &file{path: path, plugins: map[string]*plugin{}, secrets: map[string]source{},
		origins: map[string]originRule{}}
	if len(d.problems) > 0 {
		return f, d.problems
	}
	root := d.table()
	root.allowKeys("operator", "defaults", "plugin", "callers", "secrets", "origins")
	if t, ok := root.subtable("operator"); ok {
		f.addOperator(t)
	}
	if t, ok := root.subtable("defaults"); ok {
		t.allowKeys("timeout", "isolate")
		f.timeout = t.duration("timeout")
		f.isolate = t.oneOf("isolate", isolateNone, isolateProcess, isolateCall)
	}
	for _, section := range []struct {
		key string
		add func(all, t table, name string)
	}{{"plugin", f.addPlugin}, {"callers", f.addCaller}, {"secrets", f.addSecret},
		{"origins", f.addOrigin}} {
		all, _ := root.subtable(section.key)
		for _, name := range all.names() {
			if t, ok := all.subtable(name); ok {
				section.add(all, t, name)
			}
		}
	}
	slices.SortStableFunc(d.problems, func(a, b problem) int { return a.pos.compare(b.pos, "", "") })
	return f, d.problems
}

func (f *file) addOperator(t table) {
	t.allowKeys("allow_yes", "require_signer", "networks", "proxy", "audit", "attach")
	if yes, ok := t.boolean("allow_yes"); ok {
		f.allowYes = &yes
	}
	if yes, ok := t.boolean("require_signer"); ok {
		f.requireSigner, f.requireSignerPos = &yes, t.valuePos("require_signer")
	}
	f.proxy = t.oneOf("proxy", proxyNone, proxyEnvironment)
	f.audit = t.oneOf("audit", AuditOn, AuditRequired, AuditOff)
	hosts, given := t.list("attach")
	if given {
		f.attach = []string{} // an empty list says something: none
	}
	for _, element := range hosts {
		o, err := origin.Parse("http://" + element.text)
		if err != nil || o.Wildcard || o.Port != 80 {
			t.doc.addProblem(element.pos,
				"attach takes names or addresses of hosts without a port, such as \"build-host\", not %s", quote(element.text))
			continue
		}
		f.attach = append(f.attach, o.Host)
	}
	items, given := t.list("networks")
	if given {
		f.networks = []netip.Prefix{}
	}
	for _, element := range items {
		network, err := netip.ParsePrefix(element.text)
		if err != nil || network != network.Masked() {
			t.doc.addProblem(element.pos, "networks takes prefixes such as \"10.1.0.0/16\", whose remaining bits are 0, not %s",
				quote(element.text))
			continue
		}
		f.networks = append(f.networks, network)
	}
}

func (f *file) addPlugin(all, t table, name string) {
	var ok bool
	p := &plugin{name: name, pos: all.keyPos(name)}
	if !isPlugin(name) {
		t.doc.addProblem(p.pos, "%s is not a valid name for a plugin", quote(name))
		return
	}
	if other := f.plugins[strings.ToLower(name)]; other != nil {
		t.doc.addProblem(p.pos, "plugin %s is already in line %d; names do not differ by case", name, other.pos.line)
		return
	}
	f.plugins[strings.ToLower(name)] = p
	t.allowKeys("digest", "signer", "grants", "owners", "isolate", "run", "limits", "settings")
	for _, key := range t.names() {
		if key != "limits" {
			p.guestKeys = append(p.guestKeys, element{key, t.keyPos(key)})
		}
	}
	if p.digest, ok = t.text("digest"); ok {
		p.boundPos = t.valuePos("digest")
		if !isDigest(p.digest) {
			t.addProblem("digest", "digest must be \"sha256:\" and 64 digits from 0 to f, not %s", quote(p.digest))
		}
	}
	if p.signer, ok = t.text("signer"); ok {
		p.signerPos = t.valuePos("signer")
		if p.digest == "" {
			p.boundPos = p.signerPos
		}
		if !isSigner(p.signer) {
			t.addProblem("signer", "signer must be a public key without white space, not %s", quote(p.signer))
		}
	}
	p.isolate = t.oneOf("isolate", isolateNone, isolateProcess, isolateCall)
	if run, ok := t.text("run"); ok {
		if p.pool, ok = strings.CutPrefix(run, "fleet:"); !ok || !isPlugin(p.pool) {
			t.addProblem("run", "run must be \"fleet:POOL\" with the name of a pool, not %s", quote(run))
		}
	}
	f.addGrants(t, p)
	f.addOwners(t, p)
	if l, ok := t.subtable("limits"); ok {
		l.allowKeys("memory_mib", "timeout", "output_bytes", "log_bytes", "host_calls", "open_files", "files_created",
			"bytes_written", "concurrent_calls", "module_mib", "functions", "table_entries", "compile_time",
			"compile_memory_mib")
		p.limits.Timeout, p.limits.CompileTime = l.duration("timeout"), l.duration("compile_time")
		for _, b := range bounds {
			*b.of(&p.limits) = l.integer(b.key, b.most)
		}
		for _, key := range l.names() {
			if key != "timeout" {
				p.guestKeys = append(p.guestKeys, element{"limits." + key, l.keyPos(key)})
			}
		}
	}
	slices.SortFunc(p.guestKeys, func(a, b element) int { return a.pos.compare(b.pos, a.text, b.text) })
	if s, ok := t.subtable("settings"); ok {
		p.settingsPos = t.keyPos("settings")
		p.settings = s.json()
	}
}

func (f *file) addGrants(t table, p *plugin) {
	items, ok := t.list("grants")
	if !ok {
		return
	}
	p.granted, p.grantsPos = true, t.keyPos("grants")
	if len(items) > 0 && p.digest == "" && p.signer == "" {
		t.doc.addProblem(p.grantsPos, "[%s] has grants but neither digest nor signer: grants are bound to one of them; "+
			"`parley plugin list --json` shows digests", t.name)
	}
	lines := map[string]int{}
	for _, element := range items {
		g, err := ParseGrant(element.text)
		if err != nil {
			t.doc.addProblem(element.pos, "%v", err)
			continue
		}
		if g.Kind == FS && !filepath.IsAbs(g.Source) {
			t.doc.addProblem(element.pos, "grant %s: the folder must be absolute, because a policy has no current folder",
				quote(element.text))
			continue
		}
		if line := lines[g.subject()]; line > 0 {
			t.doc.addProblem(element.pos, "grant %s has the same subject as the grant in line %d: merge them",
				quote(element.text), line)
			continue
		}
		lines[g.subject()] = element.pos.line
		p.grants = append(p.grants, locatedGrant{g, element.pos})
	}
}

// addOwners reads the owners that the plugins of granted tools had.
func (f *file) addOwners(t table, p *plugin) {
	owners, ok := t.subtable("owners")
	if !ok {
		return
	}
	p.owners = map[string]string{}
	for _, name := range owners.names() {
		owner, ok := owners.text(name)
		if ok && (!isPlugin(name) || !isDigest(owner) && !isSigner(owner)) {
			owners.addProblem(name, "owners takes names of plugins with \"shipped\", a signer's key or a digest, not %s",
				quote(owner))
		}
		p.owners[strings.ToLower(name)] = owner
	}
}

// foreignOwner returns why a tool: grant of the part does not hold for the present owner of a plugin; "" if it does. A
// grant that is not bound to an owner holds as long as the name has not changed hands.
func (p *plugin) foreignOwner(callee, identity, displaced string) string {
	bound, ok := p.owners[strings.ToLower(callee)]
	switch {
	case identity == "": // it is not installed: there is nothing to call
		return ""
	case ok && bound != identity:
		return fmt.Sprintf("it was granted when %s belonged to %s, and now it belongs to %s", callee, ownerText(bound),
			ownerText(identity))
	case !ok && displaced != "":
		return fmt.Sprintf("the grant does not say whose %s it is for, and the name went from %s to %s", callee,
			ownerText(displaced), ownerText(identity))
	}
	return ""
}

func ownerText(identity string) string {
	switch {
	case identity == host.OwnerShipped:
		return "Parley, which ships it"
	case isDigest(identity):
		return "the unsigned build " + identity
	}
	return "the signer " + identity
}

func (f *file) addSecret(all, t table, name string) {
	if !secret.IsName(name) {
		t.doc.addProblem(all.keyPos(name), "%s is not a valid name for a secret: expected letters, digits and underscores",
			quote(name))
	}
	t.allowKeys("from", "reflect", "origins")
	var origins []string
	items, _ := t.list("origins")
	for _, element := range items {
		origin, err := origin.Exact(element.text)
		if err != nil {
			t.doc.addProblem(element.pos, "origins takes origins such as \"https://example.com\": %v", err)
			continue
		}
		origins = append(origins, origin)
	}
	reflect := t.oneOf("reflect", reflectAllow, reflectRefuse)
	from, ok := t.text("from")
	if !ok {
		if _, there := t.values["from"]; !there {
			t.doc.addProblem(all.keyPos(name),
				"[%s] requires from = \"env:NAME\", \"file:PATH\", \"store\" or \"cmd:PROGRAM ARGUMENTS\"", t.name)
		}
		return
	}
	if err := secret.Check(from); err != nil {
		t.addProblem("from", "%v", err)
	}
	f.secrets[name] = source{from, reflect == reflectRefuse, origins, t.valuePos("from")}
}

// originRule is what the operator says about the server of an origin.
type originRule struct {
	tls   string // "any", "pin:sha256/HASH" or ""
	login string // the secret with USER:PASSWORD; "" for none
	pos   position
}

const (
	tlsAny = "any"
	tlsPin = "pin:sha256/"
)

func (f *file) addOrigin(all, t table, name string) {
	of, err := origin.Exact(name)
	if err != nil {
		t.doc.addProblem(all.keyPos(name), "origins takes origins such as \"https://example.com\": %v", err)
		return
	}
	t.allowKeys("tls", "login")
	r := originRule{pos: all.keyPos(name)}
	var given bool
	if r.tls, given = t.text("tls"); given {
		hash, pinned := strings.CutPrefix(r.tls, tlsPin)
		key, err := base64.StdEncoding.DecodeString(hash)
		switch {
		case r.tls != tlsAny && (!pinned || err != nil || len(key) != sha256.Size || strings.ContainsAny(hash, "\r\n")):
			t.addProblem("tls", "tls must be \"pin:sha256/HASH\", the hash of the server's public key in base64, or \"any\", "+
				"not %s", quote(r.tls))
		case !strings.HasPrefix(of, "https:"):
			t.addProblem("tls", "tls is for https origins")
		}
	}
	if login, given := t.text("login"); given {
		var ok bool
		if r.login, ok = strings.CutPrefix(login, "secret:"); !ok || !secret.IsName(r.login) {
			t.addProblem("login", "login must be \"secret:NAME\", a secret whose value is USER:PASSWORD, not %s", quote(login))
		}
	}
	f.origins[of] = r
}
