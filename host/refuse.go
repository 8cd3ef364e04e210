package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

func syntaxError(err error, raw []byte) *Error {
	e := &Error{Code: InvalidArgs, Message: manifest.CleanLine(err.Error()), Cause: err}
	var at *jsontext.SyntaxError
	if errors.As(err, &at) {
		e.Details = []Detail{{
			Parameter: manifest.CleanLine(at.Pointer), Keyword: "syntax", Provided: excerpt(raw, int(at.Offset)),
			Expected: "one JSON object",
			Suggestion: &Suggestion{Pointer: at.Pointer, Op: SuggestSyntax,
				Value: fmt.Sprintf("line %d, column %d", at.Line, at.Column)},
		}}
		e.Marked = markSyntax(raw, int(at.Offset), at.Line, at.Column, at.Msg)
	}
	return e
}

// excerpt returns the text around an offset, on one line.
func excerpt(raw []byte, offset int) string {
	offset = max(0, min(offset, len(raw)))
	from, to := max(0, offset-20), min(len(raw), offset+20)
	return manifest.CleanLine(strings.ToValidUTF8(string(raw[from:to]), "\ufffd"))
}

func pointerOr(pointer string) string {
	if pointer == "" {
		return "parameters"
	}
	return pointer
}

// violationError returns the error of parameters that do not match the schema: with every violation, and with corrected
// parameters if a correction is certain.
func (r *run) violationError(paramsSchema *schema.Schema, given, value any, violations []schema.Violation) *Error {
	e := &Error{Code: InvalidArgs}
	for _, v := range violations {
		d := detailOf(v)
		d.Suggestion = suggestion(v)
		e.Details = append(e.Details, d)
		for _, name := range v.DidYouMean {
			e.DidYouMean = append(e.DidYouMean, NearName{manifest.CleanLine(name), distance(wordOf(value, v), name)})
		}
	}
	e.Marked = Mark(given, e.Details)
	_, isObject := value.(map[string]any)
	switch inner := onlyMember(given); {
	case !isObject:
		r.propose(e, paramsSchema, intendedObject(value))
	case inner != nil && isValid(paramsSchema, inner):
		r.propose(e, paramsSchema, inner)
	default:
		r.proposeFrom(e, paramsSchema, given, value, violations)
	}
	e.DidYouMean = Closest(e.DidYouMean)
	e.Message = fmt.Sprintf("Tool '%s' failed: %s", r.answer.Tool, plural(len(violations), "violation"))
	return e
}

// propose adds a corrected object and the call with it to an error, if a correction is certain.
func (r *run) propose(e *Error, paramsSchema *schema.Schema, object map[string]any) {
	coerced, _ := paramsSchema.Coerce(object)
	if violations, err := paramsSchema.Validate(coerced); err == nil {
		r.proposeFrom(e, paramsSchema, object, coerced, violations)
	}
}

// proposeFrom is propose for an object that has already been coerced and validated.
func (r *run) proposeFrom(e *Error, paramsSchema *schema.Schema, given, coerced any, violations []schema.Violation) {
	fixed, ok := r.correctParams(paramsSchema, coerced, violations)
	if !ok {
		return
	}
	fixed = dropDefaults(fixed, given, violations)
	if whole := jsontext.Marshal(fixed); len(whole) <= maxCorrected {
		e.Corrected = whole
		e.Retry = r.retry(whole)
	}
}

// retry returns the call with other parameters, on the same page of the same browser.
func (r *run) retry(params json.RawMessage) *Step {
	s := CallStep(r.answer.Tool, params).At(r.call.Options)
	return &s
}

// intendedObject returns the object that parameters of another type probably stand for: the only item of an array, or
// an object in a string of almost valid JSON. Otherwise it returns an empty object.
func intendedObject(value any) map[string]any {
	switch v := value.(type) {
	case []any:
		if len(v) == 1 {
			if object, ok := v[0].(map[string]any); ok {
				return object
			}
		}
	case string:
		if object, ok := repairObject(v); ok {
			return object
		}
	}
	return map[string]any{}
}

