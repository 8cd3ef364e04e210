package call

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Config configures a [Host]. Only Catalog and Policy are required.
type Config struct {
	Catalog *host.Catalog
	// Reload returns the current catalog and reports whether it has changed since the last call. Nil means that only
	// [Host.Swap] changes the catalog.
	Reload   func() (catalog *host.Catalog, changed bool, err error)
	Policy   host.Policy
	Recorder host.Recorder
	Audit    host.Auditor
	Secrets  host.Secrets    // nil: no secret has a value
	Egress   outbound.Egress // nil: no network access
	Quotas   host.Quotas     // nil: quotas are not enforced
	Sessions *session.Store
	Own      *protect.Files // what no folder grant reaches
	Filter   host.Filter    // runs the option jq of calls that bring no filter of their own; nil: there is no such option
	// Trusts reports whether the operator trusts the key that a plugin is signed with. Nil means that all keys are
	// trusted.
	Trusts func(plugin, key string) bool
	// Prefer are the plugins whose tools come first among hits of a search with the same score.
	Prefer []string
	// Approver asks a person about calls that require confirmation or a right that is not granted. Nil means that such
	// calls are denied.
	Approver approval.Approver
	// Costs returns what calls of tools took before. Nil means that nothing is known.
	Costs func(tools []string) map[string]host.Cost
	// Tracer observes all operations. Nil means that nobody does.
	Tracer host.Tracer
	Debug  func(format string, args ...any)
	Mode   string // documentation mode, for traces; see [WithMode]
}

// Host runs calls, searches and describes over one catalog. It is safe for concurrent use.
type Host struct {
	cfg   Config
	names atomic.Pointer[advice.Names] // names of the current catalog
	held  *redact.Redactor             // redacts the secrets whose values no record may have
	typed *redact.Redactor             // redacts the secrets that calls have typed into pages

	mu          sync.Mutex
	subscribers []*func(host.Event) // in the order in which they subscribed
}

// New returns a host. The error is config_error if the catalog or the policy is missing.
func New(cfg Config) (*Host, error) {
	if cfg.Catalog == nil || cfg.Policy == nil {
		return nil, host.Errorf(host.ConfigError, "a host requires a catalog and a policy")
	}
	if cfg.Debug == nil {
		cfg.Debug = func(string, ...any) {}
	}
	if cfg.Approver == nil {
		cfg.Approver = approval.ApproverFunc(func(context.Context, *approval.Approval) (approval.Reply, error) {
			return approval.Reply{}, approval.NoApproverError("there is nobody to ask")
		})
	}
	h := &Host{cfg: cfg, typed: &redact.Redactor{Source: cfg.Secrets},
		held: &redact.Redactor{Source: cfg.Secrets}}
	h.names.Store(advice.NamesOf(cfg.Catalog))
	return h, nil
}

// Catalog returns the current catalog.
func (h *Host) Catalog() *host.Catalog { return h.Names().Catalog() }

// Names returns what names mean in the current catalog.
func (h *Host) Names() *advice.Names { return h.names.Load() }

