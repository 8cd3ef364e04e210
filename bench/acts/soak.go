package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// components are pages of UIkit's own tests, one or more components on each.
var components = strings.Fields("accordion alert button comment countdown drop dropdown filter form lightbox " +
	"modal nav navbar notification offcanvas slider sortable switcher tab upload")

// soakData is what hours of random verbs came to.
type soakData struct {
	Seed     uint64         `json:"seed"`
	Seconds  float64        `json:"seconds"`
	Calls    int            `json:"calls"`
	Failures map[string]int `json:"failures"` // by code
	Verbs    map[string]int `json:"verbs"`
	Slowest  slowCall       `json:"slowest"`
	// Internal are answers that no agent should see: internal faults, and calls without an answer.
	Internal []string        `json:"internal,omitempty"`
	Memory   []*memoryGrowth `json:"memory"`
	Orphans  []string        `json:"orphans,omitempty"`
}

// slowCall is the call that took longest.
type slowCall struct {
	Verb    string  `json:"verb"`
	Params  any     `json:"params"`
	Answer  string  `json:"answer"`
	Seconds float64 `json:"seconds"`
}

// memoryGrowth is the memory of a process, or of several, in MB.
type memoryGrowth struct {
	Of      string    `json:"of"`
	First   float64   `json:"first_mb"`
	Last    float64   `json:"last_mb"`
	PerHour float64   `json:"mb_per_hour"` // by least squares, without the first tenth of the time
	hours   []float64 // when it was sampled
	mb      []float64
}

func (d *soakData) print(w io.Writer) {
	fmt.Fprintf(w, "\n%d calls in %.0f s, seed %d\n", d.Calls, d.Seconds, d.Seed)
	for _, counts := range []map[string]int{d.Verbs, d.Failures} {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(w, "%s %d; ", name, counts[name])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "the slowest: %.1f s, %s %v: %.200s\n", d.Slowest.Seconds, d.Slowest.Verb, d.Slowest.Params,
		d.Slowest.Answer)
	fmt.Fprintln(w, "memory of\tfirst MB\tlast MB\tMB per hour")
	for _, m := range d.Memory {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\n", m.Of, m.First, m.Last, m.PerHour)
	}
	for _, line := range append(d.Internal, d.Orphans...) {
		fmt.Fprintln(w, line)
	}
}

// soak has agents do random verbs on component pages, and samples the memory of the processes.
func (b *bench) soak(ctx context.Context) error {
	for _, name := range components {
		if _, err := fs.Stat(os.DirFS(packages), "uikit/tests/"+name+".html"); err != nil {
			return fmt.Errorf("%w; run make programs", err)
		}
	}
	s := newSite()
	defer s.Close()
	const home = "soak"
	d := &soakData{Seed: b.seed, Failures: map[string]int{}, Verbs: map[string]int{}}
	b.Soak = d
	var walkers []*walker
	defer func() {
		for _, w := range walkers {
			_ = w.session.Close()
		}
	}()
	for i := range b.agents {
		a, err := b.connect(ctx, home, fmt.Sprint("agent", i))
		if err != nil {
			return err
		}
		w := &walker{agent: a, site: s, random: rand.New(rand.NewPCG(b.seed, uint64(i)))}
		walkers = append(walkers, w)
		if _, err := w.must(ctx, "page.open", map[string]any{"url": w.address()}); err != nil {
			return err
		}
	}
	keeper, err := keeperOf(b.side(home))
	if err != nil {
		return err
	}
	start := time.Now()
	walking, stop := context.WithDeadline(ctx, start.Add(b.duration))
	defer stop()
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, w := range walkers {
		all.Go(func() {
			for walking.Err() == nil {
				verb, params := w.choose()
				begun := time.Now()
				r, err := w.step(ctx, verb, params)
				took := time.Since(begun).Seconds()
				mu.Lock()
				if d.count(verb, r, err); took > d.Slowest.Seconds {
					d.Slowest = slowCall{verb, params, r.text, took}
				}
				mu.Unlock()
				if err != nil {
					return // its server is gone or hangs
				}
			}
		})
	}
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		every := max(min(b.duration/60, time.Minute), time.Second)
		for {
			d.sample(time.Since(start), keeper, walkers)
			b.say("%.0f s: keeper %.1f MB, Chrome %.1f MB", time.Since(start).Seconds(), last(d.Memory[0].mb),
				last(d.Memory[1].mb))
			select {
			case <-walking.Done():
				return
			case <-time.After(every):
			}
		}
	}()
	all.Wait()
	stop() // also when every agent gave up
	<-sampled
	d.Seconds = time.Since(start).Seconds()
	d.finish()
	own := append(below(keeper), process{pid: keeper, command: "the keeper"})
	for _, w := range walkers {
		own = append(own, process{pid: w.command.Process.Pid, command: "parley mcp"})
		_ = w.session.Close()
	}
	walkers = nil
	_, closeErr := b.side(home).must("cdp", "close", "--all")
	d.Orphans = remaining(own, b.home(home))
	b.add("soak: internal faults; processes that are left", "-", "0; 0",
		fmt.Sprintf("%d; %d", len(d.Internal), len(d.Orphans)), len(d.Internal)+len(d.Orphans) == 0)
	b.tell("soak: MB per hour of the keeper; of Chrome; of the servers", "-",
		fmt.Sprintf("%.1f; %.1f; %.1f", d.Memory[0].PerHour, d.Memory[1].PerHour, d.Memory[2].PerHour))
	return errors.Join(closeErr, ctx.Err())
}

func last(all []float64) float64 { return all[len(all)-1] }

