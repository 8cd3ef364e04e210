package egress

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/outbound"
)

func TestGuestHeaders(t *testing.T) {
	s := serve(t, "127.0.0.1", echo)
	w := newTestClient(t, Config{UserAgent: "parley/1.2.3"})
	answer, err := w.send(outbound.Request{URL: s.URL, Headers: [][2]string{{"x-one", "a"}, {"X-One", "b\tc"},
		{"X-Empty", ""}, {"x-latin", "\xe9"}}}, "GET "+s.URL)
	a := receivedOf(t, answer, err)
	if !slices.Equal(a.Header["X-One"], []string{"a", "b\tc"}) || a.Header.Get("User-Agent") != "parley/1.2.3" ||
		a.Header.Get("Accept-Encoding") != "gzip" ||
		a.Header.Get("Connection") != "close" {
		t.Errorf("got %v", a.Header)
	}
	answer, err = w.send(outbound.Request{URL: s.URL, Headers: [][2]string{{"user-agent", "mine"},
		{"range", "bytes=0-1"}}}, "GET "+s.URL)
	if a := receivedOf(t, answer, err); a.Header.Get("User-Agent") != "mine" ||
		a.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("got %v", a.Header)
	}

	many := make([][2]string, maxHeaders+1)
	for i := range many {
		many[i] = [2]string{"X-Y", "z"}
	}
	for _, tt := range []struct {
		name, value, words string
	}{
		{"Host", "evil.test", "is set by the host"},
		{"HOST", "evil.test", "is set by the host"},
		{"connection", "x-a", "is set by the host"},
		{"Keep-Alive", "1", "is set by the host"},
		{"Content-Length", "3", "is set by the host"},
		{"Transfer-Encoding", "chunked", "is set by the host"},
		{"Upgrade", "websocket", "is set by the host"},
		{"Proxy-Authorization", "x", "is set by the host"},
		{"proxy-connection", "x", "is set by the host"},
		{"TE", "trailers", "is set by the host"},
		{"Trailer", "x", "is set by the host"},
		{"Expect", "100-continue", "is set by the host"},
		{"Accept-Encoding", "br", "is set by the host"},
		{"HTTP2-Settings", "x", "is set by the host"},
		{"", "x", "not a valid name"},
		{"a b", "x", "not a valid name"},
		{"a:", "x", "not a valid name"},
		{":authority", "x", "not a valid name"},
		{"a\r\nb", "x", "not a valid name"},
		{"ä", "x", "not a valid name"},
		{" Host", "x", "not a valid name"},
		{"Host ", "x", "not a valid name"},
		{"X-A", "b\r\nHost: evil.test", "line break"},
		{"X-A", "b\nc", "line break"},
		{"X-A", "\x00", "control"},
		{"X-A", "\x7f", "control"},
		{"X-A", strings.Repeat("x", maxHeaderBytes), "more than 32768 bytes"},
	} {
		_, err := w.send(outbound.Request{URL: s.URL, Headers: [][2]string{{tt.name, tt.value}}}, "GET "+s.URL)
		wantError(t, err, host.InvalidArgs, tt.words)
	}
	_, err = w.send(outbound.Request{URL: s.URL, Headers: many}, "GET "+s.URL)
	wantError(t, err, host.InvalidArgs, "at most 100")
	if len(w.touched) != 2 {
		t.Errorf("sent %q", w.touched)
	}
}

// secretValues is a store that records which secrets were requested.
type secretValues struct {
	values    map[string]string
	requested []string
}

func (v *secretValues) value(_ context.Context, name string) (string, error) {
	v.requested = append(v.requested, name)
	value, ok := v.values[name]
	if !ok {
		return "", host.Errorf(host.ConfigError, "secret %s has no value", name)
	}
	return value, nil
}

