package egress

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
)

// guard decides which addresses are dialled:
//
//   - public addresses: no row of specialNetworks contains them, and they belong neither to this machine nor, in IPv6,
//     to a network that it is in, because its neighbors there have public addresses, too;
//   - the address that the URL itself names, if a grant covers that URL: the operator has written this very address;
//   - loopback for the name localhost, if a grant covers it; no other address is dialled for that name;
//   - addresses in the operator's networks, for hosts that a grant covers.
//
// It resolves names itself and dials addresses, so that no second resolution can return another address.
type guard struct {
	networks []netip.Prefix
	resolve  func(ctx context.Context, name string) ([]netip.Addr, error)
	local    func() []netip.Prefix // as Config.Local
}

// target is what to dial.
type target struct {
	host    string // in the spelling of package origin
	port    int
	granted bool   // a grant covers it
	right   string // the missing right, if dialling is denied
}

// dial tries the permitted addresses in turn; each gets its share of the remaining time.
func (g guard) dial(ctx context.Context, t target) (net.Conn, error) {
	addresses, err := g.addresses(ctx, t)
	if err != nil {
		return nil, err
	}
	for i, a := range addresses {
		var conn net.Conn
		if conn, err = dialOne(ctx, netip.AddrPortFrom(a, uint16(t.port)), len(addresses)-i); err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

func dialOne(ctx context.Context, to netip.AddrPort, attemptsLeft int) (net.Conn, error) {
	var d net.Dialer
	if deadline, ok := ctx.Deadline(); ok && attemptsLeft > 1 {
		d.Timeout = time.Until(deadline) / time.Duration(attemptsLeft)
	}
	return d.DialContext(ctx, "tcp", to.String())
}

// addresses returns the addresses of a target that may be dialled. If there are none, it returns an error, which is
// denied if all were refused.
func (g guard) addresses(ctx context.Context, t target) ([]netip.Addr, error) {
	found, err := g.lookup(ctx, t.host)
	if err != nil {
		return nil, err
	}
	var allowed []netip.Addr
	var refused []string
	for _, a := range found {
		// An IPv4 address may come as an IPv6 address.
		a = a.Unmap()
		if reason := g.refusalReason(t, a.WithZone("")); reason == "" {
			allowed = append(allowed, a)
		} else {
			refused = append(refused, a.String()+" ("+reason+")")
		}
	}
	switch {
	case len(allowed) > 0:
		return allowed, nil
	case len(refused) > 0:
		return nil, g.deniedError(t, found[0].Unmap().WithZone(""), refused)
	}
	return nil, &net.DNSError{Err: "no address", Name: t.host, IsNotFound: true}
}

func (g guard) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{a}, nil
	}
	return g.resolve(ctx, name)
}

// refusalReason returns why an address must not be dialled; "" if it may be.
func (g guard) refusalReason(t target, a netip.Addr) string {
	kind := cmp.Or(addressKind(a), g.localKind(a))
	switch {
	case t.host == "localhost" && !a.IsLoopback():
		return "not loopback, as localhost must be"
	case kind == "" || t.granted && g.isExempt(t.host, a):
		return ""
	}
	return kind
}

// localKind returns whether an address is of this machine, or of its network, in words; "" if it is neither.
func (g guard) localKind(a netip.Addr) string {
	if inner, ok := embedded(a); ok {
		a = inner
	}
	for _, p := range g.local() {
		switch {
		case p.Addr() == a:
			return "an address of this machine"
		case a.Is6() && p.Bits() > 0 && p.Contains(a):
			return "in a network of this machine"
		}
	}
	return ""
}

// interfaceAddresses returns the addresses of this machine's interfaces; none if the system does not tell.
func interfaceAddresses() []netip.Prefix {
	addresses, _ := net.InterfaceAddrs()
	var all []netip.Prefix
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok {
			ip, _ := netip.AddrFromSlice(n.IP)
			bits, _ := n.Mask.Size()
			if ip = ip.Unmap(); ip.Is4() && len(n.Mask) == net.IPv6len {
				bits -= 96
			}
			all = append(all, netip.PrefixFrom(ip, bits))
		}
	}
	return all
}

