package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/durable/durabletest"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 345678901, time.UTC)

// openTest opens a log that fails the test when it cannot write.
func openTest(t testing.TB, dir string, cfg Config) *Log {
	t.Helper()
	cfg.Now = func() time.Time { return noon }
	cfg.Warn = func(err error) { t.Error(err) }
	return Open(dir, cfg)
}

func called(id string) host.Event {
	return host.Event{Time: noon, Op: "call", CallID: id, Caller: "cli", Tool: "text.hash",
		Duration: 1234567 * time.Nanosecond}
}

func mode(m string) func() (string, error) { return func() (string, error) { return m, nil } }

func TestLines(t *testing.T) {
	head := `{"v":1,"seq":1,"t":"2026-07-01T12:00:00.345678901Z","prev":"` + genesis + `",`
	whole := host.Event{
		Time: noon.In(time.FixedZone("MSK", 3*3600)), Op: "call", CallID: "c1", Session: "s1", Caller: "mcp:claude",
		Tool: "github.issue.list", Digest: "sha256:ab",
		Params: json.RawMessage(`{"repo":"a"}`), Result: json.RawMessage(`{}`), Duration: 1234567 * time.Nanosecond,
		OutBytes: 9,
		Rights:   []string{"http:GET:https://api.github.com", "fs:ro:/srv/data=/data"},
		Uses:     []string{"http:GET:https://api.github.com", "fs:read:/srv/data/a<b>.txt"}, UsesDropped: 7,
	}
	failed := func(e *host.Error) host.Event { return host.Event{Time: noon, Op: "call", CallID: "c2", Err: e} }
	for _, tt := range []struct {
		name  string
		event host.Event
		want  string
	}{
		{"ok", whole,
			`"op":"call","call":"c1","caller":"mcp:claude","session":"s1","tool":"github.issue.list","digest":"sha256:ab",` +
				`"rights":["http:GET:https://api.github.com","fs:ro:/srv/data=/data"],` +
				`"touched":["http:GET:https://api.github.com","fs:read:/srv/data/a<b>.txt"],` +
				`"code":"ok","exit_code":0,"ms":1.235,"touched_more":7}`},
		{"only an op", host.Event{Op: "call"}, `"op":"call","code":"ok","exit_code":0,"ms":0}`},
		{"denied", failed(&host.Error{Code: host.Denied, Denied: []grant.Denial{{Right: "secret:TOKEN\x1b[2J",
			Why: "guest"}}}),
			`"op":"call","call":"c2","denied":["secret:TOKEN\\u001b[2J"],"code":"denied","exit_code":82,"ms":0}`},
		{"refused on the way", host.Event{
			Time: noon, Op: "call", CallID: "c3", Within: "c2", Caller: "plugin:echo", Refused: []string{"tool:text.hash",
				"clock"},
			Err: &host.Error{Code: host.ToolFailed, Tool: &host.ToolError{}, Denied: []grant.Denial{{Right: "tool:text.hash"},
				{Right: "random"}}}},
			`"op":"call","call":"c3","within":"c2","caller":"plugin:echo","denied":["tool:text.hash","clock","random"],` +
				`"code":"tool_failed","exit_code":1,"ms":0}`},
		{"names with line breaks", host.Event{Op: "call", CallID: "c\n4", Caller: "mcp:a\r\n\x1b[31mb", Session: "s\u202e",
			Tool: "a\x00b"}, `"op":"call","call":"c 4","caller":"mcp:a \\u001b[31mb","session":"s\\u202e","tool":"a\\u0000b",` +
			`"code":"ok","exit_code":0,"ms":0}`},
		{"a subject", host.Event{Op: "call", CallID: "c5", Tool: "page.click",
			Subject: "button \"a\nb\" of https://a.example/"},
			`"op":"call","call":"c5","tool":"page.click","code":"ok","exit_code":0,"ms":0,` +
				`"subject":"button \"a b\" of https://a.example/"}`},
		{"dry run", host.Event{Op: "call", DryRun: true, By: "terminal", Approval: "a1"},
			`"op":"call","dry_run":true,"by":"terminal","approval":"a1","code":"ok","exit_code":0,"ms":0}`},
		{"timeout", failed(host.Errorf(host.Timeout, "text.hash did not end within 1s")),
			`"op":"call","call":"c2","limit":"timeout: text.hash did not end within 1s","code":"timeout","exit_code":102,"ms":0}`},
		{"limit", failed(host.Errorf(host.LimitExceeded, "too\nmuch")),
			`"op":"call","call":"c2","limit":"limit_exceeded: too much","code":"limit_exceeded","exit_code":104,"ms":0}`},
		{"a tool's own failure", failed(&host.Error{Code: "no_match", Exit: 10, Message: "guest",
			Tool: &host.ToolError{Exit: 10}}),
			`"op":"call","call":"c2","code":"no_match","exit_code":10,"ms":0}`},
		{"a tool's own limit", failed(&host.Error{Code: host.LimitExceeded, Message: "guest",
			Tool: &host.ToolError{Exit: 10}}),
			`"op":"call","call":"c2","code":"limit_exceeded","exit_code":104,"ms":0}`},
		{"trapped", failed(host.Errorf(host.Trapped, "it said: guest")),
			`"op":"call","call":"c2","code":"trapped","exit_code":103,"ms":0}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			openTest(t, dir, Config{}).Record(tt.event)
			if got := content(t, dir); got != head+tt.want+"\n" {
				t.Errorf("got\n%swant\n%s", got, head+tt.want)
			}
		})
	}
	t.Run("note", func(t *testing.T) {
		dir := t.TempDir()
		if err := openTest(t, dir, Config{}).Note("grant", "echo", "tool:text.*", "clock"); err != nil {
			t.Fatal(err)
		}
		want := head + `"op":"grant","caller":"cli","subject":"echo","details":["tool:text.*","clock"]}` + "\n"
		if got := content(t, dir); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

// Parameters, results and texts of a guest must never get into the log.
func TestNoBodies(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, dir, Config{Mode: mode(Required)})
	e := called("c1")
	e.Params, e.Result, e.Query = json.RawMessage(`{"hunter2":"hunter2"}`), json.RawMessage(`"hunter2"`), "hunter2"
	for _, code := range []host.Code{host.ToolFailed, host.InvalidArgs, host.Denied, host.Trapped, host.InvalidResult,
		host.Timeout, "hunter"} {
		e.Err = &host.Error{
			Code: code, Message: "hunter2", Details: []host.Detail{{Parameter: "hunter2", Provided: "hunter2",
				Expected: "hunter2"}},
			Denied: []grant.Denial{{Right: "clock", Why: "hunter2"}}, Tool: &host.ToolError{Name: "hunter2",
				Details: json.RawMessage(`"hunter2"`)},
			Protocol: &host.ProtocolError{Message: "hunter2"}, Corrected: e.Params,
			Steps: []step.Step{step.Search("hunter2")}, Cause: errors.New("hunter2"),
		}
		if err := l.Begin(e); err != nil {
			t.Error(err)
		}
		l.Record(e)
	}
	if text := content(t, dir); strings.Contains(text, "hunter2") || strings.Count(text, "\n") != 14 {
		t.Error(text)
	}
}

func TestRecordsOnlyCalls(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, dir, Config{})
	l.Record(host.Event{Op: "search"})
	l.Record(host.Event{Op: "describe"})
	if err := l.Begin(called("c1")); err != nil {
		t.Error(err)
	}
	if files := ls(t, dir); len(files) > 0 {
		t.Errorf("unexpected files: %v", files)
	}
}

// A line has at most 16 KiB, whatever the event contains, and counts what was left out.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat(`"ä`, 2000)
	e := host.Event{Time: noon, Op: "call", CallID: long, Session: long, Caller: long, Tool: long, Digest: long,
		UsesDropped: 5,
		Err:         &host.Error{Code: host.Timeout, Message: long}}
	for i := range 1000 {
		e.Rights = append(e.Rights, fmt.Sprintf("http:GET:https://%d.example.com", i))
		e.Uses = append(e.Uses, long)
		e.Err.Denied = append(e.Err.Denied, grant.Denial{Right: fmt.Sprintf("fs:read:/%d/%s", i, long)})
	}
	l := openTest(t, dir, Config{})
	l.Record(e)
	if err := l.Note(long, long, e.Rights...); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(content(t, dir)) {
		if len(line) > maxLine {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	got := all(t, l)
	if r := got[0]; len(r.Rights)+r.RightsMore != 1000 || len(r.Touched)+r.TouchedMore != 1005 ||
		len(r.Denied)+r.DeniedMore != 1000 ||
		len(r.Rights) == 0 || len(r.Touched) == 0 || len(r.Denied) == 0 || !strings.HasSuffix(r.Limit, "…") {
		t.Errorf("%d+%d rights, %d+%d touched, %d+%d denied, limit %.20q",
			len(r.Rights), r.RightsMore, len(r.Touched), r.TouchedMore, len(r.Denied), r.DeniedMore, r.Limit)
	}
	if r := got[1]; len(r.Details) == 0 || len(r.Details)+r.DetailsMore != 1000 {
		t.Errorf("%d+%d details", len(r.Details), r.DetailsMore)
	}
	intact(t, l, 2)
}

func TestFilesAreForTheUserAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	state := filepath.Join(t.TempDir(), "state")
	dir := filepath.Join(state, "audit")
	l := openTest(t, dir, Config{})
	check := func() {
		t.Helper()
		l.Record(called("c1"))
		for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, currentName): 0o600, filepath.Join(dir,
			lockName): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, want %v", path, info.Mode().Perm(), want)
			}
		}
	}
	check()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, currentName), 0o644)); err != nil {
		t.Fatal(err)
	}
	check()

	var warned error
	l = Open(filepath.Join(state, "link"), Config{Warn: func(err error) { warned = err }})
	if err := os.Symlink(dir, l.Dir()); err != nil {
		t.Fatal(err)
	}
	if l.Record(called("c1")); warned == nil || !strings.Contains(warned.Error(), "is not a folder") {
		t.Errorf("warned of %v", warned)
	}
}

