package cli

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lacking runs a program as on a kernel that lacks seccomp or Landlock: lacking seccomp|landlock PROGRAM [ARGUMENTS].
func lacking() {
	call, known := map[string]uint32{
		"seccomp": unix.SYS_SECCOMP, "landlock": unix.SYS_LANDLOCK_CREATE_RULESET,
	}[os.Args[1]]
	path, err := exec.LookPath(os.Args[2])
	if err == nil && known {
		err = replaceWithout(call, path, os.Args[2:])
	}
	fmt.Fprintln(os.Stderr, "lacking:", os.Args[1:], err)
	os.Exit(125)
}

// replaceWithout replaces this process by a program for which the kernel does not have a system call.
func replaceWithout(call uint32, path string, args []string) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // its number
		{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // the filter is that of the thread, and stays when the thread becomes the program
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	if err != nil {
		return err
	}
	return unix.Exec(path, args, os.Environ())
}
