package cdp

import (
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/host"
)

// chromeUnknown is Chrome's error code for an unknown command.
const chromeUnknown = -32601

// remedies map Chrome's messages about something missing to the commands that provide it.
var remedies = []struct {
	message string
	next    []string
}{
	{"node with given", []string{"parley cdp DOM.getDocument"}}, // ids come of it, and end with the page
	{"No resource with given id", []string{"parley cdp Network.enable", "parley cdp Page.reload"}},
	{"Request with the provided ID", []string{"parley cdp Network.enable", "parley cdp Page.reload"}},
	{"Invalid InterceptionId", []string{"parley cdp events --param match=Fetch.requestPaused"}},
	// for an object's id
	{"Cannot find context with specified id", []string{"parley cdp Runtime.evaluate --param expression=document.body"}},
	{"Invalid remote object id", []string{"parley cdp Runtime.evaluate --param expression=document.body"}},
	{"frame id", []string{"parley cdp Page.getFrameTree"}},
	{"frame for given id", []string{"parley cdp Page.getFrameTree"}},
	{"for given frame", []string{"parley cdp Page.getFrameTree"}},
	{"Frame with the given id", []string{"parley cdp Page.getFrameTree"}},
	{"No script for id", []string{"parley cdp --listen Debugger.scriptParsed --timeout 2s"}},
	{"rule usage tracking is not enabled", []string{"parley cdp CSS.startRuleUsageTracking"}},
	{"Precise coverage has not been started", []string{"parley cdp Profiler.startPreciseCoverage"}},
	{"Tracing is not started", []string{"parley cdp Tracing.start --param transferMode=ReturnAsStream"}},
	{"Tracing has already been started", []string{"parley cdp Tracing.end"}},
}

// protocolSteps returns the next steps after Chrome rejected a command: those that provide what is missing, then the
// command's documentation.
func (p *Provider) protocolSteps(r *host.Request, e *keeper.Error) (next []string) {
	switch {
	case e.Chrome == nil:
	case e.Chrome.Code == chromeUnknown:
		next = []string{"parley cdp --diff" + browserOf(r)}
	case strings.Contains(e.Chrome.Message, "only be executed on top-level targets"):
		next = []string{"parley cdp targets" + browserOf(r)}
	default:
		for _, step := range p.remedyFor(r.Tool, e.Chrome.Message) {
			next = append(next, step+pageOf(r))
		}
	}
	if _, known := p.protocol.Command(r.Tool); known {
		next = append(next, "parley cdp "+r.Tool+" --describe")
	}
	return next
}

// remedyFor returns the commands that provide what a message says is missing.
func (p *Provider) remedyFor(tool, answer string) []string {
	for _, l := range remedies {
		if strings.Contains(answer, l.message) {
			return l.next
		}
	}
	if enable := p.enableCommand(tool, answer); enable != "" {
		return []string{"parley cdp " + enable}
	}
	return nil
}

// enableCommand returns the command that enables the domain that a message says is disabled, as in "DOM agent needs to be
// enabled first": the domain that it names, or else the rejected command's own; "" for other messages.
func (p *Provider) enableCommand(tool, answer string) string {
	words := strings.Fields(answer)
	if !slices.ContainsFunc(words, func(w string) bool { return strings.Trim(w, ".") == "enabled" }) ||
		strings.Contains(answer, "while") {
		return ""
	}
	own, _, _ := strings.Cut(tool, ".")
	domains := []string{own}
	if len(words) > 1 && slices.Contains([]string{"agent", "domain", "must", "should"}, words[1]) {
		domains = []string{words[0], own}
	}
	for _, domain := range domains {
		if enable := domain + ".enable"; enable != tool {
			if _, known := p.protocol.Command(enable); known {
				return enable
			}
		}
	}
	return ""
}