func TestModes(t *testing.T) {
	broken := errors.New("policy.toml:2: unknown key")
	for _, tt := range []struct {
		name     string
		mode     func() (string, error)
		begin    error
		ops      string
		writable bool
	}{
		{"default", nil, nil, "call grant", true},
		{"on", mode(On), nil, "call grant", true},
		{"required", mode(Required), nil, "begin call grant", true},
		{"off", mode(Off), nil, "", true},
		{"a policy that cannot be read", func() (string, error) { return "", broken }, broken, "call grant", true},
		{"a policy that cannot be read, last required",
			func() (string, error) { return Required, broken }, broken, "call grant", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "audit")
			l := openTest(t, dir, Config{Mode: tt.mode})
			if err := l.Begin(called("c1")); err != tt.begin {
				t.Errorf("Begin: %v, want %v", err, tt.begin)
			}
			l.Record(called("c1"))
			if err := l.Note("grant", "echo"); err != nil {
				t.Error(err)
			}
			var ops []string
			for _, r := range all(t, l) {
				ops = append(ops, r.Op)
			}
			if got := strings.Join(ops, " "); got != tt.ops {
				t.Errorf("recorded %q, want %q", got, tt.ops)
			}
			if _, err := os.Stat(dir); tt.ops == "" && !os.IsNotExist(err) {
				t.Errorf("the folder was created: %v", err)
			}
		})
	}
}

