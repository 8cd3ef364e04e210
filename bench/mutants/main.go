// Mutants measures what the tests detect: it puts faults into the code on purpose, one at a time, and reports those
// that no test notices. `go -C bench run ./mutants [PACKAGE...]` takes paths such as host/egress; without one it
// runs all. With -run it runs only some mutants, for example those of a file, or those that survived.
//
// The faults of a package are built into one test binary as switches. Each test runs once alone, which shows what it
// costs and which faults it reaches; then each fault is switched on for the tests that reach it, first those that are
// cheap and have noticed many.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// minKilled is the share of a package's mutants that its tests must notice.
const minKilled = 0.95

func main() {
	verbose := flag.Bool("v", false, "print each test and each mutant as soon as it has run")
	jobs := flag.Int("j", 2, "packages at a time")
	pattern := flag.String("run", "", "run the mutants whose \"FILE: what goes wrong\" matches this `regexp`")
	buildOnly := flag.Bool("n", false, "build the mutants, and run no tests")
	flag.Parse()
	tree.Main("mutants", func(ctx context.Context) error {
		sets, err := choose(flag.Args(), *pattern)
		if err != nil {
			return err
		}
		if *buildOnly {
			return buildAll(ctx, sets)
		}
		return run(ctx, os.Stdout, sets, *jobs, *verbose)
	})
}

// choose returns the mutants that match a regular expression, of these packages, or of all if none is named.
func choose(packages []string, pattern string) (map[string][]Mutant, error) {
	matching, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	folder, err := fs.Sub(faults, "faults")
	if err != nil {
		return nil, err
	}
	mutants, err := readMutants(folder)
	if err != nil {
		return nil, err
	}
	all := byPackage(mutants)
	if len(packages) == 0 {
		packages = slices.Collect(maps.Keys(all))
	}
	chosen := map[string][]Mutant{}
	for _, p := range packages {
		if all[p] == nil {
			return nil, fmt.Errorf("there are no mutants of %q; expected one of %v", p, slices.Sorted(maps.Keys(all)))
		}
		set := slices.DeleteFunc(all[p], func(m Mutant) bool { return !matching.MatchString(m.File + ": " + m.Why) })
		if len(set) > 0 {
			chosen[p] = set
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutant matches -run %q; it is compared with \"FILE: what goes wrong\"", pattern)
	}
	return chosen, nil
}

// buildAll reports which packages do not build with their mutants.
func buildAll(ctx context.Context, sets map[string][]Mutant) error {
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var failed []error
	for _, pkg := range slices.Sorted(maps.Keys(sets)) {
		if _, err := build(ctx, workFolder(work, pkg), pkg, sets[pkg]); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", pkg, err))
		}
	}
	return errors.Join(failed...)
}

// run measures the packages, jobs at a time, and fails if too many survived.
func run(ctx context.Context, out io.Writer, sets map[string][]Mutant, jobs int, verbose bool) error {
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	var mu sync.Mutex
	var failed []string
	var cpu time.Duration
	var group sync.WaitGroup
	slots := make(chan struct{}, max(jobs, 1))
	// The packages with the most mutants come first, so that the last to end is a short one.
	order := slices.SortedFunc(maps.Keys(sets), func(a, b string) int { return cmp.Compare(len(sets[b]), len(sets[a])) })
	for _, pkg := range order {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var progress io.Writer = io.Discard
			if verbose {
				progress = out
			}
			report, err := measure(ctx, progress, work, pkg, sets[pkg])
			mu.Lock()
			defer mu.Unlock()
			cpu += report.cpu
			if err != nil {
				fmt.Fprintf(out, "%s: %v\n", pkg, err)
				failed = append(failed, pkg)
				return
			}
			report.print(out, verbose)
			if !report.passes() {
				failed = append(failed, pkg)
			}
		})
	}
	group.Wait()
	fmt.Fprintf(out, "CPU time: %s\n", cpu.Round(time.Second))
	if len(failed) > 0 {
		slices.Sort(failed)
		return fmt.Errorf("the tests of %v do not detect enough faults", failed)
	}
	return nil
}

// result is the outcome of one mutant.
type result struct {
	mutant  Mutant
	by      string // the test that noticed it; "" where it survived
	reached bool
	cpu     time.Duration
}

// report is what became of a package's mutants.
type report struct {
	pkg     string
	results []result
	cpu     time.Duration
	first   time.Duration // of it, to find out what the tests reach
}

func (r *report) counts() (killed, counted int) {
	for _, m := range r.results {
		if m.mutant.Equivalent != "" {
			continue
		}
		counted++
		if m.by != "" {
			killed++
		}
	}
	return killed, counted
}

// passes reports whether enough mutants were noticed, all holes among them, and none that is listed as equivalent.
func (r *report) passes() bool {
	for _, m := range r.results {
		if m.mutant.Hole && m.by == "" || m.mutant.Equivalent != "" && m.by != "" {
			return false
		}
	}
	killed, counted := r.counts()
	return float64(killed) >= minKilled*float64(counted)
}

func (r *report) print(out io.Writer, verbose bool) {
	killed, counted := r.counts()
	fmt.Fprintf(out, "%s: %d of %d mutants killed", r.pkg, killed, counted)
	if verbose {
		fmt.Fprintf(out, " in %s, of which %s without a mutant", r.cpu.Round(time.Second), r.first.Round(time.Second))
	}
	fmt.Fprintln(out)
	for _, m := range r.results {
		state := ""
		switch {
		case m.by != "" && m.mutant.Equivalent != "":
			state = "listed as equivalent, but killed by " + m.by
		case m.by == "" && m.mutant.Equivalent == "" && !m.reached:
			state = "SURVIVED (no test reaches it)"
		case m.by == "" && m.mutant.Equivalent == "":
			state = "SURVIVED"
		}
		if state == "" {
			continue
		}
		if m.mutant.Hole {
			state += ", a hole"
		}
		fmt.Fprintf(out, "  %s: %s: %s\n    - %s\n    + %s\n", m.mutant.File, state, m.mutant.Why, m.mutant.Old,
			m.mutant.New)
	}
}