func TestSecrets(t *testing.T) {
	// Both servers have a certificate for example.com and what is below it; they differ by their ports.
	second := serveTLS(t, "127.0.0.2", redirectHandler)
	first := serveTLS(t, "127.0.0.1", redirectHandler)
	plain := serve(t, "127.0.0.3", echo)
	w := newTestClient(t, Config{RootCAs: rootsOf(first)})
	w.Client.cfg.RootCAs.AddCert(second.Certificate())
	w.networks("127.0.0.0/8")
	w.names["example.com"], w.names["api.example.com"], w.names["plain.test"] = []string{"127.0.0.1"},
		[]string{"127.0.0.2"}, []string{"127.0.0.3"}
	one, two := "https://example.com:"+portOf(first), "https://api.example.com:"+portOf(second)
	three := "http://plain.test:" + portOf(plain)

	secrets := []grant.Secret{
		{Name: "ONE", URL: one, Header: "Authorization: Bearer {secret}"},
		{Name: "BELOW", URL: "https://*.example.com:" + portOf(second), Header: "X-Key: {secret}"},
		{Name: "BELOW", URL: "https://*.example.com:" + portOf(second), Header: "x-key:{secret}"},
		{Name: "LOCAL", URL: plain.URL, Header: "x-local: <{secret}|{secret}>"},
		{Name: "PLAIN", URL: three, Header: "Authorization: {secret}"},
		{Name: "READ", Read: true},
		{Name: "OTHER", URL: "https://other.test", Header: "Authorization: {secret}"},
	}
	values := map[string]string{"ONE": "first-value", "BELOW": "second-value", "LOCAL": "third-value", "PLAIN": "fourth",
		"READ": "fifth", "OTHER": "sixth"}
	send := func(url string, headers ...[2]string) (*secretValues, *outbound.Response, error) {
		v := &secretValues{values: values}
		answer, err := w.Send(context.Background(), &outbound.Request{URL: url, Headers: headers},
			outbound.Rights{HTTP: granted("GET "+one, "GET "+two, "GET "+three, "GET "+plain.URL), Secrets: secrets,
				Value: v.value})
		return v, answer, err
	}
	for _, tt := range []struct {
		name, url string
		asked     []string
		auth      string
		key       []string
		local     string
	}{
		{"its own URL", one + "/x", []string{"ONE"}, "Bearer first-value", nil, ""},
		{"a wildcard, bound twice", two + "/x", []string{"BELOW", "BELOW"}, "Basic guest", []string{"second-value"}, ""},
		{"loopback by http", plain.URL, []string{"LOCAL"}, "Basic guest", nil, "<third-value|third-value>"},
		{"checked at each hop", redirectTo(one, "307", two+"/x"), []string{"ONE", "BELOW", "BELOW"}, "",
			[]string{"second-value"}, ""},
		{"another host and back",
			redirectTo(one, "307", redirectTo(two, "307", one+"/x")), []string{"ONE", "BELOW", "BELOW", "ONE"},
			"Bearer first-value", nil, ""},
		{"to http", redirectTo(one, "307", plain.URL), []string{"ONE", "LOCAL"}, "", nil, "<third-value|third-value>"},
	} {
		v, answer, err := send(tt.url, [2]string{"authorization", "Basic guest"})
		a := receivedOf(t, answer, err)
		if !slices.Equal(v.requested, tt.asked) || a.Header.Get("Authorization") != tt.auth ||
			len(a.Header["Authorization"]) > 1 ||
			!slices.Equal(a.Header["X-Key"], tt.key) || a.Header.Get("X-Local") != tt.local {
			t.Errorf("%s: requested %q, got %v", tt.name, v.requested, a.Header)
		}
	}

	// A header of the guest with the same name is not sent beside that of the secret.
	v, answer, err := send(two, [2]string{"X-KEY", "guest"}, [2]string{"x-key", "guest"})
	if a := receivedOf(t, answer, err); !slices.Equal(a.Header["X-Key"], []string{"second-value"}) {
		t.Errorf("requested %q, got %v", v.requested, a.Header)
	}

	// No secret is read for, or sent over, an unencrypted connection to another machine.
	v, _, err = send(three)
	wantError(t, err, host.Denied, "secret:PLAIN", "by https")
	if len(v.requested) > 0 {
		t.Errorf("requested %q", v.requested)
	}
}

