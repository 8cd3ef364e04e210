package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/parley-tools/parley/host"
)

const maxResponseHeader = 64 << 10 // bytes of the status line and all headers

// transport makes a transport for one hop, which is dropped with it: a connection that was opened under one grant, to
// an address that this grant names, must never serve a request under another. Because a connection never serves a
// second request, HTTP/1.1 is enough.
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
