package egress

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

const (
	maxHeaders     = 100
	maxHeaderBytes = 32 << 10 // total of the names and values that a guest sends
)

// checkMethod requires a method in the spelling of grants. CONNECT would open a tunnel; TRACE makes a server repeat
// what the host added.
func checkMethod(m string) error {
	const capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch {
	case len(m) > 40 || strings.Trim(m, capitals) != "":
		return host.Errorf(host.InvalidArgs, "method %q is not one word in capitals, such as GET", manifest.Clip(m, 80))
	case m == "CONNECT", m == "TRACE", m == "TRACK":
		return host.Errorf(host.InvalidArgs, "method %s is never sent", m)
	}
	return nil
}

// headerOf validates and copies a guest's headers.
func headerOf(pairs [][2]string) (http.Header, error) {
	if len(pairs) > maxHeaders {
		return nil, host.Errorf(host.InvalidArgs, "%d headers given; at most %d are sent", len(pairs), maxHeaders)
	}
	header, size := http.Header{}, 0
	for _, p := range pairs {
		name, value := p[0], p[1]
		switch {
		case !isToken(name):
			return nil, host.Errorf(host.InvalidArgs,
				"header %s is not a valid name: expected letters, digits and hyphens, such as accept", quote(name))
		case !isFieldValue(value):
			return nil, host.Errorf(host.InvalidArgs,
				"the value of header %s contains a line break or another control character", quote(name))
		case isReserved(name):
			return nil, host.Errorf(host.InvalidArgs, "header %s is set by the host: remove it", quote(name))
		}
		if size += len(name) + len(value); size > maxHeaderBytes {
			return nil, host.Errorf(host.InvalidArgs, "the headers have more than %d bytes", maxHeaderBytes)
		}
		header.Add(name, value)
	}
	return header, nil
}

// isReserved reports whether neither guests nor secrets may set a header. These are the headers about one connection
// (RFC 9110, section 7.6.1), those that say where a message ends and which host it is for, and Accept-Encoding,
// because the host can neither count nor redact what it cannot decode.
func isReserved(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "proxy-") || slices.Contains([]string{"host", "connection", "keep-alive", "te",
		"content-length", "transfer-encoding", "upgrade", "trailer", "expect", "accept-encoding", "http2-settings"}, name)
}

// isToken reports whether s is a valid header name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	const of = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"
	return s != "" && strings.Trim(s, of) == ""
}

// isFieldValue reports whether s is a valid header value (RFC 9110, section 5.5); bytes above ASCII are allowed.
func isFieldValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// headers returns the headers and the query of one hop: what guest and host set, and the secrets that are bound to its
// URL. If a secret and the guest set the same header or parameter, only the secret is sent; of cookies, both are.
func (x *exchange) headers(ctx context.Context) (_ http.Header, query string, err error) {
	query = x.url.RawQuery
	header := x.header.Clone()
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", x.client.cfg.UserAgent)
	}
	header.Set("Accept-Encoding", "gzip")
	if header.Get("Range") != "" { // a range of a compressed body cannot be decompressed
		header.Set("Accept-Encoding", "identity")
	}
	var set []string
	for _, s := range x.outbound.Secrets {
		bound, err := origin.Parse(s.URL)
		if err != nil || !bound.Covers(x.target) {
			continue
		}
		name, value, err := x.secret(ctx, s)
		if err != nil {
			return nil, "", err
		}
		if s.Query != "" {
			query = withParameter(query, name, value)
			continue
		}
		if name = http.CanonicalHeaderKey(name); name == "Cookie" && header.Get(name) != "" {
			value += "; " + header.Get(name)
			header.Del(name)
		}
		if !slices.Contains(set, name) {
			header.Del(name)
			set = append(set, name)
		}
		if !slices.Contains(header[name], value) {
			header.Add(name, value)
		}
	}
	return header, query, nil
}

// withParameter returns a query with a parameter, which replaces others of its name.
func withParameter(query, name, value string) string {
	parts := slices.DeleteFunc(strings.FieldsFunc(query, func(c rune) bool { return c == '&' }), func(part string) bool {
		key, _, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(key)
		return err == nil && plain == name
	})
	return strings.Join(append(parts, url.QueryEscape(name)+"="+url.QueryEscape(value)), "&")
}

// secret returns the header that holds a secret, such as "Authorization" and "Bearer ...", or the parameter of the
// query. It is sent only by https, or within this machine.
func (x *exchange) secret(ctx context.Context, s grant.Secret) (name, value string, err error) {
	name, text, _ := strings.Cut(s.Header, ":")
	if s.Query != "" {
		name, text = s.Query, "{secret}"
	}
	switch {
	case s.Query == "" && (!isToken(name) || isReserved(name)):
		return "", "", host.Errorf(host.InvalidPlugin,
			"the manifest binds secret %s to header %s, which plugins must not set", s.Name, quote(name))
	case x.target.Scheme != "https" && !isLoopback(x.target.Host):
		return "", "", deniedError("secret:"+s.Name, "it is bound to "+x.target.String()+
			", and a secret is sent only by https, or to localhost or a loopback address")
	case x.outbound.Value == nil:
		return "", "", host.Errorf(host.ConfigError, "secret %s has no value: there is no secret store", s.Name)
	}
	plain, err := x.outbound.Value(ctx, s.Name)
	if err != nil {
		return "", "", err
	}
	basic := base64.StdEncoding.EncodeToString([]byte(plain))
	value = strings.NewReplacer("{secret}", plain, "{secret:basic}", basic).Replace(strings.TrimSpace(text))
	if s.Query == "" && !isFieldValue(value) {
		return "", "", host.Errorf(host.ConfigError,
			"secret %s contains a line break or another control character, which headers cannot have", s.Name).
			WithSteps(step.Operator(step.OpSecretSet, s.Name))
	}
	const shortest = 4 // any URL may contain a shorter one
	if len(plain) >= shortest {
		x.sentSecrets[s.Name] = []string{plain, hex.EncodeToString([]byte(plain)), strings.TrimRight(basic, "="),
			base64.RawURLEncoding.EncodeToString([]byte(plain))}
	}
	return name, value, nil
}

// isLoopback reports whether a host can only be loopback; for localhost the guard ensures it.
func isLoopback(name string) bool {
	a, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && a.IsLoopback()
}

// quote quotes a guest's text for an error.
func quote(s string) string { return strconv.Quote(manifest.Clip(manifest.CleanLine(s), 80)) }
