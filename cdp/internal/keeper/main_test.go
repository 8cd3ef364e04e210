//go:build linux

package keeper

import (
	"testing"
	"testing/synctest"
	"time"
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
		e := newEngine(newFakeBrowser(), "test", false, &cfg)
		k := &keeper{cfg: cfg, files: f, lock: lock, engine: e, server: newServer(e, hello{})}
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
