package cdp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// hostError turns a keeper's error into the error that callers see, with its code and next steps. It returns other
// errors unchanged.
func (p *catalog) hostError(err error, r *host.Request) error {
	k, ok := errors.AsType[*api.Error](err)
	if !ok {
		return err
	}
	e := &host.Error{Code: host.Code(k.Code), Message: manifest.Clean(k.Message), Cause: err}
	if k.Chrome != nil {
		e.Protocol = &host.ProtocolError{Code: k.Chrome.Code, Message: manifest.Clean(k.Chrome.Message),
			Data: manifest.Clean(k.Chrome.Data)}
	}
	switch k.Code {
	case api.CodeDenied:
		for _, d := range k.Denied {
			e.Denied = append(e.Denied, grant.Denial{Right: manifest.CleanLine(d.Right), Why: manifest.CleanLine(d.Why)})
			if r != nil {
				e.Steps = append(e.Steps, grantStep(r, d.Right))
			}
		}
	case api.CodeNavigationFailed:
		setDeclaredExit(e, exitNavigationFailed, "navigation_failed", nil)
		if adviseNavigation(e, k.Message, r); k.Remedy != "" {
			e.Message += "; " + manifest.Clean(k.Remedy)
		}
	case api.CodeProtocolError:
		if k.Chrome != nil && strings.Contains(k.Chrome.Message, "invalid URL") {
			e.Code = host.InvalidURL
			e.Message += "; expected an absolute URL such as https://example.com/"
			break
		}
		setDeclaredExit(e, exitProtocolError, "protocol_error", nil)
		if k.Chrome != nil {
			e.Message += explanation(k.Chrome.Message)
		}
		if r != nil {
			e.Steps = p.protocolSteps(r, k)
		}
	case api.CodeChromeConnection:
		e.Steps = []step.Step{openStep.At(browserOf(r))}
	case api.CodeChromeLaunch:
		e.Steps = []step.Step{step.Operator(step.OpDoctor)}
	case api.CodeConfigError:
		e.Message += "; set PARLEY_HOME to a folder that you can write to"
		e.Steps = []step.Step{step.Operator(step.OpDoctor)}
	case api.CodeTargetCrashed:
		navigate := toolStep("Page.navigate", nil)
		navigate.Choose = []string{"url"}
		e.Steps = []step.Step{toolStep("Page.reload", nil).At(pageOf(r)), navigate.At(pageOf(r))}
	case api.CodeNotFound:
		e.Steps = []step.Step{toolStep("targets", nil).At(browserOf(r))}
		if k.NoPage {
			e.Steps = []step.Step{openStep.At(browserOf(r))}
		}
	case api.CodeBusy:
		if k.Dialog != nil {
			e.Steps = []step.Step{toolStep("Page.handleJavaScriptDialog", map[string]any{"accept": true}).At(pageOf(r))}
		} else if k.Restless && r != nil {
			e.Message += ", so nothing was called; try again"
			e.Steps = []step.Step{repeatStep(r, step.Options{})}
		}
	case api.CodeLimitExceeded:
		if k.Bytes == 0 { // there are too many pages or the like
			e.Steps = []step.Step{toolStep("targets", nil).At(browserOf(r))}
		} else if e.Message += "; request less, such as a part of the page"; r != nil && isPerson(r.Caller) &&
			!r.Wants.Output {
			e.Message += ", or write the result to a file, which can have any size"
			e.Steps = []step.Step{repeatStep(r, step.Options{Out: true})}
		}
	}
	return e
}

// explanation returns what an unclear message of Chrome means, or "" for other messages.
func explanation(message string) string {
	switch {
	case strings.Contains(message, "Could not compute box model"), strings.Contains(message, "not have a layout object"):
		return "; the node is not rendered: it is not an element, or it or an element around it has display: none"
	case strings.Contains(message, "Node is detached from document"):
		return "; the page has removed the node: find it again"
	}
	return ""
}

// toolStep returns the step that calls a tool of this plugin.
func toolStep(name string, params map[string]any) step.Step {
	step := step.Call(Name+"."+name, nil)
	if params == nil {
		return step
	}
	return step.With(params)
}

