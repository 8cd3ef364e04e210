package page

import (
	"context"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// Leaving returns the address of the page's navigation that is under way, or "" if there is none. While a page is
// being left for a document of another process, Chrome runs nothing in it: calls of page.js wait until the new
// document's server responds.
func Leaving(v *Visit) string {
	return Locked(v, func() string { return v.Page.PendingURL })
}

// StayUntil cancels waits in the page from a time on, if the page is being left then. It does so until the returned
// function is called.
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
