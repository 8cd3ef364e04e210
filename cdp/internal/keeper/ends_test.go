//go:build linux

package keeper

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEveryCallEnds holds each way in which a call could hang to the time in which it is promised to end, ten times over.
func TestEveryCallEnds(t *testing.T) {
	t.Parallel()
	const (
		atOnce  = 300 * time.Millisecond
		overdue = 300 * time.Millisecond // the call's own time, and what follows it: a probe, and a script that is stopped
		reading = 3 * time.Second        // of what is over the limit
	)
	waiting := never
	late := func(q CallRequest) CallRequest {
		q.TimeoutMS = overdue.Milliseconds()
		return q
	}
	for _, c := range []struct {
		name    string
		call    CallRequest
		cause   func(t *testing.T, c *Client, s Status) // once the call is under way; nil: the call is its own cause
		code    string
		words   []string
		promise time.Duration
	}{
		{"page crash", waiting, func(t *testing.T, c *Client, _ Status) {
			c.Call(bounded(t), CallRequest{Method: "Page.crash"})
		}, CodeTargetCrashed, []string{"Page.reload", "Page.navigate"}, atOnce},
		{"target closed", waiting, func(t *testing.T, c *Client, s Status) {
			c.CloseTarget(bounded(t), s.Targets[0].ID)
		}, CodeNotFound, []string{"was closed"}, atOnce},
		{"page closed by its own command", waiting, func(t *testing.T, c *Client, _ Status) {
			c.Call(bounded(t), CallRequest{Method: "Page.close"})
		}, CodeNotFound, []string{"was closed"}, atOnce},
		{"dialog", evaluation("prompt('Name?')"), nil, CodeBusy, []string{"dialog", "prompt", "Name?"}, atOnce},
		{"dialog of another call", waiting, func(t *testing.T, c *Client, _ Status) {
			evaluate(t, c, "", "setTimeout(() => alert('later'))")
		}, CodeBusy, []string{"alert", "later"}, atOnce},
		{"endless loop", late(evaluation("for (;;) {}")), nil, CodeTimeout, []string{"stopped"}, 3 * overdue},
		{"endless loop, then another call", late(CallRequest{Method: "DOM.getDocument"}), nil, CodeTimeout, nil, 3 * overdue},
		{"promise that is never kept", late(waiting), nil, CodeTimeout, nil, overdue},
		{"reply over the limit", evaluation("'x'.repeat(20e6)"), nil, CodeLimitExceeded, []string{"bytes"}, reading},
		{"request of 101 MB", evaluation(strings.Repeat("x", 101e6)), nil, CodeLimitExceeded, []string{"at most"}, reading},
		{"browser stopped", late(evaluation("1")), func(t *testing.T, _ *Client, s Status) { syscall.Kill(s.ChromePID, syscall.SIGSTOP) }, "", nil, 3 * overdue},
		{"browser killed", waiting, func(t *testing.T, _ *Client, s Status) { syscall.Kill(s.ChromePID, syscall.SIGKILL) }, CodeChromeConnection, nil, atOnce},
		{"keeper killed", waiting, func(t *testing.T, c *Client, _ Status) { syscall.Kill(c.hello.PID, syscall.SIGKILL) }, CodeChromeConnection, nil, atOnce},
		{"browser closed by another", waiting, func(t *testing.T, c *Client, _ Status) { go c.CloseBrowser(bounded(t)) }, CodeChromeConnection, []string{"closed"}, 2 * atOnce},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config(t)
			cfg.MaxMessage = 16 << 20
			client := start(t, cfg)
			open(t, client, site(t, map[string]string{"/": plainPage}))
			status, err := client.Status(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			if c.name == "endless loop, then another call" {
				go client.Call(bounded(t), CallRequest{Method: "Runtime.evaluate", TimeoutMS: 10_000, Params: params(map[string]any{"expression": "for (;;) {}"})})
				waitFor(t, "the loop", func() bool {
					s, err := client.Status(bounded(t))
					return err == nil && s.Calls > status.Calls
				})
			}
			var result <-chan error
			began := time.Now()
			switch {
			case c.code == "": // the cause comes before the call
				c.cause(t, client, status)
				c.code = CodeTimeout
				result = inCall(t, client, c.call)
			case c.cause == nil:
				result = inCall(t, client, c.call)
			default:
				result = inBackground(t, client, c.call)
				began = time.Now()
				c.cause(t, client, status)
			}
			err = ended(t, result)
			took := time.Since(began)
			wantCode(t, err, c.code, c.words...)
			t.Logf("%s after %s", c.code, took.Round(time.Millisecond))
			if took > 10*slow*c.promise {
				t.Errorf("it took %s; %s is promised", took, c.promise)
			}
		})
	}
}

func inCall(t *testing.T, c *Client, q CallRequest) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := c.Call(bounded(t), q)
		result <- err
	}()
	return result
}

// TestFullPipe stops the browser and asks until nothing more is queued for it: what does not fit is refused at once, what
// waits ends by its time, and all goes on when the browser does.
func TestFullPipe(t *testing.T) {
	t.Parallel()
	c := start(t, config(t))
	open(t, c, "")
	s, err := c.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(s.ChromePID, syscall.SIGSTOP)
	q := CallRequest{Method: "Browser.none", TimeoutMS: 100}
	refused := 0
	for round := 0; refused == 0; round++ {
		if round == 100 {
			t.Fatal("the browser has stopped, and there is no end to what is queued for it")
		}
		errs := make(chan error, maxInFlight)
		for range maxInFlight {
			go func() {
				_, err := c.Call(bounded(t), q)
				errs <- err
			}()
		}
		for range maxInFlight {
			err := ended(t, errs)
			if asError(err).Code == CodeChromeConnection && strings.Contains(err.Error(), "stopped reading") {
				refused++
				continue
			}
			wantCode(t, err, CodeTimeout)
		}
	}
	syscall.Kill(s.ChromePID, syscall.SIGCONT)
	waitFor(t, "the browser to go on", func() bool { _, err := evaluate(t, c, "", "1"); return err == nil })
}
