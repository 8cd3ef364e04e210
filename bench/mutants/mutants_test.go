package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTexts checks that the text of each mutant is in its file once, where a switch can be inserted.
func TestTexts(t *testing.T) {
	all, err := readMutants(os.DirFS("faults"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	byFile := map[string][]numbered{}
	for n, m := range all {
		if m.Why == "" || m.Old == m.New || m.Hole && m.Equivalent != "" {
			t.Errorf("%s: %q requires a reason and a new text, and cannot be both a hole and equivalent", m.File, m.Old)
		}
		byFile[m.File] = append(byFile[m.File], numbered{m, n + 1})
	}
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := addSwitches(src, byFile[file]); err != nil {
			t.Error(err)
		}
	}
}

func TestParseMutants(t *testing.T) {
	set, err := parseMutants("== a/b.go\n\nhole: x\n-one\n-\n-two\n+ three\n\nfault: y: z\nequivalent: w\n-four\n")
	want := []Mutant{
		{File: "a/b.go", Why: "x", Hole: true, Old: "one\n\ntwo", New: " three"},
		{File: "a/b.go", Why: "y: z", Equivalent: "w", Old: "four"},
	}
	if err != nil || !slices.Equal(set, want) {
		t.Errorf("%+v, %v", set, err)
	}
	for _, text := range []string{"hole: x\n-a", "== a.go\n-a", "== a.go\nhole: x\nnonsense"} {
		if _, err := parseMutants(text); err == nil {
			t.Errorf("%q was parsed", text)
		}
	}
}

func TestChoose(t *testing.T) {
	const file = "cdp/internal/keeper/api/url.go"
	sets, err := choose(nil, "^"+file+": .*files of this machine$")
	set := sets["cdp/internal/keeper/api"]
	if err != nil || len(sets) != 1 || len(set) != 1 || set[0].File != file {
		t.Errorf("%v, %v", sets, err)
	}
	for _, tt := range []struct{ pkg, pattern, want string }{
		{"cdp/internal/keeper", "no such fault", "no mutant matches"}, {"cdp/internal", "", "no mutants of"},
		{"", "(", "missing"},
	} {
		if _, err := choose(strings.Fields(tt.pkg), tt.pattern); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q of %q: %v, want %s", tt.pattern, tt.pkg, err, tt.want)
		}
	}
}

const shapes = `package shapes

import "strings"

var words = strings.Fields("a b c")

var typed []string = []string{"x"}

type box[T any] struct{ v T }

func (b *box[T]) get(_ int) T { return b.v }

func (box[T]) unnamed(int, string) int { return 1 }

func sum(first int, more ...int) (total int) {
	total = first
	for _, n := range more {
		total += n
	}
	return total
}

func first[T any](list []T) T { return list[0] }

func store(into *int, v int) { *into = v }

func unused() bool { return true }

const fixed = 1
`

const shapesTest = `package shapes

import "testing"

func TestShapes(t *testing.T) {
	if len(words) != 3 || typed[0] != "x" {
		t.Error("variables")
	}
	b := &box[int]{7}
	if b.get(0) != 7 || b.unnamed(0, "") != 1 {
		t.Error("methods")
	}
	var n int
	if store(&n, 5); n != 5 {
		t.Error("store")
	}
}

func TestFunctions(t *testing.T) {
	if sum(1, 2, 3) != 6 || first([]int{4, 5}) != 4 {
		t.Error("functions")
	}
}
`

// TestMeasure switches on faults of every shape in a small module. Only the one that no test detects survives.
func TestMeasure(t *testing.T) {
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.24\n", "shapes/shapes.go": shapes, "shapes/shapes_test.go": shapesTest,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	set := []Mutant{
		{Old: `"a b c"`, New: `"a b"`},
		{Old: `{"x"}`, New: `{"y"}`},
		{Old: `{ return b.v }`, New: `{ var none T; return none }`},
		{Old: `return 1 }`, New: `return 2 }`},
		{Old: `total += n`, New: `total -= n`},
		{Old: `total = first`, New: `total = 0`},
		{Old: `list[0]`, New: `list[1]`},
		{Old: `*into = v`, New: `_ = into`},
		{Old: `return true`, New: `return false`},
	}
	for i := range set {
		set[i].File = "shapes/shapes.go"
	}
	var out bytes.Buffer
	err := run(t.Context(), &out, map[string][]Mutant{"shapes": set}, 1, false)
	if err == nil || !strings.Contains(out.String(), "8 of 9 mutants killed") ||
		!strings.Contains(out.String(), "SURVIVED (no test reaches it)") {
		t.Errorf("%v\n%s", err, &out)
	}
	for _, tt := range []struct{ old, want string }{
		{"no such text", "is gone"}, {"return", "more than once"}, {"fixed = 1", "neither in a function nor"},
		{"typed []string", "not within the value"},
	} {
		out.Reset()
		bad := map[string][]Mutant{"shapes": {{File: "shapes/shapes.go", Old: tt.old}}}
		if err := run(t.Context(), &out, bad, 1, false); err == nil || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %v\n%s", tt.old, err, &out)
		}
	}
}

// TestReaching checks which tests run with a mutant, and that those that notice others come first.
func TestReaching(t *testing.T) {
	newTest := func(name string, cost time.Duration, reaches ...int) *test {
		r := &test{name: name, cost: cost, reaches: map[int]bool{}}
		for _, n := range reaches {
			r.reaches[n] = true
		}
		return r
	}
	tests := []*test{newTest("Slow", 20*time.Second, 1, 2), newTest("Quick", time.Second, 1), newTest("Medium",
		5*time.Second, 1, 3), newTest("Slower", 21*time.Second, 1, 2)}
	for mutant, want := range map[int]string{1: "Quick Medium Slow", 2: "Slow", 3: "Medium", 4: ""} {
		if got := strings.Join(names(reaching(tests, mutant)), " "); got != want {
			t.Errorf("mutant %d: %s, want %s", mutant, got, want)
		}
	}
	for range 5 {
		record(tests, "Medium")
		record(tests[1:2], "")
	}
	if got := strings.Join(names(reaching(tests, 1)), " "); got != "Medium Quick Slow" {
		t.Errorf("after Medium has noticed five mutants and Quick none: %s", got)
	}
}

func TestFailedTest(t *testing.T) {
	for output, want := range map[string]string{
		"--- FAIL: TestA (0.01s)\n    a_test.go:1: x\n    --- FAIL: TestA/sub (0.01s)\nFAIL\n":             "TestA",
		"panic: test timed out after 1s\n\trunning tests:\n\t\tTestB/sub (1s)\n\ngoroutine 1 [running]:\n": "TestB",
		"fatal error: stack overflow\n": "",
	} {
		if got := failedTest([]byte(output)); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}
