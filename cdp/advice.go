package cdp

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// chromeUnknown is Chrome's error code for an unknown command.
const chromeUnknown = -32601

// remedies map Chrome's messages about something missing to the steps that provide it.
var remedies = []struct {
	message string
	steps   []host.Step
}{
	{"node with given", steps("DOM.getDocument")},            // returns the ids, which end with the page
	{"No resource with given id", []host.Step{requestsStep}}, // the id ends with the page
	{"Request with the provided ID", []host.Step{requestsStep}},
	{"evicted from inspector cache", steps("Page.reload")}, // Chrome keeps the newest bodies
	{"Invalid InterceptionId", []host.Step{rawStep("events", `{"match":["Fetch.requestPaused"]}`)}},
	{"Cannot find context with specified id", []host.Step{evaluateStep}}, // the context of an object's id
	{"Invalid remote object id", []host.Step{evaluateStep}},
	{"frame id", steps("Page.getFrameTree")},
	{"frame for given id", steps("Page.getFrameTree")},
	{"for given frame", steps("Page.getFrameTree")},
	{"Frame with the given id", steps("Page.getFrameTree")},
	{"No script for id", []host.Step{{
		Op: host.OpListen, Tool: Name, Query: "Debugger.scriptParsed", Options: host.StepOptions{Timeout: 2 * time.Second},
	}}},
	{"rule usage tracking is not enabled", steps("CSS.startRuleUsageTracking")},
	{"Precise coverage has not been started", steps("Profiler.startPreciseCoverage")},
	{"Tracing is not started", []host.Step{startTracing}},
	{"Tracing has already been started", steps("Tracing.end")},
}

var (
	evaluateStep = rawStep("Runtime.evaluate", `{"expression":"document.body"}`)
	requestsStep = rawStep("events", `{"match":["Network.responseReceived"]}`)
	startTracing = rawStep("Tracing.start", `{"transferMode":"ReturnAsStream"}`)
)

// rawStep returns the step that calls a tool with JSON. The variables of a package are made at the start of each
// process, where encoding a map would cost more than all of them.
func rawStep(name, params string) host.Step {
	step := toolStep(name, nil)
	step.Params = json.RawMessage(params)
	return step
}

// steps returns steps that call tools without parameters.
func steps(tools ...string) []host.Step {
	list := make([]host.Step, len(tools))
	for i, tool := range tools {
		list[i] = toolStep(tool, nil)
	}
	return list
}

// protocolSteps returns the next steps after Chrome rejected a command: those that provide what is missing, then the
// command's documentation.
func (p *catalog) protocolSteps(r *host.Request, e *api.Error) (next []host.Step) {
	switch {
	case e.Chrome == nil:
	case e.Chrome.Code == chromeUnknown:
		step := host.ListStep(Name + "." + api.DomainOf(r.Tool)).At(browserOf(r))
		step.Options.Live = true // what this browser has
		next = []host.Step{step}
	case strings.Contains(e.Chrome.Message, "only be executed on top-level targets"):
		next = []host.Step{toolStep("targets", nil).At(browserOf(r))}
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
			next = append(next, step.At(r.Options))
		}
	}
	if _, known := p.protocol.Command(r.Tool); known {
		next = append(next, host.DescribeStep(Name+"."+r.Tool, 0))
	}
	return next
}

// planStep returns the step that makes the calls before a command that Chrome rejected, and the command again with the
// caller's other values; nil if nothing comes before the command. If a value is missing, all that were given are kept.
func (p *catalog) planStep(r *host.Request, message string) *host.Step {
	flow := p.Flow(r.Tool)
	if flow == nil {
		return nil
	}
	step := host.PlanStep(Name+"."+r.Tool, r.Params)
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
func (t translation) remedyFor(tool, message string) []host.Step {
	if known := remedyIn(message); known != nil {
		return known
	}
	if enable := t.enableCommand(tool, message); enable != "" {
		return steps(enable)
	}
	return nil
}

// remedyIn returns the steps of the table for a message.
func remedyIn(message string) []host.Step {
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
func retryPlan(tool string, flow *manifest.Flow, params json.RawMessage) host.Step {
	value, err := jsontext.Decode(params, jsontext.Limits{Bytes: host.MaxParams})
	given, ok := value.(map[string]any)
	if err != nil || !ok {
		return host.PlanStep(tool, nil)
	}
	for _, v := range flow.Values {
		removeAt(given, strings.Split(v.Pointer[1:], "/"))
	}
	if len(given) == 0 {
		return host.PlanStep(tool, nil)
	}
	return host.PlanStep(tool, jsontext.Marshal(given))
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
