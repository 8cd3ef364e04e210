package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// Tiers of documentation. Each contains the previous one.
const (
	Tier1 = 1 // name, brief, required parameters, effect
	Tier2 = 2 // the standard text, all parameters, results, the first example, exit codes
	Tier3 = 3 // everything
)

// ToolDocs is the documentation of a tool at one tier, as `--describe` prints it.
type ToolDocs struct {
	Name               string          `json:"name"` // qualified
	Plugin             string          `json:"plugin"`
	Group              string          `json:"group"`
	Tool               string          `json:"tool"`
	Kind               string          `json:"kind,omitempty"` // "event" or "type" if it is not a tool
	Tier               int             `json:"tier"`
	Brief              string          `json:"brief"`
	Description        string          `json:"description,omitempty"`
	Effect             string          `json:"effect,omitempty"`
	Reach              string          `json:"reach,omitempty"`
	Deprecated         bool            `json:"deprecated,omitempty"`
	DeprecationMessage string          `json:"deprecation_message,omitempty"`
	Experimental       bool            `json:"experimental,omitempty"`
	Parameters         []Param         `json:"parameters"`
	MoreParameters     []string        `json:"more_parameters,omitempty"` // names; tier 3 describes them
	Get                []ValueDoc      `json:"get,omitempty"`             // where values come from
	Needs              []string        `json:"needs,omitempty"`           // tools that must have been called before
	Returns            []Param         `json:"returns,omitzero"`
	MoreReturns        int             `json:"more_returns,omitempty"` // number of results that only tier 3 has
	Examples           []ExampleDoc    `json:"examples,omitzero"`
	ExitCodes          []ExitCodeDoc   `json:"exit_codes,omitzero"`
	When               string          `json:"when,omitempty"`
	WhenNot            string          `json:"when_not,omitempty"`
	Related            []Related       `json:"related,omitempty"`
	Limitations        []string        `json:"limitations,omitempty"`
	Positional         []string        `json:"positional,omitempty"`
	Aliases            []string        `json:"aliases,omitempty"`
	Keywords           []string        `json:"keywords,omitempty"`
	Tasks              []string        `json:"tasks,omitempty"`
	Category           string          `json:"category,omitempty"`
	Idempotent         bool            `json:"idempotent,omitempty"`
	OpenWorld          bool            `json:"open_world,omitempty"`
	Since              string          `json:"since,omitempty"`
	Note               string          `json:"note,omitempty"`
	LeftOut            []string        `json:"left_out,omitempty"` // parts left out because of a limit of tokens
	Deeper             string          `json:"-"`                  // how a front end asks for tier 3; "" is "tier 3"
	ParamsSchema       json.RawMessage `json:"params_schema,omitempty"`
	ReturnsSchema      json.RawMessage `json:"returns_schema,omitempty"`
}

// ExampleDoc is an example of a call.
type ExampleDoc struct {
	Title    string          `json:"title"`
	Kind     string          `json:"kind"`
	Params   json.RawMessage `json:"params"`
	Before   []BatchLine     `json:"before,omitempty"`  // the calls before it
	Command  string          `json:"command,omitempty"` // the command that runs it; a front end that has commands sets it
	ExitCode int             `json:"exit_code"`
	Result   json.RawMessage `json:"result,omitempty"`
	ExampleRun
}

// Call returns the example on one line: its command, or the name of the tool and the parameters.
func (d *ToolDocs) Call(e ExampleDoc) string {
	if e.Command != "" {
		return e.Command
	}
	return strings.TrimSuffix(d.Name+" "+string(EscapeJSON(CompactJSON(e.Params))), " {}")
}

// ExitCodeDoc is an exit code of a tool.
type ExitCodeDoc struct {
	Code    int    `json:"code"`
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
}

// optionalShown is how many optional parameters the second tier describes. It only names the others.
const optionalShown = 8

