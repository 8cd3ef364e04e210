package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/mcp/access"
)

const token = "correct-horse-battery"

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// post sends a body with headers, including "Host", and returns the status and the response.
func post(t testing.TB, url, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

// TestHTTPAccess checks who has access: clients with a token that use a known host name, and no pages of other origins.
func TestHTTPAccess(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork)
	url := f.listen(t, mcp.HTTPConfig{Tokens: []string{"another-token-123", token}, Hosts: []string{"tools.example"}})
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), mcp.Path)
	_, port, _ := net.SplitHostPort(address)
	auth := "Bearer " + token
	for _, c := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"with the token", []string{"Authorization", auth}, 200},
		{"with the other token", []string{"Authorization", "Bearer another-token-123"}, 200},
		{"without a token", nil, 401},
		{"with a wrong token", []string{"Authorization", "Bearer correct-horse-batter"}, 401},
		{"with another scheme", []string{"Authorization", "Basic " + token}, 401},
		{"by localhost", []string{"Authorization", auth, "Host", "localhost:" + port}, 200},
		{"by IPv6", []string{"Authorization", auth, "Host", "[::1]:" + port}, 200},
		{"by an allowed name", []string{"Authorization", auth, "Host", "tools.example:" + port}, 200},
		{"by a rebound name", []string{"Authorization", auth, "Host", "evil.example:" + port}, 403},
		{"by a similar name", []string{"Authorization", auth, "Host", "localhost.evil.example"}, 403},
		{"by a name that begins with an allowed one",
			[]string{"Authorization", auth, "Host", "tools.example.evil.example"}, 403},
		{"by a name that ends in an allowed one", []string{"Authorization", auth, "Host", "xtools.example"}, 403},
		{"by a name below an allowed one", []string{"Authorization", auth, "Host", "a.tools.example:" + port}, 403},
		{"by a part of an allowed name", []string{"Authorization", auth, "Host", "tools"}, 403},
		{"by an allowed name in capitals", []string{"Authorization", auth, "Host", "TOOLS.EXAMPLE:" + port}, 200},
		{"from its own origin", []string{"Authorization", auth, "Origin", "http://" + address}, 200},
		{"from another origin", []string{"Authorization", auth, "Origin", "https://evil.example"}, 403},
		{"from another port of this machine", []string{"Authorization", auth, "Origin", "http://127.0.0.1:1"}, 403},
		{"from a page without origin", []string{"Authorization", auth, "Origin", "null"}, 403},
		{"from an origin that begins with its own",
			[]string{"Authorization", auth, "Origin", "http://" + address + ".evil.example"}, 403},
		{"from an origin that begins with localhost", []string{"Authorization", auth, "Host", "localhost", "Origin",
			"http://localhost.evil.example"}, 403},
		{"from an origin that begins with an allowed name", []string{"Authorization", auth, "Host", "tools.example", "Origin",
			"http://tools.example.evil.example"}, 403},
		{"from another site", []string{"Authorization", auth, "Sec-Fetch-Site", "cross-site"}, 403},
		{"from another page of its site", []string{"Authorization", auth, "Sec-Fetch-Site", "same-site"}, 403},
		{"from a page of its own", []string{"Authorization", auth, "Sec-Fetch-Site", "same-origin"}, 200},
		{"by a person", []string{"Authorization", auth, "Sec-Fetch-Site", "none"}, 200},
	} {
		status, body := post(t, url, initialize, c.headers...)
		if status != c.status {
			t.Errorf("%s: status %d, expected %d: %s", c.name, status, c.status, body)
		}
		if status == 403 {
			var e struct{ Error failure }
			if json.Unmarshal([]byte(body), &e) != nil || e.Error.Code != "denied" {
				t.Errorf("%s: %s", c.name, body)
			}
		}
	}
	if f.shop.callLog() != "" {
		t.Errorf("ran %s", f.shop.callLog())
	}
}

