package record_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/record/audit"
	"github.com/parley-tools/parley/host/record/trace"
)

// The tests of this file hold for both journals. What differs between them is tested in their packages.

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// both are the journals. Each writes to a folder, begins a file every few records, and names records by their calls.
var both = []struct {
	name string
	open func(warn func(error), dir string) journal
}{
	{"audit", func(warn func(error), dir string) journal {
		log := audit.Open(dir, audit.Config{MaxBytes: 2 << 10, Keep: 1000, Warn: warn})
		return journal{
			dir: dir, current: func() string { return log.Path() }, write: log.Record,
			records: func(damaged func(string, int)) reader { return readerOf(log.Records(damaged), idOfAudit) },
			intact: func(t testing.TB) {
				if r, err := log.Verify(""); err != nil || r.Broken != nil {
					t.Errorf("%+v %v", r.Broken, err)
				}
			},
		}
	}},
	{"trace", func(warn func(error), dir string) journal {
		var latest time.Time
		recorder := trace.Open(dir, trace.Config{KeepDays: 10_000, Warn: warn})
		return journal{
			dir: dir, current: func() string { return trace.PathOf(dir, latest) },
			write: func(e host.Event) {
				latest = e.Time
				recorder.Record(e)
			},
			records: func(damaged func(string, int)) reader { return readerOf(trace.Records(dir, damaged), idOfTrace) },
			intact:  func(testing.TB) {},
		}
	}},
}

type journal struct {
	dir     string
	current func() string // the file that was written to last
	write   func(host.Event)
	records func(damaged func(string, int)) reader
	intact  func(testing.TB)
}

// reader reads records of either kind as the ids of their calls; "" is that of a record about the journal itself.
type reader struct {
	read   func(t testing.TB, f record.Filter) []string
	follow func(ctx context.Context, f record.Filter, from record.Cursor, each func(string, record.Cursor) error) error
	end    func() (record.Cursor, error)
	// page and each return ids and the cursor after them.
	page func(f record.Filter, before string, limit int) ([]string, record.Reading, error)
	each func(f record.Filter, after string) ([]string, record.Reading, error)
}

func idOfAudit(r audit.Record) string { return r.Call }

func idOfTrace(r trace.Record) string { return r.Call }

func readerOf[R any](records record.Records[R], id func(R) string) reader {
	return reader{
		read: func(t testing.TB, f record.Filter) (ids []string) {
			t.Helper()
			for r, err := range records.Read(f) {
				if err != nil {
					t.Fatal(err)
				}
				if id(r) != "" {
					ids = append(ids, id(r))
				}
			}
			return ids
		},
		follow: func(ctx context.Context, f record.Filter, from record.Cursor, each func(string, record.Cursor) error) error {
			return records.Follow(ctx, f, from, func(r R, next record.Cursor) error {
				if id(r) == "" {
					return nil
				}
				return each(id(r), next)
			})
		},
		end: records.End,
		page: func(f record.Filter, before string, limit int) (ids []string, done record.Reading, err error) {
			p, err := records.Page(f, before, limit)
			for _, r := range p.Records {
				ids = append(ids, id(r))
			}
			return ids, p.Reading, err
		},
		each: func(f record.Filter, after string) (ids []string, done record.Reading, err error) {
			done, err = records.Each(f, after, func(r R) error {
				if id(r) != "" {
					ids = append(ids, id(r))
				}
				return nil
			})
			return ids, done, err
		},
	}
}

// failing returns a warning that fails a test.
func failing(t testing.TB) func(error) { return func(err error) { t.Error(err) } }

// called is a call that began i hours after noon, so that traces begin a file with every few of them.
func called(i int) host.Event {
	return host.Event{Time: noon.Add(time.Duration(i) * time.Hour), Op: "call", CallID: fmt.Sprint("c", i), Caller: "cli",
		Tool: "text.hash"}
}

func ids(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint("c", i))
	}
	return all
}

