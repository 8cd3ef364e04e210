package host

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// Config configures a [Host]. Only Catalog and Policy are required.
type Config struct {
	Version string
	Catalog *Catalog
	// Reload returns the current catalog and reports whether it has changed since the last call. Nil means that only
	// [Host.Swap] changes the catalog.
	Reload   func() (catalog *Catalog, changed bool, err error)
	Policy   Policy
	Recorder Recorder
	Audit    Auditor
	Secrets  Secrets // nil: no secret has a value
	Egress   Egress  // nil: no network access
	Sessions *Sessions
	Own      *protect.Files // what no folder grant reaches
	Filter   Filter         // runs the option jq of calls that bring no filter of their own; nil: there is no such option
	// Trusts reports whether the operator trusts the key that a plugin is signed with. Nil means that all keys are
	// trusted.
	Trusts func(plugin, key string) bool
	// Approver asks a person about calls that require confirmation or a right that is not granted. Nil means that such
	// calls are denied.
	Approver Approver
	Debug    func(format string, args ...any)
	Mode     string // documentation mode, for traces; see [WithMode]
}

// Host runs calls, searches and describes over one catalog. It is safe for concurrent use.
type Host struct {
	cfg     Config
	catalog atomic.Pointer[Catalog]
	held    *redactor // of the secrets whose values no record may have
	typed   *redactor // of the secrets that calls have typed into pages

	mu          sync.Mutex
	subscribers map[int]func(Event)
	next        int
}

// New returns a host. The error is config_error if the catalog or the policy is missing.
func New(cfg Config) (*Host, error) {
	if cfg.Catalog == nil || cfg.Policy == nil {
		return nil, Errorf(ConfigError, "a host requires a catalog and a policy")
	}
	if cfg.Debug == nil {
		cfg.Debug = func(string, ...any) {}
	}
	h := &Host{cfg: cfg, subscribers: map[int]func(Event){}, typed: &redactor{source: cfg.Secrets},
		held: &redactor{source: cfg.Secrets}}
	h.catalog.Store(cfg.Catalog)
	return h, nil
}

// Catalog returns the current catalog.
func (h *Host) Catalog() *Catalog { return h.catalog.Load() }

// Swap replaces the catalog and notifies subscribers with an event whose Op is "catalog". Calls in progress continue
// with the catalog that they started with.
func (h *Host) Swap(c *Catalog) {
	h.catalog.Store(c)
	h.notify(Event{Time: time.Now(), Op: "catalog"})
}

// Refresh reloads the catalog and reports whether it has changed: whether plugins were installed, replaced or removed.
// [Host.Call], [Host.Describe] and [Host.Search] refresh first. If the catalog cannot be reloaded, the host keeps the
// current one.
func (h *Host) Refresh() bool {
	if h.cfg.Reload == nil {
		return false
	}
	catalog, changed, err := h.cfg.Reload()
	if err != nil {
		h.cfg.Debug("catalog: %v", err)
		return false
	}
	if changed {
		h.Swap(catalog)
	}
	return changed
}

// Subscribe calls f with each event until cancel is called. f runs in the goroutine of the operation that made the
// event and must not block.
func (h *Host) Subscribe(f func(Event)) (cancel func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := h.next
	h.next++
	h.subscribers[id] = f
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subscribers, id)
	}
}

type modeKey struct{}

// WithMode returns a context whose calls are recorded with a documentation mode other than Config.Mode.
func WithMode(ctx context.Context, mode string) context.Context {
	return context.WithValue(ctx, modeKey{}, mode)
}

func (h *Host) mode(ctx context.Context) string {
	if mode, ok := ctx.Value(modeKey{}).(string); ok {
		return mode
	}
	return h.cfg.Mode
}

func (h *Host) record(e Event) {
	e = h.held.redactEvent(e)
	if h.cfg.Recorder != nil {
		h.cfg.Recorder.Record(e)
	}
	if h.cfg.Audit != nil {
		h.cfg.Audit.Record(e)
	}
	h.notify(e)
}

// notify calls each subscriber.
func (h *Host) notify(e Event) {
	h.mu.Lock()
	followers := make([]func(Event), 0, len(h.subscribers))
	for _, id := range slices.Sorted(maps.Keys(h.subscribers)) {
		followers = append(followers, h.subscribers[id])
	}
	h.mu.Unlock()
	for _, f := range followers {
		f(e)
	}
}

