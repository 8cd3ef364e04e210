package main

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Mutant is one fault. Old must occur exactly once in File, within a function or the value of a package variable.
type Mutant struct {
	File string // from the root of the repository
	By   string // the package whose tests run; that of the file if it is ""
	Old  string
	New  string
	Why  string // what goes wrong where no test notices
	Hole bool   // an attacker could use it: some test must notice

	// Equivalent is why no test can notice; such a mutant is not counted.
	Equivalent string
}

// faults holds the mutants, by the part of the code that they are in:
//
//	== host/egress/guard.go
//
//	hole: a redirect reaches an address that no grant covers
//	-t.granted && g.isExempt(t.host, a)
//	+g.isExempt(t.host, a)
//
// A package whose tests are those of another one says so: "== FILE by PACKAGE".
//
// A mutant begins with "hole:" or "fault:" and what goes wrong. A line "equivalent:" says why no test can notice it.
// The lines with - are the text that it replaces, which begins and ends anywhere in a line; those with + replace it.
//
//go:embed faults/*.txt
var faults embed.FS

// readMutants parses the files of a folder.
func readMutants(files fs.FS) ([]Mutant, error) {
	names, err := fs.Glob(files, "*.txt")
	if err != nil {
		return nil, err
	}
	var all []Mutant
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		set, err := parseMutants(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
		all = append(all, set...)
	}
	return all, nil
}

// parseMutants parses one file. The error begins with the number of the line.
func parseMutants(text string) (set []Mutant, err error) {
	file, by := "", ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if name, ok := strings.CutPrefix(line, "== "); ok {
			file, by, _ = strings.Cut(name, " by ")
			continue
		}
		kind, why, _ := strings.Cut(line, ": ")
		if kind == "hole" || kind == "fault" {
			set = append(set, Mutant{File: file, By: by, Why: why, Hole: kind == "hole"})
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if len(set) == 0 || file == "" {
			return nil, fmt.Errorf("%d: expected a line \"== FILE\" and a line \"hole: ...\" or \"fault: ...\" first", i+1)
		}
		m := &set[len(set)-1]
		switch {
		case kind == "equivalent":
			m.Equivalent = why
		case line[0] == '-':
			m.Old = appendLine(m.Old, line[1:])
		case line[0] == '+':
			m.New = appendLine(m.New, line[1:])
		default:
			return nil, fmt.Errorf("%d: expected a line that begins with -, + or a known word, and got %q", i+1, line)
		}
	}
	return set, nil
}

func appendLine(text, line string) string {
	if text == "" {
		return line
	}
	return text + "\n" + line
}

// byPackage groups mutants by the package whose tests run.
func byPackage(all []Mutant) map[string][]Mutant {
	sets := map[string][]Mutant{}
	for _, m := range all {
		pkg := cmp.Or(m.By, path.Dir(m.File))
		sets[pkg] = append(sets[pkg], m)
	}
	return sets
}