// TestCookieSecret checks that a secret that is a cookie is sent in one header with the cookies of the guest.
func TestCookieSecret(t *testing.T) {
	var got []string
	s := serve(t, "127.0.0.1", func(_ http.ResponseWriter, r *http.Request) { got = r.Header["Cookie"] })
	secrets := []grant.Secret{{Name: "A", URL: s.URL, Header: "Cookie: {secret}"},
		{Name: "B", URL: s.URL, Header: "cookie: b={secret}"}}
	request := &outbound.Request{URL: s.URL, Headers: [][2]string{{"cookie", "c=1"}}}
	_, err := newTestClient(t, Config{}).Send(t.Context(), request,
		outbound.Rights{HTTP: granted("GET " + s.URL), Secrets: secrets,
			Value: func(_ context.Context, name string) (string, error) { return name + "=value", nil }})
	if err != nil || strings.Join(got, "|") != "b=B=value; A=value; c=1" {
		t.Errorf("%v, %q", err, got)
	}
}

func TestSecretsThatCannotBeSent(t *testing.T) {
	s := serve(t, "127.0.0.1", func(http.ResponseWriter, *http.Request) { t.Error("a server got a request") })
	w := newTestClient(t, Config{})
	broken := errors.New("the store is gone")
	for _, tt := range []struct {
		header, value string
		err           error
		code          host.Code
		words         string
	}{
		{"X-Key: {secret}", "hunter2\nHost: evil.test", nil, host.ConfigError, "secret KEY contains a line break"},
		{"X-Key: {secret}", "hunter2\x00", nil, host.ConfigError, "control character"},
		{"X-Key: {secret}", "", host.Errorf(host.ConfigError, "secret KEY has no value"), host.ConfigError,
			"secret KEY has no value"},
		{"X-Key: {secret}", "", broken, host.Unavailable, s.URL},
		{"Host: {secret}", "hunter2", nil, host.InvalidPlugin, "plugins must not set"},
		{"Proxy-Authorization: {secret}", "hunter2", nil, host.InvalidPlugin, "plugins must not set"},
		{"X Key: {secret}", "hunter2", nil, host.InvalidPlugin, "plugins must not set"},
		{"", "hunter2", nil, host.InvalidPlugin, "plugins must not set"},
	} {
		_, err := w.Send(context.Background(), &outbound.Request{URL: s.URL}, outbound.Rights{
			HTTP: granted("GET " + s.URL), Secrets: []grant.Secret{{Name: "KEY", URL: s.URL, Header: tt.header}},
			Value:     func(context.Context, string) (string, error) { return tt.value, tt.err },
			OnRequest: func(string, string) { t.Error("a request was recorded") },
		})
		wantError(t, err, tt.code, tt.words)
		if strings.Contains(err.Error(), "hunter2") {
			t.Error(err)
		}
	}
	_, err := w.Send(context.Background(), &outbound.Request{URL: s.URL}, outbound.Rights{
		HTTP: granted("GET " + s.URL), Secrets: []grant.Secret{{Name: "KEY", URL: s.URL, Header: "A: {secret}"}}})
	wantError(t, err, host.ConfigError, "there is no secret store")
	// A secret for another URL is not read.
	_, err = w.Send(context.Background(), &outbound.Request{URL: s.URL}, outbound.Rights{
		Secrets: []grant.Secret{{Name: "KEY", URL: s.URL, Header: "A: {secret}"}},
		Value: func(context.Context, string) (string, error) {
			t.Error("a secret was requested without a grant")
			return "", nil
		}})
	wantError(t, err, host.Denied, "http:GET:"+s.URL)
}

