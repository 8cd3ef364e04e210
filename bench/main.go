// Command bench times whole processes of Parley beside baselines of the same run, an empty Go program and node, and
// code of guests beside the same code without metering. Subjects take turns, so that a busy machine slows them
// equally: the ratios are more reliable than the milliseconds. There are no thresholds.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parley-tools/parley/bench/internal/tree"
)

func main() {
	rounds := flag.Int("rounds", 25, "runs of each subject; at least 15 make a median")
	plugins := flag.Int("plugins", 1000, "how many plugins are installed for the discovery figures")
	part := flag.String("part", "",
		"one of discovery, calls, apis, queries, runners, languages, overhead, crowd, mcp, browser, inits; all when empty")
	update := flag.Bool("update", false, "write the table of languages into "+languagesDocument)
	flag.Parse()
	if file := os.Getenv(queryInProcess); file != "" {
		if err := runQuery(file); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(*rounds, *plugins, *part, *update, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(rounds, plugins int, part string, update bool, out io.Writer) error {
	work, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := tree.Enter(); err != nil {
		return err
	}
	b := bench{work: work, rounds: rounds, out: out, empty: filepath.Join(work, "empty.exe")}
	if err := b.build(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s/%s, %d processors, %s, %d rounds\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		runtime.Version(), rounds)
	var failed error
	for _, p := range []struct {
		name string
		time func() error
	}{
		{"discovery", b.discovery}, {"calls", b.calls}, {"apis", b.apis}, {"queries", b.queries}, {"runners", b.runners},
		{"languages", func() error { return b.languages(update) }}, {"overhead", b.overhead},
		{"crowd", func() error { return b.crowd(plugins) }}, {"mcp", b.mcp}, {"browser", b.browser}, {"inits", b.inits},
	} {
		if part == "" || part == p.name {
			failed = errors.Join(failed, p.time())
		}
	}
	return failed
}

type bench struct {
	work, parley, empty string
	rounds              int
	out                 io.Writer
}

// subject is a command that is timed.
type subject struct {
	name string
	home string // PARLEY_HOME, below work; "" for other programs
	args []string
	took []time.Duration

	dir    string   // the current folder; "" for that of the benchmark
	stdin  string   // the whole input
	before *subject // run, untimed, before each time; may be nil
}

func (b *bench) build() error {
	source := filepath.Join(b.work, "empty.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		return err
	}
	options := []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w"}
	var err error
	if b.parley, err = tree.Build(context.Background(), b.work, options...); err != nil {
		return err
	}
	args := append([]string{"build", "-o", b.empty}, options...)
	cmd := exec.Command("go", append(args, source)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", source, err, out)
	}
	return nil
}

func (b *bench) command(name, home string, args ...string) *subject {
	return &subject{name: name, home: home, args: append([]string{b.parley}, args...)}
}

func (b *bench) discovery() error {
	return b.table("Cold process",
		b.command("parley --help --json", "plain", "--help", "--json"),
		b.command("parley --list", "plain", "--list"),
		b.command("parley cdp --list", "plain", "cdp", "--list"),
		b.command("parley cdp Network --list", "plain", "cdp", "Network", "--list"),
		b.command("parley cdp Network.getCookies --describe", "plain", "cdp", "Network.getCookies", "--describe"),
		b.command("parley search \"take a picture\"", "plain", "search", "take a picture"),
	)
}

// calls times calls in runners, which is the default, and in Parley's own process, which a policy chooses.
func (b *bench) calls() error {
	if err := b.installGuests(); err != nil {
		return err
	}
	// In a home of its own: the runners of the other rows go on running.
	stop := b.command("", "cold", "runner", "stop")
	cold := b.command("the same Go call, no runner before", "cold", "text", "hash", "hello")
	cold.before = stop
	defer b.stopRunners("plain")
	defer b.stopRunners("cold")
	version := b.command("parley version", "plain", "version")
	wasi := b.command("kind wasi, C: rev word abc", "plain", "rev", "word", "abc")
	c := b.command("kind parley/1, C: echo echo 1", "plain", "echo", "echo", "1")
	golang := b.command("kind parley/1, Go: text hash hello", "plain", "text", "hash", "hello")
	local := b.command("the same Go call in process", "local", "text", "hash", "hello")
	err := b.table("Cold process that calls a tool, compiled code in the cache",
		version,
		wasi, b.command("the same in process", "local", "rev", "word", "abc"),
		c, b.command("the same in process", "local", "echo", "echo", "1"),
		golang, local, cold,
		b.command("the same, a process for each call", "plain", "text", "hash", "hello", "--isolate", "call"),
		b.command("kind parley/1, Go: json query", "plain", "json", "query", "--params", `{"data":{"a":1},"filter":".a"}`),
	)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		one, other *subject
		atMost     float64
	}{{golang, version, 2}, {c, version, 1.5}, {wasi, version, 1.5}, {cold, local, 1.3}} {
		x := float64(median(r.one.took)) / float64(median(r.other.took))
		fmt.Fprintf(b.out, "%.2f x  %s, beside %s (at most %.1f)%s\n", x, r.one.name, r.other.name, r.atMost,
			overMark(x > r.atMost))
	}
	return nil
}

// succeed runs Parley and returns an error unless it exits with 0.
func (b *bench) succeed(home string, args ...string) error {
	return b.time(b.command("", home, args...))
}

// table times the subjects and the baselines in turn, and prints one line for each.
func (b *bench) table(title string, subjects ...*subject) error {
	all := []*subject{{name: "an empty Go program", args: []string{b.empty}}}
	if node, err := exec.LookPath("node"); err == nil {
		all = append(all, &subject{name: "node -e 0", args: []string{node, "-e", "0"}})
	}
	all = append(all, subjects...)
	for round := range b.rounds + 1 {
		for _, s := range all {
			if err := b.time(s); err != nil {
				return err
			}
			if round == 0 {
				s.took = nil // the first round fills caches
			}
		}
	}
	base := median(all[0].took)
	fmt.Fprintf(b.out, "\n%s\n", title)
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "median ms\tleast ms\tx empty\t  ")
	for _, s := range all {
		m := median(s.took)
		fmt.Fprintf(w, "%.1f\t%.1f\t%.1f\t  %s\n", milliseconds(m), milliseconds(slices.Min(s.took)),
			float64(m)/float64(base), s.name)
	}
	return w.Flush()
}

func (b *bench) time(s *subject) error {
	if s.before != nil {
		if err := b.time(s.before); err != nil {
			return err
		}
	}
	// A file instead of a pipe: a pipe would be a goroutine of this process and part of the measurement.
	stderr, err := os.CreateTemp(b.work, "stderr")
	if err != nil {
		return err
	}
	defer os.Remove(stderr.Name())
	defer stderr.Close()
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stderr = b.env(s.home), s.dir, stderr
	if s.stdin != "" {
		cmd.Stdin = strings.NewReader(s.stdin)
	}
	start := time.Now()
	err = cmd.Run()
	s.took = append(s.took, time.Since(start))
	if err != nil {
		stderrText, _ := os.ReadFile(stderr.Name())
		return fmt.Errorf("%s: %w\n%s", strings.Join(s.args, " "), err, stderrText)
	}
	return nil
}

func (b *bench) env(home string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PARLEY_") {
			env = append(env, v)
		}
	}
	return append(env, "PARLEY_HOME="+filepath.Join(b.work, home))
}

