package cdp

import (
	"embed"
	_ "embed"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/cdp/internal/words"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/manifest"
)

// catalog has what discovery finds: the verbs, and the commands, events and types of one version of the protocol.
type catalog struct {
	protocol translation

	// Derived from the protocol on first use: most calls of a batch or a session use few tools.
	info     func() host.Info
	manifest func() *manifest.Manifest
	tools    sync.Map // *manifest.Tool by name in lower case
}

func catalogOf(of *protocol.Protocol) *catalog {
	p := &catalog{protocol: translation{of}}
	p.info, p.manifest = sync.OnceValue(p.buildInfo), sync.OnceValue(p.buildManifest)
	return p
}

// Info returns the plugin's name and version and the numbers of its groups and tools.
func (p *catalog) Info() host.Info { return p.info() }

func (p *catalog) buildInfo() host.Info {
	info := host.Info{Name: Name, Version: p.protocol.Revision(), Kind: manifest.KindBuiltin, Brief: brief,
		Tools: len(verbs.Names())}
	for _, d := range p.protocol.Domains() {
		info.Groups++
		info.Tools += d.Commands
	}
	return info
}

const brief = "Drive Chrome: pages, DOM, network, scripts (DevTools Protocol)"

// Exit codes that the plugin declares.
const (
	exitScriptError      = 10
	exitNavigationFailed = 11
	exitProtocolError    = 12
)

//go:embed manifest.json
var manifestJSON []byte

// Manifest describes the plugin without its tools, which Tool returns one by one.
func (p *catalog) Manifest() (*manifest.Manifest, error) { return p.manifest(), nil }

func (p *catalog) buildManifest() *manifest.Manifest { return words.Manifest(manifestJSON, p.Info()) }

//go:embed verbs
var verbFiles embed.FS

// verbs are the tools for the browser itself, next to the protocol's commands.
var verbs = words.New(verbFiles, "verbs",
	"open", "close", "status", "targets", "activate", "events", "state", "type", "script", "input", "route")

// Groups returns the domains of the protocol.
func (p *catalog) Groups() ([]host.GroupLine, error) {
	domains := p.protocol.Domains()
	lines := make([]host.GroupLine, 0, len(domains))
	for _, d := range domains {
		lines = append(lines, host.GroupLine{Name: d.Name, Brief: manifest.CleanLine(d.Brief), Tools: d.Commands,
			Events: d.Events})
	}
	return lines, nil
}

// Lines returns the commands of a domain, or the verbs if group is empty.
func (p *catalog) Lines(group string) ([]host.Line, error) {
	if group == "" {
		return host.LinesOf(&manifest.Manifest{Tools: verbs.All()}, ""), nil
	}
	var lines []host.Line
	for _, m := range p.protocol.Members(group) {
		c, ok := p.protocol.Command(group + "." + m.Name)
		if m.Kind != protocol.KindCommand || !ok {
			continue
		}
		lines = append(lines, host.Line{
			Name: c.Name, Signature: p.protocol.signature(c), Brief: manifest.CleanLine(m.Brief),
			Effect: string(c.Effect), Deprecated: c.Deprecated, Experimental: c.Experimental,
		})
	}
	return lines, nil
}

// Events returns the events of a domain.
func (p *catalog) Events(group string) ([]host.EventLine, error) {
	var lines []host.EventLine
	for _, m := range p.protocol.Members(group) {
		if m.Kind == protocol.KindEvent {
			lines = append(lines, host.EventLine{Name: group + "." + m.Name, Brief: manifest.CleanLine(m.Brief)})
		}
	}
	return lines, nil
}

// Names returns all commands and verbs, sorted.
func (p *catalog) Names() ([]string, error) {
	names := slices.Concat(p.protocol.Names(), verbs.Names())
	slices.Sort(names)
	return names, nil
}

// coverage counts the members of the protocol, and says which share of them is documented.
type coverage struct {
	protocol.Coverage
	Described    shares `json:"described"` // by Chrome itself; other texts are derived from names
	WithExamples shares `json:"with_examples"`
}

// shares are between 0 and 1.
type shares struct {
	Methods    float64 `json:"methods"`
	Events     float64 `json:"events,omitzero"`
	Parameters float64 `json:"parameters,omitzero"`
}

