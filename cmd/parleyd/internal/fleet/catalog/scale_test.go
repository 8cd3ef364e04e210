package catalog

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/host"
)

// serverMemory returns the bytes that a server takes.
func serverMemory(t *testing.T, server *fleettest.Server) int64 {
	t.Helper()
	response, err := http.Get(server.Monitor + "/varz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var of struct{ Mem int64 }
	if err := json.NewDecoder(response.Body).Decode(&of); err != nil {
		t.Fatal(err)
	}
	return of.Mem
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var of runtime.MemStats
	runtime.ReadMemStats(&of)
	return int64(of.HeapAlloc)
}

// Ten thousand plugins are published at once. A new front lists them within half a second, and a change is seen within
// 50 ms. Without PARLEY_HAMMER=1 they are two thousand; with it the test also waits until all manifests are here, which
// takes minutes of CPU time.
func TestTenThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("publishes 2,000 plugins")
	}
	many := 2_000
	if os.Getenv("PARLEY_HAMMER") != "" {
		many = 10_000
	}
	server, js := fleet(t)
	idle := serverMemory(t, server)
	began := time.Now()
	var all sync.WaitGroup
	failures := make(chan error, many)
	turns := make(chan struct{}, 32) // so many operators
	for i := range many {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			c, err := buildOf("smallest", fmt.Sprintf("fleet%05d", i), "", fmt.Sprintf("Do nothing, for department %05d", i))
			if err == nil {
				_, err = (&Catalog{js}).Publish(t.Context(), c)
			}
			if err != nil {
				failures <- err
			}
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		t.Fatal(err)
	}
	took := time.Since(began)
	var disk int64
	_ = filepath.Walk(server.StoreDir, func(_ string, info os.FileInfo, _ error) error {
		disk += info.Size()
		return nil
	})
	t.Logf("%d plugins published at once in %v; the server has %d MB on disk, and %d MB more in memory", many,
		took.Round(time.Millisecond), disk>>20, (serverMemory(t, server)-idle)>>20)

	before := heap()
	home := t.TempDir()
	began = time.Now()
	f := start(t, home, server.URL)
	listed := func() int {
		infos, err := f.List()
		if err != nil {
			t.Fatal(err)
		}
		return len(infos)
	}
	none := len(must(start(t, t.TempDir(), "").List()))
	await(t, "all are listed", func() bool { return listed() == none+many })
	ready := time.Since(began)
	t.Logf("a new front lists all after %v, with %d MB of heap more", ready.Round(time.Millisecond), (heap()-before)>>20)
	if ready > 5*time.Second {
		t.Errorf("a new front lists all after %v", ready)
	}

	// changes makes changes, each of which is to be seen soon.
	changes := func(when string) {
		var seen []time.Duration
		for i := range 20 {
			name := when + strconv.Itoa(i)
			if _, err := (&Catalog{js}).Publish(t.Context(), build(t, "smallest", name, "", "")); err != nil {
				t.Fatal(err)
			}
			seen = append(seen, await(t, name+" is seen", func() bool {
				catalog, err := f.Catalog()
				if err != nil {
					t.Fatal(err)
				}
				_, ok := catalog.Provider(name)
				return ok
			}).Round(time.Millisecond))
		}
		slices.Sort(seen)
		t.Logf("a change is seen, %s: median %v, at most %v", when, seen[10], seen[19])
		if seen[10] > 500*time.Millisecond {
			t.Errorf("changes are seen after %v", seen)
		}
	}
	changes("early")
	described := await(t, "a plugin is described while manifests are fetched", func() bool {
		_, err := f.Describe(t.Context(), fmt.Sprintf("fleet%05d.call", many-1), 2)
		return err == nil
	})
	t.Logf("a description while manifests are fetched comes after %v", described.Round(time.Millisecond))

	late := 0
	if os.Getenv("PARLEY_HAMMER") != "" {
		hammer(t, f, began)
		t.Logf("with searches, the heap has %d MB more than without a fleet", (heap()-before)>>20)
		changes("late")
		late = 20
	}
	f.stop()
	began = time.Now()
	f = start(t, home, "")
	if n, want := listed(), none+many+20+late; n != want {
		t.Errorf("%d of %d are listed without the fleet", n, want)
	}
	file, err := os.Stat(filepath.Join(home, "state", fileName))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a start without the fleet lists all after %v; their file has %d MB", time.Since(began).Round(time.Millisecond),
		file.Size()>>20)
}

// hammer waits until all manifests are here, and searches.
func hammer(t *testing.T, f *front, began time.Time) {
	arrived := func() (n int) {
		f.mirror.mu.Lock()
		defer f.mirror.mu.Unlock()
		for _, of := range f.mirror.plugins {
			if of.admitted {
				n++
			}
		}
		return n
	}
	for last := -1; arrived() > last; time.Sleep(5 * time.Second) {
		last = arrived()
	}
	t.Logf("%d manifests are here after %v", arrived(), time.Since(began).Round(time.Second))
	for _, what := range []string{"the first search", "another"} {
		searched := time.Now()
		if _, err := f.Search(t.Context(), "do nothing"); err != nil {
			t.Error(err)
		}
		t.Logf("%s takes %v", what, time.Since(searched).Round(time.Millisecond))
	}
}

func must(infos []host.Info, err error) []host.Info {
	if err != nil {
		panic(err)
	}
	return infos
}
