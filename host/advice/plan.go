package advice

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// Plan is the shortest chain of calls that ends with a call of a tool, as the lines of a batch.
type Plan struct {
	Tool  string     `json:"tool"`
	Calls []PlanCall `json:"calls"`
	// Chosen are values that the plan chose, such as the element, script or query with which a call gets a value for a
	// later one. A parameter of the same name among the planned parameters replaces the value.
	Chosen []Chosen `json:"chosen,omitempty"`
	Holes  []string `json:"holes,omitempty"` // the values that the caller has to choose: "<url: string, ...>"
	// Estimate is what the calls took before; nil if nothing is known.
	Estimate *Estimate `json:"estimate,omitempty"`

	Step   step.Step `json:"-"` // runs the plan
	Effect string    `json:"-"` // effect of the tool
}

// Estimate is what the calls of a plan probably take: sums of the medians of earlier successful calls of their tools.
type Estimate struct {
	Calls   int      `json:"calls"`
	MS      float64  `json:"ms"`
	Tokens  int      `json:"tokens"`            // tokens of the calls and their results
	Of      int      `json:"of"`                // number of earlier calls that it is based on
	Unknown []string `json:"unknown,omitempty"` // tools without earlier calls, which the sums leave out
}

func (e *Estimate) String() string {
	text := fmt.Sprintf("%s, about %s and %d tokens, by %s before", manifest.Plural(e.Calls, "call"),
		time.Duration(e.MS*float64(time.Millisecond)).Round(time.Millisecond), e.Tokens, manifest.Plural(e.Of, "call"))
	if len(e.Unknown) > 0 {
		text += ", without " + strings.Join(e.Unknown, ", ") + ", which were never called"
	}
	return text
}

// SetEstimate estimates a plan from what calls of its tools took.
func (p *Plan) SetEstimate(costs func(tools []string) map[string]host.Cost) {
	known := costs(lists.Map(p.Calls, func(c PlanCall) string { return c.Tool }))
	e := &Estimate{Calls: len(p.Calls)}
	for _, c := range p.Calls {
		cost, ok := known[c.Tool]
		if !ok && !slices.Contains(e.Unknown, c.Tool) {
			e.Unknown = append(e.Unknown, c.Tool)
		}
		e.MS += cost.MS
		e.Tokens += manifest.Tokens(c.Tool+string(c.Params)) + cost.Tokens
	}
	for _, cost := range known {
		e.Of += cost.Calls
	}
	p.Estimate = e
}

// Chosen is a parameter of a call whose value the plan chose.
type Chosen struct {
	Call      int             `json:"call"`
	Parameter string          `json:"parameter"`
	Value     json.RawMessage `json:"value"`
}

func (c Chosen) String() string {
	return fmt.Sprintf("%s %s in call %d", c.Parameter, manifest.EscapeJSON(c.Value), c.Call)
}

// Guesses reports whether the plan may destroy something that nobody named: its tool is destructive, and a value of
// its call is a result of another one.
func (p *Plan) Guesses() bool {
	return p.Effect == manifest.EffectDestructive && bytes.Contains(p.Calls[len(p.Calls)-1].Params, []byte(`"${`))
}

// PlanCall is one call of a plan. "${2.nodeId}" in its parameters is a part of the result of call 2.
type PlanCall struct {
	ID      int             `json:"id"`
	Tool    string          `json:"tool"`
	Params  json.RawMessage `json:"params,omitempty"`
	Options *PlanOptions    `json:"options,omitempty"`
}

// PlanOptions are the options of a call of a plan.
type PlanOptions struct {
	JQ    string `json:"jq,omitempty"`    // filters the result
	Until string `json:"until,omitempty"` // the event to wait for
	step.Place
}

// PlanQuery says what to plan, and for whom.
type PlanQuery struct {
	Tool      string          // qualified
	Params    json.RawMessage // known parameters
	Principal caller.Principal
	Place     step.Place // where all calls act
	Example   int        // which example of the tool to plan, instead of a call with Params; from 1
	Estimate  bool       // whether to look up what the calls took before
}

// maxPlan bounds the calls of a plan, and how deep the calls before a call may go.
const maxPlan = 50

