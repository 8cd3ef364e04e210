package wasm

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Host and child process exchange frames: one byte for the kind, four bytes for the length, and the body. The host
// sends one job and then replies. The child sends everything else, and frameDone last.
const (
	frameJob      = 'j' // job as JSON
	frameReply    = 'r' // to a request, as the guest gets it
	frameMissing  = 'm' // a protection that the kernel does not offer
	frameRequest  = 'a' // function, newline, request
	frameDeny     = 'd' // right, newline, reason
	frameUse      = 't' // what a right was used for
	frameLog      = 'l' // report as JSON
	frameProgress = 'p' // report as JSON
	frameDone     = 'e' // outcome as JSON
)

// frameOverhead is what a frame may hold in addition to a result or a request: an error with details, JSON escapes.
const frameOverhead = 1 << 20

func writeFrame(w io.Writer, kind byte, body []byte) error {
	frame := make([]byte, 0, 5+len(body))
	frame = append(frame, kind)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(body)))
	_, err := w.Write(append(frame, body...))
	return err
}

// readFrame reads a frame with a body of at most limit bytes. It returns io.EOF at the end of the stream.
func readFrame(r io.Reader, limit int) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if uint64(n) > uint64(limit) {
		return 0, nil, fmt.Errorf("a message of %d bytes, the limit is %d", n, limit)
	}
	// The buffer grows as data arrives, because the length is only a claim.
	body, err = io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(body) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return head[0], body, err
}