// Describe returns the documentation of a tool, an event or a type at a tier from 1 to 3, and records in the session
// that it was shown. The error is not_found, or invalid_args for an invalid tier and for plugins and groups, which have
// no documentation of their own.
func (h *Host) Describe(ctx context.Context, caller string, in Session, name string, tier int) (*Docs, error) {
	began := time.Now()
	h.Refresh()
	a, err := h.Catalog().Find(name)
	e := Event{Time: began, Op: "describe", CallID: newCallID(), Session: in.String(), Caller: caller, Tool: a.Name(),
		Origin: originOf(ctx), Mode: h.mode(ctx)}
	if a.Provider != nil {
		e.Digest = a.Provider.Info().Build()
	}
	var d *Docs
	switch {
	case err != nil:
	case tier < manifest.Tier1 || tier > manifest.Tier3:
		err = Errorf(InvalidArgs, "tier %d does not exist; expected 1, 2 or 3", tier)
	case a.Tool != nil:
		d, err = a.describeWithin(ctx, a.Tool, tier)
	case a.Entry != nil:
		if d, err = a.describeWithin(ctx, &a.Entry.Tool, tier); d != nil {
			d.Kind = a.Entry.Kind
		}
	default:
		err = Errorf(InvalidArgs, "%s is not a tool and has no documentation of its own; list it", a.Name()).
			WithSteps(a.ListStep())
	}
	if d != nil {
		tier = d.Tier
		d.Next = nextAfterDescribe(d)
		e.Tiers, e.DocsTokens = []int{tier}, docsTokens(ctx, d, false)
		h.cfg.Sessions.update(in, func(s *session) bool { return s.recordShown(d.Name, tier) })
		h.cfg.Debug("docs: tier %d of %s, asked for", tier, d.Name)
	}
	if err != nil {
		e.Tool, e.Err = printable(name), AsError(err)
	}
	e.Duration = time.Since(began)
	h.record(e)
	return d, err
}

func (a Address) describe(t *manifest.Tool, tier int) (*Docs, error) {
	key := tierKey{a.Name(), tier}
	built, ok := a.catalog.docs.Load(key)
	if !ok {
		if describe := a.Provider.Features().Describe; describe != nil {
			built = describe(t, tier)
		} else if m, err := a.Provider.Manifest(); err == nil {
			built = manifest.Describe(m, t, tier)
		} else {
			return nil, err
		}
		a.catalog.docs.Store(key, built)
	}
	d := *built.(*manifest.ToolDocs)
	return &Docs{ToolDocs: &d}, nil
}

// maxExampleStep is the maximum size of the parameters of an example that tier 2 repeats as a next step, in bytes. Tier
// 3 always repeats the example, because it has no other step.
const maxExampleStep = 140

func nextAfterDescribe(d *Docs) (next []Step) {
	switch {
	case d.Kind == "event":
		next = append(next, Step{Op: OpListen, Tool: d.Plugin, Query: d.Tool})
	case d.Kind == "" && len(d.Examples) > 0:
		if len(d.Examples[0].Params) <= maxExampleStep || d.Tier == manifest.Tier3 {
			next = append(next, ExampleStep(d.Name, &d.Examples[0]))
		}
	case d.Kind == "":
		next = append(next, DescribeStep(d.Name, 0))
	}
	if d.Tier == manifest.Tier2 {
		next = append(next, DescribeStep(d.Name, manifest.Tier3))
	}
	if len(next) == 0 {
		next = append(next, Address{Plugin: d.Plugin, Group: d.Group}.ListStep())
	}
	return next
}

// schemaOf returns the compiled schema of a tool's parameters or results. It returns nil if there is no schema, or if
// it did not pass the gate and is that of a tool of kind mcp: such a schema is only shown. Others that do not pass it
// are an error.
func (a Address) schemaOf(raw []byte, part string) (*schema.Schema, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	info := a.Provider.Info()
	k := partKey{a.Name(), part}
	if s, ok := a.catalog.schemas.Load(k); ok {
		return s.(*schema.Schema), nil
	}
	compile := schema.CompileUntrusted
	if info.Kind == manifest.KindBuiltin {
		compile = schema.CompileTrusted
	}
	s, err := compile(raw)
	if err != nil && info.Kind == manifest.KindMCP {
		s, err = nil, nil
	}
	if err != nil {
		return nil, &Error{Code: InvalidPlugin, Message: fmt.Sprintf("the %s schema of %s cannot be used: %v", part, a.Name(),
			err), Cause: err}
	}
	a.catalog.schemas.Store(k, s)
	return s, nil
}

// schemaCompiled reports whether schemaOf has already compiled the schema.
func (a Address) schemaCompiled(part string) bool {
	_, ok := a.catalog.schemas.Load(partKey{a.Name(), part})
	return ok
}

// newCallID returns a name that no other call has. It is not a secret, so it needs neither a system call nor what
// crypto/rand starts with the first one.
func newCallID() string { return fmt.Sprintf("c%016x", rand.Uint64()) }
