package page

import (
	"context"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// Leaving returns the address to which a navigation of the page is under way, "" if there is none. While a page is
// being left for a document of another process, Chrome runs nothing in it: calls of page.js wait until the server of
// that document responds.
func Leaving(v *Visit) string {
	v.Keeper.Mux.Lock()
	defer v.Keeper.Mux.Unlock()
	return v.Page.PendingURL
}

// AwaitCommit waits until the page has another document.
func (v *Visit) AwaitCommit(ctx context.Context) *api.Error {
	v.Keeper.Mux.Lock()
	commits := v.Page.Commits
	v.Keeper.Mux.Unlock()
	return v.Keeper.Mux.Wait(ctx, "for another document", func() (bool, *api.Error) {
		return v.Page.Commits > commits, nil
	})
}
