//go:build linux

package tenant

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
)

// The proxy dials for each request, so that each is checked against the grants of its time and recorded as a use.
func TestProxyDialsForEachRequest(t *testing.T) {
	var kept atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !r.Close {
			kept.Store(true)
		}
	}))
	defer server.Close()
	p := testProxy(t, server.URL)
	for _, method := range []string{"GET", "POST"} {
		request := method + " " + server.URL + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
		for range 2 {
			if answer := responseTo(t, p, request); !strings.HasPrefix(answer, "HTTP/1.1 200") {
				t.Errorf("the response is %q", answer)
			}
			if got := p.takeUsedRights(); !slices.Equal(got, []string{"http:" + method + ":" + server.URL}) {
				t.Errorf("%s is recorded as %q", method, got)
			}
		}
	}
	if kept.Load() {
		t.Error("the proxy asks the server to keep its connection")
	}
}

// shortListener accepts a number of connections and then ends.
type shortListener struct {
	net.Listener
	left int
}

func (l *shortListener) Accept() (net.Conn, error) {
	if l.left == 0 {
		return nil, net.ErrClosed
	}
	l.left--
	return l.Listener.Accept()
}

// A connection over the limit is closed, and one that ends makes way for the next.
func TestListenerHasSlots(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var dialled []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		dialled = append(dialled, conn)
	}
	short := &shortListener{l, 2}
	g := &browserListener{Listener: short, chromePID: syscall.Getpgrp(), slots: make(chan struct{}, 1)}
	first, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := g.Accept(); err == nil {
		t.Fatalf("a connection over the limit is accepted: %v", second)
	}
	dialled[1].SetReadDeadline(time.Now().Add(time.Second))
	if _, err := dialled[1].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a connection over the limit is not closed: %v", err)
	}
	first.Close()
	first.Close() // the second time it has no slot
	short.left = 1
	third, err := g.Accept()
	if err != nil {
		t.Fatalf("the slot of a closed connection is not free: %v", err)
	}
	third.Close()
	if len(g.slots) > 0 {
		t.Errorf("%d slots are in use", len(g.slots))
	}
}

// testProxy returns a proxy that accepts this test as its browser.
func testProxy(t *testing.T, granted ...string) *proxy {
	t.Helper()
	p, err := newProxy(testGuard{}, syscall.Getpgrp())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	p.allow(plugin("one", granted...).HTTP)
	return p
}

// sendRaw sends a text to a proxy and returns the connection, whose reads fail after testTimeout.
func sendRaw(t *testing.T, p *proxy, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testTimeout))
	io.WriteString(conn, text)
	return conn
}

// responseTo sends a text to a proxy and returns the whole response.
func responseTo(t *testing.T, p *proxy, text string) string {
	t.Helper()
	answer, err := io.ReadAll(sendRaw(t, p, text))
	if err != nil {
		t.Error(err)
	}
	return string(answer)
}

// wantNoResponse sends a text to a proxy, which must close the connection without a response.
func wantNoResponse(t *testing.T, p *proxy, text string) {
	t.Helper()
	first := make([]byte, 1)
	if _, err := sendRaw(t, p, text).Read(first); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the response to %q begins with %q, %v", text, first, err)
	}
}

func TestProxyForwardsGrantedRequests(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header()["Content-Type"] = nil
		w.Header()["Date"] = nil
		io.WriteString(w, "<p>served")
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	p := testProxy(t, server.URL)
	answer := responseTo(t, p,
		"GET http://"+address+"/a?b;c=%zz HTTP/1.1\r\nHost: elsewhere.test\r\nX-Own: 1\r\n"+
			"Proxy-Connection: keep-alive\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 200") || !strings.HasSuffix(answer, "<p>served") {
		t.Errorf("answer %q", answer)
	}
	for _, added := range []string{"Content-Type", "Date", "Via"} {
		if strings.Contains(answer, added+":") {
			t.Errorf("the proxy added %s: %q", added, answer)
		}
	}
	if got.RequestURI != "/a?b;c=%zz" || got.Host != address || got.Header.Get("X-Own") != "1" ||
		got.Header.Get("X-Forwarded-For") != "" || got.Header.Get("Proxy-Connection") != "" {
		t.Errorf("the server received %s for %s, %v", got.RequestURI, got.Host, got.Header)
	}
}

