package world

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

// TestLimitsOf combines the limits of an engine, a plugin, a caller and a policy. The policy bounds all others.
func TestLimitsOf(t *testing.T) {
	const s = time.Second
	defaults := Limits{Pages: 256 * PagesPerMiB, Timeout: 30 * s, Output: 1 << 20, Log: 1 << 20, hostCalls: 10_000,
		OpenFiles: 256, created: 10_000, written: 1 << 30}
	with := func(change func(l *Limits)) Limits {
		l := defaults
		change(&l)
		return l
	}
	for _, tt := range []struct {
		name            string
		engine, policy  grant.Limits
		plugin          manifest.Limits
		timeoutOfCaller time.Duration
		want            Limits
	}{
		{name: "nothing is said", want: defaults},
		{name: "the engine replaces defaults", engine: grant.Limits{MemoryMiB: 8, Timeout: s, OutputBytes: 5},
			want: with(func(l *Limits) { l.Pages, l.Timeout, l.Output = 8*PagesPerMiB, s, 5 })},
		{name: "the plugin replaces the engine's", engine: grant.Limits{MemoryMiB: 8, Timeout: s, OutputBytes: 5},
			plugin: manifest.Limits{MemoryMiB: 16, TimeoutMS: 2000, OutputBytes: 6},
			want:   with(func(l *Limits) { l.Pages, l.Timeout, l.Output = 16*PagesPerMiB, 2*s, 6 })},
		{name: "the caller's timeout replaces the plugin's", plugin: manifest.Limits{TimeoutMS: 2000},
			timeoutOfCaller: time.Hour, want: with(func(l *Limits) { l.Timeout = time.Hour })},
		{name: "the policy bounds all",
			engine: grant.Limits{MemoryMiB: 8, Timeout: s, OutputBytes: 5}, timeoutOfCaller: time.Hour,
			plugin: manifest.Limits{MemoryMiB: 16, TimeoutMS: 2000, OutputBytes: 6},
			policy: grant.Limits{MemoryMiB: 4, Timeout: 3 * s, OutputBytes: 4, LogBytes: 3, HostCalls: 2, OpenFiles: 1,
				FilesCreated: 7, BytesWritten: 8},
			want: Limits{Pages: 4 * PagesPerMiB, Timeout: 3 * s, Output: 4, Log: 3, hostCalls: 2, OpenFiles: 1, created: 7,
				written: 8}},
		{name: "the policy replaces defaults", engine: grant.Limits{MemoryMiB: 8, OutputBytes: 5},
			policy: grant.Limits{MemoryMiB: 512, Timeout: time.Hour, OutputBytes: 8 << 20},
			want:   with(func(l *Limits) { l.Pages, l.Output = 512*PagesPerMiB, 8<<20 })},
		{name: "the policy raises nothing that the plugin requests",
			plugin: manifest.Limits{MemoryMiB: 16, TimeoutMS: 2000, OutputBytes: 6},
			policy: grant.Limits{MemoryMiB: 512, Timeout: time.Hour, OutputBytes: 1 << 20},
			want:   with(func(l *Limits) { l.Pages, l.Timeout, l.Output = 16*PagesPerMiB, 2*s, 6 })},
		{name: "no policy, and a plugin that asks for everything",
			plugin: manifest.Limits{MemoryMiB: 1 << 40, OutputBytes: 1 << 40},
			want:   with(func(l *Limits) { l.Pages, l.Output = 1024*PagesPerMiB, 16<<20 })},
	} {
		r := &host.Request{Job: job.Job{Limits: tt.policy, Options: job.Options{Timeout: tt.timeoutOfCaller}}}
		if got := LimitsOf(tt.engine, &manifest.Manifest{Limits: tt.plugin}, r); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestProgramsRunForALimitedTime lets a program that runs as its caller run for 10 s, whatever the timeout. The time in
// which it waits does not count. Other plugins have their timeout alone.
func TestProgramsRunForALimitedTime(t *testing.T) {
	for _, isProgram := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := &host.Request{Job: job.Job{Options: job.Options{Timeout: time.Hour}}}
			r.Grant.Caller = isProgram
			k := &Control{Tool: "js.run", Limits: LimitsOf(grant.Limits{}, &manifest.Manifest{}, r)}
			late := false
			_, err := k.Within(t.Context(), func() (result *job.Result, err error) {
				defer func() { err, _ = recover().(error) }()
				for range 3 {
					time.Sleep(3 * time.Second)
					k.Checkpoint()
					k.Wait(func(<-chan struct{}) { time.Sleep(time.Minute) })
					k.Checkpoint()
				}
				time.Sleep(2 * time.Second)
				late = true
				k.Checkpoint()
				return nil, nil
			})
			var e *host.Error
			switch isStopped := errors.As(err, &e); {
			case isStopped != isProgram || !late:
				t.Errorf("a program: %t; got %v", isProgram, err)
			case isStopped && (e.Code != host.Timeout ||
				!strings.HasPrefix(e.Message, "js.run ran for more than 10s, without the time that it waited")):
				t.Errorf("a program is stopped with %v", err)
			}
		})
	}
}
