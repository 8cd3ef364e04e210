package command

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
)

// isCode reports whether an error has a code.
func isCode(err error, code host.Code) bool { return err != nil && host.AsError(err).Code == code }

// TestMCPServer serves a client over HTTP, and refuses options that would give everybody access.
func TestMCPServer(t *testing.T) {
	for _, c := range []struct {
		options MCPOptions
		want    host.Code
	}{
		{MCPOptions{Docs: "tiny"}, host.InvalidArgs},
		{MCPOptions{HTTP: "nowhere:"}, host.InvalidArgs},
		{MCPOptions{HTTP: "0.0.0.0:0", NoToken: true}, host.Denied},
		{MCPOptions{HTTP: ":0", TokenFile: "missing"}, host.ConfigError},
	} {
		if _, err := MCP(t.Context(), front(t, ""), c.options); !isCode(err, c.want) {
			t.Errorf("%+v: %v, want %s", c.options, err, c.want)
		}
	}
	server, err := MCP(t.Context(), front(t, ""), MCPOptions{HTTP: ":0"})
	if err != nil || !strings.HasPrefix(server.URL, "http://127.0.0.1:") || len(server.Token) < minTokenLength {
		t.Fatalf("%v: %+v", err, server)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, nil, nil) }()
	cancel()
	<-ended
}
