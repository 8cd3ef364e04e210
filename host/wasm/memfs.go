package wasm

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// memFS holds files in memory: the assets of a plugin, or the input files of a call of kind wasi and its output file if
// there is one. The guest can only write if there is. Nothing is stored on disk, and the total size of what is written
// is bounded by the call's output limit.
type memFS struct {
	experimentalsys.UnimplementedFS
	c        *call
	root     *memNode
	writable bool
	used     int
	nodes    int
}

const maxMemNodes = 1_000

type memNode struct {
	ino      uint64
	dir      bool
	readOnly bool // an input file, which cannot be written
	data     []byte
	children map[string]*memNode
	names    []string // of the children, sorted, if they do not change
}

func newMemFS(c *call, files map[string]string, writable bool) *memFS {
	m := &memFS{c: c, writable: true}
	m.root = m.newNode(true)
	for _, name := range sortedKeys(files) {
		m.makeParents(path.Dir(name))
		n := m.newNode(false)
		n.data, n.readOnly = []byte(files[name]), true
		if parent, base := m.parent(name); parent != nil {
			parent.children[base] = n
		}
	}
	m.writable = writable
	return m
}

func (m *memFS) newNode(dir bool) *memNode {
	if m.nodes++; m.nodes > maxMemNodes {
		m.c.exceedLimit("%s created more than %d files", m.c.toolName(), maxMemNodes)
	}
	n := &memNode{ino: uint64(m.nodes), dir: dir}
	if dir {
		n.children = map[string]*memNode{}
	}
	return n
}

func (m *memFS) makeParents(dir string) {
	node := m.root
	for _, part := range splitPath(dir) {
		next := node.children[part]
		if next == nil {
			next = m.newNode(true)
			node.children[part] = next
		}
		if !next.dir {
			return
		}
		node = next
	}
}

func splitPath(name string) []string {
	return slices.DeleteFunc(strings.Split(path.Clean("/"+name), "/"), func(s string) bool { return s == "" })
}

func (m *memFS) find(name string) *memNode {
	node := m.root
	for _, part := range splitPath(name) {
		if node == nil || !node.dir {
			return nil
		}
		node = node.children[part]
	}
	return node
}

// parent returns the folder that holds name, or nil if there is none, and the last element of name.
func (m *memFS) parent(name string) (*memNode, string) {
	p := splitPath(name)
	if len(p) == 0 {
		return nil, ""
	}
	dir := m.find(strings.Join(p[:len(p)-1], "/"))
	if dir == nil || !dir.dir {
		return nil, ""
	}
	return dir, p[len(p)-1]
}

// content returns the content of a file.
func (m *memFS) content(name string) ([]byte, bool) {
	n := m.find(name)
	if n == nil || n.dir {
		return nil, false
	}
	return n.data, true
}

func (m *memFS) OpenFile(name string, flag experimentalsys.Oflag, _ fs.FileMode) (experimentalsys.File,
	experimentalsys.Errno) {
	m.c.checkpoint()
	n := m.find(name)
	if flag&experimentalsys.O_DIRECTORY != 0 {
		if n != nil && n.dir && flag&(experimentalsys.O_RDWR|experimentalsys.O_WRONLY) != 0 {
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
		parent, base := m.parent(name)
		if parent == nil {
			return nil, experimentalsys.ENOENT
		}
		n = m.newNode(false)
		parent.children[base] = n
	case flag&experimentalsys.O_CREAT != 0 && flag&experimentalsys.O_EXCL != 0:
		return nil, experimentalsys.EEXIST
	case n.dir && write:
		return nil, experimentalsys.EISDIR
	case !n.dir && flag&experimentalsys.O_DIRECTORY != 0:
		return nil, experimentalsys.ENOTDIR
	case n.readOnly && write:
		return nil, experimentalsys.EROFS
	}
	if flag&experimentalsys.O_TRUNC != 0 {
		m.used -= len(n.data)
		n.data = nil
	}
	if m.c.files.openCount >= m.c.limits.openFiles {
		m.c.exceedLimit("%s has more than %d files open", m.c.toolName(), m.c.limits.openFiles)
	}
	m.c.files.openCount++
	return &memFile{fs: m, node: n, flag: flag}, 0
}

func (m *memFS) Lstat(name string) (sys.Stat_t, experimentalsys.Errno) { return m.Stat(name) }

func (m *memFS) Stat(name string) (sys.Stat_t, experimentalsys.Errno) {
	m.c.checkpoint()
	n := m.find(name)
	if n == nil {
		return sys.Stat_t{}, experimentalsys.ENOENT
	}
	return n.stat(), 0
}

func (n *memNode) stat() sys.Stat_t {
	st := sys.Stat_t{Ino: n.ino, Nlink: 1, Mode: 0o600, Size: int64(len(n.data))}
	if n.dir {
		st.Mode = fs.ModeDir | 0o700
	}
	return st
}

func (m *memFS) Mkdir(name string, _ fs.FileMode) experimentalsys.Errno {
	parent, base := m.parent(name)
	switch {
	case !m.writable:
		return experimentalsys.EROFS
	case m.find(name) != nil:
		return experimentalsys.EEXIST
	case parent == nil:
		return experimentalsys.ENOENT
	}
	parent.children[base] = m.newNode(true)
	return 0
}

func (m *memFS) Rename(from, to string) experimentalsys.Errno {
	n := m.find(from)
	fromDir, fromBase := m.parent(from)
	toDir, toBase := m.parent(to)
	old := m.find(to)
	switch {
	case !m.writable:
		return experimentalsys.EROFS
	case n == nil || fromDir == nil || toDir == nil:
		return experimentalsys.ENOENT
	case n == old:
		return 0
	case n.dir || old != nil && old.dir:
		return experimentalsys.ENOTSUP // programs rename files only; folders stay where they are
	case n.readOnly || old != nil && old.readOnly:
		return experimentalsys.EROFS
	}
	delete(fromDir.children, fromBase)
	toDir.children[toBase] = n
	return 0
}

func (m *memFS) Rmdir(name string) experimentalsys.Errno  { return m.remove(name, true) }
func (m *memFS) Unlink(name string) experimentalsys.Errno { return m.remove(name, false) }

func (m *memFS) remove(name string, dir bool) experimentalsys.Errno {
	n := m.find(name)
	parent, base := m.parent(name)
	switch {
	case !m.writable:
		return experimentalsys.EROFS
	case n == nil || parent == nil:
		return experimentalsys.ENOENT
	case dir && !n.dir:
		return experimentalsys.ENOTDIR
	case !dir && n.dir:
		return experimentalsys.EISDIR
	case n.readOnly:
		return experimentalsys.EROFS
	case len(n.children) > 0:
		return experimentalsys.ENOTEMPTY
	}
	delete(parent.children, base)
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
	node        *memNode
	flag        experimentalsys.Oflag
	offset      int64
	entriesRead int
	closed      bool
}

func (f *memFile) Stat() (sys.Stat_t, experimentalsys.Errno) { return f.node.stat(), 0 }
func (f *memFile) Ino() (sys.Inode, experimentalsys.Errno)   { return f.node.ino, 0 }
func (f *memFile) IsDir() (bool, experimentalsys.Errno)      { return f.node.dir, 0 }
func (f *memFile) IsAppend() bool                            { return f.flag&experimentalsys.O_APPEND != 0 }

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
	f.fs.c.checkpoint()
	switch {
	case f.node.dir:
		return 0, experimentalsys.EISDIR
	case off < 0:
		return 0, experimentalsys.EINVAL
	case off >= int64(len(f.node.data)):
		return 0, 0
	}
	return copy(p, f.node.data[off:]), 0
}

