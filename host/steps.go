package host

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// maxSteps limits the steps of one call.
const maxSteps = 200

// stepForm is a step as a tool receives it.
type stepForm struct {
	Tool   string          `json:"tool"`
	Params json.RawMessage `json:"params"`
}

// readSteps reads the steps that a parameter of the tool lists: calls of other tools of the plugin, as [NAME, WORD,
// ...] or {"tool", "params"}. Each is validated as a call of its tool, and the tool receives all in the second form.
func (r *run) readSteps() error {
	name := r.address.Tool.Steps
	if name == "" {
		return nil
	}
	params, err := jsontext.Decode(r.params, jsontext.Limits{Bytes: MaxParams})
	if err != nil {
		return syntaxError(err, r.params)
	}
	object := params.(map[string]any)
	list, _ := object[name].([]any)
	if len(list) > maxSteps {
		return Errorf(LimitExceeded, "%s has %d steps, the limit is %d", r.answer.Tool, len(list), maxSteps)
	}
	forms := make([]stepForm, len(list))
	var wrong []Detail
	for i, given := range list {
		at := fmt.Sprintf("/%s/%d", jsontext.EscapeToken(name), i)
		step, details, err := r.readStep(at, given)
		if err != nil {
			return err
		}
		if wrong = append(wrong, details...); len(details) > 0 {
			continue
		}
		r.steps = append(r.steps, step)
		forms[i] = stepForm{step.address.Tool.Name, step.params}
	}
	if len(wrong) > 0 {
		e := Errorf(InvalidArgs, "Tool '%s' failed: %s in its steps", r.answer.Tool, plural(len(wrong), "violation"))
		e.Details = wrong
		return r.refuse(e)
	}
	object[name] = forms
	r.params, err = manifest.Marshal(object)
	return err
}

// readStep reads one step, whose pointer is at. Details are what is wrong with it.
func (r *run) readStep(at string, given any) (*run, []Detail, error) {
	wrong := func(pointer, provided, expected string) (*run, []Detail, error) {
		return nil, []Detail{{Parameter: pointer, Keyword: "steps", Provided: provided, Expected: expected}}, nil
	}
	var tool string
	var words []any
	var params any = map[string]any{}
	switch v := given.(type) {
	case []any:
		if len(v) > 0 {
			tool, _ = v[0].(string)
			words = v[1:]
		}
	case map[string]any:
		tool, _ = v["tool"].(string)
		if v["params"] != nil {
			params = v["params"]
		}
		for key := range v {
			if key != "tool" && key != "params" {
				return wrong(at+"/"+jsontext.EscapeToken(key), "a member", "tool and params")
			}
		}
	}
	a, err := r.host.Catalog().FindIn(r.address.Plugin, tool)
	if tool == "" || err != nil || a.Tool == nil || a.Tool.Steps != "" {
		return wrong(at, manifest.Clip(manifest.CleanLine(string(jsontext.Marshal(given))), 80),
			`["click", "Sign in"] or {"tool": "click", "params": {..}}, of a tool of `+r.address.Plugin)
	}
	if object, ok := params.(map[string]any); ok && len(words) > 0 {
		if len(words) > len(a.Tool.Positional) {
			last := ""
			if n := len(a.Tool.Positional); n > 0 {
				last, _ = manifest.TypeAt(a.Tool.Params, a.Tool.Positional[n-1])
			}
			if last != "array" {
				return wrong(at, plural(len(words), "word"), "at most "+plural(len(a.Tool.Positional), "word"))
			}
		}
		for i, word := range words {
			n := min(i, len(a.Tool.Positional)-1)
			parameter := a.Tool.Positional[n]
			if kind, _ := manifest.TypeAt(a.Tool.Params, parameter); kind != "array" {
				object[parameter] = word
			} else if list, ok := object[parameter].([]any); ok {
				object[parameter] = append(list, word)
			} else {
				object[parameter] = []any{word}
			}
		}
	}
	step := &run{host: r.host, mode: r.mode, origin: r.origin, call: r.call, answer: &Answer{Tool: a.Name()}, address: a,
		redactor: r.redactor, innerCalls: r.innerCalls, handed: r.handed}
	step.call.Name, step.call.Params = a.Name(), jsontext.Marshal(params)
	paramsSchema, err := a.schemaOf(a.Tool.Params, "params")
	if err != nil {
		return nil, nil, err
	}
	step.params = step.call.Params
	if paramsSchema != nil {
		if err := step.validateValue(paramsSchema, params); err != nil {
			e := AsError(err)
			if e.Code != InvalidArgs {
				return nil, nil, e
			}
			for i := range e.Details {
				e.Details[i].Parameter = at + "/params" + e.Details[i].Parameter
			}
			return nil, e.Details, nil
		}
	}
	r.answer.Warnings = append(r.answer.Warnings, step.answer.Warnings...)
	return step, nil, nil
}

// decideSteps asks the policy about each step, as about a call of its tool by each caller. A step that is denied denies
// the call; one that requires confirmation makes the whole call require it.
func (r *run) decideSteps(ctx context.Context, d *Decision) error {
	for i, step := range r.steps {
		err := step.checkEffect()
		own := Decision{}
		if err == nil {
			_, own, err = step.consult(ctx, nil)
		}
		if err == nil && severity(step.effect()) > severity(r.effect()) {
			err = Errorf(Denied, "%s has the effect %s, and %s only %s; nothing was run", step.answer.Tool, step.effect(),
				r.answer.Tool, r.effect())
		}
		if err == nil {
			err = step.confine(own)
		}
		if err != nil {
			e := *AsError(err)
			e.Message = fmt.Sprintf("step %d: %s", i+1, e.Message)
			return &e
		}
		if own.Verdict == Confirm && d.Verdict == Allow {
			d.Verdict, d.Steps = Confirm, own.Steps
			d.Reason = fmt.Sprintf("step %d, %s: %s", i+1, step.answer.Tool, own.Reason)
		}
	}
	return nil
}

// confineSteps puts the parameters of the steps, as their tools may use them, into those of the call.
func (r *run) confineSteps() error {
	if len(r.steps) == 0 {
		return nil
	}
	params := map[string]json.RawMessage{}
	if err := json.Unmarshal(r.params, &params); err != nil {
		return err
	}
	forms := make([]stepForm, len(r.steps))
	for i, step := range r.steps {
		forms[i] = stepForm{step.address.Tool.Name, step.params}
		if step.confined != nil {
			forms[i].Params = step.confined
		}
	}
	raw, err := manifest.Marshal(forms)
	if err == nil {
		params[r.address.Tool.Steps] = raw
		r.confined, err = manifest.Marshal(params)
	}
	return err
}
