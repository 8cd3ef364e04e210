// Package step says what a caller can do next, as data: steps, and suggestions for parameters that were wrong. A front
// end renders both in its own form.
package step

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest"
)

// DefaultBrowser is the name of the browser of calls that do not name one.
const DefaultBrowser = "default"

// Place says where in the browsers a call acts.
type Place struct {
	Browser string `json:"browser,omitempty"` // "": the default browser
	Target  string `json:"target,omitempty"`  // "": the current target
	// Context is a further browser context of the session, with pages and logins of its own. "" is the first one.
	Context string `json:"context,omitempty"`
}

// Step is what to do next, as data. A front end renders it in its own form: the command line as a command, an MCP
// server as a call of one of its tools.
type Step struct {
	Op Op
	// Tool is the qualified name of a tool, a group or a plugin. Empty means the whole catalog.
	Tool string
	// Params are the parameters of an OpCall: a JSON object, or nil for none.
	Params json.RawMessage
	// Choose names the parameters that the caller still has to choose. Such a step cannot be run as it is: front ends show
	// a form to fill in, or the tool's documentation.
	Choose []string
	// Query is the text of an OpSearch or the pattern of an OpListen.
	Query   string
	Options Options
	// Args are the arguments of an operator's step, in the order of the command, or the number of the example of a plan.
	Args []string
}

// Op is the kind of a step.
type Op string

// The steps for any caller.
const (
	OpCall     Op = "call"     // run Tool
	OpDescribe Op = "describe" // read the documentation of Tool at Options.Tier
	OpList     Op = "list"     // list Tool, a plugin or a group
	OpSearch   Op = "search"   // search for Query, in the plugin Tool if it is set
	OpPlan     Op = "plan"     // make the calls that lead to Tool; some of Params are missing
	OpListen   Op = "listen"   // stream the events of the plugin Tool that match Query
)

// The steps for the operator only. They have the names of the commands.
const (
	OpApprovalsAllow Op = "approvals allow" // Args: an id
	OpApprovalsList  Op = "approvals list"
	OpAuditHead      Op = "audit head"
	OpDocsExport     Op = "docs export" // Args: options and names
	OpDoctor         Op = "doctor"
	OpHelp           Op = "help"           // Args: the words of a command
	OpLogin          Op = "login"          // Args: a plugin, and options
	OpPluginBuild    Op = "plugin build"   // Args: a folder
	OpPluginCheck    Op = "plugin check"   // Args: a plugin or a file
	OpPluginInstall  Op = "plugin install" // Args: a file, and options
	OpPluginList     Op = "plugin list"
	OpPluginLock     Op = "plugin lock" // Args: plugins
	OpPluginNew      Op = "plugin new"  // Args: a name, and options
	OpPluginPack     Op = "plugin pack" // Args: a file, and options
	OpPluginPull     Op = "plugin pull" // Args: a reference, and options
	OpPluginSchema   Op = "plugin schema"
	OpPluginShow     Op = "plugin show" // Args: a plugin
	OpPluginSign     Op = "plugin sign" // Args: as of the command
	OpPluginSync     Op = "plugin sync"
	OpPluginTest     Op = "plugin test"   // Args: a plugin or a file, and options
	OpPluginUpdate   Op = "plugin update" // Args: a plugin, or --scripts
	OpPluginTrust    Op = "plugin trust"  // Args: a key, or --list
	OpPluginWrap     Op = "plugin wrap"   // Args: a file
	OpPluginVerify   Op = "plugin verify" // Args: a plugin or a file
	OpPolicyCheck    Op = "policy check"
	OpPolicyExplain  Op = "policy explain" // Args: a plugin or a tool
	OpPolicyGrant    Op = "policy grant"   // Args: a plugin, and the rights to grant
	OpResult         Op = "result"         // Args: the id of a call
	OpSecretList     Op = "secret list"
	OpSecretSet      Op = "secret set" // Args: a name
	OpSystem         Op = "system"     // Args: the words of a command of the operating system, or a whole command line
)

