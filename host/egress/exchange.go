package egress

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/outbound"
)

const maxURL = 8 << 10

// exchange is one request on its way through redirects: what the next hop requests, and where.
type exchange struct {
	client   *Client
	rules    outbound.Rules
	outbound outbound.Rights

	method         string
	header         http.Header // set by the guest
	body           []byte
	url            *url.URL
	target         origin.Origin       // origin of url
	granted        origin.Origin       // origin of the grant that covers target
	status         int                 // status of the hop's response; 0 if there is none yet
	redirectedFrom string              // origin of the previous hop; "" at the first
	sentSecrets    map[string][]string // values by name, in the forms that are searched in redirects
}

// start copies the guest's request.
func (x *exchange) start(r *outbound.Request) error {
	x.method, x.body = cmp.Or(r.Method, http.MethodGet), r.Body
	if err := checkMethod(x.method); err != nil {
		return err
	}
	var err error
	if x.header, err = headerOf(r.Headers); err != nil {
		return err
	}
	if err := x.setURL(r.URL); err != nil {
		return host.Errorf(host.InvalidURL, "%v", err)
	}
	return nil
}

// setURL makes a URL the target of the next hop.
func (x *exchange) setURL(rawURL string) error {
	if len(rawURL) > maxURL {
		return fmt.Errorf("the URL has %d bytes; at most %d are allowed", len(rawURL), maxURL)
	}
	to, err := origin.Of(rawURL)
	if err != nil {
		return err
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return fmt.Errorf("the text after %s is not the path and query of a URL", to)
	}
	u.Host = strings.TrimPrefix(to.String(), to.Scheme+"://")
	x.url, x.target = u, to
	return nil
}

// hop sends one request. It returns the response, or nil if that was a redirect, which the next hop follows.
func (x *exchange) hop(ctx context.Context) (*outbound.Response, error) {
	if err := x.checkGrants(); err != nil {
		return nil, err
	}
	if x.client.cfg.Tracer == nil {
		return x.sendHop(ctx)
	}
	o := host.Operation{Op: "request", Method: x.method, Server: x.granted.String()}
	ctx, end := x.client.cfg.Tracer.Begin(ctx, o)
	response, err := x.sendHop(ctx)
	o.Status = x.status
	end(o.Ended(err))
	return response, err
}

// sendHop is hop within the grants.
func (x *exchange) sendHop(ctx context.Context) (*outbound.Response, error) {
	x.status = 0
	header, query, err := x.headers(ctx)
	if err != nil {
		return nil, hostError(ctx, x.target, err)
	}
	// The use is recorded once there is a connection and before anything is written to it.
	recordUse := func(httptrace.GotConnInfo) {
		if x.outbound.OnRequest != nil {
			x.outbound.OnRequest(x.method, x.target.String())
		}
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: recordUse})
	to := *x.url
	to.RawQuery = query
	request, err := http.NewRequestWithContext(traced, x.method, to.String(), bytes.NewReader(x.body))
	if err != nil {
		return nil, hostError(ctx, x.target, err)
	}
	request.Header = header
	transport, err := x.transport(ctx, request)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, hostError(ctx, x.target, err)
	}
	defer response.Body.Close()
	x.status = response.StatusCode
	if location := response.Header.Get("Location"); location != "" && isRedirect(response.StatusCode) {
		return nil, x.follow(response.StatusCode, location)
	}
	result, err := readResponse(response, x.client.cfg.MaxBody)
	if err != nil {
		return nil, hostError(ctx, x.target, err)
	}
	return result, nil
}

// checkGrants checks the hop against the grants. Methods are granted by name: GET does not include HEAD.
func (x *exchange) checkGrants() error {
	var methods []string
	for _, g := range x.outbound.HTTP {
		granted, err := origin.Parse(g.URL)
		if err != nil || !granted.Covers(x.target) {
			continue
		}
		if slices.Contains(g.Methods, x.method) {
			x.granted = granted
			return nil
		}
		methods = append(methods, g.Methods...)
	}
	why := "no grant reaches " + x.target.String()
	if len(methods) > 0 {
		why = "only granted there: " + strings.Join(methods, ", ")
	}
	if x.redirectedFrom != "" {
		why = x.redirectedFrom + " redirected there; " + why
	}
	return deniedError(x.right(), why)
}

func (x *exchange) right() string { return "http:" + x.method + ":" + x.target.String() }

func isRedirect(status int) bool {
	return slices.Contains([]int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect}, status)
}

