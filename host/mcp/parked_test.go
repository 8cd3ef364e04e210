package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
)

// TestParkedCall checks a plugin's call that waits half-way for the reply to its question: the reply is valid once, for
// its client and the very call, and what was called before is not called again.
func TestParkedCall(t *testing.T) {
	f := newFixture(t, mcp.Minimal, policy(nestedOnly))
	url := f.listen(t, mcp.HTTPConfig{})
	send := func(name, arguments, state, reply string) (*sdk.CallToolResult, error) {
		t.Helper()
		o := client{revision: "2026-07-28", answer: "accept"}.options()
		o.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
		s, err := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, o).Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1},
			&sdk.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		p := &sdk.CallToolParams{Name: "shop__order__nested", Arguments: json.RawMessage(arguments), RequestState: state}
		if reply != "" {
			p.InputResponses = sdk.InputResponseMap{"confirm": &sdk.ElicitResult{Action: reply}}
		}
		return s.CallTool(t.Context(), p)
	}
	ask := func() string {
		t.Helper()
		asked, err := send("One", `{}`, "", "")
		if err != nil || !asked.NeedsInput() {
			t.Fatalf("%+v %v", asked, err)
		}
		return asked.RequestState
	}
	state := ask()
	begun := f.shop.callLog()
	if strings.Count(begun, "nested") != 1 || strings.Contains(begun, "cancel") {
		t.Fatalf("ran %q before the reply", begun)
	}
	for what, try := range map[string]func() (*sdk.CallToolResult, error){
		"another client":      func() (*sdk.CallToolResult, error) { return send("Two", `{}`, state, "accept") },
		"other parameters":    func() (*sdk.CallToolResult, error) { return send("One", `{"a":1}`, state, "accept") },
		"another state":       func() (*sdk.CallToolResult, error) { return send("One", `{}`, state+"A", "accept") },
		"a call but no reply": func() (*sdk.CallToolResult, error) { return send("One", `{}`, state, "") },
	} {
		if r, err := try(); err == nil || !strings.Contains(err.Error(), "belongs to another call") {
			t.Errorf("%s: %+v %v", what, r, err)
		}
	}
	if now := f.shop.callLog(); now != begun {
		t.Fatalf("ran %q", now)
	}
	r, err := send("One", ` { } `, state, "accept")
	if now := f.shop.callLog(); err != nil || r.IsError || strings.Count(now, "nested") != 1 ||
		strings.Count(now, "cancel") != 1 {
		t.Errorf("its own reply: %+v %v, ran %q", r, err, now)
	}
	if _, err := send("One", `{}`, state, "accept"); err == nil {
		t.Error("a reply was accepted twice")
	}
	if r, err = send("One", `{}`, ask(), "decline"); err != nil || !r.IsError ||
		strings.Count(f.shop.callLog(), "cancel") != 1 {
		t.Errorf("declined: %+v %v, ran %q", r, err, f.shop.callLog())
	}
	if e := f.rec.last(); e.Tool != "shop.order.nested" || e.Err == nil {
		t.Errorf("recorded %+v", e)
	}
	// No more than 16 calls wait, and the end of the server ends them.
	for range 16 {
		ask()
	}
	if r, err = send("One", `{}`, "", ""); err != nil || !r.IsError || r.NeedsInput() {
		t.Errorf("one too many: %+v %v", r, err)
	}
	f.Shutdown(t.Context(), host.Errorf(host.Interrupted, "the test ends"))
	if strings.Count(f.shop.callLog(), "cancel") != 1 {
		t.Errorf("ran %q at the end", f.shop.callLog())
	}
}
