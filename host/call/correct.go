package call

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// brokenJSON is a text in the place of parameters that is not JSON.
type brokenJSON string

// correct adds to an error what invalid parameters were meant to be: the corrected call or, where that does not follow
// from what was given, a template. Given is a decoded value or a [brokenJSON].
func (r *run) correct(e *host.Error, paramsSchema *schema.Schema, given any) {
	var changes []host.Change
	text, _ := given.(string)
	broken, isBroken := given.(brokenJSON)
	if object, ok := repairObject(text + string(broken)); ok {
		given, isBroken, changes = object, false, []host.Change{{How: schema.Parsed}}
	} else if isBroken {
		given, changes = nil, []host.Change{{How: schema.Dropped}}
	}
	options := r.call.Options
	if words := wordsMeant(r, given); words != nil {
		given, changes = words, append(changes, host.Change{How: schema.Unwrapped})
	}
	if object, ok := given.(map[string]any); ok {
		var meant, moved []host.Change
		object, meant = r.otherForm(object)
		given, moved = r.moveOptions(paramsSchema, object, &options)
		changes = append(append(changes, meant...), moved...)
	}
	c := paramsSchema.Correct(given, r.address.Hole)
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
	e.Retry = r.retry(whole, options)
}

// wordsMeant returns the parameters that a list of values means, as on a command line; nil if it means none.
func wordsMeant(r *run, given any) map[string]any {
	words, isList := given.([]any)
	isPart := func(word any) bool { _, isObject := word.(map[string]any); return isObject }
	if !isList || r.address.Provider == nil || slices.ContainsFunc(words, isPart) {
		return nil
	}
	all, _ := r.host.Catalog().Meant(r.answer.Tool, map[string]any{}, words)
	if len(all) == 0 || all[0].Tool != r.answer.Tool {
		return nil
	}
	return all[0].Params
}

// bareParams returns the parameters without what else a call has: the tool's own name, and the list of words that they
// are in.
func bareParams(r *run, given map[string]any) (bare map[string]any, changes []host.Change) {
	bare = maps.Clone(given)
	unknown := func(key string) bool {
		known, _, _ := manifest.ParamNamed(r.address.Tool.Params, key)
		return known == ""
	}
	for _, key := range append([]string{"method"}, stepNames...) {
		if name, _ := given[key].(string); unknown(key) && (name == r.address.Tool.Name || name == r.answer.Tool) {
			delete(bare, key)
			changes = append(changes, host.Change{From: "/" + key, How: schema.Dropped})
		}
	}
	for _, key := range stepParams {
		if words := wordsMeant(r, given[key]); words != nil && len(bare) == 1 && unknown(key) {
			return words, append(changes, host.Change{From: "/" + key, How: schema.Unwrapped})
		}
	}
	return bare, changes
}

// otherForm returns the parameters that another form of a tool's own means: one that its manifest knows, or steps that
// are not a list.
func (r *run) otherForm(given map[string]any) (map[string]any, []host.Change) {
	if r.address.Provider == nil { // a tool of the MCP server itself
		return given, nil
	}
	forms := r.host.Catalog().PeersOf(r.address.Provider).Forms
	given, changes := bareParams(r, given)
	given, rewritten, _ := host.Rewrite(forms[r.address.Tool.Name], given, r.address.Tool.Params)
	changes = append(changes, rewritten...)
	if list := r.listOfSteps(given[r.address.Tool.Steps]); list != nil {
		given = maps.Clone(given)
		given[r.address.Tool.Steps] = list
		at := "/" + jsontext.EscapeToken(r.address.Tool.Steps)
		changes = append(changes, host.Change{From: at, To: at, How: schema.Coerced})
	}
	return given, changes
}

// retry returns the call with other parameters, on the same page of the same browser, and with the options that the
// caller gave; those of the correction, such as a timeout that was among the parameters, come first. For a destructive
// tool it is a dry run, which shows what would happen.
func (r *run) retry(params json.RawMessage, o host.Options) *host.Step {
	s := host.CallStep(r.answer.Tool, params).At(o)
	kept := r.call.Given
	kept.Browser, kept.Target = cmp.Or(s.Options.Browser, kept.Browser), cmp.Or(s.Options.Target, kept.Target)
	kept.DryRun = kept.DryRun || o.DryRun || r.address.Tool != nil && r.address.Tool.Effect == manifest.EffectDestructive
	if o.Timeout != r.call.Options.Timeout {
		kept.Timeout = o.Timeout
	}
	s.Options = kept
	return &s
}

