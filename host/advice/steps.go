package advice

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// maxSteps limits the steps of one call.
const maxSteps = 200

// StepForm is a step as a tool receives it.
type StepForm struct {
	Tool   string          `json:"tool"`
	Params json.RawMessage `json:"params"`
}

// readSteps reads the steps that a parameter of the tool lists: calls of other tools of the plugin, in one of the
// forms of [Params.splitStep]. Each is validated as a call of its tool, and the tool receives all as [StepForm].
func (p *Params) readSteps() error {
	name := p.At.Tool.Steps
	if name == "" {
		return nil
	}
	params, err := jsontext.Decode(p.Value, jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		return SyntaxError(err, p.Value)
	}
	object := params.(map[string]any)
	list, _ := object[name].([]any)
	if len(list) > maxSteps {
		return host.Errorf(host.LimitExceeded, "%s has %d steps, the limit is %d", p.Tool, len(list), maxSteps)
	}
	forms, wrong, err := p.readList(name, list)
	if err != nil {
		return err
	}
	object[name] = forms
	if len(wrong) > 0 {
		e := host.Errorf(host.InvalidArgs, "Tool '%s' failed: %s in its steps", p.Tool,
			manifest.Plural(len(wrong), "violation"))
		e.Details = wrong
		if meant, wrong, err := p.readList(name, p.stepsMeant(list)); err == nil && len(wrong) == 0 && len(meant) > 0 {
			object[name], forms = meant, meant
		}
		if forms != nil {
			e.Corrected, _ = manifest.Marshal(object)
		}
		return e
	}
	p.Value, err = manifest.Marshal(object)
	return err
}

// readList reads the steps of the parameter with this name. forms is nil unless it is known what each step was meant
// to be.
func (p *Params) readList(name string, list []any) (forms []StepForm, wrong []host.Detail, err error) {
	forms, known := make([]StepForm, len(list)), true
	p.Steps = nil
	for i, given := range list {
		step, details, err := p.readStep(fmt.Sprintf("/%s/%d", jsontext.EscapeToken(name), i), given)
		if err != nil {
			return nil, nil, err
		}
		if wrong = append(wrong, details...); step == nil || step.Value == nil {
			known = false
			continue
		}
		p.Steps = append(p.Steps, step)
		forms[i] = StepForm{step.At.Tool.Name, step.Value}
	}
	if !known {
		forms = nil
	}
	return forms, wrong, nil
}

// readStep reads one step. at is its JSON pointer. The details are what is wrong with it.
func (p *Params) readStep(at string, given any) (*Params, []host.Detail, error) {
	wrong := func(pointer string, provided any, expected string) (*Params, []host.Detail, error) {
		text := manifest.Clip(manifest.CleanLine(string(jsontext.Marshal(provided))), 80)
		return nil, []host.Detail{{Parameter: pointer, Keyword: "steps", Provided: text, Expected: expected}}, nil
	}
	tool, params, words := p.splitStep(given)
	a, err := p.Names.catalog.FindIn(p.At.Plugin, tool)
	isOwn := tool != "" && err == nil && a.Tool != nil
	var details []host.Detail
	if object, ok := params.(map[string]any); ok && !isOwn { // perhaps of another product: the error offers what it means
		if all, _ := p.Names.Meant(tool, object, words); len(all) > 0 && all[0].File == "" {
			a, _ = p.Names.catalog.Find(all[0].Tool)
			isOwn, params, words = a.Plugin == p.At.Plugin, all[0].Params, nil
			_, details, _ = wrong(at, given, a.Tool.Name)
		}
	}
	if !isOwn || a.Tool.Steps != "" {
		return wrong(at, given, `["click", "Sign in"] or {"tool": "click", "params": {..}}, of a tool of `+p.At.Plugin)
	}
	if p.Names.Conflicts(a, words) {
		return wrong(at, given, "parameters by name: these words mean something else in other tools")
	}
	if object, ok := params.(map[string]any); ok {
		own := ruleOf(a)
		if object, ok = own.WithWords(object, words); !ok {
			return wrong(at, words, "at most "+manifest.Plural(len(a.Tool.Positional), "word"))
		}
		params = object
	}
	step := &Params{Names: p.Names, At: a, Tool: a.Name(), Given: jsontext.Marshal(params), Options: p.Options,
		GivenOptions: p.GivenOptions}
	paramsSchema, err := a.SchemaOf(a.Tool.Params, "params")
	if err != nil {
		return nil, nil, err
	}
	step.Value = step.Given
	if paramsSchema != nil {
		if err := step.validate(paramsSchema, params); err != nil {
			e := host.AsError(err)
			if e.Code != host.InvalidArgs && e.Code != host.InvalidURL {
				return nil, nil, e
			}
			for i := range e.Details {
				e.Details[i].Parameter = at + "/params" + e.Details[i].Parameter
			}
			step.Value = e.Corrected
			return step, append(details, e.Details...), nil
		}
	}
	p.Warnings = append(p.Warnings, step.Warnings...)
	return step, details, nil
}

// The members that name the tool of a step, and those that hold its parameters.
var (
	stepNames  = []string{"tool", "action", "name", "command", "type", "step"}
	stepParams = []string{"params", "arguments", "args", "parameters"}
)

