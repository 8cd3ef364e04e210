// Package cdp is the built-in plugin: the Chrome DevTools Protocol and verbs for the browser itself, behind the same
// interface as any other plugin. Discovery reads the embedded protocol. Calls go through a keeper process that owns
// Chrome.
package cdp

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Name is the plugin's name.
const Name = "cdp"

// Config holds the paths and settings of the plugin. Calls require only RunDir.
type Config struct {
	RunDir   string              // folder of sockets and locks, mode 0700
	StateDir string              // folder of what cdp.state saves; "": nothing can be saved
	CacheDir string              // folder of the cached protocols of browsers; "": no cache
	Env      func(string) string // default: no environment
	Chrome   string              // configured path of the browser; "" looks in the usual places
	Idle     time.Duration       // an unused keeper ends after this time; 0: 30 minutes
	Version  string              // of this host
	// AttachHosts returns the remote hosts to whose browsers the operator allows attaching; nil: none.
	AttachHosts func() ([]string, error)
	Debug       func(format string, args ...any)
}

// Provider is the plugin. It is safe for concurrent use.
type Provider struct {
	cfg      Config
	protocol *protocol.Protocol

	// Derived from the protocol once, because most calls of a batch or a session use few tools.
	info     func() host.Info
	manifest func() *manifest.Manifest
	tools    *sync.Map // *manifest.Tool by name in lower case

	mu      sync.Mutex
	clients map[string]*keeper.Client // by browser name
}

var _ host.Provider = (*Provider)(nil)

// Features returns what the plugin can do beyond listing and running tools.
func (p *Provider) Features() host.Features {
	return host.Features{
		Events: p.Events, Entry: p.Entry, Coverage: p.Coverage, Describe: p.Describe,
		MissingPage: p.MissingPage, Flow: p.Flow,
		NeedsConfirmation: p.NeedsConfirmation, Pass: p.Pass,
		Effect: p.Effect, SearchDocs: p.searchDocs,
	}
}

// New returns the plugin for the embedded protocol. It does no work until the first look-up.
func New(cfg Config) *Provider {
	if cfg.Env == nil {
		cfg.Env = func(string) string { return "" }
	}
	if cfg.Debug == nil {
		cfg.Debug = func(string, ...any) {}
	}
	p := &Provider{cfg: cfg, clients: map[string]*keeper.Client{}}
	p.setProtocol(protocol.Embedded())
	return p
}

// setProtocol replaces the protocol and drops everything derived from the previous one.
func (p *Provider) setProtocol(of *protocol.Protocol) {
	p.protocol, p.info, p.manifest, p.tools = of, sync.OnceValue(p.buildInfo), sync.OnceValue(p.buildManifest), &sync.Map{}
}

// Info returns the plugin's name and version and the numbers of its groups and tools.
func (p *Provider) Info() host.Info { return p.info() }