func TestProxyClosesOtherRequests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the server was reached")
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	p := testProxy(t, "http://127.0.0.1:1")
	refused := p.watchRefusals()
	for _, text := range []string{
		"GET http://" + address + "/ HTTP/1.1\r\nHost: " + address + "\r\n\r\n",
		"CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: " + address + "\r\n\r\n",
		"GET https://" + address + "/ HTTP/1.1\r\nHost: " + address + "\r\n\r\n",
		"GET ftp://" + address + "/ HTTP/1.1\r\nHost: " + address + "\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: " + address + "\r\n\r\n",
		"CONNECT / HTTP/1.1\r\nHost: " + address + "\r\n\r\n",
	} {
		wantNoResponse(t, p, text)
	}
	if err := refused(address); err == nil || err.Code != host.Denied || p.refusalTotal < 2 {
		t.Errorf("refused %v, %d times", err, p.refusalTotal)
	}
}

func TestProxyTunnels(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.WriteString(conn, "hello ")
				io.Copy(conn, conn)
			}()
		}
	}()
	p := testProxy(t, "http://"+l.Addr().String())
	tunnel := func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", p.address())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(testTimeout))
		io.WriteString(conn, "CONNECT "+l.Addr().String()+" HTTP/1.1\r\nHost: x\r\n\r\nearly")
		r := bufio.NewReader(conn)
		answer, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		return conn, r
	}
	conn, r := tunnel()
	conn.(*net.TCPConn).CloseWrite()
	if all, err := io.ReadAll(r); err != nil || string(all) != "hello early" {
		t.Errorf("got %q through the tunnel, %v", all, err)
	}
	conn.Close()

	// Open tunnels end with the grant and with the proxy.
	for _, c := range []struct {
		what string
		end  func()
	}{{"the grant", func() { p.allow(nil) }}, {"the proxy", p.close}} {
		p.allow(plugin("one", "http://"+l.Addr().String()).HTTP)
		conn, r := tunnel()
		p.allow(plugin("one", "http://"+l.Addr().String()).HTTP) // the same grants change nothing
		if _, err := io.ReadFull(r, make([]byte, len("hello early"))); err != nil {
			t.Error(err)
		}
		c.end()
		if _, err := r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the tunnel is open after the end of %s: %v", c.what, err)
		}
		conn.Close()
	}
	waitFor(t, "the proxy to drop its connections", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.conns) == 0
	})
}

// slowEgress is an egress whose dials return once proceed is closed.
type slowEgress struct {
	testGuard
	dialling chan struct{}
	proceed  chan struct{}
}

func (s slowEgress) Dial(ctx context.Context, address string, grants []grant.HTTP) (net.Conn, error) {
	conn, err := s.testGuard.Dial(ctx, address, grants)
	s.dialling <- struct{}{}
	<-s.proceed
	return conn, err
}

// TestProxyDropsDialsOfEndedGrant ends a grant during a dial that it allows.
func TestProxyDropsDialsOfEndedGrant(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := slowEgress{dialling: make(chan struct{}), proceed: make(chan struct{})}
	p, err := newProxy(s, syscall.Getpgrp())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	p.allow(plugin("one", "http://"+l.Addr().String()).HTTP)
	go func() {
		<-s.dialling
		p.allow(nil)
		close(s.proceed)
	}()
	wantNoResponse(t, p, "CONNECT "+l.Addr().String()+" HTTP/1.1\r\nHost: x\r\n\r\n")
}

func TestProxyAcceptsOnlyItsBrowser(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the server was reached")
	}))
	defer server.Close()
	p, err := newProxy(testGuard{}, 1) // not this test's process
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	p.allow(plugin("one", server.URL).HTTP)
	wantNoResponse(t, p, "GET "+server.URL+"/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
}

func TestProxyConnectionLimit(t *testing.T) {
	p := testProxy(t)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	const few = 5 // what the kernel lists of many takes long to read on a busy machine
	slots := p.listener.(*browserListener).slots
	for range maxConnections - few {
		slots <- struct{}{}
	}
	for range few + 1 {
		conn, err := net.Dial("tcp", p.address())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	last := open[few]
	last.SetReadDeadline(time.Now().Add(testTimeout))
	if _, err := last.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection over the limit stays open: %v", err)
	}
	if n := len(slots); n != maxConnections {
		t.Errorf("%d connections are open, want %d", n, maxConnections)
	}
	for _, c := range open {
		c.Close()
	}
	waitFor(t, "all slots to be released", func() bool { return len(slots) == maxConnections-few })
}