// PlanOf returns the calls that lead to a call of a tool with parameters. Only parameters that no other tool returns
// have to be given. A parameter that the tool does not have replaces the value of the same name that the plan would
// choose for an earlier call. PlanOf makes no call. The plan begins with a call that opens a page if the session has
// none. The error is not_found for a tool that does not exist, or invalid_args for parameters that would be invalid
// even with the missing ones.
func PlanOf(ctx context.Context, catalog *host.Catalog, q PlanQuery) (*Plan, error) {
	at, err := catalog.Find(q.Tool)
	if err != nil {
		return nil, err
	}
	if at.Tool == nil {
		return nil, notCallable(at)
	}
	p := &planner{catalog: catalog, made: map[string]int{}, own: at.Provider.Info().Name,
		plan: &Plan{Tool: at.Name(), Step: step.Plan(at.Name(), q.Params), Effect: at.Tool.Effect},
	}
	if q.Example != 0 {
		p.plan.Step.Args = []string{strconv.Itoa(q.Example)}
	}
	place := q.Place
	if place.Browser == step.DefaultBrowser {
		place.Browser = ""
	}
	p.options.Browser, p.options.Context = place.Browser, place.Context // a call that opens a page is in no page
	if missing := at.Provider.Features().MissingPage; missing != nil {
		q.Place.Browser = cmp.Or(q.Place.Browser, step.DefaultBrowser)
		step := missing(ctx, &job.Job{Tool: at.Tool.Name, Caller: q.Principal.Name, Session: q.Principal.Session,
			Options: job.Options{Place: q.Place}})
		if step != nil {
			if _, err := p.call(manifest.FlowCall{Tool: step.Tool, Params: step.Params}, step.Choose, nil); err != nil {
				return nil, err
			}
		}
	}
	p.options.Place = place
	if q.Example != 0 {
		return p.plan, p.example(at.Tool, q)
	}
	own, err := p.setAside(at, q.Params)
	if err != nil {
		return nil, err
	}
	if _, err = p.call(manifest.FlowCall{Tool: at.Name(), Params: own}, nil, nil); err != nil {
		return nil, err
	}
	if len(p.taken) < len(p.instead) {
		return nil, p.refused
	}
	return p.plan, nil
}

// example adds an example of a tool, with the calls before it.
func (p *planner) example(t *manifest.Tool, q PlanQuery) error {
	if given := string(q.Params); q.Example < 1 || q.Example > len(t.Examples) || given != "" && given != "{}" {
		return host.Errorf(host.InvalidArgs, "%s has %d examples with parameters of their own: give the number of one, "+
			"and no parameters", p.plan.Tool, len(t.Examples)).WithSteps(step.Describe(p.plan.Tool, manifest.Tier3))
	}
	e := t.Examples[q.Example-1]
	for i := range p.plan.Calls { // these open a page; the example refers to its own calls by their numbers
		p.plan.Calls[i].ID += len(e.Before) + 1
	}
	for i, line := range append(slices.Clip(e.Before), manifest.BatchLine{Tool: p.plan.Tool, Params: e.Params}) {
		call, options := PlanCall{ID: i + 1, Tool: line.Tool, Params: line.Params}, p.options
		if err := json.Unmarshal([]byte(cmp.Or(string(line.Options), "{}")), &options); err != nil {
			return err
		}
		if options != (PlanOptions{}) {
			call.Options = &options
		}
		p.plan.Calls = append(p.plan.Calls, call)
	}
	return nil
}

// setAside returns the parameters without those that the tool does not have, which may be for a call before it.
func (p *planner) setAside(at host.Address, params json.RawMessage) (json.RawMessage, error) {
	paramsSchema, err := at.SchemaOf(at.Tool.Params, "params")
	if err != nil || paramsSchema == nil || len(params) == 0 {
		return params, nil
	}
	if p.refused = checkGiven(at.Name(), paramsSchema, params); p.refused == nil {
		return params, nil
	}
	own, err := decodeParams(params)
	if err != nil {
		return nil, err
	}
	p.instead, p.taken = map[string]any{}, map[string]bool{}
	for _, d := range p.refused.Details {
		name := jsontext.UnescapeToken(strings.TrimPrefix(d.Parameter, "/"))
		value, given := own[name]
		switch {
		case d.Keyword == "required":
		case d.Keyword != "additionalProperties" || !given:
			return nil, p.refused
		default:
			p.instead[name] = value
			delete(own, name)
		}
	}
	return jsontext.Marshal(own), nil
}

