package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/manifest"
)

// A signature file is next to its wasm file and has the same name plus this suffix. This package treats its content
// as opaque bytes; package signature interprets it.
const (
	signatureSuffix = ".minisig"
	maxSignature    = 64 << 10
)

// SignatureName returns the path of the signature of a wasm file. The signature covers the wasm, so a gzipped file
// has the same signature as its content.
func SignatureName(path string) string { return strings.TrimSuffix(path, ".gz") + signatureSuffix }

// ReadSignature reads a signature file. Errors are *host.Error: 83 if there is none, 87 for a file that cannot be a
// signature, 105 for a file that cannot be read.
func ReadSignature(path string) ([]byte, error) {
	data, err := readBounded(path, maxSignature)
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, world.Failed(host.NotFound, err, "signature %s does not exist", manifest.CleanLine(path))
	case errors.As(err, &pathErr):
		return nil, world.Failed(host.Unavailable, err, "cannot read the signature: %v", err)
	case err != nil:
		return nil, world.Failed(host.Integrity, err, "%s is not a signature: %v", manifest.CleanLine(path), err)
	}
	return data, nil
}

// findSignature reads the signature next to a wasm file. It returns nil if there is none.
func findSignature(path string) ([]byte, error) {
	for _, name := range []string{path + signatureSuffix, SignatureName(path)} {
		data, err := ReadSignature(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	return nil, nil
}

// Signature returns the signature that was installed with a plugin, or nil if there is none.
func (s *Store) Signature(e Entry) ([]byte, error) {
	return findSignature(filepath.Join(s.pluginDir(e), wasmName))
}

// Open reads an installed plugin, with its signature, as a candidate. If the manifest or the wasm differs from the
// installed one, it returns an error (87).
func (s *Store) Open(e Entry) (*Candidate, error) {
	manifestJSON, err := s.readManifest(e)
	if err != nil {
		return nil, err
	}
	m, err := s.parse(e, manifestJSON)
	if err != nil {
		return nil, err
	}
	wasm, err := s.readWasm(e, manifestJSON)
	if err != nil {
		return nil, err
	}
	c := &Candidate{Path: filepath.Join(s.pluginDir(e), wasmName), Wasm: wasm, ManifestJSON: manifestJSON, Manifest: m,
		Digest: e.Digest, Signer: e.Signer}
	c.Signature, err = s.Signature(e)
	return c, err
}

// writeSignature writes the signature of a plugin into its folder. A nil signature removes an existing one.
func (s *Store) writeSignature(e Entry, signature []byte) error {
	path := filepath.Join(s.pluginDir(e), wasmName+signatureSuffix)
	if signature != nil {
		return writeFile(path, signature)
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