// The mode at the beginning of a call applies until its end, even if the policy changes.
func TestModeOfEvent(t *testing.T) {
	for _, tt := range []struct{ now, event, ops string }{
		{Off, On, "call"}, {Off, Required, "begin call"}, {On, Required, "begin call"}, {Required, Off, ""},
		{Required, On, "call"}, {On, "", "call"},
	} {
		l := openTest(t, filepath.Join(t.TempDir(), "audit"), Config{Mode: mode(tt.now)})
		e := called("c1")
		e.Audit = tt.event
		if err := l.Begin(e); err != nil {
			t.Error(err)
		}
		l.Record(e)
		if got := opsOf(all(t, l)); got != tt.ops {
			t.Errorf("the policy says %s, the event %q: recorded %q, want %q", tt.now, tt.event, got, tt.ops)
		}
	}
}

// If nothing can be written, a call is refused only if the log is required, and there is one warning.
func TestCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{On, Required} {
		warned := 0
		l := Open(filepath.Join(file, "audit"), Config{Mode: mode(m), Warn: func(error) { warned++ }})
		err := l.Begin(called("c1"))
		if (err != nil) != (m == Required) {
			t.Fatalf("%s: Begin: %v", m, err)
		}
		if m == Required {
			e := host.AsError(err)
			if e.Code != host.Unavailable || !strings.Contains(e.Message, "nothing was run") || len(e.Steps) == 0 {
				t.Errorf("Begin: %s %q, steps %v", e.Code, e.Message, e.Steps)
			}
		}
		for range 3 {
			l.Record(called("c1"))
		}
		if warned != 1 {
			t.Errorf("%s: warned %d times", m, warned)
		}
		if l.Note("grant", "echo") == nil {
			t.Errorf("%s: Note succeeded", m)
		}
		Open(filepath.Join(file, "audit"), Config{}).Record(called("c1")) // without Warn there is no panic
	}
}

