package advice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// violationError returns the error of parameters that do not match the schema: with every violation, and with the
// corrected parameters or a template of them.
func (p *Params) violationError(paramsSchema *schema.Schema, given any, violations []schema.Violation) *host.Error {
	e := &host.Error{Code: host.InvalidArgs}
	p.correct(e, paramsSchema, given)
	for _, v := range violations {
		d := DetailOf(v)
		if v.Pointer != "" && (v.Keyword == "type" || v.Keyword == "required") {
			d.Expected = expected(p.At.Tool, v.Pointer, d.Expected)
		}
		d.Suggestion = suggestion(v, e.Changes)
		e.Details = append(e.Details, d)
	}
	p.planMissing(e)
	e.Message = fmt.Sprintf("Tool '%s' failed: %s", p.Tool, manifest.Plural(len(violations), "violation"))
	return e
}

// planMissing adds a step to the error of an incomplete call if another tool returns a missing value. The step makes
// the calls that come before. It keeps the caller's other values, and leaves out the values that only the caller can
// choose.
func (p *Params) planMissing(e *host.Error) {
	if e.Template == nil || p.At.Tool == nil || p.At.Provider == nil {
		return
	}
	flow := p.At.FlowOf()
	missing := slices.ContainsFunc(e.Details, func(d host.Detail) bool {
		return d.Keyword == "required" && (len(flow.Needs) > 0 || slices.ContainsFunc(flow.Values,
			func(v manifest.Value) bool { return v.Required && jsontext.IsWithin(v.Pointer, d.Parameter) }))
	})
	if !missing {
		return
	}
	given, err := decodeParams(e.Template)
	if err != nil {
		return
	}
	next := step.Plan(p.Tool, nil)
	next.Choose = lists.Filter(takeHoles(given, ""), func(name string) bool { return !flow.Returns(name) })
	if len(given) > 0 {
		next.Params = jsontext.Marshal(given)
	}
	next.Options.DryRun = p.At.Tool.Effect == manifest.EffectDestructive
	e.Steps = append([]step.Step{next.At(p.Options.Place)}, e.Steps...)
}

// takeHoles removes the values with holes from an object, and objects that become empty. It returns the names of the
// removed values: "start.lineNumber" for a value in an inner object.
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

// repaired decodes a text that is almost valid JSON, and returns nil for any other.
func repaired(text string) any {
	if len(text) > maxRepaired {
		return nil
	}
	raw, _ := jsontext.Repair(text)
	value, _ := jsontext.Decode(raw, jsontext.Limits{})
	return value
}

// DetailOf returns a violation in the form that errors have.
func DetailOf(v schema.Violation) host.Detail {
	return host.Detail{
		Parameter: manifest.CleanLine(v.Pointer), Keyword: v.Keyword,
		Provided: manifest.CleanLine(v.Provided), Expected: manifest.CleanLine(v.Expected),
	}
}

// suggestion returns how to fix a violation, or nil if nothing is certain.
func suggestion(v schema.Violation, changes []schema.Change) *step.Suggestion {
	for _, c := range changes {
		switch {
		case c.From != v.Pointer || v.Pointer == "" || v.Keyword == "required":
		case c.How == schema.Renamed && c.From != c.To && c.From+"/0" != c.To:
			return &step.Suggestion{Pointer: v.Pointer, Op: step.SuggestRename,
				Value: manifest.CleanLine(jsontext.LastName(strings.TrimSuffix(c.To, "/0")))}
		case c.How == schema.Moved:
			return step.TextSuggestion("move it to " + manifest.CleanLine(c.To))
		case c.How == schema.Dropped && v.Keyword == "additionalProperties" && len(v.DidYouMean) == 0:
			return &step.Suggestion{Pointer: v.Pointer, Op: step.SuggestRemove}
		}
	}
	if v.Keyword == "additionalProperties" && slices.ContainsFunc(changes, func(c schema.Change) bool {
		return c.From != v.Pointer && jsontext.IsWithin(c.From, v.Pointer) || c.From == v.Pointer && c.How == schema.Parsed
	}) {
		return step.TextSuggestion("move what is in it one level up")
	}
	switch {
	case len(v.DidYouMean) > 0:
		return &step.Suggestion{Pointer: v.Pointer, Op: step.SuggestChoose,
			Value: manifest.CleanLine(strings.Join(v.DidYouMean, ", "))}
	case v.Keyword == "required" && slices.ContainsFunc(changes, func(c schema.Change) bool {
		return jsontext.IsWithin(c.To, v.Pointer)
	}):
		return nil // the correction fills it
	case v.Keyword == "required" && strings.Count(v.Pointer, "/") == 1:
		return &step.Suggestion{Pointer: v.Pointer, Op: step.SuggestAdd}
	}
	return nil
}

// brokenJSON is a text that was given as parameters and is not JSON.
type brokenJSON string