// Swap replaces the catalog and notifies subscribers with an event whose Op is "catalog". Calls in progress continue
// with the catalog that they started with.
func (h *Host) Swap(c *host.Catalog) {
	h.names.Store(advice.NamesOf(c))
	h.notify(host.Event{Time: time.Now(), Op: "catalog"})
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
func (h *Host) Subscribe(f func(host.Event)) (cancel func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers = append(slices.Clone(h.subscribers), &f)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.subscribers = slices.DeleteFunc(slices.Clone(h.subscribers), func(p *func(host.Event)) bool { return p == &f })
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

// event returns the event of an operation that began at a time.
func (h *Host) event(ctx context.Context, op string, p caller.Principal, began time.Time) host.Event {
	return host.Event{Time: began, Op: op, CallID: newCallID(), Session: p.Session.String(), Caller: p.Name,
		Origin: p.Origin, Mode: h.mode(ctx)}
}

func (h *Host) record(e host.Event) {
	e = h.held.RedactEvent(e)
	if h.cfg.Recorder != nil {
		h.cfg.Recorder.Record(e)
	}
	if h.cfg.Audit != nil {
		h.cfg.Audit.Record(e)
	}
	h.notify(e)
}

// notify calls each subscriber.
func (h *Host) notify(e host.Event) {
	h.mu.Lock()
	followers := h.subscribers // never changed in place
	h.mu.Unlock()
	for _, f := range followers {
		(*f)(e)
	}
}

// Describe returns the documentation of a tool, an event or a type at a tier from 1 to 3, and records in the session
// that it was shown. The error is not_found, or invalid_args for an invalid tier and for plugins and groups, which have
// no documentation of their own.
func (h *Host) Describe(ctx context.Context, p caller.Principal, name string, tier int) (*host.Docs, error) {
	began := time.Now()
	h.Refresh()
	e := h.event(ctx, "describe", p, began)
	ctx, end := h.begin(ctx, "describe", e.CallID, p)
	a, err := h.Catalog().Find(name)
	e.Tool = a.Name()
	if a.Provider != nil {
		e.Digest = a.Provider.Info().Build()
	}
	var d *host.Docs
	switch {
	case err != nil:
		if _, see := h.Names().Meant(name, map[string]any{}, nil); see != "" { // a name of another product, or another form
			failed := host.AsError(err)
			failed.Steps = append([]step.Step{step.Describe(see, 0)}, failed.Steps...)
		}
	case tier < manifest.Tier1 || tier > manifest.Tier3:
		err = host.Errorf(host.InvalidArgs, "tier %d does not exist; expected 1, 2 or 3", tier)
	case a.Tool != nil:
		d, err = advice.DescribeWithin(ctx, a, a.Tool, tier)
	case a.Entry != nil:
		if d, err = advice.DescribeWithin(ctx, a, &a.Entry.Tool, tier); d != nil {
			d.Kind = a.Entry.Kind
		}
	default:
		err = host.Errorf(host.InvalidArgs, "%s is not a tool and has no documentation of its own; list it", a.Name()).
			WithSteps(a.ListStep())
	}
	if d != nil {
		tier = d.Tier
		d.Next = advice.NextAfterDescribe(d)
		e.Tiers, e.DocsTokens = []int{tier}, host.DocsTokens(ctx, d, false)
		h.cfg.Sessions.Update(p.Session, func(s *session.State) bool { return s.RecordShown(d.Name, tier) })
		h.cfg.Debug("docs: tier %d of %s, asked for", tier, d.Name)
	}
	if err != nil {
		e.Tool, e.Err = host.Printable(name), host.AsError(err)
	}
	e.Duration = time.Since(began)
	h.record(e)
	end(a, err)
	return d, err
}

// begin begins an operation for the tracer. end takes the address that the operation was about, if any, and its error.
func (h *Host) begin(ctx context.Context, op, callID string, p caller.Principal) (
	within context.Context, end func(host.Address, error)) {
	if h.cfg.Tracer == nil {
		return ctx, func(host.Address, error) {}
	}
	o := host.Operation{Op: op, CallID: callID, Caller: p.Name, Origin: p.Origin}
	within, ended := h.cfg.Tracer.Begin(ctx, o)
	return within, func(a host.Address, err error) {
		// The option send_anyway also passes on what the catalog does not have.
		if known, err := h.Catalog().Find(a.Name()); err == nil && (known.Tool != nil || known.Entry != nil) {
			o.Tool = known.Name()
		}
		ended(o.Ended(err))
	}
}

// newCallID returns a name that no other call has. It is not a secret, so it needs neither a system call nor what
// crypto/rand starts with the first one.
func newCallID() string { return fmt.Sprintf("c%016x", rand.Uint64()) }

// EndSession ends a session: each provider closes what the session has opened, then what was remembered and stored for
// it is deleted, and subscribers get an event with the op "session_end".
func (h *Host) EndSession(ctx context.Context, of caller.Session) error {
	var failures []error
	for _, e := range h.sessionEnders() {
		failures = append(failures, e.EndSession(ctx, of))
	}
	h.cfg.Sessions.Delete(of)
	h.notify(host.Event{Time: time.Now(), Op: "session_end", Session: of.String()})
	return errors.Join(failures...)
}

// EndConnection tells the providers that a connection has ended. What was opened over it is closed after a grace
// period, and a temporary session ends with it.
func (h *Host) EndConnection(of caller.Session) {
	for _, e := range h.sessionEnders() {
		e.EndConnection(of.Connection)
	}
	if of.Temporary {
		h.cfg.Sessions.Delete(of)
		h.notify(host.Event{Time: time.Now(), Op: "session_end", Session: of.String()})
	}
}

func (h *Host) sessionEnders() (all []host.SessionEnder) {
	for _, p := range h.Catalog().Providers() {
		if e, ok := host.Base(p).(host.SessionEnder); ok {
			all = append(all, e)
		}
	}
	return all
}

// Search finds tools by a description in natural language. It starts no engine and uses no network. weak reports that
// no hit matches well. The error is not_found for a plugin or a group that does not exist.
func (h *Host) Search(ctx context.Context, p caller.Principal, q search.Query) (
	data *search.Data, weak bool, err error,
) {
	e := h.event(ctx, "search", p, time.Now())
	_, end := h.begin(ctx, "search", e.CallID, p)
	h.Refresh()
	data, weak, err = h.Rank(q)
	e.Query, e.Duration = q.Text, time.Since(e.Time)
	if err != nil {
		e.Err = host.AsError(err)
	} else {
		for _, r := range data.Results[:min(len(data.Results), maxRecordedHits)] {
			e.Hits = append(e.Hits, r.Name)
		}
	}
	h.record(e)
	end(host.Address{}, err)
	return data, weak, err
}

// SearchDetailed is [Host.Search] with a level of detail: "names" has the signature of the first hit only, and only if
// its confidence is high; "signatures" has those of all hits; "full" adds tier 2 of each. It returns a warning if no
// hit matches well.
//
// fits reports whether an answer is small enough to be sent. If it is not nil, what does not fit is left out; one
// result stays in any case.
func (h *Host) SearchDetailed(ctx context.Context, p caller.Principal, q search.Query, detail string,
	fits func(*search.Answer) bool) (*search.Answer, []string, error) {
	data, weak, err := h.Search(ctx, p, q)
	if err != nil {
		return nil, nil, err
	}
	answer, warnings := &search.Answer{Data: data}, []string{}
	if detail == "names" {
		search.KeepSignatures(data, 0)
	}
	if isExact := len(data.Results) > 0 && search.IsName(q.Text, data.Results[0].Name); isExact && detail != "signatures" {
		data.Results, detail = data.Results[:1], "full"
	}
	h.complete(ctx, answer, p, detail)
	if fits != nil {
		answer.Reduce(fits)
	}
	if detail == "full" {
		for i, r := range data.Results {
			if fits != nil && !h.fitsWithDocs(*answer, r.Name, fits) {
				answer.LeftOut = append(answer.LeftOut, search.MissingDocs(len(data.Results)-i))
				break
			}
			d, err := h.Describe(ctx, p, r.Name, manifest.Tier2)
			if err != nil {
				break
			}
			answer.Docs = append(answer.Docs, d)
		}
	}
	if data.Foreign && (len(data.Results) == 0 || data.Results[0].Confidence != "high") {
		warnings = append(warnings, "search reads English; translate the query if it is in another language")
	}
	if weak {
		w := "nothing installed seems to do this"
		if len(data.NearestGroups) > 0 {
			w += "; nearest groups: " + strings.Join(data.NearestGroups, ", ")
		}
		warnings = append(warnings, w)
	}
	return answer, warnings, nil
}

// maxTemplates is how many results have a template.
const maxTemplates = 3

// complete adds to an answer what the index does not have: Typed of the results with a signature, a template of a call
// to each of the first results, and the step that the best result requires.
func (h *Host) complete(ctx context.Context, a *search.Answer, p caller.Principal, detail string) {
	best := a.Best()
	for i := range a.Results {
		r := &a.Results[i]
		isFirst := i < maxTemplates && detail != "full" && r.Kind == ""
		if r.Signature == "" && !isFirst && r != best {
			continue
		}
		at, err := h.Catalog().Find(r.Name)
		isTool := err == nil && at.Tool != nil
		if isTool && r == best {
			a.Open = h.missingPage(ctx, at, p)
		}
		search.SetTyped(r, at.Tool)
		if isTool && isFirst {
			params := advice.CallTemplate(at.Tool)
			r.Template = &search.Template{Tool: r.Name, Params: jsontext.Marshal(params)}
			if r.Signature == "" { // a signature has all parameters
				r.Template.Others = advice.OtherParams(at.Tool, params, true)
			}
		}
	}
}

// fitsWithDocs reports whether an answer still fits with the documentation of one more result.
func (h *Host) fitsWithDocs(a search.Answer, name string, fits func(*search.Answer) bool) bool {
	at, err := h.Catalog().Find(name)
	if err != nil || at.Tool == nil {
		return true // it has no documentation
	}
	d, err := at.Describe(at.Tool, manifest.Tier2)
	if err != nil {
		return true
	}
	d.Next = advice.NextAfterDescribe(d)
	a.Docs = append(slices.Clip(a.Docs), d)
	if more := len(a.Results) - len(a.Docs); more > 0 {
		a.LeftOut = append(slices.Clip(a.LeftOut), search.MissingDocs(more))
	}
	return fits(&a)
}

// missingPage returns the step that opens a page if a tool requires one and the session has none, or nil.
func (h *Host) missingPage(ctx context.Context, at host.Address, p caller.Principal) *step.Step {
	job := &job.Job{Tool: at.Tool.Name, Caller: p.Name, Session: p.Session,
		Options: job.Options{Place: step.Place{Browser: step.DefaultBrowser}}}
	if missing := at.Provider.Features().MissingPage; missing != nil {
		return missing(ctx, job)
	}
	if at.Tool.Reach != manifest.ReachPage {
		return nil
	}
	// For a plugin's tool that acts on a page, the provider of pages says what is missing.
	job.Tool = ""
	for _, other := range h.Catalog().Providers() {
		if missing := other.Features().MissingPage; missing != nil {
			return missing(ctx, job)
		}
	}
	return nil
}

// Rank is [Host.Search] without a record.
func (h *Host) Rank(q search.Query) (*search.Data, bool, error) {
	return search.Rank(h.Catalog(), q, h.Order(), h.cfg.Debug)
}

// Order returns how the host orders the hits of a search that match equally well.
func (h *Host) Order() search.Order { return search.Order{Prefer: h.cfg.Prefer, Trusts: h.cfg.Trusts} }

// maxRecordedHits bounds [Event.Hits].
const maxRecordedHits = 10
