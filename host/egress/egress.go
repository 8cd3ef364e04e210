// Package egress sends HTTP for guests: within grants, past a dial guard.
//
// A request goes from hop to hop as redirects lead it. Each hop is held against the grants anew, by scheme, host, port and method, and gets
// the secrets that are bound to its own URL and no others. Names are looked up here, once a hop, and an address is dialled only if it is
// public or named by the policy; what was looked at is what is dialled. Nothing is kept from one hop for another: no connection, no cookie.
package egress

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/internal/origin"
)

// Config is what a client is made of. The zero value works: nothing private is dialled, and no proxy is asked.
type Config struct {
	// Rules says what the operator allows of the network as a whole. It is asked at each request; nil allows nothing.
	Rules func() (host.EgressRules, error)
	// UserAgent is sent where a guest names none; default "parley".
	UserAgent string
	// MaxBody bounds the body of an answer, in bytes after decompression; default 8 MiB.
	MaxBody int64
	// Timeout bounds a request with all its redirects, from the first name looked up to the last byte; default 60 s.
	Timeout time.Duration

	// RootCAs are the authorities that servers' certificates are held against; nil: the system's.
	RootCAs *x509.CertPool
	// Resolve looks up the addresses of a name; nil: the system does.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Proxy names the proxy of a request where the rules want one; nil: the environment does (http.ProxyFromEnvironment), which leaves
	// out localhost and loopback addresses.
	Proxy func(*http.Request) (*url.URL, error)
}

const (
	defaultMaxBody = 8 << 20
	defaultTimeout = 60 * time.Second
	maxRedirects   = 10
)

// Client is a host.Egress. It is safe for concurrent use.
type Client struct{ cfg Config }

var _ host.Egress = (*Client)(nil)

// New makes a client.
func New(cfg Config) *Client {
	if cfg.Rules == nil {
		cfg.Rules = func() (host.EgressRules, error) { return host.EgressRules{}, nil }
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "parley"
	}
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = defaultMaxBody
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Resolve == nil {
		cfg.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	if cfg.Proxy == nil {
		cfg.Proxy = http.ProxyFromEnvironment
	}
	return &Client{cfg}
}

// Send makes one request and follows up to ten redirects, as host.Egress says. Where the rules want a proxy, the name of each hop is still
// held against the grants, and which addresses are dialled is for the proxy to judge.
func (c *Client) Send(ctx context.Context, r *host.HTTPRequest, o host.Outbound) (*host.HTTPResponse, error) {
	rules, err := c.cfg.Rules()
	if err != nil {
		return nil, err
	}
	x := &exchange{client: c, rules: rules, outbound: o, sentSecrets: map[string]string{}}
	if err := x.start(r); err != nil {
		return nil, err
	}
	first := x.target
	tooLong := host.Errorf(host.Timeout, "%s and where it led did not answer within %s", first, c.cfg.Timeout)
	// What is cancelled here also ends the connections that the hops opened.
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, tooLong)
	defer cancel()
	for range 1 + maxRedirects {
		response, err := x.hop(ctx)
		if err != nil || response != nil {
			return response, err
		}
	}
	return nil, host.Errorf(host.LimitExceeded, "%s redirected more than %d times, at last to %s", first, maxRedirects, x.target)
}

// Dial connects to "host:port" as host.Egress says, and asks no proxy. The spelling of the host is that of package origin.
func (c *Client) Dial(ctx context.Context, address string, grants []host.HTTPGrant) (net.Conn, error) {
	rules, err := c.cfg.Rules()
	if err != nil {
		return nil, err
	}
	to, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	t := target{host: to.Host, port: to.Port}
	for _, g := range grants {
		granted, err := origin.Parse(g.URL)
		granted.Scheme = to.Scheme // whatever it is: only connections are seen here
		t.granted = t.granted || err == nil && granted.Covers(to)
	}
	if to.Port == 443 {
		to.Scheme = "https"
	}
	t.right = "http:GET:" + to.String()
	tooLong := host.Errorf(host.Timeout, "%s gave no connection within %s", to, c.cfg.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, tooLong)
	defer cancel()
	conn, err := c.guard(rules).dial(ctx, t)
	if err != nil {
		return nil, hostError(ctx, to, err)
	}
	return conn, nil
}

// parseAddress reads "host:port", with a port, as an origin by http.
func parseAddress(address string) (origin.Origin, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return origin.Origin{}, host.Errorf(host.InvalidURL, "an address to connect to has the form HOST:PORT, such as example.com:443 or [2001:db8::1]:443")
	}
	to, err := origin.Parse("http://" + address)
	if err == nil && to.Wildcard {
		return to, host.Errorf(host.InvalidURL, "%s names no host", to)
	}
	if err != nil {
		return to, host.Errorf(host.InvalidURL, "%v", err)
	}
	return to, nil
}

func (c *Client) guard(rules host.EgressRules) guard { return guard{rules.Networks, c.cfg.Resolve} }
