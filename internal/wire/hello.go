package wire

import (
	"errors"
	"fmt"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Version is the version of this wire. Sides with different versions do not communicate.
const Version = 2

const maxHello = 64 << 10

// Hello is the first frame of each side.
type Hello struct {
	Wire int `json:"parley_wire"`
	// Host is the version of the sender's host.
	Host string `json:"host,omitempty"`
}

// QueueHello adds this side's hello to the frames that the next Send writes. It sets h.Wire.
func (c *Conn) QueueHello(h Hello) error {
	h.Wire = Version
	body, _ := manifest.Marshal(h) // it is plain data
	return c.Queue(KindHello, body)
}

// SendHello sends this side's hello. It sets h.Wire.
func (c *Conn) SendHello(h Hello) error {
	h.Wire = Version
	return c.SendJSON(KindHello, h)
}

// VersionError reports a peer that uses another version of the wire.
type VersionError struct{ Peer int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the other side speaks version %d of the wire, this one version %d", e.Peer, Version)
}

// ReceiveHello reads the other side's hello. The error is a *[VersionError] if that side uses another version.
func (c *Conn) ReceiveHello() (Hello, error) {
	var h Hello
	kind, body, err := c.Receive(maxHello)
	switch {
	case err != nil:
		return h, err
	case kind != KindHello || jsontext.Unmarshal(body, &h) != nil || h.Wire == 0:
		return h, errors.New("the first frame is not a hello")
	case h.Wire != Version:
		return h, &VersionError{h.Wire}
	}
	c.Greeted = true
	return h, nil
}
