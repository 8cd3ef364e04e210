//go:build linux

package cli

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// TestManyClients has 64 clients over HTTP call one plugin at once: each call waits for its turn, none is refused or
// lost. With PARLEY_HAMMER=1 each makes 200 calls.
func TestManyClients(t *testing.T) {
	t.Parallel()
	const clients = 64
	calls := 1
	if os.Getenv("PARLEY_HAMMER") != "" {
		calls = 200
	}
	home := shortHome(t)
	server := serveAgents(t, home)
	var wg sync.WaitGroup
	var served atomic.Int32
	for i := range clients {
		a := httpAgent(t, server.url, revisions[i%len(revisions)], agentTokens[i%len(agentTokens)], fmt.Sprint(i))
		wg.Go(func() {
			for range calls {
				data, failed := a.call("text.hash", map[string]any{"text": "a"}, map[string]any{"timeout": "300s"})
				if failed || data == nil {
					t.Errorf("client %d: %v", i, data)
					return
				}
				served.Add(1)
			}
		})
	}
	wg.Wait()
	if n := int(served.Load()); n != clients*calls {
		t.Errorf("%d of %d calls were served", n, clients*calls)
	}
}
