package policy

import "github.com/parley-tools/parley/host/internal/origin"

// Origin is where requests may go: a scheme, a host and a port. Its grammar:
//
//	origin = ("http" | "https") "://" host [":" port]
//	host   = name | "*." name with a dot | IPv4 | "[" IPv6 "]"
//
// What sends requests reads them by the same code: go doc ./host/internal/origin says the rest.
type Origin = origin.Origin

// ParseOrigin reads an origin, which has no path, not even "/".
func ParseOrigin(s string) (Origin, error) { return origin.Parse(s) }

// quote quotes a foreign text for an error.
func quote(s string) string { return origin.Quote(s) }
