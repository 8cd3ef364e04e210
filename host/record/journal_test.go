package record

import (
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

	"github.com/parley-tools/parley/internal/durable/durabletest"
)

// testConfig is a journal whose files are numbered. The one that is written to has the name "now" unless lines name
// their files; a file has at most 8 bytes and two closed ones are kept.
func testConfig(t *testing.T, dir string) Config {
	return Config{
		Dir: dir, Lock: "lock", MaxLine: 100, MaxBytes: 8, Repair: true, Warn: func(err error) { t.Error(err) },
		List: func(names []string) []File {
			files := numbered(names)
			if slices.Contains(names, "now") {
				files = append(files, File{ID: fmt.Sprint(lastNumber(files) + 1), Path: "now"})
			}
			return files
		},
		Drop: func(_ []File, at int) int { return at - 2 },
	}
}

func lastNumber(files []File) (n int) {
	if len(files) > 0 {
		fmt.Sscan(files[len(files)-1].ID, &n)
	}
	return n
}

// add appends a line and returns the end at which it was appended.
func add(t *testing.T, j *Journal, name, line string) (at End) {
	t.Helper()
	err := j.Append(name, false, func(end End) ([]byte, error) {
		at = end
		return []byte(line + "\n"), nil
	})
	if err != nil {
		t.Error(err)
	}
	return at
}

// contents returns the files of a folder without its lock, as "NAME:TEXT".
func contents(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Name()+":"+strings.ReplaceAll(string(data), "\n", ";"))
	}
	return strings.Join(all, " ")
}

func TestAppendRotates(t *testing.T) {
	j := Open(testConfig(t, filepath.Join(t.TempDir(), "made")))
	for i, want := range []string{
		"now:one;",
		"now:one;two;", // 8 bytes
		"1:one;two; now:three;",
		"1:one;two; now:three;four;",
		"1:one;two; 2:three;four; now:five;",
		"1:one;two; 2:three;four; now:five;six;",
		"2:three;four; 3:five;six; now:seven;",
	} {
		line := []string{"one", "two", "three", "four", "five", "six", "seven"}[i]
		end := add(t, j, "now", line)
		if got := contents(t, j.Dir); got != want {
			t.Fatalf("after %s: %s\nwant %s", line, got, want)
		}
		isFirst := i%2 == 0
		if end.Known == isFirst || (end.Size == 0) != isFirst || (len(end.Before) > 0) != (isFirst && i > 0) {
			t.Errorf("%s was appended at %+v", line, end)
		}
		if wantDrop := max(0, i-5); end.Drop != wantDrop {
			t.Errorf("%s drops %d", line, end.Drop)
		}
	}
}

// Where lines name their files, each goes to its own, and files after the one that begins are not dropped.
func TestAppendByName(t *testing.T) {
	cfg := testConfig(t, t.TempDir())
	cfg.MaxBytes = 0
	cfg.Drop = func(_ []File, at int) int { return at }
	j := Open(cfg)
	for _, step := range [][2]string{
		{"3", "3:x;"}, {"5", "5:x;"}, {"4", "4:x; 5:x;"}, {"4", "4:x;x; 5:x;"}, {"5", "4:x;x; 5:x;x;"}, {"6", "6:x;"},
	} {
		add(t, j, step[0], "x")
		if got := contents(t, j.Dir); got != step[1] {
			t.Errorf("%s: %s, want %s", step[0], got, step[1])
		}
	}
}

// Between two lines of a journal others change its file.
func TestAppendAfterOthers(t *testing.T) {
	write := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	for _, tt := range []struct {
		name   string
		others func(path string) error
		end    End
		want   string
	}{
		{"nothing", func(string) error { return nil }, End{Size: 2, Known: true}, "now:a;b;"},
		{"a line", write("a\nx\n"), End{Size: 4}, "now:a;x;b;"},
		{"half a line", write("a\nx"), End{Size: 2, Torn: 1}, "now:a;b;"},
		{"half a line in a full file", write("a\n1234567\nx"), End{Size: 10, Torn: 1}, "now:a;1234567;b;"},
		{"only half a line", write("x"), End{Torn: 1}, "now:b;"},
		{"it is removed", os.Remove, End{}, "now:b;"},
		{"it is replaced", func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("x\n"), 0o600), os.Rename(path+".new", path))
		}, End{Size: 2}, "now:x;b;"},
		{"others may read it", func(path string) error { return os.Chmod(path, 0o644) }, End{Size: 2}, "now:a;b;"},
		{"the folder is removed", func(path string) error { return os.RemoveAll(filepath.Dir(path)) }, End{}, "now:b;"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("Windows has no permission bits")
			}
			j := Open(testConfig(t, filepath.Join(t.TempDir(), "journal")))
			add(t, j, "now", "a")
			path := filepath.Join(j.Dir, "now")
			if err := tt.others(path); err != nil {
				t.Fatal(err)
			}
			end := add(t, j, "now", "b")
			end.File, end.Before = nil, nil
			if end.Size != tt.end.Size || end.Torn != tt.end.Torn || end.Known != tt.end.Known {
				t.Errorf("appended at %+v, want %+v", end, tt.end)
			}
			if got := contents(t, j.Dir); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			for path, want := range map[string]os.FileMode{path: 0o600, j.Dir: 0o700} {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
					t.Errorf("%s: %v, %v", path, info.Mode(), err)
				}
			}
			if last := add(t, j, "now", "c"); !last.Known && last.Size > 0 {
				t.Errorf("the end after its own line is not known: %+v", last)
			}
		})
	}
}