// A process that was stopped while it held the lock delays writers for a bounded time, and readers not at all.
func TestLockIsHeld(t *testing.T) {
	l := openTest(t, t.TempDir(), Config{})
	l.Record(called("c1"))
	other := flock.New(filepath.Join(l.Dir(), lockName))
	if err := other.Lock(); err != nil {
		t.Fatal(err)
	}
	l.journal.Timeout = 20 * time.Millisecond
	if err := l.Note("grant", "echo"); err == nil || !strings.Contains(err.Error(), "audit.lock") {
		t.Errorf("Note: %v", err)
	}
	intact(t, l, 1)
	if err := other.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := l.Note("grant", "echo"); err != nil {
		t.Error(err)
	}
	intact(t, l, 2)
}

// A log that keeps its files open notices changes by other writers between two records.
func TestOtherWritersBetween(t *testing.T) {
	for _, tt := range []struct {
		name    string
		others  func(t *testing.T, dir string)
		records int // in the chain at the end
	}{
		{"nothing", func(*testing.T, string) {}, 2},
		{"a record", func(t *testing.T, dir string) { openTest(t, dir, Config{}).Record(called("c2")) }, 3},
		{"a rotation", func(t *testing.T, dir string) { openTest(t, dir, Config{MaxBytes: 1}).Record(called("c2")) }, 4},
		{"half a record", func(t *testing.T, dir string) { put(t, dir, currentName, content(t, dir)+`{"v":1,`) }, 3},
		{"its lock is removed and created again", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, lockName)); err != nil {
				t.Fatal(err)
			}
			openTest(t, dir, Config{}).Record(called("c2"))
		}, 3},
		{"all files are removed", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"all files are removed and created again", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			openTest(t, dir, Config{}).Record(called("c2"))
		}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := openTest(t, filepath.Join(t.TempDir(), "audit"), Config{})
			l.Record(called("c1"))
			tt.others(t, l.Dir())
			l.Record(called("c3"))
			intact(t, openTest(t, l.Dir(), Config{}), tt.records)
		})
	}
}

// A lock on a removed file excludes no other process, so it is taken again on the new file.
func TestLockFollowsReplacedFile(t *testing.T) {
	l := openTest(t, t.TempDir(), Config{})
	l.Record(called("c1"))
	if err := os.Remove(filepath.Join(l.Dir(), lockName)); err != nil {
		t.Fatal(err)
	}
	other := flock.New(filepath.Join(l.Dir(), lockName))
	if err := other.Lock(); err != nil {
		t.Fatal(err)
	}
	defer other.Unlock()
	l.journal.Timeout = 20 * time.Millisecond
	if err := l.Note("grant", "echo"); err == nil || !strings.Contains(err.Error(), "audit.lock") {
		t.Errorf("Note: %v", err)
	}
}

