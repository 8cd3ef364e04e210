package contain

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/landlock-lsm/go-landlock/landlock"
	lsm "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Missing returns the protections that this kernel cannot give to a process that has folders. It returns nil if there
// is none.
func Missing() []string {
	var missing []string
	if !hasLandlock() {
		missing = append(missing, "a private view of files: this kernel has no Landlock")
	}
	if !hasSeccomp() {
		missing = append(missing, "a filter of system calls: this kernel has no seccomp")
	}
	return missing
}

func hasLandlock() bool {
	version, err := lsm.LandlockGetABIVersion()
	return err == nil && version >= 1
}

func hasSeccomp() bool {
	_, err := arch.GetInfo("")
	return err == nil && seccomp.Supported()
}

// Process takes from this process whatever it does not need. What remains is a bounded amount of resources, the files
// of the folders, and the system calls that Go's runtime, memory and files need: no network, no other processes, no new
// privileges. Descriptors that another program left open are closed, and no other process can read the memory of this
// one. It returns the protections that the kernel refused.
func Process(r Rights, b Bounds) (missing []string) {
	closeForeign()
	_ = unix.Chdir("/")
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	setBounds(b)
	// A filter that has no call with a path hides all files by itself, also on a kernel without Landlock.
	if err := restrictFiles(r.Folders); err != nil && (len(r.Folders) > 0 || !hasSeccomp()) {
		missing = append(missing, fmt.Sprintf("a private view of files: %v", err))
	}
	if err := restrictSyscalls(r); err != nil {
		missing = append(missing, fmt.Sprintf("a filter of system calls: %v", err))
	}
	return missing
}

// closeForeign closes the descriptors that the program had when it was started, but the standard streams. Go's own are
// closed on exec; what is not was inherited.
func closeForeign() {
	folder, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

func restrictFiles(folders []Folder) error {
	version, err := lsm.LandlockGetABIVersion()
	if err != nil || version < 1 {
		return errors.New("this kernel has no Landlock")
	}
	var rules []landlock.Rule
	for _, f := range folders {
		rule := landlock.RODirs(f.Path)
		if f.Writable {
			rule = landlock.RWDirs(f.Path)
			if version >= 2 { // older versions cannot move files between folders
				rule = rule.WithRefer()
			}
		}
		rules = append(rules, rule.IgnoreIfMissing())
	}
	return landlock.V10.BestEffort().Restrict(rules...)
}

// baseSyscalls are what Go's runtime and open files, pipes and sockets use. None takes a path.
var baseSyscalls = []string{
	"read", "write", "readv", "writev", "pread64", "pwrite64", "lseek", "close", "fcntl", "fsync", "fdatasync",
	"ftruncate", "fallocate", "fadvise64", "flock", "fstat", "fstatfs", "getdents64", "fchmod", "umask",
	"mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "brk", "membarrier",
	"futex", "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "sched_yield",
	"sched_getaffinity", "getrandom", "rseq",
	"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd2", "pipe2", "poll", "ppoll",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall", "set_robust_list",
	"getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrusage", "exit", "exit_group",
}

// pathSyscalls are allowed where there are folders. Landlock ensures that only files of these can be opened.
var pathSyscalls = []string{
	"openat", "openat2", "newfstatat", "statx", "readlinkat", "unlinkat", "renameat", "renameat2", "mkdirat", "linkat",
	"utimensat", "fchmodat",
}

// acceptSyscalls are allowed where connections are accepted.
var acceptSyscalls = []string{"accept4", "getsockname", "getsockopt"}

// restrictSyscalls makes every system call fail with EPERM that is not allowed.
func restrictSyscalls(r Rights) error {
	machine, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	allowed := append([]string{}, baseSyscalls...)
	if len(r.Folders) > 0 {
		allowed = append(allowed, pathSyscalls...)
	}
	if r.Accept {
		allowed = append(allowed, acceptSyscalls...)
	}
	var names []string
	for _, name := range allowed {
		if _, known := machine.SyscallNames[name]; known {
			names = append(names, name)
		}
	}
	only := func(name string, argument uint32, op seccomp.Operation, value uint64) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{{Argument: argument,
			Operation: op, Value: value}}}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionErrno,
			Syscalls: []seccomp.SyscallGroup{
				{
					Action: seccomp.ActionAllow,
					Names:  names,
					NamesWithCondtions: []seccomp.NameWithConditions{
						only("clone", 0, seccomp.BitsSet, unix.CLONE_THREAD), // threads, but no processes
						only("tgkill", 0, seccomp.Equal, uint64(os.Getpid())),
						only("prctl", 0, seccomp.Equal, unix.PR_SET_VMA), // the Go runtime names its memory
					},
				},
				// The flags of clone3 lie in memory, which a filter cannot read. A libc that finds clone3 missing
				// uses clone.
				{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
			},
		},
	})
}
