// Package deadline has contexts whose deadline can be suspended: the time that a person takes to decide does not count
// as that of a call.
package deadline

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// limited is a context with a deadline that can be suspended. It ends with its parent, too.
type limited struct {
	parent context.Context
	done   chan struct{}
	unhook func() bool // from the parent

	mu        sync.Mutex
	err       error
	at        time.Time     // the deadline while it is not suspended
	left      time.Duration // until the deadline while it is suspended
	suspended int           // how many have suspended it
	timer     *time.Timer
}

// key is the key of the nearest limited context in a context.
type key struct{}

// With returns a context that ends after a time, in which only the time counts during which it is not suspended. It is
// otherwise like [context.WithTimeout].
func With(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	c := &limited{parent: parent, done: make(chan struct{}), at: time.Now().Add(limit)}
	if err := parent.Err(); err != nil || limit <= 0 { // it ends at once, as that of package context does
		c.timer, c.unhook = time.NewTimer(0), func() bool { return true }
		c.end(cmp.Or(err, context.DeadlineExceeded))
		return c, func() {}
	}
	c.mu.Lock() // either may end it at once
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(limit, func() { c.end(context.DeadlineExceeded) })
	c.unhook = context.AfterFunc(parent, func() { c.end(parent.Err()) })
	return c, func() { c.end(context.Canceled) }
}

// Suspend suspends the deadlines of ctx that [With] has set, until resume is called.
func Suspend(ctx context.Context) (resume func()) {
	var all []*limited
	for c, _ := ctx.Value(key{}).(*limited); c != nil; c, _ = c.parent.Value(key{}).(*limited) {
		c.suspend()
		all = append(all, c)
	}
	return sync.OnceFunc(func() {
		for _, c := range all {
			c.resume()
		}
	})
}

func (c *limited) suspend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspended++; c.suspended == 1 {
		c.left = max(0, time.Until(c.at))
		c.timer.Stop()
	}
}

func (c *limited) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspended--; c.suspended == 0 && c.err == nil {
		c.at = time.Now().Add(c.left)
		c.timer.Reset(c.left)
	}
}

func (c *limited) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || err == context.DeadlineExceeded && c.suspended > 0 && c.parent.Err() == nil {
		return // the timer fired while it was being suspended
	}
	c.err = err
	c.timer.Stop()
	c.unhook()
	close(c.done)
}

// Deadline implements [context.Context]. While the deadline is suspended it is as if that ended now.
func (c *limited) Deadline() (time.Time, bool) {
	c.mu.Lock()
	at := c.at
	if c.suspended > 0 {
		at = time.Now().Add(c.left)
	}
	c.mu.Unlock()
	if of, ok := c.parent.Deadline(); ok && of.Before(at) {
		at = of
	}
	return at, true
}

// Done implements [context.Context].
func (c *limited) Done() <-chan struct{} { return c.done }

// Err implements [context.Context].
func (c *limited) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Value implements [context.Context].
func (c *limited) Value(k any) any {
	if k == (key{}) {
		return c
	}
	return c.parent.Value(k)
}