// A process that is killed within a write leaves any part of its line. The next process keeps all whole lines, its own
// record is read, and the rest of the journal is as it was.
func TestCrashAtEachByte(t *testing.T) {
	for _, b := range both {
		t.Run(b.name, func(t *testing.T) {
			dir := t.TempDir()
			j := b.open(failing(t), dir)
			const records = 30
			for i := range records - 1 {
				j.write(called(i))
			}
			before, err := os.ReadFile(j.current())
			if err != nil {
				t.Fatal(err)
			}
			j.write(called(records - 1))
			whole, err := os.ReadFile(j.current())
			if err != nil || len(whole) <= len(before) {
				t.Fatalf("the last record began a file: %d and %d bytes, %v", len(before), len(whole), err)
			}
			for n := len(before); n <= len(whole); n++ {
				if n > len(before)+3 && n < len(whole)-3 && n%7 != 0 && !testing.Verbose() {
					continue
				}
				crashed := filepath.Join(t.TempDir(), "crashed")
				if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				name := filepath.Join(crashed, filepath.Base(j.current()))
				if err := os.WriteFile(name, whole[:n], 0o600); err != nil {
					t.Fatal(err)
				}
				torn := b.open(failing(t), crashed)
				torn.write(called(records))
				want := ids(0, records-1)
				if b.name == "trace" && n >= len(whole)-1 || n == len(whole) { // a trace without its line break is whole
					want = append(want, fmt.Sprint("c", records-1))
				}
				damaged := 0
				got := torn.records(func(string, int) { damaged++ }).read(t, record.Filter{})
				if want = append(want, fmt.Sprint("c", records)); !slices.Equal(got, want) {
					t.Errorf("after %d of %d bytes: read %q", n-len(before), len(whole)-len(before), got)
				}
				isTorn := n > len(before) && n < len(whole)-1
				if wanted := b.name == "trace" && isTorn; (damaged == 1) != wanted || damaged > 1 {
					t.Errorf("after %d bytes: %d damaged lines", n-len(before), damaged)
				}
				torn.intact(t)
			}
		})
	}
}

// A cursor names the same place after its file was closed, and after a reader that follows has been restarted anywhere.
func TestCursorsAcrossRotation(t *testing.T) {
	for _, b := range both {
		t.Run(b.name, func(t *testing.T) {
			j := b.open(failing(t), t.TempDir())
			records := j.records(nil)
			const n = 40
			stop := errors.New("enough")
			cursors := []record.Cursor{{}}
			for i := range n { // the reader follows while the files rotate
				j.write(called(i))
				err := records.follow(t.Context(), record.Filter{}, cursors[i], func(id string, next record.Cursor) error {
					if id != fmt.Sprint("c", i) {
						t.Errorf("followed %s, want c%d", id, i)
					}
					cursors = append(cursors, next)
					return stop
				})
				if err != stop {
					t.Fatal(err)
				}
			}
			files := map[string]bool{}
			for i, from := range cursors[:n] {
				files[from.File] = true
				var got []string
				_ = records.follow(t.Context(), record.Filter{}, from, func(id string, _ record.Cursor) error {
					if got = append(got, id); len(got) == n-i {
						return stop
					}
					return nil
				})
				if !slices.Equal(got, ids(i, n)) {
					t.Errorf("from %+v: %q", from, got)
				}
			}
			if end, err := records.end(); err != nil || end != cursors[n] {
				t.Errorf("the end is %+v, %v; want %+v", end, err, cursors[n])
			}
			if len(files) < 4 {
				t.Errorf("only %d files", len(files))
			}
		})
	}
}