// A record that a killed host left half-written is cut off, which the next record reports; other invalid lines remain.
func TestEnds(t *testing.T) {
	line := func(seq uint64, prev string) string {
		data, _, err := chain(Head{Seq: seq - 1, Hash: prev}, Record{Time: noon, Op: "grant"})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first := line(1, genesis)
	for _, tt := range []struct {
		name string
		text string
		ops  string
		torn int64
		seq  uint64
		kind string
	}{
		{"nothing", "", "call", 0, 1, ""},
		{"complete", first, "grant call", 0, 2, ""},
		{"torn", first + `{"v":1,"seq":2,"t":"20`, "grant repair call", 22, 3, ""},
		{"without the line break", first + strings.TrimSuffix(line(2, hashLine([]byte(first))), "\n"), "grant repair call",
			int64(len(line(2, genesis)) - 1), 3, ""},
		{"torn first record", `{"v":1`, "repair call", 6, 2, ""},
		{"a long torn record", first + strings.Repeat("\x00", 100_000), "grant repair call", 100_000, 3, ""},
		{"a blank line", first + "\n", "grant call", 0, 2, Changed},
		{"a foreign line", first + "hello\n", "grant call", 0, 2, Changed},
		{"a foreign line and a torn record", first + "hello\n{", "grant repair call", 1, 3, Changed},
		{"a very long line", first + strings.Repeat("x", 100_000) + "\n", "grant call", 0, 2, Changed},
		{"many foreign lines", first + strings.Repeat("x\n", 10_000), "grant call", 0, 1, Changed},
		{"only foreign lines", "hello\nworld\n", "call", 0, 1, Changed},
		{"the highest number", line(maxSeq, genesis), "grant call", 0, 1, Misplaced},
		{"a Windows line ending", strings.TrimSuffix(first, "\n") + "\r\n", "grant call", 0, 2, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			l := openTest(t, dir, Config{})
			put(t, dir, currentName, tt.text)
			if s, err := l.State(); err != nil || s.Torn != tt.torn || s.Bytes != int64(len(tt.text)) {
				t.Errorf("state %+v, %v", s, err)
			}
			l.Record(called("c1"))
			var ops []string
			var last Record
			for _, last = range all(t, l) {
				ops = append(ops, last.Op)
				if last.Op == opRepair && last.Torn != tt.torn {
					t.Errorf("torn %d, want %d", last.Torn, tt.torn)
				}
			}
			if got := strings.Join(ops, " "); got != tt.ops || last.Seq != tt.seq || last.Call != "c1" {
				t.Errorf("records %q up to number %d, want %q and %d", got, last.Seq, tt.ops, tt.seq)
			}
			report, err := l.Verify("")
			if err != nil || kindOf(report.Broken) != tt.kind {
				t.Errorf("verify: %v %v, want %q", report.Broken, err, tt.kind)
			}
			if tt.kind == "" && report.Repairs != strings.Count(tt.ops, opRepair) {
				t.Errorf("%d repairs", report.Repairs)
			}
		})
	}
}

// A full file that ends in half a record is repaired before it is closed. Until then the half does not count as damage.
func TestTornFileIsNotClosed(t *testing.T) {
	l := openTest(t, t.TempDir(), Config{MaxBytes: 1})
	l.Record(called("c1"))
	put(t, l.Dir(), currentName, content(t, l.Dir())+`{"v":1,"seq":2`)
	if _, damaged := read(t, l); damaged != 0 {
		t.Errorf("%d damaged lines", damaged)
	}
	l.Record(called("c2"))
	if ops, files := opsOf(all(t, l)), ls(t, l.Dir()); ops != "call repair call" || len(files) != 2 {
		t.Errorf("%s in the files %v", ops, files)
	}
	l.Record(called("c3"))
	if ops := opsOf(all(t, l)); ops != "call repair call rotate call" {
		t.Error(ops)
	}
	intact(t, l, 5)
}

