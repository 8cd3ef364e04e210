package act

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

// A page in the background is hidden: it draws nothing, its animations are paused, Chrome holds back moves of the
// pointer for seconds, and it may never take a picture of the page. A page gets there when a click opens another
// page.

// wake prepares a hidden page for input: it brings the page to the front. In a browser that Parley did not start, a
// person may be looking at another page, so there it only makes the page behave as if it were in front. Chrome then
// draws it most of the time.
func wake(v *page.Visit) *api.Error {
	tr := v.Keeper.Tracker
	method, params := "Page.bringToFront", json.RawMessage(nil)
	if tr.External {
		method, params = "Emulation.setFocusEmulationEnabled", json.RawMessage(`{"enabled":true}`)
		v.Ledger().Woken = true
	}
	_, err := tr.Sender.Do(v.Ctx, v.Page, method, params)
	return err
}

// isClosed reports whether a call failed because the page is closed, for example by a click that closes it.
func isClosed(v *page.Visit, err *api.Error) bool {
	if err.Code != api.CodeNotFound || err.Target != v.Page.ID {
		return false
	}
	ctx, cancel := context.WithTimeout(v.Ctx, time.Second) // the page's session ends a moment before
	defer cancel()
	return v.Keeper.Mux.Wait(ctx, "for the page to close", func() (bool, *api.Error) { return v.Page.Closed, nil }) == nil
}
