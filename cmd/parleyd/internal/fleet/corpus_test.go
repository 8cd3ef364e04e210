package fleet

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/wasmtest"
	"github.com/parley-tools/parley/manifest"
)

// TestCorpus publishes attacks of guests on their host, and runs them on a worker. Their outcomes are those on a
// machine alone, and the worker goes on. Attacks on folders have to run at the front. PARLEY_HAMMER=1 runs all others
// instead of the first ones of each kind.
func TestCorpus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	o := w.operator()
	key, err := signature.NewSecretKey()
	if err != nil {
		t.Fatal(err)
	}
	w.digest = string(key.Public()) // whom the worker trusts
	worker := w.start("a", 2)
	engine := wasm.New(wasm.Config{HostVersion: parley.Version, Away: w.front})
	defer engine.Close(t.Context())
	kinds := map[string]int{}
	for _, a := range wasmtest.Attacks(t) {
		if kinds[a.Kind]++; a.NeverRuns() || strings.HasPrefix(a.Kind, "fs") ||
			kinds[a.Kind] > 2 && os.Getenv("PARLEY_HAMMER") == "" {
			continue
		}
		t.Run(a.String(), func(t *testing.T) {
			module, m := a.Build(t)
			text, err := manifest.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			build, err := store.NewCandidate("hostile.wasm", module, text, nil, parley.Version)
			if err != nil {
				t.Skip("refused before it is published: ", err)
			}
			build.Signature = key.Sign(admit.BuildOf(build))
			if _, err := o.Publish(t.Context(), build); err != nil {
				t.Fatal(err)
			}
			p := engine.Provider(build.Source())
			r := &host.Request{Def: &m.Tools[0], Job: host.Job{Tool: m.Tools[0].Name, Params: []byte(a.Params(t)),
				Caller: "cli", CallID: "c1", Session: host.Session{Name: "s1"}}}
			if r.Options.Timeout = 20 * time.Second; a.WantEnd == string(host.Timeout) {
				r.Options.Timeout = time.Second
			}
			result, err := pooled{p, t}.Invoke(t.Context(), r)
			if err != nil {
				a.CheckOutcome(t, nil, host.AsError(err))
			} else {
				a.CheckOutcome(t, result, nil)
			}
		})
	}
	w.await("all slots", func() bool { return w.free() == 2 })
	w.await("no guest runs", func() bool { return !worker.isBusy() })
	select {
	case <-worker.gone:
		t.Error("the worker has ended")
	default:
	}
}

// isBusy reports whether a guest runs on a worker.
func (p *process) isBusy() bool {
	return slices.ContainsFunc(wasm.Runners(parley.FindDirs(p.home, os.Getenv).Run),
		func(r wasm.RunnerInfo) bool { return r.Busy })
}
