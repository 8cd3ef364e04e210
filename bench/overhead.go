package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// overheadProcesses is how many processes measure each figure. Where code and memory lie differs between processes, so
// one process is one draw.
const overheadProcesses = 5

// overheadGroups are the programs that have a limit in common, by the languages of their names, with limits of the
// geometric mean and of each figure, as multiples of the time that the same code takes without metering.
var overheadGroups = []struct {
	title       string
	languages   []string
	mean, worst float64
}{
	{"kernels and calls", []string{"C", "Rust", "Go"}, 1.25, 1.7},
	{"interpreters", []string{"interpreter"}, 2, 2},
	{"a switch in a loop", []string{"switch"}, 4, 4},
}

var overheadLine = regexp.MustCompile(`^BenchmarkOverhead/(\S+?)(?:-\d+)?\s`)

// figures are what the processes measured of one program.
type figures struct {
	language, name          string
	plain, metered, closing []float64
}

// overhead prints what metering costs: kernels, JSON calls and interpreters, metered, plain, and with wazero's own way
// to stop a guest. The benchmark is in the package of the code that meters, the only one that can see it; there the
// forms take turns. Each figure is the median of the medians of several processes, with the least and the largest.
func (b *bench) overhead() error {
	const dir = "host/wasm/internal/instrument"
	test, err := filepath.Abs(filepath.Join(b.work, "overhead.exe"))
	if err != nil {
		return err
	}
	if out, err := exec.Command("go", "test", "-c", "-o", test, "./"+dir).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", dir, err, out)
	}
	var all []*figures
	for range overheadProcesses {
		cmd := exec.Command(test, "-test.run=^$", "-test.bench=^BenchmarkOverhead$", "-test.benchtime=300ms")
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		cmd.Env = append(os.Environ(), "OVERHEAD_CACHE="+filepath.Join(b.work, "overhead"))
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("measure metering: %w\n%s", err, out)
		}
		if all, err = addFigures(all, string(out)); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "\nCode of guests: uninstrumented, metered, and with WithCloseOnContextDone; %d processes\n",
		overheadProcesses)
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "plain us\tx metered\tfrom\tto\tx closing\t  ")
	for _, g := range overheadGroups {
		n, sum, worst := 0, 0.0, 0.0
		for _, f := range all {
			if !slices.Contains(g.languages, f.language) {
				continue
			}
			x, closing := median(f.metered), ""
			if len(f.closing) > 0 {
				closing = fmt.Sprintf("%.1f", median(f.closing))
			}
			fmt.Fprintf(w, "%.0f\t%.2f\t%.2f\t%.2f\t%s\t  %s, %s\n", median(f.plain), x, slices.Min(f.metered),
				slices.Max(f.metered), closing, f.name, f.language)
			n, sum, worst = n+1, sum+math.Log(x), max(worst, x)
		}
		if n == 0 {
			return fmt.Errorf("measure metering: no figures of %s", g.title)
		}
		mean := math.Exp(sum / float64(n))
		fmt.Fprintf(w, "\t%.2f\t\t\t\t  %s: geometric mean (at most %.2f)%s\n", mean, g.title, g.mean,
			overMark(mean > g.mean))
		fmt.Fprintf(w, "\t%.2f\t\t\t\t  %s: worst (at most %.2f)%s\n", worst, g.title, g.worst, overMark(worst > g.worst))
	}
	return w.Flush()
}

// addFigures adds the figures that one process printed.
func addFigures(all []*figures, out string) ([]*figures, error) {
	for line := range strings.Lines(out) {
		m := overheadLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		language, name, _ := strings.Cut(strings.ReplaceAll(m[1], "_", " "), "/")
		plain, metered, closing := metric(line, "us-plain"), metric(line, "x-metered"), metric(line, "x-closing")
		if plain*metered == 0 {
			return nil, fmt.Errorf("measure metering: figures are missing in %q", line)
		}
		i := slices.IndexFunc(all, func(f *figures) bool { return f.language == language && f.name == name })
		if i < 0 {
			i = len(all)
			all = append(all, &figures{language: language, name: name})
		}
		f := all[i]
		f.plain, f.metered = append(f.plain, plain), append(f.metered, metered)
		if closing > 0 {
			f.closing = append(f.closing, closing)
		}
	}
	return all, nil
}

func overMark(yes bool) string {
	if yes {
		return "  OVER"
	}
	return ""
}

// metric returns the number before a unit in a line of a benchmark, or 0.
func metric(line, unit string) float64 {
	fields := strings.Fields(line)
	for i, f := range fields {
		if f == unit && i > 0 {
			n, _ := strconv.ParseFloat(fields[i-1], 64)
			return n
		}
	}
	return 0
}
