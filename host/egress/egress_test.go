package egress

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/outbound"
)

// testClient is a client with a resolver of its own that records look-ups and uses.
type testClient struct {
	*Client
	t *testing.T

	mu      sync.Mutex
	names   map[string][]string // addresses by name
	lookups []string
	rules   outbound.Rules
	touched []string
}

func newTestClient(t *testing.T, cfg Config) *testClient {
	t.Helper()
	w := &testClient{t: t, names: map[string][]string{}}
	cfg.Rules = func() (outbound.Rules, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.rules, nil
	}
	if cfg.Resolve == nil {
		cfg.Resolve = w.resolve
	}
	w.Client = New(cfg)
	return w
}

func (w *testClient) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups = append(w.lookups, name)
	var all []netip.Addr
	for _, s := range w.names[name] {
		all = append(all, netip.MustParseAddr(s))
	}
	if len(all) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return all, nil
}

// networks sets the networks that the operator allows.
func (w *testClient) networks(prefixes ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules.Networks = nil
	for _, p := range prefixes {
		w.rules.Networks = append(w.rules.Networks, netip.MustParsePrefix(p))
	}
}

// send sends with grants written as "GET,POST https://host".
func (w *testClient) send(r outbound.Request, grants ...string) (*outbound.Response, error) {
	return w.Send(context.Background(), &r, outbound.Rights{HTTP: granted(grants...),
		OnRequest: func(method, origin string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.touched = append(w.touched, method+" "+origin)
		}})
}

func granted(grants ...string) []grant.HTTP {
	var all []grant.HTTP
	for _, g := range grants {
		methods, origin, _ := strings.Cut(g, " ")
		all = append(all, grant.HTTP{URL: origin, Methods: strings.Split(methods, ",")})
	}
	return all
}

// serve runs a server on an address of this machine, such as 127.0.0.2 or ::1, until the test ends.
func serve(t *testing.T, address string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := newServer(t, address, h)
	s.Start()
	return s
}

// serveTLS is serve with a certificate for example.com, *.example.com, 127.0.0.1 and ::1.
func serveTLS(t *testing.T, address string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := newServer(t, address, h)
	s.StartTLS()
	return s
}

