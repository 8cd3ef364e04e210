package audit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Environment of a child process, which a test starts from its own binary: the folder to write to, and how many records
// to write; 0 means endlessly.
const (
	childDir     = "PARLEY_TEST_AUDIT_DIR"
	childRecords = "PARLEY_TEST_AUDIT_RECORDS"
	childLimit   = "PARLEY_TEST_AUDIT_LIMIT" // largest size of a file, in bytes
)

const childWriters = 50

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if limit := os.Getenv(childLimit); limit != "" {
			os.Exit(writeUnderLimit(dir, limit))
		}
		os.Exit(writeMany(dir, os.Getenv(childRecords)))
	}
	os.Exit(m.Run())
}

// writeMany runs in a child: fifty goroutines write to one log.
func writeMany(dir, records string) (code int) {
	n, err := strconv.Atoi(records)
	if err != nil {
		return 2
	}
	l := Open(dir, Config{MaxBytes: 64 << 10, Keep: 1000, Warn: func(err error) {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}})
	l.journal.Timeout = time.Minute // the machine may be busy with something else
	var writers sync.WaitGroup
	for w := range childWriters {
		writers.Go(func() {
			for i := 0; n == 0 || i < n/childWriters; i++ {
				e := called(fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i))
				e.Time = time.Now()
				if i%5 == 0 { // some span several pages, so that a kill may leave a part
					for r := range 200 {
						e.Uses = append(e.Uses, fmt.Sprintf("fs:read:/srv/data/a-folder-with-a-name/%d/%d", i, r))
					}
				}
				l.Record(e)
			}
		})
	}
	writers.Wait()
	return code
}

func child(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), append(env, childDir+"="+dir)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// Two processes of fifty writers each write one chain that holds each record once.
func TestHammerProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	const each = 1000
	var children []*exec.Cmd
	for range 2 {
		cmd := child(t, dir, fmt.Sprintf("%s=%d", childRecords, each))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, cmd)
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	l := Open(dir, Config{})
	seen, rotations := map[string]int{}, 0
	for _, r := range all(t, l) {
		if r.Op == opRotate {
			rotations++
			continue
		}
		seen[r.Call]++
	}
	for call, n := range seen {
		if n != 1 {
			t.Errorf("%s is recorded %d times", call, n)
		}
	}
	if len(seen) != 2*each || rotations == 0 {
		t.Errorf("%d records, want %d; %d rotations", len(seen), 2*each, rotations)
	}
	intact(t, l, 2*each+rotations)
}

// A log remains intact and loses no record, however often a host is killed while it writes.
func TestHammerKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l := Open(dir, Config{Keep: 1000})
	rounds := 15
	if n, err := strconv.Atoi(os.Getenv("PARLEY_HAMMER")); err == nil {
		rounds = 5 * n
	}
	var before Head
	torn := 0
	for round := range rounds {
		victims := []*exec.Cmd{child(t, dir, childRecords+"=0"), child(t, dir, childRecords+"=0")}
		for _, cmd := range victims {
			cmd.Stderr = nil
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
		}
		from := bytesIn(t, dir)
		for deadline := time.Now().Add(30 * time.Second); bytesIn(t, dir) <= from+int64(1000*(round%7)); {
			if time.Now().After(deadline) {
				t.Fatalf("no record was written after %d", before.Seq)
			}
		}
		for _, cmd := range victims {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		r, err := l.Verify(before.anchor())
		if err != nil || r.Broken != nil {
			t.Fatalf("round %d: %v %v", round, r.Broken, err)
		}
		if r.Torn > 0 {
			torn++
		}
		if records, damaged := read(t, l); damaged != 0 || uint64(len(records)) != r.Head.Seq {
			t.Fatalf("round %d: read %d of %d, %d damaged", round, len(records), r.Head.Seq, damaged)
		}
		before = r.Head
	}
	t.Logf("%d records, %d of %d kills left a part of one", before.Seq, torn, rounds)
	l.Record(called("afterwards"))
	if r, err := l.Verify(before.anchor()); err != nil || r.Broken != nil || r.Torn != 0 {
		t.Errorf("%+v %v", r, err)
	}
}

func bytesIn(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err == nil { // it may have been closed and renamed since
			n += info.Size()
		}
	}
	return n
}

// anchor returns the argument for Verify, or "" if there is no record.
func (h Head) anchor() string {
	if h.Seq == 0 {
		return ""
	}
	return h.String()
}

// Writers, readers and verifiers run in one process.
func TestHammerReaders(t *testing.T) {
	l := openTest(t, t.TempDir(), Config{MaxBytes: 4 << 10, Keep: 1000, Mode: mode(Required)})
	var work sync.WaitGroup
	for w := range 8 {
		work.Go(func() {
			for i := range 20 {
				if err := l.Begin(called(fmt.Sprintf("%d-%d", w, i))); err != nil {
					t.Error(err)
				}
				l.Record(called(fmt.Sprintf("%d-%d", w, i)))
			}
		})
	}
	for range 3 {
		work.Go(func() {
			for range 20 {
				if r, err := l.Verify(""); err != nil || r.Broken != nil || r.Torn != 0 {
					t.Errorf("%v %d %v", r.Broken, r.Torn, err)
				}
				if _, damaged := read(t, l); damaged != 0 {
					t.Error(damaged)
				}
			}
		})
	}
	work.Wait()
	if n := strings.Count(opsOf(all(t, l)), "call"); n != 160 {
		t.Errorf("%d calls", n)
	}
}