// BeforeExample returns the calls that an example needs before it, and its parameters with a reference to their
// results in the place of every value that another tool returns. own is what the example needs besides what its tool
// needs; its values replace the tool's.
func BeforeExample(catalog *host.Catalog, tool string, params json.RawMessage, own manifest.Flow) (before []PlanCall,
	with json.RawMessage, err error) {
	plugin, _, _ := strings.Cut(tool, ".")
	p := &planner{catalog: catalog, plan: &Plan{Tool: tool}, own: plugin, made: map[string]int{}, replace: true}
	for _, need := range own.Needs {
		if _, err := p.once(need, []string{tool}); err != nil {
			return nil, nil, err
		}
	}
	if _, err := p.call(manifest.FlowCall{Tool: tool, Params: params, Values: own.Values}, nil, nil); err != nil {
		return nil, nil, err
	}
	last := len(p.plan.Calls) - 1
	return p.plan.Calls[:last], p.plan.Calls[last].Params, nil
}

type planner struct {
	catalog *host.Catalog
	plan    *Plan
	options PlanOptions    // options of every call
	own     string         // the plugin of the tool
	made    map[string]int // id of the line of each call
	replace bool           // also replace values that are given for the first call

	// instead has the given parameters that the tool does not have, and taken marks those that an earlier call has.
	// refused is the error if one is left.
	instead map[string]any
	taken   map[string]bool
	refused *host.Error
}

// call adds a call and the calls before it, and returns its id. path has the tools on the way to it.
func (p *planner) call(c manifest.FlowCall, choose, path []string) (int, error) {
	at, err := p.catalog.Find(c.Tool)
	if err != nil {
		return 0, err
	}
	if at.Tool == nil {
		return 0, notCallable(at)
	}
	if slices.Contains(path, c.Tool+string(c.Params)) || len(path) > maxPlan || len(p.plan.Calls) >= maxPlan {
		return 0, host.Errorf(host.InvalidPlugin, "%s depends on itself: %s", c.Tool, strings.Join(path, ", "))
	}
	if at.Tool.Effect == manifest.EffectDestructive && len(path) > 0 && at.Provider.Info().Name != p.own {
		return 0, host.Errorf(host.InvalidPlugin,
			"%s must be preceded by %s, which is destructive and belongs to another plugin; "+
				"call that yourself if you want it", p.plan.Tool, at.Name())
	}
	path = append(slices.Clone(path), c.Tool+string(c.Params))
	flow := at.FlowOf()
	for _, need := range flow.Needs {
		if need.Tool != at.Name() {
			if _, err := p.once(need, path); err != nil {
				return 0, err
			}
		}
	}
	given, err := decodeParams(c.Params)
	if err != nil {
		return 0, err
	}
	first := len(path) == 1
	filled := given
	paramsSchema, err := at.SchemaOf(at.Tool.Params, "params")
	if err == nil && paramsSchema != nil {
		if object, ok := paramsSchema.Correct(given, holeOf(at.Tool)).Value.(map[string]any); ok {
			filled = object
		}
	}
	if first && len(given) == 0 {
		template := CallTemplate(at.Tool)
		maps.Copy(template, filled)
		filled = template
	}
	for _, name := range choose {
		if _, ok := filled[name]; !ok {
			TemplateOf(at.Tool, filled, name)
		}
	}
	for _, v := range flow.Values {
		own := slices.IndexFunc(c.Values, func(o manifest.Value) bool { return o.Pointer == v.Pointer })
		switch {
		case own >= 0:
			v = c.Values[own]
		case len(v.From) == 0 || !p.wants(given, v, first):
			continue
		}
		ref, err := p.source(v.From[0], path)
		if err != nil {
			return 0, err
		}
		setAt(filled, strings.Split(v.Pointer[1:], "/"), ref)
	}
	line := PlanCall{ID: len(p.plan.Calls) + 1, Tool: at.Name()}
	if len(filled) > 0 {
		line.Params = jsontext.Marshal(filled)
	}
	options := p.options
	options.JQ, options.Until = c.Filter, c.Until
	if options != (PlanOptions{}) {
		line.Options = &options
	}
	p.plan.Holes = append(p.plan.Holes, holesIn(filled)...)
	p.plan.Calls = append(p.plan.Calls, line)
	return line.ID, nil
}