// isExempt reports whether the policy allows an address that is not public, given that a grant covers the host.
func (g guard) isExempt(name string, a netip.Addr) bool {
	within := func(a netip.Addr) bool {
		return slices.ContainsFunc(g.networks, func(n netip.Prefix) bool { return n.Contains(a) })
	}
	inner, wraps := embedded(a)
	return name == a.String() || name == "localhost" || within(a) || wraps && within(inner)
}

func (g guard) deniedError(t target, first netip.Addr, refused []string) error {
	const limit = 3
	list := strings.Join(refused[:min(len(refused), limit)], ", ")
	if len(refused) > limit {
		list += fmt.Sprintf(" and %d more", len(refused)-limit)
	}
	why := fmt.Sprintf("%s is at %s", t.host, list)
	switch {
	case !t.granted && (t.host == first.String() || t.host == "localhost"):
		why = "connections to " + list + " require a grant that names " + t.host
	case t.host != "localhost":
		why += fmt.Sprintf("; if that is intended, the operator allows the address: by networks = [\"%s\"] under "+
			"[operator], for hosts that are granted, or by a grant of %s itself", netip.PrefixFrom(first, first.BitLen()), first)
	}
	return deniedError(t.right, why)
}

func deniedError(right, why string) *host.Error {
	e := host.NotGranted(right, why)
	e.Message += ": " + why
	return e
}

// specialNetworks are the networks that are not public, after IANA's registries of special-purpose addresses (RFC 6890)
// and of the IPv6 space, and the addresses where clouds give secrets to their machines. The first row that contains an
// address applies.
var specialNetworks = []struct{ kind, networks string }{
	{"cloud metadata", "100.100.100.200/32 168.63.129.16/32 169.254.169.254/32 fd00:ec2::254/128 fd20:ce::254/128"},
	{"unspecified", "0.0.0.0/32 ::/128"},
	{"this network", "0.0.0.0/8"},
	{"private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16"},
	{"shared by carriers", "100.64.0.0/10"},
	{"loopback", "127.0.0.0/8 ::1/128"},
	{"link-local", "169.254.0.0/16 fe80::/10"},
	{"documentation", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"},
	{"relays of 6to4", "192.88.99.0/24"},
	{"benchmarks", "198.18.0.0/15"},
	{"multicast", "224.0.0.0/4 ff00::/8"},
	{"broadcast", "255.255.255.255/32"},
	{"reserved", "240.0.0.0/4"},
	{"NAT64 of a local network", "64:ff9b:1::/48"},
	{"Teredo", "2001::/32"},
	{"reserved for protocols", "192.0.0.0/24 2001::/23"},
	{"unique-local", "fc00::/7"},
	{"site-local", "fec0::/10"},
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3") // all allocated IPv6 addresses
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour     = netip.MustParsePrefix("2002::/16")
)

// addressKind returns the kind of a special address, "" for a public one. An address that embeds an IPv4 address has
// the kind of the IPv4 address.
func addressKind(a netip.Addr) string {
	if inner, ok := embedded(a); ok {
		if kind := addressKind(inner); kind != "" {
			return inner.String() + " within IPv6, " + kind
		}
		return ""
	}
	for _, s := range specialNetworks {
		for network := range strings.FieldsSeq(s.networks) {
			if netip.MustParsePrefix(network).Contains(a) {
				return s.kind
			}
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return "not allocated in IPv6"
	}
	return ""
}

// embedded returns the IPv4 address to which a gateway would send: with NAT64 (RFC 6052) the last four bytes, with
// 6to4 (RFC 3056) the four bytes after the prefix.
func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}
