package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/outbound"
)

func compressed(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data)
	z.Close()
	return b.Bytes()
}

func TestResponse(t *testing.T) {
	s := serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Add("Set-Cookie", "b=1")
		w.Header().Add("Set-Cookie", "a=2")
		w.Header().Set("X-UPPER", "v")
		w.Header().Set("Content-Type", "text/x")
		w.WriteHeader(http.StatusTeapot)
		w.Write([]byte{0xff, 0})
	})
	answer, err := newTestClient(t, Config{}).send(outbound.Request{URL: s.URL}, "GET "+s.URL)
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]string{{"content-type", "text/x"}, {"set-cookie", "b=1"}, {"set-cookie", "a=2"}, {"x-upper", "v"}}
	head, err := newTestClient(t, Config{}).send(outbound.Request{Method: "HEAD", URL: s.URL}, "HEAD "+s.URL)
	if err != nil || !slices.Contains(head.Headers, [2]string{"content-length", "2"}) || len(head.Body) > 0 {
		t.Errorf("HEAD: %+v, %v", head, err)
	}
	if answer.Status != http.StatusTeapot || !slices.Equal(answer.Headers, want) || string(answer.Body) != "\xff\x00" {
		t.Errorf("%+v", answer)
	}
}

func TestSizes(t *testing.T) {
	const limit = 1 << 20
	write := func(w http.ResponseWriter, n int) {
		block := bytes.Repeat([]byte("x"), 64<<10)
		for ; n > 0; n -= len(block) {
			if _, err := w.Write(block[:min(n, len(block))]); err != nil {
				return
			}
		}
	}
	bomb := compressed(make([]byte, 16*limit))
	handle := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/exact":
			write(w, limit)
		case "/over":
			write(w, limit+1)
		case "/said":
			w.Header().Set("Content-Length", fmt.Sprint(1<<40))
			write(w, 1<<30)
		case "/endless":
			write(w, 1<<40)
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb)
		case "/nothing-over-and-over": // endless empty gzip members
			w.Header().Set("Content-Encoding", "gzip")
			for member := bytes.Repeat(compressed(nil), 1000); ; {
				if _, err := w.Write(member); err != nil {
					return
				}
			}
		case "/packed":
			w.Header().Set("Content-Encoding", "GZIP")
			w.Write(compressed(bytes.Repeat([]byte("x"), limit)))
		case "/headers":
			for i := range 1000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 100))
			}
		case "/header":
			w.Header().Set("X", strings.Repeat("x", maxResponseHeader+1000))
		}
	}
	s := serve(t, "127.0.0.1", handle)
	w := newTestClient(t, Config{MaxBody: limit})
	for _, path := range []string{"/exact", "/packed"} {
		answer, err := w.send(outbound.Request{URL: s.URL + path}, "GET "+s.URL)
		if err != nil || len(answer.Body) != limit {
			t.Errorf("%s: %v", path, err)
			continue
		}
		for _, h := range answer.Headers {
			if h[0] == "content-encoding" || h[0] == "content-length" {
				t.Errorf("%s: %s does not match the body: %s", path, h[0], h[1])
			}
		}
	}
	for path, words := range map[string]string{
		"/over": "more than 1048576 bytes", "/said": "more than 1048576 bytes", "/endless": "more than 1048576 bytes",
		"/bomb":                  "more than 1048576 bytes",
		"/nothing-over-and-over": "more than 1048576 bytes", "/headers": "more than 65536 bytes of headers",
		"/header": "more than 65536 bytes of headers",
	} {
		t.Run(path, func(t *testing.T) {
			_, err := w.send(outbound.Request{URL: s.URL + path}, "GET "+s.URL)
			wantError(t, err, host.LimitExceeded, s.URL, words)
		})
	}
}