// Options are the options of a step. Zero values are omitted.
type Options struct {
	Tier, Limit int           // tier of an OpDescribe, limit of an OpSearch
	Kind        string        // set for an OpSearch: "event" or "type"
	Timeout     time.Duration // set for an OpCall or OpListen
	Place
	JQ      string
	Until   string // set for an OpListen
	Trigger string // set for an OpListen: the tool to call once listening
	DryRun  bool
	Out     bool   // write the result to a file
	File    string // with Out: the file; "" leaves it to the caller
	Drain   bool   // write the byte stream that the result refers to into File
	Live    bool   // use the protocol of the running browser
	Session string // session of the user, if the caller named it for this call

	// The following are as in job.Options, and only for a corrected call.
	MaxBytes   int
	OnDialog   string
	Wait       string
	Isolate    string
	SendAnyway bool
	Unlimited  bool
}

// Call returns the step that calls a tool with parameters, which may be nil.
func Call(tool string, params json.RawMessage) Step {
	return Step{Op: OpCall, Tool: tool, Params: params}
}

// Plan returns the step that makes the calls before a call of a tool, and then that call. With Options.DryRun it
// makes none of them.
func Plan(tool string, params json.RawMessage) Step {
	return Step{Op: OpPlan, Tool: tool, Params: params}
}

// Describe returns the step that shows the documentation of a tool at a tier; 0 means the default tier.
func Describe(name string, tier int) Step {
	return Step{Op: OpDescribe, Tool: name, Options: Options{Tier: tier}}
}

// List returns the step that lists a plugin or a group; "" lists the plugins.
func List(name string) Step { return Step{Op: OpList, Tool: name} }

// Search returns the step that searches all plugins.
func Search(query string) Step { return Step{Op: OpSearch, Query: query} }

// Operator returns a step for the operator.
func Operator(op Op, args ...string) Step { return Step{Op: op, Args: args} }

// At returns the step at a place. It does not name the default browser.
func (s Step) At(p Place) Step {
	if p.Browser == DefaultBrowser {
		p.Browser = ""
	}
	s.Options.Place = p
	return s
}

// In returns the step in a session of the user if the step depends on the session. "" leaves it as it is.
func (s Step) In(session string) Step {
	if session != "" && (!s.ForOperator() || s.Op == OpResult) && s.Op != OpList {
		s.Options.Session = session
	}
	return s
}

// With returns the step with other parameters. It panics on a value that cannot be encoded as JSON.
func (s Step) With(params map[string]any) Step {
	raw, err := manifest.Marshal(params)
	if err != nil {
		panic("step: parameters: " + err.Error())
	}
	s.Params = raw
	return s
}

// ForOperator reports whether the step is for the operator only.
func (s Step) ForOperator() bool {
	switch s.Op {
	case OpCall, OpDescribe, OpList, OpSearch, OpPlan, OpListen:
		return false
	}
	return true
}

// Redact returns the step with text and data applied to its parts.
func (s Step) Redact(text func(string) string, data func(json.RawMessage) json.RawMessage) Step {
	s.Tool, s.Query, s.Params, s.Options.JQ = text(s.Tool), text(s.Query), data(s.Params), text(s.Options.JQ)
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		s.Args[i] = text(s.Args[i])
	}
	return s
}

// String returns the step in a neutral form for logs and tests: "describe shop.add tier 3".
func (s Step) String() string {
	words := []string{string(s.Op)}
	for _, w := range []string{s.Tool, string(s.Params), s.Query} {
		if w != "" {
			words = append(words, w)
		}
	}
	words = append(words, s.Args...)
	if s.Options.Tier > 0 {
		words = append(words, "tier "+strconv.Itoa(s.Options.Tier))
	}
	if s.Options.Timeout > 0 {
		words = append(words, "timeout "+s.Options.Timeout.String())
	}
	if len(s.Choose) > 0 {
		words = append(words, "choose "+strings.Join(s.Choose, ", "))
	}
	return strings.Join(words, " ")
}
