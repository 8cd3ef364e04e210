package keeper

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/parley-tools/parley/cdp/internal/browser"
)

// WireVersion is the version of the wire format between keeper and client.
const WireVersion = 5

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

type frameTooLarge struct{ size, limit int64 }

func (e *frameTooLarge) Error() string {
	return fmt.Sprintf("the frame has %d bytes; the limit is %d", e.size, e.limit)
}

// writeFrame writes the parts as one frame, to a connection in one call.
func writeFrame(w io.Writer, parts ...[]byte) error {
	size := totalSize(parts)
	if int64(size) > maxReply {
		return &frameTooLarge{int64(size), maxReply}
	}
	frame := append(net.Buffers{binary.BigEndian.AppendUint32(nil, uint32(size))}, parts...)
	_, err := frame.WriteTo(w)
	return err
}

func totalSize(parts [][]byte) (bytes int) {
	for _, p := range parts {
		bytes += len(p)
	}
	return bytes
}

// readFrame reads one frame. It allocates memory as data arrives, never by the declared length.
func readFrame(r io.Reader, limit int64) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size > limit {
		return nil, &frameTooLarge{size, limit}
	}
	if size <= 64<<10 {
		payload := make([]byte, size)
		if _, err := io.ReadFull(r, payload); err != nil {
			return nil, unexpectedEOF(err)
		}
		return payload, nil
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, size); err != nil {
		return nil, unexpectedEOF(err)
	}
	return b.Bytes(), nil
}

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func readHello(r io.Reader) (hello, error) {
	var h hello
	payload, err := readFrame(r, maxHello)
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
	by   Caller
	body json.RawMessage
}

func readRequest(r io.Reader) (q request, err error) {
	payload, err := readFrame(r, maxRequest)
	if err != nil {
		return q, err
	}
	err = eachField(payload, func(key, value []byte) error {
		switch string(key) {
		case "id":
			q.id, err = strconv.ParseInt(string(value), 10, 64)
			return err
		case "op":
			q.op, err = parseString(value)
			return err
		case "by":
			if string(value) == commandLineJSON { // the usual case
				q.by = commandLine
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

// readCall decodes the body of a call, the most frequent operation. The engine validates the parameters.
func readCall(body []byte) (q CallRequest, err error) {
	err = eachField(body, func(key, value []byte) error {
		switch string(key) {
		case "target":
			q.Target, err = parseString(value)
		case "method":
			q.Method, err = parseString(value)
		case "params":
			q.Params = value
		case "timeout_ms":
			q.TimeoutMS, err = strconv.ParseInt(string(value), 10, 64)
		case "max_bytes":
			q.MaxBytes, err = strconv.ParseInt(string(value), 10, 64)
		case "pieces":
			q.Pieces, err = strconv.ParseBool(string(value))
		case "on_dialog":
			q.OnDialog, err = parseString(value)
		case "wait":
			q.Wait, err = parseString(value)
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
	failure    *Error
	item       json.RawMessage
	piece      []byte
	enabled    Enabled
}

func readResponse(r io.Reader) (a response, err error) {
	payload, err := readFrame(r, maxReply)
	if err != nil {
		return a, err
	}
	if len(payload) > pieceHead && payload[0] == 0 {
		return response{id: int64(binary.BigEndian.Uint64(payload[1:])), piece: payload[pieceHead:]}, nil
	}
	err = eachField(payload, func(key, value []byte) error {
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
			a.failure = &Error{}
			return json.Unmarshal(value, a.failure)
		}
		return nil
	})
	if err == nil && a.result == nil && a.item == nil && a.failure == nil {
		err = errors.New("a response without a result, an error or an item")
	}
	return a, err
}

// pieceHead is the size of the header before a piece: a zero byte and the id.
const pieceHead = 9

// pieceParts returns the parts of a frame with a piece of a large result.
func pieceParts(id int64, piece []byte) [][]byte {
	return [][]byte{binary.BigEndian.AppendUint64([]byte{0}, uint64(id)), piece}
}

// aside is what a response says beside its result or error. The zero value says nothing.
type aside struct {
	rights  []string // that the pages of a plugin have used
	enabled Enabled
}

// responseParts returns the parts of a response's frame. kind is result, error or item.
func responseParts(id int64, kind string, value []byte, beside ...aside) [][]byte {
	head := strconv.AppendInt([]byte(`{"id":`), id, 10)
	for _, b := range beside {
		if len(b.rights) > 0 {
			head = append(append(head, `,"touched":`...), mustJSON(b.rights)...)
		}
		if !b.enabled.none() {
			head = append(append(head, `,"enabled":`...), mustJSON(b.enabled)...)
		}
	}
	head = append(head, `,"`...)
	head = append(head, kind...)
	head = append(head, `":`...)
	return [][]byte{head, value, {'}'}}
}
