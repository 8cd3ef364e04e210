package wasm

import (
	"os/exec"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/contain"
	"github.com/parley-tools/parley/internal/lists"
)

// Values of job.Job.Isolate, besides "".
const (
	isolateNone    = "none"    // in this process
	isolateProcess = "process" // in a runner that may serve other calls, if the system supports that
	isolateCall    = "call"    // in a runner that ends after the call
)

// isolation returns the level of isolation of a call. A level that the operator or the caller has set is used, or the
// error is config_error. Otherwise it is the engine's default, if the system supports that.
func (e *Engine) isolation(plugin string, r *host.Request) (level string, err error) {
	if level = r.Isolate; level == "" && (!e.cfg.Isolate || e.cfg.Child == nil) || level == isolateNone {
		return isolateNone, nil
	}
	missing := e.missing(len(r.Grant.FS) > 0)
	switch {
	case level == "" && len(missing) > 0:
		return isolateNone, nil
	case level == "":
		return isolateProcess, nil
	case len(missing) > 0:
		return "", notIsolated(plugin, missing)
	}
	return level, nil
}

func notIsolated(plugin string, missing []string) *host.Error {
	return host.Errorf(host.ConfigError, "%s must be isolated, but the kernel cannot confine its process: %s; nothing "+
		"was run; use a kernel that can, or set isolate = \"none\" for it in policy.toml", plugin,
		strings.Join(missing, "; ")).
		WithSteps(step.Operator(step.OpPolicyExplain, plugin), step.Operator(step.OpDoctor))
}

// childCommand returns the command for a job of this program; see [contain.Command].
func (e *Engine) childCommand(jobName string, args ...string) *exec.Cmd {
	cmd := e.cfg.Child()
	cmd.Args = append(cmd.Args[:1], args...)
	return contain.Command(cmd, "PARLEY_CHILD="+jobName)
}

// MissingIsolation returns what this system lacks to isolate a plugin, with or without granted folders, or nil if it
// lacks nothing.
func MissingIsolation(folders bool) []string { return contain.Missing(folders) }

// processMemory is the memory of a process in addition to its guests' memory and code. It is for Go's heap, which can
// hold a large result twice.
const processMemory = 768 << 20

// lockDown takes from this process everything that its guests do not need; see [contain.Process]. The kernel's bounds
// back up those that the process enforces itself. instances is the number of guests that have memory at the same
// time: the kernel counts the whole limit of each. cpu bounds the whole life of the process; 0 leaves that to the
// host.
func lockDown(l world.Limits, grants []grant.FS, code int64, instances int, cpu time.Duration) (missing []string) {
	r := contain.Rights{Accept: instances > 1, Folders: lists.Map(grants, func(g grant.FS) contain.Folder {
		return contain.Folder{Path: g.Source, Writable: g.Mode == "rw"}
	})}
	return contain.Process(r, contain.Bounds{
		CPU: cpu, Memory: uint64(instances)*uint64(l.Pages)*world.PageBytes + uint64(2*code) + processMemory,
		OpenFiles: uint64(instances*l.OpenFiles) + 64,
	})
}
