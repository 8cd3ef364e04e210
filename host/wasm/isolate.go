package wasm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// IsolateJob is the value of PARLEY_CHILD that turns a program into the process of one isolated call. Its main must
// then call [IsolateMain] before anything else.
const IsolateJob = "isolate"

const isolateProcess = "process"

// maxMissing bounds how many missing protections a child process may report.
const maxMissing = 16

// job is the first message to the child process.
type job struct {
	Slot      string             `json:"slot"` // folder of the compiled code
	Key       string             `json:"key"`
	Host      string             `json:"host"`
	Defaults  host.Limits        `json:"defaults"` // the engine's defaults
	Remaining time.Duration      `json:"left"`     // until the deadline
	Manifest  *manifest.Manifest `json:"manifest"` // with only the tool that is called
	Params    json.RawMessage    `json:"params"`
	Caller    string             `json:"caller"`
	Session   host.Session       `json:"session"`
	CallID    string             `json:"call_id"`
	Grant     host.Grant         `json:"grant"`
	Guard     *host.FileGuard    `json:"guard,omitempty"`
	Limits    host.Limits        `json:"limits"`
	Options   host.Options       `json:"options"`
	Settings  json.RawMessage    `json:"settings,omitempty"`
	Log       bool               `json:"log"` // whether the log is read
	Progress  bool               `json:"progress"`
}

// report is a log line or a progress report.
type report struct {
	Level   int     `json:"level,omitempty"`
	Done    float64 `json:"done,omitempty"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message"`
}

