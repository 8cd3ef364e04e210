package keeper

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/internal/wire"
)

// WireVersion is the version of the wire format between keeper and client.
const WireVersion = 8

const (
	maxHello   = 64 << 10
	maxRequest = browser.MaxRequest + 2<<20 // what the browser accepts, and the rest of the request
	maxReply   = 1 << 30
)

// hello is the first frame of each side.
type hello struct {
	Wire    int    `json:"parley_keeper"`
	Version string `json:"version,omitempty"`
	// Replace asks a keeper of any version to exit.
	Replace bool `json:"replace,omitempty"`

	// Only the keeper sets the following fields.
	Browser string `json:"browser,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Headed  bool   `json:"headed,omitempty"`
	Attach  string `json:"attach,omitempty"`
	Profile string `json:"profile,omitempty"`
	Chrome  string `json:"chrome,omitempty"`
}

// frame is a message of either side. The zero frame is none.
type frame struct {
	kind  wire.Kind
	parts [][]byte
}

func (f frame) write(w io.Writer) error { return wire.WriteFrame(w, f.kind, f.parts...) }

// size returns the size of the body in bytes.
func (f frame) size() (bytes int) {
	for _, p := range f.parts {
		bytes += len(p)
	}
	return bytes
}

// readFrame reads a frame of one of these kinds.
func readFrame(r io.Reader, limit int, kinds ...wire.Kind) (wire.Kind, []byte, error) {
	kind, body, err := wire.ReadFrame(r, limit)
	if err == nil && !slices.Contains(kinds, kind) {
		err = fmt.Errorf("a frame of kind %q", byte(kind))
	}
	return kind, body, err
}

func writeHello(w io.Writer, h hello) error {
	return frame{wire.KindHello, [][]byte{scan.Marshal(h)}}.write(w)
}

func readHello(r io.Reader) (hello, error) {
	var h hello
	_, payload, err := readFrame(r, maxHello, wire.KindHello)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(payload, &h); err != nil || h.Wire == 0 {
		return h, errors.New("the first frame is not a keeper's hello")
	}
	return h, nil
}

// request is a client's request.
type request struct {
	id   int64
	op   string
	by   api.Caller
	body json.RawMessage
}

func readRequest(r io.Reader) (q request, err error) {
	_, payload, err := readFrame(r, maxRequest, wire.KindCall)
	if err != nil {
		return q, err
	}
	err = scan.EachField(payload, func(key, value []byte) error {
		switch string(key) {
		case "id":
			q.id, err = strconv.ParseInt(string(value), 10, 64)
			return err
		case "op":
			q.op, err = scan.String(value)
			return err
		case "by":
			if string(value) == api.CommandLineJSON { // the usual case
				q.by = api.CommandLine
				return nil
			}
			return json.Unmarshal(value, &q.by)
		case "body":
			q.body = value
		}
		return nil
	})
	if err == nil && (q.op == "" || q.id <= 0) {
		err = errors.New("a request requires an op and an id above 0")
	}
	return q, err
}

// readCall decodes the body of a call, the most frequent operation. The verbs validate the parameters.
func readCall(body []byte) (q api.CallRequest, err error) {
	err = scan.EachField(body, func(key, value []byte) error {
		switch string(key) {
		case "target":
			q.Target, err = scan.String(value)
		case "method":
			q.Method, err = scan.String(value)
		case "params":
			q.Params = value
		case "timeout_ms":
			q.TimeoutMS, err = strconv.ParseInt(string(value), 10, 64)
		case "max_bytes":
			q.MaxBytes, err = strconv.ParseInt(string(value), 10, 64)
		case "pieces":
			q.Pieces, err = strconv.ParseBool(string(value))
		case "on_dialog":
			q.OnDialog, err = scan.String(value)
		case "wait":
			q.Wait, err = scan.String(value)
		case "enable":
			err = json.Unmarshal(value, &q.Enable)
		}
		return err
	})
	return q, err
}

// response is a message of the keeper about a request. It has one of result, failure, item and piece. A result or
// failure for a plugin comes with the rights that its pages have used since its previous request.
type response struct {
	id         int64
	usedRights []string
	result     json.RawMessage
	failure    *api.Error
	item       json.RawMessage
	piece      []byte
	enabled    api.Enabled
}

func readResponse(r io.Reader) (a response, err error) {
	kind, payload, err := readFrame(r, maxReply, wire.KindDone, wire.KindEvent, wire.KindPiece)
	if err != nil {
		return a, err
	}
	if kind == wire.KindPiece {
		if len(payload) <= pieceHead {
			return a, errors.New("a piece of nothing")
		}
		return response{id: int64(binary.BigEndian.Uint64(payload)), piece: payload[pieceHead:]}, nil
	}
	err = scan.EachField(payload, func(key, value []byte) error {
		switch string(key) {
		case "id":
			a.id, err = strconv.ParseInt(string(value), 10, 64)
			return err
		case "result":
			a.result = value
		case "item":
			a.item = value
		case "touched":
			return json.Unmarshal(value, &a.usedRights)
		case "enabled":
			return json.Unmarshal(value, &a.enabled)
		case "error":
			a.failure = &api.Error{}
			return json.Unmarshal(value, a.failure)
		}
		return nil
	})
	if err == nil && a.result == nil && a.item == nil && a.failure == nil {
		err = errors.New("a response without a result, an error or an item")
	}
	return a, err
}

// pieceHead is the size of the header before a piece: the id.
const pieceHead = 8

// pieceFrame returns the frame of a piece of a large result.
func pieceFrame(id int64, piece []byte) frame {
	return frame{wire.KindPiece, [][]byte{binary.BigEndian.AppendUint64(nil, uint64(id)), piece}}
}

// aside is what a response says beside its result or error. The zero value says nothing.
type aside struct {
	rights  []string // that the pages of a plugin have used
	enabled api.Enabled
}

// responseFrame returns the frame of a response. field is result, error or item.
func responseFrame(id int64, field string, value []byte, beside ...aside) frame {
	kind := wire.KindDone
	if field == "item" {
		kind = wire.KindEvent
	}
	head := strconv.AppendInt([]byte(`{"id":`), id, 10)
	for _, b := range beside {
		if len(b.rights) > 0 {
			head = append(append(head, `,"touched":`...), scan.Marshal(b.rights)...)
		}
		if !b.enabled.None() {
			head = append(append(head, `,"enabled":`...), scan.Marshal(b.enabled)...)
		}
	}
	head = append(head, `,"`...)
	head = append(head, field...)
	head = append(head, `":`...)
	return frame{kind, [][]byte{head, value, {'}'}}}
}