func newServer(t *testing.T, address string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = listen(t, address)
	s.Config.ErrorLog = discardLog
	t.Cleanup(s.Close)
	return s
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Skipf("no loopback address %s here: %v", address, err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// serveRaw handles each connection with f, for responses that no HTTP server sends.
func serveRaw(t *testing.T, f func(net.Conn)) (url string) {
	t.Helper()
	l := listen(t, "127.0.0.1")
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				f(conn)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// respondWith sends a text after it has read the head of the request.
func respondWith(text string) func(net.Conn) {
	return func(conn net.Conn) {
		readHead(conn)
		io.WriteString(conn, text)
	}
}

func readHead(conn net.Conn) {
	var head []byte
	for b := make([]byte, 1); !strings.HasSuffix(string(head), "\r\n\r\n"); {
		if _, err := conn.Read(b); err != nil {
			return
		}
		head = append(head, b[0])
	}
}

func portOf(s *httptest.Server) string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

func rootsOf(s *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// discardLog discards what servers log about clients that disconnect.
var discardLog = log.New(io.Discard, "", 0)

// wantError requires an error with a code, and with words in its text or denials.
func wantError(t *testing.T, err error, code host.Code, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %s", code)
		return
	}
	e := host.AsError(err)
	text := e.Message
	for _, d := range e.Denied {
		text += "\n" + d.Right + "\n" + d.Why
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not contain %q", text, word)
		}
	}
	if e.Code != code {
		t.Errorf("%s: %q, want %s", e.Code, e.Message, code)
	}
	if strings.ContainsAny(e.Message, "\n\x1b") {
		t.Errorf("not clean: %q", e.Message)
	}
}

func wantBody(t *testing.T, r *outbound.Response, err error, body string) {
	t.Helper()
	if err != nil || string(r.Body) != body {
		t.Errorf("got %+v, %v, want %q", r, err, body)
	}
}

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s", r.URL.Path) }

// TestSpellings tries spellings of URLs with two grants, for an address and for a name.
func TestSpellings(t *testing.T) {
	w := newTestClient(t, Config{})
	hits := 0
	h := func(w http.ResponseWriter, r *http.Request) {
		hits++
		if r.Host != strings.ToLower(r.Host) || strings.ContainsAny(r.Host, "@%") {
			t.Errorf("host %q arrived", r.Host)
		}
		hello(w, r)
	}
	literal, named := serve(t, "127.0.0.1", h), serve(t, "127.0.0.2", h)
	w.networks("127.0.0.2/32")
	w.names["api.example.test"] = []string{"127.0.0.2"}
	w.names["xn--bcher-kva.example.test"] = []string{"127.0.0.2"}
	w.names["localhost"] = []string{"127.0.0.1"}
	grants := []string{
		"GET http://127.0.0.1:" + portOf(literal), "GET http://api.example.test:" + portOf(named),
		"GET http://xn--bcher-kva.example.test:" + portOf(named),
	}

	const ok, odd, denied = host.OK, host.InvalidURL, host.Denied
	for _, tt := range []struct {
		url  string // A and N are the ports of address and name
		want host.Code
	}{
		{"http://127.0.0.1:A/", ok},
		{"HTTP://127.0.0.1:A/x?y#z", ok},
		{"http://127.0.0.1:A", ok},
		{"http://127.0.0.1:A?x", ok},
		{"http://api.example.test:N/", ok},
		{"http://API.Example.TEST:N/@evil.test", ok},
		{"http://xn--bcher-kva.example.test:N/", ok},
		{"http://XN--BCHER-KVA.example.test:N/", ok},

		{"http://127.0.0.1:N/", denied},
		{"http://api.example.test:A/", denied},
		{"http://api.example.test/", denied},
		{"https://api.example.test:N/", denied},
		{"http://example.test:N/", denied},
		{"http://x.api.example.test:N/", denied},
		{"http://api.example.test.evil.test:N/", denied},
		{"http://localhost:A/", denied},
		{"http://127.0.0.2:A/", denied},
		{"http://[::1]:A/", denied},
		{"http://0.0.0.0:A/", denied},
		{"http://[::7f00:1]:A/", denied},
		{"http://[64:ff9b::7f00:1]:A/", denied},
		{"http://1.0.0.127:A/", denied},

		{"http://127.0.0.1.:A/", odd},
		{"http://api.example.test.:N/", odd},
		{"http://2130706433:A/", odd},
		{"http://0x7f000001:A/", odd},
		{"http://0x7f.0.0.1:A/", odd},
		{"http://0177.0.0.1:A/", odd},
		{"http://127.1:A/", odd},
		{"http://127.0.1:A/", odd},
		{"http://127.0.0.01:A/", odd},
		{"http://127.0.0.1%2e:A/", odd},
		{"http://127%2e0.0.1:A/", odd},
		{"http://[::ffff:127.0.0.1]:A/", odd},
		{"http://[::ffff:7f00:1]:A/", odd},
		{"http://[0:0:0:0:0:0:0:1]:A/", odd},
		{"http://[::1%25lo]:A/", odd},
		{"http://[127.0.0.1]:A/", odd},
		{"http://127.0.0.1:A@evil.test/", odd},
		{"http://user@127.0.0.1:A/", odd},
		{"http://user:pass@127.0.0.1:A/", odd},
		{"http://@127.0.0.1:A/", odd},
		{"http://%61pi.example.test:N/", odd},
		{"http://api%2eexample.test:N/", odd},
		{"http://api.example.test%00.evil.test:N/", odd},
		{"http://bücher.example.test:N/", odd},
		{"http://api。example.test:N/", odd},
		{"http://ａpi.example.test:N/", odd}, // full width
		{"http://аpi.example.test:N/", odd}, // Cyrillic
		{"http://*.example.test:N/", odd},
		{"http://api..example.test:N/", odd},
		{"http://127.0.0.1:0A/", odd},
		{"http://127.0.0.1:+A/", odd},
		{"http://127.0.0.1:/", odd},
		{"http://127.0.0.1:99999/", odd},
		{"http://127.0.0.1 :A/", odd},
		{" http://127.0.0.1:A/", odd},
		{"http://127.0.0.1:A/ HTTP/1.1\r\nHost: evil.test", odd},
		{"http://127.0.0.1\t:A/", odd},
		{"http://127.0.0.1:A\\@evil.test/", odd},
		{"http:\\\\127.0.0.1:A/", odd},
		{"http:127.0.0.1:A/", odd},
		{"http:///127.0.0.1:A/", odd},
		{"//127.0.0.1:A/", odd},
		{"127.0.0.1:A", odd},
		{"ftp://127.0.0.1:A/", odd},
		{"file:///etc/passwd", odd},
		{"http://127.0.0.1:A/%zz", odd},
		{"http://", odd},
		{"", odd},
		{"http://127.0.0.1:A/" + strings.Repeat("x", maxURL), odd},
	} {
		url := strings.NewReplacer(":A", ":"+portOf(literal), ":0A", ":0"+portOf(literal), ":+A", ":+"+portOf(literal), ":N",
			":"+portOf(named)).Replace(tt.url)
		before := hits
		answer, err := w.send(outbound.Request{URL: url}, grants...)
		switch {
		case tt.want == ok && (err != nil || answer.Status != 200 || hits != before+1):
			t.Errorf("%s: %+v, %v", tt.url, answer, err)
		case tt.want != ok && (err == nil || host.AsError(err).Code != tt.want || hits != before):
			t.Errorf("%s: %+v, %v, want %s", tt.url, answer, err, tt.want)
		}
	}
	for _, name := range w.lookups {
		if _, known := w.names[name]; !known {
			t.Errorf("%s was looked up without a grant for it", name)
		}
	}
}

// A wildcard covers all subdomains, at any depth, but not the domain itself.
func TestWildcard(t *testing.T) {
	s := serve(t, "127.0.0.2", hello)
	w := newTestClient(t, Config{})
	w.networks("127.0.0.0/8")
	for name, want := range map[string]bool{
		"a.example.test": true, "a.b.example.test": true, "example.test": false, "aexample.test": false,
		"example.test.evil.test": false, "b.test": false,
	} {
		w.names[name] = []string{"127.0.0.2"}
		_, err := w.send(outbound.Request{URL: "http://" + name + ":" + portOf(s) + "/"},
			"GET http://*.example.test:"+portOf(s), "GET nonsense")
		if want && err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !want {
			wantError(t, err, host.Denied, "http:GET:http://"+name+":"+portOf(s), "no grant reaches")
		}
	}
}

func TestMethods(t *testing.T) {
	var got string
	s := serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + string(body)
	})
	w := newTestClient(t, Config{})
	for _, tt := range []struct {
		method, body string
		code         host.Code
		words        string
	}{
		{"", "", host.OK, "GET "},
		{"GET", "", host.OK, "GET "},
		{"POST", "data", host.OK, "POST data"},
		{"PROPFIND", "x", host.OK, "PROPFIND x"},
		{"HEAD", "", host.Denied, "http:HEAD:" + s.URL}, // GET does not include HEAD
		{"PUT", "", host.Denied, "granted there: GET, POST, PROPFIND"},
		{"get", "", host.InvalidArgs, "capitals"},
		{"GET /x HTTP/1.1\r\nX:", "", host.InvalidArgs, "capitals"},
		{"CONNECT", "", host.InvalidArgs, "never sent"},
		{"TRACE", "", host.InvalidArgs, "never sent"},
		{strings.Repeat("A", 41), "", host.InvalidArgs, "capitals"},
	} {
		got = ""
		_, err := w.send(outbound.Request{Method: tt.method, URL: s.URL, Body: []byte(tt.body)}, "GET,POST "+s.URL,
			"PROPFIND,CONNECT,TRACE "+s.URL)
		if tt.code == host.OK {
			if err != nil || got != tt.words {
				t.Errorf("%s: got %q, %v", tt.method, got, err)
			}
			continue
		}
		wantError(t, err, tt.code, tt.words)
		if got != "" {
			t.Errorf("%s arrived as %q", tt.method, got)
		}
	}
}

