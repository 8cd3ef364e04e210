package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/bench/internal/o200k"
)

// TestSince counts the tokens of what page.snapshot says of one change, as a caller gets it: at most 60.
func TestSince(t *testing.T) {
	answers, err := os.ReadFile(filepath.Join("..", "..", "cdp", "page", "testdata", "since"))
	if err != nil {
		t.Fatal(err)
	}
	for entry := range strings.SplitSeq(strings.TrimPrefix(string(answers), "# "), "\n# ") {
		name, answer, _ := strings.Cut(strings.TrimSpace(entry), "\n")
		begin, end, found := strings.Cut(answer, `"text":"`)
		if !found {
			t.Fatalf("%s has no text: %s", name, answer)
		}
		at := strings.Index(strings.ReplaceAll(end, `\"`, "  "), `"`)
		answer = begin + `"text":"<page 61435406>\n` + end[:at] + `\n</page 61435406>` + end[at:]
		if n := o200k.Count(answer); n > 60 {
			t.Errorf("%s: %d tokens: %s", name, n, answer)
		} else {
			t.Logf("%s: %d tokens", name, n)
		}
	}
}
