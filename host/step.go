package host

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest"
)

// Step is what to do next, as data. Only a front end knows how it is typed or called: the command line renders a step
// as a command, an MCP server as a call of one of its own tools.
type Step struct {
	Op Op
	// Tool is the qualified name that the step is about: a tool, a group or a plugin. Empty means the whole catalog.
	Tool string
	// Params are the parameters of an OpCall, an object. Nil means none.
	Params json.RawMessage
	// Choose names the parameters whose values the caller still has to choose. A step that has any cannot be run as it
	// is: front ends show it as a form to fill in, or show the tool's documentation instead.
	Choose []string
	// Query is what an OpSearch looks for, or the pattern of an OpListen.
	Query   string
	Options StepOptions
	// Args are the arguments of an operator's step, in the order of its command.
	Args []string
}

// Op is the kind of a step.
type Op string

// The steps that any caller can take.
const (
	OpCall     Op = "call"     // run Tool
	OpDescribe Op = "describe" // read the documentation of Tool at Options.Tier
	OpList     Op = "list"     // list Tool, a plugin or a group
	OpSearch   Op = "search"   // search for Query, in the plugin Tool if it is set
	OpListen   Op = "listen"   // stream the events of the plugin Tool that match Query
)

// The steps that only an operator can take. Their names are those of the commands.
const (
	OpAuditHead     Op = "audit head"
	OpDocsExport    Op = "docs export" // Args: options and names
	OpDoctor        Op = "doctor"
	OpHelp          Op = "help"           // Args: the words of a command
	OpPluginBuild   Op = "plugin build"   // Args: a folder
	OpPluginInstall Op = "plugin install" // Args: a file, and options
	OpPluginList    Op = "plugin list"
	OpPluginShow    Op = "plugin show"   // Args: a plugin
	OpPluginSign    Op = "plugin sign"   // Args: as of the command
	OpPluginTrust   Op = "plugin trust"  // Args: a key, or --list
	OpPluginVerify  Op = "plugin verify" // Args: a plugin or a file
	OpPolicyCheck   Op = "policy check"
	OpPolicyExplain Op = "policy explain" // Args: a plugin or a tool
	OpPolicyGrant   Op = "policy grant"   // Args: a plugin, and the rights to grant
	OpProtocolDiff  Op = "cdp --diff"
	OpSecretList    Op = "secret list"
	OpSecretSet     Op = "secret set" // Args: a name
	OpSystem        Op = "system"     // Args: one command of the operating system, such as that of a package manager
)

// StepOptions are the options of a step. Zero values are left out.
type StepOptions struct {
	Tier    int           // of an OpDescribe
	Kind    string        // of an OpSearch: "event" or "type"
	Limit   int           // of an OpSearch
	Timeout time.Duration // of an OpCall or OpListen
	Browser string
	Target  string
	JQ      string
	Until   string // of an OpListen
	Trigger string // of an OpListen: the tool to call once listening
	DryRun  bool
	Out     bool // the result goes to a file that the caller chooses
	Drain   bool // the stream that the result names goes to that file
	Live    bool // use the protocol of the running browser
}

// CallStep runs a tool with parameters, which may be nil.
func CallStep(tool string, params json.RawMessage) Step {
	return Step{Op: OpCall, Tool: tool, Params: params}
}

// DescribeStep reads the documentation of a tool at a tier; 0 is the tier that is shown by default.
func DescribeStep(name string, tier int) Step {
	return Step{Op: OpDescribe, Tool: name, Options: StepOptions{Tier: tier}}
}

// ListStep lists a plugin or a group; "" lists the plugins.
func ListStep(name string) Step { return Step{Op: OpList, Tool: name} }

// SearchStep searches all plugins.
func SearchStep(query string) Step { return Step{Op: OpSearch, Query: query} }

// OperatorStep is a step of the operator.
func OperatorStep(op Op, args ...string) Step { return Step{Op: op, Args: args} }

// At returns the step as one for the browser and the page that o names.
func (s Step) At(o Options) Step {
	s.Options.Target = o.Target
	if o.Browser != DefaultBrowser {
		s.Options.Browser = o.Browser
	}
	return s
}

// With returns the step with other parameters, given as names and values in turn. It panics on a value that is not JSON.
func (s Step) With(params map[string]any) Step {
	raw, err := manifest.Marshal(params)
	if err != nil {
		panic("host: parameters of a step: " + err.Error())
	}
	s.Params = raw
	return s
}

// ForOperator reports whether only an operator can take the step.
func (s Step) ForOperator() bool {
	switch s.Op {
	case OpCall, OpDescribe, OpList, OpSearch, OpListen:
		return false
	}
	return true
}

// redact returns the step with a replacement for each text in it.
func (s Step) redact(text func(string) string, data func(json.RawMessage) json.RawMessage) Step {
	s.Tool, s.Query, s.Params = text(s.Tool), text(s.Query), data(s.Params)
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		s.Args[i] = text(s.Args[i])
	}
	return s
}

// Suggestion is how to fix one violation, as data.
type Suggestion struct {
	Pointer string // of the value that it is about
	Op      SuggestionOp
	Value   string // by Op
}

// SuggestionOp is what a [Suggestion] changes.
type SuggestionOp string

// What a suggestion may be.
const (
	SuggestRename SuggestionOp = "rename" // Value: the name that the schema has
	SuggestRemove SuggestionOp = "remove" // the schema has no such property
	SuggestAdd    SuggestionOp = "add"    // the property is required
	SuggestChoose SuggestionOp = "choose" // Value: the nearest values or names, separated by commas
	SuggestSyntax SuggestionOp = "syntax" // Value: where the JSON text breaks off or goes wrong
	SuggestText   SuggestionOp = "text"   // Value: what the tool itself advises
)

// String is the suggestion in words.
func (s *Suggestion) String() string {
	if s == nil {
		return ""
	}
	name := manifest.CleanLine(lastName(s.Pointer))
	switch s.Op {
	case SuggestRename:
		return "rename " + name + " to " + s.Value
	case SuggestRemove:
		return "remove " + name
	case SuggestAdd:
		return "add " + name
	case SuggestChoose:
		return "did you mean " + s.Value + "?"
	case SuggestSyntax:
		return "fix " + s.Value
	}
	return s.Value
}

// MarshalText makes the suggestion a string where it is shown as JSON.
func (s *Suggestion) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a suggestion that came as a string.
func (s *Suggestion) UnmarshalText(text []byte) error {
	*s = Suggestion{Op: SuggestText, Value: string(text)}
	return nil
}

// TextSuggestion is what a tool advises in words; nil for "".
func TextSuggestion(text string) *Suggestion {
	if text == "" {
		return nil
	}
	return &Suggestion{Op: SuggestText, Value: text}
}

// String is the step in a neutral form, for logs and tests: "describe shop.add tier 3".
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
