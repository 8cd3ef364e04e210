package fleet

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// message returns a message of a stream.
func message(count uint64, data string) *nats.Msg {
	return &nats.Msg{Data: append(binary.BigEndian.AppendUint64(nil, count), data...)}
}

// TestStream checks what ends a stream: its end, a message that is missing, one that is no message, one too many, and
// that nobody listens. What came before is read first.
func TestStream(t *testing.T) {
	t.Parallel()
	var tooMany []*nats.Msg
	for i := range window + 2 {
		tooMany = append(tooMany, message(uint64(i), "a"))
	}
	nobody := &nats.Msg{Header: nats.Header{"Status": {"503"}}}
	for name, c := range map[string]struct {
		messages []*nats.Msg
		want     string
		cause    string
	}{
		"its end":    {[]*nats.Msg{message(0, "ab"), message(1, "c"), message(2, "")}, "abc", endedByOther},
		"refused":    {[]*nats.Msg{message(0, "ab"), message(1|refuseBit, "")}, "ab", refusedByOther},
		"missing":    {[]*nats.Msg{message(0, "ab"), message(2, "c")}, "ab", "a message was lost"},
		"repeated":   {[]*nats.Msg{message(0, "ab"), message(0, "ab")}, "ab", "a message was lost"},
		"no message": {[]*nats.Msg{{Data: []byte("abc")}}, "", "a message was lost"},
		"too much":   {tooMany, strings.Repeat("a", window+1), "it sent more than was confirmed"},
		"confirmed": {[]*nats.Msg{message(0, "ab"), message(confirmBit|7, ""), message(1, "c"), message(2, "")}, "abc",
			endedByOther},
		"nobody": {[]*nats.Msg{message(0, "ab"), nobody}, "ab", "the other side is gone"},
		"after":  {[]*nats.Msg{message(0, ""), message(1, "c")}, "", endedByOther},
	} {
		s := newStream(&nats.Conn{}, "to", "from")
		for i, m := range c.messages {
			if first := s.receive(m); first != (i == 0 && c.want != "") {
				t.Errorf("%s: message %d is the first one: %v", name, i, first)
			}
		}
		got, err := io.ReadAll(s)
		if string(got) != c.want || err != io.ErrUnexpectedEOF || s.reason() != c.cause {
			t.Errorf("%s: %q, %v, %q", name, got, err, s.reason())
		}
	}
}

// FuzzMessages has somebody send anything: to a front, to a worker, and in a call.
func FuzzMessages(f *testing.F) {
	for _, v := range []any{offer{Call: "c"}, verdict{Verdict: accepted}, Status{Worker: "w", Pool: "main"},
		[]string{"c"}} {
		f.Add(encode(v))
	}
	f.Add(message(0, "h\x00\x00\x00\x02{}").Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		front := &Front{name: "f", pools: map[string]*pool{}, calls: map[string]*slot{}, pings: map[string]*peer{}}
		worker := &Worker{status: Status{Worker: "w", Pool: "main"}, calls: map[string]*task{}}
		front.hear(&nats.Msg{Subject: poolSubject + "main.w", Data: data})
		front.receive(&nats.Msg{Subject: front.subject("c"), Data: data})
		worker.receive(&nats.Msg{Subject: workerSubject + "w.x.call.c", Data: data})
		for _, p := range front.pools {
			for address, w := range p.workers {
				if !isWord(w.Worker) || !isWord(w.Instance) || address != w.address() {
					t.Errorf("a worker is called %q", address)
				}
			}
		}
		s := newStream(&nats.Conn{}, "to", "from")
		s.receive(&nats.Msg{Data: data})
		s.end("the test is over")
		if got, err := io.ReadAll(s); len(got) > len(data) || err != io.ErrUnexpectedEOF {
			t.Errorf("%q, %v", got, err)
		}
	})
}
