//go:build linux

package keeper

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
)

// A request under way, such as a stream, keeps the keeper running. After the last one it stops at the idle limit.
func TestIdleLimit(t *testing.T) {
	f := files{tempDir(t), "test"}
	lock, err := f.tryLock()
	if err != nil {
		t.Fatal(err)
	}
	defer f.unlock(lock)
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Idle: time.Minute}
		cfg.setDefaults()
		e := verb.New(muxtest.New(), cfg.rooms(false))
		k := &keeper{cfg: cfg, files: f, lock: lock, verbs: e, server: newServer(e, hello{}, time.Minute)}
		stopped := make(chan time.Time, 1)
		k.server.countRequest(1)
		go func() {
			k.run(t.Context())
			stopped <- time.Now()
		}()
		time.Sleep(10 * cfg.Idle)
		synctest.Wait()
		if len(stopped) > 0 {
			t.Error("the keeper stopped during a request")
		}
		k.server.countRequest(-1)
		idle := time.Now()
		if after := (<-stopped).Sub(idle); after < cfg.Idle || after > cfg.Idle+k.tickInterval() {
			t.Errorf("the keeper stopped %s after the last request, the limit is %s", after, cfg.Idle)
		}
	})
}

// A connection ends a grace after its last holder has released it or has gone, unless another one holds it by then.
func TestConnectionsEndAfterGrace(t *testing.T) {
	const grace = 30 * time.Second
	a, b := &client{}, &client{}
	for _, c := range []struct {
		name  string
		run   func(cs *connections)
		after time.Duration // from the begin; 0 if the connection stays
	}{
		{"a holder stays", func(cs *connections) { cs.hold("1", a) }, 0},
		{"released", func(cs *connections) { cs.hold("1", a); cs.release("1", a) }, grace},
		{"gone", func(cs *connections) { cs.hold("1", a); cs.hold("1", a); cs.releaseAll(a) }, grace},
		{"released twice", func(cs *connections) {
			cs.hold("1", a)
			cs.release("1", a)
			time.Sleep(grace / 2)
			cs.release("1", a)
			cs.releaseAll(a)
		}, grace},
		{"released by another", func(cs *connections) { cs.hold("1", a); cs.release("1", b); cs.releaseAll(b) }, 0},
		{"held by nobody", func(cs *connections) { cs.release("1", a); cs.releaseAll(a) }, 0},
		{"held again within the grace", func(cs *connections) {
			cs.hold("1", a)
			cs.release("1", a)
			time.Sleep(grace - time.Second)
			cs.hold("1", b)
		}, 0},
		{"held again and released again", func(cs *connections) {
			cs.hold("1", a)
			cs.releaseAll(a)
			time.Sleep(grace / 2)
			cs.hold("1", a)
			cs.release("1", a)
		}, grace + grace/2},
		{"one of two is gone", func(cs *connections) { cs.hold("1", a); cs.hold("1", b); cs.releaseAll(a) }, 0},
		{"both are gone", func(cs *connections) {
			cs.hold("1", a)
			cs.hold("1", b)
			cs.releaseAll(a)
			time.Sleep(time.Minute)
			cs.releaseAll(b)
		}, time.Minute + grace},
		{"another connection ends", func(cs *connections) { cs.hold("1", a); cs.hold("2", a); cs.release("2", a) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, ended := time.Now(), []time.Duration{}
				cs := newConnections(grace, func(id string) {
					if id == "1" {
						ended = append(ended, time.Since(began))
					}
				})
				c.run(cs)
				time.Sleep(time.Hour)
				synctest.Wait()
				want := []time.Duration{}
				if c.after > 0 {
					want = append(want, c.after)
				}
				if !slices.Equal(ended, want) {
					t.Errorf("the connection ends after %v, want %v", ended, want)
				}
				if len(cs.byID) > 0 != (c.after == 0 && c.name != "held by nobody") {
					t.Errorf("%d connections are known", len(cs.byID))
				}
			})
		})
	}
}

// A connection that has ended can be held again, and then ends again.
func TestConnectionComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := 0
		cs, c := newConnections(time.Second, func(string) { ends++ }), &client{}
		for n := range 3 {
			cs.hold("1", c)
			cs.releaseAll(c)
			time.Sleep(time.Minute)
			synctest.Wait()
			if ends != n+1 {
				t.Errorf("the connection has ended %d times, want %d", ends, n+1)
			}
		}
	})
}