// TestBombIsNotUnpacked: unpacking ends at the limit, not at the end of the compressed bytes.
func TestBombIsNotUnpacked(t *testing.T) {
	const limit = 1 << 20
	bomb := compressed(make([]byte, 256*limit))
	response := &http.Response{Body: io.NopCloser(bytes.NewReader(bomb)),
		Header: http.Header{"Content-Encoding": {"gzip"}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readBody(response, limit)
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Error("a body of 256 times the limit was read")
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 32*limit {
		t.Errorf("%d bytes were allocated for a limit of %d", allocated, limit)
	}
}

// A server may hang at any point; the call ends at its timeout.
func TestTimeout(t *testing.T) {
	const promised = 200 * time.Millisecond
	drip := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			for {
				if _, err := io.WriteString(conn, text); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	hang := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	slow := map[string]string{
		"says nothing":         serveRaw(t, hang),
		"never ends its head":  serveRaw(t, func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "); drip("x")(c) }),
		"only interim answers": serveRaw(t, func(c net.Conn) { readHead(c); drip("HTTP/1.1 103 Early Hints\r\n\r\n")(c) }),
		"never ends its body":  serveRaw(t, func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"); drip("x")(c) }),
		"never ends its chunks": serveRaw(t, func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			drip("1\r\nx\r\n")(c)
		}),
		"never ends a chunk": serveRaw(t, func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n")
			hang(c)
		}),
		"never sends the body": serveRaw(t, func(c net.Conn) {
			io.WriteString(c,
				"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
			hang(c)
		}),
		"never shakes hands": strings.Replace(serveRaw(t, hang), "http://", "https://", 1),
	}
	short := newTestClient(t, Config{Timeout: promised})
	long := newTestClient(t, Config{})
	for name, url := range slow {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantWithin(t, promised, func() {
				_, err := short.send(outbound.Request{URL: url}, "GET "+url)
				if name == "only interim answers" && host.AsError(err).Code == host.LimitExceeded {
					return // interim responses count as headers
				}
				wantError(t, err, host.Timeout, url, "within 200ms")
			})
			wantWithin(t, promised, func() {
				ctx, cancel := context.WithTimeout(context.Background(), promised)
				defer cancel()
				_, err := long.Send(ctx, &outbound.Request{URL: url}, outbound.Rights{HTTP: granted("GET " + url)})
				if name == "only interim answers" && host.AsError(err).Code == host.LimitExceeded {
					return
				}
				wantError(t, err, host.Timeout, url)
			})
		})
	}
	t.Run("redirects to itself, slowly", func(t *testing.T) {
		s := serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(promised / 4)
			http.Redirect(w, r, "/", http.StatusFound)
		})
		wantWithin(t, promised, func() {
			_, err := short.send(outbound.Request{URL: s.URL}, "GET "+s.URL)
			wantError(t, err, host.Timeout, "and its redirects")
		})
	})
	t.Run("a look-up that does not end", func(t *testing.T) {
		w := newTestClient(t, Config{Timeout: promised, Resolve: func(ctx context.Context, name string) ([]netip.Addr,
			error) {
			<-ctx.Done()
			return nil, &net.DNSError{Err: ctx.Err().Error(), Name: name, IsTimeout: true}
		}})
		wantWithin(t, promised, func() {
			_, err := w.send(outbound.Request{URL: "http://a.test/"}, "GET http://a.test")
			wantError(t, err, host.Timeout, "http://a.test")
		})
		wantWithin(t, promised, func() {
			_, err := w.Dial(context.Background(), "a.test:80", nil)
			wantError(t, err, host.Timeout, "http://a.test did not accept a connection within 200ms")
		})
	})
}