// A filter selects the same calls of both journals.
func TestFiltersAreEqual(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	dir := t.TempDir()
	var readers []reader
	var writers []journal
	for _, b := range both {
		j := b.open(failing(t), filepath.Join(dir, b.name))
		writers, readers = append(writers, j), append(readers, j.records(nil))
	}
	const n = 100
	for i := range n {
		e := called(i)
		e.Time = e.Time.Add(-time.Duration(rnd.IntN(2000)) * time.Millisecond)
		e.Tool = pick("text.hash", "text.find", "cdp.Page.navigate", "cdp.Page.reload", "Textual.hash", "")
		e.Caller, e.Session = pick("cli", "mcp:claude", "plugin:page"), pick("", "a", "b")
		if code := host.Code(pick("", "", "denied", "no_match", "timeout")); code != "" {
			e.Err = &host.Error{Code: code}
		}
		for _, j := range writers {
			j.write(e)
		}
	}
	selected := 0
	for range 200 {
		var f record.Filter
		for _, set := range []func(){
			func() { f.Since = noon.Add(time.Duration(rnd.IntN(n)) * time.Hour) },
			func() { f.Until = noon.Add(time.Duration(rnd.IntN(n)) * time.Hour) },
			func() { f.Tool = pick("text", "TEXT.hash", "cdp.*", "cdp.Page", "*.hash", "*", "page", "[") },
			func() { f.Caller = pick("cli", "mcp:*", "MCP:claude", "*") },
			func() { f.Session = pick("a", "b", "c") },
			func() { f.Code = pick("ok", "Denied", "82", "0", "timeout") },
			func() { f.Failed = true },
			func() { f.Op = pick("call", "search") },
		} {
			if rnd.IntN(4) == 0 {
				set()
			}
		}
		inAudit, inTraces := readers[0].read(t, f), readers[1].read(t, f)
		slices.Sort(inAudit) // a trace is in the file of its day
		slices.Sort(inTraces)
		if !slices.Equal(inAudit, inTraces) {
			t.Errorf("%+v selects %q of the audit log and %q of the traces", f, inAudit, inTraces)
		}
		selected += len(inAudit)
	}
	if selected < 500 {
		t.Errorf("the filters select only %d records", selected)
	}
}

// Environment of a child process, which a test starts from its own binary.
const (
	childDir   = "PARLEY_TEST_RECORD_DIR"
	childFirst = "PARLEY_TEST_RECORD_FIRST"
)

const childRecords = 200

func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	first, _ := strconv.Atoi(os.Getenv(childFirst))
	code := 0
	warn := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	for i := first; i < first+childRecords; i++ {
		for _, b := range both {
			e := called(i)
			e.Session = "kept"
			b.open(warn, filepath.Join(dir, b.name)).write(e)
		}
	}
	os.Exit(code)
}

// Two processes write to both journals while a reader follows and another clears traces: each record is read once, and
// none is lost.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var children []*exec.Cmd
	for i := range 2 {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s=%d", childFirst, i*childRecords))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, cmd)
	}
	writing, stop := context.WithCancel(t.Context())
	cleared := make(chan error)
	go func() {
		traces := filepath.Join(dir, "trace")
		recorder := trace.Open(traces, trace.Config{KeepDays: 10_000})
		var failed error
		for i := 0; writing.Err() == nil; i++ {
			e := called(i % (2 * childRecords))
			e.Session = "cleared"
			recorder.Record(e)
			_, err := trace.Clear(traces, record.Filter{Session: "cleared"})
			failed = errors.Join(failed, err)
		}
		cleared <- failed
	}()
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	stop()
	if err := <-cleared; err != nil {
		t.Error(err)
	}
	want := ids(0, 2*childRecords)
	slices.Sort(want)
	for _, b := range both {
		j := b.open(failing(t), filepath.Join(dir, b.name))
		got := j.records(func(path string, line int) { t.Errorf("%s:%d is damaged", path, line) }).read(t, record.Filter{})
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d records of %d, %d of them once", b.name, len(got), len(want), len(slices.Compact(got)))
		}
		j.intact(t)
	}
}

// A reader that follows while a process writes gets each record once, in the order in which it was written.
func TestFollowProcess(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	for _, b := range both {
		var got []string
		stop := errors.New("enough")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		records, kept := b.open(failing(t), filepath.Join(dir, b.name)).records(nil), record.Filter{Session: "kept"}
		err := records.follow(ctx, kept, record.Cursor{},
			func(id string, _ record.Cursor) error {
				if got = append(got, id); len(got) == childRecords {
					return stop
				}
				return nil
			})
		if err != stop || !slices.Equal(got, ids(0, childRecords)) {
			t.Errorf("%s: followed %s, %v", b.name, strings.Join(got, " "), err)
		}
	}
}