// repeatStep returns the step that repeats a call with other options.
func repeatStep(r *host.Request, options step.Options) step.Step {
	step := step.Call(Name+"."+r.Tool, r.Params)
	step.Options = options
	return step.At(r.Options.Place)
}

// browserOf returns the browser and context of a call; pageOf also returns its page.
func browserOf(r *host.Request) step.Place {
	return step.Place{Browser: pageOf(r).Browser, Context: pageOf(r).Context}
}

func pageOf(r *host.Request) step.Place {
	if r == nil {
		return step.Place{}
	}
	return r.Options.Place
}

// setDeclaredExit sets the code of an error to one that the plugin declares.
func setDeclaredExit(e *host.Error, exit int, name string, details json.RawMessage) {
	e.Code, e.Exit = host.Code(name), exit
	e.Tool = &host.ToolError{Exit: exit, Name: name, Details: details}
}

func navigationError(text string, r *host.Request) *host.Error {
	var q struct {
		URL string `json:"url"`
	}
	_ = json.Unmarshal(r.Params, &q)
	e := &host.Error{Message: manifest.CleanLine(fmt.Sprintf("navigation to %s failed: %s", q.URL, text))}
	if adviseNavigation(e, text, r); strings.Contains(text, "ERR_CERT_") {
		e.Message += "; page.open names the lines of [origins] in policy.toml with which the operator can accept it"
		e.Steps = []step.Step{step.Call("page.open", nil).With(map[string]any{"url": q.URL}).At(pageOf(r))}
	}
	details, _ := json.Marshal(map[string]string{"error_text": manifest.CleanLine(text)})
	setDeclaredExit(e, exitNavigationFailed, "navigation_failed", details)
	return e
}

// adviseNavigation adds to the error of a failed navigation how to proceed, by Chrome's reason.
func adviseNavigation(e *host.Error, reason string, r *host.Request) {
	if strings.Contains(reason, "net::ERR_ABORTED") {
		e.Message += "; a download or an empty response shows no page, and the list of targets says whether the page crashed"
		e.Steps = []step.Step{toolStep("targets", nil).At(browserOf(r))}
		return
	}
	advice := api.AdviseLoading(reason)
	e.Message += "; " + advice.Text
	if advice.Tool != "" {
		e.Steps = []step.Step{step.Describe(Name+"."+advice.Tool, 0)}
	}
}

// asynchronous matches expressions whose value is a promise.
var asynchronous = []string{"fetch(", "async ", "async(", "new Promise", "Promise.", ".then(", "import("}

// adviseEvaluation adds to the result of an expression a warning if it is a promise that was not awaited, or a function
// that was not called.
func adviseEvaluation(result *job.Result, r *host.Request) *job.Result {
	if r.Tool != "Runtime.evaluate" && r.Tool != "Runtime.callFunctionOn" {
		return result
	}
	var outcome struct {
		Result struct {
			Type, Subtype, ClassName string
			Value                    json.RawMessage
		}
	}
	var params map[string]any
	if json.Unmarshal(result.Data, &outcome) != nil || json.Unmarshal(r.Params, &params) != nil {
		return result
	}
	expression, _ := params["expression"].(string)
	awaited, _ := params["awaitPromise"].(bool)
	value := outcome.Result
	isAsync := slices.ContainsFunc(asynchronous, func(word string) bool { return strings.Contains(expression, word) })
	warning, calls := "", ""
	if expression != "" {
		warning, calls = api.Uncalled(expression, value.Type)
	}
	likely := isAsync && value.Type == "object" && string(value.Value) == "{}" // by value, a promise is an empty object
	switch {
	case warning != "":
		params["expression"] = calls
		if isAsync {
			params["awaitPromise"] = true
		}
	case !awaited && (value.Subtype == "promise" || value.ClassName == "Promise" || likely):
		warning = "the result is a promise that was not awaited; set awaitPromise to true"
		params["awaitPromise"] = true
	default:
		return result
	}
	result.Warnings = append(result.Warnings, warning)
	result.Steps = append(result.Steps, toolStep(r.Tool, params).At(r.Options.Place))
	return result
}

