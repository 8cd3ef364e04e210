//go:build amd64 || arm64

package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/wire"
)

// probeJob turns the test binary into a process that locks itself down like the child of an isolated call. It then
// tries what a compromised guest could try, and prints what succeeded.
const probeJob = "probe"

func probeMain() int {
	ro, rw, outside, port := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	parent := os.Getppid()
	grants := []grant.FS{{Source: ro, Mode: "ro"}, {Source: rw, Mode: "rw"}}
	if os.Getenv("PARLEY_TEST_NO_FOLDERS") != "" {
		grants = nil
	}
	missing := lockDown(world.Limits{Pages: 16, OpenFiles: 16}, grants, 1<<20, 1, 10*time.Second)
	tries := map[string]func() error{
		"read granted":    func() error { _, err := os.ReadFile(filepath.Join(ro, "a")); return err },
		"write granted":   func() error { return os.WriteFile(filepath.Join(rw, "new"), []byte("x"), 0o600) },
		"move granted":    func() error { return os.Rename(filepath.Join(rw, "old"), filepath.Join(rw, "sub", "old")) },
		"threads":         func() error { done := make(chan bool); go func() { close(done) }(); <-done; return nil },
		"memory":          func() error { b := make([]byte, 8<<20); b[len(b)-1] = 1; return nil },
		"read outside":    func() error { _, err := os.ReadFile(filepath.Join(outside, "a")); return err },
		"list outside":    func() error { _, err := os.ReadDir(outside); return err },
		"write outside":   func() error { return os.WriteFile(filepath.Join(outside, "b"), nil, 0o600) },
		"remove outside":  func() error { return os.Remove(filepath.Join(outside, "a")) },
		"write read-only": func() error { return os.WriteFile(filepath.Join(ro, "b"), nil, 0o600) },
		"read a password": func() error { _, err := os.ReadFile("/etc/passwd"); return err },
		"dial":            func() error { return closeConn(net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)) },
		"send a datagram": func() error { return closeConn(net.Dial("udp", "127.0.0.1:9")) },
		"a unix socket":   func() error { return closeConn(net.Dial("unix", filepath.Join(rw, "socket"))) },
		"run a program":   func() error { return exec.Command("/bin/true").Run() },
		"signal":          func() error { return unix.Kill(parent, 0) },
		"trace":           func() error { return unix.PtraceAttach(parent) },
		"a namespace":     func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"privileges":      func() error { return unix.Setuid(0) },
		"limits":          func() error { return unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1 << 30, Max: 1 << 30}) },
		"a mount":         func() error { return unix.Mount("none", rw, "tmpfs", 0, "") },
		"a chroot":        func() error { return unix.Chroot(rw) },
		"a device":        func() error { return unix.Mknod(filepath.Join(rw, "dev"), unix.S_IFCHR|0o600, 259) },
		"a file that was left open": func() error {
			_, err := unix.Pread(inheritedFile, make([]byte, 1), 0)
			return err
		},
		"much memory": func() error {
			b, err := unix.Mmap(-1, 0, 2<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
			if err == nil {
				_ = unix.Munmap(b)
			}
			return err
		},
	}
	var files []*os.File
	result := map[string]string{"missing": strings.Join(missing, "; ")}
	for name, try := range tries {
		if err := try(); err != nil {
			result[name] = err.Error()
		} else {
			result[name] = "went through"
		}
	}
	// Last, because no file can be opened afterwards.
	for result["many files"] = "went through"; len(files) < 200; {
		f, err := os.Open(filepath.Join(ro, "a"))
		if err != nil {
			result["many files"] = err.Error()
			break
		}
		files = append(files, f)
	}
	_ = json.NewEncoder(os.Stdout).Encode(result)
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test has looked at this process
	return 0
}

// inheritedFile is a descriptor that the test leaves open for the process.
const inheritedFile = 3

func closeConn(c net.Conn, err error) error {
	if err == nil {
		_ = c.Close()
	}
	return err
}

