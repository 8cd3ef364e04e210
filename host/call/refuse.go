package call

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// violationError returns the error of parameters that do not match the schema: with every violation, and with the
// corrected parameters or a template of them.
func (r *run) violationError(paramsSchema *schema.Schema, given any, violations []schema.Violation) *host.Error {
	e := &host.Error{Code: host.InvalidArgs}
	r.correct(e, paramsSchema, given)
	for _, v := range violations {
		d := detailOf(v)
		if v.Pointer != "" && (v.Keyword == "type" || v.Keyword == "required") {
			d.Expected = r.address.Expected(v.Pointer, d.Expected)
		}
		d.Suggestion = suggestion(v, e.Changes)
		e.Details = append(e.Details, d)
	}
	r.planMissing(e)
	e.Message = fmt.Sprintf("Tool '%s' failed: %s", r.answer.Tool, manifest.Plural(len(violations), "violation"))
	return e
}

// planMissing adds to the error of an incomplete call the step that gets what another tool returns, if any does, and
// makes the calls before it. The step keeps the caller's other values, and leaves out those that only the caller can
// choose.
func (r *run) planMissing(e *host.Error) {
	if e.Template == nil || r.address.Tool == nil || r.address.Provider == nil {
		return
	}
	flow := r.address.FlowOf()
	missing := slices.ContainsFunc(e.Details, func(d host.Detail) bool {
		return d.Keyword == "required" && (len(flow.Needs) > 0 || slices.ContainsFunc(flow.Values,
			func(v manifest.Value) bool { return v.Required && strings.HasPrefix(v.Pointer+"/", d.Parameter+"/") }))
	})
	if !missing {
		return
	}
	given, err := host.DecodeParams(e.Template)
	if err != nil {
		return
	}
	step := host.PlanStep(r.answer.Tool, nil)
	for _, name := range takeHoles(given, "") {
		if !flow.Returns(name) {
			step.Choose = append(step.Choose, name)
		}
	}
	if len(given) > 0 {
		step.Params = jsontext.Marshal(given)
	}
	step.Options.DryRun = r.address.Tool.Effect == manifest.EffectDestructive
	e.Steps = append([]host.Step{step.At(r.call.Options)}, e.Steps...)
}

// takeHoles removes the values with holes from an object, and the objects that are empty then, and returns their names:
// "start.lineNumber" for one within an object.
func takeHoles(object map[string]any, at string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if inner, ok := object[name].(map[string]any); ok && len(inner) > 0 {
			if names = append(names, takeHoles(inner, at+name+".")...); len(inner) == 0 {
				delete(object, name)
			}
		} else if len(holesIn(object[name])) > 0 {
			delete(object, name)
			names = append(names, at+name)
		}
	}
	return names
}

// repairObject decodes an object from a text that is almost valid JSON, and reports whether it could.
func repairObject(text string) (map[string]any, bool) {
	if len(text) > maxRepaired {
		return nil, false
	}
	raw, ok := jsontext.Repair(text)
	if !ok {
		return nil, false
	}
	value, err := jsontext.Decode(raw, jsontext.Limits{})
	object, isObject := value.(map[string]any)
	return object, err == nil && isObject
}

// detailOf returns a violation in the form that errors have.
func detailOf(v schema.Violation) host.Detail {
	return host.Detail{
		Parameter: manifest.CleanLine(v.Pointer), Keyword: v.Keyword,
		Provided: manifest.CleanLine(v.Provided), Expected: manifest.CleanLine(v.Expected),
	}
}

// suggestion returns how to fix a violation, or nil if nothing is certain.
func suggestion(v schema.Violation, changes []host.Change) *host.Suggestion {
	for _, c := range changes {
		switch {
		case c.From != v.Pointer || v.Pointer == "":
		case c.How == schema.Renamed:
			return &host.Suggestion{Pointer: v.Pointer, Op: host.SuggestRename,
				Value: manifest.CleanLine(host.LastName(strings.TrimSuffix(c.To, "/0")))}
		case c.How == schema.Moved:
			return host.TextSuggestion("move it to " + manifest.CleanLine(c.To))
		case c.How == schema.Dropped && v.Keyword == "additionalProperties" && len(v.DidYouMean) == 0:
			return &host.Suggestion{Pointer: v.Pointer, Op: host.SuggestRemove}
		}
	}
	if v.Keyword == "additionalProperties" && slices.ContainsFunc(changes, func(c host.Change) bool {
		return c.From != v.Pointer && isBelow(c.From, v.Pointer) || c.From == v.Pointer && c.How == schema.Parsed
	}) {
		return host.TextSuggestion("move what is in it one level up")
	}
	switch {
	case len(v.DidYouMean) > 0:
		return &host.Suggestion{Pointer: v.Pointer, Op: host.SuggestChoose,
			Value: manifest.CleanLine(strings.Join(v.DidYouMean, ", "))}
	case v.Keyword == "required" && slices.ContainsFunc(changes, func(c host.Change) bool {
		return isBelow(c.To,
			v.Pointer)
	}):
		return nil // the correction fills it
	case v.Keyword == "required" && strings.Count(v.Pointer, "/") == 1:
		return &host.Suggestion{Pointer: v.Pointer, Op: host.SuggestAdd}
	}
	return nil
}

// isBelow reports whether a JSON pointer leads to the value at another one or into it.
func isBelow(pointer, other string) bool {
	return pointer == other || strings.HasPrefix(pointer, other+"/")
}

// refuse adds to a parameter error what helps to fix it: the next steps, and documentation of the tool that the session
// has not been shown yet: tier 2, then tier 3, then none, but tier 3 each third time that the mistake is the same.
func (r *run) refuse(e *host.Error) error {
	tool := r.address.Tool
	tier, why := manifest.Tier2, "first parameter error"
	if r.behalf.parentID != "" {
		return r.withRetry(e) // a plugin reads no documentation
	}
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
	} else if docs, err := r.address.Describe(tool, tier); err == nil {
		e.Docs = docs
		r.tiers = append(r.tiers, tier)
		r.host.cfg.Debug("docs: tier %d of %s, %s", tier, r.answer.Tool, why)
	}
	return r.withRetry(e)
}

// withRetry adds the steps of a parameter error.
func (r *run) withRetry(e *host.Error) error {
	if e.Retry == nil && len(e.Corrected) > 0 { // set by the caller, with Call.Invalid
		e.Retry = r.retry(e.Corrected, r.call.Options)
	}
	if e.Retry != nil {
		e.Steps = append(e.Steps, *e.Retry)
	}
	e.Steps = append(e.Steps, host.DescribeStep(r.answer.Tool, 0))
	return e
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
