package sdk

import "encoding/json"

// Plugin is everything that a manifest says about a plugin. Name, Version,
// Brief and Tools are required.
type Plugin struct {
	Name    string // lower-case, such as "text"
	Version string // semantic, such as "0.1.0"
	MinHost string // oldest Parley that can run it; empty: any

	Brief    string // at most 64 characters
	Standard string
	Full     string
	Keywords []string
	License  string // SPDX, such as "Apache-2.0"
	Homepage string

	Groups       []Group
	ExitCodes    []ExitCode
	Capabilities Capabilities
	Limits       Limits
	// Settings is a value of a struct type, described like parameters: what
	// the operator may set. Call.Settings holds the values.
	Settings any
	Tutorial []Step
	Tools    []Definition
}

// Group gathers tools whose names begin with its name and a dot.
type Group struct {
	Name     string
	Brief    string
	Standard string
}

// ExitCode declares a way to fail, for Exit to name.
type ExitCode struct {
	Code       int // 2 to 79
	Name       string
	Meaning    string
	Retry      Retry
	Suggestion string // what the caller should do next
}

// Retry says whether the same call can succeed later.
type Retry string

const (
	Never    Retry = "never"
	FixInput Retry = "fix_input"
	Backoff  Retry = "backoff"
)

// Effect says what a tool does to the world.
type Effect string

const (
	Read        Effect = "read"
	Write       Effect = "write"
	Destructive Effect = "destructive"
)

// Category says what a tool is for.
type Category string

const (
	Generation Category = "generation"
	Review     Category = "review"
	Correction Category = "correction"
	Planning   Category = "planning"
	Query      Category = "query"
	Action     Category = "action"
)

// Capabilities are the rights that a plugin asks for. The operator grants them.
type Capabilities struct {
	FS      []FS     `json:"fs,omitempty"`
	HTTP    []HTTP   `json:"http,omitempty"`
	Secrets []Secret `json:"secrets,omitempty"`
	Env     []Env    `json:"env,omitempty"`
	Tools   []Use    `json:"tools,omitempty"`
	Clock   *Why     `json:"clock,omitempty"`
	Random  *Why     `json:"random,omitempty"`
}

// FS asks for a folder. Mode is "ro" or "rw".
type FS struct {
	Path     string `json:"path"`
	Mode     string `json:"mode"`
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// HTTP asks for an origin or a URL prefix.
type HTTP struct {
	URL      string   `json:"url"`
	Methods  []string `json:"methods,omitempty"`
	Why      string   `json:"why,omitempty"`
	Optional bool     `json:"optional,omitempty"`
}

// Secret asks for a secret: one that the host puts into Header of requests to
// URL, such as "Authorization: Bearer {secret}", or one that ReadSecret returns.
type Secret struct {
	Name     string `json:"name"`
	URL      string `json:"url,omitempty"`
	Header   string `json:"header,omitempty"`
	Read     bool   `json:"read,omitempty"`
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// Env asks for an environment variable.
type Env struct {
	Name     string `json:"name"`
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// Use asks for other tools by name or glob, such as "cdp.Page.*".
type Use struct {
	Name     string `json:"name"`
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// Why gives the reason of a capability that has no other argument.
type Why struct {
	Why      string `json:"why,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// Limits are what the plugin needs; zero: the host's default.
type Limits struct {
	MemoryMiB   int `json:"memory_mib,omitempty"`
	TimeoutMS   int `json:"timeout_ms,omitempty"`
	OutputBytes int `json:"output_bytes,omitempty"`
}

// Step is one step of a tutorial.
type Step struct {
	Say    string  `json:"say"`
	Run    string  `json:"run,omitempty"` // a command line that begins with "parley"
	Expect *Expect `json:"expect,omitempty"`
}

// Expect is what a step's command must end with.
type Expect struct {
	ExitCode int `json:"exit_code"`
}

// Definition is a tool, made by Tool.
type Definition struct {
	name string
	doc  Doc
	run  func(*Call, json.RawMessage) (any, error)
	origin
}

// Doc is what agents and people read about a tool. Brief and Effect are
// required. Tier 1 shows Brief, tier 2 adds Standard, When, WhenNot and the
// first example, tier 3 shows everything.
type Doc struct {
	Brief    string // at most 64 characters
	Standard string
	Full     string
	Group    string // empty: the part of the name before the dot

	Category    Category
	Effect      Effect
	Idempotent  bool
	OpenWorld   bool     // reaches things outside the plugin and its parameters
	Positional  []string // parameters that may be given as words, in this order
	Examples    []Example
	ExitCodes   []string // names from Plugin.ExitCodes
	Aliases     []string
	Keywords    []string
	Tasks       []string // phrases that an agent would say
	When        string
	WhenNot     string
	Related     []Related
	Limitations []string

	Since        string
	Experimental bool
	Deprecated   *Deprecated
}

// Example is one call with its outcome.
type Example struct {
	Title string
	Kind  Kind // empty: Common
	// Params is a value of the tool's parameter type, or a map.
	Params   any
	ExitCode int
	// Result of the call. If nil on a Runnable example that ends in 0, the
	// function is run when the manifest is built and its result stands here.
	Result   any
	Runnable bool // true: the call needs nothing but the plugin
}

// Kind of an example.
type Kind string

const (
	Minimal Kind = "minimal"
	Common  Kind = "common"
	Full    Kind = "full"
	Error   Kind = "error"
)

// Related names another tool and says why it is worth a look.
type Related struct {
	Tool string `json:"tool"`
	Why  string `json:"why"`
}

// Deprecated says since when and in favour of what.
type Deprecated struct {
	Since    string `json:"since,omitempty"`
	Message  string `json:"message,omitempty"`
	Use      string `json:"use,omitempty"`
	RemoveIn string `json:"remove_in,omitempty"`
}

// Tool makes a tool of a function. P is what it takes, usually a struct; R is
// what it gives.
func Tool[P, R any](name string, run func(*Call, P) (R, error), doc Doc) Definition {
	return Definition{
		name: name,
		doc:  doc,
		run: func(c *Call, raw json.RawMessage) (any, error) {
			var p P
			if err := decodeParams(raw, &p); err != nil {
				return nil, err
			}
			r, err := run(c, p)
			if err != nil {
				return nil, err
			}
			return withoutNil(&r), nil
		},
		origin: originOf[P, R](run),
	}
}

// registered is written once, while the package of the plugin initialises: a
// reactor's main is never called, and its exports take no argument for it.
var registered Plugin

// Register makes p the plugin that this program is. Call it from init.
func Register(p Plugin) { registered = p }
