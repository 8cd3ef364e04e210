//go:build linux

package keeper

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
	"github.com/parley-tools/parley/internal/wire"
)

// BenchmarkCall measures one evaluation through an open connection and through a new one.
func BenchmarkCall(b *testing.B) {
	cfg, c := benchBrowser(b)
	one := func(b *testing.B, c *Client) {
		if _, err := c.Call(b.Context(), evaluation("1+1")); err != nil {
			b.Fatal(err)
		}
	}
	timed := func(b *testing.B) {
		var took []time.Duration
		for b.Loop() {
			began := time.Now()
			one(b, c)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	}
	b.Run("open", timed)
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			again, err := Dial(b.Context(), cfg.RunDir, "", "test")
			if err != nil {
				b.Fatal(err)
			}
			one(b, again)
			again.Close()
		}
	})
	b.Run("events", func(b *testing.B) {
		// Calls go to one page while another fills the ring with some 10,000 events a second.
		if _, err := c.Call(b.Context(),
			evaluation("setInterval(() => { for (let i = 0; i < 100; i++) console.log(i) }, 10); 0")); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Open(b.Context(), api.OpenRequest{}); err != nil {
			b.Fatal(err)
		}
		before, _ := c.Status(b.Context(), false)
		started := time.Now()
		timed(b)
		after, _ := c.Status(b.Context(), false)
		b.ReportMetric(float64(after.Events.LastSeq-before.Events.LastSeq)/time.Since(started).Seconds(), "events/s")
	})
}

func benchBrowser(b *testing.B) (Config, *Client) {
	b.Helper()
	cfg, err := foundConfig(b.TempDir())
	if err != nil {
		b.Skip("needs a browser: ", err)
	}
	c, err := Start(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.Close()
		Stop(context.Background(), cfg.RunDir, "", "test")
	})
	if _, err := c.Open(b.Context(), api.OpenRequest{}); err != nil {
		b.Fatal(err)
	}
	return cfg, c
}

// BenchmarkFullJournals measures the memory of a keeper whose journals are full of requests, messages and others.
func BenchmarkFullJournals(b *testing.B) {
	server := httptest.NewServer(http.NotFoundHandler())
	b.Cleanup(server.Close)
	_, c := benchBrowser(b)
	run := func(expression string) {
		b.Helper()
		if _, err := c.Call(within(b, 120_000), api.CallRequest{Method: "Runtime.evaluate",
			Params: scan.Marshal(map[string]any{"expression": expression, "awaitPromise": true})}); err != nil {
			b.Fatal(err)
		}
	}
	for _, name := range []string{"mcp:one", "mcp:two", "mcp:three", "mcp:four", "mcp:five", "cli"} {
		c = c.As(api.Caller{Name: name})
		if _, err := c.Open(b.Context(), api.OpenRequest{URL: server.URL}); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Call(b.Context(), api.CallRequest{Method: "DOMStorage.enable"}); err != nil {
			b.Fatal(err)
		}
		run(`(async () => {
			for (let i = 0; i < 3000; i++) console.log(i, "x".repeat(400))
			for (let i = 0; i < 3000; i++) localStorage.setItem("key", i + "x".repeat(400))
			for (let i = 0; i < 80; i++) await Promise.all(Array.from({length: 10}, () => fetch("/" + Math.random())))
		})()`)
	}
	var s api.Status
	for b.Loop() {
		var err error
		if s, err = c.Status(b.Context(), false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(s.Events.Bytes)/1e6, "stored-MB")
	b.ReportMetric(float64(s.Events.Kept), "events")
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.KeeperPID))
	for line := range strings.Lines(string(raw)) {
		var kB float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kB); n == 1 {
			b.ReportMetric(kB/1024, "RSS-MiB")
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kB); n == 1 {
			b.ReportMetric(kB/1024, "peak-MiB")
		}
	}
}

