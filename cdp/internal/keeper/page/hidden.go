package page

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// A page in the background is hidden: it draws nothing, its animations stand, Chrome holds back moves of the pointer
// for seconds, and may never take a picture of it. A page gets there when a click opens another one.

// Wake lets a hidden page take input as a person gives it: it comes to the front. In a browser that Parley did not
// start a person may look at another page, so that there it only goes on as if it were in front. Chrome then draws it
// most of the time.
func Wake(v *Visit) *api.Error {
	tr := v.Keeper.Tracker
	method, params := "Page.bringToFront", json.RawMessage(nil)
	if tr.External {
		method, params = "Emulation.setFocusEmulationEnabled", json.RawMessage(`{"enabled":true}`)
		v.Ledger().woken = true
	}
	_, err := tr.Sender.Do(v.Ctx, v.Page, method, params)
	return err
}

// showTime is how long a picture may take before its page is brought to the front. Another page may come to the front
// at the same time, so that it is done again.
const showTime = 400 * time.Millisecond

// ShowLate brings the page to the front if it is hidden and the caller has not ended the wait by the function that
// ShowLate returns. A picture that is being taken is complete once the page is drawn.
func ShowLate(v *Visit) (stop func()) {
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
			if err == nil && (l.woken || string(scan.Field(seen, "result", "value")) == "true") {
				_, _ = sender.Do(ctx, t, "Page.bringToFront", nil)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
