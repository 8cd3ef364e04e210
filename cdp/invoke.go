package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/manifest"
)

// KeeperJob is the value of PARLEY_CHILD with which this binary runs [KeeperMain].
const KeeperJob = "keeper"

// KeeperMain runs the keeper process and returns its exit code. The pages of plugins connect through the guard that
// egress returns. It is called before the keeper serves; when it fails, the keeper refuses plugins.
func KeeperMain(egress func() (host.Egress, error)) int { return keeper.Main(egress) }

// Close closes this process's connections. The browsers stay open.
func (p *Provider) Close() { p.browsers.disconnect() }

// Invoke runs a verb, or sends a command to the browser.
func (p *Provider) Invoke(ctx context.Context, r *host.Request) (*host.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.checkBrowser(r.Options.Browser); err != nil {
		return nil, err
	}
	if err := confine(r); err != nil {
		return nil, err
	}
	run := p.verbHandler(r.Tool)
	switch {
	case run != nil:
	case verbs.Tool(r.Tool) != nil:
		run = p.browsers.native
	default:
		run = p.command
	}
	done, err := run(ctx, r)
	return done, p.hostError(err, r)
}

// checkBrowser rejects an invalid name of a browser, instead of reporting that no such browser is open.
func (p *Provider) checkBrowser(name string) error {
	if err := keeper.CheckName(displayName(name)); err != nil {
		return host.AsError(p.hostError(err, nil)).WithSteps(statusStep)
	}
	return nil
}

type handler func(context.Context, *host.Request) (*host.Result, error)

// verbHandler returns what runs a verb that needs more than the keeper, nil for other tools.
func (p *Provider) verbHandler(name string) handler {
	b := p.browsers
	return map[string]handler{"open": b.open, "close": b.close, "status": b.status, "events": p.events, "state": b.state,
		"type": asking(b, typeSecret), "script": b.script}[name]
}

// native runs a verb that needs nothing of the host, with the parameters as given.
func (b *browsers) native(ctx context.Context, r *host.Request) (*host.Result, error) {
	c, err := b.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	data, err := c.Verb(ctx, r.Tool, api.VerbRequest[json.RawMessage]{Params: r.Params, VerbOptions: api.VerbOptions{
		Target: r.Options.Target, OnDialog: r.Options.OnDialog, Wait: r.Options.Wait}})
	if err != nil {
		return nil, err
	}
	return &host.Result{Data: data}, nil
}

// asking returns what runs a verb that decodes its parameters and asks the keeper of the call's browser.
func asking[Q, R any](
	b *browsers, ask func(ctx context.Context, c *keeper.Client, r *host.Request, q Q) (R, error),
) handler {
	return func(ctx context.Context, r *host.Request) (*host.Result, error) {
		var q Q
		if err := json.Unmarshal(r.Params, &q); err != nil {
			return nil, host.Errorf(host.InvalidArgs, "the parameters of %s: %v", r.Tool, err)
		}
		c, err := b.clientFor(ctx, r)
		if err != nil {
			return nil, err
		}
		done, err := ask(ctx, c, r, q)
		if err != nil {
			return nil, err
		}
		return result(done)
	}
}

type secretParams struct {
	Secret string `json:"secret"`
	Submit bool   `json:"submit"`
}

// typeSecret types a secret into the focused element, if the policy binds it to the origin of that frame.
func typeSecret(ctx context.Context, c *keeper.Client, r *host.Request, q secretParams) (api.Typed, error) {
	secret, err := host.AskFor[host.BoundSecret](ctx, r, host.AskBoundSecret, host.NameArgument{Name: q.Secret})
	if err != nil {
		return api.Typed{}, err
	}
	return c.Type(ctx, api.TypeRequest{Target: r.Options.Target, Text: secret.Value, Origins: secret.Origins,
		Submit: q.Submit})
}

// command sends a command and detects failures that look like success: a page that did not load, a script that threw.
func (p *Provider) command(ctx context.Context, r *host.Request) (*host.Result, error) {
	if r.Tool == "Page.navigate" || r.Tool == "Target.createTarget" {
		if err := origin.CheckURLs(r.Params, []string{"/url"}); err != nil {
			return nil, err
		}
	}
	c, err := p.browsers.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.Drain {
		return drain(ctx, c, r)
	}
	if err := checkDrain(r); err != nil {
		return nil, err
	}
	data, written, warnings, err := p.sendEnabling(ctx, c, r)
	if err != nil {
		return nil, err
	}
	if written > 0 {
		return &host.Result{Written: written, Warnings: warnings}, nil
	}
	if err := checkResult(data, r); err != nil {
		return nil, err
	}
	return adviseEvaluation(&host.Result{Data: data, Warnings: warnings}, r), nil
}

// send sends a command, with domains that are to be enabled for it. It returns the result in data, or writes it to
// the output piece by piece and returns its size.
func send(ctx context.Context, c *keeper.Client, r *host.Request, target string, enable ...string) (
	data json.RawMessage, written int64, err error,
) {
	q := api.CallRequest{Target: target, Method: r.Tool, Params: r.Params, OnDialog: r.Options.OnDialog,
		Wait: r.Options.Wait, Enable: enable}
	if out := r.Output(); out != nil && !r.Drain && r.Tool != exceptionTool {
		watch := &exceptionDetector{out: out}
		if data, written, err = c.CallTo(ctx, q, watch); err == nil {
			err = watch.err()
		}
		return data, written, err
	}
	data, err = c.Call(ctx, q)
	return data, 0, err
}

// exceptionTool is the command whose result is the details of an exception. They report no failure of the call.
const exceptionTool = "Runtime.getExceptionDetails"

