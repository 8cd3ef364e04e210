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

// Promised limits: a well-behaved plugin returns within 100 ms whatever other plugins do, and a guest ends within
// 20 ms of its deadline. PARLEY_HAMMER=1 logs the measurements.
const (
	canaryLimit  = 100 * time.Millisecond
	overrunLimit = 20 * time.Millisecond
)

// busyFactor is how many times a promised limit a measurement may take, so that an ordinary run may share the machine.
const busyFactor = 10

// skipWithRace skips a test under the race detector: one that measures time, or that computes much and has no
// concurrency.
func skipWithRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("needs full speed; runs without the race detector")
	}
}

const canaryEvery = 5 * time.Millisecond

// canary calls a well-behaved plugin repeatedly.
type canary struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu        sync.Mutex
	latencies []time.Duration
}

func startCanary(t testing.TB, e *Engine) *canary {
	p := testGuest(t, e, "smallest", "smallest")
	if err := p.Prepare(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := requestFor(t, p, "call", "{}")
	ctx, stop := context.WithCancel(context.Background())
	c := &canary{cancel: stop}
	c.done.Go(func() {
		// Latencies are measured from when a call was due, so that a call that could not begin counts as delayed.
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

// TestManyAtOnce checks that calls of a well-behaved plugin return while attacks of each kind use all the time that
// they get.
func TestManyAtOnce(t *testing.T) {
	e := testEngine(t)
	var wg sync.WaitGroup
	var calls []func()
	kinds, each := map[string]int{}, 2
	if hammer {
		each = 6
	}
	for _, a := range loadAttacks(t) {
		if a.WantEnd != string(host.Timeout) || a.Heavy || kinds[a.Kind] >= each {
			continue
		}
		p := a.provider(t, e)
		if err := p.Prepare(context.Background()); err != nil {
			t.Fatal(err)
		}
		r := a.request(t, p, time.Second)
		a.mounts(t, r)
		kinds[a.Kind]++
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
	t.Logf("figures: a well-behaved plugin beside %d simultaneous attacks returned after: %s", len(calls), spread(answers))
	if len(answers) == 0 || slices.Max(answers) > busyFactor*canaryLimit && !raceDetector {
		t.Errorf("a well-behaved plugin returned after: %s", spread(answers))
	}
}

// since returns the latencies from the nth on, and their total number.
func (c *canary) since(n int) ([]time.Duration, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.latencies[n:]), len(c.latencies)
}

// spread describes the distribution of measured times.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "nothing measured"
	}
	all = slices.Sorted(slices.Values(all))
	at := func(share float64) time.Duration {
		return all[min(len(all)-1, int(share*float64(len(all))))].Round(time.Microsecond)
	}
	return fmt.Sprintf("median %v, p99 %v, max %v (of %d)", at(.5), at(.99), at(1), len(all))
}
