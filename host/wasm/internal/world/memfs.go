package world

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// memFS is a tree of files in memory as a guest sees it: the assets of a plugin, or the input files of a call of kind
// wasi and its output file, if there is one. The guest can write only if there is an output file. Nothing is stored
// on disk. The call's output limit bounds the total size of what is written.
type memFS struct {
	experimentalsys.UnimplementedFS
	files    *Files
	tree     memTree
	writable bool
	used     int
}

const maxMemNodes = 1_000

// AddScratch adds the files of a call. If two have the same name, or one is inside another, the first one counts.
func (t *Files) AddScratch(contents map[string]string, writable bool) {
	t.Scratch = &memFS{files: t, tree: newMemTree(maxMemNodes), writable: writable}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		t.Scratch.check(t.Scratch.tree.addFile(splitPath(name), []byte(contents[name])))
	}
}

// check ends the guest if the tree is full.
func (m *memFS) check(err error) {
	if errors.Is(err, errTreeFull) {
		m.files.Control.ExceedLimit("%s created more than %d files", m.files.Control.Tool, maxMemNodes)
	}
}

// add adds a file or a folder.
func (m *memFS) add(parent *MemNode, name string, n *MemNode) *MemNode {
	m.check(m.tree.add(parent, name, n))
	return n
}

// Content returns the content of a file.
func (m *memFS) Content(name string) ([]byte, bool) {
	n := m.tree.find(name)
	if n == nil || n.Dir {
		return nil, false
	}
	return n.Data, true
}

func (m *memFS) OpenFile(name string, flag experimentalsys.Oflag, _ fs.FileMode) (experimentalsys.File,
	experimentalsys.Errno) {
	m.files.Control.Checkpoint()
	n := m.tree.find(name)
	if flag&experimentalsys.O_DIRECTORY != 0 {
		if n != nil && n.Dir && flag&(experimentalsys.O_RDWR|experimentalsys.O_WRONLY) != 0 {
			return nil, experimentalsys.EISDIR
		}
		flag &^= writeFlags
	}
	write := flag&writeFlags != 0
	switch {
	case n == nil && flag&experimentalsys.O_CREAT == 0:
		return nil, experimentalsys.ENOENT
	case write && !m.writable:
		return nil, experimentalsys.EROFS
	case n == nil:
		parent, base := m.tree.parent(name)
		if parent == nil {
			return nil, experimentalsys.ENOENT
		}
		n = m.add(parent, base, &MemNode{})
	case flag&experimentalsys.O_CREAT != 0 && flag&experimentalsys.O_EXCL != 0:
		return nil, experimentalsys.EEXIST
	case n.Dir && write:
		return nil, experimentalsys.EISDIR
	case !n.Dir && flag&experimentalsys.O_DIRECTORY != 0:
		return nil, experimentalsys.ENOTDIR
	case n.ReadOnly && write:
		return nil, experimentalsys.EROFS
	}
	if flag&experimentalsys.O_TRUNC != 0 {
		m.used -= len(n.Data)
		n.Data = nil
	}
	m.files.checkOpen()
	m.files.Opened++
	return &memFile{fs: m, node: n, flag: flag}, 0
}

func (m *memFS) Lstat(name string) (sys.Stat_t, experimentalsys.Errno) { return m.Stat(name) }

func (m *memFS) Stat(name string) (sys.Stat_t, experimentalsys.Errno) {
	m.files.Control.Checkpoint()
	n := m.tree.find(name)
	if n == nil {
		return sys.Stat_t{}, experimentalsys.ENOENT
	}
	return n.stat(), 0
}

func (n *MemNode) stat() sys.Stat_t {
	st := sys.Stat_t{Ino: n.ino, Nlink: 1, Mode: 0o600, Size: int64(len(n.Data))}
	if n.Dir {
		st.Mode = fs.ModeDir | 0o700
	}
	return st
}

func (m *memFS) Mkdir(name string, _ fs.FileMode) experimentalsys.Errno {
	parent, base := m.tree.parent(name)
	switch {
	case !m.writable:
		return experimentalsys.EROFS
	case m.tree.find(name) != nil:
		return experimentalsys.EEXIST
	case parent == nil:
		return experimentalsys.ENOENT
	}
	m.add(parent, base, newFolder())
	return 0
}

func (m *memFS) Rename(from, to string) experimentalsys.Errno {
	n := m.tree.find(from)
	fromDir, fromBase := m.tree.parent(from)
	toDir, toBase := m.tree.parent(to)
	old := m.tree.find(to)
	switch {
	case !m.writable:
		return experimentalsys.EROFS
	case n == nil || fromDir == nil || toDir == nil:
		return experimentalsys.ENOENT
	case n == old:
		return 0
	case n.Dir || old != nil && old.Dir:
		return experimentalsys.ENOTSUP // programs rename files only; folders stay where they are
	case n.ReadOnly || old != nil && old.ReadOnly:
		return experimentalsys.EROFS
	}
	delete(fromDir.Children, fromBase)
	toDir.Children[toBase] = n
	return 0
}

func (m *memFS) Rmdir(name string) experimentalsys.Errno { return m.remove(name, true) }

func (m *memFS) Unlink(name string) experimentalsys.Errno { return m.remove(name, false) }

