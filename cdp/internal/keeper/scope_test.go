//go:build linux

package keeper

import (
	"context"
	"net"
	"slices"

	"github.com/parley-tools/parley/host"
)

// guard is an egress that dials what a grant names, address and port, and nothing else.
type guard struct{}

func testEgress() (host.Egress, error) { return guard{}, nil }

func (guard) Send(context.Context, *host.HTTPRequest, host.Outbound) (*host.HTTPResponse, error) {
	return nil, host.Errorf(host.Internal, "a browser only dials")
}

func (guard) Dial(ctx context.Context, address string, grants []host.HTTPGrant) (net.Conn, error) {
	if !slices.ContainsFunc(grants, func(g host.HTTPGrant) bool { return g.URL == "http://"+address }) {
		right := "http:GET:http://" + address
		return nil, &host.Error{Code: host.Denied, Message: "not granted: " + right, Denied: []host.Denial{{Right: right, Why: "it is loopback"}}}
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}
