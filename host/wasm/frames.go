package wasm

import (
	"encoding/binary"
	"fmt"
	"io"
)

// What a host and the process of a guest tell each other: frames of a kind, a length of four bytes and so many bytes. The host sends one
// job and then answers; the process sends all else, and done last.
const (
	frameJob      = 'j' // job as JSON
	frameReply    = 'r' // to a question, as a guest gets it
	frameMissing  = 'm' // a part of the lockdown that the kernel does not give
	frameRequest  = 'a' // function, a newline, the question
	frameDeny     = 'd' // right, a newline, why
	frameUse      = 't' // what a right was used for
	frameLog      = 'l' // report as JSON
	frameProgress = 'p' // report as JSON
	frameDone     = 'e' // outcome as JSON
)

// frameOverhead is what a frame may hold beside a result or a question: an error with its details, escapes of JSON.
const frameOverhead = 1 << 20

func writeFrame(w io.Writer, kind byte, body []byte) error {
	frame := make([]byte, 0, 5+len(body))
	frame = append(frame, kind)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(body)))
	_, err := w.Write(append(frame, body...))
	return err
}

// readFrame reads a frame of at most so many bytes. io.EOF says that there is none left.
func readFrame(r io.Reader, limit int) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if uint64(n) > uint64(limit) {
		return 0, nil, fmt.Errorf("a message of %d bytes, and %d are allowed", n, limit)
	}
	// Grown as it arrives: the length is a claim.
	body, err = io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(body) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return head[0], body, err
}
