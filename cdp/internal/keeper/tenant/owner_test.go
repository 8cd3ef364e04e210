package tenant

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// withTenants runs a test against a browser in which two sessions have a scope and a page: SOME and OTHER.
func withTenants(t *testing.T, test func(tn *Tenancy, ow *Owners, f *muxtest.Browser)) {
	synctest.Test(t, func(t *testing.T) {
		f := muxtest.New()
		m := mux.New(f, 1<<20)
		tr := target.NewTracker(m, "test", false)
		ow, tn := New(event.New(tr, 300, 1<<20))
		go m.Read()
		for id, by := range map[string]api.Caller{"SOME": someClient, "OTHER": otherClient} {
			entered := make(chan *api.Error)
			go func() {
				_, release, err := tn.Enter(context.Background(), by)
				if err == nil {
					release()
				}
				entered <- err
			}()
			f.Answer(<-f.Sent, `{"browserContextId":"C-`+id+`"}`)
			deny := <-f.Sent
			f.Answer(deny, `{}`)
			if err := <-entered; err != nil || deny.Method != "Browser.setDownloadBehavior" {
				t.Fatalf("%s has no scope: %v; its downloads: %s", id, err, deny.Method)
			}
			f.Attach("", muxtest.Info{ID: id, Type: "page", URL: "http://" + id + "/", Context: "C-" + id})
			synctest.Wait()
		}
		test(tn, ow, f)
		m.Close()
	})
}

func TestSessionsUseOnlyTheirOwn(t *testing.T) {
	withTenants(t, func(tn *Tenancy, ow *Owners, f *muxtest.Browser) {
		f.Attach("session of SOME", muxtest.Info{ID: "POPUP", Type: "page", URL: "http://p/", Opener: "SOME"})
		synctest.Wait()
		for _, tt := range []struct {
			by       api.Caller
			selector string
			found    bool
		}{
			{someClient, "SOME", true}, {someClient, "POPUP", true}, {someClient, "OTHER", false},
			{otherClient, "SOME", false}, {otherClient, "POPUP", false}, {otherClient, "0", true}, {otherClient, "1", false},
			{otherClient, "http://p", false}, {api.CommandLine, "SOME", true},
			{api.CommandLine, "http://p", false}, {api.CommandLine, "", false},
		} {
			if _, err := ow.Resolve(tt.by, tt.selector); tt.found != (err == nil) {
				t.Errorf("%s names %q: %v", tt.by.Name, tt.selector, err)
			}
		}
		for id, denied := range map[string]bool{"SOME": false, "OTHER": true, "NONE": true} {
			q := api.CallRequest{Method: "Target.activateTarget", Params: json.RawMessage(`{"targetId":"` + id + `"}`)}
			if err := tn.Confine(someClient, tn.scopes[someClient.Name], &q); denied != (err != nil) {
				t.Errorf("%s activates %s: %v", someClient.Name, id, err)
			}
		}
	})
}

// The keeper closes pages that their session may not have.
func TestPagesAreEvicted(t *testing.T) {
	withTenants(t, func(_ *Tenancy, ow *Owners, f *muxtest.Browser) {
		closed := func(id string) {
			t.Helper()
			synctest.Wait()
			if len(f.Sent) == 0 {
				t.Errorf("%s is not closed", id)
			} else if q := <-f.Sent; q.Method != "Target.closeTarget" || string(q.Params) != `{"targetId":"`+id+`"}` {
				t.Errorf("%s %s is sent", q.Method, q.Params)
			}
		}
		f.Show(muxtest.Info{ID: "SOME", Type: "page", Context: "C-SOME"}, "file:///etc/passwd")
		closed("SOME")
		f.Show(muxtest.Info{ID: "OTHER", Type: "page", Context: "C-OTHER"}, "chrome://version/")
		closed("OTHER")
		for i := range maxPages {
			f.Attach("", muxtest.Info{ID: fmt.Sprint("P", i), Type: "page", URL: "http://p/", Context: "C-SOME"})
			synctest.Wait()
		}
		if len(f.Sent) > 0 {
			t.Errorf("within the limit %+v is sent", <-f.Sent)
		}
		f.Attach("", muxtest.Info{ID: "MORE", Type: "page", URL: "http://p/", Context: "C-SOME"})
		closed("MORE")
	})
}

// What a session has set up for its pages holds for its present and later ones, until it ends.
func TestSetupsApply(t *testing.T) {
	withTenants(t, func(tn *Tenancy, ow *Owners, f *muxtest.Browser) {
		ow.mux.Lock()
		ow.Setups.Of(someClient.Name).Rules = []*RouteRule{{RouteRule: api.RouteRule{URL: "*", Action: api.RouteBlock}}}
		ow.ApplyToAll(someClient.Name)
		ow.mux.Unlock()
		if q := <-f.Sent; q.Method != "Fetch.enable" || q.Session != "session of SOME" {
			t.Errorf("%+v is sent", q)
		}
		f.Report("session of SOME", "Fetch.requestPaused", map[string]any{"requestId": "1",
			"request": map[string]any{"url": "http://a/", "method": "GET"}})
		if q := <-f.Sent; q.Method != "Fetch.failRequest" {
			t.Errorf("%+v is sent", q)
		}
		f.Attach("", muxtest.Info{ID: "LATER", Type: "page", URL: "http://l/", Context: "C-SOME"})
		f.Attach("", muxtest.Info{ID: "THEIRS", Type: "page", URL: "http://t/", Context: "C-OTHER"})
		if q := <-f.Sent; q.Method != "Fetch.enable" || q.Session != "session of LATER" {
			t.Errorf("%+v is sent", q)
		}
		closing := make(chan *api.Error)
		go func() {
			_, err := tn.CloseSession(context.Background(), someClient.Name)
			closing <- err
		}()
		dispose := <-f.Sent
		f.Answer(dispose, "{}")
		if err := <-closing; err != nil || dispose.Method != "Target.disposeBrowserContext" {
			t.Errorf("%s, %v", dispose.Method, err)
		}
		ow.mux.Lock()
		defer ow.mux.Unlock()
		if tn.scopes[someClient.Name] != nil || ow.Setups.BySession[someClient.Name] != nil ||
			ow.events.Journals.LastSeqOf(someClient.Name) > 0 {
			t.Error("something of the session is left")
		}
	})
}
