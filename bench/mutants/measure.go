package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unreached makes the switches record which mutants are reached, without switching one on.
const unreached = -1

// program is the test binary of a package with its mutants built in.
type program struct {
	path, dir string // dir is the package's folder, where its tests run
	active    string // the file with the number of the mutant that is on
	reached   string // the file with the numbers of those that were reached
	output    string // the file with what the tests print
	cpu       time.Duration
}

// test is one test function: which mutants it reaches, and what it costs to run.
type test struct {
	name    string
	reaches map[int]bool
	takes   time.Duration
	cost    time.Duration
	passed  int // mutants that it did not notice, although it reaches them
	failed  int // mutants that it noticed
}

// costOf is the CPU time of a test, or a tenth of the time that it takes if it mostly waits. How long a test takes
// depends on what else the machine does, and what a mutant's tests notice must not.
func costOf(cpu, takes time.Duration) time.Duration { return max(cpu, takes/10) }

// rank is what a test costs for each mutant that it will notice, by those that it has noticed before.
func (t *test) rank() float64 {
	return t.cost.Seconds() * float64(t.passed+t.failed+1) / (float64(t.failed) + 0.1)
}

// measure builds a package with its mutants and finds out which of them its tests notice. It prints its progress.
func measure(ctx context.Context, progress io.Writer, work, pkg string, set []Mutant) (*report, error) {
	r := &report{pkg: pkg}
	p, err := build(ctx, workFolder(work, pkg), pkg, set)
	if err != nil {
		return r, err
	}
	defer func() { r.cpu = p.cpu }()
	tests, err := p.tests(ctx, progress)
	if err != nil {
		return r, err
	}
	r.first = p.cpu
	for n, m := range set {
		res := result{mutant: m}
		start, before := time.Now(), p.cpu
		for group := range batches(reaching(tests, n+1)) {
			res.reached = true
			failed, err := p.run(ctx, n+1, group)
			if err != nil {
				return r, err
			}
			record(group, failed)
			if res.by = failed; failed != "" {
				break
			}
		}
		res.cpu = p.cpu - before
		fmt.Fprintf(progress, "%s: %s: %s in %s of %s\n", m.File, m.Why, cmp.Or(res.by, "no test"),
			time.Since(start).Round(10*time.Millisecond), res.cpu.Round(10*time.Millisecond))
		r.results = append(r.results, res)
	}
	return r, nil
}

func workFolder(work, pkg string) string {
	return filepath.Join(work, strings.ReplaceAll(pkg, "/", "_"))
}

// build compiles the test binary of a package. The sources with switches lie beside the tree and overlay it.
func build(ctx context.Context, work, pkg string, set []Mutant) (*program, error) {
	if err := os.MkdirAll(work, 0o777); err != nil {
		return nil, err
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	p := &program{
		path: filepath.Join(work, "test"), dir: filepath.Join(root, filepath.FromSlash(pkg)),
		active: filepath.Join(work, "active"), reached: filepath.Join(work, "reached"),
		output: filepath.Join(work, "output"),
	}
	byFile := map[string][]numbered{}
	for n, m := range set {
		byFile[m.File] = append(byFile[m.File], numbered{m, n + 1})
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	place := func(file string, src []byte) error {
		copied := filepath.Join(work, strings.ReplaceAll(file, "/", "_"))
		overlay.Replace[filepath.Join(root, filepath.FromSlash(file))] = copied
		return os.WriteFile(copied, src, 0o666)
	}
	for file, mutants := range byFile {
		src, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			return nil, err
		}
		if src, err = addSwitches(src, mutants); err != nil {
			return nil, err
		}
		if err := place(file, src); err != nil {
			return nil, err
		}
	}
	folders := map[string]bool{}
	for file := range byFile {
		folders[path.Dir(file)] = true
	}
	for folder := range folders {
		name, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Name}}", "./"+folder).Output()
		if err != nil {
			return nil, err
		}
		switches := fmt.Appendf(nil, switchFile, bytes.TrimSpace(name), p.active, p.reached)
		if err := place(folder+"/mutant_switches.go", switches); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(overlay)
	if err != nil {
		return nil, err
	}
	overlayFile := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(overlayFile, raw, 0o666); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlayFile, "-o", p.path, "./"+pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("does not build with its mutants: %w\n%s", err, out)
	}
	return p, nil
}