func (d *soakData) count(verb string, r reply, err error) {
	d.Calls++
	d.Verbs[verb]++
	switch code := r.code(); {
	case err != nil:
		d.Internal = append(d.Internal, fmt.Sprintf("%s: no answer: %v", verb, err))
	case r.failed && (code == "" || code == "internal"):
		d.Internal = append(d.Internal, verb+": "+r.text)
		d.Failures["internal"]++
	case r.failed:
		d.Failures[code]++
	}
}

func (d *soakData) sample(at time.Duration, keeper int, walkers []*walker) {
	if d.Memory == nil {
		for _, of := range []string{"keeper", "Chrome", "servers"} {
			d.Memory = append(d.Memory, &memoryGrowth{Of: of})
		}
	}
	chrome, servers := 0.0, 0.0
	for _, p := range below(keeper) {
		chrome += memory(p.pid)
	}
	for _, w := range walkers {
		servers += memory(w.command.Process.Pid)
	}
	for i, mb := range []float64{memory(keeper), chrome, servers} {
		d.Memory[i].hours = append(d.Memory[i].hours, at.Hours())
		d.Memory[i].mb = append(d.Memory[i].mb, mb)
	}
}

// finish sets what follows from the samples.
func (d *soakData) finish() {
	for _, m := range d.Memory {
		warm := len(m.mb) / 10
		m.First, m.Last, m.PerHour = m.mb[warm], last(m.mb), slope(m.hours[warm:], m.mb[warm:])
	}
}

// slope returns that of the line with the least squares.
func slope(x, y []float64) float64 {
	var meanX, meanY, xy, xx float64
	for i := range x {
		meanX, meanY = meanX+x[i]/float64(len(x)), meanY+y[i]/float64(len(y))
	}
	for i := range x {
		xy, xx = xy+(x[i]-meanX)*(y[i]-meanY), xx+(x[i]-meanX)*(x[i]-meanX)
	}
	if xx == 0 {
		return 0
	}
	return xy / xx
}

// remaining returns those of some processes that still run half a minute after the browser was closed, and others of
// the data folder.
func remaining(own []process, home string) (left []string) {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		left = nil
		for _, p := range processes() {
			known := slices.ContainsFunc(own, func(o process) bool { return o.pid == p.pid })
			if known || strings.Contains(p.command, home) {
				left = append(left, fmt.Sprintf("still runs: %d %.150s", p.pid, p.command))
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// walker is an agent that does something random.
type walker struct {
	*agent
	site   *site
	random *rand.Rand
	refs   []string // of the latest snapshot
	blank  bool     // it showed none
}

func (w *walker) address() string {
	return w.site.URL + "/package/uikit/tests/" + one(w.random, components) + ".html"
}

func one[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// step runs a verb.
func (w *walker) step(ctx context.Context, verb string, params map[string]any) (r reply, err error) {
	r, err = w.call(ctx, "page."+verb, params)
	switch {
	case verb == "snapshot" && !r.failed:
		w.refs, w.blank = nil, true
		for _, m := range shownRef.FindAllStringSubmatch(r.text, -1) {
			w.refs, w.blank = append(w.refs, m[1]), false
		}
	case verb == "open" || verb == "go":
		w.refs, w.blank = nil, false
	}
	return r, err
}

// shownRef is a ref as a snapshot in JSON shows it.
var shownRef = regexp.MustCompile(`\\" ([a-z]{3}\d+)\b`)

// choose chooses a random verb. A page is left after some verbs, so that many documents come and go.
func (w *walker) choose() (verb string, params map[string]any) {
	away := map[string]any{"url": w.address(), "here": true}
	switch {
	case w.blank:
		return "open", away
	case len(w.refs) == 0:
		return "snapshot", map[string]any{}
	}
	element := one(w.random, w.refs)
	options := []func() (string, map[string]any){
		func() (string, map[string]any) { return "open", away },
		func() (string, map[string]any) {
			return "go", map[string]any{"to": one(w.random, []string{"back", "forward", "reload"})}
		},
		func() (string, map[string]any) { return "snapshot", map[string]any{} },
		func() (string, map[string]any) { return "text", map[string]any{} },
		func() (string, map[string]any) { return "fill", map[string]any{"element": element, "value": "Ada"} },
		func() (string, map[string]any) { return "check", map[string]any{"element": element} },
		func() (string, map[string]any) { return "hover", map[string]any{"element": element} },
		func() (string, map[string]any) {
			return "press", map[string]any{"key": one(w.random, []string{"Tab", "Escape", "Enter", "ArrowDown"})}
		},
		func() (string, map[string]any) { return "scroll", map[string]any{"element": element} },
		func() (string, map[string]any) {
			return "get", map[string]any{"element": element, "what": one(w.random, []string{"text", "box", "state", "html"})}
		},
		func() (string, map[string]any) { return "find", map[string]any{"element": "css=a"} },
		func() (string, map[string]any) { return "screenshot", map[string]any{} },
		func() (string, map[string]any) { return "evaluate", map[string]any{"expression": "document.title"} },
		func() (string, map[string]any) {
			return "drag", map[string]any{"element": element, "to": one(w.random, w.refs)}
		},
		func() (string, map[string]any) { return "requests", map[string]any{} },
		func() (string, map[string]any) { return "console", map[string]any{} },
		func() (string, map[string]any) {
			return "do", map[string]any{"steps": []any{[]any{"click", element}, []any{"press", "Escape"}, []any{"text"}}}
		},
	}
	if n := w.random.IntN(len(options) + 8); n < len(options) {
		return options[n]()
	}
	return "click", map[string]any{"element": element} // most often
}