// isStep reports whether a name can be the tool of a step: it is a tool of the plugin, or known from another product.
func (p *Params) isStep(name string) bool {
	if name == "" {
		return false
	}
	at, err := p.Names.catalog.FindIn(p.At.Plugin, name)
	if err == nil && at.Tool != nil {
		return at.Tool.Steps == ""
	}
	return p.Names.Knows(name)
}

// splitStep reads one step: ["click", "Save"], also with parameters as the last word; "click Save"; {"click": "Save"}
// or {"click": {..}}; {"tool": "click", "params": {..}}, also by the other names of both members, or with the
// parameters beside the name.
func (p *Params) splitStep(given any) (tool string, params any, words []any) {
	params = map[string]any{}
	switch v := given.(type) {
	case string:
		name, rest, _ := strings.Cut(strings.TrimSpace(v), " ")
		a, err := p.Names.catalog.FindIn(p.At.Plugin, name)
		if err == nil && a.Tool != nil {
			words = wordsOfStep(rest, len(a.Tool.Positional))
		}
		return name, params, words
	case []any:
		if len(v) == 0 {
			return "", params, nil
		}
		tool, _ = v[0].(string)
		words = v[1:]
		if last, ok := v[len(v)-1].(map[string]any); ok && len(words) > 0 {
			params, words = maps.Clone(last), words[:len(words)-1]
		}
	case map[string]any:
		rest := maps.Clone(v)
		params = rest
		for _, key := range stepNames {
			if name, _ := v[key].(string); p.isStep(name) {
				delete(rest, key)
				params, words = stepArguments(rest)
				return name, params, words
			}
		}
		for name, inner := range v {
			if list, isList := inner.([]any); isList && len(v) == 1 && p.isStep(name) {
				return p.splitStep(append([]any{name}, list...))
			} else if len(v) == 1 && p.isStep(name) {
				return p.splitStep([]any{name, inner})
			}
		}
	}
	return tool, params, words
}

// stepArguments takes the parameters, or the words, out of the member of a step that holds them.
func stepArguments(rest map[string]any) (params any, words []any) {
	for _, key := range stepParams {
		switch inner := rest[key].(type) {
		case map[string]any:
			delete(rest, key)
			for name, value := range inner {
				if _, twice := rest[name]; twice {
					rest[key] = inner // nothing is lost: the name is refused
				} else {
					rest[name] = value
				}
			}
			return rest, nil
		case []any:
			delete(rest, key)
			return rest, inner
		case nil:
		default:
			if len(rest) == 1 {
				return inner, nil
			}
		}
	}
	return rest, nil
}

// stepsMeant returns the list that steps in another form mean: one step, the words of one, several as lines of a text,
// or JSON in a text, which may also be an item of a list. It returns nil if the meaning of one of them is not known.
func (p *Params) stepsMeant(given any) (list []any) {
	isStep := func(step any) bool {
		name, _, _ := p.splitStep(step)
		return p.isStep(name)
	}
	switch given := given.(type) {
	case map[string]any:
		list = []any{given}
	case string:
		if jsontext.LooksLikeJSON(given) && len(given) <= maxRepaired {
			return p.stepsMeant(repaired(given))
		}
		for _, line := range strings.FieldsFunc(given, func(c rune) bool { return c == '\n' || c == ';' }) {
			list = append(list, line)
		}
	case []any:
		if isStep(given) {
			return []any{given}
		}
		for _, item := range given {
			if text, _ := item.(string); jsontext.LooksLikeJSON(text) {
				list = append(list, p.stepsMeant(text)...)
			} else {
				list = append(list, item)
			}
		}
	}
	if len(list) > maxSteps || slices.ContainsFunc(list, func(step any) bool { return !isStep(step) }) {
		return nil
	}
	return list
}

// asSteps returns the parameters of a tool with steps if the steps were given instead of the parameters. An object may
// have parameters of the tool beside a step. It returns nil if no steps are given.
func (p *Params) asSteps(given any) map[string]any {
	if p.At.Tool == nil || p.At.Tool.Steps == "" {
		return nil
	}
	params := map[string]any{}
	if object, ok := given.(map[string]any); ok {
		step := maps.Clone(object)
		for key, value := range object {
			if known, _, _ := manifest.ParamNamed(p.At.Tool.Params, key); known != "" {
				params[key] = value
				delete(step, key)
			}
		}
		given = step
	}
	list := p.stepsMeant(given)
	if _, twice := params[p.At.Tool.Steps]; twice || len(list) == 0 {
		return nil
	}
	params[p.At.Tool.Steps] = list
	return params
}

// wordsOfStep splits the text after the name of a step into n words, which quotation marks may hold together. If n is
// 1, the whole text is the word.
func wordsOfStep(text string, n int) (words []any) {
	text = strings.TrimSpace(text)
	for text != "" {
		word, rest := text, ""
		if quote := text[:1]; strings.Contains("\"'", quote) && strings.Contains(text[1:], quote) {
			word, rest, _ = strings.Cut(text[1:], quote)
		} else if n > 1 {
			word, rest, _ = strings.Cut(text, " ")
		}
		words, text = append(words, word), strings.TrimSpace(rest)
	}
	return words
}
