package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
)

// written makes a log of eight records in three files of 3, 3 and 2 lines.
func written(t testing.TB) *Log {
	t.Helper()
	l := openTest(t, t.TempDir(), Config{MaxBytes: 550})
	for _, id := range []string{"c1", "c2", "c3", "c5", "c6", "c8"} {
		l.Record(called(id))
	}
	return l
}

// edit changes the lines of one file.
func edit(name string, change func(lines []string) []string) func(dir string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := slices.Collect(strings.Lines(string(data)))
		return os.WriteFile(path, []byte(strings.Join(change(lines), "")), 0o600)
	}
}

const (
	one   = "audit-000001.jsonl"
	two   = "audit-000002.jsonl"
	three = currentName
)

func TestTampering(t *testing.T) {
	l := written(t)
	if got := fmt.Sprint(ls(t, l.Dir())); got != fmt.Sprint([]string{one, two, three, lockName}) {
		t.Fatal(got)
	}
	if got := opsOf(all(t, l)); got != "call call call rotate call call rotate call" {
		t.Fatal(got)
	}
	intact(t, l, 8)

	replace := func(line int, old, new string) func([]string) []string {
		return func(lines []string) []string {
			if !strings.Contains(lines[line], old) {
				t.Fatalf("line %d has no %s: %s", line, old, lines[line])
			}
			lines[line] = strings.Replace(lines[line], old, new, 1)
			return lines
		}
	}
	insert := func(line int, text func(lines []string) string) func([]string) []string {
		return func(lines []string) []string { return slices.Insert(lines, line, text(lines)) }
	}
	forged := func(lines []string, after int, seq uint64) string {
		data, _, err := chain(Head{Seq: seq - 1, Hash: hashLine([]byte(lines[after]))}, recordOf(called("forged")))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, tt := range []struct {
		name   string
		tamper func(dir string) error
		kind   string
		file   string
		line   int
		intact uint64
	}{
		{"changed", edit(one, replace(1, `"caller":"cli"`, `"caller":"mcp:x"`)), Changed, one, 2, 1},
		{"the first record changed", edit(one, replace(0, `"cli"`, `"clj"`)), Changed, one, 1, 0},
		{"the last of a file changed", edit(one, replace(2, `"cli"`, `"clj"`)), Changed, one, 3, 2},
		{"the beginning of a file changed", edit(two, replace(0, one, "x")), Changed, two, 1, 3},
		{"the second to last changed", edit(three, replace(0, two, "x")), Changed, three, 1, 6},
		{"all changed", func(dir string) error {
			return errors.Join(edit(one, func(lines []string) []string {
				for i := range lines {
					lines[i] = strings.Replace(lines[i], "cli", "clj", 1)
				}
				return lines
			})(dir))
		}, Changed, one, 1, 0},
		{"a space added", edit(one, replace(1, `"op":`, `"op": `)), Changed, one, 2, 1},
		{"a Windows line ending", edit(one, replace(1, "\n", "\r\n")), Changed, one, 2, 1},
		{"another prev", edit(one, replace(1, `"prev":"sha256:`, `"prev":"sha256:`+strings.Repeat("0", 64)+`","x":"`)),
			Changed, one, 1, 0},
		{"another prev of the first", edit(one, replace(0, `"prev":"sha256:0`, `"prev":"sha256:1`)), Changed, one, 1, 0},
		{"another number", edit(one, replace(1, `"seq":2`, `"seq":9`)), Changed, one, 2, 1},
		{"another number of the first", edit(one, replace(0, `"seq":1`, `"seq":2`)), Missing, one, 1, 0},
		{"another version", edit(one, replace(1, `"v":1`, `"v":2`)), Changed, one, 2, 1},
		{"no JSON", edit(one, replace(1, `"v"`, `v`)), Changed, one, 2, 1},
		{"no hash", edit(one, replace(1, `sha256:`, `sha1:`)), Changed, one, 2, 1},

		{"removed", edit(one, func(lines []string) []string { return slices.Delete(lines, 1, 2) }), Missing, one, 2, 1},
		{"the first removed", edit(one, func(lines []string) []string { return lines[1:] }), Missing, one, 1, 0},
		{"the end of a file removed", edit(one, func(lines []string) []string { return lines[:2] }), Missing, two, 1, 2},
		{"a file emptied", edit(one, func([]string) []string { return nil }), Missing, two, 1, 0},
		{"a file in the middle emptied", edit(two, func([]string) []string { return nil }), Missing, three, 1, 3},
		{"a file removed", func(dir string) error { return os.Remove(filepath.Join(dir, two)) }, Missing, three, 1, 3},
		{"the first file removed", func(dir string) error { return os.Remove(filepath.Join(dir, one)) }, Missing, two, 1, 0},

		{"a line repeated", edit(one, insert(2, func(lines []string) string { return lines[1] })), Misplaced, one, 3, 2},
		{"an earlier line repeated", edit(one, insert(3, func(lines []string) string { return lines[0] })), Misplaced, one, 4,
			3},
		{"a record forged", edit(one, insert(2, func(lines []string) string { return forged(lines, 1, 3) })), Misplaced, one,
			3, 2},
		{"a record forged with another number", edit(one, insert(2, func(lines []string) string {
			return forged(lines, 1,
				17)
		})), Misplaced, one, 3, 2},
		{"a record forged with another prev", edit(one, insert(2, func(lines []string) string {
			return forged(lines, 0,
				3)
		})), Misplaced, one, 3, 2},
		{"a blank line", edit(one, insert(2, func([]string) string { return "\n" })), Misplaced, one, 3, 2},
		{"a foreign line", edit(one, insert(0, func([]string) string { return "hello\n" })), Misplaced, one, 1, 0},
		{"a foreign line at the end", edit(three, insert(2, func([]string) string { return "hello\n" })), Changed, three, 3,
			8},
		{"a very long line", edit(one, insert(2, func([]string) string {
			return `{"v":1,` + strings.Repeat(" ", 100_000) +
				"}\n"
		})), Misplaced, one, 3, 2},

		{"two swapped", edit(one, func(lines []string) []string { return []string{lines[0], lines[2], lines[1]} }), Misplaced,
			one, 2, 1},
		{"the first two swapped", edit(one, func(lines []string) []string { return []string{lines[1], lines[0], lines[2]} }),
			Misplaced, one, 1, 0},
		{"the last two swapped", edit(three, func(lines []string) []string { return []string{lines[1], lines[0]} }),
			Misplaced, three, 1, 6},
		{"files swapped", func(dir string) error {
			at := func(name string) string { return filepath.Join(dir, name) }
			return errors.Join(os.Rename(at(one), at("x")), os.Rename(at(two), at(one)), os.Rename(at("x"), at(two)))
		}, Misplaced, one, 1, 0},

		{"torn", edit(one, func(lines []string) []string { lines[1] = lines[1][:40] + "\n"; return lines }), Changed, one, 2,
			1},
		{"torn without an end", edit(one, func(lines []string) []string { lines[1] = lines[1][:40]; return lines }), Changed,
			one, 2, 1},
		{"the end of a file torn", edit(one, func(lines []string) []string { lines[2] = lines[2][:40]; return lines }),
			Changed, one, 3, 2},
		{"zeros", edit(one, func(lines []string) []string { lines[1] = strings.Repeat("\x00", 100) + "\n"; return lines }),
			Changed, one, 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := written(t)
			head, err := l.Head()
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.tamper(l.Dir()); err != nil {
				t.Fatal(err)
			}
			l.Record(called("later")) // a later record does not hide the change
			for _, anchor := range []string{"", head.String()} {
				r, err := l.Verify(anchor)
				if err != nil || r.Broken == nil {
					t.Fatalf("%+v %v", r, err)
				}
				if r.Broken.Kind != tt.kind || r.Broken.File != tt.file || r.Broken.Line != tt.line ||
					r.Broken.Intact != tt.intact || r.Anchor != nil {
					t.Errorf("%s (%s), want %s at %s:%d after %d", r.Broken, r.Broken.Kind, tt.kind, tt.file, tt.line, tt.intact)
				}
			}
			read(t, l)
		})
	}
}

