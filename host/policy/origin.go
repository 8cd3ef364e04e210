package policy

import "github.com/parley-tools/parley/host/origin"

// Origin is a destination of requests: a scheme, a host and a port. Its grammar:
//
//	origin = ("http" | "https") "://" host [":" port]
//	host   = name | "*." name with a dot | IPv4 | "[" IPv6 "]"
//
// Package host/egress parses origins with the same code; package host/origin documents the details.
type Origin = origin.Origin

// ParseOrigin parses an origin. An origin has no path, not even "/".
func ParseOrigin(s string) (Origin, error) { return origin.Parse(s) }

// quote quotes untrusted text for an error.
func quote(s string) string { return origin.Quote(s) }
