package host

import (
	"context"
	"net"
	"net/netip"
)

// Egress makes all network connections on behalf of calls. Errors are [*Error]: denied with the missing right if no
// grant covers the target, invalid_url, timeout, limit_exceeded, or unavailable for a failure of the network.
type Egress interface {
	// Send makes one HTTP request. It checks each hop of a redirect, and each address that it dials, against the grants.
	Send(ctx context.Context, r *HTTPRequest, o Outbound) (*HTTPResponse, error)
	// Dial connects to "host:port" if a grant covers it. It is for a proxy, which sees connections instead of requests,
	// so the methods and schemes of the grants are ignored.
	Dial(ctx context.Context, address string, grants []HTTPGrant) (net.Conn, error)
}

// HTTPRequest is a request of a guest.
type HTTPRequest struct {
	Method  string // "" is GET
	URL     string
	Headers [][2]string
	Body    []byte
}

// HTTPResponse is the response of the last hop. A status of 400 or more is not an error.
type HTTPResponse struct {
	Status  int
	Headers [][2]string
	Body    []byte
}

// Outbound is what a request is allowed to do. The zero value allows nothing.
type Outbound struct {
	HTTP    []HTTPGrant
	Secrets []SecretGrant // added to the request if their URL covers it; the guest never sees them
	// Value returns the value of one of Secrets. It is called just before the request is sent.
	Value func(ctx context.Context, name string) (string, error)
	// OnRequest is called before each request that is made, with arguments such as "GET" and "https://api.github.com".
	// It may be nil.
	OnRequest func(method, origin string)
}

// EgressRules are the operator's rules for the whole network. The zero value allows no private networks and no proxy.
type EgressRules struct {
	// Networks are private networks that may be dialled for names that a grant covers.
	Networks []netip.Prefix
	// Proxy sends requests through the proxy that the environment names. The proxy then decides which addresses to dial.
	Proxy bool
}

// Secrets returns the values of the operator's secrets. The error never contains any part of a value.
type Secrets interface {
	Secret(ctx context.Context, name string) (string, error)
}

// MinHeldSecret is the minimum size in bytes of a secret that is redacted from records of calls that do not use it.
const MinHeldSecret = 8
