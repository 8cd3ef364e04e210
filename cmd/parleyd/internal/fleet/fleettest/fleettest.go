// Package fleettest runs NATS for tests: a server as a process of its own, and a proxy that stands for the network.
package fleettest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Options say how a server runs. Without any it keeps JetStream in a folder of the test and lets everybody do all.
type Options struct {
	// ConfigFile is a configuration of nats-server, which runs in its folder. The addresses in it do not count. Its
	// store_dir, if it has one, is $STATE_DIRECTORY.
	ConfigFile string
	// Config is the text of one without store_dir, in place of a file.
	Config string
}

// Server is a process of nats-server. Its addresses stay when it starts again.
type Server struct {
	// Address is HOST:PORT for clients, and URL the same as nats://HOST:PORT, which a client also takes for TLS.
	Address, URL string
	// Monitor is the URL of what the server tells of itself over HTTP.
	Monitor string
	// StoreDir is the folder of JetStream.
	StoreDir string

	t     testing.TB
	path  string
	args  []string
	dir   string
	log   *os.File
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
}

// Program returns the path of nats-server. The test is skipped if it cannot be built; with CI=true it fails instead.
func Program(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip(err)
	}
	return path
}

// Start starts a server and waits until it serves. The server ends with the test, and a failed test shows its log.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	dir, path := t.TempDir(), Program(t)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: freeAddress(t), StoreDir: filepath.Join(dir, "jetstream"), t: t, path: path, log: log}
	monitor := freeAddress(t)
	s.URL, s.Monitor = "nats://"+s.Address, "http://"+monitor
	_, port, _ := net.SplitHostPort(s.Address)
	_, monitorPort, _ := net.SplitHostPort(monitor)
	s.args = []string{"-a", "127.0.0.1", "-p", port, "-m", monitorPort, "-js"}
	if o.Config != "" {
		o.ConfigFile = filepath.Join(dir, "nats-server.conf")
		if err := os.WriteFile(o.ConfigFile, []byte(o.Config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, err := os.ReadFile(o.ConfigFile)
	if o.ConfigFile != "" && err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(config, []byte("store_dir")) { // which cannot be given twice
		s.args = append(s.args, "-sd", s.StoreDir)
	}
	if o.ConfigFile != "" {
		s.args, s.dir = append(s.args, "-c", filepath.Base(o.ConfigFile)), filepath.Dir(o.ConfigFile)
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the log of nats-server:\n%s", s.Log())
		}
		log.Close()
	})
	s.Restart()
	return s
}

// Restart ends the server, if it runs, as an operator would, starts it and waits until it serves.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.cmd = exec.Command(s.path, s.args...)
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Dir = s.log, s.log, s.dir
	s.cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+s.StoreDir)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(s.cmd, s.ended)
	s.await("serve", func() bool { return serves(s.Address) })
}

// serves reports whether a server greets at an address.
func serves(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	line, _ := bufio.NewReader(conn).ReadString(' ')
	return line == "INFO "
}

// Stop has the server end in order, and waits for that.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends the server at once. What JetStream did not write is lost.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

func (s *Server) end(signal syscall.Signal) {
	if !s.runs() {
		return
	}
	_ = s.cmd.Process.Signal(signal)
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	late := time.AfterFunc(20*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	<-s.ended
}

func (s *Server) runs() bool {
	select {
	case <-s.ended:
		return false
	default:
		return s.cmd != nil
	}
}

// Pause stops the process without ending it, as a machine that hangs. Connections stay, and nothing moves.
func (s *Server) Pause() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	s.await("stop", func() bool { // the signal returns before all threads have stopped
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Pid()))
		_, state, _ := bytes.Cut(stat, []byte(") "))
		return bytes.HasPrefix(state, []byte("T"))
	})
}

// Continue undoes [Server.Pause].
func (s *Server) Continue() { s.signal(syscall.SIGCONT) }

// Reload has the server read its configuration again, and waits until it has.
func (s *Server) Reload() {
	s.t.Helper()
	reloads := func() int { return strings.Count(s.Log(), "Reloaded server configuration") }
	before := reloads()
	s.signal(syscall.SIGHUP)
	s.await("read its configuration again", func() bool { return reloads() > before })
}

// await waits until something holds that the server has to do.
func (s *Server) await(what string, holds func() bool) {
	s.t.Helper()
	Await(s.t, fmt.Sprintf("nats-server %s has to %s", strings.Join(s.args, " "), what), func() bool {
		if !s.runs() {
			s.t.Fatal("nats-server has ended")
		}
		return holds()
	})
}

// Await waits until something holds, and returns how long that took. The test fails if it takes half a minute.
func Await(t testing.TB, what string, holds func() bool) time.Duration {
	t.Helper()
	const most = 30 * time.Second
	began := time.Now()
	for ; !holds(); time.Sleep(time.Millisecond) {
		if time.Since(began) > most {
			t.Fatalf("%s: not within %s", what, most)
		}
	}
	return time.Since(began)
}

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// Pid is the id of the process.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Log returns what the server logged since [Start].
func (s *Server) Log() string {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// freeAddress returns an address on loopback at which nobody listens. No connection gets its port meanwhile, or while
// the server is away: the system takes those from 32768 on.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// build builds the server that testdata/server pins, once for each version on this machine, and returns its path.
var build = sync.OnceValues(func() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	source := filepath.Join(filepath.Dir(file), "testdata", "server")
	sums, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "parley-tests")
	path := filepath.Join(dir, fmt.Sprintf("nats-server-%x", sha256.Sum256(append(sums, runtime.Version()...)))[:28])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(path + ".lock") // packages are tested at the same time
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.Command("go", "-C", source, "build", "-o", path+".new", "github.com/nats-io/nats-server/v2")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("nats-server cannot be built: %w\n%s", err, bytes.TrimSpace(out))
	}
	return path, os.Rename(path+".new", path)
})

// Children returns the processes that a process has started.
func Children(pid int) (children []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(word) // the kernel writes nothing else
			children = append(children, child)
		}
	}
	return children
}
