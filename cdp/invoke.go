package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/manifest"
)

// KeeperJob is the value of PARLEY_CHILD with which this binary runs [KeeperMain].
const KeeperJob = "keeper"

// KeeperMain runs the keeper process and returns its exit code. The pages of plugins connect through the guard that
// egress returns. egress is called before the keeper serves; when it fails, the keeper refuses plugins.
func KeeperMain(egress func() (outbound.Egress, error)) int { return keeper.Main(egress) }

// Close closes this process's connections. The browsers stay open.
func (p *Provider) Close() { p.browsers.disconnect() }

// Invoke runs a verb, or sends a command to the browser.
func (p *Provider) Invoke(ctx context.Context, r *host.Request) (*job.Result, error) {
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

type handler func(context.Context, *host.Request) (*job.Result, error)

// verbHandler returns what runs a verb that needs more than the keeper, nil for other tools.
func (p *Provider) verbHandler(name string) handler {
	b := p.browsers
	return map[string]handler{"open": b.open, "close": b.close, "status": b.status, "events": p.events, "state": b.state,
		"type": b.typeSecret, "script": b.script}[name]
}

// native runs a verb that needs nothing of the host, with the parameters as given.
func (b *browsers) native(ctx context.Context, r *host.Request) (*job.Result, error) {
	c, err := b.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	data, err := c.Verb(ctx, r.Tool, api.VerbRequest[json.RawMessage]{Params: r.Params, VerbOptions: api.VerbOptions{
		Target: r.Options.Target, OnDialog: r.Options.OnDialog, Wait: r.Options.Wait}})
	if err != nil {
		return nil, err
	}
	return &job.Result{Data: data}, nil
}

// typeSecret types a secret into the focused element, if the policy binds it to the origin of that frame.
func (b *browsers) typeSecret(ctx context.Context, r *host.Request) (*job.Result, error) {
	var q struct {
		Secret string `json:"secret"`
		Submit bool   `json:"submit"`
	}
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	c, err := b.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	secret, err := host.AskFor[job.BoundSecret](ctx, r, job.AskBoundSecret, job.NameArgument{Name: q.Secret})
	if err != nil {
		return nil, err
	}
	done, err := keeper.Ask(ctx, c, api.OpType, api.TypeRequest{Target: r.Options.Target, Text: secret.Value,
		Origins: secret.Origins, Submit: q.Submit})
	if err != nil {
		return nil, err
	}
	return result(done)
}

// command sends a command and detects failures that look like success: a page that did not load, a script that threw.
func (p *Provider) command(ctx context.Context, r *host.Request) (*job.Result, error) {
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
		return &job.Result{Written: written, Warnings: warnings}, nil
	}
	if err := checkResult(data, r); err != nil {
		return nil, err
	}
	return adviseEvaluation(&job.Result{Data: data, Warnings: warnings}, r), nil
}