// outcome is the last message of the child process.
type outcome struct {
	Data     json.RawMessage `json:"data,omitempty"`
	Content  []host.Content  `json:"content,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	Err      *failure        `json:"error,omitempty"`
}

// failure has the fields of a host.Error that a guest's call can set, except steps.
type failure struct {
	Code    host.Code       `json:"code"`
	Exit    int             `json:"exit,omitempty"`
	Message string          `json:"message"`
	Details []host.Detail   `json:"details,omitempty"`
	Tool    *host.ToolError `json:"tool,omitempty"`
}

func failureOf(e *host.Error) *failure {
	return &failure{Code: e.Code, Exit: e.Exit, Message: e.Message, Details: e.Details, Tool: e.Tool}
}

// hostError converts a failure. Texts are cleaned and bounded, because a compromised process can send anything.
func (f *failure) hostError() *host.Error {
	e := &host.Error{Code: f.Code, Exit: f.Exit, Message: truncate(manifest.Clean(f.Message), 2*maxMessage),
		Details: f.Details, Tool: f.Tool}
	for i := range e.Details {
		d := &e.Details[i]
		d.Parameter, d.Keyword = manifest.CleanLine(d.Parameter), manifest.CleanLine(d.Keyword)
		d.Provided, d.Expected = manifest.CleanLine(d.Provided), manifest.CleanLine(d.Expected)
		d.Suggestion = host.TextSuggestion(manifest.CleanLine(d.Suggestion.String()))
	}
	return e
}

// runIsolated runs a call in a child process. The child sends all requests that reach beyond its instance to this
// process, and is killed at the deadline.
func (e *Engine) runIsolated(ctx context.Context, p *compiledPlugin, m *manifest.Manifest, r *host.Request,
	functions *hostFunctions) (*host.Result, error) {
	if e.cfg.Child == nil || p.slot.dir == "" {
		return nil, host.Errorf(host.Unavailable, "%s must run in a process of its own, but there is no folder for its "+
			"compiled code; nothing was run", m.Name).
			WithSteps(host.OperatorStep(host.OpDoctor))
	}
	c := newCall(e, p, m, r, functions)
	ctx, cancel := context.WithTimeout(ctx, c.limits.timeout)
	defer cancel()
	c.ctx = ctx
	c.deadline, _ = ctx.Deadline()

	isolated := &isolatedCall{c: c, functions: functions}
	result, err := isolated.run()
	if e := (*host.Error)(nil); errors.As(err, &e) && e.Code == host.Timeout && e.Tool == nil {
		<-ctx.Done() // the child's clock ran slightly ahead
	}
	if ctx.Err() != nil {
		return nil, c.contextError()
	}
	return result, err
}

// isolatedCall is the host's side of an isolated call.
type isolatedCall struct {
	c         *call
	functions *hostFunctions
	in        io.Writer

	logged  int
	missing []string
}

func (a *isolatedCall) run() (*host.Result, error) {
	cmd := a.c.engine.childCommand(IsolateJob)
	stderr := &prefixWriter{limit: 4 << 10}
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, a.startError(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, a.startError(err)
	}
	if err := cmd.Start(); err != nil {
		return nil, a.startError(err)
	}
	stop := context.AfterFunc(a.c.ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	a.in = stdin
	result, err := a.serve(bufio.NewReader(stdout))
	_ = cmd.Process.Kill()
	_ = stdin.Close()
	_ = cmd.Wait()
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = a.crashError(cmd, stderr.String())
	}
	for _, l := range a.missing {
		a.c.engine.cfg.Debug("isolation is missing " + l)
		if err == nil {
			result.Warnings = append(result.Warnings, "isolated without "+l)
		}
	}
	return result, err
}

func (a *isolatedCall) startError(err error) error {
	return &host.Error{Code: host.Unavailable, Cause: err, Steps: []host.Step{host.OperatorStep(host.OpDoctor)},
		Message: fmt.Sprintf("cannot start the process of %s: %v; nothing was run", a.c.m.Name, err)}
}

// crashError returns the reason why the child ended without an outcome.
func (a *isolatedCall) crashError(cmd *exec.Cmd, stderr string) error {
	state := cmd.ProcessState
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

// serve sends the job and serves requests until the outcome arrives.
func (a *isolatedCall) serve(out io.Reader) (*host.Result, error) {
	c := a.c
	m := *c.m
	m.Tools = []manifest.Tool{}
	if c.r.Def != nil {
		m.Tools = append(m.Tools, *c.r.Def)
	}
	body, err := json.Marshal(job{
		Slot: c.plugin.slot.dir, Key: c.plugin.slot.key, Host: c.engine.cfg.HostVersion, Defaults: c.engine.cfg.Limits,
		Remaining: time.Until(c.deadline),
		Manifest:  &m, Params: jsonOr(c.r.Params, "{}"), Caller: c.r.Caller, Session: c.r.Session, CallID: c.r.CallID,
		Grant: c.r.Grant, Guard: c.r.Guard.Load(), Limits: c.r.Limits, Options: c.r.Options, Settings: c.r.Settings,
		Log: c.r.Log != nil, Progress: c.r.Progress != nil,
	})
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "the parameters are not valid JSON: %v", err)
	}
	if err := writeFrame(a.in, frameJob, body); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	for {
		// A byte of guest text may take six bytes in JSON.
		kind, body, err := readFrame(out, max(6*c.limits.output, maxHostRequest)+frameOverhead)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, err
		case err != nil:
			return nil, host.Errorf(host.Trapped, "the process of %s sent %v", c.toolName(), err)
		case kind == frameDone:
			return a.decodeOutcome(body)
		}
		if err := a.handle(kind, body); err != nil {
			return nil, err
		}
	}
}

// handle processes one frame. It enforces the same limits as the child itself, which may be compromised.
func (a *isolatedCall) handle(kind byte, body []byte) error {
	c := a.c
	word, rest, _ := bytes.Cut(body, []byte("\n"))
	switch kind {
	case frameRequest:
		if c.hostCalls++; c.hostCalls > c.limits.hostCalls {
			return host.Errorf(host.LimitExceeded, "%s made more than %d requests to the host in one call", c.toolName(),
				c.limits.hostCalls)
		}
		if err := writeFrame(a.in, frameReply, a.functions.dispatch(c.ctx, string(word), rest)); err != nil {
			return io.ErrUnexpectedEOF
		}
	case frameDeny:
		a.functions.deny(truncate(manifest.CleanLine(string(word)), 4<<10), truncate(manifest.CleanLine(string(rest)),
			maxMessage))
	case frameUse:
		c.recordUse(truncate(string(body), 8<<10))
	case frameMissing:
		if len(a.missing) < maxMissing {
			a.missing = append(a.missing, truncate(manifest.CleanLine(string(body)), 300))
		}
	case frameLog, frameProgress:
		var r report
		// The guest may use the limit twice: for its log and for stderr.
		if a.logged += len(body); json.Unmarshal(body, &r) != nil || a.logged > 2*(c.limits.log+frameOverhead) {
			return host.Errorf(host.LimitExceeded, "%s logged more than %d bytes in one call", c.toolName(), c.limits.log)
		}
		r.Message = truncate(manifest.CleanLine(r.Message), 2*maxMessage) // the child has truncated it already
		switch {
		case kind == frameLog && c.r.Log != nil:
			c.r.Log(min(max(r.Level, 0), 3), r.Message)
		case kind == frameProgress && c.r.Progress != nil:
			c.r.Progress(r.Done, r.Total, r.Message)
		}
	default:
		return host.Errorf(host.Trapped, "the process of %s sent a frame of unknown kind", c.toolName())
	}
	return nil
}

func (a *isolatedCall) decodeOutcome(body []byte) (*host.Result, error) {
	var o outcome
	switch err := json.Unmarshal(body, &o); {
	case err != nil:
		return nil, host.Errorf(host.Trapped, "the process of %s sent an invalid outcome: %s", a.c.toolName(),
			truncate(manifest.CleanLine(err.Error()), 200))
	case o.Err != nil:
		e := o.Err.hostError()
		if e.Code == host.ConfigError { // a granted folder; steps of the child are not trusted
			e.Steps = []host.Step{host.OperatorStep(host.OpPolicyExplain, a.c.m.Name)}
		}
		return nil, e
	}
	for _, block := range o.Content {
		if err := block.Check(); err != nil {
			return nil, host.Errorf(host.InvalidResult, "%s returned invalid content: %s", a.c.toolName(), err)
		}
	}
	return &host.Result{Data: jsonOr(o.Data, "null"), Content: o.Content, Warnings: cleanWarnings(o.Warnings)}, nil
}

// childCommand returns the command for a job of this program. The child gets only the environment variables that it
// needs to start, not the user's.
func (e *Engine) childCommand(jobName string, args ...string) *exec.Cmd {
	cmd := e.cfg.Child()
	cmd.Args = append(cmd.Args[:1], args...)
	cmd.Env = append(cmd.Env, "PARLEY_CHILD="+jobName, "GOTRACEBACK=none")
	for _, needed := range []string{"SYSTEMROOT", "GOCOVERDIR"} {
		if v := os.Getenv(needed); v != "" {
			cmd.Env = append(cmd.Env, needed+"="+v)
		}
	}
	detach(cmd)
	return cmd
}