// Describe returns the documentation of a tool of m at a tier. It is a pure function of its arguments, and cleans all
// texts.
func Describe(m *Manifest, t *Tool, tier int) *ToolDocs {
	d := &ToolDocs{
		Name: m.Name + "." + t.Name, Plugin: m.Name, Group: CleanLine(t.Group), Tool: t.Name,
		Tier: tier, Brief: CleanLine(t.Docs.Brief), Effect: t.Effect, Experimental: t.Experimental,
		Parameters: []Param{},
	}
	if t.Deprecated != nil {
		d.Deprecated, d.DeprecationMessage = true, t.Deprecated.Text()
	}
	all := paramsWithin(t.Params, paramBytes, asParams)
	if tier == Tier3 {
		all = wholeParams(t.Params, asParams)
	}
	optional := 0
	for _, p := range requiredFirst(all) {
		if tier < Tier3 && len(p.plain()) > paramBytes {
			p.CutValues(narrower[0].values)
		}
		if !p.Required {
			optional++
		}
		switch {
		case p.Required, tier == Tier2 && optional <= optionalShown, tier == Tier3:
			d.Parameters = append(d.Parameters, p)
		case tier == Tier2:
			d.MoreParameters = append(d.MoreParameters, p.Name)
		}
	}
	if tier == Tier1 {
		return d
	}

	d.Description, d.Reach = cmp.Or(Clean(t.Docs.Standard), d.Brief), t.Reach
	if t.Reach == "" && t.Outside() {
		d.Reach = ReachMachine
	}
	d.SetFlow(FlowOf(t))
	d.Returns = append([]Param{}, paramsWithin(t.Returns, returnBytes, asResult)...)
	d.Examples = []ExampleDoc{}
	d.ExitCodes = exitCodes(m, t)
	d.When, d.WhenNot = CleanLine(t.When), CleanLine(t.WhenNot)
	examples := t.Examples
	if len(examples) == 0 && t.Effect != "" { // events and types have no effect and cannot be called
		if params := minimalParams(d.Parameters); accepts(t.Params, params) {
			examples = []Example{{Title: "Call it", Kind: "minimal", Params: params}}
		}
	}
	if tier == Tier2 && len(examples) > 1 {
		examples = examples[:1]
	}
	d.Examples = append(d.Examples, lists.Map(examples, exampleDoc)...)
	if tier == Tier2 {
		return d
	}

	d.Description = cmp.Or(Clean(t.Docs.Full), d.Description)
	d.Returns = append([]Param{}, wholeParams(t.Returns, asResult)...)
	d.Related = lists.Map(t.Related, func(r Related) Related { return Related{CleanLine(r.Tool), CleanLine(r.Why)} })
	d.Limitations, d.Positional = cleanAll(t.Limitations), cleanAll(t.Positional)
	d.Limitations = append(d.Limitations, boundWords(readNode(t.Params).object(), "object", false)...)
	d.Aliases, d.Keywords, d.Tasks = cleanAll(t.Aliases), cleanAll(t.Keywords), cleanAll(t.Tasks)
	d.Category, d.Idempotent, d.OpenWorld, d.Since = t.Category, t.Idempotent, t.OpenWorld, CleanLine(t.Since)
	if m.Kind == KindExtism || m.Derived() {
		d.Note = uncheckedNote(t)
	}
	d.ParamsSchema, d.ReturnsSchema = CleanJSON(t.Params), CleanJSON(t.Returns)
	return d
}

// uncheckedNote says which schemas of a tool the host does not apply, because they do not pass the gate; "" if it
// applies all.
func uncheckedNote(t *Tool) string {
	var unchecked []string
	for i, raw := range []json.RawMessage{t.Params, t.Returns} {
		if _, err := schema.CompileUntrusted(raw); len(raw) > 0 && err != nil {
			unchecked = append(unchecked, []string{"params", "returns"}[i])
		}
	}
	if len(unchecked) == 0 {
		return ""
	}
	return "not checked by the host: " + strings.Join(unchecked, ", ")
}

// exampleDoc documents an example. If the example ran differently from its declaration, the declared outcome is left
// out.
func exampleDoc(e Example) ExampleDoc {
	d := ExampleDoc{
		Title: CleanLine(e.Title), Kind: cmp.Or(e.Kind, "common"), Params: EscapeJSON(e.Params),
		ExitCode: e.ExitCode, Result: EscapeJSON(e.Result), Before: e.Before,
	}
	if run := e.Ran(); run != nil {
		d.ExampleRun = ExampleRun{Verified: run.Verified, Differs: CleanLine(run.Differs), NotRun: CleanLine(run.NotRun)}
		if d.Differs != "" {
			d.ExitCode, d.Result = run.ExitCode, nil
		}
	}
	return d
}