func (f *memFile) Write(p []byte) (int, experimentalsys.Errno) {
	if f.IsAppend() {
		f.offset = int64(len(f.node.data))
	}
	n, errno := f.Pwrite(p, f.offset)
	f.offset += int64(n)
	return n, errno
}

func (f *memFile) Pwrite(p []byte, off int64) (int, experimentalsys.Errno) {
	f.fs.c.checkpoint()
	switch {
	case f.node.dir:
		return 0, experimentalsys.EISDIR
	case f.flag&(experimentalsys.O_RDWR|experimentalsys.O_WRONLY) == 0:
		return 0, experimentalsys.EBADF
	case off < 0 || off > 1<<40:
		return 0, experimentalsys.EINVAL
	}
	f.resize(max(off+int64(len(p)), int64(len(f.node.data))))
	return copy(f.node.data[off:], p), 0
}

// resize changes a file's length, within the limit for all files together.
func (f *memFile) resize(size int64) {
	grown := size - int64(len(f.node.data))
	if limit := f.fs.c.limits.output; int64(f.fs.used)+grown > int64(limit) {
		f.fs.c.exceedLimit("%s wrote more than the limit of %d bytes to its output file; request less data, or raise "+
			"output_bytes in the plugin's limits", f.fs.c.toolName(), limit)
	}
	f.fs.used += int(grown)
	if grown <= 0 {
		f.node.data = f.node.data[:size]
		return
	}
	f.node.data = append(f.node.data, make([]byte, grown)...)
}

func (f *memFile) Truncate(size int64) experimentalsys.Errno {
	switch {
	case f.node.dir:
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
		offset += int64(len(f.node.data))
	}
	if offset < 0 || whence < 0 || whence > io.SeekEnd {
		return 0, experimentalsys.EINVAL
	}
	if f.node.dir {
		if offset != 0 {
			return 0, experimentalsys.EISDIR
		}
		f.entriesRead = 0
	}
	f.offset = offset
	return offset, 0
}

func (f *memFile) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	if !f.node.dir {
		return nil, experimentalsys.ENOTDIR
	}
	names := f.node.names
	if names == nil {
		names = sortedKeys(f.node.children)
	}
	names = names[min(f.entriesRead, len(names)):]
	if n > 0 {
		names = names[:min(n, len(names))]
	}
	f.entriesRead += len(names)
	var out []experimentalsys.Dirent
	for _, name := range names {
		child := f.node.children[name]
		out = append(out, experimentalsys.Dirent{Name: name, Ino: child.ino, Type: child.stat().Mode.Type()})
	}
	return out, 0
}

func (f *memFile) Utimens(int64, int64) experimentalsys.Errno { return 0 }

func (f *memFile) Close() experimentalsys.Errno {
	if !f.closed {
		f.closed = true
		f.fs.c.files.openCount--
	}
	return 0
}
