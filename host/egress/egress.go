// Package egress sends HTTP requests for guests, within their grants and through a dial guard.
//
// Redirects lead a request from hop to hop. Each hop is checked against the grants by scheme, host, port and method,
// and gets only the secrets that are bound to its own URL. Names are resolved here, once per hop, and an address is
// dialled only if it is public or named by the policy; the address that was checked is the one that is dialled. No hop
// uses a connection or a cookie of another.
package egress

import (
	"cmp"
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/outbound"
)

// Config configures a client. The zero value works: it dials no private address and uses no proxy.
type Config struct {
	// Rules returns what the operator allows for the network as a whole. It is called for each request; nil allows
	// nothing.
	Rules func() (outbound.Rules, error)
	// UserAgent is sent where a guest sets none; "" is "parley".
	UserAgent string
	// MaxBody limits the body of a response, in bytes after decompression; 0 is 8 MiB.
	MaxBody int64
	// Timeout limits a request with all its redirects, from the first name resolved to the last byte; 0 is 60 s.
	Timeout time.Duration

	// RootCAs verify the certificates of servers; nil means the system's.
	RootCAs *x509.CertPool
	// Tracer observes each hop that a grant allows. Nil means that nobody does.
	Tracer host.Tracer
	// Resolve returns the addresses of a name; nil means the system's resolver.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Local returns the addresses of this machine with the length of their networks; nil means those of its interfaces.
	Local func() []netip.Prefix
	// Proxy returns the proxy for a request where the rules use one; nil means http.ProxyFromEnvironment, which
	// excludes localhost and loopback addresses.
	Proxy func(*http.Request) (*url.URL, error)
}

const (
	defaultMaxBody = 8 << 20
	defaultTimeout = 60 * time.Second
	maxRedirects   = 10
)

// Client implements [outbound.Egress]. It is safe for concurrent use.
type Client struct{ cfg Config }

var _ outbound.Egress = (*Client)(nil)

// New returns a client.
func New(cfg Config) *Client {
	if cfg.Rules == nil {
		cfg.Rules = func() (outbound.Rules, error) { return outbound.Rules{}, nil }
	}
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "parley")
	cfg.MaxBody, cfg.Timeout = cmp.Or(cfg.MaxBody, defaultMaxBody), cmp.Or(cfg.Timeout, defaultTimeout)
	if cfg.Resolve == nil {
		cfg.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	if cfg.Local == nil {
		cfg.Local = interfaceAddresses
	}
	if cfg.Proxy == nil {
		cfg.Proxy = http.ProxyFromEnvironment
	}
	return &Client{cfg}
}

// Send sends one request and follows up to ten redirects, as [outbound.Egress] says. Where the rules use a proxy, the
// name of each hop is still checked against the grants, but the proxy decides which addresses are dialled.
func (c *Client) Send(ctx context.Context, r *outbound.Request, o outbound.Rights) (*outbound.Response, error) {
	rules, err := c.cfg.Rules()
	if err != nil {
		return nil, err
	}
	x := &exchange{client: c, rules: rules, outbound: o, sentSecrets: map[string][]string{}}
	if err := x.start(r); err != nil {
		return nil, err
	}
	first := x.target
	tooLong := host.Errorf(host.Timeout, "%s and its redirects did not respond within %s", first, c.cfg.Timeout)
	// Cancelling also closes the connections that the hops opened.
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, tooLong)
	defer cancel()
	for range 1 + maxRedirects {
		response, err := x.hop(ctx)
		if err != nil || response != nil {
			return response, err
		}
	}
	return nil, host.Errorf(host.LimitExceeded, "%s redirected more than %d times, last to %s", first, maxRedirects,
		x.target).WithNext("log in to the server if it requires that, or request another path")
}

// Dial connects to "host:port" as [outbound.Egress] says, without a proxy. Package origin defines how the host is
// spelled.
func (c *Client) Dial(ctx context.Context, address string, grants []grant.HTTP) (net.Conn, error) {
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
		granted.Scheme = to.Scheme // the scheme does not matter: this is only a connection
		t.granted = t.granted || err == nil && granted.Covers(to)
	}
	if to.Port == 443 {
		to.Scheme = "https"
	}
	t.right = "http:GET:" + to.String()
	tooLong := host.Errorf(host.Timeout, "%s did not accept a connection within %s", to, c.cfg.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, tooLong)
	defer cancel()
	conn, err := c.guard(rules).dial(ctx, t)
	if err != nil {
		return nil, hostError(ctx, to, err)
	}
	return conn, nil
}

// parseAddress parses "host:port" as an origin with the scheme http. The port is required.
func parseAddress(address string) (origin.Origin, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return origin.Origin{}, host.Errorf(host.InvalidURL,
			"an address to connect to has the form HOST:PORT, such as example.com:443 or [2001:db8::1]:443")
	}
	to, err := origin.Parse("http://" + address)
	if err == nil && to.Wildcard {
		return to, host.Errorf(host.InvalidURL, "%s does not name a host", to)
	}
	if err != nil {
		return to, host.Errorf(host.InvalidURL, "%v", err)
	}
	return to, nil
}

func (c *Client) guard(rules outbound.Rules) guard {
	return guard{rules.Networks, c.cfg.Resolve, c.cfg.Local}
}
