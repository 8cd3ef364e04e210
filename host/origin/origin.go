// Package origin parses where requests go, with one grammar for what operators grant, manifests request and guests
// send, and checks the URLs in parameters.
package origin

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// Exact returns the canonical spelling of an origin, such as "https://example.com" or "http://127.0.0.1:8080": as
// browsers write it. It rejects whatever else a URL can have, and wildcards.
func Exact(s string) (string, error) {
	o, err := Parse(s)
	switch {
	case err != nil:
		return "", err
	case o.Wildcard:
		return "", fmt.Errorf("%s is a pattern, not an origin: name each origin", o)
	}
	return o.String(), nil
}

// Origin is a destination of requests: a scheme, a host and a port.
//
//	origin = ("http" | "https") "://" host [":" port]
//	host   = name | "*." name with a dot | IPv4 | "[" IPv6 "]"
//
// Names are ASCII (internationalised ones in their xn-- form) and consist of letters, digits, hyphens and underscores.
// "*.example.com" covers every name below example.com at any depth, but not example.com itself. Public suffixes are not
// considered, so "*.co.uk" is as wide as it looks. The port defaults to the scheme's. Case does not matter. Whatever
// two parsers might read differently is rejected, not repaired: user names, a trailing dot, percent signs, addresses
// that are not in their canonical spelling, empty or padded ports.
type Origin struct {
	Scheme   string // http or https
	Host     string // in lower case, without brackets and without "*."
	Port     int
	Wildcard bool // any name below Host
}

// Parse parses an origin. An origin has no path, not even "/".
func Parse(s string) (Origin, error) {
	o, rest, err := parse(s)
	if err != nil {
		return Origin{}, err
	}
	if rest != "" {
		return Origin{}, fmt.Errorf("%s has a path, which an origin does not have: write %s", quoteRedacted(s), o)
	}
	return o, nil
}

// Of returns the origin of a request's URL, by the same grammar without "*.". Its errors show no user name, path or
// query, because those may hold secrets.
func Of(rawURL string) (Origin, error) {
	o, rest, err := parse(rawURL)
	if err != nil {
		return Origin{}, err
	}
	if o.Wildcard {
		return Origin{}, fmt.Errorf("%s does not name a host", quoteRedacted(rawURL))
	}
	// The client that dials parses the URL with net/url: both must find the same host.
	u, err := url.Parse(rawURL)
	if err != nil {
		return Origin{}, fmt.Errorf("%s is not a URL", quoteRedacted(rawURL))
	}
	authority := rawURL[strings.Index(rawURL, "://")+3 : len(rawURL)-len(rest)]
	if u.User != nil || u.Opaque != "" || u.Host != authority || !strings.EqualFold(u.Hostname(), o.Host) {
		return Origin{}, fmt.Errorf("%s is ambiguous: parsers disagree about its host", quoteRedacted(rawURL))
	}
	return o, nil
}

// Covers reports whether o allows everything that p allows.
func (o Origin) Covers(p Origin) bool {
	if o.Scheme != p.Scheme || o.Port != p.Port {
		return false
	}
	if !o.Wildcard {
		return !p.Wildcard && o.Host == p.Host
	}
	if p.Wildcard && o.Host == p.Host {
		return true
	}
	return strings.HasSuffix(p.Host, "."+o.Host)
}

// String returns the canonical spelling, which [Parse] accepts.
func (o Origin) String() string {
	host := o.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if o.Wildcard {
		host = "*." + host
	}
	if o.Port != defaultPort(o.Scheme) {
		host += ":" + strconv.Itoa(o.Port)
	}
	return o.Scheme + "://" + host
}

func defaultPort(scheme string) int {
	if scheme == "https" {
		return 443
	}
	return 80
}

