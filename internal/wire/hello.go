package wire

import (
	"errors"
	"fmt"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Version is the version of this wire. Sides of different versions do not talk to each other.
const Version = 1

const maxHello = 64 << 10

// Hello is the first frame of each side.
type Hello struct {
	Wire int `json:"parley_wire"`
	// Host is the version of the host that the side belongs to.
	Host string `json:"host,omitempty"`
}

// QueueHello adds this side's hello to what the next Send writes. It sets h.Wire.
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

// VersionError is a peer that speaks another version of the wire.
type VersionError struct{ Peer int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the other side speaks version %d of the wire, this one version %d", e.Peer, Version)
}

// ReceiveHello reads the other side's hello. The error is a *[VersionError] if it speaks another version.
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
