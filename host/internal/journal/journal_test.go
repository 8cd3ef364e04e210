package journal

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// filesOf makes files of the given texts, with the IDs 1, 2, 3 and so on.
func filesOf(t *testing.T, texts ...string) []File {
	t.Helper()
	dir := t.TempDir()
	var files []File
	for i, text := range texts {
		files = append(files, File{ID: fmt.Sprint(i + 1), Path: filepath.Join(dir, fmt.Sprint(i+1))})
		put(t, files[i].Path, text)
	}
	return files
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
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
	files := filesOf(t, "a\nb\n", "", "c\n\nd", "e\nhalf")
	reader := Reader{MaxLine: 5}
	want := []string{"1:1 a", "1:2 b", "3:1 c", "3:2 ", "3:3 d broken", "4:1 e", "4:2 half tail"}
	if got := texts(t, reader.Lines(files, Cursor{})); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	// The cursor after each line leads to the lines after it.
	n := 0
	for l, err := range reader.Lines(files, Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if got := texts(t, reader.Lines(files, l.Next)); len(got) != len(want)-n {
			t.Errorf("after %s:%d: %q", l.Path, l.Number, got)
		}
	}
	if err := os.Remove(files[2].Path); err != nil {
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
		if got := texts(t, reader.Lines(files, tt.from)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	files := filesOf(t, "a\n"+long+"\nb\n")
	var sizes []int64
	for l, err := range (Reader{MaxLine: 100, Hash: sha256.New}).Lines(files, Cursor{}) {
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
	for l, err := range (Reader{MaxLine: 4}).Lines(filesOf(t, "abc\nabcd\nabc", "abcd"), Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if want := l.Size > 4; l.Long != want {
			t.Errorf("a line of %d bytes: long %v", l.Size, l.Long)
		}
	}
}

// A file that cannot be read is an error, and the other files are read.
func TestUnreadableFile(t *testing.T) {
	files := filesOf(t, "a\n", "", "x\n", "b\n")
	files[1].Path = t.TempDir()
	closed, err := os.Open(files[2].Path)
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	files[2].Opened, files[2].Size = closed, 2
	var got []string
	for l, err := range (Reader{MaxLine: 100}).Lines(files, Cursor{}) {
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

// Follow returns each appended line once, also when a line is completed later or a new file begins.
func TestFollow(t *testing.T) {
	files := filesOf(t, "a\nha")
	dir := filepath.Dir(files[0].Path)
	steps := []func(){
		func() { put(t, files[0].Path, "a\nhalf\n") },
		func() {
			files = append(files, File{ID: "2", Path: filepath.Join(dir, "2")})
			put(t, files[1].Path, "b\n")
		},
		func() { put(t, files[1].Path, "b\nc\n") },
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	pass := func(from Cursor) iter.Seq2[Line, error] {
		return func(yield func(Line, error) bool) {
			Reader{MaxLine: 100}.Lines(files, from)(yield)
			if len(steps) == 0 {
				cancel()
				return
			}
			steps[0]()
			steps = steps[1:]
		}
	}
	for l, err := range Follow(ctx, Cursor{}, time.Microsecond, pass) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(l.Text))
	}
	if want := []string{"a", "half", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
