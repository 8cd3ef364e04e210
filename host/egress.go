package host

import (
	"context"
	"net"
	"net/netip"
)

// Egress is the only way out of this machine for what is done in a call's name. Errors are *Error: denied, with the right that
// was missing, where a grant does not reach; invalid_url; timeout and limit_exceeded; unavailable for what the network did.
type Egress interface {
	// Send makes one HTTP request. Each hop of a redirect, and each address that is really dialled, is held against the grant again.
	Send(ctx context.Context, r *HTTPRequest, o Outbound) (*HTTPResponse, error)
	// Dial connects to "host:port" if its address is public or named by a grant. It is for a proxy, which sees no requests but
	// connections: methods and schemes of the grants do not count.
	Dial(ctx context.Context, address string, grants []HTTPGrant) (net.Conn, error)
}

// HTTPRequest is a request as a guest asks for it.
type HTTPRequest struct {
	Method  string // "" is GET
	URL     string
	Headers [][2]string
	Body    []byte
}

// HTTPResponse is what came back from the last hop. A status of 400 or more is no error.
type HTTPResponse struct {
	Status  int
	Headers [][2]string
	Body    []byte
}

// Outbound is what a request may do.
type Outbound struct {
	HTTP    []HTTPGrant
	Secrets []SecretGrant // the host adds those whose URL covers the request; the guest never sees them
	// Value gives the value of one of Secrets, just before it is sent.
	Value func(ctx context.Context, name string) (string, error)
	// OnRequest is called with each request that is really made, as "GET" and "https://api.github.com", before it is. May be nil.
	OnRequest func(method, origin string)
}

// EgressRules is what the operator says of the network as a whole.
type EgressRules struct {
	// Networks are dialled although they are private, for names that a grant reaches.
	Networks []netip.Prefix
	// Proxy says that requests go through the proxy that the environment names, which then judges the addresses.
	Proxy bool
}

// Secrets gives the values of secrets that the operator keeps. The error never holds anything of a value.
type Secrets interface {
	Secret(ctx context.Context, name string) (string, error)
}
