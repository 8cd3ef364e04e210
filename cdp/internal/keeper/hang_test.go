//go:build linux

package keeper

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// TestEveryCallEnds tries each way in which a call could hang. Each call must end within ten times the promised
// time.
func TestEveryCallEnds(t *testing.T) {
	t.Parallel()
	const (
		atOnce  = 300 * time.Millisecond
		overdue = 300 * time.Millisecond // the call's timeout
		stopped = overdue + target.ProbeTimeout +
			target.TerminateTimeout // a probe and the termination of a script follow the timeout
		reading = 3 * time.Second // for what is over the limit
	)
	cfg := config(t)
	cfg.MaxMessage = 4 << 20
	shared := startBrowser(t, cfg)
	url := site(t, map[string]string{"/": plainPage})
	for _, c := range []struct {
		name    string
		call    api.CallRequest
		late    bool                                        // the call's time is overdue
		before  func(t *testing.T, c *Client, s api.Status) // makes the call hang; nil: the call itself hangs
		after   func(t *testing.T, c *Client, s api.Status) // ends the call once it is under way; nil: it ends by itself
		code    string
		words   []string
		promise time.Duration
		fatal   bool // the test ends the browser, so it cannot share one
	}{
		{name: "page crash", call: neverReturns, after: func(t *testing.T, c *Client, _ api.Status) {
			c.Call(testContext(t), api.CallRequest{Method: "Page.crash"})
		}, code: api.CodeTargetCrashed, words: []string{"a reload", "another URL"}, promise: atOnce},
		{name: "target closed", call: neverReturns, after: func(t *testing.T, c *Client, _ api.Status) {
			c.CloseTarget(testContext(t), "", "")
		}, code: api.CodeNotFound, words: []string{"was closed"}, promise: atOnce},
		{name: "page closed by its own command", call: neverReturns, after: func(t *testing.T, c *Client, _ api.Status) {
			c.Call(testContext(t), api.CallRequest{Method: "Page.close"})
		}, code: api.CodeNotFound, words: []string{"was closed"}, promise: atOnce},
		{name: "dialog", call: evaluation("prompt('Name?')"), code: api.CodeBusy,
			words:   []string{"dialog", "prompt", "Name?"},
			promise: atOnce},
		{name: "dialog of another call", call: neverReturns, after: func(t *testing.T, c *Client, _ api.Status) {
			evaluate(t, c, "", "setTimeout(() => alert('later'))")
		}, code: api.CodeBusy, words: []string{"alert", "later"}, promise: atOnce},
		{name: "endless loop", call: endlessLoop, late: true, code: api.CodeTimeout,
			words: []string{"stopped"}, promise: stopped},
		{name: "endless loop, then another call", call: api.CallRequest{Method: "DOM.getDocument"}, late: true,
			before: func(t *testing.T, c *Client, _ api.Status) {
				startLoop(testContext(t), t, c)
			}, code: api.CodeTimeout, promise: stopped},
		{name: "promise that is never resolved", call: neverReturns, late: true, code: api.CodeTimeout, promise: overdue},
		{name: "reply over the limit", call: evaluation("'x'.repeat(5e6)"), code: api.CodeLimitExceeded,
			words: []string{"bytes"}, promise: reading},
		{name: "request over the limit", call: evaluation(strings.Repeat("x", browser.MaxRequest)),
			code:  api.CodeLimitExceeded,
			words: []string{"at most"}, promise: reading},
		{name: "browser stopped", call: evaluation("1"), late: true, before: func(t *testing.T, _ *Client, s api.Status) {
			stopProcess(t, s.ChromePID)
		}, code: api.CodeTimeout, promise: stopped, fatal: true},
		{name: "browser killed", call: neverReturns, after: func(t *testing.T, _ *Client, s api.Status) {
			syscall.Kill(s.ChromePID, syscall.SIGKILL)
		}, code: api.CodeChromeConnection, promise: atOnce, fatal: true},
		{name: "keeper killed", call: neverReturns, after: func(t *testing.T, c *Client, _ api.Status) {
			syscall.Kill(c.hello.PID, syscall.SIGKILL)
		}, code: api.CodeChromeConnection, promise: atOnce, fatal: true},
		{name: "browser closed by another", call: neverReturns, after: func(t *testing.T, c *Client, _ api.Status) {
			go c.CloseBrowser(t.Context())
		}, code: api.CodeChromeConnection, words: []string{"closed"}, promise: atOnce, fatal: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := shared
			if c.fatal {
				client = startBrowser(t, config(t))
			}
			openPage(t, client, url)
			status, err := client.Status(testContext(t), true)
			if err != nil {
				t.Fatal(err)
			}
			if c.before != nil {
				c.before(t, client, status)
			}
			began := time.Now()
			var result <-chan error
			if c.after == nil {
				ctx := testContext(t)
				if c.late {
					ctx = within(t, int(overdue.Milliseconds()))
				}
				result = callWithin(ctx, client, c.call)
			} else {
				result = startCall(t, client, c.call)
				began = time.Now()
				c.after(t, client, status)
			}
			err = awaitError(t, result)
			took := time.Since(began)
			wantCode(t, err, c.code, c.words...)
			t.Logf("%s after %s", c.code, took.Round(time.Millisecond))
			if took > 10*raceFactor*c.promise {
				t.Errorf("the call took %s, promised are %s", took, c.promise)
			}
		})
	}
}

// TestFullPipe stops the browser and sends calls until its queue is full. Calls that do not fit fail at once,
// queued calls time out, and everything works again once the browser continues.
func TestFullPipe(t *testing.T) {
	t.Parallel()
	c := startBrowser(t, config(t))
	openPage(t, c, "")
	s, err := c.Status(testContext(t), true)
	if err != nil {
		t.Fatal(err)
	}
	stopProcess(t, s.ChromePID)
	q := api.CallRequest{Method: "Browser.none"}
	refused := 0
	for round := 0; refused == 0; round++ {
		if round == 100 {
			t.Fatal("the queue for a stopped browser never gets full")
		}
		errs := make(chan error, maxInFlight)
		for range maxInFlight {
			go func() {
				_, err := c.Call(within(t, 100), q)
				errs <- err
			}()
		}
		for range maxInFlight {
			err := awaitError(t, errs)
			if asError(err).Code == api.CodeChromeConnection && strings.Contains(err.Error(), "stopped reading") {
				refused++
				continue
			}
			wantCode(t, err, api.CodeTimeout)
		}
	}
	syscall.Kill(s.ChromePID, syscall.SIGCONT)
	waitFor(t, "the browser to continue", func() bool { _, err := evaluate(t, c, "", "1"); return err == nil })
}
