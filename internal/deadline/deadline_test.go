package deadline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/internal/deadline"
)

// TestWith checks that a context is like one of context.WithTimeout as long as nobody suspends it.
func TestWith(t *testing.T) {
	cause := errors.New("the cause")
	for name, with := range map[string]func(context.Context, time.Duration) (context.Context, context.CancelFunc){
		"deadline": deadline.With, "context": context.WithTimeout,
	} {
		synctest.Test(t, func(t *testing.T) {
			parent, stop := context.WithCancelCause(t.Context())
			ctx, cancel := with(parent, time.Minute)
			defer cancel()
			child, leave := context.WithTimeout(ctx, time.Hour)
			defer leave()
			start := time.Now()
			if at, ok := child.Deadline(); !ok || !at.Equal(start.Add(time.Minute)) {
				t.Errorf("%s: the deadline is %s", name, at)
			}
			<-child.Done()
			if time.Since(start) != time.Minute || child.Err() == nil || !deadline.Exceeded(child) ||
				ctx.Err() != context.DeadlineExceeded || context.Cause(child) != context.DeadlineExceeded {
				t.Errorf("%s: ended after %s with %v, %v", name, time.Since(start), ctx.Err(), context.Cause(child))
			}

			ended, cancel := with(parent, time.Minute)
			defer cancel()
			stop(cause)
			if ended.Err() != context.Canceled || context.Cause(ended) != cause {
				t.Errorf("%s: with its parent it ended with %v, %v", name, ended.Err(), context.Cause(ended))
			}
			select {
			case <-ended.Done(): // at once, as what waits for it may not look again
			default:
				t.Errorf("%s: it goes on after its parent", name)
			}
			late, cancel := with(parent, time.Minute)
			defer cancel()
			over, cancel := with(t.Context(), 0)
			defer cancel()
			if late.Err() != context.Canceled || context.Cause(late) != cause || over.Err() != context.DeadlineExceeded {
				t.Errorf("%s: of an ended one it has %v, without time %v", name, late.Err(), over.Err())
			}
			cancelled, cancel := with(context.WithoutCancel(parent), time.Minute)
			cancel()
			cancel()
			if <-cancelled.Done(); cancelled.Err() != context.Canceled {
				t.Errorf("%s: cancelled, it ended with %v", name, cancelled.Err())
			}
		})
	}
}

// valued is a context of another kind.
type valued struct{ context.Context }

// TestSuspend checks that suspended time does not count, in the context and in those above it, and that two can suspend
// at once.
func TestSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := deadline.With(t.Context(), time.Minute)
		defer cancel()
		inner, cancelInner := deadline.With(valued{outer}, 2*time.Minute)
		defer cancelInner()
		start := time.Now()
		time.Sleep(30 * time.Second)
		resume, resumeToo := deadline.Suspend(inner), deadline.Suspend(inner)
		time.Sleep(time.Hour)
		resume()
		resume()
		time.Sleep(time.Hour)
		if inner.Err() != nil || outer.Err() != nil {
			t.Fatalf("ended with %v, %v", inner.Err(), outer.Err())
		}
		if at, _ := inner.Deadline(); !at.Equal(time.Now().Add(30 * time.Second)) {
			t.Errorf("the deadline is in %s", time.Until(at))
		}
		resumeToo()
		<-inner.Done()
		if took := time.Since(start); took != 2*time.Hour+time.Minute || inner.Err() != context.DeadlineExceeded {
			t.Errorf("ended after %s with %v", took, inner.Err())
		}
		deadline.Suspend(inner)() // after the end
		deadline.Suspend(t.Context())()
	})
}

// TestSuspendedEnds checks that a suspended context ends with its parent.
func TestSuspendedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		ctx, cancel := deadline.With(parent, time.Minute)
		defer cancel()
		defer deadline.Suspend(ctx)()
		<-ctx.Done()
		if ctx.Err() != context.DeadlineExceeded {
			t.Error(ctx.Err())
		}
	})
}
