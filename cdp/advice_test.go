package cdp

import (
	"reflect"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
)

// TestProtocolSteps maps messages of Chromium to the first suggested step, or nil if only the
// documentation helps.
func TestProtocolSteps(t *testing.T) {
	p := New(Config{})
	at := step.Place{Browser: "b", Target: "t"}
	page := func(tool string) *step.Step {
		step := toolStep(tool, nil).At(at)
		return &step
	}
	browser := func(next step.Step) *step.Step {
		next = next.At(step.Place{Browser: "b"})
		return &next
	}
	live := browser(step.List("cdp.Page"))
	live.Options.Live = true
	for _, c := range []struct {
		tool, message string
		code          int
		want          *step.Step
		plan          string // "first" or "last": where the step is that makes the calls before the command
	}{
		{"DOM.querySelector", "Could not find node with given id", -32000, page("DOM.getDocument"), "first"},
		{"DOM.resolveNode", "No node with given id found", -32000, page("DOM.getDocument"), "first"},
		{"CSS.getComputedStyleForNode", "CSS agent was not enabled", -32000, page("CSS.enable"), "last"},
		{"CSS.enable", "DOM agent needs to be enabled first.", -32000, page("DOM.enable"), ""},
		{"DOMSnapshot.captureSnapshot", "DOM snapshot agent hasn't been enabled.", -32000, page("DOMSnapshot.enable"), ""},
		{"Accessibility.getRootAXNode", "Accessibility has not been enabled.", -32000, page("Accessibility.enable"), "last"},
		{"CSS.takeCoverageDelta", "CSS rule usage tracking is not enabled", -32000,
			page("CSS.startRuleUsageTracking"), "first"},
		{"Performance.setTimeDomain",
			"Cannot set time domain while performance metrics collection is enabled.", -32000, nil, ""},
		{"Page.getSubApps", "'Page.getSubApps' wasn't found", -32601, live, ""},
		{"Page.future", "'Page.future' wasn't found", -32601, live, ""},
		{"Page.captureScreenshot", "Command can only be executed on top-level targets", -32000,
			browser(toolStep("targets", nil)), ""},
		{"PWA.getOsAppState", "Unknown web-app manifest id", -32602, nil, ""},
	} {
		got := p.protocolSteps(&host.Request{Job: job.Job{Tool: c.tool, Options: job.Options{Place: at}}},
			&api.Error{Chrome: &api.ChromeError{Code: c.code, Message: c.message}})
		var want []step.Step
		if c.want != nil {
			want = append(want, *c.want)
		}
		plan := step.Plan("cdp."+c.tool, nil).At(at)
		switch c.plan {
		case "first":
			want = append([]step.Step{plan}, want...)
		case "last":
			want = append(want, plan)
		}
		if c.tool != "Page.future" { // an unknown command has no documentation
			want = append(want, step.Describe("cdp."+c.tool, 0))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s: got %v, want %v", c.tool, c.message, got, want)
		}
	}
}

// TestRemediesExist checks that every tool in the next steps exists.
func TestRemediesExist(t *testing.T) {
	p := New(Config{})
	for _, r := range remedies {
		for _, next := range r.steps {
			if next.Op == step.OpListen {
				if _, ok := p.protocol.Event(next.Query); !ok || next.Tool != Name {
					t.Errorf("%s: there is no event %s", r.message, next.Query)
				}
				continue
			}
			name, ok := strings.CutPrefix(next.Tool, Name+".")
			if tool, err := p.Tool(name); !ok || tool == nil || err != nil {
				t.Errorf("%s: there is no tool %s", r.message, next.Tool)
			}
		}
	}
}

// TestExplanation checks that a message of Chrome that does not say what is wrong is explained.
func TestExplanation(t *testing.T) {
	p := &Provider{}
	for message, want := range map[string]string{
		"Could not compute box model.":       "display: none",
		"Node does not have a layout object": "display: none",
		"Node is detached from document":     "find it again",
		"Could not find node with given id":  "",
		"Invalid remote object id":           "",
	} {
		e := p.hostError(&api.Error{Code: api.CodeProtocolError, Message: "DOM.x failed: " + message,
			Chrome: &api.ChromeError{Code: -32000, Message: message}}, nil)
		_, added, _ := strings.Cut(host.AsError(e).Message, message)
		if !strings.Contains(added, want) || want == "" && added != "" {
			t.Errorf("%s: %q", message, added)
		}
	}
}
