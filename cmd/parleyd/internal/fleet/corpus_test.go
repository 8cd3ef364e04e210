package fleet

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/wasmtest"
	"github.com/parley-tools/parley/manifest"
)

// reasons are the places of a front, and why its workers could not run a call.
type reasons struct {
	wasm.Away
	last string
}

func (r *reasons) Reserve(ctx context.Context, e wasm.Errand) (at wasm.Slot, reason string, err error) {
	at, reason, err = r.Away.Reserve(ctx, e)
	r.last = reason
	return at, reason, err
}

// TestCorpus publishes attacks of guests on their host, and runs them on a worker. Their outcomes are those on a
// machine alone, and the worker goes on. What no honest operator publishes, because it is no module, the worker refuses
// by itself. Attacks on folders have to run at the front. PARLEY_HAMMER=1 runs all others instead of the first one of
// each kind and outcome.
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
	away := &reasons{Away: w.front}
	engine := wasm.New(wasm.Config{HostVersion: parley.Version, Away: away})
	defer engine.Close(t.Context())
	kinds := map[string]int{}
	for _, a := range wasmtest.Attacks(t) {
		kind := a.Kind + " " + a.WantEnd
		isSlow := a.Heavy || a.WantText == "CPU time" // which the table says of a budget that only its own test has
		if kinds[kind]++; isSlow || strings.HasPrefix(a.Kind, "fs") ||
			kinds[kind] > 1 && os.Getenv("PARLEY_HAMMER") == "" {
			continue
		}
		t.Run(a.String(), func(t *testing.T) {
			module, m := a.Build(t)
			text, err := manifest.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			build := &store.Candidate{Path: "hostile.wasm", Wasm: module, ManifestJSON: text, Manifest: m,
				Digest: store.Digest(module, text)}
			_, invalid := store.NewCandidate(build.Path, module, text, nil, parley.Version)
			build.Signature = key.Sign(admit.BuildOf(build))
			if _, err := o.Publish(t.Context(), build); err != nil {
				t.Fatal(err)
			}
			p := engine.Provider(build.Source())
			r := &host.Request{Def: &m.Tools[0], Job: job.Job{Tool: m.Tools[0].Name, Params: []byte(a.Params(t)),
				Caller: "cli", CallID: "c1", Session: caller.Session{Name: "s1"}}}
			if r.Options.Timeout = time.Minute; a.WantEnd == string(host.Timeout) {
				r.Options.Timeout = time.Second / 2
			}
			r.Pool, away.last = "main", "it was not asked"
			result, err := p.Invoke(t.Context(), r)
			if err != nil {
				a.CheckOutcome(t, nil, host.AsError(err))
			} else {
				a.CheckOutcome(t, result, nil)
			}
			if isInvalid := invalid != nil; isInvalid != (away.last != "") ||
				isInvalid && a.WantEnd == string(host.InvalidPlugin) && !strings.Contains(away.last, a.WantText) {
				t.Errorf("the worker refused it: %q; it is invalid: %v", away.last, invalid)
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