// CheckCall validates the parameters of a call as [Host.Call] does, without making or recording it. The error is nil if
// they are valid.
func (h *Host) CheckCall(c host.Call) *host.Error {
	r := &run{host: h, call: c, answer: &host.Answer{}, redactor: &redact.Redactor{Source: h.cfg.Secrets}}
	r.call.Principal.Session = host.Session{}
	err := r.find(context.Background())
	if err == nil {
		err = r.checkParams()
	}
	if err == nil {
		err = r.readSteps()
	}
	if err != nil {
		return host.AsError(err)
	}
	return nil
}

// addSuggestions gives the error of a provider its first step: the corrected call, if the provider has corrected the
// parameters, or for an invalid URL the documentation.
func (r *run) addSuggestions(e *host.Error) {
	if e.Corrected != nil {
		r.dropDefaults(e)
		if e.Retry == nil && e.Code != host.InvalidArgs { // of those, refuse adds the step
			e.Retry = r.retry(e.Corrected, r.call.Options)
			e.Steps = append([]host.Step{*e.Retry}, e.Steps...)
		}
	}
	if e.Code == host.InvalidURL && len(e.Steps) == 0 {
		e.Steps = []host.Step{host.DescribeStep(r.answer.Tool, 0)}
	}
}

// dropDefaults removes from the parameters that a provider corrected what the caller did not give: the provider sees
// the defaults of the schema, too.
func (r *run) dropDefaults(e *host.Error) {
	var given, corrected, filled map[string]json.RawMessage
	if json.Unmarshal(e.Corrected, &corrected) != nil {
		return
	}
	var text string
	if json.Unmarshal(r.call.Params, &text) == nil { // an object in JSON text, which was coerced
		_ = json.Unmarshal([]byte(text), &given)
	} else {
		_ = json.Unmarshal(r.call.Params, &given)
	}
	_ = json.Unmarshal(r.params, &filled)
	for name, value := range corrected {
		if _, was := given[name]; !was && sameJSON(value, filled[name]) {
			delete(corrected, name)
		}
	}
	e.Corrected, _ = manifest.Marshal(corrected)
}

// moveOptions moves options of the call that are among its parameters, and unknown there, to the options. It returns
// the other parameters.
func (r *run) moveOptions(
	paramsSchema *schema.Schema, given map[string]any, o *host.Options,
) (map[string]any, []host.Change) {
	violations, err := paramsSchema.Validate(given)
	if err != nil {
		return given, nil
	}
	var changes []host.Change
	for _, v := range violations {
		name := host.LastName(v.Pointer)
		if v.Keyword != "additionalProperties" || strings.Count(v.Pointer, "/") != 1 || len(v.DidYouMean) > 0 {
			continue
		}
		if known, _, _ := manifest.ParamNamed(r.address.Tool.Params, name); known != "" { // by another name
			continue
		}
		own, _ := manifest.TypeAt(r.address.Tool.Params, "timeout")
		if own != "" && given["timeout"] == nil && strings.HasPrefix(strings.ToLower(name), "timeout") {
			continue
		}
		c := CorrectOptions(map[string]any{name: given[name]})
		moved, err := host.ParseOptions(jsontext.Marshal(c.Value))
		option := host.OptionNamed(name)
		if option == "" || !c.Complete || err != nil {
			continue
		}
		if len(changes) == 0 {
			given = maps.Clone(given)
		}
		delete(given, name)
		o.Timeout, o.DryRun = cmp.Or(moved.Timeout, o.Timeout), o.DryRun || moved.DryRun
		o.Browser, o.Target = cmp.Or(moved.Browser, o.Browser), cmp.Or(moved.Target, o.Target)
		changes = append(changes, host.Change{From: v.Pointer, To: "options." + option, How: schema.Moved})
	}
	return given, changes
}

// durationText returns a number in the place of a duration as a duration: in the unit that the name of the option says.
// Without one it is of milliseconds where it is too large for seconds; what else it may be is not known.
func durationText(name string, number json.Number) string {
	n, err := number.Float64()
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, "ms"), err == nil && !strings.Contains(name, "sec") && n >= 1000:
		return number.String() + "ms"
	case strings.Contains(name, "sec"):
		return number.String() + "s"
	}
	return ""
}