// maxExceptionDetails is the limit in bytes of the exception details in an error. Larger ones are dropped.
const maxExceptionDetails = 4096

// scriptAdvice says what to write instead of what V8 refuses to parse.
var scriptAdvice = map[string]string{
	"SyntaxError: await is only valid":                         "set replMode to true to await outside a function",
	"SyntaxError: Illegal return statement":                    "the result is the last expression; leave out return",
	"SyntaxError: Function statements require a function name": "put the function in parentheses",
}

func scriptError(raw json.RawMessage) *host.Error {
	var thrown api.Exception
	_ = json.Unmarshal(raw, &thrown)
	text := thrown.String()
	e := &host.Error{Message: manifest.CleanLine(fmt.Sprintf("the page's script threw: %s (line %d, column %d)",
		manifest.Clip(text, 1000), thrown.Line+1, thrown.Column+1))}
	for fault, advice := range scriptAdvice {
		if strings.Contains(text, fault) {
			e.Message += "; " + advice
		}
	}
	if len(raw) > maxExceptionDetails {
		raw = nil
	}
	setDeclaredExit(e, exitScriptError, "script_error", raw)
	return e
}

// chromeUnknown is Chrome's error code for an unknown command.
const chromeUnknown = -32601

// remedies map Chrome's messages about something missing to the steps that provide it.
var remedies = []struct {
	message string
	steps   []step.Step
}{
	{"node with given", steps("DOM.getDocument")},            // returns the ids, which end with the page
	{"No resource with given id", []step.Step{requestsStep}}, // the id ends with the page
	{"Request with the provided ID", []step.Step{requestsStep}},
	{"evicted from inspector cache", steps("Page.reload")}, // Chrome keeps the newest bodies
	{"Invalid InterceptionId", []step.Step{rawStep("events", `{"match":["Fetch.requestPaused"]}`)}},
	{"Cannot find context with specified id", []step.Step{evaluateStep}}, // the context of an object's id
	{"Invalid remote object id", []step.Step{evaluateStep}},
	{"frame id", steps("Page.getFrameTree")},
	{"frame for given id", steps("Page.getFrameTree")},
	{"for given frame", steps("Page.getFrameTree")},
	{"Frame with the given id", steps("Page.getFrameTree")},
	{"No script for id", []step.Step{{
		Op: step.OpListen, Tool: Name, Query: "Debugger.scriptParsed", Options: step.Options{Timeout: 2 * time.Second},
	}}},
	{"rule usage tracking is not enabled", steps("CSS.startRuleUsageTracking")},
	{"Precise coverage has not been started", steps("Profiler.startPreciseCoverage")},
	{"Tracing is not started", []step.Step{startTracing}},
	{"Tracing has already been started", steps("Tracing.end")},
}

var (
	evaluateStep = rawStep("Runtime.evaluate", `{"expression":"document.body"}`)
	requestsStep = rawStep("events", `{"match":["Network.responseReceived"]}`)
	startTracing = rawStep("Tracing.start", `{"transferMode":"ReturnAsStream"}`)
)

// rawStep returns the step that calls a tool with parameters as JSON text. Package variables are initialized at the
// start of each process, and encoding a map there would cost more than all of them.
func rawStep(name, params string) step.Step {
	step := toolStep(name, nil)
	step.Params = json.RawMessage(params)
	return step
}

// steps returns steps that call tools without parameters.
func steps(tools ...string) []step.Step {
	list := make([]step.Step, len(tools))
	for i, tool := range tools {
		list[i] = toolStep(tool, nil)
	}
	return list
}

