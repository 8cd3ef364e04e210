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
