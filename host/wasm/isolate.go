package wasm

import (
	"os/exec"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/contain"
)

// Values of [host.Job].Isolate besides "".
const (
	isolateNone    = "none"    // in this process
	isolateProcess = "process" // in a runner that may serve other calls, if there can be one
	isolateCall    = "call"    // in a runner that ends after the call
)

// isolation returns how a call is isolated. A level that the operator or the caller has written holds, or the error is
// config_error. Without one it is the default, where the system has what that takes.
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
		WithSteps(host.OperatorStep(host.OpPolicyExplain, plugin), host.OperatorStep(host.OpDoctor))
}

// childCommand returns the command for a job of this program; see [contain.Command].
func (e *Engine) childCommand(jobName string, args ...string) *exec.Cmd {
	cmd := e.cfg.Child()
	cmd.Args = append(cmd.Args[:1], args...)
	return contain.Command(cmd, "PARLEY_CHILD="+jobName)
}