// correct adds to an error what invalid parameters were meant to be: the corrected call or, if that does not follow
// from what was given, a template. given is a decoded value or a [brokenJSON].
func (p *Params) correct(e *host.Error, paramsSchema *schema.Schema, given any) {
	var changes []schema.Change
	text, _ := given.(string)
	broken, isBroken := given.(brokenJSON)
	if object, ok := repaired(text + string(broken)).(map[string]any); ok {
		given, isBroken, changes = object, false, []schema.Change{{How: schema.Parsed}}
	} else if isBroken {
		given, changes = nil, []schema.Change{{How: schema.Dropped}}
	}
	var options step.Options // options that are moved out of the parameters
	if steps := p.asSteps(given); steps != nil {
		given = steps
		changes = append(changes, schema.Change{To: "/" + jsontext.EscapeToken(p.At.Tool.Steps), How: schema.Moved})
	} else if words := p.wordsMeant(given); words != nil {
		given, changes = words, append(changes, schema.Change{How: schema.Unwrapped})
	}
	if object, ok := given.(map[string]any); ok {
		var meant, moved []schema.Change
		object, meant = p.otherForm(object)
		given, moved = p.moveOptions(paramsSchema, object, &options)
		changes = append(append(changes, meant...), moved...)
	}
	c := paramsSchema.Correct(given, holeOf(p.At.Tool))
	whole := jsontext.Marshal(c.Value)
	changes = append(changes, c.Changes...)
	object, isObject := c.Value.(map[string]any)
	if !isObject || len(whole) > maxCorrected || len(changes) > schema.MaxChanges || isBroken && len(object) == 0 {
		return
	}
	e.Changes = changes
	if isBroken || !c.Complete {
		e.Template = whole
		return
	}
	e.Corrected = whole
	if steps := p.faultsOfSteps(whole); steps != nil {
		if e.Corrected = steps.Corrected; e.Corrected == nil { // it is not known what one of them means
			e.Template, e.Details = whole, append(e.Details, steps.Details...)
			return
		}
	}
	e.Retry = p.Retry(e.Corrected, options)
}

// faultsOfSteps returns the error of the steps among corrected parameters, or nil.
func (p *Params) faultsOfSteps(corrected json.RawMessage) *host.Error {
	if p.At.Tool == nil {
		return nil
	}
	again := *p
	again.Value = corrected
	if err := again.readSteps(); err != nil {
		return host.AsError(err)
	}
	return nil
}

// wordsMeant returns the parameters that a value, or a list of them, means as on a command line; nil if it means none.
func (p *Params) wordsMeant(given any) map[string]any {
	words, isList := given.([]any)
	if text, isText := given.(string); isText && !jsontext.LooksLikeJSON(text) {
		words, isList = []any{text}, true
	}
	isPart := func(word any) bool { _, isObject := word.(map[string]any); return isObject }
	if !isList || p.At.Provider == nil || slices.ContainsFunc(words, isPart) {
		return nil
	}
	all, _ := p.Names.Meant(p.Tool, map[string]any{}, words)
	if len(all) == 0 || all[0].Tool != p.Tool {
		return nil
	}
	return all[0].Params
}

// bareParams returns the parameters without other parts of a call: it removes the tool's own name, and unwraps a list
// of words.
func (p *Params) bareParams(given map[string]any) (bare map[string]any, changes []schema.Change) {
	bare = maps.Clone(given)
	unknown := func(key string) bool {
		known, _, _ := manifest.ParamNamed(p.At.Tool.Params, key)
		return known == ""
	}
	for _, key := range append([]string{"method"}, stepNames...) {
		if name, _ := given[key].(string); unknown(key) && (name == p.At.Tool.Name || name == p.Tool) {
			delete(bare, key)
			changes = append(changes, schema.Change{From: "/" + key, How: schema.Dropped})
		}
	}
	for _, key := range stepParams {
		if words := p.wordsMeant(given[key]); words != nil && len(bare) == 1 && unknown(key) {
			return words, append(changes, schema.Change{From: "/" + key, How: schema.Unwrapped})
		}
	}
	return bare, changes
}

// otherForm returns the parameters that are meant by another form of them: a form that the tool's manifest knows, or
// steps that are not a list.
func (p *Params) otherForm(given map[string]any) (map[string]any, []schema.Change) {
	if p.At.Provider == nil { // a tool of the MCP server itself
		return given, nil
	}
	table := p.Names.PeersOf(p.At.Provider)
	given, changes := p.bareParams(given)
	given, rewritten, _ := rewrite(table.FormsOf(p.At.Tool.Name), given, p.At.Tool.Params)
	changes = append(changes, rewritten...)
	steps := given[p.At.Tool.Steps]
	if _, isList := steps.([]any); isList || p.At.Tool.Steps == "" {
		return given, changes
	}
	if list := p.stepsMeant(steps); list != nil {
		given = maps.Clone(given)
		given[p.At.Tool.Steps] = list
		at := "/" + jsontext.EscapeToken(p.At.Tool.Steps)
		changes = append(changes, schema.Change{From: at, To: at, How: schema.Coerced})
	}
	return given, changes
}

