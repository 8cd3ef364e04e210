package wasm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestHammer calls hostile plugins and a well-behaved one, four at once, and checks that the process keeps no
// resources. PARLEY_HAMMER=1 makes 2,000 calls with all attacks that run.
func TestHammer(t *testing.T) {
	if !raceDetector && !hammer {
		t.Skip("runs with the race detector, and with PARLEY_HAMMER=1")
	}
	calls := 100
	if hammer {
		calls = 2000
	}
	e := testEngine(t)
	type pair struct {
		attack
		p *Provider
	}
	var pairs []pair
	cases := slices.DeleteFunc(loadAttacks(t), attack.NeverRuns)
	for _, a := range sample(cases, 60, func(a attack) string { return a.Kind }) {
		p := a.provider(t, e)
		_ = p.Prepare(context.Background())
		pairs = append(pairs, pair{a, p})
	}
	honest := testGuest(t, e, "echo", "echo")
	work := func(calls int) {
		next := atomic.Int64{}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := int(next.Add(1)); i <= calls; i = int(next.Add(1)) {
					if i%4 == 0 {
						want := fmt.Sprintf(`{"value":%d}`, i)
						if result, err := honest.Invoke(context.Background(), requestFor(t, honest, "echo",
							want)); err != nil ||

							string(result.Data) != want {
							t.Errorf("%v %v", result, err)
						}
						continue
					}
					x := pairs[i%len(pairs)]
					r := x.request(t, x.p, 20*time.Millisecond)
					x.mounts(t, r)
					_, _ = x.p.Invoke(context.Background(), r)
				}
			})
		}
		wg.Wait()
	}
	work(len(pairs) + len(pairs)/3) // calls each at least once
	before := measure(t)
	work(calls)
	after := measure(t)
	t.Logf("figures: %d calls of %d hostile plugins and a well-behaved one: before %v, after %v", calls, len(pairs),
		before, after)
	if after.goroutines > before.goroutines+2 || after.files > before.files || after.maps > before.maps+20 ||
		after.rss > before.rss+rssTolerance {
		t.Errorf("before %v, after %v", before, after)
	}
}

// rssTolerance is how much memory may remain for later calls. The race detector keeps shadow memory of every address
// that was ever used.
var rssTolerance = func() int {
	if raceDetector {
		return 512 << 20
	}
	return 64 << 20
}()

// measured counts resources that calls might leave behind.
type measured struct{ goroutines, files, maps, rss int }

func (m measured) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d memory maps, %d MiB resident", m.goroutines, m.files, m.maps,
		m.rss>>20)
}

func measure(t testing.TB) measured {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	debug.FreeOSMemory()
	debug.FreeOSMemory() // frees what finalizers released
	m := measured{goroutines: runtime.NumGoroutine(), files: openFiles()}
	m.maps = bytes.Count(readFile(t, "/proc/self/maps"), []byte("\n"))
	var size, resident int
	if _, err := fmt.Sscan(string(readFile(t, "/proc/self/statm")), &size, &resident); err != nil {
		t.Fatal(err)
	}
	m.rss = resident * os.Getpagesize()
	return m
}
