package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// pseudoTypes are the types of file systems that show the kernel and its processes instead of stored files.
var pseudoTypes = []uint32{
	0x9fa0,     // proc
	0x62656572, // sysfs
	0x64626720, // debugfs
	0x74726163, // tracefs
	0x73636673, // securityfs
	0x27e0eb,   // cgroup
	0x63677270, // cgroup2
	0xcafe4a11, // bpf
	0x6165676c, // pstore
	0xde5e81e4, // efivarfs
	0xf97cff8c, // selinux
	0x43415d53, // smack
	0x1cd1,     // devpts
	0x42494e4d, // binfmt_misc
	0x62656570, // configfs
	0x65735543, // fusectl
	0x6e736673, // nsfs
	0x19800202, // mqueue
	0x958458f6, // hugetlbfs
	0x67596969, // rpc_pipefs
}

// pseudoFolder reports whether a folder, or the nearest one that exists, is part of a pseudo file system.
func pseudoFolder(path string) bool {
	var st syscall.Statfs_t
	for syscall.Statfs(path, &st) != nil {
		parent := filepath.Dir(path)
		if parent == path {
			return false
		}
		path = parent
	}
	return slices.Contains(pseudoTypes, uint32(st.Type))
}

// PseudoFile reports whether an open file is part of a pseudo file system.
func PseudoFile(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	var st syscall.Statfs_t
	err = conn.Control(func(fd uintptr) { _ = syscall.Fstatfs(int(fd), &st) }) // st stays zero if this fails
	return err == nil && slices.Contains(pseudoTypes, uint32(st.Type))
}

// mount says that a folder, or a file, of a file system is at a point of the tree.
type mount struct{ device, root, point string }

// mounts returns what is mounted, later mounts last; nil where the kernel does not say.
func mounts() []mount {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parseMounts(string(text))
}

// parseMounts parses /proc/self/mountinfo.
func parseMounts(text string) []mount {
	var all []mount
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 4 {
			all = append(all, mount{fields[2], unescapeMount(fields[3]), unescapeMount(fields[4])})
		}
	}
	return all
}

// unescapeMount decodes the octal escapes of white space and backslashes.
func unescapeMount(s string) string {
	parts := strings.Split(s, `\`)
	for i, p := range parts[1:] {
		if code, err := strconv.ParseUint(p[:min(3, len(p))], 8, 8); err == nil && len(p) >= 3 {
			parts[i+1] = string([]byte{byte(code)}) + p[3:]
		}
	}
	return strings.Join(parts, "")
}

// stored is where a file is within its file system, which does not depend on what is mounted where.
type stored struct{ device, path string }

func (s stored) overlaps(o stored) bool {
	return s.device != "" && s.device == o.device && (inFolder(s.path, o.path) || inFolder(o.path, s.path))
}

// storedAt returns where the file at a path without links is stored.
func storedAt(all []mount, path string) stored {
	var best mount
	for _, m := range all {
		if inFolder(path, m.point) && len(m.point) >= len(best.point) {
			best = m
		}
	}
	rest, _ := filepath.Rel(best.point, path)
	return stored{best.device, filepath.Join(best.root, rest)}
}

// mountsBelow returns what is mounted below a path without links, by its point.
func mountsBelow(all []mount, path string) map[string]stored {
	below := map[string]stored{}
	for _, m := range all {
		if m.point != path && inFolder(m.point, path) {
			below[m.point] = stored{m.device, m.root}
		}
	}
	return below
}

// withoutLinks resolves the links in a path as far as it exists.
func withoutLinks(path string) string {
	for at, rest := path, ""; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(at)
		if parent == at {
			return path
		}
		at, rest = parent, filepath.Join(filepath.Base(at), rest)
	}
}

// mounted says why a folder must not be granted because a mount shows one of the host's own folders in it, or in a
// writable one a file from which a secret is read, or a program; "" if none does.
func (o *OwnFiles) mounted(all []mount, folder string, writable bool) string {
	if o == nil || len(all) == 0 {
		return ""
	}
	folder = withoutLinks(folder)
	shown := mountsBelow(all, folder)
	shown[folder] = storedAt(all, folder)
	for _, own := range o.Folders {
		path := withoutLinks(own.Path)
		places := mountsBelow(all, path)
		places[path] = storedAt(all, path)
		for point, s := range shown {
			for _, place := range places {
				if s.overlaps(place) {
					return fmt.Sprintf("shows the host's %s folder, %s, which is mounted at %s", own.Name, own.Path, point)
				}
			}
		}
	}
	if !writable {
		return ""
	}
	for _, path := range append(o.secrets(), o.Programs...) {
		file := storedAt(all, withoutLinks(path))
		for _, s := range shown {
			if s.device != "" && s.device == file.device && inFolder(file.path, s.path) {
				return holdsInput
			}
		}
	}
	return ""
}
