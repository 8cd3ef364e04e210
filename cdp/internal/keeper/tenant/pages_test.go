package tenant

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

// TestAbandonedPageIsClosed cancels the creation of a page. The page is closed once it exists, because no caller
// knows it.
func TestAbandonedPageIsClosed(t *testing.T) {
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		ctx, giveUp := context.WithCancel(t.Context())
		ended := make(chan *api.Error, 1)
		go func() {
			_, err := e.Owners.NewPage(ctx, api.Caller{Name: "mcp:one"}, "")
			ended <- err
		}()
		making := <-f.Sent
		giveUp()
		wantResult(t, "an abandoned page", ended, api.CodeTimeout)
		f.Answer(making, `{"targetId":"N"}`)
		synctest.Wait()
		select {
		case q := <-f.Sent:
			if q.Method != "Target.closeTarget" || string(q.Params) != `{"targetId":"N"}` {
				t.Errorf("the browser receives %s %s", q.Method, q.Params)
			}
		default:
			t.Error("the page was not closed")
		}
	})
}

// TestFirstPageIsCreatedOnce starts two first calls of a plugin at once. They share one page.
func TestFirstPageIsCreatedOnce(t *testing.T) {
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		by, s := api.Caller{Name: api.PluginPrefix + "one"}, &Scope{Context: "C",
			firstPageLock: make(chan struct{}, 1)}
		e.Owners.contextOwners["C"] = by.Name
		ended := make(chan *api.Error, 2)
		for range cap(ended) {
			go func() { ended <- e.Tenancy.FirstPage(t.Context(), by, s) }()
		}
		synctest.Wait()
		f.Messages <- `{"method":"Target.attachedToTarget","params":{"sessionId":"N","targetInfo":{"targetId":"N","type":"page","url":"about:blank","title":"about:blank","browserContextId":"C"}}}`
		f.Answer(<-f.Sent, `{"targetId":"N"}`)
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if len(f.Sent) > 0 {
			t.Errorf("the browser also receives %s", (<-f.Sent).Method)
		}
	})
}

// TestPageLimitHoldsForConcurrentRequests creates more pages at once than a caller may have. Each request was
// within the limit when it was sent.
func TestPageLimitHoldsForConcurrentRequests(t *testing.T) {
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		const tooMany = 3
		ended := make(chan *api.Error, maxPages+tooMany)
		for range maxPages + tooMany {
			go func() {
				_, err := e.Owners.NewPage(t.Context(), api.Caller{Name: "mcp:one"}, "")
				ended <- err
			}()
		}
		synctest.Wait()
		for n := range maxPages + tooMany {
			f.Messages <- fmt.Sprintf(
				`{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"P%d","type":"page"}}}`, n)
			f.Answer(<-f.Sent, fmt.Sprintf(`{"targetId":"P%d"}`, n))
			synctest.Wait()
		}
		for range maxPages + tooMany {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		closed := 0
		for len(f.Sent) > 0 {
			if q := <-f.Sent; q.Method == "Target.closeTarget" {
				closed++
			}
		}
		if closed != tooMany {
			t.Errorf("%d of %d pages were closed, expected %d", closed, maxPages+tooMany, tooMany)
		}
	})
}

// TestPageLimit gives a plugin as many pages as it may have. Further requests fail, and a page that opens by itself
// is closed.
func TestPageLimit(t *testing.T) {
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		by := api.Caller{Name: api.PluginPrefix + "one"}
		created := func(n int) {
			f.Messages <- fmt.Sprintf(
				`{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"P%d","type":"page","browserContextId":"C"}}}`, n)
			synctest.Wait()
		}
		e.Owners.contextOwners["C"] = by.Name
		for n := range maxPages {
			if err := e.Owners.checkPageLimit(by); err != nil {
				t.Fatalf("with %d pages: %v", n, err)
			}
			created(n)
		}
		_, opened := e.Owners.NewPage(t.Context(), by, "C")
		made := e.Tenancy.Confine(by, &Scope{Context: "C"}, &api.CallRequest{Method: "Target.createTarget"})
		for _, err := range []*api.Error{opened, made} {
			if err == nil || err.Code != api.CodeLimitExceeded || !strings.Contains(err.Message, "by page.tabs") {
				t.Errorf("a page over the limit: %v", err)
			}
		}
		created(maxPages)
		select {
		case q := <-f.Sent:
			if q.Method != "Target.closeTarget" || string(q.Params) != fmt.Sprintf(`{"targetId":"P%d"}`, maxPages) {
				t.Errorf("the browser receives %s %s", q.Method, q.Params)
			}
		default:
			t.Error("a page over the limit was not closed")
		}
		if err := e.Owners.checkPageLimit(api.CommandLine); err != nil {
			t.Errorf("the command line: %v", err)
		}
	})
}

// TestFrameInBackForwardCacheIsForgotten reports changes of a frame whose page is in the back/forward cache. No
// call can reach that frame.
func TestFrameInBackForwardCacheIsForgotten(t *testing.T) {
	withPage(t, func(t *testing.T, e *rooms, f *muxtest.Browser) {
		const frame = `"targetInfo":{"targetId":"frame","type":"iframe","url":"http://b/"}`
		attached := `{"method":"Target.attachedToTarget","sessionId":"S","params":{"sessionId":"F",` + frame + `}}`
		f.Messages <- attached
		f.Messages <- `{"method":"Target.detachedFromTarget","sessionId":"S","params":{"sessionId":"F","targetId":"frame"}}`
		f.Messages <- `{"method":"Target.targetInfoChanged","params":{` + frame + `}}`
		synctest.Wait()
		if all := e.Owners.ListTargets(api.CommandLine, false); len(all) != 1 {
			t.Errorf("targets %+v", all)
		}
		f.Messages <- attached // the page is restored from the cache
		synctest.Wait()
		if all := e.Owners.ListTargets(api.CommandLine, false); len(all) != 2 || all[1].Parent != "T" {
			t.Errorf("targets with the restored page %+v", all)
		}
	})
}
