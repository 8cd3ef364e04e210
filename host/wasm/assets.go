package wasm

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/manifest"
)

// Bounds of the assets of a plugin.
const (
	maxAssetBytes = 64 << 20 // of the tar, and therefore of all files
	maxAssetNodes = 20_000   // files and folders
	maxAssetName  = 255      // bytes of an element of a path
	maxAssetDepth = 32
)

// findAssets returns the tar with the assets of a plugin, or nil if its wasm file has none.
func findAssets(wasm []byte, m *manifest.Manifest) ([]byte, error) {
	data, err := manifest.ReadAssets(wasm)
	if err == nil && data == nil {
		return nil, checkAssets(false, m)
	}
	if err == nil {
		_, err = parseAssets(data)
	}
	if err != nil {
		return nil, moduleError(m, "its assets: %s", truncate(manifest.CleanLine(err.Error()), 300))
	}
	return data, nil
}

// PackAssets returns the files of a folder as a tar for [manifest.WriteAssets]. The same files make the same
// tar. The error names what cannot be an asset, such as a link.
func PackAssets(folder fs.FS) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir():
			return w.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755})
		case !entry.Type().IsRegular():
			return fmt.Errorf("%q is neither a regular file nor a folder", name)
		}
		data, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		if b.Len()+len(data) > maxAssetBytes {
			return fmt.Errorf("they have more than %d bytes", maxAssetBytes)
		}
		header := tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data))}
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	_, err = parseAssets(b.Bytes())
	return b.Bytes(), err
}

// checkAssets checks that a wasm file has the assets of its manifest.
func checkAssets(has bool, m *manifest.Manifest) error {
	if has || m.Assets == nil {
		return nil
	}
	return moduleError(m, "its manifest has assets, but the wasm file has no section parley.assets with a tar of them; "+
		"parley plugin pack adds the folder assets beside it; or remove assets from the manifest")
}

// parseAssets returns the tree of the files in a tar. The files are parts of data. It accepts regular files and
// folders below the root, each path once, and nothing else: no links, devices, holes, or names that lead elsewhere.
func parseAssets(data []byte) (*memNode, error) {
	if len(data) > maxAssetBytes {
		return nil, fmt.Errorf("they have %d bytes, at most %d are allowed", len(data), maxAssetBytes)
	}
	tree := newMemTree(maxAssetNodes)
	source := bytes.NewReader(data)
	for archive := tar.NewReader(source); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("not a valid tar: %w", err)
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue // such as the id of a commit
		}
		parts, err := assetPath(header.Name)
		if err != nil {
			return nil, err
		}
		for key := range header.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				return nil, fmt.Errorf("%q has holes", header.Name)
			}
		}
		start := len(data) - source.Len()
		switch {
		case header.Typeflag == tar.TypeDir:
			_, err = tree.addFolder(parts)
		case header.Typeflag != tar.TypeReg:
			err = fmt.Errorf("%q is neither a regular file nor a folder", header.Name)
		case header.Size < 0 || header.Size > int64(len(data)-start):
			err = fmt.Errorf("%q is truncated", header.Name)
		default:
			end := start + int(header.Size)
			err = tree.addFile(parts, data[start:end:end])
		}
		if errors.Is(err, errTreeFull) {
			err = fmt.Errorf("they are more than %d files and folders", maxAssetNodes)
		}
		if err != nil {
			return nil, err
		}
	}
	tree.root.sortNames()
	return tree.root, nil
}

// assetPath returns the elements of the name of an entry, none for the root itself.
func assetPath(name string) ([]string, error) {
	bad := func(why string) ([]string, error) {
		return nil, fmt.Errorf("the name %q %s", manifest.Clip(name, 100), why)
	}
	switch {
	case !utf8.ValidString(name):
		return bad("is not UTF-8")
	case strings.HasPrefix(name, "/"):
		return bad("is absolute")
	case strings.ContainsAny(name, "\x00\\"):
		return bad("has a NUL or a backslash")
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			return bad("leads out of its folder")
		case len(part) > maxAssetName:
			return bad(fmt.Sprintf("has an element of more than %d bytes", maxAssetName))
		}
		parts = append(parts, part)
	}
	if len(parts) > maxAssetDepth {
		return bad(fmt.Sprintf("has more than %d elements", maxAssetDepth))
	}
	return parts, nil
}
