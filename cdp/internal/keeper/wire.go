package keeper

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/internal/wire"
)

// WireVersion is the version of the wire format between keeper and client.
const WireVersion = 11

const (
	maxHello   = 64 << 10
	maxRequest = browser.MaxRequest + 2<<20 // the browser's limit, plus the rest of the request
	maxReply   = 1 << 30
)

// hello is the first frame of each side.
type hello struct {
	Wire    int    `json:"parley_keeper"`
	Version string `json:"version,omitempty"`
	// Replace asks a keeper of any version to exit.
	Replace bool `json:"replace,omitempty"`

	// Only the keeper sets the following fields.
	PID     int    `json:"pid,omitempty"`
	Headed  bool   `json:"headed,omitempty"`
	Attach  string `json:"attach,omitempty"`
	Profile string `json:"profile,omitempty"`
	Chrome  string `json:"chrome,omitempty"`
}

// receive reads a frame of one of the given kinds.
func receive(c *wire.Conn, limit int, kinds ...wire.Kind) (wire.Kind, []byte, error) {
	kind, body, err := c.Receive(limit)
	if err == nil && !slices.Contains(kinds, kind) {
		err = fmt.Errorf("a frame of kind %q", byte(kind))
	}
	return kind, body, err
}

func readHello(c *wire.Conn) (hello, error) {
	var h hello
	_, payload, err := receive(c, maxHello, wire.KindHello)
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
	id      int64
	op      string
	timeout time.Duration // for the whole request; for a stream, until it begins
	by      api.Caller
	body    json.RawMessage
}

func readRequest(c *wire.Conn) (q request, err error) {
	_, payload, err := receive(c, maxRequest, wire.KindCall)
	if err != nil {
		return q, err
	}
	q.timeout = api.DefaultTimeout
	err = scan.EachField(payload, func(key, value []byte) error {
		switch string(key) {
		case "id":
			q.id, err = strconv.ParseInt(string(value), 10, 64)
		case "op":
			q.op, err = scan.String(value)
		case "timeout_ms":
			var ms int64
			ms, err = strconv.ParseInt(string(value), 10, 64)
			q.timeout = time.Duration(ms) * time.Millisecond
		case "by":
			if string(value) == api.CommandLineJSON { // the usual case
				q.by = api.CommandLine
				return nil
			}
			err = json.Unmarshal(value, &q.by)
		case "body":
			q.body = value
		}
		return err
	})
	if err == nil && (q.op == "" || q.id <= 0) {
		err = errors.New("a request requires an op and an id above 0")
	}
	return q, err
}

// response is a message of the keeper about a request. Exactly one of result, failure, item and piece is set. A
// result or failure for a plugin comes with the rights that its pages have used since its previous request.
type response struct {
	id         int64
	usedRights []string
	result     json.RawMessage
	failure    *api.Error
	item       json.RawMessage
	piece      []byte
	enabled    api.Enabled
}

func readResponse(c *wire.Conn) (a response, err error) {
	kind, payload, err := receive(c, maxReply, wire.KindDone, wire.KindEvent, wire.KindPiece)
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
		case "result":
			a.result = value
		case "item":
			a.item = value
		case "touched":
			err = json.Unmarshal(value, &a.usedRights)
		case "enabled":
			err = json.Unmarshal(value, &a.enabled)
		case "error":
			err = json.Unmarshal(value, &a.failure)
		}
		return err
	})
	if err == nil && a.result == nil && a.item == nil && a.failure == nil {
		err = errors.New("a response without a result, an error or an item")
	}
	return a, err
}

// pieceHead is the size of the header before a piece of a large result: the id.
const pieceHead = 8

// aside is what a response says in addition to its result or error. The zero value adds nothing.
type aside struct {
	rights  []string // the rights that a plugin's pages have used
	enabled api.Enabled
}

// responseParts returns the parts of a response. field is result, error or item.
func responseParts(id int64, field string, value []byte, beside aside) [][]byte {
	head := strconv.AppendInt([]byte(`{"id":`), id, 10)
	if len(beside.rights) > 0 {
		head = append(append(head, `,"touched":`...), scan.Marshal(beside.rights)...)
	}
	if !beside.enabled.None() {
		head = append(append(head, `,"enabled":`...), scan.Marshal(beside.enabled)...)
	}
	head = append(append(append(head, `,"`...), field...), `":`...)
	return [][]byte{head, value, {'}'}}
}
