//go:build !linux

package wasm

import (
	"context"
	"time"

	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
)

// runnerPool exists on Linux only.
type runnerPool struct{}

func (e *Engine) runners() *runnerPool { return nil }

func (*runnerPool) close() {}

func (*runnerPool) run(context.Context, *guest.Job, *Provider, bool) (*job.Result, error) {
	return nil, errNoRunner
}

func reside(*resident) (func(*runner) int, error) { return nil, errNoRunner }

func cpuTimeOf(int) (time.Duration, bool) { return 0, false }

// Runners returns no runners: there are none on this system.
func Runners(string) []RunnerInfo { return nil }

// StopRunners does nothing: there are no runners on this system.
func StopRunners(string, func(RunnerInfo) bool) []RunnerInfo { return nil }
