// Package quota counts what callers use, for all processes of this user, and refuses what exceeds their quotas.
package quota

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/slots"
	"github.com/parley-tools/parley/manifest"
)

// Counter counts in the files of a folder, one for each account. A write is not flushed: a crash of the machine may
// lose the last calls, a crash of a process loses none. It is safe for concurrent use.
type Counter struct {
	dir   string
	now   func() time.Time
	slots slots.Pool
	mu    sync.Mutex // so that this process waits for its own turn without polling
}

var _ host.Quotas = (*Counter)(nil)

// Open returns the counter of a folder, which is made when the first call is counted.
func Open(dir string) *Counter {
	return &Counter{dir: dir, now: time.Now, slots: slots.Pool{Dir: filepath.Join(dir, "calls")}}
}

// use is what an account has used.
type use struct {
	Account string    `json:"account"`
	Day     string    `json:"day"` // in UTC
	Calls   int       `json:"calls"`
	Bytes   int64     `json:"bytes"`
	Next    time.Time `json:"next"` // when the next call would be due if calls came evenly
}

// Take implements [host.Quotas]. What is refused is not counted. With a rate of N calls in a period, N may come at
// once, and then one whenever a period divided by N has passed.
func (c *Counter) Take(q *grant.Quota) (done func(bytes int64), err error) {
	release := func() {}
	if q.Concurrent > 0 {
		release, err = c.slots.Acquire(context.Background(), nameOf(q.Account), q.Account, q.Concurrent, false)
		if err != nil {
			return nil, exceeded(q, "concurrent", "when one has ended", "has %d calls in progress", q.Concurrent)
		}
	}
	if q.Rate+q.DailyCalls+q.DailyBytes > 0 {
		err = c.change(q.Account, func(u *use, now time.Time) error { return u.take(q, now) })
	}
	if err != nil {
		release()
		return nil, err
	}
	return func(bytes int64) {
		release()
		if q.DailyBytes > 0 && bytes > 0 {
			_ = c.change(q.Account, func(u *use, _ time.Time) error {
				u.Bytes += bytes
				return nil
			})
		}
	}, nil
}

// take counts a call, unless that would exceed the quota.
func (u *use) take(q *grant.Quota, now time.Time) error {
	tomorrow := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
	switch {
	case q.DailyCalls > 0 && u.Calls >= q.DailyCalls:
		return exceeded(q, "daily_calls", in(tomorrow), "has made %d of %d calls today", u.Calls, q.DailyCalls)
	case q.DailyBytes > 0 && u.Bytes >= int64(q.DailyBytes):
		return exceeded(q, "daily_bytes", in(tomorrow), "has received %d of %d bytes today", u.Bytes, q.DailyBytes)
	}
	if q.Rate > 0 {
		gap := q.Per / time.Duration(q.Rate)
		due := u.Next
		if due.Before(now) || due.After(now.Add(q.Per)) { // the clock was set back, or the quota was changed
			due = now
		}
		if wait := due.Add(gap).Sub(now) - q.Per; wait > 0 {
			return exceeded(q, "rate", in(wait), "calls more than %d times in %v", q.Rate, q.Per)
		}
		u.Next = due.Add(gap)
	}
	u.Calls++
	return nil
}

// in says how long to wait, in whole milliseconds, or seconds from one minute on.
func in(wait time.Duration) string {
	unit := time.Millisecond
	if wait > time.Minute {
		unit = time.Second
	}
	return "in " + (wait + unit - 1).Truncate(unit).String()
}

// exceeded returns the error for a call that would exceed a quota: what was used, the limit and where it is written,
// and when to call again.
func exceeded(q *grant.Quota, key, again, used string, of ...any) *host.Error {
	return host.Errorf(host.Busy, "%s %s (%s in %s); nothing was run; call again %s", host.Printable(q.Account),
		fmt.Sprintf(used, of...), key, q.In[key], again)
}

// lockTimeout bounds how long a call waits for other processes to count theirs, which takes microseconds.
const lockTimeout = 5 * time.Second

// change changes what an account has used, while no other process does. A file that cannot be read, as after a crash
// of the machine, counts as missing.
func (c *Counter) change(account string, do func(u *use, now time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := func(err error) error {
		return &host.Error{Code: host.Unavailable, Cause: err, Steps: []step.Step{step.Operator(step.OpDoctor)},
			Message: fmt.Sprintf("the calls of %s cannot be counted in %s, and the policy limits them: %v; nothing was run",
				host.Printable(account), c.dir, err)}
	}
	if err := protect.Dir(c.dir); err != nil {
		return failed(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	lock := protect.NewLock(filepath.Join(c.dir, "quota.lock"))
	defer lock.Close()
	if _, err := lock.TryLockContext(ctx, time.Millisecond); err != nil {
		return failed(err)
	}
	path, now := filepath.Join(c.dir, nameOf(account)+".json"), c.now()
	var u use
	data, err := protect.Read(path, fileBytes)
	if err != nil || json.Unmarshal(data, &u) != nil {
		u = use{}
	}
	if os.IsNotExist(err) {
		c.prune(now)
	}
	u.Account = manifest.Clip(host.Printable(account), maxAccount)
	if today := now.UTC().Format(time.DateOnly); u.Day != today {
		u.Day, u.Calls, u.Bytes = today, 0, 0
	}
	if err := do(&u, now); err != nil {
		return err
	}
	if err := u.write(path); err != nil {
		return failed(err)
	}
	return nil
}

// write writes the file in place and with the same length, because replacing a file costs milliseconds.
func (u *use) write(path string) error {
	data, err := manifest.Marshal(u)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, bytes.Repeat([]byte(" "), max(0, fileBytes-len(data)))...))
	return errors.Join(err, f.Close())
}

// fileBytes is the size of a file; the JSON text is padded with spaces. An account has at most [maxAccount] bytes.
const (
	fileBytes  = 1 << 10
	maxAccount = 256
)

// prune removes the files of accounts that have not been used since yesterday.
func (c *Counter) prune(now time.Time) {
	files, _ := filepath.Glob(filepath.Join(c.dir, "*.json"))
	for _, file := range files {
		if changed := protect.ModTime(file); now.Sub(changed) > 48*time.Hour {
			_ = os.Remove(file)
		}
	}
}

// nameOf returns the name of the files of an account.
func nameOf(account string) string {
	sum := sha256.Sum256([]byte(account))
	return hex.EncodeToString(sum[:12])
}
