// Package manifest holds what a plugin says of itself: its types, the strict reader, the custom
// section that carries it in a wasm file, its projection into three tiers of documentation, and the
// cleaning of texts that others wrote. It is the lowest room: everything may import it.
package manifest

import (
	"encoding/json"
	"strings"
)

// Version is the manifest version that this code reads.
const Version = 1

// Kinds of plugin. Builtin is for providers that are compiled into the host and never stands in a file.
const (
	KindParley  = "parley/1"
	KindWASI    = "wasi"
	KindMCP     = "mcp"
	KindBuiltin = "builtin"
)

// Effects of a tool, from harmless to not.
const (
	EffectRead        = "read"
	EffectWrite       = "write"
	EffectDestructive = "destructive"
)

// Manifest is one plugin's description of itself. The zero value of every optional field is its default.
type Manifest struct {
	Manifest     int             `json:"manifest"`
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Kind         string          `json:"kind"`
	MinHost      string          `json:"min_host,omitempty"`
	Docs         Docs            `json:"docs"`
	Keywords     []string        `json:"keywords,omitempty"`
	License      string          `json:"license,omitempty"`
	Homepage     string          `json:"homepage,omitempty"`
	Groups       []Group         `json:"groups,omitempty"`
	ExitCodes    []ExitCode      `json:"exit_codes,omitempty"`
	Capabilities Capabilities    `json:"capabilities,omitzero"`
	Limits       Limits          `json:"limits,omitzero"`
	Settings     json.RawMessage `json:"settings,omitempty"` // JSON Schema of what the operator may set
	Tutorial     []Step          `json:"tutorial,omitempty"`
	Tools        []Tool          `json:"tools"`
}

// Docs are the three lengths of one text: a line, a paragraph, everything.
type Docs struct {
	Brief    string `json:"brief"`
	Standard string `json:"standard,omitempty"`
	Full     string `json:"full,omitempty"`
}

// Group gathers tools of a plugin under one name (CDP calls them domains).
type Group struct {
	Name string `json:"name"`
	Docs Docs   `json:"docs"`
}

// ExitCode is one code between 2 and 79 that the plugin's tools may end with.
type ExitCode struct {
	Code       int    `json:"code"`
	Name       string `json:"name"`
	Meaning    string `json:"meaning"`
	Retry      string `json:"retry,omitempty"` // never, fix_input or backoff
	Suggestion string `json:"suggestion,omitempty"`
}

// Capabilities are the rights that a plugin asks for. Asking grants nothing.
type Capabilities struct {
	FS      []FSCapability     `json:"fs,omitempty"`
	HTTP    []HTTPCapability   `json:"http,omitempty"`
	Secrets []SecretCapability `json:"secrets,omitempty"`
	Env     []NamedCapability  `json:"env,omitempty"`
	Tools   []NamedCapability  `json:"tools,omitempty"`
	Clock   *PlainCapability   `json:"clock,omitempty"`
	Random  *PlainCapability   `json:"random,omitempty"`
}

// FSCapability asks for a folder, named as the guest sees it.
type FSCapability struct {
	Path     string `json:"path"`
	Mode     string `json:"mode"` // ro or rw
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// HTTPCapability asks to reach one origin.
type HTTPCapability struct {
	URL      string   `json:"url"`
	Methods  []string `json:"methods,omitempty"` // default GET
	Why      string   `json:"why,omitempty"`
	Optional bool     `json:"optional,omitempty"`
}

// SecretCapability asks for a secret: put by the host into a header of requests to URL, or, with Read, told to the guest.
type SecretCapability struct {
	Name     string `json:"name"`
	URL      string `json:"url,omitempty"`
	Header   string `json:"header,omitempty"`
	Read     bool   `json:"read,omitempty"`
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// NamedCapability asks for an environment variable, or for tools of other plugins by name or glob.
type NamedCapability struct {
	Name     string `json:"name"`
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// PlainCapability asks for something that has no name of its own: the wall clock, randomness.
type PlainCapability struct {
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// Limits are the bounds that the plugin asks for; the host and the operator may set lower ones. Zero means the host's default.
type Limits struct {
	MemoryMiB   int `json:"memory_mib,omitempty"`
	TimeoutMS   int `json:"timeout_ms,omitempty"`
	OutputBytes int `json:"output_bytes,omitempty"`
}

// Step is one step of a tutorial: what to say, what to run, what must come of it.
type Step struct {
	Say    string  `json:"say"`
	Run    string  `json:"run,omitempty"`
	Expect *Expect `json:"expect,omitempty"`
}

// Expect is what a tutorial step must end with.
type Expect struct {
	ExitCode int             `json:"exit_code"`
	Result   json.RawMessage `json:"result,omitempty"`
}

// Tool is one thing that can be called.
type Tool struct {
	Name         string          `json:"name"`
	Group        string          `json:"group,omitempty"`
	Category     string          `json:"category,omitempty"`
	Docs         Docs            `json:"docs"`
	Params       json.RawMessage `json:"params"`
	Returns      json.RawMessage `json:"returns,omitempty"`
	Positional   []string        `json:"positional,omitempty"`
	Effect       string          `json:"effect"`
	Idempotent   bool            `json:"idempotent,omitempty"`
	OpenWorld    bool            `json:"open_world,omitempty"`
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
}

// Example is one call with what comes of it. Runnable examples are executed by checks and must end as declared.
type Example struct {
	Title    string          `json:"title"`
	Kind     string          `json:"kind,omitempty"` // minimal, common, full or error
	Params   json.RawMessage `json:"params"`
	ExitCode int             `json:"exit_code,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Runnable bool            `json:"runnable,omitempty"`
}

// Related points to another tool and says why.
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

// WASI says how a call becomes a run of a WASI command.
type WASI struct {
	Argv   []Arg             `json:"argv,omitempty"`
	Stdin  string            `json:"stdin,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
	Files  []WASIFile        `json:"files,omitempty"`
	Output string            `json:"output,omitempty"` // text (default), json, lines or file:/PATH
}

// WASIFile is a file that the guest finds: a parameter's value under a guest path.
type WASIFile struct {
	Path string `json:"path"`
	From string `json:"from"`
}

// Arg is a word of argv, or a list of words that stays only if each parameter in it was given.
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

// Tool finds a tool by its name without regard to case; nil if there is none.
func (m *Manifest) Tool(name string) *Tool {
	for i := range m.Tools {
		if strings.EqualFold(m.Tools[i].Name, name) {
			return &m.Tools[i]
		}
	}
	return nil
}

// ExitCode finds a declared exit code by its number; nil if the plugin does not declare it.
func (m *Manifest) ExitCode(code int) *ExitCode {
	for i := range m.ExitCodes {
		if m.ExitCodes[i].Code == code {
			return &m.ExitCodes[i]
		}
	}
	return nil
}
