package fleet

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/internal/testhome"
)

// TestPathsStay has workers whose folders are broken, and one that fails with each code: no answer that a front gets
// has a path of the worker.
func TestPathsStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleettest.Start(t, fleettest.Options{}).URL, "")
	errand := wasm.Errand{Digest: w.digest, Pool: "main", Caller: "cli"}
	refused := 0
	// check calls a worker of a home, and asks whether it takes another call.
	check := func(what, home string, serve func(*task) error) {
		t.Helper()
		worker, err := w.config("a").Worker(WorkerConfig{Pool: "main", Slots: 1, Trust: []string{w.digest}},
			parley.FindDirs(home, os.Getenv), slog.New(slog.NewTextHandler(t.Output(), nil)))
		if err != nil {
			t.Fatal(err)
		}
		if serve != nil {
			worker.serve = serve
		}
		w.await("the worker", func() bool { return w.knows("a") })
		o := w.call(t.Context(), "work.rest", `{"ms":1}`, 30*time.Second)
		s, reason, err := w.front.Reserve(t.Context(), errand)
		if s != nil {
			s.Close()
		}
		texts, _ := json.Marshal([]any{o.answer, o.err, reason, err})
		for _, text := range []string{string(texts), fmt.Sprint(o.err), fmt.Sprint(err)} {
			if strings.Contains(text, home) {
				t.Errorf("%s: %s", what, text)
			}
		}
		if reason != "" {
			refused++
		}
		worker.Drain()
		_ = worker.Wait(t.Context())
		w.await("no worker", func() bool { return !w.knows("a") })
	}
	for _, part := range []string{"cache", "cache/wasm", "run", "state", "state/slots", "data"} {
		home := testhome.New(t)
		path := filepath.Join(home, part)
		_ = os.RemoveAll(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		check(part, home, nil)
	}
	home := testhome.New(t)
	for _, o := range host.Outcomes() {
		if o.Code != host.OK {
			check(string(o.Code), home, func(*task) error { return host.Errorf(o.Code, "open %s/cache: denied", home) })
		}
	}
	if refused < len(host.Outcomes())-1 {
		t.Errorf("only %d calls were refused", refused)
	}
}
