package wasm

import (
	"os"
	"path/filepath"

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
	// File is the path of the file that Wasm reads and compares with Info.Digest, "" if the module is in memory.
	File string
	// Packed is the compressed form of Wasm if that is in memory anyway, else nil. Compiled code can then be looked
	// up without decompressing the module.
	Packed []byte
	// Engine is the digest of the engine that a plugin of kind script is bound to, "" if it is not installed.
	Engine string
}

// moduleKey returns the key of the compiled code, and the module if it had to be read. dir is the cache folder, or "".
// The digest covers the manifest too, which says what an image of the module may hold.
func (s *Source) moduleKey(dir string) (key string, wasm []byte, err error) {
	if s.Info.Digest != "" { // of what is in memory, or of what the file has to be
		key = cacheKey("digest", []byte(s.Info.Digest))
		if s.File != "" {
			wasm, err = s.readChanged(dir, key)
		}
		return key, wasm, err
	}
	if len(s.Packed) > 0 {
		return cacheKey("packed", s.Packed), nil, nil
	}
	if wasm, err = s.Wasm(); err != nil {
		return "", nil, err
	}
	return cacheKey("wasm", wasm), wasm, nil
}

// readChanged reads the file of the module, which checks its digest, unless it is as it was when its compiled code was
// last used.
func (s *Source) readChanged(dir, key string) (wasm []byte, err error) {
	if dir == "" {
		return s.Wasm()
	}
	of := slot{filepath.Join(dir, key), key}
	if of.isInstalled(s.File) {
		return nil, nil
	}
	info, statErr := os.Lstat(s.File)
	if wasm, err = s.Wasm(); err == nil && statErr == nil {
		of.setInstalled(s.File, info)
	}
	return wasm, err
}