// CorrectAgain corrects what else is wrong with the corrected parameters of an error, and adds the call with them.
func (p *Params) CorrectAgain(e *host.Error) {
	p.Given = e.Corrected
	if again := p.Check(); again != nil {
		e.Corrected, e.Template = again.Corrected, again.Template
		e.Details, e.Changes = append(e.Details, again.Details...), append(e.Changes, again.Changes...)
	}
	if len(e.Corrected) > 0 {
		e.Retry = p.Retry(e.Corrected, step.Options{})
	}
}

// Retry returns the call with other parameters, on the same page of the same browser, and with the options that the
// caller gave. The moved options, which were among the parameters, take precedence. For a destructive tool it is a dry
// run, which shows what would happen.
func (p *Params) Retry(params json.RawMessage, moved step.Options) *step.Step {
	s := step.Call(p.Tool, params).At(p.Options.Place)
	s.Options = over(moved, over(s.Options, p.GivenOptions))
	s.Options.DryRun = s.Options.DryRun || p.At.Tool != nil && p.At.Tool.Effect == manifest.EffectDestructive
	return &s
}

// over returns rest with the options of first that are set and may stand among parameters.
func over(first, rest step.Options) step.Options {
	rest.Browser, rest.Target = cmp.Or(first.Browser, rest.Browser), cmp.Or(first.Target, rest.Target)
	rest.Context, rest.JQ = cmp.Or(first.Context, rest.Context), cmp.Or(first.JQ, rest.JQ)
	rest.Wait, rest.OnDialog = cmp.Or(first.Wait, rest.Wait), cmp.Or(first.OnDialog, rest.OnDialog)
	rest.Timeout, rest.MaxBytes = cmp.Or(first.Timeout, rest.Timeout), cmp.Or(first.MaxBytes, rest.MaxBytes)
	rest.DryRun, rest.Unlimited = first.DryRun || rest.DryRun, first.Unlimited || rest.Unlimited
	return rest
}

// AddSuggestions gives the error of a provider its first step: the corrected call, if the provider has corrected the
// parameters, or for an invalid URL the documentation.
func (p *Params) AddSuggestions(e *host.Error) {
	if e.Corrected != nil {
		p.dropDefaults(e)
		if e.Retry == nil && e.Code != host.InvalidArgs { // for invalid_args, refuse adds the step
			e.Retry = p.Retry(e.Corrected, step.Options{})
			e.Steps = append([]step.Step{*e.Retry}, e.Steps...)
		}
	}
	if e.Code == host.InvalidURL && len(e.Steps) == 0 {
		e.Steps = []step.Step{step.Describe(p.Tool, 0)}
	}
}

// dropDefaults removes from the parameters that a provider corrected what the caller did not give: the provider sees
// the defaults of the schema, too.
func (p *Params) dropDefaults(e *host.Error) {
	var given, corrected, filled map[string]json.RawMessage
	if json.Unmarshal(e.Corrected, &corrected) != nil {
		return
	}
	var text string
	if json.Unmarshal(p.Given, &text) == nil { // an object in JSON text, which was coerced
		_ = json.Unmarshal([]byte(text), &given)
	} else {
		_ = json.Unmarshal(p.Given, &given)
	}
	_ = json.Unmarshal(p.Value, &filled)
	for name, value := range corrected {
		if _, was := given[name]; !was && SameJSON(value, filled[name]) {
			delete(corrected, name)
		}
	}
	e.Corrected, _ = manifest.Marshal(corrected)
}

// moveOptions moves options of the call that were given among the parameters, where they are unknown, to o. It returns
// the other parameters.
func (p *Params) moveOptions(
	paramsSchema *schema.Schema, given map[string]any, o *step.Options,
) (map[string]any, []schema.Change) {
	violations, err := paramsSchema.Validate(given)
	if err != nil {
		return given, nil
	}
	var changes []schema.Change
	for _, v := range violations {
		name := jsontext.LastName(v.Pointer)
		if v.Keyword != "additionalProperties" || strings.Count(v.Pointer, "/") != 1 || len(v.DidYouMean) > 0 {
			continue
		}
		if known, _, _ := manifest.ParamNamed(p.At.Tool.Params, name); known != "" { // a parameter's other name
			continue
		}
		own, _ := manifest.TypeAt(p.At.Tool.Params, "timeout")
		if own != "" && given["timeout"] == nil && strings.HasPrefix(strings.ToLower(name), "timeout") {
			continue
		}
		c := CorrectOptions(map[string]any{name: given[name]})
		moved, err := option.Parse(jsontext.Marshal(c.Value))
		meant := option.Named(name)
		if meant == "" || !c.Complete || err != nil {
			continue
		}
		if len(changes) == 0 {
			given = maps.Clone(given)
		}
		delete(given, name)
		*o = over(moved.StepOptions(), *o)
		changes = append(changes, schema.Change{From: v.Pointer, To: "options." + meant, How: schema.Moved})
	}
	return given, changes
}