// TestClearText: only a loopback address gets a secret without TLS, even if the policy allows a
// network.
func TestClearText(t *testing.T) {
	w := newTestClient(t, Config{Rules: func() (outbound.Rules, error) {
		return outbound.Rules{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, nil
	}})
	for _, to := range []string{
		"http://10.0.0.1", "http://192.0.2.1", "http://[fe80::1]", "http://8.8.8.8", "http://a.test",
	} {
		_, err := w.Send(context.Background(), &outbound.Request{URL: to}, outbound.Rights{
			HTTP: granted("GET " + to), Secrets: []grant.Secret{{Name: "KEY", URL: to, Header: "A: {secret}"}},
			Value: func(context.Context, string) (string, error) {
				t.Errorf("the secret was read for %s", to)
				return "hunter2", nil
			},
		})
		wantError(t, err, host.Denied, "secret:KEY", "only by https")
	}
}

// TestEchoedSecrets: a server may repeat what it received, in each place that a guest or a log can see. The host
// redacts secrets, and errors do not contain them.
func TestEchoedSecrets(t *testing.T) {
	const secret = "Hunter2+of-the-Vault"
	var location string
	echoing := func(w http.ResponseWriter, r *http.Request) {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case r.URL.Path != "/":
			io.WriteString(w, r.URL.Path)
		case location != "":
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		default:
			w.Header().Set("X-Echo", got)
			io.WriteString(w, "you said "+got)
		}
	}
	s := serve(t, "127.0.0.1", echoing)
	w := newTestClient(t, Config{})
	send := func(url string, more ...string) (*outbound.Response, error) {
		return w.Send(context.Background(), &outbound.Request{URL: url}, outbound.Rights{
			HTTP: granted(append(more, "GET "+url)...), Secrets: []grant.Secret{{Name: "KEY", URL: url,
				Header: "Authorization: Bearer {secret}"}},
			Value: func(context.Context, string) (string, error) { return secret, nil },
		})
	}
	answer, err := send(s.URL)
	wantBody(t, answer, err, "you said "+secret)
	// The secret is not sent to another origin within a URL, even if that origin is granted.
	other := serve(t, "127.0.0.2", func(http.ResponseWriter,
		*http.Request) {
		t.Error("another origin got the secret")
	})
	for mode, to := range map[string]string{
		"host": "http://SECRET.evil.test/", "user": "http://SECRET@a.test/", "password": "http://x:SECRET@a.test/",
		"odd": "http://a.test./SECRET", "scheme": "SECRET://a.test/",
		"opaque": "javascript:SECRET", "path": other.URL + "/SECRET", "query": other.URL + "/?x=SECRET",
		"fragment": other.URL + "/#SECRET",
	} {
		for _, form := range []string{url.PathEscape(secret), hex.EncodeToString([]byte(secret)),
			base64.RawURLEncoding.EncodeToString([]byte(secret)),
			url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(secret)))} {
			location = strings.ReplaceAll(to, "SECRET", form)
			_, err := send(s.URL, "GET "+other.URL)
			wantError(t, err, host.Denied, "secret:KEY", s.URL+" redirected to another origin with this secret in the URL")
			if err != nil && strings.Contains(strings.ToLower(err.Error()), strings.ToLower(form)) {
				t.Errorf("%s: %v", mode, err)
			}
		}
	}
	spaced := "hunter two"
	location = other.URL + "/?x=" + url.QueryEscape(spaced)
	_, err = w.Send(context.Background(), &outbound.Request{URL: s.URL}, outbound.Rights{
		HTTP:    granted("GET "+s.URL, "GET "+other.URL),
		Secrets: []grant.Secret{{Name: "KEY", URL: s.URL, Header: "A: {secret}"}},
		Value:   func(context.Context, string) (string, error) { return spaced, nil },
	})
	wantError(t, err, host.Denied, "secret:KEY")
	location = "/own?x=" + secret
	answer, err = send(s.URL)
	wantBody(t, answer, err, "/own")
	for name, text := range map[string]string{
		"no HTTP": secret + "\r\n\r\n", "bad status": "HTTP/1.1 2" + secret + "\r\n\r\n",
		"bad header": "HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n",
		"bad length": "HTTP/1.1 200 OK\r\nContent-Length: " + secret + "\r\n\r\n",
		"bad coding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n",
		"bad chunk":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + secret + "\r\n",
		"odd coding": "HTTP/1.1 200 OK\r\nContent-Encoding: " + secret + "\r\n\r\nx",
	} {
		_, err := send(serveRaw(t, respondWith(text)))
		wantError(t, err, host.Unavailable)
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
