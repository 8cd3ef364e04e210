package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-tools/parley/bench/internal/o200k"
)

// TestSkills counts the tokens of what agents load of the shipped skills, exactly, where exports estimate: the page of
// each skill, the block of AGENTS.md, llms.txt, and the references, which are read on demand.
func TestSkills(t *testing.T) {
	counted := 0
	for pattern, most := range map[string]int{
		"*/SKILL.md": 600, "AGENTS.md": 400, "llms.txt": 600, "*/references/*.md": 8000,
	} {
		paths, err := filepath.Glob(filepath.Join("..", "..", "docs", "skills", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			counted++
			n := o200k.Count(string(text))
			if t.Logf("%s: %d tokens", path, n); n > most {
				t.Errorf("%s has %d tokens, at most %d", path, n, most)
			}
		}
	}
	if counted < 12 {
		t.Errorf("only %d files were found", counted)
	}
}
