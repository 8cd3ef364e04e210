package keeper

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// startNamed starts a process that waits until it is killed and has these words on its command line. It belongs to a
// process group, or leads one of its own if group is 0.
func startNamed(t *testing.T, group int, words ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", "read line", "sh"}, words...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// isRunning reports whether a process that the test started has not ended.
func isRunning(cmd *exec.Cmd) bool { return !isZombie(cmd.Process.Pid) }

// TestKillOrphans checks that only processes of the profile are killed, and with a group only those in it: a
// person's own Chrome may use the profile that a keeper was given.
func TestKillOrphans(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile")
	flag := "--user-data-dir=" + profile
	type process struct {
		name    string
		inGroup bool
		words   []string
		names   bool // the profile is on its command line
	}
	others := []process{
		{"a helper", true, []string{"--type=renderer", flag}, true},
		{"a helper with one argument", true, []string{"--type=gpu " + flag + " --lang=en"}, true},
		{"the crash handler", true, []string{"--database=" + profile + "/Crash Reports"}, true},
		{"another browser of the profile", false, []string{flag}, true},
		{"its crash handler", false, []string{"--database=" + profile + "/Crash Reports"}, true},
		{"a longer name", true, []string{flag + "2"}, false},
		{"a folder in it", true, []string{flag + "/Default"}, false},
		{"no profile", true, []string{"--user-data-dir="}, false},
		{"another flag", true, []string{"--data-path=" + profile}, false},
	}
	for _, grouped := range []bool{true, false} {
		leader := startNamed(t, 0, flag)
		started := make([]*exec.Cmd, len(others))
		for i, p := range others {
			group := 0
			if p.inGroup {
				group = leader.Process.Pid
			}
			started[i] = startNamed(t, group, p.words...)
		}
		group := 0
		if grouped {
			group = leader.Process.Pid
		}
		killOrphans(profile, group)
		if isRunning(leader) {
			t.Errorf("grouped %v: the browser is still running", grouped)
		}
		for i, p := range others {
			survives := !p.names || grouped && !p.inGroup
			if running := isRunning(started[i]); running != survives {
				t.Errorf("grouped %v: %s: running is %v, expected %v", grouped, p.name, running, survives)
			}
			_ = started[i].Process.Kill()
			_ = started[i].Wait()
		}
	}
}
