//go:build linux

package keeper

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/internal/wire"
)

// runOldKeeper runs a keeper of another version: its hello has wire version 99. With OLD_KEEPER=obeys it exits on
// request, with =hung it does not respond at all, with =silent it has version 6 and closes a connection whose hello it
// does not understand.
func runOldKeeper() int {
	syscall.Umask(0o077)
	f := files{os.Args[1], "default"}
	if protect.Dir(f.dir) != nil {
		return 1
	}
	lock, err := f.tryLock()
	if err != nil {
		return 1
	}
	fmt.Fprintln(lock, os.Getpid())
	if os.Getenv("OLD_KEEPER") == "silent" {
		if err := os.WriteFile(f.info(), scan.Marshal(info{PID: os.Getpid(), Wire: 6, Version: "0.0.9"}), 0o600); err != nil {
			return 1
		}
	}
	socket := f.socket()
	os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		return 1
	}
	fmt.Println("ready")
	for {
		conn, err := l.Accept()
		if err != nil || os.Getenv("OLD_KEEPER") == "hung" {
			continue
		}
		c := wire.NewConn(conn, conn)
		h, _ := readHello(c)
		if os.Getenv("OLD_KEEPER") != "silent" {
			c.SendJSON(wire.KindHello, hello{Wire: 99, Version: "99.0.0"})
		}
		conn.Close()
		if h.Replace && os.Getenv("OLD_KEEPER") == "obeys" {
			l.Close()
			f.unlock(lock)
			return 0
		}
	}
}

// startOldKeeper starts runOldKeeper and returns its pid. Its environment is that of a real keeper, because that
// identifies a keeper that does not respond.
func startOldKeeper(t *testing.T, dir, behavior string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), ChildVar+"=oldkeeper", "OLD_KEEPER="+behavior)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		bufio.NewReader(out).ReadString('\n')
		cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-exited
	})
	f := files{dir, "default"}
	waitFor(t, "the old keeper", func() bool { return f.lockPID() == cmd.Process.Pid && socketAnswers(f) })
	return cmd.Process.Pid
}

func socketAnswers(f files) bool {
	socket := f.socket()
	conn, err := net.Dial("unix", socket)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// waitFor waits for a condition that another process or goroutine brings about.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("timed out waiting for " + what)
		}
	}
}

func TestOtherKeeperVersionIsReplaced(t *testing.T) {
	for _, manners := range []string{"obeys", "refuses", "hung", "silent"} {
		t.Run(manners, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			pid := startOldKeeper(t, cfg.RunDir, manners)
			if manners != "hung" {
				_, err := Dial(testContext(t), cfg.RunDir, "", "test")
				version := map[string]string{"silent": "6"}[manners]
				wantCode(t, err, api.CodeChromeConnection, "uses wire version "+cmp.Or(version, "99"), strconv.Itoa(pid))
			}
			c := startBrowser(t, cfg)
			if len(c.Notes()) != 1 || !c.Started() {
				t.Errorf("notes %q", c.Notes())
			}
			wantValue(t, c, "", "1+1", "2")
			waitFor(t, "the old keeper to exit", func() bool { return !processExists(pid) })
		})
	}
}

func TestStopEndsHungKeeper(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	c := startBrowser(t, cfg)
	stopProcess(t, c.hello.PID)
	if ok, err := Stop(testContext(t), cfg.RunDir, "", "test"); !ok || err != nil {
		t.Errorf("Stop: %v, %v", ok, err)
	}
	requireNothingLeft(t, cfg)
}