// TestSessionOfAnotherToken checks that a session is accessible only with the token that began it.
func TestSessionOfAnotherToken(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork)
	tokens := []string{token, "another-token-123"}
	url := f.listen(t, mcp.HTTPConfig{Tokens: tokens})
	request := func(method, token, session, body string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + token,
			"Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
			if v != "" {
				r.Header.Set(k, v)
			}
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response
	}
	session := request(http.MethodPost, token, "", initialize).Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("no session was opened")
	}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		for i, want := range map[int]bool{1: false, 0: true} {
			if i == 0 && method == http.MethodDelete {
				continue // it would end the session
			}
			body := list
			if method == http.MethodDelete {
				body = ""
			}
			if got := request(method, tokens[i], session, body).StatusCode; (got == 200) != want || !want && got != 403 {
				t.Errorf("%s with token %d: status %d", method, i, got)
			}
		}
	}
	if got := request(http.MethodPost, token, session, list).StatusCode; got != 200 {
		t.Errorf("the session has ended: status %d", got)
	}
}

// TestLimits checks each limit of the server at its value and one beyond. It has its own copy of the values.
func TestLimits(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork)
	url := f.listen(t, mcp.HTTPConfig{})
	const echo = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shop__echo","arguments":{"a":"b"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":` +
		`{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	stateless := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "shop__echo"}
	large := strings.Replace(echo, `"a":"b"`, `"a":"`+strings.Repeat("x", 1<<20)+`"`, 1)
	small := strings.Replace(echo, `"a":"b"`, `"a":"`+strings.Repeat("x", 1<<20-len(echo)-1)+`b"`, 1)
	for _, tt := range []struct {
		name  string
		limit int
		body  string
	}{
		{"calls", 256, echo}, {"requests", 512, echo}, {"large bodies", 4, large},
	} {
		slots := f.Slots(tt.name)
		if cap(slots) != tt.limit {
			t.Fatalf("%s: at most %d at a time, want %d", tt.name, cap(slots), tt.limit)
		}
		for range tt.limit - 1 {
			slots <- struct{}{}
		}
		if status, body := post(t, url, tt.body, stateless...); status != 200 || strings.Contains(body, `busy`) {
			t.Errorf("%s: at the limit: %d %.300s", tt.name, status, body)
		}
		slots <- struct{}{}
		status, body := post(t, url, tt.body, stateless...)
		if !strings.Contains(body, `busy`) || tt.name != "calls" && status != 503 {
			t.Errorf("%s: over the limit: %d %.300s", tt.name, status, body)
		}
		if tt.name == "large bodies" {
			if status, body := post(t, url, small, stateless...); status != 200 || strings.Contains(body, `busy`) {
				t.Errorf("a body below the size of large ones: %d %.300s", status, body)
			}
		}
		for range tt.limit {
			<-slots
		}
	}

	// Calls that may return large results, and unread bytes.
	slots := f.Slots("large calls")
	if cap(slots) != 4 {
		t.Errorf("%d large calls", cap(slots))
	}
	whole := strings.Replace(echo, `"params":{"name":"shop__echo","arguments":{"a":"b"}`,
		`"params":{"name":"call_tool","arguments":{"name":"shop.echo","arguments":{},"options":{"max_bytes":1048577}}`, 1)
	stateless[5] = "call_tool"
	for unsent, busy := range map[int64]bool{32 << 20: false, 32<<20 + 1: true} {
		f.SetUnsentBytes(unsent)
		if status, body := post(t, url, whole, stateless...); status != 200 || strings.Contains(body, `busy`) != busy {
			t.Errorf("%d unread bytes: %d %.300s", unsent, status, body)
		}
	}
	f.SetUnsentBytes(0)
	for range cap(slots) {
		slots <- struct{}{}
	}
	ended := make(chan int, 1)
	go func() {
		status, _ := post(t, url, whole, stateless...)
		ended <- status
	}()
	if status, body := post(t, url, strings.Replace(whole, "1048577", "1048576", 1), stateless...); status != 200 {
		t.Errorf("a call that is not large: %d %.300s", status, body)
	}
	select {
	case <-ended:
		t.Error("a large call over the limit did not wait")
	default:
	}
	for range cap(slots) {
		<-slots
	}
	if status := <-ended; status != 200 {
		t.Errorf("a large call that waited: %d", status)
	}

	// Bytes of a message, over HTTP.
	const maxMessage = 16<<20 + 64<<10
	stateless[5] = "shop__echo"
	for more, want := range map[int]int{0: 200, 1: 413} {
		body := echo + strings.Repeat(" ", maxMessage-len(echo)+more)
		if status, answer := post(t, url, body, stateless...); status != want {
			t.Errorf("a message of %d bytes: %d %.300s", len(body), status, answer)
		}
	}

	// Sessions.
	const maxSessions = 512
	for n := range maxSessions + 1 {
		status, body := post(t, url, initialize)
		if want := n < maxSessions; (status == 200) != want || !want && status != 503 {
			t.Fatalf("session %d: %d %.300s", n+1, status, body)
		}
	}
}

