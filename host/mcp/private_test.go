package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/mcp"
)

// TestPrivatePaths checks that no answer over HTTP has a path of this machine: no error with any code and a path in
// each of its texts, and no warning. A client on this machine gets them whole.
func TestPrivatePaths(t *testing.T) {
	const path = private + "/state/approvals"
	broken := policy(func(host.Ask) (host.Decision, error) {
		return host.Decision{}, host.Errorf(host.ConfigError, "%s:3:1: expected a table", path)
	})
	forEachWire(t, mcp.Progressive, trustNetwork, func(t *testing.T, f *fixture, connect func(client) *sdk.ClientSession) {
		s := connect(client{})
		isRemote := strings.HasPrefix(t.Name()[strings.Index(t.Name(), "/")+1:], "http")
		check := func(what string, result any, err error) {
			t.Helper()
			raw, _ := json.Marshal(result)
			text := string(raw)
			if err != nil {
				text = err.Error()
			}
			if strings.Contains(text, private) == isRemote || !strings.Contains(text, "approvals") {
				t.Errorf("%s: %s", what, text)
			}
		}
		for _, o := range host.Outcomes() {
			f.shop.handlers["echo"] = func(context.Context, *host.Request) (*job.Result, error) {
				if o.Code == host.OK {
					return &job.Result{Data: json.RawMessage(`{}`), Warnings: []string{"cannot write " + path}}, nil
				}
				return nil, &host.Error{Code: o.Code, Message: "mkdir " + path + ": not a folder",
					Details:  []host.Detail{{Parameter: "/a", Expected: path}},
					Denied:   []grant.Denial{{Right: "fs:ro:" + path + "=/data", Why: path}},
					Protocol: &host.ProtocolError{Message: path}, Effects: []string{"fs:write:" + path},
					Cause: errors.New(path)}
			}
			for name, arguments := range map[string]string{"shop__echo": `{}`, "call_tool": `{"name":"shop.echo"}`} {
				r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
				check(string(o.Code)+" of "+name, r, err)
			}
		}
	})
	forEachWire(t, mcp.Progressive, broken, func(t *testing.T, _ *fixture, connect func(client) *sdk.ClientSession) {
		s := connect(client{})
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "shop__echo", Arguments: json.RawMessage(`{}`)})
		raw, _ := json.Marshal(r)
		if isRemote := strings.Contains(t.Name(), "http"); err != nil || strings.Contains(string(raw), private) == isRemote ||
			!strings.Contains(string(raw), "approvals:3:1: expected") {
			t.Errorf("%s, %v", raw, err)
		}
	})
}
