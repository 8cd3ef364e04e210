package store

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/parley-tools/parley/host/wasm/internal/world"
)

// PackAssets returns the files of a folder as a tar for package sections. The same files always give the same tar.
// The error names a file that cannot be an asset, such as a link.
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
		if b.Len()+len(data) > world.MaxAssetBytes {
			return fmt.Errorf("they have more than %d bytes", world.MaxAssetBytes)
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
	_, err = world.ParseAssets(b.Bytes())
	return b.Bytes(), err
}