var initLine = regexp.MustCompile(`^init (\S+) @\S+ ms, (\S+) ms clock, (\d+) bytes, (\d+) allocs`)

// inits prints what packages cost before main. It takes the least of all rounds, because the figure is a property of
// the code and the rest of the machine can only add to it.
func (b *bench) inits() error {
	const shown, flagged = 0.05, 0.5 // ms
	type cost struct {
		name   string
		ms     float64
		allocs string
	}
	least := map[string]cost{}
	for range b.rounds {
		cmd := exec.Command(b.parley, "version")
		var stderr bytes.Buffer
		cmd.Env, cmd.Stderr = append(b.env("plain"), "GODEBUG=inittrace=1"), &stderr
		if err := cmd.Run(); err != nil {
			return err
		}
		for line := range strings.Lines(stderr.String()) {
			m := initLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			ms, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return err
			}
			if before, ok := least[m[1]]; !ok || ms < before.ms {
				least[m[1]] = cost{m[1], ms, m[4]}
			}
		}
	}
	var costs []cost
	var total float64
	for _, c := range least {
		total += c.ms
		if c.ms > shown {
			costs = append(costs, c)
		}
	}
	slices.SortFunc(costs, func(x, y cost) int {
		if x.ms != y.ms {
			return int((y.ms - x.ms) * 1e6)
		}
		return strings.Compare(x.name, y.name)
	})
	fmt.Fprintf(b.out, "\nInitialisation of packages: %.2f ms in all, "+
		"those over %.2f ms (RATIONALE.md argues for those over %.1f)\n",
		total, shown, flagged)
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "least ms\tallocations\t  ")
	for _, c := range costs {
		fmt.Fprintf(w, "%.2f\t%s\t  %s%s\n", c.ms, c.allocs, c.name, overMark(c.ms > flagged))
	}
	return w.Flush()
}

func median[T cmp.Ordered](d []T) T {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
