//go:build unix

package world

import (
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/parley-tools/parley/host/protect"
)

// withFD calls op with the descriptor of a file, which must not be closed.
func withFD(file *os.File, op func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = op(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// setAppend sets or clears the append flag of an open file.
func setAppend(file *os.File, on bool) error {
	return withFD(file, func(fd int) error {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			return err
		}
		flags &^= unix.O_APPEND
		if on {
			flags |= unix.O_APPEND
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
		return err
	})
}

// inodeOf returns the inode number of an entry of an open folder, or 0 if the entry is gone.
func inodeOf(dir *os.File, name string) uint64 {
	var st unix.Stat_t
	err := withFD(dir, func(fd int) error { return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return 0
	}
	return uint64(st.Ino)
}

// parentsOf returns the identities of an open folder and of all folders that contain it.
func parentsOf(dir *os.File) []protect.FileID {
	var ids []protect.FileID
	_ = withFD(dir, func(fd int) error {
		for up := "."; len(ids) < 1000; up += "/.." {
			var st unix.Stat_t
			if err := unix.Fstatat(fd, up, &st, 0); err != nil {
				return err
			}
			id := protect.FileID{Dev: uint64(st.Dev), Ino: uint64(st.Ino)}
			if n := len(ids); n > 0 && ids[n-1] == id {
				return nil
			}
			ids = append(ids, id)
		}
		return nil
	})
	return ids
}

// openDir opens a folder. With O_DIRECTORY, a pipe that has replaced it is an error instead of blocking.
func openDir(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
}

// RenameOver renames like rename(2): a folder can replace an empty folder, which [os.Root.Rename] refuses. It does
// not follow a link in the last element of either path.
func RenameOver(root *os.Root, from, to string) error {
	fromDir, err := openDir(root, path.Dir(from))
	if err != nil {
		return err
	}
	defer fromDir.Close()
	toDir, err := openDir(root, path.Dir(to))
	if err != nil {
		return err
	}
	defer toDir.Close()
	return withFD(fromDir, func(fromFD int) error {
		return withFD(toDir, func(toFD int) error {
			return unix.Renameat(fromFD, path.Base(from), toFD, path.Base(to))
		})
	})
}
