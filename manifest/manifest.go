// Package manifest defines the manifest by which a plugin describes itself: its types, its strict parser, the custom
// section of a wasm file that contains it, its rendering as documentation in three tiers, and the cleaning of
// untrusted texts. Every other package may import it.
package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
)

// Version is the version of the manifest format that [Parse] accepts.
const Version = 1

// Kinds of plugin. KindExtism is for modules of Extism, which list tools as MCP does. A plugin of KindHTTP has no
// code: the host makes the requests of its tools. KindBuiltin is for plugins that are compiled into the host; no
// manifest file has it.
const (
	KindParley  = "parley/1"
	KindWASI    = "wasi"
	KindScript  = "script"
	KindExtism  = "extism"
	KindHTTP    = "http"
	KindBuiltin = "builtin"
)

// CurrentKind returns the name of a kind. Manifests and installed plugins may have the former name of KindExtism, mcp.
func CurrentKind(name string) string { return cmp.Or(map[string]string{"mcp": KindExtism}[name], name) }

// Effects of a tool, from harmless to destructive.
const (
	EffectRead        = "read"
	EffectWrite       = "write"
	EffectDestructive = "destructive"
)

// Reaches of a tool, from the page that its caller works in to the machine. A wildcard never grants a tool that
// reaches outside a page.
const (
	ReachPage    = "page"
	ReachContext = "context" // cookies, storage and other pages of the browser context
	ReachBrowser = "browser" // the browser as a whole, and the pages of all callers
	ReachMachine = "machine" // files, devices, ports and processes of the host's machine
)

// Manifest describes a plugin. The zero value of each optional field is its default.
type Manifest struct {
	Manifest     int             `json:"manifest"`
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Kind         string          `json:"kind"`
	MinHost      string          `json:"min_host,omitempty"`
	Engine       *Engine         `json:"engine,omitempty"` // runs a plugin of kind script; nil for others
	HTTP         *HTTP           `json:"http,omitempty"`   // for a plugin of kind http; nil for others
	Source       *Document       `json:"source,omitempty"` // for a derived manifest; nil for others
	Docs         Docs            `json:"docs"`
	Keywords     []string        `json:"keywords,omitempty"`
	License      string          `json:"license,omitempty"`
	Homepage     string          `json:"homepage,omitempty"`
	Groups       []Group         `json:"groups,omitempty"`
	ExitCodes    []ExitCode      `json:"exit_codes,omitempty"`
	Scripts      []Script        `json:"scripts,omitempty"`
	Capabilities Capabilities    `json:"capabilities,omitzero"`
	Limits       Limits          `json:"limits,omitzero"`
	Warm         bool            `json:"warm,omitempty"`     // an example may run in an instance before its call
	Assets       *Assets         `json:"assets,omitempty"`   // files that the plugin brings; nil if it has none
	Settings     json.RawMessage `json:"settings,omitempty"` // JSON Schema of the operator's settings
	Tutorial     []Step          `json:"tutorial,omitempty"`
	Peers        json.RawMessage `json:"peers,omitempty"` // tools of other products; see package peers
	Tools        []Tool          `json:"tools"`
}

// Engine names the plugin that runs the text of a plugin of kind script.
type Engine struct {
	Name    string `json:"name"`
	Version string `json:"version"` // see Accepts
}

// Accepts reports whether an engine of a version can run the script: "1" accepts all versions 1.x.y, "1.2" all 1.2.y.
func (e *Engine) Accepts(version string) bool {
	return version == e.Version || strings.HasPrefix(version, e.Version+".")
}

// Assets are the files of a tar in the custom section parley.assets of the wasm file. The guest needs no right to
// read them below Path.
type Assets struct {
	Path string `json:"path"`
}

// Docs is one text in three lengths: a line, a paragraph, everything.
type Docs struct {
	Brief    string `json:"brief"`
	Standard string `json:"standard,omitempty"`
	Full     string `json:"full,omitempty"`
}

// Group is a named group of tools of a plugin, such as a domain of CDP.
type Group struct {
	Name string `json:"name"`
	Docs Docs   `json:"docs"`
}

// ExitCode is an exit code between 2 and 79 that the plugin defines.
type ExitCode struct {
	Code       int    `json:"code"`
	Name       string `json:"name"`
	Meaning    string `json:"meaning"`
	Retry      string `json:"retry,omitempty"` // never, fix_input or backoff
	Suggestion string `json:"suggestion,omitempty"`
}

