// Command acts measures the verbs of the plugin page: whole processes of Parley beside those of agent-browser and
// beside a bare evaluation, in pairs that take turns; what one click leaves behind; whether its effects are told; and,
// with -part soak, random verbs for hours. A table says what was measured before page was part of the host, and what is
// due. The ratios are more reliable than the milliseconds.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parley-tools/parley/bench/internal/npm"
	"github.com/parley-tools/parley/bench/internal/tree"
)

func main() {
	var b bench
	flag.IntVar(&b.n, "n", 30, "pairs of each verb, and repetitions of each effect whose time is measured")
	part := flag.String("part", "", "one of pairs, click, first, effects, soak; all but soak when empty")
	flag.StringVar(&b.parley, "parley", "", "binary to measure instead of one that is built from the tree")
	flag.DurationVar(&b.duration, "for", 2*time.Hour, "how long the soak lasts")
	flag.IntVar(&b.agents, "agents", 2, "agents of the soak; each has a page of the same browser")
	flag.Uint64Var(&b.seed, "seed", uint64(time.Now().UnixNano()), "of the random verbs of the soak")
	asJSON := flag.Bool("json", false, "print JSON instead of tables")
	flag.BoolVar(&b.verbose, "v", false, "show what is done, and the answers that were judged wrong")
	flag.Parse()
	tree.Main("acts", func(ctx context.Context) error { return b.run(ctx, *part, *asJSON) })
}

// bench is the benchmark.
type bench struct {
	n, agents      int
	seed           uint64
	duration       time.Duration
	parley, chrome string
	verbose        bool

	work string // a temporary folder; its path is short, because sockets are below it
	report
}

// report is what is printed.
type report struct {
	N       int       `json:"n"`
	Load    string    `json:"load"` // of the machine, before and after
	Figures []figure  `json:"figures"`
	Pairs   []*pair   `json:"pairs,omitempty"`
	Effects []effect  `json:"effects,omitempty"`
	Soak    *soakData `json:"soak,omitempty"`
}

// figure is a row of the table of what is due. Met is absent where nothing is due or nothing was measured.
type figure struct {
	Name     string `json:"name"`
	Before   string `json:"before"`
	Due      string `json:"due"`
	Measured string `json:"measured"`
	Met      *bool  `json:"met,omitempty"`
}

func (r *report) add(name, before, due, measured string, met bool) {
	r.Figures = append(r.Figures, figure{name, before, due, measured, &met})
}

// tell adds a figure of which nothing is due.
func (r *report) tell(name, before, measured string) {
	r.Figures = append(r.Figures, figure{Name: name, Before: before, Due: "reported", Measured: measured})
}

func (b *bench) run(ctx context.Context, part string, asJSON bool) (err error) {
	parts := map[string]func(context.Context) error{"pairs": b.pairs, "click": b.click, "first": b.first,
		"effects": b.effects, "soak": b.soak}
	chosen := []string{"pairs", "click", "first", "effects"}
	if part != "" {
		chosen = []string{part}
	}
	if parts[chosen[0]] == nil {
		return fmt.Errorf("there is no part %q", part)
	}
	if b.n < 1 || b.agents < 1 {
		return fmt.Errorf("-n %d -agents %d: expected at least 1", b.n, b.agents)
	}
	if b.work, err = os.MkdirTemp("", "acts-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.work)
	if b.parley == "" {
		b.parley, err = tree.Build(ctx, b.work, "-trimpath", "-ldflags=-s -w")
	} else {
		given := b.parley
		b.parley = filepath.Join(b.work, "parley.exe")
		err = tree.Install(given, b.parley)
	}
	if err == nil {
		b.chrome, err = tree.Chrome(b.parley, tree.Environment(b.home("doctor")))
	}
	if err != nil {
		return err
	}
	b.N, b.Load = b.n, load()
	for _, name := range chosen {
		b.say("part %s", name)
		if err := parts[name](ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	b.Load += " to " + load()
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(b.report)
	}
	return b.print(os.Stdout)
}

// home is a data folder of Parley.
func (b *bench) home(name string) string { return filepath.Join(b.work, name) }

func (b *bench) say(format string, args ...any) {
	if b.verbose {
		fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
	}
}

// sides returns both command lines, each with a browser of its own that shows an empty page.
func (b *bench) sides(ctx context.Context, s *site) (ours, theirs side, end func(), err error) {
	modules, err := npm.Fetch(ctx, "peers")
	if err != nil {
		return ours, theirs, nil, err
	}
	path, env, err := npm.AgentBrowser(modules, b.work, b.work, b.chrome)
	if err != nil {
		return ours, theirs, nil, err
	}
	ours = b.side("pair")
	theirs = side{path, append(os.Environ(), append(env, "AGENT_BROWSER_SESSION=acts")...), b.work}
	end = func() {
		_, _ = theirs.must("close", "--all")
		_, _ = ours.must("cdp", "close", "--all")
	}
	_, err = ours.must("page", "open", s.page(subjects[0]))
	if err == nil {
		_, err = theirs.must("open", s.page(subjects[0]))
	}
	if err != nil {
		end()
	}
	return ours, theirs, end, err
}

// side returns Parley's command line with a home of its own.
func (b *bench) side(home string) side { return side{b.parley, tree.Environment(b.home(home)), b.work} }

// load returns the load of the machine in the last minute.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return cmp.Or(first, "unknown")
}

func (r *report) print(out io.Writer) error {
	fmt.Fprintf(out, "n = %d, load of the machine %s\n\n", r.N, r.Load)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tbefore\tdue\tmeasured\t")
	for _, f := range r.Figures {
		mark := ""
		if f.Met != nil && !*f.Met {
			mark = "NOT MET"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.Name, f.Before, f.Due, f.Measured, mark)
	}
	if len(r.Pairs) > 0 {
		fmt.Fprintln(w, "\npage\tverb\tbeside\tms\tbeside ms\tratio\tclient CPU ms\tkeeper CPU ms")
		for _, p := range r.Pairs {
			fmt.Fprintf(w, "%d\t%s\t%s\t%.1f\t%.1f\t%.2f\t%.1f\t%.1f\n", p.Elements, p.Verb, p.Beside, p.MS, p.BesideMS, p.Ratio,
				p.ClientCPU, p.KeeperCPU)
		}
	}
	if len(r.Effects) > 0 {
		fmt.Fprintln(w, "\neffect\tafter ms\tthe button changes\tat return\tby the next answer\tms")
		for _, e := range r.Effects {
			fmt.Fprintf(w, "%s\t%d\t%t\t%t\t%t\t%.0f\n", e.Kind, e.After, e.Busy, e.AtReturn, e.ByNext, e.MS)
		}
	}
	if r.Soak != nil {
		r.Soak.print(w)
	}
	return w.Flush()
}

func median[T cmp.Ordered](all []T) T {
	s := slices.Sorted(slices.Values(all))
	return s[len(s)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