// A saved head reveals changes that the chain alone does not.
func TestAnchors(t *testing.T) {
	heads := func(l *Log) (heads []Head) {
		files := must(l.journal.OpenFiles(record.Cursor{}, record.Filter{}))
		defer record.CloseFiles(files)
		for line, err := range l.journal.Lines(files, record.Cursor{}) {
			if err != nil {
				t.Fatal(err)
			}
			r, _, err := decode(line)
			if err != nil {
				t.Fatal(err)
			}
			heads = append(heads, Head{hashOf(line.Sum), r.Seq, r.Time})
		}
		return heads
	}
	again := func(l *Log) error { // another intact log
		if err := os.RemoveAll(l.Dir()); err != nil {
			return err
		}
		for range 7 {
			l.Record(called("other"))
		}
		return nil
	}
	for _, tt := range []struct {
		name   string
		anchor int // number of the record
		tamper func(l *Log) error
		kind   string
	}{
		{"unchanged, the last record", 8, func(*Log) error { return nil }, ""},
		{"unchanged, an early record", 2, func(*Log) error { return nil }, ""},
		{"another record was written", 8, func(l *Log) error { l.Record(called("c9")); return nil }, ""},
		{"the end cut off", 8, func(l *Log) error {
			return edit(three,
				func(lines []string) []string { return lines[:1] })(l.Dir())
		}, Truncated},
		{"cut off after the anchor", 7, func(l *Log) error {
			return edit(three,
				func(lines []string) []string { return lines[:1] })(l.Dir())
		}, ""},
		{"cut off and written again", 8, func(l *Log) error {
			err := edit(three, func(lines []string) []string { return lines[:1] })(l.Dir())
			l.Record(called("other"))
			return err
		}, WrongAnchor},
		{"the last file removed", 8, func(l *Log) error { return os.Remove(filepath.Join(l.Dir(), three)) }, Truncated},
		{"all written again", 3, again, WrongAnchor},
		{"all removed", 3, func(l *Log) error { return os.RemoveAll(l.Dir()) }, Truncated},
		{"all emptied", 3, func(l *Log) error {
			return errors.Join(os.RemoveAll(l.Dir()), os.Mkdir(l.Dir(), 0o700), os.WriteFile(filepath.Join(l.Dir(), three), nil,
				0o600))
		}, Truncated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := written(t)
			h := heads(l)[tt.anchor-1]
			if err := tt.tamper(l); err != nil {
				t.Fatal(err)
			}
			for _, anchor := range []string{h.String(), h.Hash, fmt.Sprintf("%d:%s", h.Seq, h.Hash), fmt.Sprintf(" %s  %d\n",
				h.Hash, h.Seq)} {
				r, err := l.Verify(anchor)
				kind := tt.kind
				if kind == Truncated && anchor == h.Hash && r.Records > 0 {
					kind = WrongAnchor // without a number this cannot be known
				}
				if err != nil || kindOf(r.Broken) != kind {
					t.Errorf("%q: %v %v, want %q", anchor, r.Broken, err, kind)
				}
				if tt.kind == "" && (r.Anchor == nil || *r.Anchor != h) {
					t.Errorf("%q: anchor %v, want %v", anchor, r.Anchor, h)
				}
			}
			if r, err := l.Verify(""); err != nil || r.Broken != nil {
				t.Errorf("without an anchor: %v %v", r.Broken, err)
			}
		})
	}
}

