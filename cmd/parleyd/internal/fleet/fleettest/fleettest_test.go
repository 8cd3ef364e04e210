package fleettest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// connect connects a client, which ends with the test.
func connect(t *testing.T, url string, options ...nats.Option) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(url, append(options, nats.ReconnectWait(10*time.Millisecond), nats.MaxReconnects(-1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// TestServer ends a server in each way. What JetStream acknowledged is there when it is back, at the same address.
func TestServer(t *testing.T) {
	s := Start(t, Options{Config: "jetstream { sync_interval: always }\nmax_payload: 2MB\n"})
	conn := connect(t, s.URL)
	if conn.MaxPayload() != 2<<20 {
		t.Errorf("max_payload is %d", conn.MaxPayload())
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(){"stop": s.Stop, "kill": s.Kill, "restart": func() {}} {
		if _, err := bucket.PutString(t.Context(), name, "kept"); err != nil {
			t.Fatal(err)
		}
		end()
		s.Restart()
		Await(t, "the connection after "+name, func() bool { return conn.FlushTimeout(time.Second) == nil })
		if entry, err := bucket.Get(t.Context(), name); err != nil || string(entry.Value()) != "kept" {
			t.Errorf("after %s: %v", name, err)
		}
	}
	s.Pause()
	if err := conn.FlushTimeout(100 * time.Millisecond); err == nil {
		t.Error("a server that was stopped answers")
	}
	s.Continue()
	if err := conn.FlushTimeout(5 * time.Second); err != nil {
		t.Error(err)
	}
	s.Reload()
	answer, err := http.Get(s.Monitor + "/varz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), `"sync_always": true`) {
		t.Errorf("/varz: %v %s", err, text)
	}
}

// TestProxy holds and cuts what passes. Held messages arrive in order, once; after a cut the client connects again.
func TestProxy(t *testing.T) {
	s := Start(t, Options{})
	p := NewProxy(t, s.Address)
	near, far := connect(t, s.URL), connect(t, p.URL)
	got := make(chan string, 10)
	if _, err := far.Subscribe("to.far", func(m *nats.Msg) { got <- string(m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := far.Flush(); err != nil {
		t.Fatal(err)
	}
	p.Hold()
	for _, text := range []string{"one", "two"} {
		if err := near.Publish("to.far", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := near.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := far.FlushTimeout(100 * time.Millisecond); err == nil || len(got) > 0 {
		t.Error("something passed a held network")
	}
	p.Release()
	if a, b := <-got, <-got; a != "one" || b != "two" {
		t.Errorf("got %s, %s", a, b)
	}
	p.Cut()
	Await(t, "the loss of the connection", func() bool { return !far.IsConnected() })
	time.Sleep(50 * time.Millisecond) // some attempts to connect
	if far.IsConnected() {
		t.Error("a connection passed a cut network")
	}
	p.Restore()
	Await(t, "the connection", far.IsConnected)
	if err := far.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := near.Publish("to.far", []byte("three")); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "three" {
		t.Errorf("got %s", text)
	}
}
