package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	cpu       time.Duration
}

// test is one test function: how long it takes, and which mutants it reaches.
type test struct {
	name    string
	takes   time.Duration
	reaches map[int]bool
}

// measure builds a package with its mutants and finds out which of them its tests notice.
func measure(ctx context.Context, work, pkg string, set []Mutant) (*report, error) {
	r := &report{pkg: pkg}
	p, err := build(ctx, workFolder(work, pkg), pkg, set)
	if err != nil {
		return r, err
	}
	defer func() { r.cpu = p.cpu }()
	tests, err := p.tests(ctx)
	if err != nil {
		return r, err
	}
	for n, m := range set {
		res := result{mutant: m}
		for group := range batches(reaching(tests, n+1)) {
			res.reached = true
			if ok, err := p.run(ctx, n+1, group); err != nil {
				return r, err
			} else if !ok {
				res.by = strings.Join(names(group), " ")
				break
			}
		}
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
	name, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Name}}", "./"+pkg).Output()
	if err != nil {
		return nil, err
	}
	switches := fmt.Appendf(nil, switchFile, bytes.TrimSpace(name), p.active, p.reached)
	if err := place(pkg+"/mutant_switches.go", switches); err != nil {
		return nil, err
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
func (p *program) tests(ctx context.Context) ([]test, error) {
	cmd := exec.CommandContext(ctx, p.path, "-test.list", "^(Test|Example|Fuzz)")
	cmd.Dir = p.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var tests []test
	for name := range strings.FieldsSeq(string(out)) {
		t := test{name: name, reaches: map[int]bool{}}
		start := time.Now()
		if err := os.RemoveAll(p.reached); err != nil {
			return nil, err
		}
		ok, err := p.run(ctx, unreached, []test{t})
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%s fails without a mutant", name)
		}
		t.takes = time.Since(start)
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

// run reports whether tests pass while a mutant is on. One that hangs does not pass.
func (p *program) run(ctx context.Context, mutant int, tests []test) (bool, error) {
	if err := os.WriteFile(p.active, strconv.AppendInt(nil, int64(mutant), 10), 0o666); err != nil {
		return false, err
	}
	limit := 5 * time.Minute
	if mutant != unreached {
		limit = 30 * time.Second
		for _, t := range tests {
			limit += 5 * t.takes
		}
	}
	pattern := "^(" + strings.Join(names(tests), "|") + ")$"
	// The timeout of the tests themselves does not end a loop of native code, which no garbage collection can stop.
	limited, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(limited, p.path, "-test.failfast", "-test.run", pattern, "-test.timeout", limit.String())
	cmd.Dir = p.dir
	cmd.WaitDelay = 5 * time.Second // a child of a test that was killed may hold the output
	err := cmd.Run()
	if cmd.ProcessState != nil {
		p.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return err == nil, nil
}

// reaching returns the tests that reach a mutant, the fastest first.
func reaching(tests []test, mutant int) []test {
	found := slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return !t.reaches[mutant] })
	slices.SortFunc(found, func(a, b test) int { return int(a.takes - b.takes) })
	return found
}

// maxTests is how long the tests of one mutant may take, those that take longest left out. What only they would notice
// counts as unnoticed: a test that starts a browser is a costly way to hold a line.
const maxTests = 30 * time.Second

// batches yields tests in groups that take twice as long each, so that most mutants cost one short process.
func batches(tests []test) func(yield func([]test) bool) {
	return func(yield func([]test) bool) {
		var spent time.Duration
		for limit := 2 * time.Second; len(tests) > 0; limit *= 2 {
			n, sum := 1, tests[0].takes
			for n < len(tests) && sum+tests[n].takes <= limit {
				sum += tests[n].takes
				n++
			}
			if spent += sum; spent > maxTests && spent > sum || !yield(tests[:n]) {
				return
			}
			tests = tests[n:]
		}
	}
}

func names(tests []test) []string {
	var all []string
	for _, t := range tests {
		all = append(all, t.name)
	}
	return all
}
