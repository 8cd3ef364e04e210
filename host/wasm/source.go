package wasm

import (
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Source is where a plugin's parts come from: a store, a candidate, what is compiled in. Its functions are
// safe for concurrent use and read no earlier than they are called. A caller keeps what it needs again: a
// module can be large, and once it is compiled its bytes are not needed. Their errors are *host.Error.
type Source struct {
	Info     host.Info
	Manifest func() (*manifest.Manifest, error)
	Wasm     func() ([]byte, error)
	Segment  func() ([]byte, error) // what host.BuildSegment made of the manifest
	// Packed is what Wasm unpacks, where that is in memory anyway: compiled code is found by it without unpacking. May be nil.
	Packed []byte
}
