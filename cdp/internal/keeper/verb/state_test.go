package verb

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

// A state is for web origins without a path.
func TestStateOrigins(t *testing.T) {
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
		for origin, code := range map[string]string{
			"": api.CodeInvalidArgs, "*": api.CodeInvalidArgs, "file:///etc": api.CodeInvalidArgs,
			"https://a.test/": api.CodeInvalidArgs,
			"ftp://a.test":    api.CodeInvalidArgs, "https://a.test?": api.CodeInvalidArgs,
		} {
			q := api.StateRequest{Origins: []string{origin}}
			if _, err := e.SaveState(t.Context(), api.CommandLine, nil, q); err == nil || err.Code != code {
				t.Errorf("saving %q: %v", origin, err)
			}
			if _, err := e.LoadState(t.Context(), api.CommandLine, nil, q); err == nil || err.Code != code {
				t.Errorf("loading %q: %v", origin, err)
			}
		}
		if len(f.Sent) > 0 {
			t.Errorf("the browser received %+v", <-f.Sent)
		}
	})
}

// TestHiddenPageIsClosed checks that the page in which storage is read is closed afterwards.
func TestHiddenPageIsClosed(t *testing.T) {
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
		page, err := e.Owners.Resolve(api.CommandLine, "")
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		go func() {
			e.closeHidden(page)
			close(closed)
		}()
		q := <-f.Sent
		if q.Method != "Target.closeTarget" || !strings.Contains(string(q.Params), page.ID) {
			t.Errorf("the browser received %s %s", q.Method, q.Params)
		}
		f.Answer(q, `{"success":true}`)
		<-closed
	})
}

// TestNothingIsTypedIntoPageBeingLeft checks that a page which is about to become another one gets no secret.
func TestNothingIsTypedIntoPageBeingLeft(t *testing.T) {
	withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
		page, err := e.Owners.Resolve(api.CommandLine, "")
		if err != nil {
			t.Fatal(err)
		}
		e.Mux.Lock()
		page.PendingURL = "https://b.test/"
		e.Mux.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Type(ctx, api.CommandLine, nil, api.TypeRequest{Text: "secret", Origins: []string{"https://a.test"}})
		if err == nil || err.Code != api.CodeBusy || len(f.Sent) > 0 {
			t.Errorf("%v; the browser received %d commands", err, len(f.Sent))
		}
	})
}
