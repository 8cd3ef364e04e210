package wasm

import (
	"os"

	"golang.org/x/sys/windows"
)

// errLocked says that another process holds the lock.
var errLocked = error(windows.ERROR_LOCK_VIOLATION)

// tryLock takes the lock of an open file, without waiting. It ends when the file is closed or the process dies.
func tryLock(f *os.File) error {
	const exclusive = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(f.Fd()), exclusive, 0, 1, 0, new(windows.Overlapped))
}

// syncDir does nothing: Windows has no such call, and NTFS journals names by itself.
func syncDir(string) error { return nil }
