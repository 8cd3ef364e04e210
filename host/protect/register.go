package protect

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// register has the files that this process has opened with [Open] and [Append], by their absolute paths, with what was
// opened there last. All hosts of a process share it: a file that one of them reads is out of reach of all plugins.
var register = struct {
	sync.Mutex
	files map[string]openedFile
}{files: map[string]openedFile{}}

// openedFile is a file as it was when it was opened. A system gives the inode of a file that is gone to another one,
// which was changed at another time.
type openedFile struct {
	ID       FileID `json:"id"`
	Modified int64  `json:"modified"` // in nanoseconds since 1970
}

// Register notes that the host reads a file. No grant gives a plugin its folder to write, and in a folder that a plugin
// may read it cannot be opened: neither what was opened nor what is at the path later. Only regular files are noted.
func Register(path string, info fs.FileInfo) {
	path, err := filepath.Abs(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	id, _ := identify(info)
	register.Lock()
	defer register.Unlock()
	register.files[path] = openedFile{id, info.ModTime().UnixNano()}
}

// registered returns the paths of the register, and what was opened there. What lies in one of the
// folders is left out, because no grant reaches those.
func registered(folders []Folder) (paths []string, opened []openedFile) {
	register.Lock()
	defer register.Unlock()
	for _, path := range slices.Sorted(maps.Keys(register.files)) {
		if !slices.ContainsFunc(folders, func(f Folder) bool { return inFolder(path, f.Path) }) {
			paths, opened = append(paths, path), append(opened, register.files[path])
		}
	}
	return paths, opened
}

// Remember registers a file, which need not exist yet, for all processes of the user that use the same folders, now and
// later: an option named it, such as the tokens of a server, so no other process knows of it. It counts while there is
// a regular file at the path.
func (o *Files) Remember(path string) error {
	path, err := filepath.Abs(path)
	if err != nil || o.Named == "" {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() || slices.Contains(o.named(), path) ||
		slices.ContainsFunc(o.Folders, func(f Folder) bool { return inFolder(path, f.Path) }) {
		return nil
	}
	line, err := json.Marshal(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.Named), 0o700); err != nil {
		return err
	}
	f, _, err := Append(o.Named)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// named returns the remembered files that exist.
func (o *Files) named() (paths []string) {
	const limit = 1 << 20
	if o.Named == "" {
		return nil
	}
	data, _ := Read(o.Named, limit) // without the file there are none
	for line := range strings.Lines(string(data)) {
		var path string
		if json.Unmarshal([]byte(line), &path) != nil {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			paths = append(paths, path)
		}
	}
	return paths
}