// send sends a command, enabling domains for it. It returns the result in data, or writes it to the output piece by
// piece and returns its size.
func send(ctx context.Context, c *keeper.Client, r *host.Request, target string, enable ...string) (
	data json.RawMessage, written int64, err error) {
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

// exceptionTool is the command whose result is the details of an exception. Such details are not a failure of the
// call.
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

func result(v any, warnings ...string) (*job.Result, error) {
	data, err := manifest.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &job.Result{Data: data, Warnings: warnings}, nil
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

// effectOf returns the effect of a call. A call of route that only lists the rules is a read.
func effectOf(j *job.Job) string {
	var q api.RouteRequest
	if j.Tool == "route" && json.Unmarshal(j.Params, &q) == nil && q.Rules == nil && len(q.Add)+len(q.Remove) == 0 {
		return manifest.EffectRead
	}
	return manifest.EffectDestructive // at least the effect of the tool
}

// script calls a function of a script that the calling plugin ships. Its text is read only if the keeper lacks it.
func (b *browsers) script(ctx context.Context, r *host.Request) (*job.Result, error) {
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
	argument := job.ScriptArgument{Name: q.Script}
	declared, err := host.AskFor[job.Script](ctx, r, job.AskScript, argument)
	if err != nil {
		return nil, err
	}
	c, err := b.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	request := api.ScriptRequest{Script: api.PageScript{Plugin: declared.Plugin, Name: q.Script, SHA256: declared.SHA256}}
	request.Target, request.OnDialog = r.Options.Target, r.Options.OnDialog
	request.Function, request.Args, request.DocumentStart = q.Call, q.Args, q.DocumentStart
	request.ClosedRoots = q.ClosedRoots
	if request.Files, err = filesFor(ctx, c, r, q.Files); err != nil {
		return nil, err
	}
	done, err := c.Script(ctx, request)
	if errors.Is(err, api.ErrNoScript) {
		argument.Text = true
		if declared, err = host.AskFor[job.Script](ctx, r, job.AskScript, argument); err != nil {
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

// filesFor returns the paths of files for a page. It copies files that the host has handed to the plugin to the
// upload folder of the session. The others are downloads, which the keeper checks.
func filesFor(ctx context.Context, c *keeper.Client, r *host.Request, given []string) ([]string, error) {
	var paths []string
	for _, file := range given {
		if strings.HasPrefix(file, job.SharedFilePrefix) {
			folder, err := keeper.Ask(ctx, c, api.OpUploads, struct{}{})
			if err != nil {
				return nil, err
			}
			argument := job.SharedFileArgument{Text: file, Folder: folder.Path}
			if file, err = host.AskFor[string](ctx, r, job.AskSharedFile, argument); err != nil {
				return nil, err
			}
		}
		paths = append(paths, file)
	}
	return paths, nil
}

// The rest of this file repeats calls that Chrome refuses because a domain is not enabled. The domain is enabled for
// the second call if the reviewed table says that this does not affect the page, and if the caller may enable it.

// sendEnabling is [send] for a caller's command. The warnings say which domains were enabled for it.
func (p *Provider) sendEnabling(ctx context.Context, c *keeper.Client, r *host.Request) (data json.RawMessage,
	written int64, warnings []string, err error) {
	var done api.Enabled
	c = c.OnEnabled(func(e api.Enabled) { done = e })
	target, domains := r.Options.Target, []string(nil)
	for {
		data, written, err = send(ctx, c, r, target, domains...)
		more := p.protocol.domainsToEnable(ctx, r, domains, data, err)
		if len(more) == 0 {
			break
		}
		domains = append(domains, more...)
		if k, ok := errors.AsType[*api.Error](err); ok && k.Target != "" {
			target = k.Target // the current target can change meanwhile
		}
	}
	for _, domain := range slices.Concat(done.Off, done.Kept) {
		r.RecordUse("tool:" + Name + "." + domain + ".enable")
	}
	return data, written, warnEnabled(done), err
}

// domainsToEnable returns the domains to enable before a call is repeated, in the order in which they need each
// other. It returns nil if the outcome of the call asks for none, if they were all enabled already, or if the table
// or the policy does not allow one of them.
func (t translation) domainsToEnable(ctx context.Context, r *host.Request, enabled []string, data json.RawMessage,
	err error) (domains []string) {
	missing := t.disabledDomain(r.Tool, data, err)
	if missing == "" {
		return nil
	}
	d, _ := protocol.Embedded().Domain(missing)
	for _, name := range append(d.Enabling.Needs, missing) {
		needed, _ := protocol.Embedded().Domain(name)
		switch {
		case slices.Contains(enabled, name):
		case !needed.Enabling.Allows(protocol.Embedded().Rights(r.Tool).Effect):
			return nil
		default:
			may, err := host.AskFor[bool](ctx, r, job.AskMayCall, job.ToolArgument{Tool: name + ".enable"})
			if err != nil || !may {
				return nil
			}
			domains = append(domains, name)
		}
	}
	return domains
}

// disabledDomain returns the domain that the outcome of a command says is not enabled, "" for other outcomes.
func (t translation) disabledDomain(tool string, data json.RawMessage, err error) string {
	k, ok := errors.AsType[*api.Error](err)
	switch {
	case err == nil && len(data) > 0 && string(data) == emptyIfDisabled[tool]:
		return api.DomainOf(tool)
	case !ok || k.Chrome == nil || remedyIn(k.Chrome.Message) != nil:
		return ""
	}
	return strings.TrimSuffix(t.enableCommand(tool, k.Chrome.Message), ".enable")
}

// emptyIfDisabled are the results of commands that succeed while their domain is disabled, but return nothing.
var emptyIfDisabled = map[string]string{
	"Performance.getMetrics": `{"metrics":[]}`,
	"CSS.getMediaQueries":    `{"medias":[]}`,
}

// warnEnabled returns a warning for domains that were disabled again, and one for those that stay enabled.
func warnEnabled(done api.Enabled) (warnings []string) {
	for _, w := range []struct {
		domains         []string
		single, several string
	}{
		{done.Off, "%s was enabled for this call and is off again; %s.enable keeps it on",
			"%s were enabled for this call and are off again; %s.enable keeps them on"},
		{done.Kept, "%s was enabled for this call and stays on, because ids or settings are lost without it; " +
			"%s.disable turns it off", "%s were enabled for this call and stay on, because ids or settings are lost without " +
			"them; %s.disable turns them off"},
	} {
		format := w.single
		if len(w.domains) > 1 {
			format = w.several
		}
		if len(w.domains) > 0 {
			warnings = append(warnings, fmt.Sprintf(format, strings.Join(w.domains, " and "), Name+"."+w.domains[0]))
		}
	}
	return warnings
}
