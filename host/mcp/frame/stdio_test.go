package frame

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// wire is a connection over pipes: the test is the client at one end, and the SDK at the other.
type wire struct {
	*Stdio
	t        *testing.T
	conn     sdk.Connection
	input    *io.PipeWriter
	received chan string // what Read returns, as JSON
	answers  chan string
	hungUp   chan struct{}
}

// newWire connects a client. Read is called until it fails, and then the error is the last value of received.
func newWire(t *testing.T, s *Stdio) *wire {
	t.Helper()
	in, input := io.Pipe()
	output, out := io.Pipe()
	w := &wire{Stdio: s, t: t, input: input, received: make(chan string, 1000), answers: make(chan string, 1000),
		hungUp: make(chan struct{})}
	s.In, s.Out, s.HungUp = in, out, func() { close(w.hungUp) }
	if s.Slots == nil {
		s.Slots = make(chan struct{}, 1000)
	}
	conn, err := s.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.conn = conn
	go func() {
		defer close(w.received)
		for {
			m, err := conn.Read(context.Background())
			if err != nil {
				w.received <- err.Error()
				return
			}
			raw, err := jsonrpc.EncodeMessage(m)
			if err != nil {
				t.Error(err)
			}
			w.received <- string(restore(raw))
		}
	}()
	go func() {
		for r := bufio.NewReader(output); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				close(w.answers)
				return
			}
			w.answers <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		_, _ = input.Close(), out.Close()
	})
	return w
}

// send sends lines of the client, and checks what the SDK receives and what the client does, each separated by "|".
func (w *wire) send(lines, received, answers string) {
	w.t.Helper()
	go func() { _, _ = io.WriteString(w.input, lines) }()
	w.expect(lines, received, answers)
}

// respond responds to a request of the client, and checks what the client receives.
func (w *wire) respond(id, result, answers string) {
	w.t.Helper()
	inner, _ := jsonrpc.MakeID(innerID([]byte(id)))
	r := &jsonrpc.Response{ID: inner, Result: []byte(result)}
	if result == "" {
		r.Error = &jsonrpc.Error{Code: 99, Message: "failed"}
	}
	if err := w.conn.Write(context.Background(), r); err != nil {
		w.t.Error(err)
	}
	w.expect("the response to "+id, "", answers)
}

// expect checks what both ends have received when nothing goes on any more.
func (w *wire) expect(after, received, answers string) {
	w.t.Helper()
	synctest.Wait()
	if got := drained(w.received); got != received {
		w.t.Errorf("after %.200q the SDK receives %.400s, expected %.400s", after, got, received)
	}
	if got := drained(w.answers); got != answers {
		w.t.Errorf("after %.200q the client receives %.400s, expected %.400s", after, got, answers)
	}
}

// drained returns what is in a channel now.
func drained(c chan string) string {
	var all []string
	for {
		select {
		case s, ok := <-c:
			if !ok {
				return strings.Join(all, "|")
			}
			all = append(all, s)
		default:
			return strings.Join(all, "|")
		}
	}
}

func ping(id string) string { return message(`"id":` + id + `,"method":"ping"`) }

func fault(id, text string) string {
	return message(fmt.Sprintf(`"id":%s,"error":{"code":-32600,"message":%q}`, id, text))
}

// TestLines checks what a line is: the bound of its length, its ends, and lines without a message.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 200
		w := newWire(t, &Stdio{MaxMessage: limit, MaxOpen: 1000})
		padded := func(id string, bytes int) string {
			short := message(`"id":` + id + `,"method":"ping","params":{"a":""}`)
			return strings.Replace(short, `"a":"`, `"a":"`+strings.Repeat("x", bytes-len(short)), 1)
		}
		tooLong := "the message is longer than 200 bytes"
		w.send(ping("1")+"\n", ping("1"), "")
		w.send(ping("2")+"\r\n"+ping("3")+"\n", ping("2")+"|"+ping("3"), "")
		w.send("\n\r\n  \t\n"+ping("4")+"\n", ping("4"), "")
		w.send(padded("5", limit)+"\n", padded("5", limit), "")
		w.send(padded("6", limit)+"\r\n", padded("6", limit), "")
		w.send(padded(`1.50`, limit+1)+"\n", "", fault("1.50", tooLong))
		w.send(padded(`"a"`, 1<<20)+"\n"+ping("7")+"\n", ping("7"), fault(`"a"`, tooLong))
		w.send(strings.Repeat("x", 1<<20)+"\n", "", fault("null", tooLong))
		w.send("garbage\n", "",
			message(`"id":null,"error":{"code":-32700,"message":"not JSON: expected one JSON value in UTF-8"}`))
		w.send(ping("8"), "", "") // the end of the line is missing
		_ = w.input.Close()
		w.expect("the end", ping("8"), "")
	})
}

