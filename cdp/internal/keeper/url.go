package keeper

import "strings"

const blankURL = "about:blank"

// MayOpen reports whether anybody but the person may open a URL: one of http or https, or the blank page. What begins so is read so by Chrome, too, which
// drops blanks before a scheme and line breaks within.
func MayOpen(url string) bool { return url == "" || url == blankURL || isWebURL(url) }

func isWebURL(url string) bool {
	scheme, _, ok := strings.Cut(url, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// mayShow reports whether a page of anybody but the person may show a URL, in Chrome's own spelling: one that may be opened, the blank page that Chrome shows in
// the place of what it does not open, and the error page of what did not load.
func mayShow(url string) bool {
	return MayOpen(url) || strings.HasPrefix(url, blankURL+"#") || strings.HasPrefix(url, blankURL+"?") || url == "chrome-error://chromewebdata/"
}

// isFromWeb reports whether what shows a URL came from the web, in Chrome's own spelling: a page, or a frame or worker that a page has made of what it holds. One that
// has no URL yet may become anything.
func isFromWeb(url string) bool {
	if url == "" {
		return false
	}
	for _, made := range []string{"about:", "data:", "blob:http://", "blob:https://", "blob:null/"} {
		if strings.HasPrefix(url, made) {
			return true
		}
	}
	return mayShow(url)
}
