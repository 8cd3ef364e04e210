// Package deadline has contexts whose deadline can be suspended: the time that a person takes to decide does not
// count as time of a call.
package deadline

import (
	"context"
	"errors"
	"sync"
	"time"
)

// limited is a context with a deadline that can be suspended.
type limited struct {
	context.Context // ends with its parent, or with DeadlineExceeded as its cause
	parent          context.Context
	end             context.CancelCauseFunc

	mu        sync.Mutex
	at        time.Time     // the deadline while it is not suspended
	left      time.Duration // time until the deadline while it is suspended
	suspended int           // number of callers that have suspended it
	timer     *time.Timer
}

// key is the key of the nearest limited context in a context.
type key struct{}

// With returns a context that ends after a time. Time during which the context is suspended does not count. Otherwise
// it is like [context.WithTimeout], except that Err of contexts derived from it is Canceled when the time is over;
// their cause is DeadlineExceeded, see [Exceeded].
func With(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	c := &limited{parent: parent, at: time.Now().Add(limit)}
	c.Context, c.end = context.WithCancelCause(parent)
	if limit <= 0 {
		c.end(context.DeadlineExceeded)
	}
	c.mu.Lock() // the timer may fire at once
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(limit, c.expire)
	return c, func() {
		c.end(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timer.Stop()
	}
}

// Exceeded reports whether the time of a context is over.
func Exceeded(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded)
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
	if c.suspended--; c.suspended == 0 && c.Context.Err() == nil {
		c.at = time.Now().Add(c.left)
		c.timer.Reset(c.left)
	}
}

// expire ends the context, unless the timer fired while it was being suspended.
func (c *limited) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspended == 0 {
		c.end(context.DeadlineExceeded)
	}
}

// Deadline implements [context.Context]. While the deadline is suspended, it returns the deadline that would follow
// from resuming now.
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

// Err implements [context.Context].
func (c *limited) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// Value implements [context.Context].
func (c *limited) Value(k any) any {
	if k == (key{}) {
		return c
	}
	return c.Context.Value(k)
}
