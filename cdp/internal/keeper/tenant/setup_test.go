package tenant

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// What a session has set up is for its own pages, and ends with it.
func TestSetups(t *testing.T) {
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		e.Mux.Lock()
		page := e.Tracker.ByID["T"]
		page.Owner = "user/one"
		script := func(text string) []api.PageScript {
			return []api.PageScript{{Plugin: "p", SHA256: strings.Repeat("0", 64), Text: text}}
		}
		e.Owners.Setups.Of("user/two").Scripts = script("theirs")
		e.Owners.Setups.apply(page)
		e.Owners.Setups.Of("user/one").Scripts = script("own")
		e.Owners.Setups.apply(page)
		e.Mux.Unlock()
		synctest.Wait()
		if n := len(f.Sent); n != 1 {
			t.Fatalf("%d commands were sent", n)
		}
		q := <-f.Sent
		if q.Method != "Page.addScriptToEvaluateOnNewDocument" || strings.Contains(string(q.Params), "theirs") {
			t.Errorf("sent: %s %s", q.Method, q.Params)
		}

		_, err := e.Tenancy.closeAll(context.Background(), func(session string) bool { return session == "user/one" },
			func(*target.Target) bool { return false })
		if err != nil || e.Owners.Setups.BySession["user/one"] != nil || e.Owners.Setups.BySession["user/two"] == nil {
			t.Errorf("%v; left: %v", err, e.Owners.Setups.BySession)
		}
	})
}