// Coverage counts the members of the protocol and the documented share of them.
func (p *catalog) Coverage() (any, error) {
	c := p.protocol.Coverage()
	return coverage{
		Coverage: c,
		Described: shares{share(c.DescribedCommands, c.Commands), share(c.DescribedEvents, c.Events),
			share(c.DescribedParameters, c.Parameters)},
		WithExamples: shares{Methods: share(c.Commands, c.Commands)}, // every command has its smallest call
	}, nil
}

func share(part, whole int) float64 {
	return math.Round(1000*float64(part)/float64(max(1, whole))) / 1000
}

// Tool returns a command or a verb by its name without regard to case, or nil if there is none. "Input" is the domain
// and returns nil, "input" is the verb.
func (p *catalog) Tool(name string) (*manifest.Tool, error) {
	key := strings.ToLower(name)
	if d, _ := p.protocol.Domain(name); d.Name != name {
		if t := verbs.Tool(key); t != nil {
			return t, nil
		}
	}
	if made, ok := p.tools.Load(key); ok {
		return made.(*manifest.Tool), nil
	}
	c, ok := p.protocol.Command(name)
	if !ok {
		return nil, nil
	}
	made, _ := p.tools.LoadOrStore(key, p.protocol.commandTool(c))
	return made.(*manifest.Tool), nil
}

// passTool returns a tool for a command that the embedded protocol does not have, for callers that send it anyway; nil
// if name is not a command's name.
func passTool(name string) *manifest.Tool {
	domain, method, dotted := strings.Cut(name, ".")
	if !dotted || domain == "" || method == "" || strings.ContainsAny(name, " /\\\"'") {
		return nil
	}
	return &manifest.Tool{
		Name: name, Group: domain, Effect: manifest.EffectWrite, Reach: manifest.ReachMachine,
		Docs:   manifest.Docs{Brief: "A command that the embedded protocol does not know"},
		Params: json.RawMessage(`{"type":"object"}`), ExitCodes: []string{"protocol_error"},
	}
}

// Entry returns the documentation of an event or a type, nil if there is none of that name.
func (p *catalog) Entry(name string) (*host.Entry, error) {
	e, ok := p.protocol.Event(name)
	if !ok {
		e, ok = p.protocol.Type(name)
	}
	if !ok {
		return nil, nil
	}
	entry := &host.Entry{Kind: string(e.Kind), Tool: manifest.Tool{
		Name: e.Name, Group: e.Domain, Docs: docs(e.Brief, e.Description), Params: p.protocol.EntrySchema(e),
		Experimental: e.Experimental, Deprecated: deprecated(e.Deprecated, "", ""),
	}}
	if e.Kind == protocol.KindEvent {
		entry.Tool.Needs = eventNeeds(e.Name, e.Domain)
	}
	return entry, nil
}

func docs(brief, description string) manifest.Docs {
	return manifest.Docs{Brief: manifest.CleanLine(brief), Standard: manifest.Clean(description)}
}

func deprecated(is bool, message, use string) *manifest.Deprecated {
	if !is {
		return nil
	}
	d := &manifest.Deprecated{Message: message}
	if use != "" {
		d.Use = Name + "." + use
	}
	return d
}

// translation converts what the protocol describes into the types of the host.
type translation struct{ *protocol.Protocol }

func (t translation) commandTool(c *protocol.Command) *manifest.Tool {
	tool := &manifest.Tool{
		Name: c.Name, Group: c.Domain, Category: category(c), Effect: string(c.Effect),
		Reach: string(c.Reach), URL: c.URL, Files: c.Files,
		Docs: docs(c.Brief, c.Description), Params: t.ParamsSchema(c), Returns: t.ReturnsSchema(c),
		Tasks: c.Tasks, Keywords: c.Keywords, When: c.When, WhenNot: c.WhenNot, Experimental: c.Experimental,
		Deprecated: deprecated(c.Deprecated, c.DeprecationMessage, c.Use), ExitCodes: exitCodesOf(c.Name),
	}
	if c.Redirect != "" && c.Redirect != c.Name {
		tool.Related = []manifest.Related{{Tool: Name + "." + c.Redirect, Why: "handles this command"}}
	}
	for _, r := range c.Related {
		name := Name + "." + strings.TrimPrefix(r.Tool, Name+".")
		tool.Related = append(tool.Related, manifest.Related{Tool: name, Why: r.Why})
	}
	for _, r := range t.counterpartsOf(c) {
		if !slices.ContainsFunc(tool.Related, func(o manifest.Related) bool { return o.Tool == r.Tool }) {
			tool.Related = append(tool.Related, r)
		}
	}
	for _, e := range t.Examples(c) {
		tool.Examples = append(tool.Examples, example(&e))
	}
	return tool
}