// Text renders the description for people and for errors, one fact per line.
func (d *ToolDocs) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	unlessEmpty := func(format, text string) {
		if text != "" {
			line(format, text)
		}
	}
	head := d.Name
	if d.Tier == Tier1 {
		head = briefSignature(d)
	}
	marks := []string{d.Effect, "", d.Kind, ""}
	if d.Reach != "" && d.Reach != ReachPage {
		marks[1] = "reaches the " + d.Reach
	}
	if d.Experimental {
		marks[3] = "experimental"
	}
	marks = slices.DeleteFunc(marks, func(mark string) bool { return mark == "" })
	line("%s: %s [%s]", head, d.Brief, strings.Join(marks, ", "))
	unlessEmpty("%s", d.DeprecationMessage)
	leftOut := strings.Join(d.LeftOut, ", ")
	if d.Tier == Tier1 {
		unlessEmpty("Left out for max_tokens: %s", leftOut)
		return b.String()
	}
	if d.Description != d.Brief {
		line("%s", d.Description)
	}
	paramLines(line, d.Parameters)
	unlessEmpty("  %s", d.MoreText())
	for _, v := range d.Get {
		line("  get %s", v.Text())
	}
	unlessEmpty("Needs: %s", strings.Join(d.Needs, ", "))
	switch {
	case len(d.Returns) == 0:
	case d.Tier == Tier3:
		line("Returns:")
		paramLines(line, d.Returns)
	default:
		text := typeList(d.Returns, func(p *Param) string { return cmp.Or(p.short, p.TypeText()) })
		if d.MoreReturns > 0 {
			text += ", " + d.more(d.MoreReturns)
		}
		line("Returns: %s", text)
	}
	for _, e := range d.Examples {
		for i, b := range e.Before {
			line("Before %d: %s", i+1, b.Text())
		}
		switch {
		case e.Differs+e.NotRun != "": // at most one is set
			line("Example (%s): %s", cmp.Or(e.NotRun, "differs: "+e.Differs), d.Call(e))
		case e.ExitCode != 0:
			line("Example (exit %d): %s", e.ExitCode, d.Call(e))
		default:
			line("Example: %s", d.Call(e))
		}
	}
	codes := lists.Map(d.ExitCodes, func(c ExitCodeDoc) string { return fmt.Sprintf("%d %s", c.Code, c.Name) })
	unlessEmpty("Exit codes: %s", strings.Join(codes, ", "))
	unlessEmpty("When: %s", d.When)
	unlessEmpty("Not when: %s", d.WhenNot)
	for _, r := range d.Related {
		line("Related: %s: %s", r.Tool, r.Why)
	}
	for _, l := range d.Limitations {
		line("Limit: %s", l)
	}
	unlessEmpty("Left out for max_tokens: %s", leftOut)
	return b.String()
}

// Reduction is a part of documentation that can be left out. Remove reports false if there is nothing to remove.
type Reduction struct {
	Name   string
	Remove func() bool
}

// Reductions returns the parts of tier 2 that can be left out to save space, those first that a call needs least.
func (d *ToolDocs) Reductions() []Reduction {
	return []Reduction{
		{"when to use it", func() bool {
			had := d.When != "" || d.WhenNot != "" || len(d.Related) > 0
			d.When, d.WhenNot, d.Related = "", "", nil
			return had
		}},
		{"exit codes", func() bool { return empty(&d.ExitCodes) }},
		{"returns", func() bool { return empty(&d.Returns) }},
		{"optional parameters", func() bool {
			optional := lists.Filter(d.Parameters, func(p Param) bool { return !p.Required })
			d.Parameters = slices.DeleteFunc(slices.Clone(d.Parameters), func(p Param) bool { return !p.Required })
			names := lists.Map(optional, func(p Param) string { return p.Name })
			d.MoreParameters = append(slices.Clip(d.MoreParameters), names...)
			return len(optional) > 0
		}},
		{"description", func() bool {
			had := d.Description != d.Brief
			d.Description = d.Brief
			return had
		}},
		{"examples", func() bool { return empty(&d.Examples) }},
	}
}

// empty empties a list, and reports whether it had anything.
func empty[T any](list *[]T) bool {
	had := len(*list) > 0
	*list = []T{}
	return had
}

// Tokens estimates the tokens of [ToolDocs.Text].
func (d *ToolDocs) Tokens() int { return Tokens(d.Text()) }

// Tokens estimates the tokens of a text as bytes/4.5, which is within 5 % of o200k on tool schemas.
func Tokens(s string) int { return TokensOf(len(s)) }

// TokensOf is [Tokens] for a text with that many bytes.
func TokensOf(bytes int) int { return (bytes*2 + 8) / 9 }

