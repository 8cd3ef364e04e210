package cdp

import (
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/host"
)

// chromeUnknown is Chrome's code for a command that it does not have.
const chromeUnknown = -32601

// remedies are the answers of Chrome that name what is not there, with the commands that get it.
var remedies = []struct {
	message string
	next    []string
}{
	{"node with given", []string{"parley cdp DOM.getDocument"}}, // ids come of it, and end with the page
	{"No resource with given id", []string{"parley cdp Network.enable", "parley cdp Page.reload"}},
	{"Request with the provided ID", []string{"parley cdp Network.enable", "parley cdp Page.reload"}},
	{"Invalid InterceptionId", []string{"parley cdp events --param match=Fetch.requestPaused"}},
	{"Cannot find context with specified id", []string{"parley cdp Runtime.evaluate --param expression=document.body"}}, // for an object's id
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

// protocolSteps is what to type after Chrome refused a command: what gets it what it lacks, then its documentation.
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

// remedyFor are the commands that get what an answer says is not there.
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

// enableCommand is the command that turns on the domain that an answer says is off, as in "DOM agent needs to be enabled first": the one that it
// names, or else the refused command's own.
func (p *Provider) enableCommand(tool, answer string) string {
	words := strings.Fields(answer)
	if !slices.ContainsFunc(words, func(w string) bool { return strings.Trim(w, ".") == "enabled" }) || strings.Contains(answer, "while") {
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
