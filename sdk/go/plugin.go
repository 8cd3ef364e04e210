package sdk

import "encoding/json"

// Plugin describes a plugin: its manifest and its tools. Name, Version, Brief
// and Tools are required.
type Plugin struct {
	Name    string // lower-case, such as "text"
	Version string // semantic, such as "0.1.0"
	MinHost string // oldest version of Parley that can run it; empty: any

	Brief    string // at most 64 characters
	Standard string
	Full     string
	Keywords []string
	License  string // SPDX, such as "Apache-2.0"
	Homepage string

	Groups    []Group
	ExitCodes []ExitCode
	// Scripts are the names of the scripts for pages that the plugin ships, for the
	// tool cdp.script. The text of NAME is the file NAME.js in the plugin's folder;
	// "parley plugin build" puts it into the wasm file.
	Scripts      []string
	Capabilities Capabilities
	Limits       Limits
	// Warm lets the host run one of the examples in an instance before the call
	// for which it is, where it keeps instances ready. No result may depend on
	// what the instance did before: the host compares all examples.
	Warm   bool
	Assets *Assets // nil: none
	// Settings is a struct value whose type describes, like parameters do, what
	// the operator can set. [Call.Settings] holds the values.
	Settings any
	Tutorial []Step
	// Peers are tools of other products whose names callers know, and the calls that
	// do the same, as the JSON of the manifest.
	Peers json.RawMessage
	Tools []Definition
}

// Group is a set of tools whose names begin with its name and a dot.
type Group struct {
	Name     string
	Brief    string
	Standard string
}

// Definition is a tool, as [Tool] returns it.
type Definition struct {
	name string
	doc  Doc
	run  func(*Call, json.RawMessage) (any, error)
	origin
}

// Doc is the documentation of a tool for agents and people. Brief and Effect are
// required. Tier 1 shows Brief; tier 2 adds Standard, When, WhenNot and the
// first example; tier 3 shows everything.
type Doc struct {
	Brief    string // at most 64 characters
	Standard string
	Full     string
	Group    string // empty: the part of the name before the dot

	Category    Category
	Effect      Effect
	Reach       Reach    // empty: the tool drives no browser
	URL         []string // JSON pointers to parameters that hold URLs it loads
	Files       []string // JSON pointers to parameters that name files of the host
	Idempotent  bool
	OpenWorld   bool     // reaches beyond the plugin and its parameters
	Needs       []string // tools that must have been called before, such as cdp.open
	Positional  []string // parameters that can be given as plain words, in this order
	Steps       string   // parameter that lists calls of the plugin's other tools; see [Call.Run]
	Examples    []Example
	ExitCodes   []string // names from Plugin.ExitCodes
	Aliases     []string
	Keywords    []string
	Tasks       []string // phrases that an agent would search for
	When        string
	WhenNot     string
	Related     []Related
	Limitations []string

	Since        string
	Experimental bool
	Deprecated   *Deprecated
}

// Example is one call and its outcome.
type Example struct {
	Title string
	Kind  Kind // empty: Common
	// Params is a value of the tool's parameter type, or a map.
	Params   any
	ExitCode int
	// Result of the call. When it is nil on a Runnable example with exit code 0,
	// the manifest build runs the function and records its result.
	Result   any
	Runnable bool // the call needs nothing but the plugin
	Before   []Before
}

// Tool returns the definition of a tool that run implements. P is the type of
// its parameters, usually a struct; R is the type of its result.
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

// registered is set once, while the plugin's package initialises: the main of a
// reactor is never called, and its exports cannot be passed a plugin.
var registered Plugin

// Register sets the plugin that this program implements. Call it from init.
func Register(p Plugin) {
	registered = p
	warm()
}
