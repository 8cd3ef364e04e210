package wasm

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/contain"
	"github.com/parley-tools/parley/internal/wire"
	"github.com/parley-tools/parley/manifest"
)

// Values of [host.Job].Isolate besides "".
const (
	isolateNone    = "none"    // in this process
	isolateProcess = "process" // in a runner, or else in a process for the call alone
	isolateCall    = "call"    // in a process for the call alone
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

// canIsolate reports whether a plugin's compiled code is where another process can open it.
func (e *Engine) canIsolate(p *compiledPlugin) bool { return e.cfg.Child != nil && p.slot.dir != "" }

// runIsolated runs the call in a child process. The child sends all requests that reach beyond its instance to this
// process, and is killed at the deadline.
func (c *call) runIsolated(ctx context.Context) (*host.Result, error) {
	if !c.engine.canIsolate(c.plugin) {
		return nil, host.Errorf(host.Unavailable, "%s must run in a process of its own, but there is no folder for its "+
			"compiled code; nothing was run", c.m.Name).
			WithSteps(host.OperatorStep(host.OpDoctor))
	}
	defer c.setDeadline(ctx)()
	return c.remoteOutcome((&remoteCall{c: c}).runInChild())
}

// runInChild runs the call in a child process that is started for it alone.
func (a *remoteCall) runInChild() (*host.Result, error) {
	cmd := a.c.engine.childCommand(RunnerJob)
	stderr := &prefixWriter{limit: 4 << 10}
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, a.c.startError(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, a.c.startError(err)
	}
	if err := contain.Start(cmd); err != nil {
		return nil, a.c.startError(err)
	}
	stop := context.AfterFunc(a.c.ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	a.conn = wire.NewConn(bufio.NewReader(stdout), stdin)
	terms := a.c.terms(a.c.plugin.slot.key)
	result, err := a.startAndSend(terms)
	_ = cmd.Process.Kill()
	_ = stdin.Close()
	_ = cmd.Wait()
	if isGone(err) {
		err = a.crashError(cmd.ProcessState, stderr.String())
	}
	return result, err
}

// startAndSend gives a new child what it needs, then the call.
func (a *remoteCall) startAndSend(terms wire.Terms) (*host.Result, error) {
	if err := a.conn.Queue(wire.KindStart, marshal(a.c.start(terms))); err != nil {
		return nil, err
	}
	return a.send(terms)
}

func (c *call) startError(err error) error {
	return &host.Error{Code: host.Unavailable, Cause: err, Steps: []host.Step{host.OperatorStep(host.OpDoctor)},
		Message: fmt.Sprintf("cannot start the process of %s: %v; nothing was run", c.m.Name, err)}
}

// crashError returns the reason why the child ended without an outcome.
func (a *remoteCall) crashError(state *os.ProcessState, stderr string) error {
	a.c.engine.cfg.Debug(fmt.Sprintf("the process of %s: %v: %s", a.c.m.Name, state, truncate(manifest.CleanLine(stderr),
		1000)))
	switch {
	case isOutOfMemory(stderr):
		return host.Errorf(host.LimitExceeded, "%s and its process need more memory than the limit", a.c.toolName())
	case state != nil && state.UserTime()+state.SystemTime() > a.c.limits.timeout:
		return host.Errorf(host.LimitExceeded, "%s used more than %v of CPU time", a.c.toolName(), a.c.limits.timeout)
	}
	return host.Errorf(host.Trapped, "the process of %s ended without a result: %v", a.c.toolName(), state)
}

// start returns what the process of the call must know before it.
func (c *call) start(terms wire.Terms) start {
	m := *c.m
	m.Tools = []manifest.Tool{}
	if c.r.Def != nil {
		m.Tools = append(m.Tools, *c.r.Def)
	}
	return start{Terms: terms, Slot: c.plugin.slot.dir, Host: c.engine.cfg.HostVersion, Defaults: c.engine.cfg.Limits,
		Manifest: &m, Text: c.text, Grant: c.r.Grant, Guard: c.r.Guard.Load(), CPU: c.limits.timeout}
}

// childCommand returns the command for a job of this program; see [contain.Command].
func (e *Engine) childCommand(jobName string, args ...string) *exec.Cmd {
	cmd := e.cfg.Child()
	cmd.Args = append(cmd.Args[:1], args...)
	return contain.Command(cmd, "PARLEY_CHILD="+jobName)
}
