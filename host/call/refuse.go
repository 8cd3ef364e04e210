package call

import (
	"fmt"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// refuse adds to a parameter error what helps to fix it: the next steps, and documentation that the session has not
// been shown yet.
func (r *run) refuse(e *host.Error) error {
	if r.behalf.parentID == "" { // a plugin reads no documentation
		r.addDocs(e)
	}
	if e.Retry == nil && len(e.Corrected) > 0 { // set by the caller, with Call.Invalid
		r.params.CorrectAgain(e)
	}
	if e.Retry != nil {
		e.Steps = append(e.Steps, *e.Retry)
	}
	e.Steps = append(e.Steps, step.Describe(r.answer.Tool, 0))
	return e
}

// addDocs adds documentation of the tool to a parameter error: tier 2, then tier 3, then none, but tier 3 each third
// time that the mistake is the same.
func (r *run) addDocs(e *host.Error) {
	tier, why := manifest.Tier2, "first parameter error"
	r.host.cfg.Sessions.Update(r.call.Principal.Session, func(s *session.State) bool {
		switch {
		case (s.Repeated(r.answer.Tool, r.redactor.RedactAllError(e))+1)%session.SameMistake == 0:
			tier, why = manifest.Tier3, "the same parameter error again"
		case s.Shown(r.answer.Tool, manifest.Tier3):
			tier = 0
			return false
		case s.Shown(r.answer.Tool, manifest.Tier2):
			tier, why = manifest.Tier3, "parameter error after tier 2 was shown"
		}
		return s.RecordShown(r.answer.Tool, tier)
	})
	if tier == 0 {
		r.host.cfg.Debug("docs: none of %s, this session was shown all", r.answer.Tool)
	} else if docs, err := r.address.Describe(r.address.Tool, tier); err == nil {
		e.Docs = docs
		r.tiers = append(r.tiers, tier)
		r.host.cfg.Debug("docs: tier %d of %s, %s", tier, r.answer.Tool, why)
	}
}

// refuseByTool treats an invalid_args error of the tool itself like one of the host.
func (r *run) refuseByTool(e *host.Error) {
	if e.Code == host.InvalidArgs && e.Docs == nil && len(e.Details) > 0 {
		if e.Message == "" {
			e.Message = fmt.Sprintf("Tool '%s' failed: %s", r.answer.Tool, manifest.Plural(len(e.Details), "violation"))
		}
		_ = r.refuse(e)
	}
}