// Calls do not share connections, so that each call checks and dials the address.
func TestNoConnectionIsReused(t *testing.T) {
	connections := make(chan net.Conn, 10)
	s := newServer(t, "127.0.0.2", hello)
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections <- c
		}
	}
	s.Start()
	w := newTestClient(t, Config{})
	w.names["a.test"] = []string{"127.0.0.2"}
	w.networks("127.0.0.2/32")
	for range 2 {
		answer, err := w.send(outbound.Request{URL: "http://a.test:" + portOf(s) + "/x"}, "GET http://a.test:"+portOf(s))
		wantBody(t, answer, err, "hello /x")
	}
	if len(connections) != 2 {
		t.Errorf("%d connections for two requests", len(connections))
	}
	w.networks()
	_, err := w.send(outbound.Request{URL: "http://a.test:" + portOf(s) + "/x"}, "GET http://a.test:"+portOf(s))
	wantError(t, err, host.Denied, "127.0.0.2 (loopback)", `networks = ["127.0.0.2/32"]`)
}

func TestRecordsUse(t *testing.T) {
	last := serve(t, "127.0.0.2", hello)
	first := serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, map[string]string{"/on": last.URL, "/out": "http://10.0.0.1/",
			"/down": "http://127.0.0.1:1/"}[r.URL.Path], http.StatusSeeOther)
	})
	w := newTestClient(t, Config{})
	grants := []string{"GET,POST " + first.URL, "GET " + last.URL, "GET http://127.0.0.1:1"}
	for path, want := range map[string][]string{
		"/on":   {"POST " + first.URL, "GET " + last.URL},
		"/out":  {"POST " + first.URL},
		"/down": {"POST " + first.URL}, // nothing listens there
	} {
		w.touched = nil
		_, _ = w.send(outbound.Request{Method: "POST", URL: first.URL + path}, grants...)
		if !slices.Equal(w.touched, want) {
			t.Errorf("%s: %q, want %q", path, w.touched, want)
		}
	}
}