// TestModesOverHTTP checks that each mode has a path on both wires, and that the error for an unknown mode names all
// of them.
func TestModesOverHTTP(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork, "shop.add")
	url := f.listen(t, mcp.HTTPConfig{})
	for _, revision := range revisions {
		for path, want := range map[string]int{"": 3, "/minimal": 3, "/progressive": 5, "/full": 14} {
			if names := listed(t, client{revision: revision}.http(t, url+path)); len(names) != want {
				t.Errorf("%s %s: %q", revision, path, names)
			}
		}
	}
	call(t, client{}.http(t, url+"/full"), "shop__echo", `{}`)
	if e := f.rec.last(); e.Mode != mcp.Full {
		t.Errorf("a call at /full is recorded in mode %s", e.Mode)
	}
	if status, body := post(t, url+"/tiny", initialize); status != 404 || !strings.Contains(body,
		"minimal, progressive, full") {
		t.Errorf("an unknown mode: %d %s", status, body)
	}
	for _, path := range []string{"/", "/full", mcp.Path + "full", mcp.Path + "x", mcp.Path + "/full/x"} {
		if status, _ := post(t, strings.TrimSuffix(url, mcp.Path)+path, initialize); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// TestHandlerInAMux serves a mode at a path of its own beside another route of the same mux, on both wires.
func TestHandlerInAMux(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcp.Minimal, trustNetwork, "shop.add")
	mux := http.NewServeMux()
	for path, mode := range map[string]string{"/agents/tools": mcp.Progressive, "/all/": mcp.Full} {
		handler, err := f.Handler(mode, mcp.HTTPConfig{Tokens: []string{token}})
		if err != nil {
			t.Fatal(err)
		}
		mux.Handle(path, handler)
	}
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") })
	if _, err := f.Handler("tiny", mcp.HTTPConfig{}); host.AsError(err).Code != host.InvalidArgs {
		t.Errorf("an unknown mode: %v", err)
	}
	server := httptest.NewServer(mux)
	defer server.Close()

	for _, revision := range revisions {
		for path, want := range map[string]int{"/agents/tools": 5, "/all/mcp": 14} {
			s := client{revision: revision, token: token}.http(t, server.URL+path)
			if names := listed(t, s); len(names) != want {
				t.Errorf("%s %s lists %q", revision, path, names)
			}
			if r, text := call(t, s, "call_tool", `{"name":"shop.echo","arguments":{"a":"b"}}`); r.IsError ||
				text != `{"a":"b"}` {
				t.Errorf("%s %s: %s", revision, path, text)
			}
		}
	}
	for path, want := range map[string]int{"/health": 200, "/agents/tools": 401, "/mcp": 404} {
		if status, body := post(t, server.URL+path, initialize); status != want {
			t.Errorf("%s without a token: %d %s", path, status, body)
		}
	}
	auth := []string{"Authorization", "Bearer " + token, "Origin", "https://evil.example"}
	if status, body := post(t, server.URL+"/agents/tools", initialize, auth...); status != 403 {
		t.Errorf("from another origin: %d %s", status, body)
	}

	// Shutdown ends MCP; the other routes of the mux still work.
	started := make(chan struct{}, 1)
	s := client{token: token, progress: func(*sdk.ProgressNotificationParams) { started <- struct{}{} }}.
		http(t, server.URL+"/agents/tools")
	go func() {
		<-started
		f.Shutdown(t.Context(), host.Errorf(host.Terminated, "terminated"))
	}()
	p := &sdk.CallToolParams{Name: "shop__order__slow"}
	p.SetProgressToken(1)
	if r, err := s.CallTool(t.Context(), p); err != nil || !r.IsError || !strings.Contains(firstText(r), "terminated") {
		t.Errorf("the call in progress returned %+v, %v", r, err)
	}
	if status, body := post(t, server.URL+"/agents/tools", initialize, auth[:2]...); status != 503 {
		t.Errorf("after Shutdown: %d %s", status, body)
	}
	if status, _ := post(t, server.URL+"/health", ""); status != 200 {
		t.Errorf("/health after Shutdown: %d", status)
	}
}

