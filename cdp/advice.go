package cdp

import (
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/host"
)

// lacks are the answers of Chrome that name what is not there, with the commands that get it.
var lacks = []struct {
	says string
	next []string
}{
	{"Could not find node with given id", []string{"parley cdp DOM.getDocument"}}, // ids come of it, and end with the page
	{"No resource with given identifier", []string{"parley cdp Network.enable", "parley cdp Page.reload"}},
	{"Invalid InterceptionId", []string{"parley cdp events --param match=Fetch.requestPaused"}},
	{"Tracing is not started", []string{"parley cdp Tracing.start --param transferMode=ReturnAsStream"}},
	{"Tracing has already been started", []string{"parley cdp Tracing.end"}},
	{"only be executed on top-level targets", []string{"parley cdp targets"}},
}

// protocolAdvice is what to type after Chrome refused a command: what gets it what it lacks, then its documentation.
func (p *Provider) protocolAdvice(r *host.Request, answer string) (next []string) {
	for _, l := range lacks {
		if strings.Contains(answer, l.says) {
			next = l.next
			break
		}
	}
	if enable := p.enabling(r.Tool, answer); enable != "" {
		next = []string{"parley cdp " + enable}
	}
	var steps []string
	for _, step := range next {
		steps = append(steps, step+pageOf(r))
	}
	return append(steps, "parley cdp "+r.Tool+" --describe")
}

// enabling is the command that turns on the domain that an answer says is off: the one that it names, or else the refused command's own.
func (p *Provider) enabling(tool, answer string) string {
	if !strings.Contains(answer, "enabled") {
		return ""
	}
	named, _, _ := strings.Cut(answer, " ")
	own, _, _ := strings.Cut(tool, ".")
	for _, domain := range []string{named, own} {
		if enable := domain + ".enable"; enable != tool {
			if c, ok := p.protocol.Command(enable); ok {
				return c.Name
			}
		}
	}
	return ""
}

// chromeSays is the text of Chrome's own answer; "" where there is none.
func chromeSays(e *keeper.Error) string {
	if e.Chrome == nil {
		return ""
	}
	return e.Chrome.Message
}
