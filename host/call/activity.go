package call

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// maxUses bounds the uses of rights, and also the denials, in the record of one call; maxDenied the denials that its
// answer lists.
const maxUses, maxDenied = 200, 100

// activity is what a tool does while it runs, as far as the host sees it.
type activity struct {
	redactor *redact.Redactor
	inner    repeats

	mu      sync.Mutex
	uses    []string
	dropped int            // uses beyond maxUses
	denials []string       // for the record: the rights
	login   *host.Error    // the error of a secret that requires a login by a person
	denied  []grant.Denial // for the answer
	failed  []innerError   // the last calls of the plugin that failed
	cpu     time.Duration  // CPU time of the guest
	peak    int64          // peak size of the guest's memory in bytes
}

// innerError is a call of a plugin that failed.
type innerError struct {
	tool string
	*host.Error
}

// maxFailed is how many failed calls of a plugin are remembered, to recognize the error that it passes on.
const maxFailed = 20

// recordFailure notes a call of the plugin that failed.
func (a *activity) recordFailure(tool string, e *host.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = append(a.failed[max(0, len(a.failed)+1-maxFailed):], innerError{tool, e})
}

// approval returns the id of the open approval that a call of the plugin waits for, "" if none does.
func (a *activity) approval() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, inner := range slices.Backward(a.failed) {
		if inner.Approval != "" {
			return inner.Approval
		}
	}
	return ""
}

// recordUse adds a use of a right to the record of the call.
func (a *activity) recordUse(what string) {
	what = manifest.CleanLine(a.redactor.RedactAll(what))
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case slices.Contains(a.uses, what):
	case len(a.uses) < maxUses:
		a.uses = append(a.uses, what)
	default:
		a.dropped++
	}
}

// effects returns the uses of rights that may have changed something.
func (a *activity) effects(c *host.Catalog) (changes []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, use := range a.uses {
		kind, of, _ := strings.Cut(use, ":")
		how, _, _ := strings.Cut(of, ":")
		switch {
		case kind == "secret", kind == "fs" && how == "read", kind == "http" && (how == "GET" || how == "HEAD"):
			continue
		case kind == "tool":
			if at, err := c.Find(of); err == nil && at.Tool != nil && at.Tool.Effect == manifest.EffectRead {
				continue
			}
		}
		changes = append(changes, use)
	}
	return changes
}

// withEffects adds to an error of the host about a running call what the call may have changed. If there is something,
// the steps that make a call are removed, because the request was sent already.
func (a *activity) withEffects(c *host.Catalog, err error) error {
	failed, ok := errors.AsType[*host.Error](err)
	if !ok || failed.Tool != nil {
		return err
	}
	e := *failed // other calls may have the same error
	if e.Effects = a.effects(c); len(e.Effects) > 0 {
		e.Message += "; the request was sent and may have changed something"
		e.Steps = slices.DeleteFunc(slices.Clone(e.Steps), func(s step.Step) bool { return s.Op == step.OpCall })
	}
	return &e
}

// recordDenial adds a denied right to the record of the call.
func (a *activity) recordDenial(right string) {
	right = manifest.CleanLine(a.redactor.RedactAll(right))
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.denials) < maxUses && !slices.Contains(a.denials, right) {
		a.denials = append(a.denials, right)
	}
}

// denyUse adds a denial to the record of the call, and to its answer, once for each right and reason.
func (a *activity) denyUse(right, why string) {
	a.recordDenial(right)
	denial := grant.Denial{Right: right, Why: why}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.denied) < maxDenied && !slices.Contains(a.denied, denial) {
		a.denied = append(a.denied, denial)
	}
}

// needLogin stores the error of a secret that requires a login by a person. If the call fails, that is the reason.
func (a *activity) needLogin(err error) {
	e, ok := errors.AsType[*host.Error](err)
	isLogin := func(s step.Step) bool { return s.Op == step.OpLogin }
	if !ok || !slices.ContainsFunc(e.Steps, isLogin) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.login = e
}

// addUsage adds what a guest has used.
func (a *activity) addUsage(cpu time.Duration, peak int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cpu, a.peak = a.cpu+cpu, max(a.peak, peak)
}

// withDenials adds the denials of a call to its outcome: to the error, or to the result as warnings. A call that failed
// and needed a login ends in the error about that.
func (a *activity) withDenials(result *job.Result, err error) (*job.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.login != nil && err != nil:
		err = a.login
	case a.login != nil:
		result.Warnings = append(result.Warnings, a.login.Message)
		result.Steps = append(result.Steps, a.login.Steps...)
	}
	if len(a.denied) == 0 {
		return result, err
	}
	if err != nil {
		e := host.AsError(err)
		if len(e.Denied) == 0 { // otherwise the failure itself is about a right
			e.Denied = slices.Clone(a.denied)
		}
		return nil, e
	}
	for _, denial := range a.denied {
		result.Warnings = append(result.Warnings, "denied: "+denial.Right+" ("+denial.Why+")")
	}
	return result, nil
}

// repeats are the calls that a plugin makes on its own behalf within one call. Equal calls, such as the polls of a
// wait, are recorded once, before the record of the outer call: as the first of them, with their number and their
// total duration.
type repeats struct {
	mu     sync.Mutex
	events []*host.Event
	first  map[string]*host.Event // by what a call does, both with and without its outcome
}

// Limits of what is held back until the call ends: the number of different calls, and the bytes of each.
const maxRepeats, maxRepeatBytes = 100, 16 << 10

// begun reports whether an equal call is held back, whose beginning has been recorded already.
func (r *repeats) begun(key string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first[key] != nil
}

// hold holds back the event of a call, or adds it to the event of an equal call. It reports whether it did either.
func (r *repeats) hold(key string, e host.Event) bool {
	if r == nil || e.Approval != "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	outcome := key + " " + e.Subject + " " + string(host.OK)
	if e.Err != nil {
		outcome = key + " " + e.Subject + " " + string(e.Err.Code)
	}
	if first := r.first[outcome]; first != nil {
		first.Count, first.Duration = max(first.Count, 1)+1, first.Duration+e.Duration
		first.CPU, first.PeakBytes = first.CPU+e.CPU, max(first.PeakBytes, e.PeakBytes)
		return true
	}
	if r.first[key] == nil && (len(r.events) >= maxRepeats || len(e.Params)+len(e.Result) > maxRepeatBytes) {
		return false
	}
	if r.first == nil {
		r.first = map[string]*host.Event{}
	}
	r.events, r.first[outcome], r.first[key] = append(r.events, &e), &e, &e
	return true
}

// record records what is held back.
func (r *repeats) record(h *Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		h.record(*e)
	}
	r.events, r.first = nil, nil
}

// repeatKey returns a key for what a call does. For a call that only reads, it ignores numbers, such as the time left.
func (r *run) repeatKey() string {
	if r.address.Tool == nil {
		return r.answer.Tool
	}
	params := r.call.Params
	if r.auth.effect() == manifest.EffectRead {
		params = jsontext.WithoutNumbers(params)
	}
	return fmt.Sprintf("%s %q %s", r.answer.Tool, r.call.Options.Place, params)
}