// endless is a body of 100 MB that counts how much of it was read.
type endless struct {
	left  int
	taken atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = ' '
	}
	e.left -= n
	e.taken.Add(int64(n))
	return n, nil
}

// TestLargeBodies checks that a body over the limit is refused, with and without Content-Length, and that invalid
// bodies are client errors.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcp.Minimal, trustNetwork)
	url := f.listen(t, mcp.HTTPConfig{})
	for _, announced := range []int64{100 << 20, -1} {
		body := &endless{left: 100 << 20}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
		r.ContentLength = announced
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("100 MB, announced as %d: %d", announced, answer.StatusCode)
			}
		} // otherwise the connection was closed while the body was sent
		if n := body.taken.Load(); n > 64<<20 {
			t.Errorf("%d bytes of the body were read", n)
		}
	}
	for _, body := range []string{"", "{", "[]", "null", strings.Repeat("[", 1<<20),
		`{"jsonrpc":"2.0","id":1,"method":"nothing"}`, `{"jsonrpc":"1.0"}`} {
		for _, version := range []string{"", "2025-11-25", "2026-07-28", "9999"} {
			if status, answer := post(t, url, body, "Mcp-Protocol-Version", version); status < 400 || status >= 500 {
				t.Errorf("%.20q under %q: %d %s", body, version, status, answer)
			}
		}
	}
	// The server still works, and refused bodies do not count towards the limit.
	if names := listed(t, client{}.http(t, url)); len(names) != 3 {
		t.Errorf("tools/list has %q", names)
	}
	waitFor(t, "large bodies to end", func() bool { return len(f.Slots("large bodies")) == 0 })
	waitFor(t, "the responses to be read", func() bool { return f.UnsentBytes() == 0 })
}

// TestRefusedBodies checks that a client that reads nothing before it has sent all gets the response to each body that
// is refused: the status and, for a message that is too long, its id.
func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcp.Minimal, trustNetwork)
	url := f.listen(t, mcp.HTTPConfig{Tokens: []string{token}})
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), mcp.Path)
	long := strings.Repeat("y", 40<<20)
	for name, test := range map[string]struct{ host, token, body, want, id string }{
		"too long":          {"localhost", token, `{"id":1.50,"x":"` + long + `"}`, " 413 ", `"id":1.50,`},
		"too long, id last": {"localhost", token, `{"x":"` + long + `","id":"a"}`, " 413 ", `"id":"a",`},
		"of a stranger":     {"localhost", "none", `{"id":1,"x":"` + long[:8<<20] + `"}`, " 401 ", ""},
		"of another host":   {"a.example", token, `{"id":1,"x":"` + long[:8<<20] + `"}`, " 403 ", `"denied"`},
	} {
		for _, announced := range []bool{true, false} {
			framing, end := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(test.body)), "\r\n0\r\n\r\n"
			if announced {
				framing, end = fmt.Sprintf("Content-Length: %d\r\n\r\n", len(test.body)), ""
			}
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_, sent := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: "+test.host+"\r\nAuthorization: Bearer "+test.token+
				"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n"+
				framing+test.body+end)
			answer, err := io.ReadAll(conn)
			_ = conn.Close()
			status, _, _ := strings.Cut(string(answer), "\r\n")
			if sent != nil || err != nil || !strings.Contains(status, test.want) || !strings.Contains(string(answer), test.id) {
				t.Errorf("%s, announced %v: %v, %v, %.300q", name, announced, sent, err, answer)
			}
		}
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// pipes is a listener with a client that connects as soon as Accept is called.
type pipes struct {
	net.Listener
	accepted atomic.Int64
}

