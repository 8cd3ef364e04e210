package keeper

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

// What a session has set up is for its own pages, and ends with it.
func TestSetups(t *testing.T) {
	withPage(t, func(t *testing.T, e *engine, f *muxtest.Browser) {
		e.mux.Lock()
		page := e.tracker.targets["T"]
		page.owner = "user/one"
		script := func(text string) []api.PageScript {
			return []api.PageScript{{Plugin: "p", SHA256: strings.Repeat("0", 64), Text: text}}
		}
		e.owners.setups.of("user/two").scripts = script("theirs")
		e.owners.setups.apply(page)
		e.owners.setups.of("user/one").scripts = script("own")
		e.owners.setups.apply(page)
		e.mux.Unlock()
		synctest.Wait()
		if n := len(f.Sent); n != 1 {
			t.Fatalf("%d commands were sent", n)
		}
		q := <-f.Sent
		if q.Method != "Page.addScriptToEvaluateOnNewDocument" || strings.Contains(string(q.Params), "theirs") {
			t.Errorf("sent: %s %s", q.Method, q.Params)
		}

		_, err := e.tenancy.closeAll(context.Background(), func(session string) bool { return session == "user/one" },
			func(*target) bool { return false })
		if err != nil || e.owners.setups.bySession["user/one"] != nil || e.owners.setups.bySession["user/two"] == nil {
			t.Errorf("%v; left: %v", err, e.owners.setups.bySession)
		}
	})
}

// A world is of one script of one plugin.
func TestWorlds(t *testing.T) {
	t.Parallel()
	script := api.PageScript{Plugin: "p", Name: "s", SHA256: strings.Repeat("a", 64)}
	for _, other := range []api.PageScript{
		{Plugin: "q", Name: script.Name, SHA256: script.SHA256},
		{Plugin: script.Plugin, Name: "t", SHA256: script.SHA256},
		{Plugin: script.Plugin, Name: script.Name, SHA256: strings.Repeat("b", 64)},
	} {
		if other.World() == script.World() {
			t.Errorf("%+v has the world of %+v", other, script)
		}
	}
}
