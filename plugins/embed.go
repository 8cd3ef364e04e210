// Package plugins holds the plugins that ship within the binary. Each stands
// here as it was built, beside its manifest, so that describing one never
// unpacks it.
package plugins

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strings"
)

// The packed plugins are variables of their own: embed.FS would copy them.
var (
	//go:embed json/plugin.wasm.gz
	jsonGzip []byte
	//go:embed json/manifest.json
	jsonManifest []byte
	//go:embed json/digest
	jsonDigest string

	//go:embed text/plugin.wasm.gz
	textGzip []byte
	//go:embed text/manifest.json
	textManifest []byte
	//go:embed text/digest
	textDigest string
)

// File is one shipped plugin.
type File struct {
	Name     string
	Manifest []byte // JSON; the wasm carries the same in its section
	Gzip     []byte // the wasm, compressed
	Digest   string // "sha256:..." of the wasm
}

// Shipped lists the shipped plugins, sorted by name. It copies nothing: leave the bytes as they are.
func Shipped() []File {
	return []File{
		{"json", jsonManifest, jsonGzip, strings.TrimSpace(jsonDigest)},
		{"text", textManifest, textGzip, strings.TrimSpace(textDigest)},
	}
}

// Wasm unpacks the plugin.
func (f File) Wasm() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(f.Gzip))
	if err != nil {
		return nil, fmt.Errorf("shipped plugin %s: %w", f.Name, err)
	}
	wasm, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("shipped plugin %s: %w", f.Name, err)
	}
	return wasm, nil
}