// Decode accepts only records of the format.
func TestDecode(t *testing.T) {
	line := func(v int, seq uint64, at, prev, op string) string {
		return fmt.Sprintf(`{"v":%d,"seq":%d,"t":"%s","prev":"%s","op":"%s"}`, v, seq, at, prev, op)
	}
	const at = "2026-07-01T12:00:00Z"
	hash := hashPrefix + strings.Repeat("0a", 32)
	for _, text := range []string{line(1, 1, at, hash, "call"), line(1, maxSeq, at, genesis, "x")} {
		if _, _, err := decode(record.Line{Text: []byte(text)}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if _, _, err := decode(record.Line{Text: []byte(text), Broken: true}); err == nil {
			t.Errorf("%s without a line break was accepted as a record", text)
		}
		if _, _, err := decode(record.Line{Text: []byte(text), Long: true}); err == nil {
			t.Errorf("%s, cut, was accepted as a record", text)
		}
	}
	for _, text := range []string{
		line(0, 1, at, hash, "call"), line(2, 1, at, hash, "call"), line(1, 0, at, hash, "call"),
		line(1, maxSeq+1, at, hash, "call"), line(1, 1, at, hash, ""), line(1, 1, "0001-01-01T00:00:00Z", hash, "call"),
		line(1, 1, at, "", "call"), line(1, 1, at, strings.ToUpper(hash), "call"), line(1, 1, at, hash[:70], "call"),
		line(1, 1, at, hash+"0", "call"), line(1, 1, at, strings.Replace(hash, "0a", "0g", 1), "call"),
		line(1, 1, at, "sha512:"+hash[7:], "call"), `[]`, `"x"`, `{`, ``,
	} {
		if _, _, err := decode(record.Line{Text: []byte(text)}); err == nil {
			t.Errorf("%s is a record", text)
		}
	}
}

// Follow reads each record once while the log rotates, and continues at a cursor whose file was renamed.
func TestFollow(t *testing.T) {
	l := openTest(t, t.TempDir(), Config{MaxBytes: 550})
	l.Record(called("c1"))
	stop := errors.New("enough")
	var from record.Cursor
	var seqs []uint64
	for _, until := range []uint64{2, 9, 20} {
		err := l.Records(nil).Follow(t.Context(), record.Filter{}, from, func(r Record, next record.Cursor) error {
			seqs, from = append(seqs, r.Seq), next
			if r.Seq == until {
				return stop
			}
			l.Record(called("more"))
			return nil
		})
		if err != stop {
			t.Fatal(err)
		}
		l.Record(called("between"))
	}
	for i, seq := range seqs {
		if seq != uint64(i+1) {
			t.Fatalf("got the records %v", seqs)
		}
	}
	if files := ls(t, l.Dir()); len(seqs) != 20 || len(files) < 6 {
		t.Errorf("%d records, files %v", len(seqs), files)
	}
}

// The chain continues across files; files beyond Keep are removed, which a record reports.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, dir, Config{MaxBytes: 1000, Keep: 3})
	write := func(n int) {
		for range n {
			l.Record(called("c1"))
		}
	}
	write(9)
	if got := strings.Join(ls(t, dir), " "); got != "audit-000001.jsonl audit.jsonl audit.lock" {
		t.Fatalf("files %s", got)
	}
	first, err := l.Head()
	if err != nil {
		t.Fatal(err)
	}
	report := intact(t, l, 10)
	if report.Files != 2 || report.Dropped != 0 {
		t.Errorf("report %+v", report)
	}
	write(40)
	files := ls(t, dir)
	if len(files) != 5 || files[0] == "audit-000001.jsonl" {
		t.Fatalf("files %v", files)
	}
	dropped, records := uint64(0), all(t, l)
	for _, r := range records {
		if r.Op == opRotate && r.Dropped != nil {
			dropped = r.Dropped.Seq
		}
	}
	if report = intact(t, l, len(records)); report.Dropped != dropped || records[0].Seq != dropped+1 {
		t.Errorf("dropped up to %d, reported %d, the first is %d", dropped, report.Dropped, records[0].Seq)
	}
	if r, err := l.Verify(first.String()); err != nil || kindOf(r.Broken) != WrongAnchor {
		t.Errorf("an anchor in a dropped file: %v %v", r.Broken, err)
	}
	if r, err := l.Verify(first.Hash); err != nil || kindOf(r.Broken) != WrongAnchor {
		t.Errorf("an anchor in a dropped file: %v %v", r.Broken, err)
	}
	if r, err := l.Verify(fmt.Sprintf("%d:%s", dropped, records[0].Prev)); err != nil || r.Broken != nil ||
		r.Anchor == nil {
		t.Errorf("the last dropped record as an anchor: %v %v", r.Broken, err)
	}

	// The newest of the dropped files still exists, because the host was killed before it removed the file.
	texts := map[string]string{}
	for _, name := range files[:4] {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(data)
	}
	l.cfg.Keep = 1
	for len(ls(t, dir)) > 3 {
		write(1)
	}
	records = all(t, l)
	for _, r := range records {
		if r.Op == opRotate && r.Dropped != nil {
			put(t, dir, r.Dropped.Last, texts[r.Dropped.Last])
		}
	}
	if more := all(t, l); len(more) <= len(records) || intact(t, l, len(more)).Dropped != more[0].Seq-1 {
		t.Errorf("%d records, %d before", len(more), len(records))
	}

	// A file that was removed otherwise is missing, because no rotation dropped it.
	l = openTest(t, t.TempDir(), Config{MaxBytes: 1000, Keep: 3})
	dir = l.Dir()
	write(50)
	files = ls(t, dir)
	if err := os.Remove(filepath.Join(dir, files[0])); err != nil {
		t.Fatal(err)
	}
	if r, err := l.Verify(""); err != nil || kindOf(r.Broken) != Missing || r.Broken.Line != 1 ||
		r.Broken.File != files[1] {
		t.Errorf("a file removed: %v %v", r.Broken, err)
	}
}

