//go:build amd64 || arm64

package contain

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// baseSyscalls are the system calls of Go's runtime, and those on open files, pipes and sockets. None takes a path.
var baseSyscalls = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64,
	unix.SYS_LSEEK, unix.SYS_CLOSE, unix.SYS_FCNTL, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
	unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FADVISE64, unix.SYS_FLOCK, unix.SYS_FSTAT, unix.SYS_FSTATFS,
	unix.SYS_GETDENTS64, unix.SYS_FCHMOD, unix.SYS_UMASK,
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_MINCORE,
	unix.SYS_BRK, unix.SYS_MEMBARRIER,
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES,
	unix.SYS_GETTIMEOFDAY, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETRANDOM, unix.SYS_RSEQ,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2,
	unix.SYS_PIPE2, unix.SYS_PPOLL,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_RESTART_SYSCALL, unix.SYS_SET_ROBUST_LIST,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETPPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID,
	unix.SYS_GETEGID, unix.SYS_GETRUSAGE, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// pathSyscalls are allowed if there are folders. Landlock ensures that only files in these folders can be opened.
var pathSyscalls = []uint32{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_READLINKAT, unix.SYS_UNLINKAT,
	unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_MKDIRAT, unix.SYS_LINKAT, unix.SYS_UTIMENSAT, unix.SYS_FCHMODAT,
}

// acceptSyscalls are allowed if connections are accepted.
var acceptSyscalls = []uint32{unix.SYS_ACCEPT4, unix.SYS_GETSOCKNAME, unix.SYS_GETSOCKOPT}

// hasSeccomp reports whether the kernel filters system calls. A kernel that does refuses the flag of strict mode.
// Since every call of a tool needs the answer, the kernel is asked only once.
var hasSeccomp = sync.OnceValue(func() bool {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_STRICT, 1, 0)
	return errno == unix.EINVAL
})

// restrictSyscalls makes every system call that is not allowed fail with EPERM, for all threads. It cannot be undone.
func restrictSyscalls(r Rights) error {
	code := syscallFilter(r, os.Getpid())
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	runtime.LockOSThread() // the kernel requires no_new_privs of the thread that loads the filter
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d has a filter of its own", thread)
	}
	return nil
}

// Offsets in struct seccomp_data. An argument has 64 bits, the low half first.
const (
	callNumber = 0
	callArch   = 4
	callFirst  = 16
)

// syscallFilter returns the program that the kernel runs for each system call of the process pid. Each test is
// followed by its own return instruction, so no jump is long. Calls by other ABIs are refused: 386 by its
// architecture, x32 because its numbers have a bit that no allowed number has.
func syscallFilter(r Rights, pid int) []unix.SockFilter {
	const refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	arch, lists := uint32(unix.AUDIT_ARCH_AARCH64), [][]uint32{baseSyscalls}
	if runtime.GOARCH == "amd64" {
		const poll, epollWait = 7, 232 // arm64 and its package unix do not have them
		arch, lists = unix.AUDIT_ARCH_X86_64, append(lists, []uint32{poll, epollWait})
	}
	if len(r.Folders) > 0 {
		lists = append(lists, pathSyscalls)
	}
	if r.Accept {
		lists = append(lists, acceptSyscalls)
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	// unless skips instructions if a test fails.
	unless := func(test uint16, value uint32, skipped uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, K: value, Jf: skipped}
	}
	ret := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	sameArch := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, K: arch, Jt: 1}
	code := []unix.SockFilter{load(callArch), sameArch, ret(refuse), load(callNumber)}
	for _, allowed := range lists {
		for _, number := range allowed {
			code = append(code, unless(unix.BPF_JEQ, number, 1), ret(unix.SECCOMP_RET_ALLOW))
		}
	}
	for _, c := range []struct {
		number uint32
		test   uint16 // test of the first argument
		value  uint32
	}{
		{unix.SYS_CLONE, unix.BPF_JSET, unix.CLONE_THREAD}, // allows threads, but no processes
		{unix.SYS_TGKILL, unix.BPF_JEQ, uint32(pid)},
		{unix.SYS_PRCTL, unix.BPF_JEQ, unix.PR_SET_VMA}, // with it the Go runtime names its memory
	} {
		code = append(code, unless(unix.BPF_JEQ, c.number, 6),
			load(callFirst+4), unless(unix.BPF_JEQ, 0, 3),
			load(callFirst), unless(c.test, c.value, 1),
			ret(unix.SECCOMP_RET_ALLOW), ret(refuse))
	}
	// The flags of clone3 are in memory, which a filter cannot read. A libc that finds no clone3 uses clone.
	code = append(code, unless(unix.BPF_JEQ, unix.SYS_CLONE3, 1), ret(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)))
	return append(code, ret(refuse))
}
