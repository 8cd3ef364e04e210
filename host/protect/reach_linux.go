package protect

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

// mount says that root, a folder or a file of the file system device, is mounted at point.
type mount struct{ device, root, point string }

// mounts returns what is mounted, later mounts last; nil where the kernel does not say.
func mounts() []mount {
	text, _ := os.ReadFile("/proc/self/mountinfo")
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

// place is where a file is in the tree, and where it is stored: in which file system, and at which path in that.
type place struct{ at, device, path string }

// placeOf returns the place of a path without links.
func placeOf(all []mount, path string) place {
	var best mount
	for _, m := range all {
		if inFolder(path, m.point) && len(m.point) >= len(best.point) {
			best = m
		}
	}
	rest, _ := filepath.Rel(best.point, path)
	return place{path, best.device, filepath.Join(best.root, rest)}
}

// placesIn returns the place of a path without links, and of what is mounted below it.
func placesIn(all []mount, path string) []place {
	places := []place{placeOf(all, path)}
	for _, m := range all {
		if m.point != path && inFolder(m.point, path) {
			places = append(places, place{m.point, m.device, m.root})
		}
	}
	return places
}

// shows reports whether p is another place of own, of a folder that contains own, or of something in own.
func (p place) shows(own place) bool {
	if p.device == "" || p.device != own.device {
		return false
	}
	a, b := p.at, own.at
	if rest, err := filepath.Rel(p.path, own.path); err == nil && filepath.IsLocal(rest) {
		a = filepath.Join(a, rest)
	} else if rest, err := filepath.Rel(own.path, p.path); err == nil && filepath.IsLocal(rest) {
		b = filepath.Join(b, rest)
	} else {
		return false
	}
	// Something else may be mounted over it, and some kernels number their file systems loosely.
	found, err := os.Stat(b)
	if err != nil {
		return true // it does not exist yet
	}
	shown, err := os.Stat(a)
	return err == nil && os.SameFile(found, shown)
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

// mounted returns why a folder must not be granted because of a mount in it: one of the host's own folders or, in a
// writable folder, a file from which a secret is read, or a program. It returns "" if there is no such mount.
func (o *Files) mounted(all []mount, folder string, writable bool) string {
	if o == nil || len(all) == 0 {
		return ""
	}
	shown := placesIn(all, withoutLinks(folder))
	for _, own := range o.Folders {
		for _, place := range placesIn(all, withoutLinks(own.Path)) {
			for _, s := range shown {
				if s.shows(place) {
					return fmt.Sprintf("shows the host's %s folder, %s, which is mounted at %s", own.Name, own.Path, s.at)
				}
			}
		}
	}
	if !writable {
		return ""
	}
	for _, path := range append(o.inputs(), o.Programs...) {
		file := placeOf(all, withoutLinks(path))
		if slices.ContainsFunc(shown, func(s place) bool { return s.shows(file) }) {
			return holdsInput
		}
	}
	return ""
}