// Script is a script for pages that the plugin ships in a custom section of its wasm file; see [ReadScript]. The tool
// cdp.script runs it.
type Script struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // checksum of its text, in hexadecimal
}

// Capabilities are the rights that a plugin requests. A request grants nothing.
type Capabilities struct {
	FS      []FSCapability     `json:"fs,omitempty"`
	HTTP    []HTTPCapability   `json:"http,omitempty"`
	Secrets []SecretCapability `json:"secrets,omitempty"`
	Env     []NamedCapability  `json:"env,omitempty"`
	Tools   []NamedCapability  `json:"tools,omitempty"`
	Browser *BrowserCapability `json:"browser,omitempty"`
	Clock   *PlainCapability   `json:"clock,omitempty"`
	Random  *PlainCapability   `json:"random,omitempty"`
	// Caller requests that nested calls are made as the caller, with exactly its rights. Only a plugin that ships with
	// Parley can have it.
	Caller *PlainCapability `json:"caller,omitempty"`
}

// FSCapability requests a folder; Path is its path in the guest.
type FSCapability struct {
	Path     string `json:"path"`
	Mode     string `json:"mode"` // ro or rw
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// HTTPCapability requests access to one origin.
type HTTPCapability struct {
	URL      string   `json:"url"`
	Methods  []string `json:"methods,omitempty"` // default GET
	Why      string   `json:"why,omitempty"`
	Optional bool     `json:"optional,omitempty"`
}

// SecretCapability requests a secret. The host adds it to requests to URL as a header or a parameter of the query, or,
// with Read, gives it to the guest.
type SecretCapability struct {
	Name     string `json:"name"`
	URL      string `json:"url,omitempty"`
	Header   string `json:"header,omitempty"` // such as "Authorization: Bearer {secret}"; {secret:basic} is its base64
	Query    string `json:"query,omitempty"`  // the name of a parameter
	OAuth    *OAuth `json:"oauth,omitempty"`  // parley login gets the value; nil if the operator has it
	Read     bool   `json:"read,omitempty"`
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// OAuth says where a person logs in to get a secret.
type OAuth struct {
	Issuer string   `json:"issuer"` // the URL of the authorization server
	Scopes []string `json:"scopes,omitempty"`
}

// NamedCapability requests an environment variable, or tools of other plugins by name or glob.
type NamedCapability struct {
	Name     string `json:"name"`
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// BrowserCapability requests that the plugin's calls act in the browser context of its caller's session. Without it,
// they act in a context of the plugin's own.
type BrowserCapability struct {
	Context  string `json:"context"` // session
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// PlainCapability requests the wall clock or randomness.
type PlainCapability struct {
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// Right is a right that a plugin requests.
type Right struct {
	Pointer  string // into the manifest
	Name     string // in the grammar of grants, with PATH for each folder that the operator has to choose
	For      string // the origin that a secret is sent to; else ""
	Why      string // the plugin's own text
	Optional bool
	Changes  bool // only tools that change something need it
}

// Rights returns the requested rights. All texts are cleaned.
func (c *Capabilities) Rights() (all []Right) {
	add := func(pointer string, r Right) {
		r.Pointer, r.Name, r.For = "/capabilities/"+pointer, CleanLine(r.Name), CleanLine(r.For)
		r.Why = CleanLine(r.Why)
		all = append(all, r)
	}
	for i, f := range c.FS {
		add(fmt.Sprintf("fs/%d", i), Right{Name: "fs:" + f.Mode + ":PATH=" + f.Path, Why: f.Why, Optional: f.Optional,
			Changes: f.Mode == "rw"})
	}
	for i, h := range c.HTTP {
		methods := h.Methods
		if len(methods) == 0 {
			methods = []string{"GET"}
		}
		reads := slices.Contains(methods, "GET") || slices.Contains(methods, "HEAD")
		add(fmt.Sprintf("http/%d", i), Right{Name: "http:" + strings.Join(methods, ",") + ":" + h.URL, Why: h.Why,
			Optional: h.Optional, Changes: !reads})
	}
	for i, s := range c.Secrets {
		r := Right{Name: "secret:" + s.Name, For: s.URL, Why: s.Why, Optional: s.Optional}
		if s.Read {
			r.Name, r.For = "secret:read:"+s.Name, ""
		}
		add(fmt.Sprintf("secrets/%d", i), r)
	}
	for i, e := range c.Env {
		add(fmt.Sprintf("env/%d", i), Right{Name: "env:" + e.Name, Why: e.Why, Optional: e.Optional})
	}
	for i, t := range c.Tools {
		add(fmt.Sprintf("tools/%d", i), Right{Name: "tool:" + t.Name, Why: t.Why, Optional: t.Optional})
	}
	if b := c.Browser; b != nil {
		add("browser", Right{Name: "browser:" + b.Context, Why: b.Why, Optional: b.Optional})
	}
	for _, plain := range []struct {
		name string
		*PlainCapability
	}{{"clock", c.Clock}, {"random", c.Random}, {"caller", c.Caller}} {
		if plain.PlainCapability != nil {
			add(plain.name, Right{Name: plain.name, Why: plain.Why, Optional: plain.Optional})
		}
	}
	return all
}

// Limits are the limits that a plugin requests. The host and the operator may set lower ones. Zero is the host's
// default.
type Limits struct {
	MemoryMiB   int `json:"memory_mib,omitempty"`
	TimeoutMS   int `json:"timeout_ms,omitempty"`
	OutputBytes int `json:"output_bytes,omitempty"`
}

// Step is one step of a tutorial: a text, a command to run, and its expected outcome.
type Step struct {
	Say    string  `json:"say"`
	Run    string  `json:"run,omitempty"`
	Expect *Expect `json:"expect,omitempty"`
}

// Expect is the expected outcome of a tutorial step.
type Expect struct {
	ExitCode int             `json:"exit_code"`
	Result   json.RawMessage `json:"result,omitempty"`
}

// Tool describes one tool.
type Tool struct {
	Name         string          `json:"name"`
	Group        string          `json:"group,omitempty"`
	Category     string          `json:"category,omitempty"`
	Docs         Docs            `json:"docs"`
	Params       json.RawMessage `json:"params"`
	Returns      json.RawMessage `json:"returns,omitempty"`
	Positional   []string        `json:"positional,omitempty"`
	Steps        string          `json:"steps,omitempty"` // parameter that lists calls of the plugin's other tools
	Effect       string          `json:"effect"`
	Reach        string          `json:"reach,omitempty"` // page, context, browser or machine; "" if it drives no browser
	URL          []string        `json:"url,omitempty"`   // pointers to parameters that hold URLs it loads
	Files        []string        `json:"files,omitempty"` // pointers to parameters that name files of the host
	Idempotent   bool            `json:"idempotent,omitempty"`
	OpenWorld    bool            `json:"open_world,omitempty"`
	Needs        []string        `json:"needs,omitempty"` // qualified tools that must have been called before
	Examples     []Example       `json:"examples,omitempty"`
	ExitCodes    []string        `json:"exit_codes,omitempty"` // names of the manifest's exit codes
	Aliases      []string        `json:"aliases,omitempty"`
	Keywords     []string        `json:"keywords,omitempty"`
	Tasks        []string        `json:"tasks,omitempty"`
	When         string          `json:"when,omitempty"`
	WhenNot      string          `json:"when_not,omitempty"`
	Related      []Related       `json:"related,omitempty"`
	Limitations  []string        `json:"limitations,omitempty"`
	Since        string          `json:"since,omitempty"`
	Experimental bool            `json:"experimental,omitempty"`
	Deprecated   *Deprecated     `json:"deprecated,omitempty"`
	WASI         *WASI           `json:"wasi,omitempty"`
	HTTP         *Binding        `json:"http,omitempty"`
}

// Example is a call and its outcome. Checks run the runnable ones and compare the outcome.
type Example struct {
	Title    string          `json:"title"`
	Kind     string          `json:"kind,omitempty"` // minimal, common, full or error
	Params   json.RawMessage `json:"params"`
	ExitCode int             `json:"exit_code,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Runnable bool            `json:"runnable,omitempty"`
	// Before are the calls before it. In Params, "${1.id}" refers to a part of the first call's result.
	Before []BatchLine `json:"before,omitempty"`

	// Run returns the outcome when a host tried to run the example, or nil if that is unknown. Run itself may be nil,
	// too. A manifest cannot set it.
	Run func() *ExampleRun `json:"-"`
}

// Ran returns the outcome when a host tried to run the example, nil if it did not.
func (e *Example) Ran() *ExampleRun {
	if e.Run == nil {
		return nil
	}
	return e.Run()
}

// IsVerified reports whether a host ran the example with the declared outcome.
func (e *Example) IsVerified() bool {
	run := e.Ran()
	return run != nil && run.Verified != ""
}

// BatchLine is a call as a line of a batch.
type BatchLine struct {
	Tool    string          `json:"tool"` // qualified
	Params  json.RawMessage `json:"params,omitempty"`
	Options json.RawMessage `json:"options,omitempty"`
}

// ExampleRun is the outcome when a host tried to run an example. Exactly one of Verified, Differs and NotRun is set.
type ExampleRun struct {
	Verified string `json:"verified,omitempty"` // the host that ran it as declared, such as "parley 0.1.0"
	Differs  string `json:"differs,omitempty"`  // how the outcome differs from the declared one
	NotRun   string `json:"not_run,omitempty"`  // why it could not run to its end
	ExitCode int    `json:"-"`                  // exit code with which it ended
}

// Related refers to another tool and says why.
type Related struct {
	Tool string `json:"tool"`
	Why  string `json:"why,omitempty"`
}

// Deprecated says since when a tool should no longer be used, and what to use instead.
type Deprecated struct {
	Since    string `json:"since,omitempty"`
	Message  string `json:"message,omitempty"`
	Use      string `json:"use,omitempty"`
	RemoveIn string `json:"remove_in,omitempty"`
}

// WASI says how a call runs a WASI command.
type WASI struct {
	Argv   []Arg             `json:"argv,omitempty"`
	Stdin  string            `json:"stdin,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
	Files  []WASIFile        `json:"files,omitempty"`
	Output string            `json:"output,omitempty"` // text (default), json, lines, bytes or file:/PATH
}

// WithNUL looks for a parameter whose text contains U+0000 and goes into the arguments or the environment of the
// program, which cannot contain it. place says which of the two: "argv" or "env". Both results are "" if no parameter
// does.
func (w *WASI) WithNUL(params map[string]json.RawMessage) (name, place string) {
	find := func(text string) bool {
		for _, match := range Placeholder().FindAllStringSubmatch(text, -1) {
			var value string
			if name = match[1]; json.Unmarshal(params[name], &value) == nil && strings.ContainsRune(value, 0) {
				return true
			}
		}
		return false
	}
	for _, arg := range w.Argv {
		if find(arg.Word) || slices.ContainsFunc(arg.List, find) {
			return name, "argv"
		}
	}
	for _, variable := range slices.Sorted(maps.Keys(w.Env)) {
		if find(w.Env[variable]) {
			return name, "env"
		}
	}
	return "", ""
}

// WASIFile is a file for the guest: the value of the parameter From at the guest's path Path.
type WASIFile struct {
	Path string `json:"path"`
	From string `json:"from"`
}

// Arg is a word of argv, or a list of words. The list is left out unless every parameter in it is given.
type Arg struct {
	Word string
	List []string
}

// UnmarshalJSON reads a string or a list of strings.
func (a *Arg) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, &a.List)
	}
	return json.Unmarshal(data, &a.Word)
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (a Arg) MarshalJSON() ([]byte, error) {
	if a.List != nil {
		return json.Marshal(a.List)
	}
	return json.Marshal(a.Word)
}

// Outside reports whether the tool reaches outside the page that its caller works in.
func (t *Tool) Outside() bool { return len(t.Files) > 0 || t.Reach != "" && t.Reach != ReachPage }

// Tool returns the tool with a name, ignoring case, nil if there is none.
func (m *Manifest) Tool(name string) *Tool {
	return lists.Find(m.Tools, func(t *Tool) bool { return strings.EqualFold(t.Name, name) })
}

// Script returns the script with a name, nil if there is none.
func (m *Manifest) Script(name string) *Script {
	return lists.Find(m.Scripts, func(s *Script) bool { return s.Name == name })
}

// ExitCode returns the declared exit code with a number, nil if there is none.
func (m *Manifest) ExitCode(code int) *ExitCode {
	return lists.Find(m.ExitCodes, func(e *ExitCode) bool { return e.Code == code })
}
