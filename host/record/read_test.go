package record

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// journalOf returns a journal of the given texts in files with the names and IDs 1, 2, 3 and so on.
func journalOf(t *testing.T, maxLine int, texts ...string) *Journal {
	t.Helper()
	j := Open(Config{Dir: t.TempDir(), Lock: "lock", MaxLine: maxLine, Hash: sha256.New, List: numbered,
		Drop: func([]File, int) int { return 0 }})
	for i, text := range texts {
		put(t, j, fmt.Sprint(i+1), text)
	}
	return j
}

// numbered lists the files whose names are numbers.
func numbered(names []string) (files []File) {
	for _, name := range names {
		if strings.Trim(name, "0123456789") == "" {
			files = append(files, File{ID: name, Path: name})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return len(a.ID) - len(b.ID) }) // names are sorted
	return files
}

func put(t *testing.T, j *Journal, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(j.Dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// linesOf yields the lines of a journal after a cursor.
func linesOf(j *Journal, from Cursor) iter.Seq2[Line, error] {
	return Records[string]{Journal: j}.lines(Filter{}, from)
}

// texts collects lines as "FILE:NUMBER TEXT" with their faults.
func texts(t *testing.T, lines iter.Seq2[Line, error]) (all []string) {
	t.Helper()
	for l, err := range lines {
		if err != nil {
			t.Fatal(err)
		}
		s := fmt.Sprintf("%s:%d %s", filepath.Base(l.Path), l.Number, l.Text)
		for flag, set := range map[string]bool{" long": l.Long, " broken": l.Broken && !l.Tail, " tail": l.Tail} {
			if set {
				s += flag
			}
		}
		all = append(all, s)
	}
	return all
}

func TestLines(t *testing.T) {
	j := journalOf(t, 5, "a\nb\n", "", "c\n\nd", "e\nhalf")
	want := []string{"1:1 a", "1:2 b", "3:1 c", "3:2 ", "3:3 d broken", "4:1 e", "4:2 half tail"}
	if got := texts(t, linesOf(j, Cursor{})); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	// The cursor after each line leads to the lines after it.
	n := 0
	for l, err := range linesOf(j, Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if got := texts(t, linesOf(j, l.Next)); len(got) != len(want)-n {
			t.Errorf("after %s:%d: %q", l.Path, l.Number, got)
		}
	}
	if err := os.Remove(filepath.Join(j.Dir, "3")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		from Cursor
		want []string
	}{
		{"in a removed file", Cursor{"3", 2}, []string{"4:1 e", "4:2 half tail"}},
		{"in a file before the first", Cursor{"0", 9}, []string{"1:1 a", "1:2 b", "4:1 e", "4:2 half tail"}},
		{"behind the end of a file that was replaced", Cursor{"4", 99}, []string{"4:1 e", "4:2 half tail"}},
		{"in a longer ID", Cursor{"10", 0}, nil},
	} {
		if got := texts(t, linesOf(j, tt.from)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
	put(t, j, "10", "x\n")
	if got := texts(t, linesOf(j, Cursor{"4", 2})); !slices.Equal(got, []string{"4:1 half broken", "10:1 x"}) {
		t.Errorf("with a tenth file: %q", got)
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	var sizes []int64
	for l, err := range linesOf(journalOf(t, 100, "a\n"+long+"\nb\n"), Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, l.Size)
		if want := sha256.Sum256([]byte(long + "\n")); l.Long != (l.Size > 100) || l.Long && (!slices.Equal(l.Sum, want[:]) ||
			len(l.Text) > 70_000) {
			t.Errorf("line of %d bytes: long %v, %d bytes kept", l.Size, l.Long, len(l.Text))
		}
	}
	if want := []int64{2, 200_001, 2}; !slices.Equal(sizes, want) {
		t.Errorf("sizes %v", sizes)
	}
}

// A line of the greatest length is read whole, and one byte more makes it too long.
func TestLongestLine(t *testing.T) {
	for l, err := range linesOf(journalOf(t, 4, "abc\nabcd\nabc", "abcd"), Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if want := l.Size > 4; l.Long != want {
			t.Errorf("a line of %d bytes: long %v", l.Size, l.Long)
		}
	}
}

// Backward yields the lines that Lines yields, from the last one on.
func TestBackward(t *testing.T) {
	text := "a\n\n" + strings.Repeat("x", 9000) + "\nb\n"
	j := journalOf(t, 100, text)
	var want, got []string
	for l, err := range linesOf(j, Cursor{}) {
		want = append([]string{fmt.Sprint(l.Size, l.Sum, err)}, want...)
	}
	for l, err := range j.Backward(strings.NewReader(text), int64(len(text))) {
		got = append(got, fmt.Sprint(l.Size, l.Sum, err))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// A file that cannot be read is an error, and the other files are read.
func TestUnreadableFile(t *testing.T) {
	j := journalOf(t, 100, "a\n", "", "x\n", "b\n")
	if err := errors.Join(os.Remove(filepath.Join(j.Dir, "2")), os.Mkdir(filepath.Join(j.Dir, "2"), 0o700)); err != nil {
		t.Fatal(err)
	}
	files, err := j.OpenFiles(Cursor{}, Filter{})
	if err != nil {
		t.Fatal(err)
	}
	defer CloseFiles(files)
	_ = files[2].Opened.Close()
	var got []string
	for l, err := range j.Lines(files, Cursor{}) {
		if err != nil {
			got = append(got, "error")
			continue
		}
		got = append(got, string(l.Text))
	}
	if want := []string{"a", "error", "error", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// A file that is removed while it is looked for is none.
func TestFileIsRemovedMeanwhile(t *testing.T) {
	j := journalOf(t, 100, "a\n", "b\n")
	j.List = func(names []string) []File { return append([]File{{ID: "0", Path: "0"}}, numbered(names)...) }
	if got := texts(t, linesOf(j, Cursor{})); !slices.Equal(got, []string{"1:1 a", "2:1 b"}) {
		t.Errorf("got %q", got)
	}
}

// Follow returns each appended line once, also when a line is completed later or a new file begins.
func TestFollow(t *testing.T) {
	j := journalOf(t, 100, "a\nha")
	steps := []func(){
		func() { put(t, j, "1", "a\nhalf\n") },
		func() { put(t, j, "2", "b\n") },
		func() { put(t, j, "2", "b\nc\n") },
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	wait := make(chan struct{})
	decode := func(l Line) (string, Keys, error) { return string(l.Text), Keys{}, nil }
	records := Records[string]{Journal: j, Decode: decode}
	go func() {
		defer close(wait)
		err := records.Follow(ctx, Filter{}, Cursor{}, func(text string, _ Cursor) error {
			got = append(got, text)
			if len(steps) == 0 {
				cancel()
				return nil
			}
			steps[0]()
			steps = steps[1:]
			return nil
		})
		if err != context.Canceled {
			t.Error(err)
		}
	}()
	select {
	case <-wait:
	case <-time.After(time.Minute):
		t.Fatal("nothing more was read")
	}
	if want := []string{"a", "half", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
