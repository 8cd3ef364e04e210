package host

import (
	"os"
	"path/filepath"
	"slices"
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
