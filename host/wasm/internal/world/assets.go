package world

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// Bounds of the assets of a plugin.
const (
	MaxAssetBytes = 64 << 20 // of the tar, and therefore of all files
	MaxAssetNodes = 20_000   // files and folders
	maxAssetName  = 255      // bytes of an element of a path
	MaxAssetDepth = 32
)

// ParseAssets returns the tree of the files in a tar. The contents are slices of data. It accepts only regular files
// and folders below the root, each path once. It refuses links, devices, holes, and names that lead elsewhere.
func ParseAssets(data []byte) (*MemNode, error) {
	if len(data) > MaxAssetBytes {
		return nil, fmt.Errorf("they have %d bytes, at most %d are allowed", len(data), MaxAssetBytes)
	}
	tree := newMemTree(MaxAssetNodes)
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
			continue // for example, the id of a commit
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
			err = fmt.Errorf("they are more than %d files and folders", MaxAssetNodes)
		}
		if err != nil {
			return nil, err
		}
	}
	tree.root.sortNames()
	return tree.root, nil
}

// AssetsName is the name of the assets' file in a folder of compiled code.
const AssetsName = "assets.tar"

// ReadAssets returns the tree of the assets in a folder.
func ReadAssets(dir string) (*MemNode, error) {
	data, err := protect.ReadProject(filepath.Join(dir, AssetsName), MaxAssetBytes)
	if err != nil {
		return nil, err
	}
	return ParseAssets(data)
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
	if len(parts) > MaxAssetDepth {
		return bad(fmt.Sprintf("has more than %d elements", MaxAssetDepth))
	}
	return parts, nil
}
