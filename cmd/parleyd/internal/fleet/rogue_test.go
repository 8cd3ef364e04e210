package fleet

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/wire"
)

// rogue is a worker that does what it wants. play gets the connection of each call after the hello of its front.
func rogue(t *testing.T, url, name string, play func(c *wire.Conn, s *stream)) {
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	status := Status{Worker: name, Instance: "x", Pool: "main", Slots: 100, Free: 100, Wire: wire.Version, Turn: 1}
	var mu sync.Mutex
	calls := map[string]*stream{}
	address := workerSubject + status.address()
	consider := func(m *nats.Msg) {
		o, _ := decode[offer](m)
		s := newStream(conn, frontSubject+frontOf(m)+".call."+o.Call, address+".call."+o.Call)
		mu.Lock()
		calls[o.Call] = s
		mu.Unlock()
		_ = m.Respond(encode(verdict{Status: status, Verdict: accepted}))
		go func() {
			c := wire.NewConn(bufio.NewReader(s), s)
			if _, err := c.ReceiveHello(); err == nil {
				play(c, s)
			}
		}()
	}
	for subject, handle := range map[string]nats.MsgHandler{
		address + ".offer": consider,
		address + ".ping":  func(m *nats.Msg) { _ = m.Respond(encode([]string{})) },
		address + ".call.*": func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			if s := calls[m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]]; s != nil {
				s.receive(m)
			}
		},
	} {
		if _, err := conn.Subscribe(subject, handle); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.QueueSubscribe(offerSubject+"main", workerGroup, consider); err != nil {
		t.Fatal(err)
	}
	if err := conn.Publish(poolSubject+"main."+name, encode(status)); err != nil {
		t.Fatal(err)
	}
	_ = conn.Flush()
}

// TestRogueWorkers has workers that lie: no call ends in more than an error, and the front serves on.
func TestRogueWorkers(t *testing.T) {
	t.Parallel()
	done := func(c *wire.Conn, outcome string) { _ = c.Send(wire.KindDone, []byte(outcome)) }
	for name, c := range map[string]struct {
		play func(c *wire.Conn, s *stream)
		code host.Code // "" where another worker runs the call in the end
	}{
		"never begins":  {func(*wire.Conn, *stream) {}, ""},
		"ends the call": {func(_ *wire.Conn, s *stream) { s.finish(0) }, ""},
		"sends garbage": {func(_ *wire.Conn, s *stream) {
			_, _ = s.Write(bytes.Repeat([]byte{0xff}, 100))
		}, host.Trapped},
		"speaks another version": {func(c *wire.Conn, _ *stream) {
			_ = c.Send(wire.KindHello, []byte(`{"parley_wire":99}`))
		}, host.Trapped},
		"leaves messages out": {func(c *wire.Conn, s *stream) {
			_ = c.SendHello(wire.Hello{})
			s.sent += 3
			done(c, `{"data":{}}`)
		}, ""},
		"answers twice": {func(c *wire.Conn, _ *stream) {
			_ = c.SendHello(wire.Hello{})
			done(c, `{"data":{}}`)
			done(c, `{"data":{"again":true}}`)
		}, ""},
		"claims a gigabyte": {func(c *wire.Conn, s *stream) {
			_ = c.SendHello(wire.Hello{})
			_, _ = s.Write([]byte{byte(wire.KindDone), 0x40, 0, 0, 0})
		}, host.Trapped},
		"breaks the schema": {func(c *wire.Conn, _ *stream) {
			_ = c.SendHello(wire.Hello{})
			done(c, `{"data":"a text"}`)
		}, host.InvalidResult},
		"sends no JSON": {func(c *wire.Conn, _ *stream) {
			_ = c.SendHello(wire.Hello{})
			done(c, `{`)
		}, host.Trapped},
		"floods": {func(c *wire.Conn, s *stream) {
			_ = c.SendHello(wire.Hello{})
			_ = c.Send(wire.KindBegun)
			for event := []byte(`{"kind":"log","message":"` + strings.Repeat("x", 100<<10) + `"}`); s.reason() == ""; {
				if c.Send(wire.KindEvent, event) != nil {
					return
				}
			}
		}, host.LimitExceeded},
		"asks beyond the grant": {func(c *wire.Conn, _ *stream) {
			_ = c.SendHello(wire.Hello{})
			_, _, _ = c.Receive(1 << 20) // the call
			_ = c.Send(wire.KindBegun)
			for _, asked := range []string{
				"http_request\n" + `{"method":"GET","url":"http://elsewhere.test/"}`,
				"read_secret\n" + `{"name":"TOKEN"}`, "call_tool\n" + `{"tool":"text.hash","params":{"text":"a"}}`,
				"bound_secret\n" + `{"name":"TOKEN"}`, "copy_handed\n" + `{"text":"/etc/passwd","folder":"/"}`, "none\n{}",
			} {
				_ = c.Send(wire.KindAsk, []byte(asked))
				if _, reply, err := c.Receive(1 << 20); err != nil || !bytes.HasPrefix(reply, []byte(`{"ok":false`)) {
					t.Errorf("%s: %s, %v", asked, reply, err)
				}
			}
			done(c, `{"data":{}}`)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
			rogue(t, w.url, "rogue", c.play)
			w.await("the rogue", func() bool { return w.knows("rogue") })
			began := w.later("work.nothing", `{}`, 20*time.Second)
			if c.code == "" {
				time.Sleep(50 * time.Millisecond)
				w.start("honest", 1)
			}
			o := <-began
			switch {
			case c.code == "" && (o.err != nil || string(o.answer.Data) != "{}"):
				t.Errorf("%v after %s", o.err, o.took)
			case c.code != "" && (o.err == nil || o.err.Code != c.code):
				t.Errorf("%v, expected %s", o.err, c.code)
			}
			w.front.mu.Lock()
			defer w.front.mu.Unlock()
			if len(w.front.calls) > 0 {
				t.Errorf("%d calls are left", len(w.front.calls))
			}
		})
	}
}

