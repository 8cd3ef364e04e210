package quota

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// at returns a counter of a folder whose clock shows a moment.
func at(dir string, now *time.Time) *Counter {
	c := Open(dir)
	c.now = func() time.Time { return *now }
	return c
}

func in12(key string) map[string]string { return map[string]string{key: "policy.toml:12"} }

// TestLimits makes calls, each a time after the last one, until one is refused. Each call is made by a new counter, as
// by a new process.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		quota  grant.Quota
		bytes  int64
		after  time.Duration
		calls  int // that are allowed, at most 100
		refuse string
	}{
		{"rate at once", grant.Quota{Rate: 10, Per: time.Second, In: in12("rate")}, 0, 0, 10,
			"mcp:x calls more than 10 times in 1s (rate in policy.toml:12); nothing was run; call again in 100ms"},
		{"rate evenly", grant.Quota{Rate: 10, Per: time.Second}, 0, 100 * time.Millisecond, 100, ""},
		{"rate a bit too fast", grant.Quota{Rate: 10, Per: time.Second, In: in12("rate")}, 0, 50 * time.Millisecond, 19,
			"call again in 50ms"},
		{"rate in minutes", grant.Quota{Rate: 3, Per: time.Minute, In: in12("rate")}, 0, time.Second, 3,
			"call again in 17s"},
		{"calls", grant.Quota{DailyCalls: 7, In: in12("daily_calls")}, 9, time.Minute, 7,
			"mcp:x has made 7 of 7 calls today (daily_calls in policy.toml:12); nothing was run; call again in 11h53m0s"},
		{"bytes", grant.Quota{DailyBytes: 100, In: in12("daily_bytes")}, 30, time.Hour, 4,
			"mcp:x has received 120 of 100 bytes today (daily_bytes in policy.toml:12); nothing was run; call again in 8h0m0s"},
		{"a new day", grant.Quota{DailyCalls: 7, DailyBytes: 100}, 30, 8 * time.Hour, 100, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, now := filepath.Join(t.TempDir(), "quota"), noon
			c.quota.Account = "mcp:x"
			for i := 0; ; i++ {
				done, err := at(dir, &now).Take(&c.quota)
				if err == nil {
					done(c.bytes)
				}
				if i == 100 && err == nil && c.calls == 100 {
					return
				}
				if err != nil || i == 100 {
					if i != c.calls || !errors.Is(err, host.Busy) || c.refuse == "" || !strings.HasSuffix(err.Error(), c.refuse) {
						t.Errorf("after %d calls: %v", i, err)
					}
					other := c.quota
					if other.Account = "mcp:y"; i == 100 {
						return
					}
					if done, err := at(dir, &now).Take(&other); err != nil {
						t.Errorf("another caller: %v", err)
					} else {
						done(0)
					}
					return
				}
				now = now.Add(c.after)
			}
		})
	}
}

// TestConcurrent checks that calls of a caller which are in progress are counted over all counters of a folder, and
// exactly as many calls of many goroutines as a day has.
func TestConcurrent(t *testing.T) {
	dir, now := t.TempDir(), noon
	q := &grant.Quota{Account: "cli", Concurrent: 2, In: in12("concurrent")}
	a, b := at(dir, &now), at(dir, &now)
	first, errFirst := a.Take(q)
	second, errSecond := b.Take(q)
	if _, err := a.Take(q); errFirst != nil || errSecond != nil || !errors.Is(err, host.Busy) ||
		!strings.Contains(err.Error(), "cli has 2 calls in progress (concurrent in policy.toml:12)") {
		t.Fatal(errFirst, errSecond, err)
	}
	second(1)
	third, err := a.Take(q)
	if err != nil {
		t.Fatal(err)
	}
	first(1)
	third(1)

	daily := &grant.Quota{Account: "cli", DailyCalls: 150, DailyBytes: 1 << 40}
	var allowed atomic.Int32
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			c := a
			if i%2 == 0 {
				c = b
			}
			if done, err := c.Take(daily); err == nil {
				allowed.Add(1)
				done(2)
			}
		})
	}
	all.Wait()
	if allowed.Load() != 150 {
		t.Errorf("%d calls were allowed", allowed.Load())
	}
	data, err := os.ReadFile(filepath.Join(dir, nameOf("cli")+".json"))
	if err != nil || !strings.Contains(string(data), `"calls":150,"bytes":300,`) {
		t.Errorf("%s %v", data, err)
	}
}

// TestFiles checks that a damaged file counts as none, that a refused call releases its slot, that files of days before
// yesterday are removed, that a clock which was set back does not lock a caller out, and that nothing runs that cannot
// be counted.
func TestFiles(t *testing.T) {
	dir, now := t.TempDir(), noon
	c := at(dir, &now)
	q := &grant.Quota{Account: "cli", Rate: 1, Per: time.Minute, Concurrent: 1, DailyCalls: 5}
	path := filepath.Join(dir, nameOf("cli")+".json")
	for _, content := range []string{"", "{", `{"day":"2026-07-01","calls":"x"}`, `{"day":"2026-07-02","calls":9}`,
		`{"next":"2027-01-01T00:00:00Z"}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
		done, err := c.Take(q)
		if err != nil {
			t.Fatalf("%q: %v", content, err)
		}
		if _, err := c.Take(q); !errors.Is(err, host.Busy) {
			t.Errorf("%q: %v", content, err)
		}
		done(1)
		if _, err := c.Take(q); !errors.Is(err, host.Busy) || !strings.Contains(err.Error(), "times in") {
			t.Errorf("%q: %v", content, err)
		}
	}
	old := noon.Add(-72 * time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if done, err := c.Take(&grant.Quota{Account: "mcp:new", DailyCalls: 1}); err != nil {
		t.Fatal(err)
	} else {
		done(0)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.json")); fmt.Sprint(left) !=
		fmt.Sprint([]string{filepath.Join(dir, nameOf("mcp:new")+".json")}) {
		t.Errorf("left: %q", left)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := at(filepath.Join(blocked, "quota"), &now).Take(q); !errors.Is(err, host.Unavailable) ||
		!strings.Contains(err.Error(), "the calls of cli cannot be counted") {
		t.Error(err)
	}
}

// BenchmarkTake measures what a quota adds to a call.
func BenchmarkTake(b *testing.B) {
	c := Open(b.TempDir())
	q := &grant.Quota{Account: "cli", Rate: 1_000_000, Per: time.Second, Concurrent: 10, DailyCalls: 1 << 40,
		DailyBytes: 1 << 50}
	for b.Loop() {
		done, err := c.Take(q)
		if err != nil {
			b.Fatal(err)
		}
		done(100)
	}
}