func (m *memFS) remove(name string, dir bool) experimentalsys.Errno {
	n := m.tree.find(name)
	parent, base := m.tree.parent(name)
	switch {
	case !m.writable:
		return experimentalsys.EROFS
	case n == nil || parent == nil:
		return experimentalsys.ENOENT
	case dir && !n.Dir:
		return experimentalsys.ENOTDIR
	case !dir && n.Dir:
		return experimentalsys.EISDIR
	case n.ReadOnly:
		return experimentalsys.EROFS
	case len(n.Children) > 0:
		return experimentalsys.ENOTEMPTY
	}
	delete(parent.Children, base)
	return 0
}

func (m *memFS) Utimens(string, int64, int64) experimentalsys.Errno {
	if !m.writable {
		return experimentalsys.EROFS
	}
	return 0 // files in memory have no times
}

// memFile is an open file or folder of a memFS.
type memFile struct {
	experimentalsys.UnimplementedFile
	fs          *memFS
	node        *MemNode
	flag        experimentalsys.Oflag
	offset      int64
	entriesRead int
	closed      bool
}

func (f *memFile) Stat() (sys.Stat_t, experimentalsys.Errno) { return f.node.stat(), 0 }

func (f *memFile) Ino() (sys.Inode, experimentalsys.Errno) { return f.node.ino, 0 }

func (f *memFile) IsDir() (bool, experimentalsys.Errno) { return f.node.Dir, 0 }

func (f *memFile) IsAppend() bool { return f.flag&experimentalsys.O_APPEND != 0 }

func (f *memFile) SetAppend(on bool) experimentalsys.Errno {
	f.flag &^= experimentalsys.O_APPEND
	if on {
		f.flag |= experimentalsys.O_APPEND
	}
	return 0
}

func (f *memFile) Read(p []byte) (int, experimentalsys.Errno) {
	n, errno := f.Pread(p, f.offset)
	f.offset += int64(n)
	return n, errno
}

func (f *memFile) Pread(p []byte, off int64) (int, experimentalsys.Errno) {
	f.fs.files.Control.Checkpoint()
	switch {
	case f.node.Dir:
		return 0, experimentalsys.EISDIR
	case off < 0:
		return 0, experimentalsys.EINVAL
	case off >= int64(len(f.node.Data)):
		return 0, 0
	}
	return copy(p, f.node.Data[off:]), 0
}

func (f *memFile) Write(p []byte) (int, experimentalsys.Errno) {
	if f.IsAppend() {
		f.offset = int64(len(f.node.Data))
	}
	n, errno := f.Pwrite(p, f.offset)
	f.offset += int64(n)
	return n, errno
}

func (f *memFile) Pwrite(p []byte, off int64) (int, experimentalsys.Errno) {
	f.fs.files.Control.Checkpoint()
	switch {
	case f.node.Dir:
		return 0, experimentalsys.EISDIR
	case f.flag&(experimentalsys.O_RDWR|experimentalsys.O_WRONLY) == 0:
		return 0, experimentalsys.EBADF
	case off < 0 || off > 1<<40:
		return 0, experimentalsys.EINVAL
	}
	f.resize(max(off+int64(len(p)), int64(len(f.node.Data))))
	return copy(f.node.Data[off:], p), 0
}

// resize changes a file's length, within the limit for all files together.
func (f *memFile) resize(size int64) {
	grown := size - int64(len(f.node.Data))
	k := f.fs.files.Control
	if limit := k.Limits.Output; int64(f.fs.used)+grown > int64(limit) {
		k.ExceedLimit("%s wrote more than the limit of %d bytes to its output file; request less data, or raise "+
			"output_bytes in the plugin's limits", k.Tool, limit)
	}
	f.fs.used += int(grown)
	if grown <= 0 {
		f.node.Data = f.node.Data[:size]
		return
	}
	f.node.Data = append(f.node.Data, make([]byte, grown)...)
}

func (f *memFile) Truncate(size int64) experimentalsys.Errno {
	switch {
	case f.node.Dir:
		return experimentalsys.EISDIR
	case f.flag&(experimentalsys.O_RDWR|experimentalsys.O_WRONLY) == 0:
		return experimentalsys.EBADF
	case size < 0 || size > 1<<40:
		return experimentalsys.EINVAL
	}
	f.resize(size)
	return 0
}

func (f *memFile) Seek(offset fileOffset, whence int) (int64, experimentalsys.Errno) {
	switch whence {
	case io.SeekCurrent:
		offset += f.offset
	case io.SeekEnd:
		offset += int64(len(f.node.Data))
	}
	if offset < 0 || whence < 0 || whence > io.SeekEnd {
		return 0, experimentalsys.EINVAL
	}
	if f.node.Dir {
		if offset != 0 {
			return 0, experimentalsys.EISDIR
		}
		f.entriesRead = 0
	}
	f.offset = offset
	return offset, 0
}

func (f *memFile) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	if !f.node.Dir {
		return nil, experimentalsys.ENOTDIR
	}
	names := f.node.Names
	if names == nil {
		names = slices.Sorted(maps.Keys(f.node.Children))
	}
	names = names[min(f.entriesRead, len(names)):]
	if n > 0 {
		names = names[:min(n, len(names))]
	}
	f.entriesRead += len(names)
	var out []experimentalsys.Dirent
	for _, name := range names {
		child := f.node.Children[name]
		out = append(out, experimentalsys.Dirent{Name: name, Ino: child.ino, Type: child.stat().Mode.Type()})
	}
	return out, 0
}

func (f *memFile) Utimens(int64, int64) experimentalsys.Errno { return 0 }

func (f *memFile) Close() experimentalsys.Errno {
	if !f.closed {
		f.closed = true
		f.fs.files.Opened--
	}
	return 0
}