// Bytes that a server sends before the request are ignored; net/http would log them.
func TestServersThatSpeakFirst(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	const text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	plain := serveRaw(t, func(conn net.Conn) {
		io.WriteString(conn, text)
		io.Copy(io.Discard, conn)
	})
	authority := serveTLS(t, "127.0.0.1", hello)
	secure := strings.Replace(serveRaw(t, func(conn net.Conn) {
		c := tls.Server(conn, &tls.Config{Certificates: authority.TLS.Certificates})
		io.WriteString(c, text)
		io.Copy(io.Discard, c)
	}), "http:", "https:", 1)
	w := newTestClient(t, Config{RootCAs: rootsOf(authority)})
	for _, url := range []string{plain, secure} {
		for range 10 {
			answer, err := w.send(outbound.Request{URL: url}, "GET "+url)
			wantBody(t, answer, err, "ok")
		}
	}
	if logged.Len() > 0 {
		t.Errorf("logged: %s", logged.String())
	}
}

// stubConn counts reads.
type stubConn struct {
	net.Conn
	reads atomic.Int32
}

func (c *stubConn) Read([]byte) (int, error)    { c.reads.Add(1); return 0, io.EOF }
func (c *stubConn) Write(b []byte) (int, error) { return len(b), nil }
func (c *stubConn) Close() error                { return nil }

func TestClientSpeaksFirst(t *testing.T) {
	for name, end := range map[string]func(net.Conn){"asked": func(c net.Conn) { c.Write([]byte("x")) },
		"closed": func(c net.Conn) { c.Close() }} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stub := &stubConn{}
			conn, _ := clientFirst(ctx, stub, nil)
			go conn.Read(nil)
			synctest.Wait()
			if stub.reads.Load() > 0 {
				t.Errorf("%s: read before the request", name)
			}
			end(conn)
			synctest.Wait()
			if stub.reads.Load() != 1 {
				t.Errorf("%s: not read", name)
			}
		})
	}
}

// All connections of a call end with the call.
func TestNothingIsLeftOpen(t *testing.T) {
	opened, closed := make(chan struct{}, 10), make(chan struct{}, 10)
	hang := func(conn net.Conn) {
		opened <- struct{}{}
		io.Copy(io.Discard, conn)
		closed <- struct{}{}
	}
	isClosed := func() {
		t.Helper()
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Error("the connection is still open")
		}
	}
	plain := serveRaw(t, hang)
	proxy := serveRaw(t, func(conn net.Conn) {
		readHead(conn)
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		hang(conn)
	})
	w := newTestClient(t, Config{Proxy: func(r *http.Request) (*url.URL, error) {
		if r.URL.Host == "a.test" {
			return url.Parse(proxy)
		}
		return nil, nil
	}})
	w.rules.Proxy = true
	for _, url := range []string{plain, strings.Replace(plain, "http://", "https://", 1), "http://a.test",
		"https://a.test"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		go func() {
			<-opened
			cancel(host.Errorf(host.Terminated, "the host ends"))
		}()
		_, err := w.Send(ctx, &outbound.Request{URL: url}, outbound.Rights{HTTP: granted("GET " + url)})
		wantError(t, err, host.Terminated, "the host ends")
		isClosed()
	}

	s := serveRaw(t, func(conn net.Conn) {
		readHead(conn)
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		hang(conn)
	})
	answer, err := w.send(outbound.Request{URL: s}, "GET "+s)
	wantBody(t, answer, err, "ok")
	isClosed()

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = w.Send(ctx, &outbound.Request{URL: plain}, outbound.Rights{HTTP: granted("GET " + plain)})
	wantError(t, err, host.Interrupted, plain)
}