// TestRequestsInFlight checks that the id of a request can be used again after its response, and the bounds of the
// requests without one.
func TestRequestsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const inUse = "a request with this id has no response yet"
		busy := func(id string) string {
			return message(`"id":` + id +
				`,"error":{"code":-32603,"message":"busy: 3 requests have no response yet; nothing was run"}`)
		}
		w := newWire(t, &Stdio{MaxMessage: 1 << 20, MaxOpen: 3})
		w.send(ping("1")+"\n"+ping("1.0")+"\n", ping("1")+"|"+ping("1.0"), "")
		w.send(ping("1")+"\n", "", fault("1", inUse))
		w.respond("1", `{}`, message(`"id":1,"result":{}`))
		w.send(ping("1")+"\n", ping("1"), "")
		w.send(ping("2")+"\n"+ping("3")+"\n", ping("2"), busy("3"))
		w.respond("1.0", ``, message(`"id":1.0,"error":{"code":-32603,"message":"failed"}`))
		w.send(ping("3")+"\n", ping("3"), "")
		w.send(message(`"method":"note"`)+"\n", message(`"method":"note"`), "")
		if len(w.Slots) != 3 {
			t.Errorf("%d slots are taken", len(w.Slots))
		}

		other := newWire(t, &Stdio{MaxMessage: 1 << 20, MaxOpen: 3, Slots: make(chan struct{}, 1)})
		other.send(ping("1")+"\n"+ping("2")+"\n", ping("1"), busy("2"))
		for _, w := range []*wire{w, other} {
			if err := w.conn.Close(); err != nil {
				t.Error(err)
			}
			if len(w.Slots) != 0 {
				t.Errorf("%d slots are taken after the connection ended", len(w.Slots))
			}
			w.expect("the connection ended", "EOF", "")
		}
		w.respond("3", `{}`, message(`"id":3,"result":{}`))
	})
}

// TestBatchesOfLines checks that a batch has one response with those to all its requests, when the last one is there.
func TestBatchesOfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, &Stdio{MaxMessage: 1 << 20, MaxOpen: 1000})
		hello := message(`"id":0,"method":"initialize","params":{"protocolVersion":"` + lastBatch + `"}`)
		notYet := "the protocol has batches only up to revision " + lastBatch + "; send one message at a time"
		w.send("["+ping("1")+"]\n", "", fault("null", notYet))
		w.send(hello+"\n", hello, "")
		w.respond("0", `{}`, message(`"id":0,"result":{}`))

		note, pong := message(`"method":"note"`), func(id string) string { return message(`"id":` + id + `,"result":{}`) }
		w.send("["+ping("1")+"]\n", ping("1"), "")
		w.respond("1", `{}`, "["+pong("1")+"]")
		w.send("["+ping("1")+","+note+","+ping("2")+"]\n", ping("1")+"|"+note+"|"+ping("2"), "")
		w.send(ping("3")+"\n", ping("3"), "")
		w.respond("2", `{}`, "")
		w.respond("3", `{}`, pong("3"))
		w.respond("1", `{}`, "["+pong("2")+","+pong("1")+"]")
		w.send("["+note+"]\n", note, "")

		isNumber := "a message is an object, not number"
		w.send("[17,"+ping("1")+","+note+"]\n", ping("1")+"|"+note, "")
		w.respond("1", `{}`, "["+fault("null", isNumber)+","+pong("1")+"]")
		w.send("[17,"+note+",17]\n", note, "["+fault("null", isNumber)+","+fault("null", isNumber)+"]")
		w.send("["+ping("1")+","+ping("1")+"]\n", ping("1"), "")
		w.respond("1", `{}`, "["+fault("1", "a request with this id has no response yet")+","+pong("1")+"]")
		if len(w.Slots) != 0 {
			t.Errorf("%d slots are taken", len(w.Slots))
		}
	})
}

