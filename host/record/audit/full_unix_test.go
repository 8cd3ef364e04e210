//go:build linux || darwin

package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-tools/parley/host"
)

// fullReport is what a child reports about writing until the disk was full, and again afterwards.
type fullReport struct {
	Written int // records before the first failure
	Refused int // calls that were refused because of it
	Error   string
	Torn    int64 // bytes that the failed records left
	Later   bool  // a record could be written when there was space again
}

// writeUnderLimit runs in the child. A limit on the size of files has the effect of a full disk: the write that exceeds
// it is cut off.
func writeUnderLimit(dir, limit string) int {
	signal.Ignore(syscall.SIGXFSZ) // the write then fails
	bytes, err := strconv.ParseUint(limit, 10, 64)
	var old syscall.Rlimit
	if err = errors.Join(err, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old)); err != nil {
		return 2
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: old.Max}); err != nil {
		return 2
	}
	var r fullReport
	mode := On
	var warned error
	l := Open(dir, Config{Mode: func() (string, error) { return mode, nil }, Warn: func(err error) { warned = err }})
	for ; warned == nil; r.Written++ {
		l.Record(called(fmt.Sprintf("c%d", r.Written)))
	}
	r.Written--
	r.Error = warned.Error()
	mode = Required
	for range 5 {
		if err := l.Begin(called(strings.Repeat("x", 200))); err != nil && host.AsError(err).Code == host.Unavailable {
			r.Refused++
		}
	}
	if s, err := l.State(); err == nil {
		r.Torn = s.Torn
	}
	mode = On
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return 2
	}
	r.Later = l.Note("later", "") == nil
	return exitWith(json.NewEncoder(os.Stdout).Encode(r))
}

func exitWith(err error) int {
	if err != nil {
		return 2
	}
	return 0
}

// A record that does not fit on the disk leaves nothing behind, even if a part of it fits. Calls run unless the
// log is required. Once there is space again, the log continues.
func TestFullDisk(t *testing.T) {
	probe := openTest(t, t.TempDir(), Config{})
	probe.Record(called("c0"))
	size := len(content(t, probe.Dir()))
	for _, room := range []int{1, size - 1, size, 3*size + 1, 3*size + size/2, 4*size - 1} {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "audit")
			out, err := child(t, dir, fmt.Sprintf("%s=%d", childLimit, room)).Output()
			if err != nil {
				t.Fatal(err)
			}
			var r fullReport
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatal(err)
			}
			if r.Written != room/size || r.Refused != 5 || r.Torn != 0 || !r.Later || r.Error == "" {
				t.Errorf("%+v, want %d written", r, room/size)
			}
			l := Open(dir, Config{})
			if ops := opsOf(all(t, l)); ops[max(0, len(ops)-5):] != "later" {
				t.Error(ops)
			}
			if report := intact(t, l, room/size+1); report.Repairs != 0 {
				t.Errorf("%d repairs", report.Repairs)
			}
		})
	}
}