func (p *Provider) buildInfo() host.Info {
	info := host.Info{Name: Name, Version: p.protocol.Revision(), Kind: manifest.KindBuiltin, Brief: brief,
		Tools: len(verbs)}
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

// Manifest describes the plugin without its tools, which [Provider.Tool] returns one by one.
func (p *Provider) Manifest() (*manifest.Manifest, error) { return p.manifest(), nil }

func (p *Provider) buildManifest() *manifest.Manifest {
	return &manifest.Manifest{
		Manifest: manifest.Version, Name: Name, Version: p.protocol.Revision(), Kind: manifest.KindBuiltin,
		Docs: manifest.Docs{
			Brief: brief,
			Standard: "Every command of the Chrome DevTools Protocol as a tool, and verbs that open and close browsers. " +
				"Start with open.",
		},
		ExitCodes: []manifest.ExitCode{
			{Code: exitScriptError, Name: "script_error", Meaning: "the page's script threw", Retry: "fix_input",
				Suggestion: "fix the expression"},
			{Code: exitNavigationFailed, Name: "navigation_failed", Meaning: "the page did not load", Retry: "fix_input",
				Suggestion: "check the URL and that the server runs"},
			{Code: exitProtocolError, Name: "protocol_error", Meaning: "Chrome refused the command", Retry: "fix_input",
				Suggestion: "read Chrome's message"},
		},
		Tutorial: tutorial(),
	}
}

func tutorial() []manifest.Step {
	ok := &manifest.Expect{}
	return []manifest.Step{
		{Say: "Open a page. The first call starts Chrome.", Run: "parley cdp open about:blank", Expect: ok},
		{Say: "Ask the page something.",
			Run: `parley cdp Runtime.evaluate --params '{"expression":"1+1","returnByValue":true}'`, Expect: ok},
		{Say: "Find the command for what you want.", Run: `parley cdp --search "take a screenshot"`, Expect: ok},
		{Say: "Take the picture.", Run: "parley cdp Page.captureScreenshot --out page.png", Expect: ok},
		{Say: "End the browser.", Run: "parley cdp close", Expect: ok},
	}
}

// Groups returns the domains of the protocol.
func (p *Provider) Groups() ([]host.GroupLine, error) {
	domains := p.protocol.Domains()
	lines := make([]host.GroupLine, 0, len(domains))
	for _, d := range domains {
		lines = append(lines, host.GroupLine{Name: d.Name, Brief: manifest.CleanLine(d.Brief), Tools: d.Commands,
			Events: d.Events})
	}
	return lines, nil
}

// Lines returns the commands of a domain, or the verbs if group is empty.
func (p *Provider) Lines(group string) ([]host.Line, error) {
	if group == "" {
		return host.LinesOf(&manifest.Manifest{Tools: verbs}, ""), nil
	}
	var lines []host.Line
	for _, m := range p.protocol.Members(group) {
		c, ok := p.protocol.Command(group + "." + m.Name)
		if m.Kind != protocol.KindCommand || !ok {
			continue
		}
		lines = append(lines, host.Line{
			Name: c.Name, Signature: p.signature(c), Brief: manifest.CleanLine(m.Brief),
			Effect: string(m.Effect), Deprecated: m.Deprecated, Experimental: m.Experimental,
		})
	}
	return lines, nil
}

// Events returns the events of a domain.
func (p *Provider) Events(group string) ([]host.EventLine, error) {
	var lines []host.EventLine
	for _, m := range p.protocol.Members(group) {
		if m.Kind == protocol.KindEvent {
			lines = append(lines, host.EventLine{Name: group + "." + m.Name, Brief: manifest.CleanLine(m.Brief)})
		}
	}
	return lines, nil
}

// Names returns all commands and verbs, sorted.
func (p *Provider) Names() ([]string, error) {
	names := slices.Clone(p.protocol.Names())
	for _, t := range verbs {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names, nil
}

// coverage counts the members of the protocol, in the terms of the command line, and the documented share of them.
type coverage struct {
	Domains      int    `json:"domains"`
	Methods      int    `json:"methods"`
	Events       int    `json:"events"`
	Types        int    `json:"types"`
	Parameters   int    `json:"parameters"`
	Experimental int    `json:"experimental_methods"`
	Deprecated   int    `json:"deprecated_methods"`
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
func (p *Provider) Coverage() (any, error) {
	c := p.protocol.Coverage()
	return coverage{
		Domains: c.Domains, Methods: c.Commands, Events: c.Events, Types: c.Types, Parameters: c.Parameters,
		Experimental: c.ExperimentalCommands, Deprecated: c.DeprecatedCommands,
		Described: shares{share(c.DescribedCommands, c.Commands), share(c.DescribedEvents, c.Events),
			share(c.DescribedParameters, c.Parameters)},
		WithExamples: shares{Methods: share(c.CommandsWithExamples, c.Commands)},
	}, nil
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(1000*float64(part)/float64(whole)) / 1000
}

// Tool returns a command or a verb by its name without regard to case, nil if there is none. Input is the domain, input
// the verb.
func (p *Provider) Tool(name string) (*manifest.Tool, error) {
	for i := range verbs {
		if t := &verbs[i]; strings.EqualFold(t.Name, name) && !p.isDomain(name) {
			return t, nil
		}
	}
	key := strings.ToLower(name)
	if made, ok := p.tools.Load(key); ok {
		return made.(*manifest.Tool), nil
	}
	c, ok := p.protocol.Command(name)
	if !ok {
		return nil, nil
	}
	made, _ := p.tools.LoadOrStore(key, p.commandTool(c))
	return made.(*manifest.Tool), nil
}

// isDomain reports whether a domain has exactly this name.
func (p *Provider) isDomain(name string) bool {
	d, ok := p.protocol.Domain(name)
	return ok && d.Name == name
}

// Pass returns a tool for a command that the embedded protocol does not contain, for callers that send it anyway; nil
// if name is not a command's name.
func (p *Provider) Pass(name string) *manifest.Tool {
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
func (p *Provider) Entry(name string) (*host.Entry, error) {
	if e, ok := p.protocol.Event(name); ok {
		return &host.Entry{Kind: "event", Tool: manifest.Tool{
			Name: e.Name, Group: e.Domain, Docs: docs(e.Brief, e.Description), Params: p.eventSchema(e.Name),
			Needs: eventNeeds(e.Name, e.Domain), Experimental: e.Experimental,
			Deprecated: deprecated(e.Deprecated, "", ""),
		}}, nil
	}
	if t, ok := p.protocol.Type(name); ok {
		schema, _ := p.protocol.TypeSchema(t.Name)
		return &host.Entry{Kind: "type", Tool: manifest.Tool{
			Name: t.Name, Group: t.Domain, Docs: docs(t.Brief, t.Description), Params: schema, Experimental: t.Experimental,
			Deprecated: deprecated(t.Deprecated, "", ""),
		}}, nil
	}
	return nil, nil
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

func (p *Provider) commandTool(c *protocol.Command) *manifest.Tool {
	t := &manifest.Tool{
		Name: c.Name, Group: c.Domain, Category: category(c), Effect: string(c.Effect),
		Reach: string(c.Reach), URL: c.URL, Files: c.Files,
		Docs: docs(c.Brief, c.Description), Params: p.protocol.ParamsSchema(c), Returns: p.protocol.ReturnsSchema(c),
		Tasks: c.Tasks, Keywords: c.Keywords, When: c.When, WhenNot: c.WhenNot, Experimental: c.Experimental,
		Deprecated: deprecated(c.Deprecated, c.DeprecationMessage, c.Use), ExitCodes: exitCodesOf(c.Name),
	}
	if c.Redirect != "" && c.Redirect != c.Name {
		t.Related = []manifest.Related{{Tool: Name + "." + c.Redirect, Why: "handles this command"}}
	}
	for _, r := range c.Related {
		tool := r.Tool
		if !strings.HasPrefix(tool, Name+".") {
			tool = Name + "." + tool
		}
		t.Related = append(t.Related, manifest.Related{Tool: tool, Why: r.Why})
	}
	for _, e := range p.protocol.Examples(c) {
		t.Examples = append(t.Examples, p.example(&e))
	}
	return t
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

func (p *Provider) eventSchema(name string) json.RawMessage {
	schema, _ := p.protocol.EventSchema(name)
	return schema
}
