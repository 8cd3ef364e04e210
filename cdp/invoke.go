package cdp

import (
	"context"
	"encoding/json"

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
	switch name {
	case "open":
		return b.open
	case "close":
		return b.close
	case "status":
		return b.status
	case "events":
		return p.events
	case "state":
		return b.state
	case "type":
		return asking(b, typeSecret)
	case "script":
		return b.script
	}
	return nil
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
	if r.Tool == exceptionTool {
		return nil
	}
	if json.Unmarshal(data, &outcome) == nil {
		switch {
		case outcome.ErrorText != "":
			return navigationError(outcome.ErrorText, r)
		case len(outcome.ExceptionDetails) > 0:
			return scriptError(outcome.ExceptionDetails)
		}
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
