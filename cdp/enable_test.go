package cdp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
)

// TestDomainsToEnable maps what Chrome answers to the domains with which the call is repeated.
func TestDomainsToEnable(t *testing.T) {
	p := New(Config{})
	refused := func(message string) error { return &api.Error{Chrome: &api.ChromeError{Message: message}} }
	for _, c := range []struct {
		tool, data string
		err        error
		enabled    string // already, for this call
		denied     string
		want       string
	}{
		{tool: "Accessibility.getRootAXNode", err: refused("Accessibility has not been enabled."), want: "Accessibility"},
		{tool: "CSS.getLonghandProperties", err: refused("CSS agent was not enabled"), want: "DOM CSS"},
		{tool: "CSS.getLonghandProperties", err: refused("CSS agent was not enabled"), enabled: "DOM", want: "CSS"},
		{tool: "CSS.getLonghandProperties", err: refused("CSS agent was not enabled"), enabled: "DOM CSS"},
		{tool: "CSS.getLonghandProperties", err: refused("CSS agent was not enabled"), denied: "DOM.enable"},
		{tool: "CSS.enable", err: refused("DOM agent needs to be enabled first."), want: "DOM"},
		{tool: "Overlay.enable", err: refused("DOM should be enabled first"), want: "DOM"},
		{tool: "DOM.highlightRect", err: refused("Overlay must be enabled before a tool can be shown"), want: "DOM Overlay"},
		{tool: "DOM.getFlattenedDocument", err: refused("DOM agent hasn't been enabled"), want: "DOM"},
		{tool: "DOM.performSearch", err: refused("DOM agent is not enabled"), want: "DOM"},
		{tool: "Log.startViolationsReport", err: refused("Log is not enabled"), want: "Log"},
		{tool: "Network.setAttachDebugStack", err: refused("Domain must be enabled"), want: "Network"},
		{tool: "Profiler.start", err: refused("Profiler is not enabled"), want: "Profiler"},
		{tool: "Runtime.compileScript", err: refused("Runtime agent is not enabled"), want: "Runtime"},
		{tool: "Runtime.setAsyncCallStackDepth", err: refused("Debugger agent is not enabled"), want: "Debugger"},
		{tool: "ServiceWorker.skipWaiting", err: refused("ServiceWorker domain not enabled"), want: "ServiceWorker"},
		{tool: "WebAudio.getRealtimeData", err: refused("Enable agent first."), want: "WebAudio"},
		{tool: "Debugger.getScriptSource", err: refused("Debugger agent is not enabled"), want: "Debugger"},
		{tool: "Debugger.getScriptSource", err: refused("Debugger agent is not enabled"), denied: "Debugger.enable"},
		{tool: "Performance.getMetrics", data: `{"metrics":[]}`, want: "Performance"},
		{tool: "CSS.getMediaQueries", data: `{"medias":[]}`, want: "DOM CSS"},

		{tool: "Debugger.setBreakpoint", err: refused("Debugger agent is not enabled")},
		{tool: "Security.setOverrideCertificateErrors", err: refused("Security domain not enabled")},
		{tool: "Fetch.continueRequest", err: refused("Fetch domain is not enabled")},
		{tool: "DeviceAccess.selectPrompt", err: refused("DeviceAccess domain is not enabled")},
		{tool: "WebAuthn.getCredentials",
			err: refused("The Virtual Authenticator Environment has not been enabled for this session")},
		{tool: "CSS.takeCoverageDelta", err: refused("CSS rule usage tracking is not enabled")},
		{tool: "Cast.stopCasting", err: refused("You must enable the Media Router feature in order to use Cast.")},
		{tool: "DOM.getOuterHTML", err: refused("Could not find node with given id")},
		{tool: "Performance.getMetrics", data: `{"metrics":[{"name":"Nodes","value":1}]}`},
		{tool: "Runtime.getIsolateId", data: `{"id":"1"}`},
		{tool: "DOM.performSearch", err: &api.Error{Code: api.CodeTimeout, Message: "DOM agent is not enabled"}},
	} {
		functions := call.Functions{MayCall: func(_ context.Context, tool string) bool { return tool != c.denied }}
		r := &host.Request{Job: job.Job{Tool: c.tool}, Ask: functions.Ask}
		got := p.protocol.domainsToEnable(t.Context(), r, strings.Fields(c.enabled), json.RawMessage(c.data), c.err)
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %v, %s: enables %q, want %q", c.tool, c.err, c.data, got, c.want)
		}
	}
}

func TestWarnEnabled(t *testing.T) {
	got := warnEnabled(api.Enabled{Off: []string{"Performance"}, Kept: []string{"CSS", "DOM"}})
	want := []string{
		"Performance was enabled for this call and is off again; cdp.Performance.enable keeps it on",
		"CSS and DOM were enabled for this call and stay on, because ids or settings are lost without them; " +
			"cdp.CSS.disable turns them off",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if none := warnEnabled(api.Enabled{}); none != nil {
		t.Errorf("nothing was enabled: %q", none)
	}
}
