package world

import (
	"strings"
	"testing"
)

// TestLastLines checks that the end of stderr is shown, together with the number of bytes before it.
func TestLastLines(t *testing.T) {
	long := strings.Repeat("0123456789\n", 1000)
	for _, tt := range []struct {
		written string
		most    int
		want    string
		before  int
	}{
		{"", 3, "", 0},
		{"one\n", 3, "one", 0},
		{"one\n\ntwo", 3, "one|two", 0},
		{"one\ntwo\nthree\n", 2, "two|three", 3},
		{"\n\n\none\ntwo\n", 2, "one|two", 0},
		{"\x1b[31mone\x1b[0m\n\x00two\n", 2, `\u001b[31mone\u001b[0m|\u0000two`, 0},
		{long + "end\n", 2, "0123456789|end", 11*999 - 1},
	} {
		w := &Capture{Limit: StderrExcerpt}
		w.Data = []byte(tt.written[:min(len(tt.written), StderrExcerpt)])
		w.tail = []byte(tt.written[max(len(w.Data), len(tt.written)-StderrExcerpt):])
		w.Total = len(tt.written)
		lines, before := w.LastLines(tt.most)
		if got := strings.Join(lines, "|"); got != tt.want || before != tt.before {
			t.Errorf("%.40q: %q, %d before; want %q, %d", tt.written, got, before, tt.want, tt.before)
		}
	}
}
