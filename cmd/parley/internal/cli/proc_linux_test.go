package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var signals = map[string]os.Signal{
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL,
}

// process is a process that belongs to a script's data folder.
type process struct {
	pid     int
	command string
}

// processesOf returns the processes that have a data folder in their environment or command line, without zombies.
func processesOf(home string) (found []process) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range folders {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if len(command) == 0 || pid == os.Getpid() {
			continue
		}
		environment, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if strings.Contains(string(environment), "PARLEY_HOME="+home+"\x00") || strings.Contains(string(command), home+"/") {
			found = append(found, process{pid, strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))})
		}
	}
	return found
}

// isEnding reports whether some process is ending: it has no memory any more, and therefore no command line, but still
// open files. Nobody can see whose it is.
func isEnding() bool {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range folders {
		if command, err := os.ReadFile(filepath.Join(dir, "cmdline")); err != nil || len(command) > 0 {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		_, after, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[0] != "Z" && fields[0] != "X" &&
			fields[1] != "0" && fields[1] != "2" { // those belong to the kernel
			return true
		}
	}
	return false
}

// scriptNoProcs waits until no process of the data folder is left.
func scriptNoProcs(ts *testscript.TestScript, neg bool, args []string) {
	home := ts.Getenv("PARLEY_HOME")
	if neg {
		if len(processesOf(home)) == 0 {
			ts.Fatalf("no process of %s is running", home)
		}
		return
	}
	left := processesOf(home)
	end := time.Now().Add(killPatience)
	for ; (len(left) > 0 || isEnding()) && time.Now().Before(end); left = processesOf(home) {
		time.Sleep(20 * time.Millisecond)
	}
	for _, p := range left {
		ts.Logf("remaining: %d %.200s", p.pid, p.command)
	}
	if len(left) > 0 {
		ts.Fatalf("%d processes remain", len(left))
	}
}

// scriptKillHome kills the keeper or Chrome of the data folder, as a crash would: killhome keeper|chrome.
func scriptKillHome(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: killhome keeper|chrome")
	}
	if killed, err := killHome(ts.Getenv("PARLEY_HOME"), args[0]); killed == 0 || err != nil {
		ts.Fatalf("%d processes of %s were killed: %v", killed, args[0], err)
	}
}

// killHome kills the keeper or Chrome of a data folder.
func killHome(home, who string) (killed int, err error) {
	for _, p := range processesOf(home) {
		isKeeper := strings.Contains(p.command, "parley keeper ")
		isChrome := strings.Contains(p.command, "--remote-debugging-pipe") && !strings.Contains(p.command, "--type=")
		if who == "keeper" && isKeeper || who == "chrome" && isChrome {
			err = errors.Join(err, syscall.Kill(p.pid, syscall.SIGKILL))
			killed++
		}
	}
	return killed, err
}
