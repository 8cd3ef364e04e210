package host_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
)

// TestCallNamedLikeItsPlugin holds that a group may have the name of its plugin.
func TestCallNamedLikeItsPlugin(t *testing.T) {
	text := strings.NewReplacer(`"order`, `"shop`, `"group": "shop"`, `"group": "shop"`).Replace(shop)
	h := newHost(t, host.Config{}, newFake(t, text, nil))
	for _, name := range []string{"shop.shop.list", "shop__shop__list"} {
		if a := call(t, h, name, "{}"); a.Err != nil {
			t.Errorf("%s: %v", name, a.Err)
		}
	}
	if a, err := h.Catalog().FindIn("shop", "shop.list"); err != nil || a.Name() != "shop.shop.list" {
		t.Errorf("got %s, %v", a.Name(), err)
	}
}

// TestCallInterruptedWhileAsking holds that Ctrl-C at the question is an interruption, not a fault.
func TestCallInterruptedWhileAsking(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := newHost(t, host.Config{
		Policy: policy(func(host.Ask) (host.Decision, error) { return host.Decision{Verdict: host.Confirm}, nil }),
		Confirm: func(ctx context.Context, _ host.Ask, _ string) (bool, error) {
			cancel()
			<-ctx.Done()
			return false, ctx.Err()
		},
	}, newFake(t, shop, nil))
	failsWith(t, h.Call(ctx, host.Call{Name: "shop.echo", Caller: "cli"}), host.Interrupted)
}

// TestSessionInUseIsNotForgotten holds that a session is forgotten a day after it was used last, not after it changed last.
func TestSessionInUseIsNotForgotten(t *testing.T) {
	now := time.Now()
	a := newAgent(t, &host.Sessions{Dir: t.TempDir(), Now: func() time.Time { return now }})
	describe := func() {
		if _, err := a.h.Describe(t.Context(), "cli", "s", "shop.add", 2); err != nil {
			t.Fatal(err)
		}
	}
	describe()
	for range 3 {
		now = now.Add(20 * time.Hour)
		describe()
	}
	if tier := a.fails("s", "shop.add"); tier != 3 {
		t.Errorf("tier %d: it was forgotten while in use", tier)
	}
}

func TestSessionsInAnOddFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state[1]*?")
	a := newAgent(t, &host.Sessions{Dir: dir})
	for range 20 {
		a.keeps("s")
	}
	files, err := os.ReadDir(filepath.Join(dir, "results"))
	if err != nil || len(files) > 16 {
		t.Errorf("%d results are kept, %v", len(files), err)
	}
}
