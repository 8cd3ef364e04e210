package cdp

import (
	"context"
	"encoding/json"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// KeeperJob is the value of PARLEY_CHILD with which this binary runs [KeeperMain].
const KeeperJob = "keeper"

// KeeperMain runs the keeper process and returns its exit code. The pages of plugins connect through the guard that
// egress returns. It is called before the keeper serves; when it fails, the keeper refuses plugins.
func KeeperMain(egress func() (host.Egress, error)) int { return keeper.Main(egress) }

// Close closes this process's connections. The browsers stay open.
func (p *Provider) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clients {
		_ = c.Close()
	}
	clear(p.clients)
}

// Invoke runs a verb, or sends a command to the browser.
func (p *Provider) Invoke(ctx context.Context, r *host.Request) (*host.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.checkBrowser(r.Options.Browser); err != nil {
		return nil, err
	}
	if err := p.confine(r); err != nil {
		return nil, err
	}
	if handler := p.verbHandler(r.Tool); handler != nil {
		return handler(ctx, r)
	}
	return p.command(ctx, r)
}

// checkBrowser rejects an invalid name of a browser, instead of reporting that no such browser is open.
func (p *Provider) checkBrowser(name string) error {
	if err := keeper.CheckName(displayName(name)); err != nil {
		return host.AsError(p.hostError(err, nil)).WithSteps(statusStep)
	}
	return nil
}

func (p *Provider) verbHandler(name string) func(context.Context, *host.Request) (*host.Result, error) {
	switch name {
	case "open":
		return p.open
	case "close":
		return p.close
	case "status":
		return p.status
	case "targets":
		return p.targets
	case "activate":
		return p.activate
	case "events":
		return p.events
	case "state":
		return p.state
	case "type":
		return p.typeSecret
	case "script":
		return p.script
	case "input":
		return p.input
	case "route":
		return p.route
	}
	return nil
}

// command sends a command and detects failures that look like success: a page that did not load, a script that threw.
func (p *Provider) command(ctx context.Context, r *host.Request) (*host.Result, error) {
	if r.Tool == "Page.navigate" || r.Tool == "Target.createTarget" {
		if err := host.CheckURLs(r.Params, []string{"/url"}); err != nil {
			return nil, err
		}
	}
	c, err := p.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.Drain {
		return p.drain(ctx, c, r)
	}
	if err := checkDrain(r); err != nil {
		return nil, err
	}
	data, written, warnings, err := p.sendEnabling(ctx, c, r)
	if err != nil {
		return nil, p.hostError(err, r)
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
		if data, written, err = c.CallInto(ctx, q, watch); err == nil {
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

// client returns this process's connection to a browser's keeper.
func (p *Provider) client(ctx context.Context, name string) (*keeper.Client, error) {
	p.mu.Lock()
	c := p.clients[name]
	p.mu.Unlock()
	if c != nil && !c.Ended() {
		return c, nil
	}
	c, err := keeper.Dial(ctx, p.cfg.RunDir, name, p.cfg.Version)
	if err != nil {
		return nil, p.hostError(err, &host.Request{Job: host.Job{Options: host.Options{Browser: name}}})
	}
	return p.addClient(name, c), nil
}

// addClient stores a new connection. Of two concurrent connections the first stays, because it may have calls in
// progress.
func (p *Provider) addClient(name string, c *keeper.Client) *keeper.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.clients[name]; first != nil {
		if !first.Ended() {
			_ = c.Close()
			return first
		}
		_ = first.Close()
	}
	p.clients[name] = c
	return c
}

// dropClient closes and forgets the connection to a browser. If it is forgotten because the browser has ended, another
// call may have replaced it by one to a new browser of that name, which stays.
func (p *Provider) dropClient(name string, onlyEnded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[name]; c != nil && (!onlyEnded || c.Ended()) {
		_ = c.Close()
		delete(p.clients, name)
	}
}

func result(v any, warnings ...string) (*host.Result, error) {
	data, err := manifest.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &host.Result{Data: data, Warnings: warnings}, nil
}