// parse parses the origin at the start of s and returns what follows it.
func parse(s string) (o Origin, rest string, err error) {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f || c == '\\' {
			return o, "", fmt.Errorf("%s contains white space, a control character or a backslash", quoteRedacted(s))
		}
	}
	scheme, after, ok := strings.Cut(s, "://")
	o.Scheme = strings.ToLower(scheme)
	if !ok || o.Scheme != "http" && o.Scheme != "https" {
		return o, "", fmt.Errorf("%s does not begin with http:// or https://", quoteRedacted(s))
	}
	authority := after
	if i := strings.IndexAny(after, "/?#"); i >= 0 {
		authority, rest = after[:i], after[i:]
	}
	if strings.Contains(authority, "@") {
		return o, "", fmt.Errorf("%s contains a user name: remove it; a secret belongs in a header", quoteRedacted(s))
	}
	host, port, hasPort := authority, "", false
	if strings.HasPrefix(authority, "[") {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return o, "", fmt.Errorf("%s has no ] after its address", quoteRedacted(s))
		}
		host = authority[:end+1]
		if after := authority[end+1:]; after != "" {
			if after[0] != ':' {
				return o, "", fmt.Errorf("%s has text between ] and the port", quoteRedacted(s))
			}
			port, hasPort = after[1:], true
		}
	} else {
		host, port, hasPort = strings.Cut(authority, ":")
	}
	o.Port = defaultPort(o.Scheme)
	if hasPort {
		if o.Port, err = parsePort(port); err != nil {
			return o, "", fmt.Errorf("%s: %w", quoteRedacted(s), err)
		}
	}
	if below, ok := strings.CutPrefix(host, "*."); ok {
		o.Wildcard = true
		host = below
	}
	if o.Host, err = parseHost(host); err != nil {
		return o, "", fmt.Errorf("%s: %w", quoteRedacted(s), err)
	}
	if o.Wildcard && (!strings.Contains(o.Host, ".") || isAddress(o.Host)) {
		return o, "", fmt.Errorf("%s is too wide: \"*.\" must be followed by a name with a dot, as in *.example.com",
			quoteRedacted(s))
	}
	return o, rest, nil
}

func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s {
		return 0, fmt.Errorf("port %s is not a number from 1 to 65535 without leading zeros", Quote(s))
	}
	return int(n), nil
}

// parseHost returns a host in lower case, an IPv6 address without its brackets.
func parseHost(s string) (string, error) {
	host := strings.ToLower(s)
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner = strings.TrimSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		switch {
		case err != nil || !a.Is6() || a.Zone() != "":
			return "", fmt.Errorf("%s is not an IPv6 address; zones are not allowed", Quote(s))
		case a.Is4In6():
			return "", fmt.Errorf("%s contains an IPv4 address: write %s", Quote(s), a.Unmap())
		case a.String() != inner:
			return "", fmt.Errorf("%s is not in its canonical spelling: write [%s]", Quote(s), a)
		}
		return inner, nil
	}
	for _, r := range host {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
		case r == '*':
			return "", fmt.Errorf("host %s: \"*\" is allowed only at the beginning, as in *.example.com", Quote(s))
		case r == '%':
			return "", fmt.Errorf("host %s contains a percent sign: write the characters unescaped", Quote(s))
		case r > 0x7f:
			return "", fmt.Errorf("host %s is not ASCII: write it in its xn-- form", Quote(s))
		default:
			return "", fmt.Errorf("host %s contains characters that are not allowed in host names", Quote(s))
		}
	}
	if host == "" || len(host) > 253 {
		return "", fmt.Errorf("host %s is empty or longer than 253 characters", Quote(s))
	}
	if strings.HasSuffix(host, ".") {
		return "", fmt.Errorf("host %s ends in a dot: remove it", Quote(s))
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || l == "xn--" {
			return "", fmt.Errorf("host %s has a label that is empty, too long, or begins or ends with a hyphen", Quote(s))
		}
	}
	// Browsers and C libraries take a host for an address if its last label is a number, in forms that others take for
	// names.
	if last := labels[len(labels)-1]; isNumber(last) {
		a, err := netip.ParseAddr(host)
		if err != nil || a.String() != host {
			return "", fmt.Errorf("host %s is an address in an odd spelling: write four decimal numbers, such as 192.0.2.1",
				Quote(s))
		}
	}
	return host, nil
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// isNumber reports whether a label can be read as a number: decimal, octal or hexadecimal.
func isNumber(label string) bool {
	if strings.HasPrefix(label, "0x") {
		return strings.Trim(label[2:], "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// quoteRedacted quotes what an error may show of a URL: its scheme and host, without user name, path and query.
func quoteRedacted(s string) string {
	begin, ends := 0, `/?#\`
	if i := strings.Index(s, "://"); i >= 0 {
		begin = i + 3
	} else if strings.HasPrefix(s, "//") {
		begin = 2
	} else {
		ends += ":"
	}
	if i := strings.IndexAny(s[begin:], ends); i >= 0 && begin+i+1 < len(s) {
		s = s[:begin+i+1] + "..."
	}
	if i := strings.LastIndexByte(s, '@'); i >= begin {
		s = s[:begin] + "..." + s[i:]
	}
	return Quote(s)
}

// Quote quotes untrusted text for an error: on one line, without hidden characters, of bounded length.
func Quote(s string) string {
	return strconv.Quote(manifest.Clip(manifest.CleanValue(strings.ToValidUTF8(s, "\uFFFD")), 200))
}
