package target

import (
	"context"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

// Unknown fields of later browsers and invalid text of pages must not break the engine's own calls.
func TestPageInfoToleratesUnknownFields(t *testing.T) {
	withTracker(t, func(tr *Tracker, page *Target, f *muxtest.Browser, _ *heard) {
		opened := make(chan api.Page, 1)
		go func() {
			p, err := tr.PageInfo(context.Background(), page)
			if err != nil {
				t.Error(err)
			}
			opened <- p
		}()
		f.Answer(<-f.Sent,
			`{"targetInfo":{"targetId":"T","type":"hologram","title":"\ud800 x","title2":{},"url":"u","attached":true,"embedderData":[1],"subtype":"new"}}`)
		if p := <-opened; p.URL != "u" || p.Title != "\ufffd x" {
			t.Errorf("page %+v", p)
		}
	})
}
