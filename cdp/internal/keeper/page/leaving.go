package page

import (
	"context"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// While a page is being left for a document of another process, Chrome runs nothing in it: calls of page.js wait until
// the server of that document responds.

// Leaving returns the address to which a navigation of the page is under way, "" if there is none.
func Leaving(v *Visit) string {
	v.Keeper.Mux.Lock()
	defer v.Keeper.Mux.Unlock()
	return v.Page.PendingURL
}

// StayUntil interrupts what waits in the page from a time on, if the page is being left then, until the function that
// it returns is called.
func StayUntil(v *Visit, until time.Time) (stop func()) {
	all := v.Ctx
	ctx, cancel := context.WithCancel(all)
	t := v.Page
	timer := time.AfterFunc(time.Until(until), func() {
		leaving := func() (bool, *api.Error) { return t.PendingURL != "", nil }
		if v.Keeper.Mux.Wait(ctx, "for a navigation", leaving) == nil {
			cancel()
		}
	})
	v.Ctx = ctx
	return func() {
		timer.Stop()
		cancel()
		v.Ctx = all
	}
}

// IsClosed reports whether a call failed because the page is closed, as by a click on what closes it.
func IsClosed(v *Visit, err *api.Error) bool {
	if err.Code != api.CodeNotFound || err.Target != v.Page.ID {
		return false
	}
	ctx, cancel := context.WithTimeout(v.Ctx, time.Second) // its session ends a moment before
	defer cancel()
	return v.Keeper.Mux.Wait(ctx, "for the page to close", func() (bool, *api.Error) { return v.Page.Closed, nil }) == nil
}