// The requested content encoding is decoded; any other is an error, because it would hide what must be redacted.
func TestCodings(t *testing.T) {
	body := compressed([]byte("plain"))
	s := serve(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		coding := r.URL.Query().Get("as")
		if coding != "" {
			w.Header().Set("Content-Encoding", coding)
		}
		switch r.URL.Path {
		case "/empty":
		case "/cut":
			w.Write(body[:len(body)-4])
		case "/damaged":
			damaged := bytes.Clone(body)
			damaged[12] ^= 0xff
			w.Write(damaged)
		case "/text":
			io.WriteString(w, "plain")
		case "/twice":
			w.Write(append(bytes.Clone(body), body...))
		default:
			w.Write(body)
		}
	})
	w := newTestClient(t, Config{})
	for _, tt := range []struct {
		method, path, want string
		words              string // in the error
	}{
		{"GET", "/?as=gzip", "plain", ""}, {"GET", "/?as=X-Gzip", "plain", ""}, {"GET", "/text?as=identity", "plain", ""},
		{"GET", "/text", "plain", ""},
		{"GET", "/", string(body), ""}, {"GET", "/twice?as=gzip", "plainplain", ""}, {"GET", "/empty?as=gzip", "", ""},
		{"HEAD", "/?as=gzip", "", ""},
		{"GET", "/?as=br", "", "not requested"}, {"GET", "/?as=gzip,+gzip", "", "not requested"}, {"GET", "/?as=deflate", "",
			"not requested"},
		{"GET", "/?as=zstd", "", "not requested"}, {"GET", "/text?as=gzip", "", "ends before it is complete"}, {"GET",
			"/damaged?as=gzip", "", "damaged"},
		{"GET", "/cut?as=gzip", "", "ends before it is complete"},
	} {
		answer, err := w.send(outbound.Request{Method: tt.method, URL: s.URL + tt.path}, "GET,HEAD "+s.URL)
		if tt.words != "" {
			wantError(t, err, host.Unavailable, s.URL, tt.words)
			continue
		}
		wantBody(t, answer, err, tt.want)
	}
}

func TestFailures(t *testing.T) {
	secure := serveTLS(t, "127.0.0.1", hello)
	otherName := serveTLS(t, "127.0.0.2", hello)
	plain := serve(t, "127.0.0.1", hello)
	old := newServer(t, "127.0.0.1", hello)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	trusting, doubting := Config{RootCAs: rootsOf(secure)}, Config{}
	for _, tt := range []struct {
		name, url, words string
		cfg              Config
	}{
		{"trusted", secure.URL, "", trusting},
		{"closed port", "http://127.0.0.1:1", "connection refused", doubting},
		{"unknown authority", secure.URL, "not signed by an authority", doubting},
		{"certificate for another name", otherName.URL, "for another name", trusting},
		{"plain on the port of TLS", strings.Replace(plain.URL, "http:", "https:", 1), "does not speak TLS", trusting},
		{"TLS on a plain port", strings.Replace(secure.URL, "https:", "http:", 1), "", trusting},
		{"TLS too old", old.URL, "not HTTP, or was cut off", trusting},
		{"closes at once", serveRaw(t, func(net.Conn) {}), "", doubting},
		{"closes after the request", serveRaw(t, respondWith("")), "ends before", doubting},
		{"closes within the body", serveRaw(t, respondWith("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")), "ends before",
			doubting},
		{"closes within a chunk", serveRaw(t, respondWith("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx")),
			"ends before", doubting},
		{"speaks something else", serveRaw(t, respondWith("220 mail\r\n")), "not HTTP", doubting},
		{"two lengths", serveRaw(t, respondWith("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy")),
			"not HTTP", doubting},
		{"switches the protocol", serveRaw(t, respondWith("HTTP/1.1 101 Switching Protocols\r\nConnection: "+
			"upgrade\r\nUpgrade: x\r\n\r\nx")), "without being asked", doubting},
	} {
		answer, err := newTestClient(t, tt.cfg).send(outbound.Request{URL: tt.url + "/path?hunter2"}, "GET "+tt.url)
		switch {
		case tt.name == "trusted":
			wantBody(t, answer, err, "hello /path")
			continue
		case tt.name == "TLS on a plain port": // Go's server responds to that in plain text
			if err != nil || answer.Status != 400 {
				t.Errorf("%s: %+v, %v", tt.name, answer, err)
			}
			continue
		}
		wantError(t, err, host.Unavailable, tt.url+": ", tt.words)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