// TestLockdown checks that a compromised process can use only what its calls were granted.
func TestLockdown(t *testing.T) {
	if missing := MissingIsolation(true); len(missing) > 0 {
		t.Skip(missing)
	}
	dir := t.TempDir()
	for _, name := range []string{"ro/a", "rw/old", "rw/sub/x", "outside/a"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("secret"), 0o600))
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer server.Close()
	local, err := net.Listen("unix", filepath.Join(dir, "rw", "socket"))
	must(t, err)
	defer local.Close()
	for _, folders := range []bool{true, false} {
		cmd := compiler()
		cmd.Args = append(cmd.Args, filepath.Join(dir, "ro"), filepath.Join(dir, "rw"), filepath.Join(dir, "outside"),
			strconv.Itoa(server.Addr().(*net.TCPAddr).Port))
		cmd.Env = append(os.Environ(), "PARLEY_CHILD="+probeJob)
		allowed := map[string]bool{"threads": true, "memory": true}
		if folders {
			for _, right := range []string{"read granted", "write granted", "move granted"} {
				allowed[right] = true
			}
		} else {
			cmd.Env = append(cmd.Env, "PARLEY_TEST_NO_FOLDERS=1")
		}
		for name, got := range probed(t, cmd) {
			if name == "missing" {
				if got != "" {
					t.Errorf("the kernel does not support: %s", got)
				}
				continue
			}
			if (got == "went through") != allowed[name] {
				t.Errorf("with folders: %v: %s: %s", folders, name, got)
			}
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "outside")); len(entries) != 1 {
		t.Errorf("outside: %v", entries)
	}
}

// probed runs a process that tries what a compromised guest could try, and returns its report.
func probed(t *testing.T, cmd *exec.Cmd) (result map[string]string) {
	t.Helper()
	inherited, err := os.Open("/proc/self/exe")
	must(t, err)
	defer inherited.Close()
	cmd.ExtraFiles = []*os.File{inherited}
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	stderr := &prefixWriter{limit: 4 << 10}
	cmd.Stderr = stderr
	must(t, cmd.Start())
	if err := json.NewDecoder(stdout).Decode(&result); err != nil {
		t.Errorf("%v: %s", err, stderr.String())
	}
	// Only root may look at a process whose memory is protected.
	folder, err := os.Readlink("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cwd")
	if isRoot := os.Getuid() == 0; isRoot && folder != "/" || !isRoot && !errors.Is(err, fs.ErrPermission) {
		t.Errorf("its working folder is %q, %v", folder, err)
	}
	must(t, stdin.Close())
	must(t, cmd.Wait())
	return result
}

// TestIsolatedProcessDies checks that killing the child ends its call and nothing else.
func TestIsolatedProcessDies(t *testing.T) {
	e := testEngine(t)
	p := testGuest(t, e, "echo", "echo")
	must(t, p.Prepare(context.Background()))
	r := requestFor(t, p, "call-tool", `{"tool":"cdp.open"}`)
	serving(r).CallTool = func(context.Context, string, json.RawMessage, job.Options) (*job.Result, error) {
		for _, pid := range children(t) {
			process, _ := os.FindProcess(pid)
			_ = process.Kill()
		}
		return &job.Result{Data: json.RawMessage(`{}`)}, nil
	}
	if _, err := invokeIsolated(t, p, r); err == nil || err.Code != host.Trapped {
		t.Errorf("%v, want trapped", err)
	}
	if result, err := invokeIsolated(t, p, requestFor(t, p, "echo", `{"value":1}`)); err != nil ||
		string(result.Data) != `{"value":1}` {
		t.Errorf("the next call: %v, %v", result, err)
	}
}

// TestOrphans checks that the child ends after its parent.
func TestOrphans(t *testing.T) {
	e := testEngine(t)
	p := testGuest(t, e, "echo", "echo")
	_, err := p.load(t.Context(), waiter{})
	must(t, err)
	r := requestFor(t, p, "spin", "{}")
	r.Options.Timeout = time.Hour
	m, err := p.Manifest()
	must(t, err)
	socket, child, err := e.startRunner()
	must(t, err)
	conn := wire.NewConn(nil, socket)
	spec, err := p.runnerSpec(guest.NewJob(e.cfg.HostVersion, e.cfg.Limits, m, nil, r))
	must(t, err)
	must(t, conn.QueueHello(wire.Hello{}))
	must(t, conn.Queue(wire.KindStart, guest.Marshal(spec.start)))
	must(t, conn.SendJSON(wire.KindCall, wire.Call{Terms: spec.Terms, Tool: "spin", Left: time.Hour}))
	must(t, socket.Close()) // as if the parent had died
	select {
	case <-child.exited:
		if code := child.cmd.ProcessState.ExitCode(); code != runnerOrphan {
			t.Errorf("the child ended with %d", code)
		}
	case <-time.After(20 * time.Second):
		_ = child.cmd.Process.Kill()
		t.Error("the child is running without its parent")
	}
}

// children returns the running child processes of this process.
func children(t testing.TB) []int {
	t.Helper()
	var pids []int
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		data, err := os.ReadFile(task)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, word := range strings.Fields(string(data)) {
			pid, _ := strconv.Atoi(word)
			pids = append(pids, pid)
		}
	}
	return pids
}