// tests runs each test alone, without a mutant. A test that fails so is an error; one that is skipped reaches nothing.
func (p *program) tests(ctx context.Context, progress io.Writer) ([]*test, error) {
	cmd := exec.CommandContext(ctx, p.path, "-test.list", "^(Test|Example|Fuzz)")
	cmd.Dir = p.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var tests []*test
	for name := range strings.FieldsSeq(string(out)) {
		t := &test{name: name, reaches: map[int]bool{}}
		start, before := time.Now(), p.cpu
		if err := os.RemoveAll(p.reached); err != nil {
			return nil, err
		}
		failed, err := p.run(ctx, unreached, []*test{t})
		if err != nil {
			return nil, err
		}
		if failed != "" {
			out, _ := os.ReadFile(p.output) // the name of the test is the more important part
			return nil, fmt.Errorf("%s fails without a mutant:\n%s", name, out)
		}
		t.takes = time.Since(start)
		t.cost = costOf(p.cpu-before, t.takes)
		fmt.Fprintf(progress, "%s takes %s of %s\n", name, t.takes.Round(10*time.Millisecond),
			(p.cpu - before).Round(10*time.Millisecond))
		raw, err := os.ReadFile(p.reached)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		for line := range strings.FieldsSeq(string(raw)) {
			n, err := strconv.Atoi(line)
			if err != nil {
				return nil, err
			}
			t.reaches[n] = true
		}
		if len(t.reaches) > 0 {
			tests = append(tests, t)
		}
	}
	return tests, nil
}

// run runs tests while a mutant is on and returns the one that fails, "" if all pass. One that hangs fails.
func (p *program) run(ctx context.Context, mutant int, tests []*test) (failed string, err error) {
	if err := os.WriteFile(p.active, strconv.AppendInt(nil, int64(mutant), 10), 0o666); err != nil {
		return "", err
	}
	limit := 5 * time.Minute
	if mutant != unreached {
		limit = 10 * time.Second
		for _, t := range tests {
			limit += 5 * t.takes
		}
	}
	// A file, because a child of a test that was killed may hold the output.
	out, err := os.Create(p.output)
	if err != nil {
		return "", err
	}
	defer out.Close()
	pattern := "^(" + strings.Join(names(tests), "|") + ")$"
	// The timeout of the tests themselves does not end a loop of native code, which no garbage collection can stop.
	limited, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(limited, p.path, "-test.failfast", "-test.run", pattern, "-test.timeout", limit.String())
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, out, out
	err = cmd.Run()
	if cmd.ProcessState != nil {
		p.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return "", nil
	}
	text, err := os.ReadFile(p.output)
	return cmp.Or(failedTest(text), strings.Join(names(tests), " ")), err
}

// failure matches the name of the test that failed in the output of tests, or of the one that took too long.
var failure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)|^\s*running tests:\n\s*(\w+)`)

func failedTest(output []byte) string {
	m := failure.FindSubmatch(output)
	if m == nil {
		return ""
	}
	return string(m[1]) + string(m[2])
}

// record counts what the tests of a group did with a mutant, which one of them noticed, if failed is not "".
func record(group []*test, failed string) {
	for _, t := range group {
		switch failed {
		case "":
			t.passed++
		case t.name:
			t.failed++
		}
	}
}

// maxCost is what the tests of one mutant may cost. Of those that reach it, the costliest are left out, and what only
// they would notice counts as unnoticed: a test that starts a browser is a costly way to hold a line.
const maxCost = 30 * time.Second

// reaching returns the tests that reach a mutant and are not too costly. Those that will notice it for the least cost
// come first.
func reaching(tests []*test, mutant int) []*test {
	found := slices.DeleteFunc(slices.Clone(tests), func(t *test) bool { return !t.reaches[mutant] })
	slices.SortFunc(found, func(a, b *test) int { return cmp.Compare(a.cost, b.cost) })
	var sum time.Duration
	for i, t := range found {
		if sum += t.cost; sum > maxCost && i > 0 {
			found = found[:i]
			break
		}
	}
	slices.SortStableFunc(found, func(a, b *test) int { return cmp.Compare(a.rank(), b.rank()) })
	return found
}

// batches yields tests in groups that cost twice as much each, so that most mutants cost one short process. The first
// group is too small for most tests that start a browser.
func batches(tests []*test) func(yield func([]*test) bool) {
	return func(yield func([]*test) bool) {
		for limit := 500 * time.Millisecond; len(tests) > 0; limit *= 2 {
			n, sum := 1, tests[0].cost
			for n < len(tests) && sum+tests[n].cost <= limit {
				sum += tests[n].cost
				n++
			}
			if !yield(tests[:n]) {
				return
			}
			tests = tests[n:]
		}
	}
}

func names(tests []*test) []string {
	var all []string
	for _, t := range tests {
		all = append(all, t.name)
	}
	return all
}