// What a writer wants flushed is on the disk when it goes on, and the lines that drop files before they are removed.
func TestAppendFlushes(t *testing.T) {
	j := Open(testConfig(t, filepath.Join(t.TempDir(), "journal")))
	disk := durabletest.Watch(t)
	line := func(End) ([]byte, error) { return []byte("1234567\n"), nil }
	disk.OnFlush = func(string) {
		if !strings.Contains(contents(t, j.Dir), "now:1234567;") {
			t.Error("flushed before it was written")
		}
	}
	for _, step := range []struct {
		flush bool
		want  []string
	}{
		{true, []string{"now", "."}}, {false, nil}, {true, []string{"now", "."}}, {false, []string{"now"}},
	} {
		if step.want != nil && !step.flush {
			disk.OnFlush = func(string) {
				if !strings.HasPrefix(contents(t, j.Dir), "1:") {
					t.Error("a file was removed before the line was flushed")
				}
			}
		}
		if err := j.Append("now", step.flush, line); err != nil {
			t.Fatal(err)
		}
		if got := disk.Took(j.Dir); !slices.Equal(got, step.want) {
			t.Errorf("flushed %q, want %q", got, step.want)
		}
	}
	if got := contents(t, j.Dir); strings.HasPrefix(got, "1:") {
		t.Error(got)
	}
	disk.OnFlush, disk.Err = nil, errors.New("the disk is gone")
	if err := j.Append("now", true, line); !errors.Is(err, disk.Err) {
		t.Error(err)
	}
}

// A line that cannot be made or written is an error, after which the journal goes on; the first one is reported.
func TestAppendFails(t *testing.T) {
	cfg := testConfig(t, t.TempDir())
	var warned []error
	cfg.Warn = func(err error) { warned = append(warned, err) }
	j := Open(cfg)
	add(t, j, "now", "a")
	no := errors.New("no line")
	if err := j.Append("now", false, func(End) ([]byte, error) { return nil, no }); err != no {
		t.Error(err)
	}
	if end := add(t, j, "now", "b"); end.Known {
		t.Error("the end is known after an error")
	}
	_ = j.file.Close()
	if err := j.Append("now", false, func(End) ([]byte, error) { return []byte("x\n"), nil }); err == nil {
		t.Error("written to a closed file")
	}
	add(t, j, "now", "c")
	if got := contents(t, j.Dir); got != "now:a;b;c;" {
		t.Error(got)
	}
	j.Report(no)
	j.Report(errors.New("another"))
	if len(warned) != 1 || warned[0] != no {
		t.Errorf("warned of %v", warned)
	}
	Open(Config{}).Report(no) // without Warn there is no panic

	if err := os.Mkdir(filepath.Join(j.Dir, "1"), 0o700); err != nil { // now cannot be renamed
		t.Fatal(err)
	}
	j.List = func([]string) []File { return []File{{ID: "1", Path: "now"}} }
	add(t, j, "now", "full")
	j2 := Open(j.Config)
	warned = nil
	add(t, j2, "now", "more")
	if got := current(t, j.Dir); got != "a;b;c;full;more;" || len(warned) != 1 {
		t.Errorf("%s, warned of %v", got, warned)
	}
}

// current returns the file that is written to.
func current(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "now"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\n", ";")
}

// Who cannot get the lock in time neither writes nor clears, and reads without it.
func TestLockIsHeld(t *testing.T) {
	cfg := testConfig(t, t.TempDir())
	cfg.Timeout = 20 * time.Millisecond
	j := Open(cfg)
	add(t, j, "now", "a")
	path := filepath.Join(j.Dir, "lock")
	for _, removed := range []bool{false, true} { // a lock on a removed file excludes nobody
		if removed {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		other := flock.New(path)
		if err := other.Lock(); err != nil {
			t.Fatal(err)
		}
		err := j.Append("now", false, func(End) ([]byte, error) { return []byte("x\n"), nil })
		if err == nil || !strings.Contains(err.Error(), "held its lock, lock, for longer") {
			t.Errorf("Append: %v", err)
		}
		if err := j.Exclusive(func([]File) error { return errors.New("called") }); err == nil || err.Error() == "called" {
			t.Errorf("Exclusive: %v", err)
		}
		if got := texts(t, linesOf(j, Cursor{})); !slices.Equal(got, []string{"now:1 a"}) {
			t.Errorf("read %q", got)
		}
		if err := other.Unlock(); err != nil {
			t.Fatal(err)
		}
		if err := j.Exclusive(func([]File) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	done := make(chan struct{})
	_ = j.Exclusive(func([]File) error { // another goroutine waits as another process does
		go func() {
			defer close(done)
			if err := j.Append("now", false, nil); err == nil || !strings.Contains(err.Error(), "for longer") {
				t.Errorf("Append: %v", err)
			}
		}()
		<-done
		return nil
	})
	add(t, j, "now", "b")
}

// A folder that does not exist has no files, and neither reading nor clearing makes it.
func TestNoFolder(t *testing.T) {
	j := Open(testConfig(t, filepath.Join(t.TempDir(), "none")))
	if err := j.Exclusive(func([]File) error { return errors.New("called") }); err != nil {
		t.Error(err)
	}
	if got := texts(t, linesOf(j, Cursor{})); len(got) > 0 {
		t.Error(got)
	}
	if _, err := os.Stat(j.Dir); !os.IsNotExist(err) {
		t.Error(err)
	}
}