// wants reports whether the value of a parameter is to come from another call.
func (p *planner) wants(given map[string]any, v manifest.Value, first bool) bool {
	steps := strings.Split(v.Pointer[1:], "/")
	_, isGiven := jsontext.Lookup(given, steps)
	if first && p.replace {
		return isGiven // an example keeps its parameters, with values from other calls
	}
	beside := slices.Clip(steps[:len(steps)-1])
	isReplaced := slices.ContainsFunc(v.Instead, func(name string) bool {
		_, has := jsontext.Lookup(given, append(beside, name))
		return has
	})
	return v.Required && !isGiven && !isReplaced
}

// source adds the call that returns a value, and returns the reference to it.
func (p *planner) source(s manifest.Source, path []string) (string, error) {
	for _, c := range s.Before {
		if _, err := p.once(c, path); err != nil {
			return "", err
		}
	}
	call, chosen, err := p.choose(s.FlowCall)
	if err != nil {
		return "", err
	}
	id, err := p.once(call, path)
	if err != nil {
		return "", err
	}
	for _, c := range chosen {
		c.Call = id
		if !slices.ContainsFunc(p.plan.Chosen, func(o Chosen) bool { return o.Call == id && o.Parameter == c.Parameter }) {
			p.plan.Chosen = append(p.plan.Chosen, c)
		}
	}
	return "${" + strconv.Itoa(id) + strings.ReplaceAll(s.Result, "/", ".") + "}", nil
}

// choose returns the call of a source with what the caller gave for it, and the values of parameters that its tool
// requires and nobody gave.
func (p *planner) choose(c manifest.FlowCall) (manifest.FlowCall, []Chosen, error) {
	at, err := p.catalog.Find(c.Tool)
	if err != nil || at.Tool == nil || len(c.Params) == 0 {
		return c, nil, nil // the call itself reports it
	}
	params, err := decodeParams(c.Params)
	if err != nil {
		return c, nil, err
	}
	var chosen []Chosen
	for _, q := range manifest.Params(at.Tool.Params) {
		value, set := params[q.Name]
		if !q.Required || !set {
			continue
		}
		given, ok := p.instead[q.Name]
		if !ok {
			chosen = append(chosen, Chosen{Parameter: q.Name, Value: jsontext.Marshal(value)})
			continue
		}
		if schema, err := at.SchemaOf(at.Tool.Params, "params"); err == nil && schema != nil {
			if e := checkGiven(at.Name(), schema, jsontext.Marshal(map[string]any{q.Name: given})); e != nil {
				return c, nil, e
			}
		}
		params[q.Name] = given
		p.taken[q.Name] = true
	}
	c.Params = jsontext.Marshal(params)
	return c, chosen, nil
}

// once adds a call unless the plan has it already.
func (p *planner) once(c manifest.FlowCall, path []string) (int, error) {
	key := fmt.Sprint(c.Tool, " ", string(c.Params), " ", c.Filter, " ", c.Until)
	if id, ok := p.made[key]; ok {
		return id, nil
	}
	id, err := p.call(c, nil, path)
	if err == nil {
		p.made[key] = id
	}
	return id, err
}

// checkGiven returns the error of parameters that are invalid, not just incomplete.
func checkGiven(tool string, paramsSchema *schema.Schema, given json.RawMessage) *host.Error {
	if len(given) == 0 {
		return nil
	}
	_, _, e := CheckValues(tool, paramsSchema, given)
	if e == nil || !slices.ContainsFunc(e.Details, func(d host.Detail) bool { return d.Keyword != "required" }) {
		return nil
	}
	return e
}

// holesIn returns the holes in a value, in the order of names.
func holesIn(v any) (holes []string) {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "<") && strings.HasSuffix(v, ">") && strings.Contains(v, ": ") {
			return []string{v}
		}
	case []any:
		for _, item := range v {
			holes = append(holes, holesIn(item)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			holes = append(holes, holesIn(v[name])...)
		}
	}
	return holes
}

// setAt returns a value with another one in it: in objects and in the first item of arrays, which it makes where there
// are none.
func setAt(in any, steps []string, value any) any {
	if len(steps) == 0 {
		return value
	}
	name, rest := steps[0], steps[1:]
	if name == "0" {
		list, _ := in.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = setAt(list[0], rest, value)
		return list
	}
	object, _ := in.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	object[name] = setAt(object[name], rest, value)
	return object
}

// maxAbout bounds the description of a value in a template, in bytes.
const maxAbout = 80

