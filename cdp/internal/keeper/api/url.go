package api

import (
	"net/url"
	"strings"
)

// BlankURL is the blank page.
const BlankURL = "about:blank"

// mayOpen reports whether callers other than the command line may open a URL: an http or https URL, or the blank
// page. Chrome reads some URLs differently, because it ignores blanks before a scheme and line breaks inside; mayOpen
// rejects such URLs.
func mayOpen(url string) bool { return url == "" || url == BlankURL || IsWebURL(url) }

// IsWebURL reports whether a URL is an http or https URL.
func IsWebURL(url string) bool {
	scheme, _, ok := strings.Cut(url, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// MayShow reports whether a page of a caller other than the command line may show a URL, as Chrome writes it. Besides
// the URLs that may be opened, these are the blank page that Chrome shows instead of URLs that it blocks, and the
// error page of a failed load.
func MayShow(url string) bool {
	return mayOpen(url) || strings.HasPrefix(url, BlankURL+"#") || strings.HasPrefix(url, BlankURL+"?") ||
		url == "chrome-error://chromewebdata/"
}

// IsFromWeb reports whether the content at a URL, as Chrome writes it, came from the web: a page, or a frame or
// worker that a page created from its own data. A target without a URL may still become anything, so it does not
// pass.
func IsFromWeb(url string) bool {
	if url == "" {
		return false
	}
	for _, made := range []string{"about:", "data:", "blob:http://", "blob:https://", "blob:null/"} {
		if strings.HasPrefix(url, made) {
			return true
		}
	}
	return MayShow(url)
}

// SameOrigin reports whether a URL has an origin, such as "http://127.0.0.1:8931".
func SameOrigin(raw, origin string) bool {
	for _, prefix := range []string{"view-source:", "blob:", "filesystem:"} {
		raw = strings.TrimPrefix(raw, prefix)
	}
	u, err := url.Parse(raw)
	return err == nil && strings.EqualFold(u.Scheme+"://"+u.Host, origin)
}

// OriginOf returns the origin of an http or https URL, such as "https://example.com", as a browser writes it; "" for
// other texts.
func OriginOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || !IsWebURL(raw) || u.Hostname() == "" {
		return ""
	}
	scheme := strings.ToLower(u.Scheme)
	port := map[string]string{"http": ":80", "https": ":443"}[scheme]
	return scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), port)
}
