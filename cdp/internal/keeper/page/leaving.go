package page

// Leaving returns the address to which a navigation of the page is under way, "" if there is none. While a page is
// being left for a document of another process, Chrome runs nothing in it: calls of page.js wait until the server of
// that document responds.
func Leaving(v *Visit) string {
	return Locked(v, func() string { return v.Page.PendingURL })
}
