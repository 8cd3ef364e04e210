package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/internal/origin"
)

const maxURL = 8 << 10

// trip is one request on its way through redirects: what the next hop asks, and where.
type trip struct {
	client *Client
	rules  host.EgressRules
	out    host.Outbound

	method string
	header http.Header // the guest's own
	body   []byte
	url    *url.URL
	to     origin.Origin     // of url
	from   string            // origin of the hop that led here; "" at the first
	sent   map[string]string // secrets by name
}

// begin takes over what the guest asks.
func (t *trip) begin(r *host.HTTPRequest) error {
	t.method, t.body = r.Method, r.Body
	if t.method == "" {
		t.method = http.MethodGet
	}
	if err := checkMethod(t.method); err != nil {
		return err
	}
	var err error
	if t.header, err = headerOf(r.Headers); err != nil {
		return err
	}
	if err := t.aim(r.URL); err != nil {
		return host.Errorf(host.InvalidURL, "%v", err)
	}
	return nil
}

// aim points the trip at a URL.
func (t *trip) aim(rawURL string) error {
	if len(rawURL) > maxURL {
		return fmt.Errorf("the URL has %d bytes, and at most %d are allowed", len(rawURL), maxURL)
	}
	to, err := origin.Of(rawURL)
	if err != nil {
		return err
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return fmt.Errorf("what follows %s is not a URL's path and query", to)
	}
	u.Host = strings.TrimPrefix(to.String(), to.Scheme+"://")
	t.url, t.to = u, to
	return nil
}

// hop makes one request. It returns the answer, or nil if that was a redirect, which the trip then follows.
func (t *trip) hop(ctx context.Context) (*host.HTTPResponse, error) {
	if err := t.allowed(); err != nil {
		return nil, err
	}
	header, err := t.headers(ctx)
	if err != nil {
		return nil, failure(ctx, t.to, err)
	}
	// Told when a connection stands and before anything is written to it.
	touched := func(httptrace.GotConnInfo) {
		if t.out.OnRequest != nil {
			t.out.OnRequest(t.method, t.to.String())
		}
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: touched})
	request, err := http.NewRequestWithContext(traced, t.method, t.url.String(), bytes.NewReader(t.body))
	if err != nil {
		return nil, failure(ctx, t.to, err)
	}
	request.Header = header
	transport, err := t.transport(ctx, request)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, failure(ctx, t.to, err)
	}
	defer response.Body.Close()
	if location := response.Header.Get("Location"); location != "" && isRedirect(response.StatusCode) {
		return nil, t.follow(response.StatusCode, location)
	}
	answer, err := read(response, t.client.cfg.MaxBody)
	if err != nil {
		return nil, failure(ctx, t.to, err)
	}
	return answer, nil
}

// allowed holds the hop against the grants. A method is granted by its name: GET does not give HEAD.
func (t *trip) allowed() error {
	var methods []string
	for _, g := range t.out.HTTP {
		granted, err := origin.Parse(g.URL)
		if err != nil || !granted.Covers(t.to) {
			continue
		}
		if slices.Contains(g.Methods, t.method) {
			return nil
		}
		methods = append(methods, g.Methods...)
	}
	why := "no grant reaches " + t.to.String()
	if len(methods) > 0 {
		why = "granted there: " + strings.Join(methods, ", ")
	}
	if t.from != "" {
		why = t.from + " redirected there; " + why
	}
	return denied(t.right(), why)
}

func (t *trip) right() string { return "http:" + t.method + ":" + t.to.String() }

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow points the trip where a redirect says, as browsers do: 303 turns every method but HEAD into GET, 301 and 302 turn POST into GET,
// and 307 and 308 ask the same again. What the guest may have said to one origin in its headers is not told to another, nor to the first
// one again if the way leads back.
func (t *trip) follow(status int, location string) error {
	before := t.to
	err := errors.New("its parts cannot be told apart")
	if u, unreadable := t.url.Parse(location); unreadable == nil {
		err = t.aim(u.String())
	}
	if name := t.repeated(location); name != "" && (err != nil || t.to != before) {
		return denied("secret:"+name, before.String()+" redirected to another origin with this secret in the URL")
	}
	if err != nil {
		return host.Errorf(host.InvalidURL, "%s redirected to what is no URL that can be asked: %v", before, err)
	}
	t.from = before.String()
	if status == http.StatusSeeOther && t.method != http.MethodGet && t.method != http.MethodHead ||
		status < http.StatusSeeOther && t.method == http.MethodPost {
		t.method, t.body = http.MethodGet, nil
		for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"} {
			t.header.Del(name)
		}
	}
	if t.to != before {
		for name := range t.header {
			if !slices.Contains(harmless, name) {
				t.header.Del(name)
			}
		}
	}
	return nil
}

// repeated names a secret that this trip has sent and that a URL holds, "" if there is none. Shorter ones are held by any URL.
func (t *trip) repeated(location string) string {
	const shortest = 4
	texts := location
	for _, decode := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
		if plain, err := decode(location); err == nil {
			texts += "\n" + plain
		}
	}
	texts = strings.ToLower(texts) // names of hosts lose their case on the way
	for name, value := range t.sent {
		if len(value) >= shortest && strings.Contains(texts, strings.ToLower(value)) {
			return name
		}
	}
	return ""
}

// harmless are the headers of a guest that follow it to another origin.
var harmless = []string{"Accept", "Accept-Language", "Content-Type", "User-Agent"}
