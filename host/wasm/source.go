package wasm

import (
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Source provides a plugin's parts from a store, a candidate, or this binary. Its functions are safe for concurrent
// use and read nothing before they are called. The caller keeps what it needs again: a module can be large, and is
// not needed once it is compiled. Their errors are *host.Error.
type Source struct {
	Info     host.Info
	Manifest func() (*manifest.Manifest, error)
	Wasm     func() ([]byte, error)
	Segment  func() ([]byte, error) // as host.BuildSegment encodes it
	// Packed is the compressed form of Wasm if that is in memory anyway, else nil. Compiled code can then be looked
	// up without decompressing the module.
	Packed []byte
	// Engine is the digest of the engine that a plugin of kind script is bound to, "" if it is not installed.
	Engine string
}

// moduleKey returns the key of the compiled code, and the module if it had to be read for that. The digest covers the
// manifest too, which says what an image of the module may hold.
func (s *Source) moduleKey() (key string, wasm []byte, err error) {
	if len(s.Packed) > 0 && s.Info.Digest != "" {
		return cacheKey("digest", []byte(s.Info.Digest)), nil, nil // which covers what is in memory
	}
	if len(s.Packed) > 0 {
		return cacheKey("packed", s.Packed), nil, nil
	}
	if wasm, err = s.Wasm(); err != nil {
		return "", nil, err
	}
	return cacheKey("wasm "+s.Info.Digest, wasm), wasm, nil
}