// holeOf returns the function that makes the text for a missing value in a template: "<url: string, the page to
// open>". It leaves out examples in the description, so that nobody takes one for the value. The tool may be nil.
func holeOf(t *manifest.Tool) func(at, name, words, about string) string {
	return func(at, name, words, about string) string {
		text := "<" + name + ": " + expected(t, at, words)
		if phrase := strings.TrimRight(wholeClause(manifest.About(about)), " .,;:"); phrase != "" {
			text += ", " + manifest.WithUnit(phrase, about)
		}
		return manifest.CleanLine(text) + ">"
	}
}

// TemplateOf returns parameters of a tool with a hole for the parameter with a name.
func TemplateOf(t *manifest.Tool, params map[string]any, name string) json.RawMessage {
	for _, p := range manifest.Params(t.Params) {
		if p.Name == name {
			params[name] = holeOf(t)("/"+jsontext.EscapeToken(name), name, p.TypeText(), p.Description)
		}
	}
	return jsontext.Marshal(params)
}

// Bounds of the other parameters that a template names.
const (
	maxOthers    = 64 // bytes of them all
	maxOtherType = 40 // bytes; a longer type is left out
)

// CallTemplate returns parameters of a tool with a hole for each required parameter. If none is required, it has holes
// for the positional parameters that the first example has.
func CallTemplate(t *manifest.Tool) map[string]any {
	hole, all := holeOf(t), manifest.Params(t.Params)
	isAsked := func(p manifest.Param) bool { return p.Required }
	if !slices.ContainsFunc(all, isAsked) {
		first := map[string]any{}
		if len(t.Examples) > 0 {
			first, _ = decodeParams(t.Examples[0].Params)
		}
		isAsked = func(p manifest.Param) bool {
			_, ok := first[p.Name]
			return slices.Contains(t.Positional, p.Name) && (ok || len(t.Examples) == 0)
		}
	}
	params := map[string]any{}
	for _, p := range all {
		if isAsked(p) {
			about := p.Description
			if p.Required { // for an optional one, the words about its absence matter
				about, _, _ = strings.Cut(about, ", ")
				about, _, _ = strings.Cut(about, "; ")
				about = manifest.WithUnit(manifest.About(about), p.Description)
			}
			params[p.Name] = hole("/"+jsontext.EscapeToken(p.Name), p.Name, p.TypeText(), about)
		}
	}
	return params
}

// OtherParams names the parameters of a tool that are not among those shown. Parameters in examples come first. With
// typed, it adds the types: "timeout: integer, format: \"png\"|\"webp\", 3 more".
func OtherParams[V any](t *manifest.Tool, shown map[string]V, typed bool) string {
	exampled := map[string]any{}
	for _, e := range t.Examples {
		params, _ := decodeParams(e.Params)
		maps.Copy(exampled, params)
	}
	var inExamples, others []string
	most, mostType := maxOthers, maxOtherType
	if !typed {
		most, mostType = most/2, mostType/2
	}
	for _, p := range manifest.Params(t.Params) {
		if _, ok := shown[p.Name]; ok {
			continue
		}
		text := p.Name
		if kind := p.TypeText(); len(kind) <= mostType && (typed || p.Enum != nil) {
			text += ": " + kind
		}
		if _, ok := exampled[p.Name]; ok {
			inExamples = append(inExamples, text)
		} else {
			others = append(others, text)
		}
	}
	text := ""
	for i, other := range append(inExamples, others...) {
		if size := len(text) + len(other); size > most {
			return strings.TrimPrefix(fmt.Sprintf("%s, %d more", text, len(inExamples)+len(others)-i), ", ")
		}
		text += strings.Repeat(", ", min(i, 1)) + other
	}
	return text
}

// wholeClause cuts a text of more than maxAbout bytes at the end of a clause, or of a word if it has none.
func wholeClause(text string) string {
	if len(text) <= maxAbout {
		return text
	}
	short := manifest.Clip(text, maxAbout)
	if end := strings.LastIndexAny(short, ",;"); end > 0 {
		return short[:end]
	}
	return short
}

// expected returns what a tool expects at a pointer into its parameters: in words, or as documentation shows it if it
// has parts.
func expected(t *manifest.Tool, pointer, words string) string {
	if t == nil {
		return words
	}
	return cmp.Or(manifest.NestedType(t.Params, pointer), words)
}