// counterparts are beginnings of names of commands that undo each other, or write and read the same.
var counterparts = [][2]string{{"enable", "disable"}, {"start", "stop"}, {"set", "get"}, {"set", "clear"},
	{"set", "remove"}, {"add", "remove"}, {"track", "untrack"}, {"create", "close"}, {"create", "dispose"},
	{"attachTo", "detachFrom"}, {"install", "uninstall"}, {"pause", "resume"}, {"bind", "unbind"}}

// counterpartsOf returns the commands whose names differ from that of c only by a counterpart.
func (t translation) counterpartsOf(c *protocol.Command) (found []manifest.Related) {
	for _, pair := range counterparts {
		for i, begin := range pair {
			rest, ok := strings.CutPrefix(c.Name, c.Domain+"."+begin)
			if !ok {
				continue
			}
			if other, ok := t.Command(c.Domain + "." + pair[1-i] + rest); ok && !other.Deprecated {
				found = append(found, manifest.Related{Tool: Name + "." + other.Name, Why: other.Brief})
			}
		}
	}
	return found
}

// exitCodesOf returns the names of the exit codes that a command can end with.
func exitCodesOf(name string) []string {
	switch name {
	case "Runtime.evaluate", "Runtime.callFunctionOn", "Runtime.awaitPromise", "Runtime.runScript",
		"Runtime.compileScript",
		"Debugger.evaluateOnCallFrame":
		return []string{"script_error", "protocol_error"}
	case "Page.navigate":
		return []string{"navigation_failed", "protocol_error"}
	}
	return []string{"protocol_error"}
}

// Flow returns what comes before a command; nil for a verb and for a name that is not a command.
func (p *catalog) Flow(tool string) *manifest.Flow {
	c := p.protocol.Protocol.Flow(tool)
	if len(c.Needs)+len(c.Values) == 0 {
		return nil
	}
	return new(p.protocol.flow(c))
}

// Example is an example of a command before it ran. The examples of the command's tool have the outcome of the run.
type Example struct {
	Title, Kind string
	Params      json.RawMessage
	Needs       manifest.Flow // what comes before it, besides what comes before every call of the command
}

// Examples returns the examples of a command before they ran; nil for a verb and for a name that is not a command.
func (p *catalog) Examples(command string) (list []Example) {
	c, ok := p.protocol.Command(command)
	if !ok {
		return nil
	}
	for _, e := range p.protocol.Examples(c) {
		list = append(list, Example{e.Title, e.Kind, e.Params, p.protocol.flow(e.Flow())})
	}
	return list
}

func (t translation) flow(c protocol.Flow) manifest.Flow {
	f := manifest.Flow{Needs: t.flowCalls(c.Needs)}
	for _, v := range c.Values {
		f.Values = append(f.Values, t.flowValue(v))
	}
	return f
}

func (t translation) flowValue(v protocol.Value) manifest.Value {
	value := manifest.Value{Pointer: v.Pointer, Required: v.Required, Instead: v.Instead}
	for _, s := range t.Sources(v.Source) {
		if value.From == nil {
			value.Ends = s.Ends
		}
		value.From = append(value.From, manifest.Source{FlowCall: t.flowCall(s.Call), Result: s.Result,
			Before: t.flowCalls(s.Before)})
	}
	return value
}

func (t translation) flowCalls(calls []protocol.Call) (list []manifest.FlowCall) {
	for _, c := range calls {
		list = append(list, t.flowCall(c))
	}
	return list
}

// flowCall returns a call of the tables. A parameter that is "${NAME}" is a value of the source NAME.
func (t translation) flowCall(c protocol.Call) manifest.FlowCall {
	call := manifest.FlowCall{Tool: Name + "." + c.Tool, Params: c.Params, Filter: c.Filter, Until: c.Until}
	if !strings.Contains(string(c.Params), "${") {
		return call
	}
	var params map[string]any
	if json.Unmarshal(c.Params, &params) != nil {
		return call
	}
	for name, value := range params {
		text, _ := value.(string)
		if source, ok := strings.CutPrefix(text, "${"); ok {
			delete(params, name)
			call.Values = append(call.Values, t.flowValue(protocol.Value{
				Pointer: "/" + name, Required: true, Source: strings.TrimSuffix(source, "}")}))
		}
	}
	call.Params, _ = manifest.Marshal(params)
	return call
}

