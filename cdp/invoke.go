package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// KeeperJob is the value of PARLEY_CHILD that makes this binary a keeper, and KeeperMain what it then runs.
const KeeperJob = "keeper"

// KeeperMain is the keeper process. egress makes the guard through which the pages of plugins dial; it is asked before the keeper serves, and where it
// fails plugins are refused.
func KeeperMain(egress func() (host.Egress, error)) int { return keeper.Main(egress) }

// Close ends this process's connections; the browsers stay.
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
	r, err := p.confined(r)
	if err != nil {
		return nil, err
	}
	if verb := p.verb(r.Tool); verb != nil {
		return verb(ctx, r)
	}
	return p.command(ctx, r)
}

// checkBrowser refuses what is no browser's name, instead of saying that none of that name is open.
func (p *Provider) checkBrowser(name string) error {
	if err := keeper.CheckName(shownName(name)); err != nil {
		return host.AsError(p.hostError(err, nil)).WithNext("parley cdp status --all")
	}
	return nil
}

func (p *Provider) verb(name string) func(context.Context, *host.Request) (*host.Result, error) {
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
	}
	return nil
}

// command sends a command and judges what looks like success: a page that did not load, a script that threw.
func (p *Provider) command(ctx context.Context, r *host.Request) (*host.Result, error) {
	c, err := p.as(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.Tool == "Page.navigate" {
		if err := checkURL(r.Params); err != nil {
			return nil, err
		}
	}
	if r.Drain {
		return p.drain(ctx, c, r)
	}
	if err := undrained(r); err != nil {
		return nil, err
	}
	data, written, err := send(ctx, c, r, r.Options.Target)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	if written > 0 {
		return &host.Result{Written: written}, nil
	}
	if err := judge(data, r.Params); err != nil {
		return nil, err
	}
	return &host.Result{Data: data}, nil
}

// send sends a command and takes its result: as a whole, or where it is large and the caller has room for it, piece by piece.
func send(ctx context.Context, c *keeper.Client, r *host.Request, target string) (data json.RawMessage, written int64, err error) {
	q := keeper.CallRequest{Target: target, Method: r.Tool, Params: r.Params, OnDialog: r.Options.OnDialog}
	if r.Out != nil && !r.Drain {
		watch := &thrownWatch{out: r.Out}
		if data, written, err = c.CallInto(ctx, q, watch); err == nil {
			err = watch.err()
		}
		return data, written, err
	}
	data, err = c.Call(ctx, q)
	return data, 0, err
}

// judge finds the failure in what looks like success.
func judge(data, params json.RawMessage) error {
	var judged struct {
		ErrorText        string          `json:"errorText"`
		ExceptionDetails json.RawMessage `json:"exceptionDetails"`
	}
	if json.Unmarshal(data, &judged) == nil {
		switch {
		case judged.ErrorText != "":
			return navigationFailed(judged.ErrorText, params)
		case len(judged.ExceptionDetails) > 0:
			return scriptError(judged.ExceptionDetails)
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
		return nil, p.hostError(err, &host.Request{Options: host.Options{Browser: name}})
	}
	return p.keep(name, c), nil
}

// keep remembers a new connection. Of two that were made at once the first stays, for calls may be under way on it.
func (p *Provider) keep(name string, c *keeper.Client) *keeper.Client {
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

func (p *Provider) drop(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[name]; c != nil {
		_ = c.Close()
		delete(p.clients, name)
	}
}

type openParams struct {
	URL         string `json:"url"`
	Headed      bool   `json:"headed"`
	Attach      string `json:"attach"`
	UserDataDir string `json:"user_data_dir"`
	Chrome      string `json:"chrome"`
}

func (p *Provider) open(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q openParams
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	if err := checkURL(r.Params); err != nil {
		return nil, err
	}
	tries := openTries
	if q.Attach != "" {
		tries = 1 // their browser's user may have been asked
	}
	var page keeper.Page
	var notes []string
	err := whileItEnds(ctx, tries, r.Options.Browser, func() (err error) {
		page, notes, err = p.openPage(ctx, r, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	return result(page, notes...)
}

// openTries is how often open starts over when the browser ends under it.
const openTries = 4

// whileItEnds opens again when the browser that was there had just been killed or is closed by somebody else: what was asked for is an open
// browser.
func whileItEnds(ctx context.Context, tries int, name string, open func() error) error {
	for try := 1; ; try++ {
		err := open()
		if err == nil || host.AsError(err).Code != host.ChromeConnection || tries == 1 || ctx.Err() != nil {
			return err
		}
		if try == tries {
			e := *host.AsError(err)
			e.Message = fmt.Sprintf("browser %q ended %d times while it was opened, so it crashes, or somebody else closes it: %s", shownName(name), tries, e.Message)
			e.Next = []string{"parley cdp status --all", openCommand + " --browser NAME, with a name that nobody else uses"}
			return &e
		}
	}
}

// openPage makes a page in the browser that is open, or in one that it starts.
func (p *Provider) openPage(ctx context.Context, r *host.Request, q openParams) (keeper.Page, []string, error) {
	if !isPerson(r.Caller) {
		if err := keeper.Room(p.cfg.RunDir, r.Options.Browser); err != nil {
			return keeper.Page{}, nil, p.hostError(err, r)
		}
	}
	c, err := p.start(ctx, r.Options.Browser, q)
	if err != nil {
		return keeper.Page{}, nil, err
	}
	notes := c.Notes()
	c = spokenFor(c, r)
	if c.Started() {
		if s, err := c.Status(ctx); err == nil {
			notes = append(notes, s.Notes...)
		}
	}
	page, err := c.Open(ctx, keeper.OpenRequest{URL: q.URL, OnDialog: r.Options.OnDialog})
	if err != nil {
		return page, nil, p.hostError(err, r)
	}
	return page, notes, nil
}

// MissingOpen names open for what needs a browser while none is open.
func (p *Provider) MissingOpen(tool string) string {
	if slices.Contains([]string{"open", "close", "status"}, tool) {
		return ""
	}
	open, err := keeper.List(p.cfg.RunDir)
	if err != nil || slices.ContainsFunc(open, func(e keeper.Entry) bool { return e.Alive }) {
		return ""
	}
	return openCommand
}

// openCommand is what to type where no browser is open.
const openCommand = "parley cdp open URL"

// start connects to the keeper of a browser and starts one where there is none.
func (p *Provider) start(ctx context.Context, name string, q openParams) (*keeper.Client, error) {
	plain := q.Attach == "" && q.UserDataDir == "" && q.Chrome == "" && !q.Headed
	if plain {
		if c, err := p.client(ctx, name); err == nil {
			return c, nil
		}
	}
	cfg := keeper.Config{
		RunDir: p.cfg.RunDir, Browser: name, Version: p.cfg.Version, Headed: q.Headed,
		UserDataDir: q.UserDataDir, Attach: q.Attach, Idle: p.cfg.Idle,
	}
	if deadline, ok := ctx.Deadline(); ok && q.Attach != "" {
		// Somebody may have to allow it in the browser first. What is left lets the keeper say how it went.
		cfg.LaunchTimeout = time.Until(deadline) * 9 / 10
	}
	if q.Attach != "" && p.cfg.AttachHosts != nil {
		var err error
		if cfg.AttachHosts, err = p.cfg.AttachHosts(); err != nil {
			return nil, err
		}
	}
	if q.Attach == "" {
		found, err := findChrome(q.Chrome, p.cfg.Env, p.cfg.Chrome)
		if err != nil {
			return nil, err
		}
		p.cfg.Debug("browser: %s: %s", found.Path, found.Why())
		cfg.Chrome, cfg.FoundBy, cfg.Why = found.Path, found.From, found.Why()
	}
	c, err := keeper.Start(ctx, cfg)
	if err != nil {
		return nil, p.hostError(err, nil)
	}
	return p.keep(name, c), nil
}

// checkURL refuses what Chrome would not load, before it is sent, and says what may have been meant.
func checkURL(params json.RawMessage) error {
	var q map[string]any
	if json.Unmarshal(params, &q) != nil {
		return nil
	}
	given, ok := q["url"].(string)
	if !ok {
		return nil
	}
	u, err := url.Parse(strings.TrimSpace(given))
	switch {
	case err == nil && u.Scheme != "" && (u.Host != "" || u.Opaque != "" || u.Path != "") && !strings.Contains(u.Scheme, "."):
		if (u.Scheme == "http" || u.Scheme == "https") && u.Host == "" || strings.EqualFold(u.Scheme, "localhost") {
			break
		}
		return nil
	case given == "":
		return nil
	}
	e := host.Errorf(host.InvalidURL, "%q is not a URL that can be opened; expected one such as https://example.com/", manifest.CleanLine(given))
	e.Details = []host.Detail{{Parameter: "/url", Keyword: "format", Provided: fmt.Sprintf("string %q", manifest.CleanLine(given)), Expected: "an absolute URL with a scheme"}}
	local, scheme := strings.HasPrefix(strings.ToLower(given), "localhost"), "https://"
	if local {
		scheme = "http://"
	}
	if fixed, err := url.Parse(scheme + given); err == nil && (local || strings.Contains(fixed.Host, ".")) && !strings.ContainsAny(given, " ") {
		q["url"] = fixed.String()
		e.Corrected, _ = json.Marshal(q)
		e.Details[0].Suggestion = fixed.String()
		e.Next = []string{"parley cdp open " + manifest.ShellQuote(fixed.String())}
	}
	return e
}

func (p *Provider) close(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q struct {
		All bool `json:"all"`
	}
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	if r.Options.Target != "" {
		c, err := p.as(ctx, r)
		if err != nil {
			return nil, err
		}
		page, err := c.CloseTarget(ctx, r.Options.Target, r.Options.OnDialog)
		if err != nil {
			return nil, p.hostError(err, r)
		}
		return result(closed{[]string{page.Target}})
	}
	if isPlugin(r.Caller) {
		return p.closeOwn(ctx, r)
	}
	names := []string{r.Options.Browser}
	if q.All {
		entries, err := keeper.List(p.cfg.RunDir)
		if err != nil {
			return nil, p.hostError(err, r)
		}
		names = names[:0]
		for _, e := range entries {
			names = append(names, e.Browser)
		}
	}
	done := closed{[]string{}}
	var failed error
	for _, name := range names {
		p.drop(name)
		was, err := keeper.Stop(ctx, p.cfg.RunDir, name, p.cfg.Version)
		if err != nil && failed == nil {
			failed = err // the others are closed all the same
		}
		if was {
			done.Closed = append(done.Closed, shownName(name))
		}
	}
	switch {
	case failed != nil:
		return nil, p.hostError(failed, r)
	case len(done.Closed) == 0:
		return result(done, "no browser was open")
	}
	return result(done)
}

type closed struct {
	Closed []string `json:"closed"`
}

func shownName(name string) string {
	if name == "" {
		return keeper.DefaultBrowser
	}
	return name
}

func (p *Provider) status(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q struct {
		All bool `json:"all"`
	}
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	entries, err := keeper.List(p.cfg.RunDir)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	list := struct {
		Browsers []any `json:"browsers"`
	}{[]any{}}
	var notes []string
	for _, e := range entries {
		if !q.All && e.Browser != shownName(r.Options.Browser) {
			continue
		}
		if !e.Alive {
			notes = append(notes, fmt.Sprintf("browser %s ended without cleaning up; what it left %s", e.Browser, swept(p.cfg.RunDir)))
			continue
		}
		c, err := p.client(ctx, e.Browser)
		var s keeper.Status
		if err == nil {
			s, err = spokenFor(c, r).Status(ctx)
		}
		if err == nil {
			list.Browsers = append(list.Browsers, s)
			continue
		}
		notes = append(notes, fmt.Sprintf("browser %s: %s", e.Browser, manifest.CleanLine(err.Error())))
		if isPerson(r.Caller) {
			list.Browsers = append(list.Browsers, e)
		}
	}
	if len(list.Browsers) == 0 {
		notes = append(notes, "no browser is open")
	}
	return result(list, notes...)
}

// swept removes what dead keepers left, and tells how that went.
func swept(runDir string) string {
	if _, err := keeper.Sweep(runDir); err != nil {
		return "cannot be removed: " + manifest.CleanLine(err.Error())
	}
	return "was removed"
}

func (p *Provider) targets(ctx context.Context, r *host.Request) (*host.Result, error) {
	c, err := p.as(ctx, r)
	if err != nil {
		return nil, err
	}
	targets, err := c.Targets(ctx)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(struct {
		Targets []keeper.Target `json:"targets"`
	}{append([]keeper.Target{}, targets...)})
}

func (p *Provider) activate(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q struct {
		Target string `json:"target"`
	}
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	c, err := p.as(ctx, r)
	if err != nil {
		return nil, err
	}
	page, err := c.Activate(ctx, q.Target)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(page)
}

func result(v any, warnings ...string) (*host.Result, error) {
	data, err := manifest.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &host.Result{Data: data, Warnings: warnings}, nil
}

// hostError gives a keeper's error the form, the code and the next step that callers see.
func (p *Provider) hostError(err error, r *host.Request) error {
	var k *keeper.Error
	if !errors.As(err, &k) {
		return err
	}
	e := &host.Error{Code: host.Code(k.Code), Message: manifest.Clean(k.Message), Cause: err}
	if k.Chrome != nil {
		e.Protocol = &host.ProtocolError{Code: k.Chrome.Code, Message: manifest.Clean(k.Chrome.Message), Data: manifest.Clean(k.Chrome.Data)}
	}
	switch k.Code {
	case keeper.CodeDenied:
		for _, d := range k.Denied {
			e.Denied = append(e.Denied, host.Denial{Right: manifest.CleanLine(d.Right), Why: manifest.CleanLine(d.Why)})
			if r != nil {
				e.Next = append(e.Next, grantCommand(r, d.Right))
			}
		}
	case keeper.CodeNavigationFailed:
		declared(e, exitNavigationFailed, "navigation_failed", nil)
		e.Next = []string{navigationAdvice(k.Message)}
	case keeper.CodeProtocolError:
		if k.Chrome != nil && strings.Contains(k.Chrome.Message, "invalid URL") {
			e.Code = host.InvalidURL
			break
		}
		declared(e, exitProtocolError, "protocol_error", nil)
		if r != nil {
			e.Next = p.protocolAdvice(r, k)
		}
	case keeper.CodeChromeConnection:
		e.Next = []string{openCommand + browserOf(r)}
	case keeper.CodeChromeLaunch:
		e.Next = []string{"parley doctor"}
	case keeper.CodeConfigError:
		e.Next = []string{"set PARLEY_HOME to a folder that you may write to"}
	case keeper.CodeTargetCrashed:
		e.Next = []string{"parley cdp Page.reload" + pageOf(r), "parley cdp Page.navigate --param url=URL" + pageOf(r)}
	case keeper.CodeNotFound:
		e.Next = []string{"parley cdp targets" + browserOf(r)}
	case keeper.CodeBusy:
		e.Next = []string{`parley cdp Page.handleJavaScriptDialog --params '{"accept":true}'` + pageOf(r)}
	case keeper.CodeTimeout:
		e.Next = []string{"give it longer with --timeout " + longer(r)}
	case keeper.CodeLimitExceeded:
		e.Next = []string{"ask for less, such as a part of the page"}
		if k.Bytes > 0 && r != nil && r.Caller == "cli" && r.Out == nil {
			e.Next = append([]string{"add --out FILE, without --jq: it takes a result of any size"}, e.Next...)
		}
	}
	return e
}

// browserOf and pageOf are the options that lead another command to the browser of a call, and to its page.
func browserOf(r *host.Request) string {
	if r == nil || r.Options.Browser == "" || r.Options.Browser == keeper.DefaultBrowser {
		return ""
	}
	return " --browser " + manifest.ShellQuote(r.Options.Browser)
}

func pageOf(r *host.Request) string {
	if r == nil || r.Options.Target == "" {
		return browserOf(r)
	}
	return browserOf(r) + " --target " + manifest.ShellQuote(manifest.CleanLine(r.Options.Target))
}

func longer(r *host.Request) string {
	if r == nil || r.Options.Timeout <= 0 {
		return (2 * host.DefaultTimeout).String()
	}
	return (4 * r.Options.Timeout).Round(time.Second).String()
}

// declared makes an error one of the codes that the plugin declares.
func declared(e *host.Error, exit int, name string, details json.RawMessage) {
	e.Code, e.Exit = host.Code(name), exit
	e.Tool = &host.ToolError{Exit: exit, Name: name, Details: details}
}

func navigationFailed(text string, params json.RawMessage) *host.Error {
	var q struct {
		URL string `json:"url"`
	}
	_ = json.Unmarshal(params, &q)
	e := &host.Error{Message: manifest.CleanLine(fmt.Sprintf("navigation to %s failed: %s", q.URL, text)), Next: []string{navigationAdvice(text)}}
	details, _ := json.Marshal(map[string]string{"error_text": manifest.CleanLine(text)})
	declared(e, exitNavigationFailed, "navigation_failed", details)
	return e
}

// navigationAdvice is what helps where a page did not load, by the reason that Chrome names.
func navigationAdvice(reason string) string {
	if strings.Contains(reason, "net::ERR_ABORTED") {
		return "a download and an empty answer show no page; parley cdp targets tells whether the page has crashed"
	}
	return "check the URL and that the server runs"
}

// maxExceptionDetails bounds what of a page's exception goes into an error.
const maxExceptionDetails = 4096

func scriptError(raw json.RawMessage) *host.Error {
	var thrown struct {
		Text         string `json:"text"`
		LineNumber   int    `json:"lineNumber"`
		ColumnNumber int    `json:"columnNumber"`
		Exception    struct {
			Description string          `json:"description"`
			Value       json.RawMessage `json:"value"`
		} `json:"exception"`
	}
	_ = json.Unmarshal(raw, &thrown)
	text := thrown.Text
	switch {
	case thrown.Exception.Description != "":
		text, _, _ = strings.Cut(thrown.Exception.Description, "\n")
	case len(thrown.Exception.Value) > 0:
		text += " " + string(thrown.Exception.Value)
	}
	e := &host.Error{Message: manifest.CleanLine(fmt.Sprintf("the page's script threw: %s (line %d, column %d)", manifest.Clip(text, 1000), thrown.LineNumber+1, thrown.ColumnNumber+1))}
	if len(raw) > maxExceptionDetails {
		raw = nil
	}
	declared(e, exitScriptError, "script_error", raw)
	return e
}