// TestGuesses sends a front messages for calls that it does not have.
func TestGuesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	w.start("a", 1)
	conn, err := nats.Connect(w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	slow := w.later("work.rest", `{"ms":300}`, 0)
	w.running()
	w.front.mu.Lock()
	var to string
	for _, s := range w.front.calls {
		to = s.to
	}
	w.front.mu.Unlock()
	// Somebody who guesses the id of a call, or has the server send to a worker, is not its front.
	for subject, text := range map[string]string{
		to: "\x00\x00\x00\x00\x00\x00\x00\x01", workerSubject + "a.drain": "",
		offerSubject + "main": `{"wire":2,"call":"x"}`,
	} {
		for _, reply := range []string{"", "_INBOX.x"} {
			_ = conn.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: []byte(text)})
		}
	}
	for i := range 1000 {
		_ = conn.Publish(fmt.Sprintf("%sfront.call.%d", frontSubject, i), make([]byte, 20))
		_ = conn.Publish(poolSubject+"main.x", []byte(`{"worker":"*","instance":">","pool":"main"}`))
		_ = conn.Publish(poolSubject+"main.x", []byte(`{"worker":"a","instance":"b","pool":"main"}`))
		_ = conn.Publish(poolSubject+"main.x", []byte(`{`))
	}
	if o := <-slow; o.err != nil {
		t.Error(o.err)
	}
	w.front.mu.Lock()
	defer w.front.mu.Unlock()
	if n := len(w.front.pool("main").workers); n != 1 {
		t.Errorf("%d workers", n)
	}
}

// TestSecretsStay listens to all that goes over the server, and looks into the memory and the files of a worker, while
// calls use a secret.
func TestSecretsStay(t *testing.T) {
	t.Parallel()
	const canary = "canary-4f1c2b7d9e"
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	w.digest = w.install("fetch")
	path := filepath.Join(t.TempDir(), "token")
	policy := fmt.Sprintf("[plugin.fetch]\ndigest = %q\nrun = \"fleet:main\"\ngrants = [\"http:GET,POST:%s\", "+
		"\"secret:FETCH_TOKEN\"]\n[secrets.FETCH_TOKEN]\nfrom = \"file:%s\"\n", w.digest, w.web.URL, path)
	w.writePolicy(policy)
	if err := os.WriteFile(path, []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var mu sync.Mutex
	var heard, fetched bytes.Buffer // fetched is what the worker gets of the plugin, with the time of its publication
	if _, err := conn.Subscribe(">", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		to := &heard
		if strings.HasPrefix(m.Subject, "$") || strings.HasPrefix(m.Subject, workerSubject+"a.reply.") {
			to = &fetched
		}
		fmt.Fprintf(to, "%s %s %v %s\n", m.Subject, m.Reply, m.Header, m.Data)
	}); err != nil {
		t.Fatal(err)
	}
	_ = conn.Flush()
	p := w.start("a", 1)
	if o := w.call(t.Context(), "fetch.get", fmt.Sprintf(`{"url":"%s/secret?wait=50ms"}`, w.web.URL), 0); o.err != nil {
		t.Fatal(o.err)
	}
	_ = conn.Flush()
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(heard.String(), "fetch") && !strings.Contains(heard.String(), "/secret") {
		t.Errorf("the tap heard nothing of the call: %.2000s", heard.String())
	}
	year := time.Now().Format("2006-")
	for _, secret := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))[:20], path, year} {
		if strings.Contains(heard.String(), secret) || secret != year && strings.Contains(fetched.String(), secret) {
			t.Errorf("%s went over the wire", secret)
		}
	}
	if n, found := searchFiles(t, p.home, canary); found || n == 0 {
		t.Errorf("the files of the worker: found %v in %d bytes", found, n)
	}
	for _, pid := range append(fleettest.Children(p.Process.Pid), p.Process.Pid) {
		if n, found := searchMemory(t, pid, canary); found || n == 0 {
			t.Errorf("process %d: found %v in %d bytes", pid, found, n)
		}
	}
}

// searchFiles looks for a text in the files of a folder.
func searchFiles(t *testing.T, dir, text string) (size int, found bool) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		size += len(data)
		found = found || bytes.Contains(data, []byte(text))
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return size, found
}

// searchMemory looks for a text in the memory of a process.
func searchMemory(t *testing.T, pid int, text string) (size int, found bool) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil || !strings.HasPrefix(rights, "rw") ||
			to-from > 256<<20 {
			continue
		}
		data, _ := io.ReadAll(io.NewSectionReader(memory, from, to-from))
		size += len(data)
		found = found || bytes.Contains(data, []byte(text))
	}
	return size, found
}