// TestForgedChains verifies forged logs in which each line has the correct hash of the one before it.
func TestForgedChains(t *testing.T) {
	a, b := hashPrefix+strings.Repeat("a", 64), hashPrefix+strings.Repeat("b", 64)
	call := func() Record { return recordOf(called("forged")) }
	rotation := func(seq uint64, hash string) Record {
		return Record{Time: noon, Op: opRotate, Subject: one, Dropped: &Dropped{Files: 1, Last: one, Seq: seq, Hash: hash}}
	}
	dropping := call()
	dropping.Dropped = rotation(5, a).Dropped
	at := func(seq uint64, hash string) Head { return Head{Seq: seq, Hash: hash} }
	for _, tt := range []struct {
		name    string
		after   Head // the end of the previous file, according to the first record
		records []Record
		anchor  string
		kind    string
	}{
		{"from the beginning", at(0, genesis), []Record{call(), call()}, "", ""},
		{"from the beginning, another head", at(0, genesis), []Record{call(), call()}, "2:" + a, WrongAnchor},
		{"from the beginning, a later head", at(0, genesis), []Record{call(), call()}, "3:" + a, Truncated},
		{"a first record after another", at(0, a), []Record{call(), call()}, "", Changed},
		{"a first record with another number", at(1, genesis), []Record{call(), call()}, "", Missing},
		{"after a rotation", at(5, a), []Record{rotation(5, a), call()}, "", ""},
		{"after a rotation that dropped the head", at(5, a), []Record{rotation(5, a), call()}, "5:" + a, ""},
		{"after a rotation that dropped another record", at(5, a), []Record{rotation(5, b), call()}, "", Missing},
		{"after a rotation that dropped less", at(5, a), []Record{rotation(4, a), call()}, "", Missing},
		{"after a rotation that drops itself", at(5, a), []Record{rotation(6, a), call()}, "", Missing},
		{"after a rotation that drops later records", at(5, a), []Record{rotation(100, a), call()}, "", Missing},
		{"without a rotation", at(5, a), []Record{call(), call()}, "", Missing},
		{"a rotation within the file", at(5, a), []Record{call(), rotation(5, a)}, "", Missing},
		{"a call that drops", at(5, a), []Record{dropping, call()}, "", Missing},
		{"the head was dropped, with another hash", at(5, a), []Record{rotation(5, a), call()}, "5:" + b, WrongAnchor},
		{"an earlier head with this hash was dropped", at(5, a), []Record{rotation(5, a), call()}, "3:" + a, WrongAnchor},
		{"an earlier head was dropped", at(5, a), []Record{rotation(5, a), call()}, "3:" + b, WrongAnchor},
		{"a head without a number was dropped", at(5, a), []Record{rotation(5, a), call()}, a, WrongAnchor},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data, _, err := chain(tt.after, tt.records...)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			put(t, dir, currentName, string(data))
			if r, err := Open(dir, Config{}).Verify(tt.anchor); err != nil || kindOf(r.Broken) != tt.kind {
				t.Errorf("%v %v, want %q", r.Broken, err, tt.kind)
			}
		})
	}
}

