package keeper

import (
	"bytes"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/internal/wire"
)

// framed returns the bytes of a frame.
func framed(kind wire.Kind, payload string) []byte {
	var b bytes.Buffer
	wire.NewConn(nil, &b).Send(kind, []byte(payload))
	return b.Bytes()
}

// reading returns a connection from which data arrives.
func reading(data []byte) *wire.Conn { return wire.NewConn(bytes.NewReader(data), nil) }

func TestRequestsAndResponses(t *testing.T) {
	q, err := readRequest(reading(framed(wire.KindCall, `{"id":7,"op":"call","body":{"method":"A.b"}}`)))
	if err != nil || q.id != 7 || q.op != "call" || string(q.body) != `{"method":"A.b"}` {
		t.Errorf("%+v %v", q, err)
	}
	for _, bad := range []string{"", "null", "[]", `{}`, `{"id":0,"op":"x"}`, `{"id":1}`, `{"id":"1","op":"x"}`,
		`{"id":1,"op":"x"`, `{"id":1,"op":"x"} x`} {
		if q, err := readRequest(reading(framed(wire.KindCall, bad))); err == nil {
			t.Errorf("%q is a request: %+v", bad, q)
		}
	}
	var b bytes.Buffer
	c := wire.NewConn(&b, &b)
	c.Send(wire.KindDone, responseParts(3, "error", scan.Marshal(api.Errorf(api.CodeBusy, "x")), aside{})...)
	c.Send(wire.KindDone, responseParts(4, "result", []byte(`{"a":[1,"}"]}`), aside{})...)
	c.Send(wire.KindPiece, []byte("\x00\x00\x00\x00\x00\x00\x00\x05piece"))
	c.Send(wire.KindEvent, responseParts(6, "item", []byte("7"), aside{})...)
	a, err := readResponse(c)
	if err != nil || a.id != 3 || a.failure == nil || a.failure.Code != api.CodeBusy {
		t.Errorf("%+v %v", a, err)
	}
	a, err = readResponse(c)
	if err != nil || a.id != 4 || string(a.result) != `{"a":[1,"}"]}` {
		t.Errorf("%+v %v", a, err)
	}
	a, err = readResponse(c)
	if err != nil || a.id != 5 || string(a.piece) != "piece" {
		t.Errorf("%+v %v", a, err)
	}
	a, err = readResponse(c)
	if err != nil || a.id != 6 || string(a.item) != "7" {
		t.Errorf("%+v %v", a, err)
	}
	for _, bad := range [][]byte{
		framed(wire.KindHello, `{"other":1}`), framed(wire.KindCall, `{"parley_keeper":1}`),
		append([]byte{0, 0, 0, 19}, `{"parley_keeper":6}`...), // before version 7 frames had no kind
	} {
		if _, err := readHello(reading(bad)); err == nil {
			t.Errorf("readHello accepts %q", bad)
		}
	}
	for _, kind := range []wire.Kind{wire.KindCall, wire.KindPiece, wire.KindHello} {
		if a, err := readResponse(reading(framed(kind, `{}`))); err == nil {
			t.Errorf("a frame of kind %q is a response: %+v", byte(kind), a)
		}
	}
}

// FuzzWire feeds arbitrary bytes to every reader of the wire format.
func FuzzWire(f *testing.F) {
	f.Add(framed(wire.KindHello, `{"parley_keeper":1}`))
	f.Add(append(framed(wire.KindCall, `{"id":1,"op":"call","body":{}}`),
		framed(wire.KindDone, `{"id":1,"result":{}}`)...))
	f.Add([]byte{'c', 0xff, 0xff, 0xff, 0xff})
	f.Add(framed(wire.KindPiece, "\x00\x00\x00\x00\x00\x00\x00\x01piece"))
	f.Fuzz(func(t *testing.T, data []byte) {
		readHello(reading(data))
		r := reading(data)
		for {
			q, err := readRequest(r)
			if err != nil {
				break
			}
			var b api.CallRequest
			api.Decode(q.body, &b)
		}
		r = reading(data)
		for {
			if _, err := readResponse(r); err != nil {
				break
			}
		}
	})
}
