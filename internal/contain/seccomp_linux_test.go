//go:build amd64 || arm64

package contain

import (
	"math"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// runFilter returns what a filter decides on a system call. It fails on an instruction that the filter does not use,
// and on a program that the kernel would refuse.
func runFilter(t *testing.T, code []unix.SockFilter, arch, number uint32, first uint64) uint32 {
	t.Helper()
	data := map[uint32]uint32{0: number, 4: arch, 16: uint32(first), 20: uint32(first >> 32)}
	var a uint32
	for pc := 0; pc < len(code); pc++ {
		i := code[pc]
		holds := false
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			value, ok := data[i.K]
			if !ok {
				t.Fatalf("instruction %d reads at %d", pc, i.K)
			}
			a = value
			continue
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			holds = a == i.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			holds = a&i.K != 0
		default:
			t.Fatalf("instruction %d: %+v", pc, i)
		}
		if holds {
			pc += int(i.Jt)
		} else {
			pc += int(i.Jf)
		}
	}
	t.Fatal("the program does not return")
	return 0
}

func TestSyscallFilter(t *testing.T) {
	const pid, allow, deny = 4711, uint32(unix.SECCOMP_RET_ALLOW), unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	code := syscallFilter(Rights{}, pid)
	arch := code[1].K
	for _, c := range []struct {
		name   string
		arch   uint32
		number uint32
		first  uint64
		want   uint32
	}{
		{"read", arch, unix.SYS_READ, 0, allow},
		{"the last allowed one", arch, unix.SYS_EXIT_GROUP, 0, allow},
		{"openat", arch, unix.SYS_OPENAT, 0, deny},
		{"accept4", arch, unix.SYS_ACCEPT4, 0, deny},
		{"socket", arch, unix.SYS_SOCKET, 0, deny},
		{"execve", arch, unix.SYS_EXECVE, 0, deny},
		{"of another architecture", unix.AUDIT_ARCH_I386, unix.SYS_READ, 0, deny},
		{"of x32", arch, unix.SYS_READ | 0x40000000, 0, deny},
		{"unknown", arch, 100_000, 0, deny},
		{"a thread", arch, unix.SYS_CLONE, unix.CLONE_THREAD | unix.CLONE_VM, allow},
		{"a process", arch, unix.SYS_CLONE, unix.CLONE_VM, deny},
		{"a process, with other bits", arch, unix.SYS_CLONE, 1<<32 | unix.CLONE_THREAD, deny},
		{"clone3", arch, unix.SYS_CLONE3, 0, unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{"a signal to itself", arch, unix.SYS_TGKILL, pid, allow},
		{"a signal to another", arch, unix.SYS_TGKILL, pid + 1, deny},
		{"a signal to another, with other bits", arch, unix.SYS_TGKILL, 1<<32 | pid, deny},
		{"a name for memory", arch, unix.SYS_PRCTL, unix.PR_SET_VMA, allow},
		{"another prctl", arch, unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, deny},
	} {
		if got := runFilter(t, code, c.arch, c.number, c.first); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
	allowed := 0
	for number := range uint32(600) {
		conditional := slices.Contains([]uint32{unix.SYS_CLONE, unix.SYS_TGKILL, unix.SYS_PRCTL}, number)
		if runFilter(t, code, arch, number, math.MaxUint64) == allow {
			allowed++
			if conditional {
				t.Errorf("%d is allowed with any argument", number)
			}
		}
	}
	if extra := allowed - len(baseSyscalls); extra < 0 || extra > 2 {
		t.Errorf("%d calls are allowed, and the list has %d", allowed, len(baseSyscalls))
	}
	for number, rights := range map[uint32]Rights{
		unix.SYS_OPENAT: {Folders: []Folder{{Path: "/"}}}, unix.SYS_FCHMODAT: {Folders: []Folder{{Path: "/"}}},
		unix.SYS_ACCEPT4: {Accept: true}, unix.SYS_GETSOCKOPT: {Accept: true},
	} {
		if got := runFilter(t, syscallFilter(rights, pid), arch, number, 0); got != allow {
			t.Errorf("%d, with %+v: %#x", number, rights, got)
		}
	}
}
