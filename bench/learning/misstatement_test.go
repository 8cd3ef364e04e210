package main

import (
	"math/rand/v2"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// TestWordings checks that each form has wordings in both halves.
func TestWordings(t *testing.T) {
	for form := range wordings {
		for part := range 2 {
			if len(wordingsOf(form, part)) == 0 {
				t.Errorf("%s has no wording in half %d", form, part)
			}
		}
	}
	for format, pairs := range formats {
		n := [2]int{}
		for _, p := range pairs {
			n[half(formFormat+p[0])]++
		}
		if n[0] == 0 || n[1] == 0 {
			t.Errorf("wordings of %s in the halves: %v", format, n)
		}
	}
}

// TestMisstate plants misstatements of every form, and checks that the documentation makes them, and that the same
// sentence does not count where it is true.
func TestMisstate(t *testing.T) {
	c, err := loadCatalog("../..", stride, 0)
	if err == nil {
		err = c.listed()
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for seed := range uint64(2) {
		for tool, m := range misstate(c, rand.New(rand.NewPCG(seed, 1))) {
			seen[m.form]++
			wrong, right := m.apply(tool.doc), (&damage{wrong: m, isTrue: true}).apply(tool.doc)
			if !m.isMade(deliver(m, &wrong)) {
				t.Errorf("%s of %s: not made: %q, core %q", m.form, tool.name(), m.text, m.core)
			}
			if m.isMade(deliver(m, &tool.doc)) || m.isMade(deliver(m, &right)) {
				t.Errorf("%s of %s: made without it: %q, %q", m.form, tool.name(), m.text, m.truth())
			}
			if v := m.verdict(deliver(m, &tool.doc), true); v != repaired {
				t.Errorf("%s of %s: taken away again it counts as %d", m.form, tool.name(), v)
			}
			if v := m.verdict(deliver(m, &wrong), true); v != remains {
				t.Errorf("%s of %s: as it is it counts as %d: %q", m.form, tool.name(), v, m.text)
			}
		}
	}
	for _, form := range forms {
		if seen[form] < 10 {
			t.Errorf("%d tools have a misstatement of the form %s", seen[form], form)
		}
	}
}

func deliver(m *misstatement, doc *manifest.Tool) *manifest.ToolDocs {
	return manifest.Describe(&manifest.Manifest{Name: m.tool.plugin, Kind: manifest.KindParley}, doc, manifest.Tier3)
}