// TestHangUp checks that whoever waits hears at once that the client hung up, and that its requests get responses
// before the connection ends.
func TestHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, &Stdio{MaxMessage: 1 << 20, MaxOpen: 1000})
		w.send(ping("1")+"\n"+ping("2")+"\n", ping("1")+"|"+ping("2"), "")
		select {
		case <-w.hungUp:
			t.Error("the client has not hung up")
		default:
		}
		_ = w.input.Close()
		w.expect("the client disconnected", "", "")
		select {
		case <-w.hungUp:
		default:
			t.Error("nobody heard that the client hung up")
		}
		w.respond("2", `{}`, message(`"id":2,"result":{}`))
		inner, _ := jsonrpc.MakeID(innerID([]byte("1")))
		if err := w.conn.Write(context.Background(), &jsonrpc.Response{ID: inner, Result: []byte("{}")}); err != nil {
			t.Error(err)
		}
		w.expect("the last response", "EOF", message(`"id":1,"result":{}`))
	})
}

// TestReadEnds checks that Read ends with its context and with the connection, whatever the client does.
func TestReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, &Stdio{MaxMessage: 1 << 20, MaxOpen: 1000})
		_ = w.conn.Close()
		_ = w.conn.Close()
		w.expect("the connection was closed", "EOF", "")

		w = newWire(t, &Stdio{MaxMessage: 1 << 20, MaxOpen: 1000})
		w.send(ping("1")+"\n", ping("1"), "")
		_ = w.input.Close()
		w.expect("the client disconnected", "", "")
		_ = w.conn.Close()
		w.expect("the connection was closed with an open request", "EOF", "")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.conn.Read(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
			t.Errorf("Read returns %v", err)
		}
		if err := w.conn.Write(ctx, &jsonrpc.Request{Method: "a"}); !errors.Is(err, context.Canceled) {
			t.Errorf("Write returns %v", err)
		}
	})
}

// TestMessagesOfTheServer checks that messages of the server have the ids of the client, and ids of its own.
func TestMessagesOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, &Stdio{MaxMessage: 1 << 20, MaxOpen: 1000})
		progress := `"method":"notifications/progress","params":{"progressToken":%s}`
		ours, _ := jsonrpc.MakeID(float64(7))
		for _, tt := range []struct {
			message jsonrpc.Message
			want    string
		}{
			{&jsonrpc.Request{Method: "notifications/progress",
				Params: []byte(`{"progressToken":"` + innerID([]byte(`1.50`)) + `"}`)}, message(fmt.Sprintf(progress, "1.50"))},
			{&jsonrpc.Request{ID: ours, Method: "ping"}, message(`"id":7,"method":"ping"`)},
			{&jsonrpc.Response{ID: ours, Result: []byte(`{}`)}, message(`"id":7,"result":{}`)},
			{&jsonrpc.Response{Error: &jsonrpc.Error{Code: -32600, Message: "x"}}, fault("null", "x")},
		} {
			if err := w.conn.Write(context.Background(), tt.message); err != nil {
				t.Error(err)
			}
			w.expect("a message of the server", "", tt.want)
		}
	})
}

// TestLinesAreWhole checks that messages that are written at the same time are lines of their own, also large ones.
func TestLinesAreWhole(t *testing.T) {
	output, out := io.Pipe()
	s := &Stdio{In: strings.NewReader(""), Out: out, MaxMessage: 1 << 20, MaxOpen: 1000, HungUp: func() {}}
	conn, err := s.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			text := `{"text":"` + strings.Repeat(fmt.Sprint(i), i*largeLine/4) + `"}`
			for range 50 {
				ours, _ := jsonrpc.MakeID(float64(i))
				if err := conn.Write(context.Background(), &jsonrpc.Response{ID: ours, Result: []byte(text)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		writers.Wait()
		_ = out.Close()
	}()
	lines := 0
	for r := bufio.NewReader(output); ; lines++ {
		line, err := r.ReadString('\n')
		if err != nil {
			break
		}
		var i int
		if _, err := fmt.Sscanf(line, `{"jsonrpc":"2.0","id":%d,`, &i); err != nil ||
			len(line) != len(message(`"id":0,"result":{"text":""}`))+i*largeLine/4+1 {
			t.Fatalf("a line of %d bytes: %.100s", len(line), line)
		}
	}
	if lines != 400 {
		t.Errorf("%d lines", lines)
	}
}
