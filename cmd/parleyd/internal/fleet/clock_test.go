package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/testhome"
)

// off is how far clocks are apart from that of the test.
var off = map[string]time.Duration{"ahead": 2 * time.Hour, "behind": -2 * time.Hour}

// TestClockOfCertificates connects by clocks that are off, to a server whose certificates were made just now.
func TestClockOfCertificates(t *testing.T) {
	t.Parallel()
	_, w := newSecuredWorld(t, "")
	for _, by := range []time.Duration{off["ahead"], off["behind"], -25 * time.Hour} {
		c := w.config("operator")
		c.clock = func() time.Time { return time.Now().Add(by) }
		o, err := c.Operator()
		if err == nil {
			o.Close()
		}
		if isNear := by > -24*time.Hour; isNear != (err == nil) ||
			err != nil && !strings.Contains(err.Error(), "not yet valid") {
			t.Errorf("by a clock %s off: %v", by, err)
		}
	}
}

// TestClocks has workers, programs of their own, whose clocks are off in all that they do: calls run there within their
// time, end at their deadlines, and stand in the line.
func TestClocks(t *testing.T) {
	hammer(t)
	program := buildWithClock(t)
	_, w := newSecuredWorld(t, "", "ahead", "behind")
	for name, by := range off {
		c, home := w.config(name), testhome.New(t)
		file := filepath.Join(t.TempDir(), "parleyd.toml")
		text := fmt.Sprintf("[fleet]\nurl = %q\nname = %q\nkey = %q\nca = %q\n[worker]\nslots = 1\ntrust = [%q]\n",
			c.URL, name, c.Key, c.CA, w.digest)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "worker", "--config", file)
		cmd.Env = append(os.Environ(), "PARLEY_HOME="+home, fmt.Sprintf("PARLEY_TEST_CLOCK=%d", by/time.Second))
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		w.await(name, func() bool { return w.knows(name) })
	}
	run := func(params string, timeout time.Duration) (both []outcome) {
		t.Helper()
		first, second := w.later("work.rest", params, timeout), w.later("work.rest", params, timeout)
		w.await("calls on both", func() bool { return w.runsAt("ahead") && w.runsAt("behind") })
		o := w.call(t.Context(), "work.nothing", `{}`, 300*time.Millisecond)
		if o.err == nil || o.err.Code != host.Busy || o.err.Place == 0 || o.took > 10*time.Second {
			t.Errorf("in the line: %v after %s", o.err, o.took)
		}
		return []outcome{<-first, <-second}
	}
	for _, o := range run(`{"ms":2000}`, 20*time.Second) {
		if o.err != nil || len(o.answer.Warnings) > 0 {
			t.Errorf("%v", o.err)
		}
	}
	for _, o := range run(`{"ms":60000}`, 2*time.Second) {
		if o.err == nil || o.err.Code != host.Timeout || o.took < 2*time.Second || o.took > 20*time.Second {
			t.Errorf("past its deadline: %v after %s", o.err, o.took)
		}
	}
}

// buildWithClock builds parleyd with a clock that a variable sets, and returns its path.
func buildWithClock(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if !strings.Contains(string(text), now) {
		t.Skip("another version of Go reads the clock in another way")
	}
	changed := strings.Replace(string(text), now, now+"\tsec += clockOff\n", 1) + `
var clockOff = func() (off int64) {
	text, _ := syscall.Getenv("PARLEY_TEST_CLOCK")
	digits := text
	if len(text) > 0 && text[0] == '-' {
		digits = text[1:]
	}
	for _, d := range digits {
		off = 10*off + int64(d-'0')
	}
	if digits != text {
		off = -off
	}
	return off
}()
`
	changed = strings.Replace(changed, "import (\n", "import (\n\t\"syscall\"\n", 1)
	dir := t.TempDir()
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{source: filepath.Join(dir, "time.go")}})
	for name, data := range map[string][]byte{"time.go": []byte(changed), "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-ldflags="+testhome.LinkerFlags, "-overlay", filepath.Join(dir, "overlay.json"),
		"-o", filepath.Join(dir, "parleyd"), "../..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "parleyd")
}