func (p *pipes) Accept() (net.Conn, error) {
	p.accepted.Add(1)
	conn, _ := net.Pipe()
	return conn, nil
}

// TestBoundedListener checks that no more connections are accepted than may be open at a time.
func TestBoundedListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 3
		inner := &pipes{}
		l := mcp.BoundListener(inner, most, most)
		accepted := make(chan net.Conn, 2*most)
		go func() {
			for range most + 2 {
				conn, _ := l.Accept()
				accepted <- conn
			}
		}()
		for closed := range 3 {
			synctest.Wait()
			if n := inner.accepted.Load(); n != int64(most+min(closed, 2)) {
				t.Errorf("%d were accepted after %d were closed", n, closed)
			}
			conn := <-accepted
			_, _ = conn.Close(), conn.Close() // closing twice counts once
		}
	})
}

// TestConnectionsPerClient checks that further connections of a client that has many are closed.
func TestConnectionsPerClient(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	const most = 3
	l := mcp.BoundListener(inner, 100, most)
	accepted := make(chan net.Conn, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	open := func() net.Conn {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	for range most {
		open()
	}
	waitFor(t, "the first connections", func() bool { return len(accepted) == most })
	refused := open()
	_ = refused.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := refused.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection too many: %d, %v", n, err)
	}
	_ = (<-accepted).Close()
	open()
	waitFor(t, "another one", func() bool { return len(accepted) == most })
}

// TestLargeArguments checks that HTTP accepts arguments as large as the command line does.
func TestLargeArguments(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcp.Minimal, trustNetwork)
	s := client{}.http(t, f.listen(t, mcp.HTTPConfig{}))
	r, text := call(t, s, "call_tool", `{"name":"shop.echo","arguments":{"a":"`+strings.Repeat("x",
		5<<20)+`"},"options":{"max_bytes":100}}`)
	if r.IsError || !strings.Contains(text, `"truncated":true`) {
		t.Errorf("5 MB of arguments: %.300s", text)
	}
}

// TestSlowClients checks that a client that sends its headers or its body too slowly is disconnected, and that other
// clients are served meanwhile.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcp.Minimal, trustNetwork)
	url := f.listen(t, mcp.HTTPConfig{Tokens: []string{token}, ClientTimeout: slowAfter})
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), mcp.Path)
	dial := func(start string) net.Conn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, start); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
		token + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	var wait sync.WaitGroup
	for name, start := range map[string]string{
		"headers":                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-A: ",
		"a body":                 head + "Content-Length: 1000\r\n\r\n{",
		"the body of a stranger": "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{",
	} {
		conn := dial(start)
		defer conn.Close()
		wait.Go(func() {
			began := time.Now()
			_ = conn.SetReadDeadline(began.Add(10 * slowAfter))
			if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Errorf("a client that does not finish %s is still connected after %s", name, time.Since(began))
			}
		})
	}
	// A client disconnects after its request; the server keeps running.
	for range 50 {
		dial(head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(initialize), initialize)).Close()
	}
	if names := listed(t, client{token: token}.http(t, url)); len(names) != 3 {
		t.Errorf("besides slow clients tools/list has %q", names)
	}
	wait.Wait()
}

// TestIncompleteBodies checks that a body that ends before its end, or is not framed as its headers say, is an invalid
// request, and not one that came too late.
func TestIncompleteBodies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcp.Minimal, trustNetwork)
	url := f.listen(t, mcp.HTTPConfig{})
	for _, rest := range []string{"Content-Length: 100\r\n\r\n{",
		"Content-Length: 2000000\r\n\r\n" + strings.Repeat(" ", 1<<20),
		"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"} {
		conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), mcp.Path))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+rest)
		if err = errors.Join(err, conn.(*net.TCPConn).CloseWrite()); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		if checkError(t, rest[:16], string(body), "null", -32700); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%.40q: %d %s", rest, answer.StatusCode, body)
		}
	}
}