// follow makes the target of a redirect the next hop, as browsers do: 303 turns every method but HEAD into GET, 301
// and 302 turn POST into GET, and 307 and 308 repeat the request. The headers that the guest set for one origin are
// not sent to another, nor to the first one again after a redirect back to it.
func (x *exchange) follow(status int, location string) error {
	previous := x.target
	err := errors.New("it is not a valid URL")
	if u, unreadable := x.url.Parse(location); unreadable == nil {
		err = x.setURL(u.String())
	}
	if name := x.leakedSecret(location); name != "" && (err != nil || x.target != previous) {
		return deniedError("secret:"+name, previous.String()+" redirected to another origin with this secret in the URL")
	}
	if err != nil {
		return host.Errorf(host.InvalidURL, "%s redirected to an invalid URL: %v", previous, err)
	}
	x.redirectedFrom = previous.String()
	if status == http.StatusSeeOther && x.method != http.MethodGet && x.method != http.MethodHead ||
		status < http.StatusSeeOther && x.method == http.MethodPost {
		x.method, x.body = http.MethodGet, nil
		for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"} {
			x.header.Del(name)
		}
	}
	if x.target != previous {
		maps.DeleteFunc(x.header, func(name string, _ []string) bool { return !slices.Contains(crossOriginHeaders, name) })
	}
	return nil
}

// leakedSecret returns the name of a secret that was sent before and that a URL contains, also encoded, or "".
func (x *exchange) leakedSecret(location string) string {
	texts := location
	for _, decode := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
		if plain, err := decode(location); err == nil {
			texts += "\n" + plain
		}
	}
	texts = strings.ToLower(texts) // host names lose their case on the way
	for _, name := range slices.Sorted(maps.Keys(x.sentSecrets)) {
		isLeaked := func(form string) bool { return strings.Contains(texts, strings.ToLower(form)) }
		if slices.ContainsFunc(x.sentSecrets[name], isLeaked) {
			return name
		}
	}
	return ""
}

// crossOriginHeaders are the headers of a guest that are also sent to other origins.
var crossOriginHeaders = []string{"Accept", "Accept-Language", "Content-Type", "User-Agent"}

const maxResponseHeader = 64 << 10 // bytes of the status line and all headers

// transport makes a transport that only one hop uses: a connection that was opened under one grant, to an address that
// this grant names, must never serve a request under another. Because a connection never serves a second request,
// HTTP/1.1 is enough.
//
// The context that net/http passes to dial functions outlives the request, and so do connections that it dials for
// later use. Everything here is bound to the context of the request instead.
func (x *exchange) transport(ctx context.Context, r *http.Request) (*http.Transport, error) {
	security := &tls.Config{RootCAs: x.client.cfg.RootCAs} // TLS 1.2 or newer by default
	tr := &http.Transport{
		TLSClientConfig:        security,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxResponseHeader,
		OnProxyConnectResponse: checkProxyResponse,
	}
	proxy, err := x.proxy(r)
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		tr.Proxy = http.ProxyURL(proxy)
		tr.DialContext = func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return clientFirst(ctx, conn, err)
		}
		return tr, nil
	}
	dial := func() (net.Conn, error) {
		return x.client.guard(x.rules).dial(ctx, target{x.target.Host, x.target.Port, true, x.right()})
	}
	tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
		conn, err := dial()
		return clientFirst(ctx, conn, err)
	}
	tr.DialTLSContext = func(context.Context, string, string) (net.Conn, error) {
		conn, err := dial()
		if err != nil {
			return nil, err
		}
		security.ServerName = x.target.Host
		secure := tls.Client(conn, security)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		return clientFirst(ctx, secure, nil)
	}
	return tr, nil
}

// proxy returns the proxy for a request, or nil.
func (x *exchange) proxy(r *http.Request) (*url.URL, error) {
	if !x.rules.Proxy {
		return nil, nil
	}
	proxy, err := x.client.cfg.Proxy(r)
	if err != nil {
		// The cause may contain the proxy's password.
		return nil, host.Errorf(host.ConfigError,
			"the environment names a proxy with an invalid URL: check HTTP_PROXY and HTTPS_PROXY")
	}
	return proxy, nil
}

func checkProxyResponse(_ context.Context, _ *url.URL, request *http.Request, response *http.Response) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	return host.Errorf(host.Unavailable, "the proxy responded %d to the request to connect to %s", response.StatusCode,
		request.Host)
}

// clientFirstConn is a connection on which the client writes first. Reading waits until then; otherwise net/http would
// log what a server sends unasked.
type clientFirstConn struct {
	net.Conn
	once    sync.Once
	written chan struct{}
}

// clientFirst wraps a connection, and closes it when the context is done.
func clientFirst(ctx context.Context, conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	p := &clientFirstConn{Conn: conn, written: make(chan struct{})}
	context.AfterFunc(ctx, func() { p.Close() })
	return p, nil
}

func (p *clientFirstConn) allowReads() { p.once.Do(func() { close(p.written) }) }

func (p *clientFirstConn) Read(b []byte) (int, error) {
	<-p.written
	return p.Conn.Read(b)
}

func (p *clientFirstConn) Write(b []byte) (int, error) {
	p.allowReads()
	return p.Conn.Write(b)
}

func (p *clientFirstConn) Close() error {
	p.allowReads()
	return p.Conn.Close()
}