// tracer writes down how requests end.
type tracer struct{ ended []string }

func (t *tracer) Begin(ctx context.Context, o host.Operation) (context.Context, func(host.Operation)) {
	return ctx, func(o host.Operation) {
		t.ended = append(t.ended, fmt.Sprintf("%s %s %s %d %s", o.Op, o.Method, o.Server, o.Status, o.Code))
	}
}

// TestTracer checks that each hop within the grants is an operation, with nothing of its URL but what the grant says.
func TestTracer(t *testing.T) {
	last := serve(t, "127.0.0.2", hello)
	first := serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, map[string]string{"/on": last.URL, "/out": "http://10.0.0.1/"}[r.URL.Path], http.StatusFound)
	})
	for _, tt := range []struct {
		url, grant string
		want       []string
	}{
		{first.URL + "/on?q=canary", "GET " + first.URL,
			[]string{"request GET " + first.URL + " 302 ok", "request GET " + last.URL + " 200 ok"}},
		{first.URL + "/out", "GET " + first.URL, []string{"request GET " + first.URL + " 302 ok"}},
		{"http://127.0.0.1:1/canary", "GET http://127.0.0.1:1", []string{"request GET http://127.0.0.1:1 0 unavailable"}},
		{"http://canary.a.test:" + portOf(last), "GET http://*.a.test:" + portOf(last),
			[]string{"request GET http://*.a.test:" + portOf(last) + " 200 ok"}},
		{"http://canary.b.test", "GET http://*.a.test", nil},
	} {
		seen := &tracer{}
		w := newTestClient(t, Config{Tracer: seen})
		w.names["canary.a.test"] = []string{"127.0.0.2"}
		w.networks("127.0.0.0/8")
		_, _ = w.send(outbound.Request{URL: tt.url}, tt.grant, "GET "+last.URL)
		if !slices.Equal(seen.ended, tt.want) {
			t.Errorf("%s: %q, want %q", tt.url, seen.ended, tt.want)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	s := serve(t, "127.0.0.1", hello)
	w := newTestClient(t, Config{})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			path := "/" + strconv.Itoa(i)
			answer, err := w.send(outbound.Request{URL: s.URL + path}, "GET "+s.URL)
			wantBody(t, answer, err, "hello "+path)
		})
	}
	all.Wait()
}