// checkResult returns the error of a result that reports a failed navigation or an exception, nil for others.
func checkResult(data json.RawMessage, r *host.Request) error {
	var outcome struct {
		ErrorText        string          `json:"errorText"`
		ExceptionDetails json.RawMessage `json:"exceptionDetails"`
	}
	switch {
	case r.Tool == exceptionTool || json.Unmarshal(data, &outcome) != nil:
	case outcome.ErrorText != "":
		return navigationError(outcome.ErrorText, r)
	case len(outcome.ExceptionDetails) > 0:
		return scriptError(outcome.ExceptionDetails)
	}
	return nil
}

func result(v any, warnings ...string) (*host.Result, error) {
	data, err := manifest.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &host.Result{Data: data, Warnings: warnings}, nil
}

// exceptionDetector is a writer that passes a result on and detects whether it reports an exception. It scans the
// pieces because a large result is never in memory as a whole.
type exceptionDetector struct {
	out    io.Writer
	bytes  int64
	thrown bool // the object has a member exceptionDetails

	depth             int
	inString, escaped bool
	atKey             bool   // the next string is the name of a member of the top-level object
	name              []byte // the beginning of that name
}

const exceptionMember = "exceptionDetails"

func (w *exceptionDetector) Write(piece []byte) (int, error) {
	for _, b := range piece {
		w.scan(b)
	}
	n, err := w.out.Write(piece)
	w.bytes += int64(n)
	return n, err
}

func (w *exceptionDetector) scan(b byte) {
	switch {
	case w.escaped:
		w.escaped = false
	case w.inString && b == '\\':
		w.escaped = true
	case w.inString && b == '"':
		w.inString = false
		w.thrown = w.thrown || w.atKey && string(w.name) == exceptionMember
	case w.inString:
		if w.atKey && len(w.name) <= len(exceptionMember) {
			w.name = append(w.name, b)
		}
	case b == '"':
		w.inString, w.name = true, w.name[:0]
	case b == '{', b == '[':
		w.depth++
		w.atKey = w.depth == 1
	case b == '}', b == ']':
		w.depth--
		w.atKey = false
	case b == ':':
		w.atKey = false
	case b == ',':
		w.atKey = w.depth == 1
	}
}

// err returns the script_error of a result that reports an exception, nil for others.
func (w *exceptionDetector) err() error {
	if !w.thrown {
		return nil
	}
	e := &host.Error{Message: fmt.Sprintf("the page's script threw; its result of %d bytes was discarded", w.bytes)}
	setDeclaredExit(e, exitScriptError, "script_error", nil)
	return e
}

type scriptParams struct {
	Script        string            `json:"script"`
	Call          string            `json:"call"`
	Args          []json.RawMessage `json:"args"`
	DocumentStart bool              `json:"document_start"`
	Files         []string          `json:"files"`
	ClosedRoots   bool              `json:"closed_roots"`
}

// effectOf returns the effect of a call: that of route is read where it only lists the rules.
func effectOf(j *host.Job) string {
	var q api.RouteRequest
	if j.Tool == "route" && json.Unmarshal(j.Params, &q) == nil && q.Rules == nil && len(q.Add)+len(q.Remove) == 0 {
		return manifest.EffectRead
	}
	return manifest.EffectDestructive // not less than that of the tool
}

// script calls a function of a script that the calling plugin ships. Its text is read only if the keeper lacks it.
func (b *browsers) script(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q scriptParams
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	if q.Call == "" && !q.DocumentStart {
		e := host.Errorf(host.InvalidArgs, "script requires call, the name of a function, or document_start")
		e.Details = []host.Detail{{Parameter: "/call", Keyword: "required", Provided: "nothing",
			Expected: "the name of a function that the script exports"}}
		return nil, e
	}
	argument := host.ScriptArgument{Name: q.Script}
	declared, err := host.AskFor[host.Script](ctx, r, host.AskScript, argument)
	if err != nil {
		return nil, err
	}
	c, err := b.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	request := api.NewScriptRequest(declared.Plugin, q.Script, declared.SHA256, "")
	request.Target, request.OnDialog = r.Options.Target, r.Options.OnDialog
	request.Function, request.Args, request.DocumentStart = q.Call, q.Args, q.DocumentStart
	request.ClosedRoots = q.ClosedRoots
	if request.Files, err = filesFor(ctx, c, r, q.Files); err != nil {
		return nil, err
	}
	done, err := c.Script(ctx, request)
	if errors.Is(err, api.ErrNoScript) {
		argument.Text = true
		if declared, err = host.AskFor[host.Script](ctx, r, host.AskScript, argument); err != nil {
			return nil, err
		}
		request.Script.Text = declared.Text
		done, err = c.Script(ctx, request)
	}
	if err != nil {
		return nil, err
	}
	if done.Exception != nil {
		return nil, scriptError(done.Exception)
	}
	return result(done)
}

// filesFor returns the paths of files for a page: those that the host has handed to the plugin are copied to where the
// session's pages get theirs from; the others are downloads, which the keeper checks.
func filesFor(ctx context.Context, c *keeper.Client, r *host.Request, given []string) ([]string, error) {
	var paths []string
	for _, file := range given {
		if strings.HasPrefix(file, host.SharedFilePrefix) {
			folder, err := c.UploadFolder(ctx)
			if err != nil {
				return nil, err
			}
			argument := host.SharedFileArgument{Text: file, Folder: folder.Path}
			if file, err = host.AskFor[string](ctx, r, host.AskSharedFile, argument); err != nil {
				return nil, err
			}
		}
		paths = append(paths, file)
	}
	return paths, nil
}