// TestHammerCallsAndStreams calls a browser from many connections while streams start and end.
func TestHammerCallsAndStreams(t *testing.T) {
	cfg := config(t)
	c := startBrowser(t, cfg)
	openPage(t, c, site(t, map[string]string{"/": plainPage}))
	var calls atomic.Int64
	done := make(chan error, 6)
	for range 4 {
		go func() {
			for range 40 {
				one, err := Dial(testContext(t), cfg.RunDir, "", "test")
				if err == nil {
					_, err = one.Call(testContext(t), evaluation("1+1"))
					one.Close()
				}
				if err != nil {
					done <- err
					return
				}
				calls.Add(1)
			}
			done <- nil
		}()
	}
	for range 2 {
		go func() {
			for range 10 {
				_, err := c.Listen(testContext(t), api.ListenRequest{Patterns: []string{"Network.*", "Runtime.*"}, TimeoutMS: 20},
					nil, func(json.RawMessage) error {
						return nil
					})
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 6 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if calls.Load() != 160 {
		t.Errorf("%d calls returned", calls.Load())
	}
	c.mu.Lock()
	if len(c.waiters) != 0 {
		t.Errorf("%d responses are still awaited", len(c.waiters))
	}
	c.mu.Unlock()
}

// TestClientThatNeverReadsIsBlocked sends requests without reading. The keeper stops reading once too much is
// queued, and serves every request once the client reads.
func TestClientThatNeverReadsIsBlocked(t *testing.T) {
	var cfg Config
	cfg.setDefaults()
	e := verb.New(muxtest.New(), cfg.rooms(false))
	large := []byte(`{"method":"Target.targetCrashed","params":{"pad":"` + strings.Repeat("x", 512<<10) + `"}}`)
	e.Mux.Handle(browser.Message{Data: large, Size: int64(len(large))})
	f := files{tempDir(t), "test"}
	l, err := net.Listen("unix", f.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := newServer(e, hello{Wire: WireVersion}, time.Minute)
	go s.serve(l)
	const many = maxUnsent + 100       // the response to each request has half a megabyte
	pad := strings.Repeat(" ", 64<<10) // so that only few requests fit into the socket's buffer
	sendUntilBlocked := func() (conn net.Conn, c *wire.Conn, sent int) {
		conn, err := net.Dial("unix", f.socket())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		c = wire.NewConn(bufio.NewReader(conn), conn)
		if err := c.SendJSON(wire.KindHello, hello{Wire: WireVersion}); err != nil {
			t.Fatal(err)
		}
		if _, err := readHello(c); err != nil {
			t.Fatal(err)
		}
		conn.SetWriteDeadline(time.Now().Add(2 * time.Second))
		for c.Send(wire.KindCall,
			fmt.Appendf(nil, `{"id":%d,"op":"events","by":{"name":"cli"},"body":{}%s}`, sent+1, pad)) == nil {
			if sent++; sent == many {
				t.Fatalf("the keeper read %d requests without a response being read", sent)
			}
		}
		return conn, c, sent
	}
	_, c, sent := sendUntilBlocked()
	for range sent {
		if a, err := readResponse(c); err != nil || a.failure != nil {
			t.Fatal(a.failure, err)
		}
	}
	// A blocked client that disconnects leaves nothing behind.
	leaving, _, _ := sendUntilBlocked()
	leaving.Close()
	waitFor(t, "the client to be removed", func() bool { return s.clientCount() == 1 })
}

// consoleEvent is Chromium's event for console.log(1) in a page.
const consoleEvent = `{"method":"Runtime.consoleAPICalled","params":{"type":"log","args":[{"type":"number","value":1,"description":"1"}],"executionContextId":3,` +
	`"timestamp":1790000000000.123,"stackTrace":{"callFrames":[{"functionName":"","scriptId":"5","url":"http://127.0.0.1:9/page","lineNumber":0,"columnNumber":64}]}},"sessionId":"S"}`

// BenchmarkEvent measures the keeper's work for one event.
func BenchmarkEvent(b *testing.B) {
	var cfg Config
	cfg.setDefaults()
	e := verb.New(muxtest.New(), cfg.rooms(false))
	e.Tracker.ByID["T"] = &target.Target{Address: mux.Address{ID: "T", Session: "S"}, Kind: "page",
		Domains: map[string]*target.Domain{}}
	e.Tracker.Sessions["S"] = e.Tracker.ByID["T"]
	b.SetBytes(int64(len(consoleEvent)))
	for b.Loop() {
		e.Mux.Handle(browser.Message{Data: []byte(consoleEvent), Size: int64(len(consoleEvent))})
	}
}

// BenchmarkBesideFlood measures a call to one page of a Chrome while another page logs 10,000 messages a second, and in
// turns while that is silent: by a bare client with a connection for each page, by one that has both on one
// connection, as a keeper needs it, through a keeper that does not record the loud page, and through one that does.
// The ratio of the second is Chrome's own share of the fourth.
func BenchmarkBesideFlood(b *testing.B) {
	cfg, err := foundConfig(tempDir(b))
	if err != nil {
		b.Skip("needs a browser: ", err)
	}
	_, address := startExternalChrome(b, cfg.Chrome)
	cfg.Chrome, cfg.Attach = "", address
	c, err := Start(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.Close()
		Stop(context.Background(), cfg.RunDir, "", "test")
	})
	first, err := c.Targets(b.Context())
	if err != nil || len(first) != 1 {
		b.Fatal(first, err)
	}
	loud := first[0].ID
	page, err := c.Open(b.Context(), api.OpenRequest{})
	if err != nil {
		b.Fatal(err)
	}
	dial := func(id string) *websocket.Conn {
		url := strings.Split(address, "/devtools/")[0] + "/devtools/page/" + id
		ws, _, err := websocket.DefaultDialer.Dial(url, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { ws.Close() })
		return ws
	}
	do := func(ws *websocket.Conn, method, params string) (result struct{ Result struct{ Value int } }) {
		command := fmt.Sprintf(`{"id":1,"method":"%s","params":%s}`, method, params)
		err := ws.WriteMessage(websocket.TextMessage, []byte(command))
		var reply struct {
			ID     int
			Result any
		}
		for reply.Result = &result; err == nil && reply.ID == 0; {
			err = ws.ReadJSON(&reply)
		}
		if err != nil {
			b.Fatal(err)
		}
		return result
	}
	control, quiet := dial(loud), dial(page.Target)
	inLoud := func(expression string) int {
		return do(control, "Runtime.evaluate", fmt.Sprintf(`{"expression":%s}`, scan.Quote(expression))).Result.Value
	}
	// Chrome slows the timers of a page in the background, but not those of a worker.
	inLoud(`var loud, n = 0, clock = new Worker(URL.createObjectURL(new Blob(["setInterval(() => postMessage(0), 10)"])));
		clock.onmessage = () => { for (let i = 0; loud && i < 100; i++) console.log(n++) }; 0`)
	measure := func(name string, call func()) {
		b.Run(name, func(b *testing.B) {
			var took [2][]time.Duration // without and with the flood
			var inFlood time.Duration
			before := inLoud("n")
			at, until := 1, time.Now()
			for b.Loop() {
				if time.Now().After(until) {
					at, until = 1-at, time.Now().Add(300*time.Millisecond)
					inLoud(fmt.Sprintf("loud = %v; 0", at == 1))
				}
				began := time.Now()
				call()
				took[at] = append(took[at], time.Since(began))
				if at == 1 {
					inFlood += time.Since(began)
				}
			}
			inLoud("loud = false; 0")
			b.ReportMetric(float64(inLoud("n")-before)/inFlood.Seconds(), "logged/s")
			for at, unit := range []string{"idle", "flood"} {
				slices.Sort(took[at])
				for _, percent := range []int{50, 99} {
					b.ReportMetric(float64(took[at][len(took[at])*percent/100].Microseconds()),
						fmt.Sprintf("%s-p%d-us", unit, percent))
				}
			}
		})
	}
	kept := func() {
		if _, err := c.Call(b.Context(), evaluation("1+1")); err != nil {
			b.Fatal(err)
		}
	}
	hearing := dial(loud)
	do(hearing, "Runtime.enable", "{}")
	go func() {
		for {
			if _, _, err := hearing.ReadMessage(); err != nil {
				return
			}
		}
	}()
	measure("bare", func() { do(quiet, "Runtime.evaluate", `{"expression":"1+1"}`) })
	measure("keeper", kept)
	hearing.Close()
	both := func() (call, end func()) {
		ws, _, err := websocket.DefaultDialer.Dial(address, nil)
		if err != nil {
			b.Fatal(err)
		}
		id := 0
		in := func(session, method, params string) (reply struct{ Result struct{ SessionID string } }) {
			id++
			text := fmt.Sprintf(`{"id":%d,"sessionId":%q,"method":%q,"params":%s}`, id, session, method, params)
			if session == "" {
				text = strings.Replace(text, `"sessionId":"",`, "", 1)
			}
			err := ws.WriteMessage(websocket.TextMessage, []byte(text))
			for prefix := fmt.Appendf(nil, `{"id":%d,`, id); err == nil; {
				var message []byte
				if _, message, err = ws.ReadMessage(); bytes.HasPrefix(message, prefix) {
					json.Unmarshal(message, &reply)
					return reply
				}
			}
			b.Fatal(err)
			return reply
		}
		attach := func(target string) string {
			return in("", "Target.attachToTarget", fmt.Sprintf(`{"targetId":%q,"flatten":true}`, target)).Result.SessionID
		}
		in(attach(loud), "Runtime.enable", "{}")
		session := attach(page.Target)
		return func() { in(session, "Runtime.evaluate", `{"expression":"1+1"}`) }, func() { ws.Close() }
	}
	call, end := both()
	measure("bare-one-connection", call)
	end()
	if _, err := evaluate(b, c, loud, "0"); err != nil { // from here on the keeper records the page
		b.Fatal(err)
	}
	measure("recorder", kept)
}

// BenchmarkFlood measures a call through an open connection, alone and while 10,000 events a second arrive through
// the pipe. The peer responds at once, so every slowdown is the keeper's, not Chrome's.
func BenchmarkFlood(b *testing.B) {
	for _, rate := range []int{0, 10_000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			c, e := newPipePeer(b, rate)
			began, before := time.Now(), seenEvents(e)
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := c.Call(b.Context(), api.CallRequest{Method: "Runtime.evaluate", Target: "T"}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(float64(seenEvents(e)-before)/time.Since(began).Seconds(), "events/s")
		})
	}
}

func seenEvents(e *verb.Verbs) int64 {
	e.Mux.Lock()
	defer e.Mux.Unlock()
	return e.Events.Journals.Info().LastSeq
}

// newPipePeer returns a client of a keeper whose browser is a goroutine at the other end of a pipe. It responds to
// every command and sends rate events a second.
func newPipePeer(b *testing.B, rate int) (*Client, *verb.Verbs) {
	b.Helper()
	var ends [2][2]*os.File
	for i := range ends {
		var err error
		if ends[i][0], ends[i][1], err = os.Pipe(); err != nil {
			b.Fatal(err)
		}
	}
	var mu sync.Mutex
	send := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		io.WriteString(ends[1][1], text+"\x00")
	}
	go func() {
		for r := bufio.NewReader(ends[0][0]); ; {
			message, err := r.ReadBytes(0)
			if err != nil {
				return
			}
			var q muxtest.Command
			json.Unmarshal(message[:len(message)-1], &q)
			send(fmt.Sprintf(`{"id":%d,"result":{"result":{"type":"number","value":42}},"sessionId":"S"}`, q.ID))
		}
	}()
	ctx, cancel := context.WithCancel(b.Context())
	var cfg Config
	cfg.setDefaults()
	e := verb.New(browser.NewPipe(ends[1][0], ends[0][1], 0), cfg.rooms(false))
	go e.Mux.Read()
	send(`{"method":"Target.attachedToTarget","params":{"sessionId":"S","targetInfo":{"targetId":"T","type":"page","url":"http://a/","title":"A"}}}`)
	if rate > 0 {
		go func() {
			began, sent := time.Now(), 0
			for ctx.Err() == nil {
				for due := int(time.Since(began).Seconds() * float64(rate)); sent < due; sent++ {
					send(consoleEvent) // one write per event, like Chrome's
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	f := files{b.TempDir(), "test"}
	l, err := net.Listen("unix", f.socket())
	if err == nil {
		err = os.Chmod(f.socket(), 0o600) // as with the keeper's umask
	}
	if err != nil {
		b.Fatal(err)
	}
	s := newServer(e, hello{Wire: WireVersion, PID: os.Getpid()}, time.Minute)
	go s.serve(l)
	c, err := connect(b.Context(), f, "test")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.Close()
		l.Close()
		cancel()
		e.Mux.Close()
		for _, end := range ends {
			end[0].Close()
			end[1].Close()
		}
	})
	return c, e
}
