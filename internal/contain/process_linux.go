//go:build amd64 || arm64

package contain

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/landlock-lsm/go-landlock/landlock"
	lsm "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Missing returns what this kernel lacks to confine a process, with or without folders. It returns nil if it lacks
// nothing. A process without folders needs no Landlock: its filter has no system call that takes a path.
func Missing(folders bool) []string {
	var missing []string
	if folders && !hasLandlock() {
		missing = append(missing, "this kernel has no Landlock, which keeps a process to its folders")
	}
	if !hasSeccomp() {
		missing = append(missing, "this kernel has no seccomp, which filters system calls")
	}
	return missing
}

func hasLandlock() bool {
	version, err := lsm.LandlockGetABIVersion()
	return err == nil && version >= 1
}

// Process takes from this process everything that it does not need. What remains is a bounded amount of resources,
// the files of the folders, and the system calls that Go's runtime, memory and files need: no network, no other
// processes, no new privileges. Descriptors that another program left open are closed, and no other process can read
// the memory of this one. It returns the protections that the kernel refused.
func Process(r Rights, b Bounds) (missing []string) {
	closeForeign()
	_ = unix.Chdir("/")
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	setBounds(b)
	if err := restrictFiles(r.Folders); err != nil && len(r.Folders) > 0 {
		missing = append(missing, fmt.Sprintf("Landlock: %v", err))
	}
	if err := restrictSyscalls(r); err != nil {
		missing = append(missing, fmt.Sprintf("seccomp: %v", err))
	}
	return missing
}

// closeForeign closes the descriptors that the program inherited, except the standard streams. Go's own descriptors
// are closed on exec; any other was inherited.
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
