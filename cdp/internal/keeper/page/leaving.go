package page

// Leaving returns the address of the page's navigation that is under way, or "" if there is none. While a page is
// being left for a document of another process, Chrome runs nothing in it: calls of page.js wait until the new
// document's server responds.
func Leaving(v *Visit) string {
	return Locked(v, func() string { return v.Page.PendingURL })
}