// TestRefusedTokens checks the response to tokens that a verifier refuses, whatever it returns beside the error: one
// that cannot be checked now, and a valid one that gives no access.
func TestRefusedTokens(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{errors.New("the file is being written"), http.StatusUnauthorized, "invalid token"},
		{host.Errorf(host.Denied, "no claim matches"), http.StatusForbidden, `"message":"no claim matches"`},
	} {
		f := newFixture(t, mcp.Minimal, trustNetwork)
		url := f.listen(t, mcp.HTTPConfig{
			Metadata: "https://tools.example/metadata",
			Verify:   func(context.Context, string) (access.Token, error) { return access.Token{Token: token}, c.err },
		})
		status, body := post(t, url, initialize, "Authorization", "Bearer "+token)
		if status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%v: %d %s", c.err, status, body)
		}
	}
}

// TestNoCallAfterShutdown checks that a server that shuts down begins no call while another one still ends.
func TestNoCallAfterShutdown(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork)
	closing, release := make(chan struct{}), make(chan struct{})
	f.shop.handlers["order.slow"] = func(ctx context.Context, _ *host.Request) (*job.Result, error) {
		<-ctx.Done()
		close(closing)
		<-release
		return nil, ctx.Err()
	}
	f.shop.handlers["echo"] = func(context.Context, *host.Request) (*job.Result, error) {
		t.Error("a call began")
		return jsonData(`{}`)
	}
	s := f.stdio(t, client{revision: revisions[0]})
	slow := make(chan struct{})
	go func() {
		defer close(slow)
		_, _ = s.CallTool(t.Context(), &sdk.CallToolParams{
			Name: "call_tool", Arguments: json.RawMessage(`{"name":"shop.order.slow","arguments":{}}`),
		})
	}()
	for f.shop.callLog() == "" {
		runtime.Gosched()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Shutdown(t.Context(), host.Errorf(host.Terminated, "terminated"))
	}()
	<-closing
	_, text := call(t, s, "call_tool", `{"name":"shop.echo","arguments":{}}`)
	if !strings.Contains(text, "terminated") {
		t.Errorf("got %s", text)
	}
	close(release)
	<-slow
	<-ended
	if e := f.rec.last(); e.Tool != "shop.order.slow" {
		t.Errorf("the call of %s was recorded", e.Tool)
	}
}

// TestDrain checks that a server that drains lets a call go on, begins none, and says so to those who ask.
func TestDrain(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork)
	begun, release := make(chan struct{}), make(chan struct{})
	f.shop.handlers["order.slow"] = func(context.Context, *host.Request) (*job.Result, error) {
		close(begun)
		<-release
		return jsonData(`"finished"`)
	}
	url := f.listen(t, mcp.HTTPConfig{})
	s := client{revision: revisions[0]}.http(t, url)
	told := make(chan string, 1)
	listener, err := sdk.NewClient(&sdk.Implementation{Name: "listener", Version: "1"}, &sdk.ClientOptions{
		//lint:ignore SA1019 as below
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) { told <- fmt.Sprint(r.Params.Data) },
	}).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1},
		&sdk.ClientSessionOptions{ProtocolVersion: revisions[0]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	//lint:ignore SA1019 clients of revisions before 2026-07-28 use it
	if err := listener.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "info"}); err != nil {
		t.Fatal(err)
	}
	slow := make(chan string)
	go func() {
		_, text := call(t, s, "call_tool", `{"name":"shop.order.slow","arguments":{}}`)
		slow <- text
	}()
	<-begun
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		f.Drain(t.Context())
	}()
	var answer *http.Response
	waitFor(t, "another client is refused", func() bool {
		var err error
		if answer, err = http.Post(url, "application/json", strings.NewReader(initialize)); err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusServiceUnavailable
	})
	if answer.Header.Get("Retry-After") == "" || !answer.Close {
		t.Errorf("got %v", answer.Header)
	}
	_, text := call(t, s, "call_tool", `{"name":"shop.echo","arguments":{}}`)
	if !strings.Contains(text, "nothing was run") {
		t.Errorf("a call while the server drains: %s", text)
	}
	select {
	case <-drained:
		t.Error("the server did not wait for the call")
	default:
	}
	select {
	case text := <-told:
		if !strings.Contains(text, "shutting down") {
			t.Errorf("a session is told %q", text)
		}
	case <-time.After(5 * time.Second):
		t.Error("a session is not told that the server drains")
	}
	close(release)
	if text := <-slow; !strings.Contains(text, "finished") {
		t.Errorf("the call in flight: %s", text)
	}
	<-drained
}