// The number and the hash of a head must belong to the same record.
func TestAnchorOfAnotherRecord(t *testing.T) {
	l := written(t)
	head, err := l.Head()
	if err != nil {
		t.Fatal(err)
	}
	for seq, kind := range map[uint64]string{head.Seq - 1: WrongAnchor, head.Seq: "", head.Seq + 1: Truncated} {
		if r, err := l.Verify(fmt.Sprintf("%d:%s", seq, head.Hash)); err != nil || kindOf(r.Broken) != kind {
			t.Errorf("record %d with the hash of record %d: %v %v, want %q", seq, head.Seq, r.Broken, err, kind)
		}
	}
}

func TestAnchorForms(t *testing.T) {
	l := written(t)
	hash := strings.Repeat("0", 64)
	for _, anchor := range []string{" ", "x", "sha256:", "sha256:00", hash, "sha256:" + hash + "0", "sha1:" + hash,
		"0:sha256:" + hash, "x:sha256:" + hash, "-1:sha256:" + hash,
		"1:2:sha256:" + hash, "sha256:" + hash + " x", "99999999999999999999:sha256:" + hash, "\x1b[2J"} {
		if _, err := l.Verify(anchor); err == nil || host.AsError(err).Code != host.InvalidArgs ||
			strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v", anchor, err)
		}
	}
}

func TestReport(t *testing.T) {
	l := written(t)
	put(t, l.Dir(), "note.txt", "not of the log")
	later := called("c9")
	later.Time = noon.AddDate(0, 0, 1)
	l.Record(later)
	early := called("c10")
	early.Time = noon.AddDate(0, 0, -1)
	l.Record(early)
	r := intact(t, l, 11)
	if r.Files != 4 || !r.First.Equal(early.Time) || !r.Last.Equal(later.Time) || !r.Head.Time.Equal(early.Time) ||
		r.Torn != 0 {
		t.Errorf("%+v", r)
	}
	empty, err := Open(t.TempDir(), Config{}).Verify("")
	if err != nil || empty != (Report{}) {
		t.Errorf("%+v %v", empty, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (f *Fault) String() string {
	return fmt.Sprintf("%s: %s:%d %s (expected %s, got %s)", f.Verdict(), f.File, f.Line, f.Message, f.Expected,
		f.Provided)
}