// A host that is killed between closing a file and beginning the next leaves a usable log.
func TestKilledWhileRotating(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, dir, Config{})
	l.Record(called("c1"))
	for i, leave := range []func() error{
		func() error { return nil },
		func() error { return os.WriteFile(filepath.Join(dir, currentName), nil, 0o600) },
		func() error { return os.WriteFile(filepath.Join(dir, currentName), []byte(`{"v":1,`), 0o600) },
	} {
		if err := os.Rename(filepath.Join(dir, currentName), filepath.Join(dir, fmt.Sprintf(closedName, i+1))); err != nil {
			t.Fatal(err)
		}
		if err := leave(); err != nil {
			t.Fatal(err)
		}
		before, err := l.Head()
		if err != nil || before.Seq == 0 {
			t.Fatal(before, err)
		}
		l.Record(called("c2"))
		if r, err := l.Verify(before.String()); err != nil || r.Broken != nil {
			t.Errorf("%v %v", r.Broken, err)
		}
	}
	if ops := opsOf(all(t, l)); ops != "call rotate call rotate call rotate repair call" {
		t.Error(ops)
	}
}

func TestReadStops(t *testing.T) {
	l := openTest(t, t.TempDir(), Config{})
	if records, damaged := read(t, l); len(records) != 0 || damaged != 0 {
		t.Error(records, damaged)
	}
	if h, err := l.Head(); h != (Head{}) || err != nil {
		t.Error(h, err)
	}
	l.Record(called("c1"))
	l.Record(called("c2"))
	for r, err := range l.Records(nil).Read(record.Filter{}) {
		if r.Call != "c1" || err != nil {
			t.Error(r, err)
		}
		break
	}
}