// onlyMember returns the object that is the only member of another one: parameters that are nested one level too deep.
// It returns nil if there is none.
func onlyMember(given any) map[string]any {
	object, _ := given.(map[string]any)
	if len(object) != 1 {
		return nil
	}
	for _, value := range object {
		inner, _ := value.(map[string]any)
		return inner
	}
	return nil
}

// isValid reports whether an object is valid after coercion.
func isValid(paramsSchema *schema.Schema, object map[string]any) bool {
	coerced, _ := paramsSchema.Coerce(object)
	violations, err := paramsSchema.Validate(coerced)
	return err == nil && len(violations) == 0
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
func detailOf(v schema.Violation) Detail {
	return Detail{
		Parameter: manifest.CleanLine(v.Pointer), Keyword: v.Keyword,
		Provided: manifest.CleanLine(v.Provided), Expected: manifest.CleanLine(v.Expected),
	}
}

// correctParams applies the corrections that are certain, and takes what is still invalid or missing from the tool's
// own examples. It reports whether the result is valid.
func (r *run) correctParams(paramsSchema *schema.Schema, value any, violations []schema.Violation) (any, bool) {
	fixed, ok := schema.Correct(value, violations)
	if !ok {
		fixed = value
	}
	left, err := paramsSchema.Validate(fixed)
	if err == nil && len(left) == 0 {
		return fixed, true
	}
	if err != nil {
		return nil, false
	}
	if filled, ok := r.fillFromExamples(paramsSchema, fixed, left); ok {
		return filled, true
	}
	object, isObject := fixed.(map[string]any)
	if !isObject {
		return nil, false
	}
	object = maps.Clone(object)
	for _, v := range left {
		name := property(v.Pointer)
		if v.Remove {
			delete(object, name)
		} else if sample, known := r.exampleValue("/" + jsontext.EscapeToken(name)); known {
			object[name] = sample
		}
	}
	again, err := paramsSchema.Validate(object)
	return object, err == nil && len(again) == 0
}

// fillFromExamples replaces only invalid and missing values by those of examples, at any depth.
func (r *run) fillFromExamples(paramsSchema *schema.Schema, value any, violations []schema.Violation) (any, bool) {
	sampled := slices.Clone(violations)
	for i, v := range sampled {
		if sample, known := r.exampleValue(v.Pointer); known && !v.Remove && v.Pointer != "" {
			sampled[i].Corrected = sample
		}
	}
	object, ok := schema.Correct(value, sampled)
	if !ok {
		return nil, false
	}
	again, err := paramsSchema.Validate(object)
	return object, err == nil && len(again) == 0
}

// exampleValue returns the value at a JSON pointer in the first example of the tool that has one.
func (r *run) exampleValue(pointer string) (any, bool) {
	for _, e := range r.address.Tool.Examples {
		if e.ExitCode != 0 {
			continue
		}
		value, err := jsontext.Decode(e.Params, jsontext.Limits{})
		for _, step := range strings.Split(pointer, "/")[1:] {
			object, _ := value.(map[string]any)
			value = object[jsontext.UnescapeToken(step)]
		}
		if err == nil && value != nil {
			return value, true
		}
	}
	return nil, false
}

// property returns the parameter that a JSON pointer begins with.
func property(pointer string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	return jsontext.UnescapeToken(name)
}

// dropDefaults removes the parameters that were not given and have no violation.
func dropDefaults(fixed, given any, violations []schema.Violation) any {
	object, ok := fixed.(map[string]any)
	named, isObject := given.(map[string]any)
	if !ok || !isObject {
		return fixed
	}
	wanted := map[string]bool{}
	for _, v := range violations {
		wanted[property(v.Pointer)], wanted[v.Rename] = true, true
	}
	remaining := map[string]any{}
	for name, value := range object {
		if _, was := named[name]; was || wanted[name] {
			remaining[name] = value
		}
	}
	return remaining
}

// distance is [schema.Distance], which ignores case, except that it is never 0 for different words.
func distance(given, name string) int {
	d := schema.Distance(given, name)
	if d > 0 || given == name {
		return d
	}
	a, b := []rune(given), []rune(name)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			d++
		}
	}
	return max(d, 1)
}

