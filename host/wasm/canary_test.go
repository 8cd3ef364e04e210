package wasm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
)

// What is promised, and asserted at ten times of it, for machines that do other things meanwhile: an honest plugin answers within 100 ms
// whatever another one does, and a guest ends within 20 ms of its deadline. PARLEY_HAMMER=1 prints what is measured.
const (
	canaryLimit  = 100 * time.Millisecond
	overrunLimit = 20 * time.Millisecond
	busyFactor   = 10
)

// skipWithRace leaves a test to the run without the race detector: one that measures, or computes much with nothing concurrent in it.
func skipWithRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("this wants the speed of code without the race detector")
	}
}

const canaryEvery = 5 * time.Millisecond

// canary calls an honest plugin again and again, beside whatever else goes on.
type canary struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu        sync.Mutex
	latencies []time.Duration
}

func startCanary(t testing.TB, e *Engine) *canary {
	p := guest(t, e, "smallest", "smallest")
	if err := p.Prepare(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := requestFor(t, p, "call", "{}")
	ctx, stop := context.WithCancel(context.Background())
	c := &canary{cancel: stop}
	c.done.Go(func() {
		// Times count from when a call was due, so that one that could not even begin counts as one that waited.
		for due := time.Now(); ctx.Err() == nil; due = maxTime(due.Add(canaryEvery), time.Now()) {
			time.Sleep(time.Until(due))
			if _, err := p.Invoke(context.Background(), r); err != nil {
				t.Errorf("the canary: %v", err)
				return
			}
			c.mu.Lock()
			c.latencies = append(c.latencies, time.Since(due))
			c.mu.Unlock()
		}
	})
	return c
}

func maxTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (c *canary) stop() {
	c.cancel()
	c.done.Wait()
}

// TestManyAtOnce: beside one attack of each kind that takes all the time that it gets, all at once, an honest plugin goes on answering.
func TestManyAtOnce(t *testing.T) {
	e := testEngine(t)
	var wg sync.WaitGroup
	var calls []func()
	kinds, each := map[string]int{}, 6
	if raceDetector { // which makes compiling them ten times slower
		each = 2
	}
	for _, a := range loadAttacks(t) {
		if a.wantEnd != string(host.Timeout) || a.heavy || kinds[a.kind] >= each {
			continue
		}
		p := a.provider(t, e)
		if err := p.Prepare(context.Background()); err != nil {
			t.Fatal(err)
		}
		r := a.request(t, p, time.Second)
		a.mounts(t, r)
		kinds[a.kind]++
		calls = append(calls, func() {
			if _, err := p.Invoke(context.Background(), r); host.AsError(err).Code != host.Timeout {
				t.Errorf("%v: %v", a, err)
			}
		})
	}
	c := startCanary(t, e)
	for _, call := range calls {
		wg.Go(call)
	}
	wg.Wait()
	c.stop()
	answers, _ := c.since(0)
	t.Logf("figures: an honest plugin beside %d attacks at once answered: %s", len(calls), spread(answers))
	if len(answers) == 0 || slices.Max(answers) > busyFactor*canaryLimit && !raceDetector {
		t.Errorf("an honest plugin answered: %s", spread(answers))
	}
}

// since returns the answers from the nth on, and how many there are.
func (c *canary) since(n int) ([]time.Duration, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.latencies[n:]), len(c.latencies)
}

// spread says how a measured time is distributed.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "nothing measured"
	}
	all = slices.Sorted(slices.Values(all))
	at := func(share float64) time.Duration {
		return all[min(len(all)-1, int(share*float64(len(all))))].Round(time.Microsecond)
	}
	return fmt.Sprintf("median %v, p99 %v, most %v (of %d)", at(.5), at(.99), at(1), len(all))
}
