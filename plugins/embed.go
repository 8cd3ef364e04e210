// Package plugins embeds the plugins that ship with the binary. Each is stored
// as built, next to its manifest, so that describing a plugin never unpacks it.
package plugins

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// index.json and the segments are generated from the manifests, so that a list or a search does not parse all
// manifests. A test compares them with what it would generate.
//
//go:generate go test -run TestGenerated -update .

// The compressed plugins are variables of their own, because embed.FS would copy them.
var (
	//go:embed js/plugin.wasm.gz
	jsGzip []byte
	//go:embed js/manifest.json
	jsManifest []byte
	//go:embed js/digest
	jsDigest string
	//go:embed js/segment
	jsSegment []byte

	//go:embed json/plugin.wasm.gz
	jsonGzip []byte
	//go:embed json/manifest.json
	jsonManifest []byte
	//go:embed json/digest
	jsonDigest string
	//go:embed json/segment
	jsonSegment []byte

	//go:embed text/plugin.wasm.gz
	textGzip []byte
	//go:embed text/manifest.json
	textManifest []byte
	//go:embed text/digest
	textDigest string
	//go:embed text/segment
	textSegment []byte

	//go:embed index.json
	index []byte
)

// File is one shipped plugin. Info.Digest is "sha256:..." of the wasm.
type File struct {
	host.Info
	Manifest []byte // JSON, the same bytes that the wasm carries in its section
	Segment  []byte // for search
	Gzip     []byte // the compressed wasm
}

// Shipped returns the shipped plugins, sorted by name. The bytes are shared: do not modify them.
func Shipped() ([]File, error) {
	files := []File{
		{host.Info{Name: "js", Digest: strings.TrimSpace(jsDigest)}, jsManifest, jsSegment, jsGzip},
		{host.Info{Name: "json", Digest: strings.TrimSpace(jsonDigest)}, jsonManifest, jsonSegment, jsonGzip},
		{host.Info{Name: "text", Digest: strings.TrimSpace(textDigest)}, textManifest, textSegment, textGzip},
	}
	var infos []host.Info
	if err := jsontext.UnmarshalValid(index, &infos); err != nil {
		return nil, fmt.Errorf("the index of shipped plugins: %w", err)
	}
	for i, info := range infos {
		if i < len(files) && info.Name == files[i].Name {
			info.Digest = files[i].Digest
			files[i].Info = info
		}
	}
	return files, nil
}

// Wasm returns the decompressed plugin.
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
