package serve

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command/commandtest"
	"github.com/parley-tools/parley/host"
)

// TestMCPServer serves a client over HTTP, and refuses options that would give everybody access.
func TestMCPServer(t *testing.T) {
	for _, c := range []struct {
		options mcpOptions
		want    host.Code
	}{
		{mcpOptions{Docs: "tiny"}, host.InvalidArgs},
		{mcpOptions{HTTP: "nowhere:"}, host.InvalidArgs},
		{mcpOptions{HTTP: "0.0.0.0:0", NoToken: true}, host.Denied},
		{mcpOptions{HTTP: ":0", TokenFile: "missing"}, host.ConfigError},
	} {
		_, err := newServer(t.Context(), commandtest.New(t, t.TempDir(), ""), c.options)
		if !commandtest.IsCode(err, c.want) {
			t.Errorf("%+v: %v, want %s", c.options, err, c.want)
		}
	}
	server, err := newServer(t.Context(), commandtest.New(t, t.TempDir(), ""), mcpOptions{HTTP: ":0"})
	if err != nil || !strings.HasPrefix(server.URL, "http://127.0.0.1:") || server.Token == "" {
		t.Fatalf("%v: %+v", err, server)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.HTTP(ctx, server.listener, server.config) }()
	cancel()
	<-ended
}