// wordOf returns the word that a violation is about: the name of an unknown property, or the value.
func wordOf(value any, v schema.Violation) string {
	steps := strings.Split(v.Pointer, "/")[1:]
	if v.Keyword == "additionalProperties" && len(steps) > 0 {
		return jsontext.UnescapeToken(steps[len(steps)-1])
	}
	for _, step := range steps {
		switch at := value.(type) {
		case map[string]any:
			value = at[jsontext.UnescapeToken(step)]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return ""
			}
			value = at[i]
		}
	}
	if text, ok := value.(string); ok {
		return text
	}
	return string(jsontext.Marshal(value))
}

// suggestion returns how to fix a violation, or nil if nothing is certain.
func suggestion(v schema.Violation) *Suggestion {
	switch {
	case v.Rename != "":
		return &Suggestion{v.Pointer, SuggestRename, manifest.CleanLine(v.Rename)}
	case len(v.DidYouMean) > 0:
		return &Suggestion{v.Pointer, SuggestChoose, manifest.CleanLine(strings.Join(v.DidYouMean, ", "))}
	case v.Remove:
		return &Suggestion{Pointer: v.Pointer, Op: SuggestRemove}
	case v.Keyword == "required" && strings.Count(v.Pointer, "/") == 1:
		return &Suggestion{Pointer: v.Pointer, Op: SuggestAdd}
	}
	return nil
}

// lastName returns the last reference token of a JSON pointer.
func lastName(pointer string) string {
	return jsontext.UnescapeToken(pointer[strings.LastIndexByte(pointer, '/')+1:])
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// refuse adds to a parameter error what helps to fix it: the next steps, and documentation of the tool that the session
// has not been shown yet: tier 2, then tier 3, then none.
func (r *run) refuse(e *Error) error {
	tool := r.address.Tool
	tier, why := manifest.Tier2, "first parameter error"
	r.host.cfg.Sessions.update(r.call.Session, func(s *session) bool {
		switch {
		case s.shown(r.answer.Tool, manifest.Tier3):
			tier = 0
			return false
		case s.shown(r.answer.Tool, manifest.Tier2):
			tier, why = manifest.Tier3, "parameter error after tier 2 was shown"
		}
		return s.recordShown(r.answer.Tool, tier)
	})
	if tier == 0 {
		r.host.cfg.Debug("docs: none of %s, this session was shown all", r.answer.Tool)
	} else if docs, err := r.address.describe(tool, tier); err == nil {
		e.Docs = docs
		r.tiers = append(r.tiers, tier)
		r.host.cfg.Debug("docs: tier %d of %s, %s", tier, r.answer.Tool, why)
	}
	if e.Retry == nil && len(e.Corrected) > 0 { // set by the caller, with Call.Invalid
		e.Retry = r.retry(e.Corrected)
	}
	if e.Retry != nil {
		e.Steps = append(e.Steps, *e.Retry)
	}
	e.Steps = append(e.Steps, DescribeStep(r.answer.Tool, 0))
	return e
}

// refuseByTool treats an invalid_args error of the tool itself like one of the host.
func (r *run) refuseByTool(e *Error) {
	if e.Code == InvalidArgs && e.Docs == nil && len(e.Details) > 0 {
		if e.Message == "" {
			e.Message = fmt.Sprintf("Tool '%s' failed: %s", r.answer.Tool, plural(len(e.Details), "violation"))
		}
		if given, err := jsontext.Decode(r.params, jsontext.Limits{Bytes: MaxParams}); err == nil {
			e.Marked = Mark(given, e.Details)
		}
		_ = r.refuse(e)
	}
}