// NarrowTypes shortens each type of the parameters to paramBytes bytes, and each type of the results to returnBytes
// bytes.
func (d *ToolDocs) NarrowTypes(t *Tool, paramBytes, returnBytes int) {
	narrow := func(list []Param, narrower []Param) {
		for _, n := range narrower {
			if i := slices.IndexFunc(list, func(p Param) bool { return p.Name == n.Name }); i >= 0 {
				list[i].Fields, list[i].More, list[i].short = n.Fields, n.More, n.short
			}
		}
	}
	narrow(d.Parameters, paramsWithin(t.Params, paramBytes, asParams))
	narrow(d.Returns, paramsWithin(t.Returns, returnBytes, asResult))
}

// CutReturns keeps n of the results, and counts the others.
func (d *ToolDocs) CutReturns(n int) {
	if cut := len(d.Returns) - n; cut > 0 {
		d.Returns, d.MoreReturns = d.Returns[:n], d.MoreReturns+cut
	}
}

// paramLines writes a line for each parameter, and for each field that it has in the third tier.
func paramLines(line func(string, ...any), params []Param) {
	for _, p := range params {
		line("  %s", p.Text())
		for _, f := range p.Inner {
			line("    %s", f.Text())
		}
	}
}

// MoreText names the parameters that are not described, and counts what else the third tier says about parameters; ""
// if there is nothing.
func (d *ToolDocs) MoreText() string {
	n := len(d.MoreParameters)
	for _, p := range d.Parameters {
		n += p.More
	}
	names := strings.Join(d.MoreParameters, ", ")
	switch {
	case names != "" && len(d.LeftOut) > 0: // LeftOut says that parts are missing
		return "also: " + names
	case names != "":
		return "also: " + names + " (" + d.more(n) + ")"
	case n > 0:
		return d.more(n)
	}
	return ""
}

func (d *ToolDocs) more(n int) string {
	return fmt.Sprintf("… %d details: %s", n, cmp.Or(d.Deeper, "tier 3"))
}

// Text renders the parameter on one line: name, type, default, description.
func (p *Param) Text() string {
	text := p.Name
	if !p.Required {
		text += "?"
	}
	if text += ": " + p.TypeText(); p.Default != nil {
		text += " = " + string(p.Default)
	}
	if p.Description != "" {
		text += "  " + p.Description
	}
	return text
}

// TypeText returns the type on one line, with its fields and values.
func (p *Param) TypeText() string { return cmp.Or(p.shape, p.Fields, p.plain()) }

func exitCodes(m *Manifest, t *Tool) []ExitCodeDoc {
	docs := []ExitCodeDoc{}
	for _, name := range t.ExitCodes {
		if c := lists.Find(m.ExitCodes, func(c *ExitCode) bool { return c.Name == name }); c != nil {
			docs = append(docs, ExitCodeDoc{c.Code, c.Name, CleanLine(c.Meaning)})
		}
	}
	return docs
}

// Text says what to use instead of the tool, or else why not to use it.
func (d *Deprecated) Text() string {
	use, message := CleanLine(d.Use), CleanLine(d.Message)
	switch {
	case use == "":
		return "DEPRECATED: " + cmp.Or(message, "do not use it in new work")
	case message == "":
		return "DEPRECATED: Use " + use + " instead"
	}
	return "DEPRECATED: Use " + use + " instead. " + message
}

// accepts reports whether a schema accepts parameters. It also accepts them if the schema does not pass the gate,
// because it is then not applied.
func accepts(params, given json.RawMessage) bool {
	s, err := schema.CompileUntrusted(params)
	value, invalid := jsontext.Decode(given, jsontext.Limits{})
	if err != nil || s == nil || invalid != nil {
		return invalid == nil
	}
	wrong, err := s.Validate(value)
	return err == nil && len(wrong) == 0
}

// minimalParams returns an object with the required parameters, each with a value of its type.
func minimalParams(params []Param) json.RawMessage {
	var members []string
	for _, p := range params {
		if !p.Required {
			continue
		}
		kind, _, _ := strings.Cut(p.Type, "|")
		value := string(p.Default)
		if value == "" && len(p.Enum) > 0 {
			value = string(p.Enum[0])
		}
		value = cmp.Or(value, map[string]string{
			"integer": "1", "number": "1", "boolean": "true", "array": "[]", "object": "{}", "null": "null",
		}[kind], `"text"`)
		members = append(members, string(jsontext.AppendString(nil, p.Name))+":"+value)
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}")
}

func cleanAll(texts []string) []string { return lists.Map(texts, CleanLine) }