// A file that cannot be opened is an error for all who read the log.
func TestUnreadableFile(t *testing.T) {
	l := written(t)
	path := filepath.Join(l.Dir(), two)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	_, stateErr := l.State()
	_, headErr := l.Head()
	_, verifyErr := l.Verify("")
	var readErr error
	for _, err := range l.Records(nil).Read(record.Filter{}) {
		readErr = errors.Join(readErr, err)
	}
	_, endErr := l.Records(nil).End()
	for i, err := range []error{stateErr, headErr, verifyErr, readErr, endErr} {
		if err == nil || !strings.Contains(err.Error(), two) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	for name, want := range map[string]int{
		"audit-000001.jsonl": 1, "audit-123456.jsonl": 123456, "audit-1234567.jsonl": 1234567,
		"audit.jsonl": 0, "audit-000000.jsonl": 0, "audit-1.jsonl": 0, "audit-+00001.jsonl": 0, "audit--00001.jsonl": 0,
		"audit-000001.jsonl.gz": 0, "audit-000001": 0,
	} {
		if got := sequenceOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// Files are in the order of their numbers, however many digits these have; the current file gets the next number.
func TestListFiles(t *testing.T) {
	var got []string
	for _, f := range listFiles([]string{
		"audit-1000000.jsonl", "audit-999998.jsonl", "audit-999999.jsonl", "audit.jsonl", "audit.lock", "x.jsonl",
	}) {
		got = append(got, f.ID+" "+f.Path)
	}
	want := []string{
		"audit-999998.jsonl audit-999998.jsonl", "audit-999999.jsonl audit-999999.jsonl",
		"audit-1000000.jsonl audit-1000000.jsonl", "audit-1000001.jsonl audit.jsonl",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// all returns the records of a log.
func all(t testing.TB, l *Log) []Record {
	t.Helper()
	records, _ := read(t, l)
	return records
}

// read returns the records of a log, and how many lines are damaged.
func read(t testing.TB, l *Log) (records []Record, damaged int) {
	t.Helper()
	for r, err := range l.Records(func(string, int) { damaged++ }).Read(record.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records, damaged
}

func opsOf(records []Record) string {
	var ops []string
	for _, r := range records {
		ops = append(ops, r.Op)
	}
	return strings.Join(ops, " ")
}

// intact requires an intact log with a number of records.
func intact(t testing.TB, l *Log, records int) Report {
	t.Helper()
	head, err := l.Head()
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Verify(head.String())
	if err != nil || r.Broken != nil || r.Records != records {
		t.Fatalf("%d records, want %d; %v %v", r.Records, records, r.Broken, err)
	}
	if r.Head != head || r.Anchor == nil || *r.Anchor != head || head.Seq != r.Dropped+uint64(records) {
		t.Fatalf("head %v, report %+v", head, r)
	}
	return r
}

func kindOf(f *Fault) string {
	if f == nil {
		return ""
	}
	return f.Kind
}

func content(t testing.TB, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, currentName))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func ls(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// With Required a record is flushed before its call continues. In every mode, the record of dropped files is flushed
// before they are removed.
func TestFlush(t *testing.T) {
	const file, dir = currentName, "."
	l := openTest(t, filepath.Join(t.TempDir(), "audit"), Config{Mode: mode(Required), MaxBytes: 550, Keep: 1})
	disk := durabletest.Watch(t)
	expect := func(what string, want ...string) {
		t.Helper()
		if got := disk.Took(l.Dir()); !slices.Equal(got, want) {
			t.Errorf("%s: flushed %q, want %q", what, got, want)
		}
	}
	disk.OnFlush = func(string) {
		if content(t, l.Dir()) == "" {
			t.Error("flushed before it was written")
		}
	}
	if err := l.Begin(called("c1")); err != nil {
		t.Fatal(err)
	}
	expect("the first record", file, dir)
	l.Record(called("c1"))
	expect("a record", file)
	if err := l.Note("grant", "echo"); err != nil {
		t.Fatal(err)
	}
	expect("a note", file)

	disk.Err = errors.New("the disk is gone")
	if err := l.Begin(called("c2")); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("a call began although its record was not flushed: %v", err)
	}
	if err := l.Note("grant", "echo"); err == nil {
		t.Error("a note that was not flushed is not an error")
	}
	disk.Err = nil
	disk.Took(l.Dir())

	l.cfg.Mode = mode(On)
	dropped := false
	disk.OnFlush = func(path string) {
		if _, err := os.Stat(filepath.Join(l.Dir(), one)); err != nil {
			t.Errorf("a file was removed before its record was flushed: %v", err)
		}
		dropped = true
	}
	for range 12 {
		before := len(disk.Took(l.Dir()))
		l.Record(called("c3"))
		if dropped {
			break
		}
		if before > 0 {
			t.Error("flushed unnecessarily")
		}
	}
	if _, err := os.Stat(filepath.Join(l.Dir(), one)); !dropped || err == nil {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	expect("a rotation that drops a file", file)
}

// TestRequireCopies has records wait until they are kept elsewhere, too: then none that is not begins a call.
func TestRequireCopies(t *testing.T) {
	for policy, want := range map[string]string{On: Required, Required: Required, Off: Off} {
		var copied []uint64
		var fails, warned error
		l := Open(filepath.Join(t.TempDir(), "audit"), Config{
			Mode: func() (string, error) { return policy, nil },
			Warn: func(err error) { warned = err },
		})
		l.RequireCopies(func(h Head) error {
			copied = append(copied, h.Seq)
			return fails
		})
		mode, err := l.Mode()
		began, noted := l.Begin(called("a")), l.Note("grant", "text")
		l.Record(called("a"))
		if mode != want || err != nil || began != nil || noted != nil || warned != nil {
			t.Errorf("%s: %s, %v, %v, %v, %v", policy, mode, err, began, noted, warned)
		}
		if policy == Off {
			if copied != nil {
				t.Errorf("off: %v was copied", copied)
			}
			continue
		}
		fails = errors.New("nobody answers")
		e := called("a")
		e.Audit = On // the policy has changed meanwhile
		began, noted = l.Begin(e), l.Note("grant", "text")
		if !errors.Is(began, host.Unavailable) || !errors.Is(noted, fails) ||
			!strings.Contains(began.Error(), "record 4 of the audit log is not copied: nobody answers") {
			t.Errorf("%s: %v, %v", policy, began, noted)
		}
		l.Record(e)
		if !errors.Is(warned, fails) || !slices.Equal(copied, []uint64{1, 2, 3, 4, 5, 6}) {
			t.Errorf("%s: %v, %v", policy, warned, copied)
		}
	}
}