func TestRulesThatCannotBeRead(t *testing.T) {
	broken := host.Errorf(host.ConfigError, "policy.toml, line 3")
	c := New(Config{Rules: func() (outbound.Rules, error) { return outbound.Rules{}, broken }})
	_, err := c.Send(context.Background(), &outbound.Request{URL: "http://127.0.0.1/"},
		outbound.Rights{HTTP: granted("GET http://127.0.0.1")})
	wantError(t, err, host.ConfigError, "line 3")
	_, err = c.Dial(context.Background(), "127.0.0.1:80", nil)
	wantError(t, err, host.ConfigError, "line 3")
}

// environmentProxy is the proxy that the environment of this process names, and its requests. It runs as long as the
// process, because net/http reads the environment once.
var environmentProxy = sync.OnceValue(func() *proxyServer {
	p := &proxyServer{}
	s := httptest.NewServer(p)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		if err := os.Setenv(name, strings.Replace(s.URL, "http://", "http://user:hunter2@", 1)); err != nil {
			panic(err)
		}
	}
	return p
})

type proxyServer struct{ requests []string }

func (p *proxyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests = append(p.requests, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
	if r.Method == http.MethodConnect {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	io.WriteString(w, "by proxy")
}

// The proxy of the environment is used only if the operator allows it.
func TestProxy(t *testing.T) {
	proxy := environmentProxy()
	proxy.requests = nil
	s := serve(t, "127.0.0.2", hello)
	w := newTestClient(t, Config{})
	w.names["a.test"] = []string{"127.0.0.2"}
	w.networks("127.0.0.2/32")
	url := "http://a.test:" + portOf(s) + "/x"
	grant := "GET http://a.test:" + portOf(s)

	answer, err := w.send(outbound.Request{URL: url}, grant)
	wantBody(t, answer, err, "hello /x")
	if len(proxy.requests) > 0 {
		t.Errorf("the proxy got requests for %q", proxy.requests)
	}

	// With the proxy, names are checked against the grants, and the proxy decides about addresses.
	w.rules, w.lookups = outbound.Rules{Proxy: true}, nil
	answer, err = w.send(outbound.Request{URL: url}, grant)
	wantBody(t, answer, err, "by proxy")
	if len(proxy.requests) != 1 || !strings.HasPrefix(proxy.requests[0], "GET "+url+" Basic ") || len(w.lookups) > 0 {
		t.Errorf("the proxy got requests for %q, and names %q were looked up", proxy.requests, w.lookups)
	}
	_, err = w.send(outbound.Request{URL: "http://b.test/"}, grant)
	wantError(t, err, host.Denied, "http:GET:http://b.test")
	_, err = w.send(outbound.Request{URL: "https://a.test/"}, "GET https://a.test")
	wantError(t, err, host.Unavailable, "the proxy responded 403 to the request to connect to a.test:443")
	if len(proxy.requests) != 2 {
		t.Errorf("the proxy got requests for %q", proxy.requests)
	}
	// Hosts that the environment excludes from the proxy are dialled directly, as the guard allows.
	answer, err = w.send(outbound.Request{URL: s.URL + "/direct"}, "GET "+s.URL)
	wantBody(t, answer, err, "hello /direct")
	_, err = w.Dial(context.Background(), "127.0.0.2:"+portOf(s), nil)
	wantError(t, err, host.Denied, "loopback")
}

func TestProxiesThatFail(t *testing.T) {
	for _, proxy := range []string{"http://user:hunter2@127.0.0.1:1", "http://user:hunter2@127.0.0.1:x"} {
		w := newTestClient(t, Config{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }})
		w.rules.Proxy = true
		for _, scheme := range []string{"http", "https"} {
			_, err := w.send(outbound.Request{URL: scheme + "://a.test/"}, "GET http://a.test", "GET https://a.test")
			if err == nil || strings.Contains(err.Error(), "hunter2") ||
				!slices.Contains([]host.Code{host.Unavailable, host.ConfigError}, host.AsError(err).Code) {
				t.Error(err)
			}
		}
	}
}

// wantWithin requires that f takes at most ten times the promised time.
func wantWithin(t *testing.T, promised time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > 10*promised {
		t.Errorf("it took %s, more than ten times %s", took, promised)
	}
}
