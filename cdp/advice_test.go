package cdp

import (
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/host"
)

// TestProtocolAdvice maps messages of Chromium to the first step that follows from them; "" where only the
// documentation helps.
func TestProtocolAdvice(t *testing.T) {
	p := New(Config{})
	for _, c := range []struct {
		tool, message string
		code          int
		want          string
	}{
		{"DOM.querySelector", "Could not find node with given id", -32000,
			"parley cdp DOM.getDocument --browser b --target t"},
		{"DOM.resolveNode", "No node with given id found", -32000, "parley cdp DOM.getDocument --browser b --target t"},
		{"CSS.getComputedStyleForNode", "CSS agent was not enabled", -32000, "parley cdp CSS.enable --browser b --target t"},
		{"CSS.enable", "DOM agent needs to be enabled first.", -32000, "parley cdp DOM.enable --browser b --target t"},
		{"DOMSnapshot.captureSnapshot", "DOM snapshot agent hasn't been enabled.", -32000,
			"parley cdp DOMSnapshot.enable --browser b --target t"},
		{"Accessibility.getRootAXNode", "Accessibility has not been enabled.", -32000,
			"parley cdp Accessibility.enable --browser b --target t"},
		{"CSS.takeCoverageDelta", "CSS rule usage tracking is not enabled", -32000,
			"parley cdp CSS.startRuleUsageTracking --browser b --target t"},
		{"Performance.setTimeDomain", "Cannot set time domain while performance metrics collection is enabled.", -32000, ""},
		{"Page.getSubApps", "'Page.getSubApps' wasn't found", -32601, "parley cdp --diff --browser b"},
		{"Page.future", "'Page.future' wasn't found", -32601, "parley cdp --diff --browser b"},
		{"Page.captureScreenshot", "Command can only be executed on top-level targets", -32000,
			"parley cdp targets --browser b"},
		{"PWA.getOsAppState", "Unknown web-app manifest id", -32602, ""},
	} {
		r := &host.Request{Tool: c.tool, Options: host.Options{Browser: "b", Target: "t"}}
		got := p.protocolSteps(r, &keeper.Error{Chrome: &keeper.ChromeError{Code: c.code, Message: c.message}})
		describe := "parley cdp " + c.tool + " --describe"
		if c.tool == "Page.future" {
			describe = c.want // an unknown command has no documentation
		}
		if c.want == "" && (len(got) != 1 || got[0] != describe) || c.want != "" &&
			(got[0] != c.want || got[len(got)-1] != describe) {
			t.Errorf("%s: %s: got %q, want %s", c.tool, c.message, got, c.want)
		}
	}
}
