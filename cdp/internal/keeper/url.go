package keeper

import "strings"

const blank = "about:blank"

// MayOpen reports whether anybody but the person may open a URL: one of http or https, or the blank page. What begins so is read so by Chrome, too, which
// drops blanks before a scheme and line breaks within.
func MayOpen(url string) bool { return url == "" || url == blank || web(url) }

func web(url string) bool {
	scheme, _, ok := strings.Cut(url, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// mayShow reports whether a page of anybody but the person may show a URL, in Chrome's own spelling: one that may be opened, the blank page that Chrome shows in
// the place of what it does not open, and the error page of what did not load.
func mayShow(url string) bool {
	return MayOpen(url) || strings.HasPrefix(url, blank+"#") || strings.HasPrefix(url, blank+"?") || url == "chrome-error://chromewebdata/"
}
