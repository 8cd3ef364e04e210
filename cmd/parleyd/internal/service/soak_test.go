package service

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
)

// soakCalls are the calls of a soak: tool, arguments, options, and what the answer has.
var soakCalls = [][4]string{
	{"text.hash", `{"text":"a"}`, `{}`, "ca978112"},
	{"json.query", `{"filter":".a","data":{"a":[1,2,3]}}`, `{}`, "[1,2,3]"},
	{"echo.echo", `{"value":"soak"}`, `{}`, "soak"},
	{"echo.trap", `{}`, `{}`, "isError"},
	{"echo.sleep", `{}`, `{"timeout":"300ms"}`, "isError"}, // in timeout, or busy
}

// TestSoak runs a service under load for PARLEYD_SOAK, by default half an hour: 64 clients, processes of plugins that
// are killed, reloads, and an upgrade in the middle. No answer is lost, and memory does not grow.
func TestSoak(t *testing.T) {
	if os.Getenv("PARLEY_HAMMER") == "" {
		t.Skip("make hammer runs it")
	}
	length, err := time.ParseDuration(os.Getenv("PARLEYD_SOAK"))
	if err != nil {
		length = 30 * time.Minute
	}
	installEcho(t)
	config, socket := socketConfig(t)
	url := "http://" + socket.Addr().String()
	service := launch(t, config, socket)
	service.await(t, "READY=1")

	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var clients sync.WaitGroup
	var refused, killed, hit atomic.Int64
	times := make([][]time.Duration, 64)
	for i := range times {
		clients.Go(func() {
			for ctx.Err() == nil {
				c := soakCalls[rand.IntN(len(soakCalls))]
				began := time.Now()
				answer, err := post(url, c[0], c[1], c[2])
				if err != nil {
					t.Errorf("an answer is lost: %v", err)
					continue
				}
				body, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				switch text := string(body); {
				case err == nil && answer.StatusCode == 503 && answer.Header.Get("Retry-After") != "":
					refused.Add(1)
					time.Sleep(time.Second)
				case err == nil && answer.StatusCode == 200 && strings.Contains(text, c[3]):
				case err == nil && answer.StatusCode == 200 && strings.Contains(text, "isError") && killed.Load() > 0:
					hit.Add(1) // its process was killed, or all were in use
				default:
					t.Errorf("%s: %d %s %v", c[0], answer.StatusCode, text, err)
				}
				times[i] = append(times[i], time.Since(began))
			}
		})
	}
	var memory []float64 // of the service in MiB, each second since the upgrade
	upgrade := time.After(length / 2)
	tick := time.NewTicker(time.Second)
	for second := 0; ctx.Err() == nil; second++ {
		select {
		case <-ctx.Done():
		case <-upgrade:
			_ = service.Process.Signal(syscall.SIGTERM)
			if err := service.Wait(); err != nil {
				t.Error(err)
			}
			service = launch(t, config, socket)
			service.await(t, "READY=1")
			memory = nil
		case <-tick.C:
			memory = append(memory, resident(service.Process.Pid))
			if second%10 == 0 {
				_ = service.Process.Signal(syscall.SIGHUP)
			}
			if children := fleettest.Children(service.Process.Pid); second%7 == 0 && len(children) > 0 {
				killed.Add(1)
				_ = syscall.Kill(children[rand.IntN(len(children))], syscall.SIGKILL)
			}
		}
	}
	clients.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(times...)))
	t.Logf("figures: %d calls in %s, %d refused with the time to wait, %d kills, %d errors; p50 %s, p99 %s; memory %s",
		len(all), length, refused.Load(), killed.Load(), hit.Load(), all[len(all)/2], all[len(all)*99/100], slope(memory))
}

// slope describes how memory grew, without the first third.
func slope(samples []float64) string {
	samples = samples[len(samples)/3:]
	n := float64(len(samples))
	var x, y, xx, xy float64
	for i, m := range samples {
		x, y, xx, xy = x+float64(i), y+m, xx+float64(i*i), xy+float64(i)*m
	}
	return fmt.Sprintf("%.0f MiB, %+.2f MiB a minute", y/n, 60*(n*xy-x*y)/(n*xx-x*x))
}

// resident returns the memory of a process in MiB.
func resident(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	pages := 0
	_, _ = fmt.Sscan(string(text), new(int), &pages)
	return float64(pages*os.Getpagesize()) / (1 << 20)
}