// protocolSteps returns the next steps after Chrome rejected a command: those that provide what is missing, then the
// command's documentation.
func (p *catalog) protocolSteps(r *host.Request, e *api.Error) (next []step.Step) {
	switch {
	case e.Chrome == nil:
	case e.Chrome.Code == chromeUnknown:
		then := step.List(Name + "." + api.DomainOf(r.Tool)).At(browserOf(r))
		then.Options.Live = true // what this browser has
		next = []step.Step{then}
	case strings.Contains(e.Chrome.Message, "only be executed on top-level targets"):
		next = []step.Step{toolStep("targets", nil).At(browserOf(r))}
	default:
		remedies := p.protocol.remedyFor(r.Tool, e.Chrome.Message)
		if step := p.planStep(r, e.Chrome.Message); step != nil {
			at := len(remedies)
			if getsValue(e.Chrome.Message) {
				at = 0
			}
			remedies = slices.Insert(slices.Clone(remedies), at, *step)
		}
		for _, step := range remedies {
			next = append(next, step.At(r.Options.Place))
		}
	}
	if _, known := p.protocol.Command(r.Tool); known {
		next = append(next, step.Describe(Name+"."+r.Tool, 0))
	}
	return next
}

// planStep returns the step that makes the calls before a command that Chrome rejected, and the command again with the
// caller's other values; nil if nothing comes before the command. If a value is missing, all that were given are kept.
func (p *catalog) planStep(r *host.Request, message string) *step.Step {
	flow := p.Flow(r.Tool)
	if flow == nil {
		return nil
	}
	step := step.Plan(Name+"."+r.Tool, r.Params)
	if !strings.Contains(message, "must be specified") && !strings.Contains(message, "must be provided") {
		step = retryPlan(step.Tool, flow, r.Params)
	}
	c, _ := p.protocol.Command(r.Tool)
	step.Options.DryRun = c.Effect == protocol.Destructive
	return &step
}

// getsValue reports whether a message is about a value, or a call that has to come first, which a plan knows better
// than the table of remedies.
func getsValue(message string) bool {
	return remedyIn(message) != nil && !strings.Contains(message, "evicted") && !strings.Contains(message, "already")
}

// remedyFor returns the steps that provide what a message says is missing.
func (t translation) remedyFor(tool, message string) []step.Step {
	if known := remedyIn(message); known != nil {
		return known
	}
	if enable := t.enableCommand(tool, message); enable != "" {
		return steps(enable)
	}
	return nil
}

// remedyIn returns the steps of the table for a message.
func remedyIn(message string) []step.Step {
	for _, r := range remedies {
		if strings.Contains(message, r.message) {
			return r.steps
		}
	}
	return nil
}

// enableCommand returns the command that enables the domain that a message says is disabled, as in "DOM agent needs to
// be enabled first": the domain that it names, or else the rejected command's own; "" for other messages.
func (t translation) enableCommand(tool, message string) string {
	words := strings.Fields(message)
	disabled := slices.ContainsFunc(words, func(w string) bool { return strings.Trim(w, ".") == "enabled" }) &&
		!strings.Contains(message, "while")
	if !disabled && message != "Enable agent first." {
		return ""
	}
	domains := []string{api.DomainOf(tool)}
	if len(words) > 1 && slices.Contains([]string{"agent", "domain", "must", "should"}, words[1]) {
		domains = []string{words[0], api.DomainOf(tool)}
	}
	for _, domain := range domains {
		if enable := domain + ".enable"; enable != tool {
			if _, known := t.Command(enable); known {
				return enable
			}
		}
	}
	return ""
}

// retryPlan returns the step that plans a call again: with its parameters, but without those that other tools return.
func retryPlan(tool string, flow *manifest.Flow, params json.RawMessage) step.Step {
	value, err := jsontext.Decode(params, jsontext.Limits{Bytes: host.MaxParams})
	given, ok := value.(map[string]any)
	if err != nil || !ok {
		return step.Plan(tool, nil)
	}
	for _, v := range flow.Values {
		removeAt(given, strings.Split(v.Pointer[1:], "/"))
	}
	if len(given) == 0 {
		return step.Plan(tool, nil)
	}
	return step.Plan(tool, jsontext.Marshal(given))
}

func removeAt(v any, steps []string) {
	switch at := v.(type) {
	case map[string]any:
		if len(steps) == 1 {
			delete(at, steps[0])
		} else if next, ok := at[steps[0]]; ok {
			removeAt(next, steps[1:])
		}
	case []any:
		if len(at) > 0 && len(steps) > 1 {
			removeAt(at[0], steps[1:])
		}
	}
}
