package look

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// showTime is how long a picture may take before its page is brought to the front. Another page may come to the front
// at the same time, so this is repeated.
const showTime = 400 * time.Millisecond

// showLate brings the page to the front if it is hidden and the caller has not called stop in time. A picture that is
// being taken is complete once the page is drawn.
func showLate(v *page.Visit) (stop func()) {
	ctx, cancel := context.WithCancel(v.Ctx)
	l, t, sender := v.Ledger(), v.Page, v.Keeper.Tracker.Sender
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(showTime):
			}
			seen, err := sender.Do(ctx, t, "Runtime.evaluate", json.RawMessage(`{"expression":"document.hidden","silent":true}`))
			if err == nil && (l.Woken || string(scan.Field(seen, "result", "value")) == "true") {
				_, _ = sender.Do(ctx, t, "Page.bringToFront", nil)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
