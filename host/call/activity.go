package call

import (
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/manifest"
)

// maxUses bounds the uses of rights, and also the denials, in the record of one call; maxDenied the denials that its
// answer lists.
const maxUses, maxDenied = 200, 100

// activity is what a tool does while it runs, as far as the host sees it.
type activity struct {
	redactor *redact.Redactor
	inner    repeats

	mu         sync.Mutex
	uses       []string
	dropped    int           // uses beyond maxUses
	denials    []string      // for the record: the rights
	denied     []host.Denial // for the answer
	innerError *host.Error   // of the last call of the plugin that failed
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

// recordDenial adds a denied right to the record of the call.
func (a *activity) recordDenial(right string) {
	right = manifest.CleanLine(a.redactor.RedactAll(right))
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.denials) < maxUses && !slices.Contains(a.denials, right) {
		a.denials = append(a.denials, right)
	}
}

// denyUse adds a denial to the answer of the call, once for each right and reason.
func (a *activity) denyUse(right, why string) {
	denial := host.Denial{Right: right, Why: why}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.denied) < maxDenied && !slices.Contains(a.denied, denial) {
		a.denied = append(a.denied, denial)
	}
}

// withDenials adds the denials of a call to its outcome: to the error, or to the result as warnings.
func (a *activity) withDenials(result *host.Result, err error) (*host.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.denied) == 0 {
		return result, err
	}
	if err != nil {
		e := host.AsError(err)
		if len(e.Denied) == 0 { // otherwise the failure is itself that of a right
			e.Denied = slices.Clone(a.denied)
		}
		return nil, e
	}
	for _, denial := range a.denied {
		result.Warnings = append(result.Warnings, "denied: "+denial.Right+" ("+denial.Why+")")
	}
	return result, nil
}
