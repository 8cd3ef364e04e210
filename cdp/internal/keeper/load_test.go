//go:build linux

package keeper

import (
	"context"
	"encoding/json"
	"sort"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkCall is one evaluation through an open connection, and through a new one.
func BenchmarkCall(b *testing.B) {
	cfg, c := benchBrowser(b)
	one := func(b *testing.B, c *Client) {
		if _, err := c.Call(b.Context(), evaluation("1+1")); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			one(b, c)
		}
	})
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			again, err := Dial(b.Context(), cfg.RunDir, "", "test")
			if err != nil {
				b.Fatal(err)
			}
			one(b, again)
			again.Close()
		}
	})
	b.Run("events", func(b *testing.B) {
		// Calls to one page while another fills the ring, some 10,000 events a second.
		if _, err := c.Call(b.Context(), evaluation("setInterval(() => { for (let i = 0; i < 100; i++) console.log(i) }, 10); 0")); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Call(b.Context(), CallRequest{Method: "Runtime.enable"}); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Open(b.Context(), OpenRequest{}); err != nil {
			b.Fatal(err)
		}
		before, _ := c.Status(b.Context())
		started := time.Now()
		var times []time.Duration
		for b.Loop() {
			t := time.Now()
			one(b, c)
			times = append(times, time.Since(t))
		}
		after, _ := c.Status(b.Context())
		sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
		b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-us")
		b.ReportMetric(float64(after.Events.LastSeq-before.Events.LastSeq)/time.Since(started).Seconds(), "events/s")
	})
}

func benchBrowser(b *testing.B) (Config, *Client) {
	b.Helper()
	cfg, err := foundConfig(b.TempDir())
	if err != nil {
		b.Skip("needs a browser: ", err)
	}
	c, err := Start(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.Close()
		Stop(context.Background(), cfg.RunDir, "", "test")
	})
	if _, err := c.Open(b.Context(), OpenRequest{}); err != nil {
		b.Fatal(err)
	}
	return cfg, c
}

// TestHammerCallsAndStreams runs callers against a browser while streams come and go.
func TestHammerCallsAndStreams(t *testing.T) {
	cfg := config(t)
	c := start(t, cfg)
	open(t, c, site(t, map[string]string{"/": plainPage}))
	var calls atomic.Int64
	done := make(chan error, 6)
	for range 4 {
		go func() {
			for range 40 {
				one, err := Dial(bounded(t), cfg.RunDir, "", "test")
				if err == nil {
					_, err = one.Call(bounded(t), evaluation("1+1"))
					one.Close()
				}
				if err != nil {
					done <- err
					return
				}
				calls.Add(1)
			}
			done <- nil
		}()
	}
	for range 2 {
		go func() {
			for range 10 {
				_, err := c.Listen(bounded(t), ListenRequest{Patterns: []string{"Network.*", "Runtime.*"}, TimeoutMS: 20}, nil, func(json.RawMessage) error { return nil })
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 6 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if calls.Load() != 160 {
		t.Errorf("%d calls", calls.Load())
	}
	c.mu.Lock()
	if len(c.waits) != 0 {
		t.Errorf("%d answers are waited for", len(c.waits))
	}
	c.mu.Unlock()
}