// TestShutdown checks that a server that shuts down ends the calls in progress and accepts no more connections.
func TestShutdown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcp.Minimal, trustNetwork)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.HTTP(ctx, listener, mcp.HTTPConfig{}) }()
	s := client{progress: func(*sdk.ProgressNotificationParams) {
		cancel(host.Errorf(host.Terminated,
			"terminated"))
	}}.http(t, "http://"+listener.Addr().String()+mcp.Path)
	p := &sdk.CallToolParams{Name: "shop__order__slow"}
	p.SetProgressToken(1)
	r, err := s.CallTool(t.Context(), p)
	if err != nil || !r.IsError || !strings.Contains(firstText(r), "terminated") {
		t.Errorf("the call in progress returned %+v, %v", r, err)
	}
	select {
	case err := <-ended:
		if host.AsError(err).Code != host.Terminated {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server is still running")
	}
	select {
	case <-f.shop.ended:
	case <-time.After(10 * time.Second):
		t.Error("the tool was not interrupted")
	}
	if _, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		t.Error("the server still accepts connections")
	}
}

// TestProcess connects to a server in a process of its own, as an agent does, in both revisions.
func TestProcess(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions {
		s := startProcess(t, mcp.Minimal, client{revision: revision, answer: "accept"})
		if names := listed(t, s); strings.Join(names, " ") != "call_tool describe_tool search_tools" {
			t.Errorf("%s: tools/list has %q", revision, names)
		}
		if r, text := call(t, s, "call_tool", `{"name":"shop.order.cancel","arguments":{"id":1}}`); r.IsError ||
			text != `{"id":1}` {
			t.Errorf("%s: %s", revision, text)
		}
	}
}

// TestInvalidLines checks that a line that is not a message is reported and skipped, and that requests at the end of
// the input still get their responses.
func TestInvalidLines(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcp.Minimal, trustNetwork)
	in := initialize + "\n" + "garbage\n\n" + `{"jsonrpc":"2.0","id":` + strings.Repeat(" ", 17<<20) + "9}\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shop__echo","arguments":{"a":"b"}}}`
	var out strings.Builder
	if err := f.Stdio(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"protocolVersion":"2025-11-25"`, `"code":-32700`, `longer than`, `{\"a\":\"b\"}`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in %s", want, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

// TestClientThatNeverReads checks that the server stops reading from a client on stdio that does not read, instead of
// buffering responses.
func TestClientThatNeverReads(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcp.Minimal, trustNetwork)
	f.SetShutdownGrace(100 * time.Millisecond)
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Stdio(ctx, toServer, fromServer) }()
	reader := bufio.NewReader(toClient)
	go func() { _, _ = io.WriteString(fromClient, initialize+"\n") }()
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		line := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"shop__large","arguments":{"bytes":20000}}}` + "\n"
		for n := range 100_000 {
			if _, err := fmt.Fprintf(fromClient, line, n+10); err != nil {
				return
			}
			sent.Add(1)
		}
	}()
	for last, same := int64(0), 0; same < 20; time.Sleep(10 * time.Millisecond) { // until it blocks
		if same++; sent.Load() != last {
			last, same = sent.Load(), 0
		}
	}
	cancel(host.Errorf(host.Terminated, "terminated"))
	select {
	case err := <-ended:
		if host.AsError(err).Code != host.Terminated {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the server is still running")
	}
	_ = toServer.Close()
	<-wrote
	if n := sent.Load(); n > 2000 {
		t.Errorf("%d requests were read from a client that reads nothing", n)
	}
	_ = toClient.Close()
}
