package egress

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/internal/origin"
	"github.com/parley-tools/parley/manifest"
)

const (
	maxHeaders     = 100
	maxHeaderBytes = 32 << 10 // of names and values that a guest sends
)

// checkMethod wants a method as grants have it. CONNECT would open a tunnel; TRACE has a server repeat what the host put in.
func checkMethod(m string) error {
	const capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch {
	case len(m) > 40 || strings.Trim(m, capitals) != "":
		return host.Errorf(host.InvalidArgs, "method %s is not one word in capitals, such as GET", quote(m))
	case m == "CONNECT", m == "TRACE", m == "TRACK":
		return host.Errorf(host.InvalidArgs, "method %s is never sent", m)
	}
	return nil
}

// headerOf takes over a guest's headers.
func headerOf(pairs [][2]string) (http.Header, error) {
	if len(pairs) > maxHeaders {
		return nil, host.Errorf(host.InvalidArgs, "%d headers, and at most %d are sent", len(pairs), maxHeaders)
	}
	header, size := http.Header{}, 0
	for _, p := range pairs {
		name, value := p[0], p[1]
		switch {
		case !isToken(name):
			return nil, host.Errorf(host.InvalidArgs, "header %s is no name of letters, digits and hyphens, such as accept", quote(name))
		case !isFieldValue(value):
			return nil, host.Errorf(host.InvalidArgs, "the value of header %s holds a line break or another control character", quote(name))
		case isReserved(name):
			return nil, host.Errorf(host.InvalidArgs, "header %s is the host's own: leave it out", quote(name))
		}
		if size += len(name) + len(value); size > maxHeaderBytes {
			return nil, host.Errorf(host.InvalidArgs, "the headers have more than %d bytes", maxHeaderBytes)
		}
		header.Add(name, value)
	}
	return header, nil
}

// isReserved tells which headers neither guests nor secrets set: those that are about one connection (RFC 9110, section 7.6.1), those that
// say where a message ends and whom it is for, and Accept-Encoding, because what the host cannot decode it can neither count nor redact.
func isReserved(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "host", "connection", "keep-alive", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect", "accept-encoding", "http2-settings":
		return true
	}
	return strings.HasPrefix(name, "proxy-")
}

// isToken is the form of a header's name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	const of = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"
	return s != "" && strings.Trim(s, of) == ""
}

// isFieldValue is the form of a header's value (RFC 9110, section 5.5); bytes above ASCII are let through.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// headers are those of one hop: the guest's, the host's own, and the secrets that are bound to its URL. Where a secret and the guest name
// the same header, the secret's stands alone.
func (x *exchange) headers(ctx context.Context) (http.Header, error) {
	header := x.header.Clone()
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", x.client.cfg.UserAgent)
	}
	// A part of a compressed body could not be decompressed.
	if header.Get("Range") != "" {
		header.Set("Accept-Encoding", "identity")
	} else {
		header.Set("Accept-Encoding", "gzip")
	}
	var set []string
	for _, s := range x.outbound.Secrets {
		bound, err := origin.Parse(s.URL)
		if err != nil || !bound.Covers(x.target) {
			continue
		}
		name, value, err := x.secret(ctx, s)
		if err != nil {
			return nil, err
		}
		name = http.CanonicalHeaderKey(name)
		if !slices.Contains(set, name) {
			header.Del(name)
			set = append(set, name)
		}
		if !slices.Contains(header[name], value) {
			header.Add(name, value)
		}
	}
	return header, nil
}

// secret is the header that a secret is put into, "Authorization" and "Bearer ...". It travels by https, or within this machine.
func (x *exchange) secret(ctx context.Context, s host.SecretGrant) (name, value string, err error) {
	name, text, _ := strings.Cut(s.Header, ":")
	switch {
	case !isToken(name) || isReserved(name):
		return "", "", host.Errorf(host.InvalidPlugin, "the manifest binds secret %s to header %s, which is not for a plugin to set", s.Name, quote(name))
	case x.target.Scheme != "https" && !isLoopback(x.target.Host):
		return "", "", deniedError("secret:"+s.Name, "it is bound to "+x.target.String()+", and a secret is sent by https, or to localhost or a loopback address")
	case x.outbound.Value == nil:
		return "", "", host.Errorf(host.ConfigError, "secret %s has no value: nobody keeps secrets here", s.Name)
	}
	plain, err := x.outbound.Value(ctx, s.Name)
	if err != nil {
		return "", "", err
	}
	value = strings.ReplaceAll(strings.TrimSpace(text), "{secret}", plain)
	if !isFieldValue(value) {
		return "", "", host.Errorf(host.ConfigError, "secret %s holds a line break or another control character, which no header can", s.Name).
			WithNext("parley secret set " + s.Name)
	}
	x.sentSecrets[s.Name] = plain
	return name, value, nil
}

// isLoopback tells whether a host can be nothing but loopback; the guard holds localhost to it.
func isLoopback(name string) bool {
	a, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && a.IsLoopback()
}

// quote quotes what a guest wrote for an error.
func quote(s string) string { return strconv.Quote(manifest.Clip(manifest.CleanLine(s), 80)) }
