package api

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/manifest"
)

// RequiresPage reports whether a command goes to a page unless a target is named. Browser.getWindowForTarget refers to
// the page that it is sent to.
func RequiresPage(method string) bool {
	return !IsBrowserDomain(DomainOf(method)) || method == "Browser.getWindowForTarget"
}

// IsBrowserDomain reports whether commands of a domain go to the browser unless a target is named.
func IsBrowserDomain(domain string) bool {
	return slices.Contains([]string{"Browser", "Target", "SystemInfo", "Tethering"}, domain)
}

// DomainOf returns the domain of a command or an event.
func DomainOf(method string) string {
	domain, _, _ := strings.Cut(method, ".")
	return domain
}

// RingInfo describes the stored events.
type RingInfo struct {
	Kept    int   `json:"kept"`
	Bytes   int   `json:"bytes"`
	Dropped int64 `json:"dropped"`
	LastSeq int64 `json:"last_seq"`
}

// EventsRequest reads stored events.
type EventsRequest struct {
	// Since is the last sequence number already read; zero reads all.
	Since int64 `json:"since,omitempty"`
	// Patterns are event names in which * matches any characters. Empty matches all events.
	Patterns []string `json:"patterns,omitempty"`
	Target   string   `json:"target,omitempty"`
	// URL is a part of the request's URL, or for other events of the page's URL. Empty matches all.
	URL string `json:"url,omitempty"`
	// Status selects responses by their HTTP status, such as 404, or class, such as 4xx. "failed" selects what ended
	// without a response, and the classes 4xx and 5xx. Empty matches all events.
	Status string `json:"status,omitempty"`
	// Newest returns the newest events, the newest first. Otherwise the oldest come first.
	Newest bool `json:"newest,omitempty"`
	// Limit is the maximum number of events. Zero means 1000.
	Limit int `json:"limit,omitempty"`
}

// Events is the response to an EventsRequest. Dropped counts the lost events after Since. To read on, pass LastSeq
// as the next Since. A record of a request whose own parameters lack the URL has it as "url".
type Events struct {
	Events  []json.RawMessage `json:"events"`
	Dropped int64             `json:"dropped"`
	LastSeq int64             `json:"last_seq"`
}

// ListenRequest streams events as they arrive. While it lasts, the domains of its patterns are enabled: on every
// target, or on Target and its frames and workers.
type ListenRequest struct {
	Patterns []string `json:"patterns"`
	// URL and Status are as in EventsRequest. They do not apply to Until.
	URL    string `json:"url,omitempty"`
	Status string `json:"status,omitempty"`
	Target string `json:"target,omitempty"`
	// Until is a pattern. The first event that matches it is the last one sent.
	Until string `json:"until,omitempty"`
	// Max ends the stream after that many events. Zero means no limit.
	Max int `json:"max,omitempty"`
	// TimeoutMS ends the stream. Zero means no limit.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// ListenEnd is the reason why a stream ended: until, timeout, max or closed.
type ListenEnd struct {
	End string `json:"end"`
}

// ListenEnables reports whether a stream of a domain's events enables the domain. Listening is a read, so it does not
// enable domains that change something: enabling Fetch pauses every request until it is continued. The debugger is
// enabled without pauses.
func ListenEnables(domain string) bool {
	enable, known := protocol.Embedded().Command(domain + ".enable")
	return !known || enable.Effect == protocol.Read || domain == DebuggerDomain
}

// CheckPatterns returns an error for a text that is not a pattern of event names.
func CheckPatterns(patterns ...string) *Error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return Errorf(CodeInvalidArgs, "%q is not the name of an event or a pattern such as Network.*", manifest.Clip(p, 80))
		}
	}
	return nil
}

// Matches reports whether an event's name matches one of the patterns, such as Network.*.
func Matches(patterns []string, method string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, method)
		return ok
	})
}

// DebuggerDomain is the domain that the keeper enables without its pauses.
const DebuggerDomain = "Debugger"
