package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Limits of the cost of metering, as multiples of the time that the same code takes without.
const (
	overheadMean  = 1.25
	overheadWorst = 1.7
)

var overheadLine = regexp.MustCompile(`^BenchmarkOverhead/(\S+?)(?:-\d+)?\s`)

// overhead prints what metering costs: kernels and JSON calls in three languages, metered, plain, and with wazero's own
// way to stop a guest. The benchmark is in the package of the code that meters, the only one that can see it; there the
// three take turns.
func (b *bench) overhead() error {
	cmd := exec.Command("go", "test", "-run=^$", "-bench=^BenchmarkOverhead$", "./host/wasm/internal/instrument")
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("measure metering: %w\n%s", err, stdout.String())
	}
	fmt.Fprintln(b.out, "\nCode of guests: uninstrumented, metered, and with WithCloseOnContextDone")
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "plain us\tx metered\tx closing\t  ")
	n, metered, closing, worst := 0, 0.0, 0.0, 0.0
	for line := range strings.Lines(stdout.String()) {
		m := overheadLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		plain, x, y := metric(line, "us-plain"), metric(line, "x-metered"), metric(line, "x-closing")
		if plain*x*y == 0 {
			return fmt.Errorf("measure metering: figures are missing in %q", line)
		}
		language, name, _ := strings.Cut(m[1], "/")
		fmt.Fprintf(w, "%.0f\t%.2f\t%.1f\t  %s, %s\n", plain, x, y, strings.ReplaceAll(name, "_", " "), language)
		n++
		metered, closing, worst = metered+math.Log(x), closing+math.Log(y), max(worst, x)
	}
	if n == 0 {
		return fmt.Errorf("measure metering: nothing was measured:\n%s", stdout.String())
	}
	mean := math.Exp(metered / float64(n))
	fmt.Fprintf(w, "\t%.2f\t%.1f\t  geometric mean (at most %.2f)%s\n", mean, math.Exp(closing/float64(n)), overheadMean,
		overMark(mean > overheadMean))
	fmt.Fprintf(w, "\t%.2f\t\t  worst (at most %.2f)%s\n", worst, overheadWorst, overMark(worst > overheadWorst))
	return w.Flush()
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
