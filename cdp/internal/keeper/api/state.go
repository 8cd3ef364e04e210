package api

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// State is what the browser context of a session stores for some origins.
type State struct {
	Cookies []Cookie `json:"cookies"`
	// Local and Session have the entries of localStorage and sessionStorage by origin, each as [[key,value],...]. They
	// stay as Chrome wrote them, because their texts need not be valid Unicode.
	Local   map[string]json.RawMessage `json:"local_storage,omitempty"`
	Session map[string]json.RawMessage `json:"session_storage,omitempty"`
}

// Cookie is a cookie with the fields that setting it again requires.
type Cookie struct {
	Name      string        `json:"name"`
	Value     string        `json:"value"`
	Domain    string        `json:"domain"` // with a dot at its beginning, unless it is for that host only
	Path      string        `json:"path"`
	Expires   float64       `json:"expires"` // in seconds since 1970; negative for a session cookie
	HTTPOnly  bool          `json:"httpOnly,omitempty"`
	Secure    bool          `json:"secure,omitempty"`
	SameSite  string        `json:"sameSite,omitempty"`
	Priority  string        `json:"priority,omitempty"`
	Partition *PartitionKey `json:"partitionKey,omitempty"`
}

// PartitionKey is the top-level site that a cookie is partitioned by.
type PartitionKey struct {
	Site     string `json:"topLevelSite"`
	Ancestor bool   `json:"hasCrossSiteAncestor"`
}

// StateLoaded counts what was loaded. Left are the origins whose sessionStorage was not loaded, because the session's
// current page has another origin.
type StateLoaded struct {
	Cookies int      `json:"cookies"`
	Items   int      `json:"items"`
	Left    []string `json:"left,omitempty"`
}

// MaxState is the size limit of a state as JSON, in bytes.
const MaxState = 16 << 20

// StateRequest saves the state of origins, or loads one.
type StateRequest struct {
	Origins []string `json:"origins"`
	State   *State   `json:"state,omitempty"` // to load
}

// CheckSize rejects a state above [MaxState].
func (s State) CheckSize() *Error {
	if len(scan.Marshal(s)) > MaxState {
		return &Error{Code: CodeLimitExceeded, Message: "these origins store more than 16 MiB; name fewer origins"}
	}
	return nil
}

// CookiesOf returns the cookies that would be sent to one of the origins.
func CookiesOf(all []Cookie, origins []string) []Cookie {
	found := []Cookie{}
	for _, c := range all {
		sent := func(origin string) bool { return c.sentTo(origin, origins) }
		if slices.ContainsFunc(origins, sent) {
			found = append(found, c)
		}
	}
	return found
}

// Expired reports whether browsers have deleted the cookie by now.
func (c Cookie) Expired(now time.Time) bool {
	return c.Expires >= 0 && c.Expires <= float64(now.Unix())
}

// Key identifies the cookie in a browser context: setting another one with the same key replaces it.
func (c Cookie) Key() string {
	return string(scan.Marshal([]any{c.Name, c.Domain, c.Path, c.Partition}))
}

// sentTo reports whether a cookie would be sent to an origin. A partitioned cookie is sent if its partition is the
// site of one of origins.
func (c Cookie) sentTo(origin string, origins []string) bool {
	u, err := url.Parse(origin)
	if err != nil || !hostWithin(hostOf(u), c.Domain) {
		return false
	}
	if c.Secure && u.Scheme != "https" && !isLoopback(u.Hostname()) {
		return false
	}
	return c.Partition == nil || slices.ContainsFunc(origins, func(top string) bool {
		site, err := url.Parse(c.Partition.Site)
		of, _ := url.Parse(top)
		return err == nil && site.Scheme == of.Scheme && hostWithin(hostOf(of), "."+hostOf(site))
	})
}

// hostWithin reports whether a host matches a cookie's domain: it is the domain, or below a domain that begins with a
// dot.
func hostWithin(host, domain string) bool {
	above, wide := strings.CutPrefix(domain, ".")
	return host == above || wide && above != "" && strings.HasSuffix(host, domain)
}

// hostOf returns the host of a URL without its port, an IPv6 address in brackets.
func hostOf(u *url.URL) string { return strings.TrimSuffix(u.Host, ":"+u.Port()) }

// isLoopback reports whether Chrome sends secure cookies to a host even over http.
func isLoopback(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasPrefix(host, "127.") || host == "::1"
}

// Param returns the cookie as Storage.setCookies takes it: with a domain it would be for all hosts below, too.
func (c Cookie) Param() map[string]any {
	scheme := "http"
	if c.Secure {
		scheme = "https"
	}
	p := map[string]any{
		"name": c.Name, "value": c.Value, "path": c.Path, "secure": c.Secure, "httpOnly": c.HTTPOnly,
		"url": scheme + "://" + strings.TrimPrefix(c.Domain, ".") + c.Path,
	}
	if strings.HasPrefix(c.Domain, ".") {
		p["domain"] = c.Domain
	}
	if c.Expires >= 0 {
		p["expires"] = c.Expires
	}
	for name, value := range map[string]string{"sameSite": c.SameSite, "priority": c.Priority} {
		if value != "" {
			p[name] = value
		}
	}
	if c.Partition != nil {
		p["partitionKey"] = c.Partition
	}
	return p
}
