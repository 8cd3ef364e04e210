package wasm

import (
	"fmt"
	"math"
	"os"
	"runtime"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/landlock-lsm/go-landlock/landlock"
	lsm "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/parley-tools/parley/host"
)

// MissingIsolation returns the protections that this kernel cannot give to the process of an isolated call. It
// returns nil if there is none.
func MissingIsolation() []string {
	var missing []string
	if version, err := lsm.LandlockGetABIVersion(); err != nil || version < 1 {
		missing = append(missing, "a private view of files: this kernel has no Landlock")
	}
	if _, err := arch.GetInfo(""); err != nil || !seccomp.Supported() {
		missing = append(missing, "a filter of system calls: this kernel has no seccomp")
	}
	return missing
}

// lockDown takes from this process whatever its guest's call does not need. What remains is a bounded amount of
// resources, the granted folders, and the system calls that Go's runtime, memory and files need: no network, no
// other processes, no new privileges. It returns the protections that the kernel refused.
func lockDown(l limits, grants []host.FSGrant, code int64) (missing []string) {
	cpu, memory, open := processLimits(l, code)
	for resource, limit := range map[int]uint64{
		unix.RLIMIT_CPU: uint64(math.Ceil(cpu.Seconds())), unix.RLIMIT_DATA: memory, unix.RLIMIT_NOFILE: open,
		unix.RLIMIT_CORE: 0,
	} {
		// A lower limit that is already set stays in force.
		_ = unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit})
	}
	if err := restrictFiles(grants); err != nil {
		missing = append(missing, fmt.Sprintf("a private view of files: %v", err))
	}
	if err := restrictSyscalls(); err != nil {
		missing = append(missing, fmt.Sprintf("a filter of system calls: %v", err))
	}
	return missing
}

func restrictFiles(grants []host.FSGrant) error {
	version, err := lsm.LandlockGetABIVersion()
	if err != nil || version < 1 {
		return fmt.Errorf("this kernel has no Landlock")
	}
	var rules []landlock.Rule
	for _, g := range grants {
		rule := landlock.RODirs(g.Source)
		if g.Mode == "rw" {
			rule = landlock.RWDirs(g.Source)
			if version >= 2 { // older versions cannot move files between folders
				rule = rule.WithRefer()
			}
		}
		rules = append(rules, rule.IgnoreIfMissing())
	}
	return landlock.V10.BestEffort().Restrict(rules...)
}

// allowedSyscalls are what Go's runtime, files and pipes use. Landlock ensures that only files of granted folders
// can be opened.
var allowedSyscalls = []string{
	"read", "write", "readv", "writev", "pread64", "pwrite64", "lseek", "close", "fcntl", "fsync", "fdatasync",
	"ftruncate", "fallocate", "fadvise64",
	"openat", "openat2", "fstat", "fstatfs", "newfstatat", "statx", "getdents64", "readlinkat", "unlinkat",
	"renameat", "renameat2",
	"mkdirat", "linkat", "utimensat",
	"fchmod", "fchmodat", "umask",
	"mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "brk", "membarrier",
	"futex", "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "sched_yield",
	"sched_getaffinity", "getrandom", "rseq",
	"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd2", "pipe2", "poll", "ppoll",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall", "set_robust_list",
	"getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrusage", "exit", "exit_group",
}

// restrictSyscalls makes every system call fail with EPERM that is not allowed.
func restrictSyscalls() error {
	machine, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	var names []string
	for _, name := range allowedSyscalls {
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
