package store

import (
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Source provides a plugin's parts from a store, a candidate, or this binary. Its functions are safe for concurrent
// use and read nothing before they are called. They do not cache results, because a module can be large, and is not
// needed once it is compiled. Their errors are *host.Error.
type Source struct {
	Info     host.Info
	Manifest func() (*manifest.Manifest, error)
	// Discover returns what lists and descriptions read. It passes each manifest or part of one that it reads to
	// annotate. Nil means that Manifest has everything.
	Discover func(annotate func(*manifest.Manifest)) (*Discovery, error)
	Wasm     func() ([]byte, error)
	Segment  func() ([]byte, error) // in the form of segment.Build
	// File is the path of the file that Wasm reads and compares with Info.Digest, "" if the module is in memory.
	File string
	// Packed is the compressed form of Wasm, if that is in memory anyway; otherwise nil. Compiled code can then be
	// looked up without decompressing the module.
	Packed []byte
	// Engine is the digest of the engine that a plugin of kind script is bound to, "" if it is not installed.
	Engine string
}
