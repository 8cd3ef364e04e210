// Package outbound has the requests that leave this machine on behalf of calls, what they are allowed to do, and the
// interface of what sends them.
package outbound

import (
	"context"
	"net"
	"net/netip"

	"github.com/parley-tools/parley/host/grant"
)

// Egress makes all network connections on behalf of calls. Errors are host.Error: denied with the missing right if no
// grant covers the target, invalid_url, timeout, limit_exceeded, or unavailable for a failure of the network.
type Egress interface {
	// Send makes one HTTP request. It checks each hop of a redirect, and each address that it dials, against the grants.
	Send(ctx context.Context, r *Request, o Rights) (*Response, error)
	// Dial connects to "host:port" if a grant covers it. It is for a proxy, which sees connections instead of requests,
	// so the methods and schemes of the grants are ignored.
	Dial(ctx context.Context, address string, grants []grant.HTTP) (net.Conn, error)
}

// Request is a request of a guest.
type Request struct {
	Method  string // "" is GET
	URL     string
	Headers [][2]string
	Body    []byte
}

// Response is the response of the last hop. A status of 400 or more is not an error.
type Response struct {
	Status  int
	Headers [][2]string
	Body    []byte
}

// Rights are what a request is allowed to do. The zero value allows nothing.
type Rights struct {
	HTTP    []grant.HTTP
	Secrets []grant.Secret // added to the request if their URL covers it; the guest never sees them
	// Value returns the value of one of Secrets. It is called just before the request is sent.
	Value func(ctx context.Context, name string) (string, error)
	// OnRequest is called before each request that is made, with arguments such as "GET" and "https://api.github.com".
	// It may be nil.
	OnRequest func(method, origin string)
}

// Rules are the operator's rules for the whole network. The zero value allows no private networks and no proxy.
type Rules struct {
	// Networks are private networks that may be dialled for names that a grant covers.
	Networks []netip.Prefix
	// Proxy sends requests through the proxy that the environment names. The proxy then decides which addresses to dial.
	Proxy bool
}