// example returns an example with the calls before it and the outcome of its run. A minimal example whose run was not
// verified becomes a common one, because callers copy the minimal one.
func example(e *protocol.Example) manifest.Example {
	x := manifest.Example{Title: e.Title, Kind: e.Kind, Params: e.Params}
	if e.Run == nil {
		return x
	}
	run := &manifest.ExampleRun{}
	x.Params, x.Run = e.Run.Params, func() *manifest.ExampleRun { return run }
	_ = json.Unmarshal(e.Run.Before, &x.Before)
	product, _, _ := strings.Cut(protocol.Embedded().RanOn(), ".")
	if e.Run.Outcome == protocol.RunVerified {
		run.Verified, x.Result = protocol.Embedded().RanOn(), json.RawMessage(e.Run.Text)
		return x
	}
	if x.Kind == "minimal" && e.Run.Outcome != protocol.RunUnknown {
		x.Kind = "common"
	}
	run.NotRun = strings.TrimSuffix(notRun[e.Run.Outcome]+product+": "+e.Run.Text, ": ")
	if e.Run.Outcome == protocol.RunSkipped {
		run.NotRun = e.Run.Text
	}
	return x
}

// notRun describes the outcomes of examples that did not succeed.
var notRun = map[string]string{
	protocol.RunFailed:  "failed in ",
	protocol.RunHung:    "hung in ",
	protocol.RunUnknown: "unknown to ",
}

// The search segment is generated, because building it costs more than a search. A test compares it with what
// buildSegment returns.
//
//go:generate go generate ./internal/protocol
//go:generate go test -run TestSegment -update .
//go:embed segment.bin
var shippedSegment []byte

// Segment returns the search index over verbs, commands, events and types.
func (p *catalog) Segment() ([]byte, error) {
	if p.protocol.Protocol != protocol.Embedded() {
		return p.buildSegment(), nil
	}
	return shippedSegment, nil
}

func (p *catalog) buildSegment() []byte {
	return segment.Build(segment.PluginOf(p.manifest()), p.searchDocs())
}

// searchDocs returns what is indexed of verbs, commands, events and types.
func (p *catalog) searchDocs() (docs []segment.Doc) {
	for _, t := range verbs.All() {
		docs = append(docs, segment.DocOf(&t))
	}
	for _, name := range p.protocol.Names() {
		c, ok := p.protocol.Command(name)
		if !ok {
			continue
		}
		docs = append(docs, segment.Doc{
			Name: c.Name, Group: c.Domain, Category: category(c), Effect: string(c.Effect), Brief: c.Brief,
			Signature:  p.protocol.signature(c),
			Deprecated: c.Deprecated, Experimental: c.Experimental,
			// When is left out: measured on testdata/search, its everyday words add common tools to searches meant for others.
			Text: c.Description, Keywords: c.Keywords, Tasks: c.Tasks,
			Params: searchParams(c.Params),
		})
	}
	for _, d := range p.protocol.Domains() {
		for _, m := range p.protocol.Members(d.Name) {
			find := p.protocol.Event
			if m.Kind == protocol.KindType {
				find = p.protocol.Type
			}
			e, ok := find(d.Name + "." + m.Name)
			if m.Kind == protocol.KindCommand || !ok {
				continue
			}
			docs = append(docs, segment.Doc{Name: e.Name, Kind: string(e.Kind), Group: d.Name, Brief: e.Brief,
				Text: e.Description, Deprecated: e.Deprecated, Experimental: e.Experimental, Keywords: e.Enum,
				Params: searchParams(e.Fields)})
		}
	}
	return docs
}

func category(c *protocol.Command) string {
	if c.Effect == protocol.Read {
		return "query"
	}
	return "action"
}

func (t translation) signature(c *protocol.Command) string {
	return manifest.Signature(manifest.LocalName(c.Name), manifest.Params(t.ParamsSchema(c)))
}

func searchParams(params []protocol.Param) []segment.Param {
	list := make([]segment.Param, 0, len(params))
	for _, q := range params {
		list = append(list, segment.Param{Name: q.Name, Text: q.Description, Enum: q.Enum})
	}
	return list
}
