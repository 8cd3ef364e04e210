package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// KeeperJob is the value of PARLEY_CHILD that makes this binary a keeper, and KeeperMain what it then runs.
const KeeperJob = "keeper"

// KeeperMain is the keeper process.
func KeeperMain() int { return keeper.Main() }

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
	if verb := p.verb(r.Tool); verb != nil {
		return verb(ctx, r)
	}
	return p.command(ctx, r)
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
	c, err := p.client(ctx, r.Options.Browser)
	if err != nil {
		return nil, err
	}
	if r.Tool == "Page.navigate" {
		if err := checkURL(r.Params); err != nil {
			return nil, err
		}
	}
	data, err := c.Call(ctx, keeper.CallRequest{Target: r.Options.Target, Method: r.Tool, Params: r.Params, OnDialog: r.Options.OnDialog})
	if err != nil {
		return nil, p.hostError(err, r)
	}
	var judged struct {
		ErrorText        string          `json:"errorText"`
		ExceptionDetails json.RawMessage `json:"exceptionDetails"`
	}
	if json.Unmarshal(data, &judged) == nil {
		switch {
		case judged.ErrorText != "":
			return nil, navigationFailed(judged.ErrorText, r.Params)
		case len(judged.ExceptionDetails) > 0:
			return nil, scriptError(judged.ExceptionDetails)
		}
	}
	return &host.Result{Data: data}, nil
}

// client returns this process's connection to a browser's keeper.
func (p *Provider) client(ctx context.Context, name string) (*keeper.Client, error) {
	p.mu.Lock()
	c := p.clients[name]
	p.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := keeper.Dial(ctx, p.cfg.RunDir, name, p.cfg.Version)
	if err != nil {
		return nil, p.hostError(err, nil)
	}
	p.keep(name, c)
	return c, nil
}

func (p *Provider) keep(name string, c *keeper.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.clients[name]; old != nil && old != c {
		_ = old.Close()
	}
	p.clients[name] = c
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
	c, err := p.start(ctx, r.Options.Browser, q)
	if err != nil {
		return nil, err
	}
	notes := c.Notes()
	if c.Started() {
		if s, err := c.Status(ctx); err == nil {
			notes = append(notes, s.Notes...)
		}
	}
	page, err := c.Open(ctx, keeper.OpenRequest{URL: q.URL, OnDialog: r.Options.OnDialog})
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(page, notes...)
}

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
	if q.Attach == "" {
		path, from, err := findChrome(q.Chrome, p.cfg.Env, p.cfg.Chrome)
		if err != nil {
			return nil, err
		}
		p.cfg.Debug("browser: %s, found by %s", path, from)
		cfg.Chrome, cfg.FoundBy = path, from
	}
	c, err := keeper.Start(ctx, cfg)
	if err != nil {
		return nil, p.hostError(err, nil)
	}
	p.keep(name, c)
	return c, nil
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
	if fixed, err := url.Parse("https://" + given); err == nil && strings.Contains(fixed.Host, ".") && !strings.ContainsAny(given, " ") {
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
		c, err := p.client(ctx, r.Options.Browser)
		if err != nil {
			return nil, err
		}
		page, err := c.CloseTarget(ctx, r.Options.Target)
		if err != nil {
			return nil, p.hostError(err, r)
		}
		return result(closed{[]string{page.Target}})
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
	for _, name := range names {
		p.drop(name)
		was, err := keeper.Stop(ctx, p.cfg.RunDir, name, p.cfg.Version)
		if err != nil {
			return nil, p.hostError(err, r)
		}
		if was {
			done.Closed = append(done.Closed, shownName(name))
		}
	}
	if len(done.Closed) == 0 {
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
			if q.All {
				notes = append(notes, fmt.Sprintf("browser %s ended without cleaning up; the next open or close removes what it left", e.Browser))
			}
			continue
		}
		c, err := p.client(ctx, e.Browser)
		if err == nil {
			s, err := c.Status(ctx)
			if err == nil {
				list.Browsers = append(list.Browsers, s)
				continue
			}
		}
		notes = append(notes, fmt.Sprintf("browser %s does not answer (keeper process %d)", e.Browser, e.PID))
		list.Browsers = append(list.Browsers, e)
	}
	if len(list.Browsers) == 0 {
		notes = append(notes, "no browser is open")
	}
	return result(list, notes...)
}

func (p *Provider) targets(ctx context.Context, r *host.Request) (*host.Result, error) {
	c, err := p.client(ctx, r.Options.Browser)
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
	c, err := p.client(ctx, r.Options.Browser)
	if err != nil {
		return nil, err
	}
	page, err := c.Activate(ctx, q.Target)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(page)
}

type eventsParams struct {
	Match     []string `json:"match"`
	Since     int64    `json:"since"`
	Limit     int      `json:"limit"`
	Until     string   `json:"until"`
	Max       int      `json:"max"`
	TimeoutMS int64    `json:"timeout_ms"`
}

func (p *Provider) events(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q eventsParams
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	if err := p.checkEvents(r, append(q.Match, q.Until)); err != nil {
		return nil, err
	}
	c, err := p.client(ctx, r.Options.Browser)
	if err != nil {
		return nil, err
	}
	found, err := c.Events(ctx, keeper.EventsRequest{Since: q.Since, Patterns: q.Match, Target: r.Options.Target, Limit: q.Limit})
	if err != nil {
		return nil, p.hostError(err, r)
	}
	found.Events = append([]json.RawMessage{}, found.Events...)
	return result(found)
}

// checkEvents refuses patterns that no event of the protocol matches: waiting for them would never end.
func (p *Provider) checkEvents(r *host.Request, patterns []string) error {
	if r.Options.SendAnyway {
		return nil
	}
	var names []string
	for _, pattern := range patterns {
		if e, ok := p.protocol.Event(pattern); pattern == "" || ok && e.Name == pattern {
			continue
		}
		if names == nil {
			names = p.eventNames()
		}
		if slices.ContainsFunc(names, func(name string) bool { ok, _ := path.Match(pattern, name); return ok }) {
			continue
		}
		e := host.Errorf(host.NotFound, "no event is named %s", manifest.CleanLine(pattern)).WithNext("parley search " + manifest.ShellQuote(manifest.CleanLine(strings.Trim(pattern, "*."))) + " --kind event")
		for _, n := range schema.Nearest(pattern, names, 3) {
			e.DidYouMean = append(e.DidYouMean, host.Suggestion{Name: Name + "." + n.Name, Distance: n.Distance})
		}
		return e
	}
	return nil
}

func (p *Provider) eventNames() []string {
	var names []string
	for _, d := range p.protocol.Domains() {
		for _, m := range p.protocol.Members(d.Name) {
			if m.Kind == protocol.KindEvent {
				names = append(names, d.Name+"."+m.Name)
			}
		}
	}
	return names
}

// Stream is Invoke; for events it sends records as they come, and its result says why it ended.
func (p *Provider) Stream(ctx context.Context, r *host.Request) (*host.Result, error) {
	if r.Tool != "events" {
		return p.Invoke(ctx, r)
	}
	var q eventsParams
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	if err := p.checkEvents(r, append(q.Match, q.Until)); err != nil {
		return nil, err
	}
	c, err := p.client(ctx, r.Options.Browser)
	if err != nil {
		return nil, err
	}
	end, err := c.Listen(ctx, keeper.ListenRequest{
		Patterns: q.Match, Target: r.Options.Target, Until: q.Until, Max: q.Max, TimeoutMS: q.TimeoutMS,
	}, r.Started, r.Emit)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(end)
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
	case keeper.CodeNavigationFailed:
		declared(e, exitNavigationFailed, "navigation_failed", nil)
		e.Next = []string{"check the URL and that the server runs"}
	case keeper.CodeProtocolError:
		if k.Chrome != nil && strings.Contains(k.Chrome.Message, "invalid URL") {
			e.Code = host.InvalidURL
			break
		}
		declared(e, exitProtocolError, "protocol_error", nil)
		if r != nil {
			e.Next = []string{"parley cdp " + r.Tool + " --describe"}
		}
	case keeper.CodeChromeConnection:
		if r != nil {
			p.drop(r.Options.Browser) // the next call connects anew
		}
		e.Next = []string{"parley cdp open URL"}
	case keeper.CodeChromeLaunch:
		e.Next = []string{"parley doctor"}
	case keeper.CodeTargetCrashed:
		e.Next = []string{"parley cdp Page.reload", "parley cdp Page.navigate --param url=URL"}
	case keeper.CodeNotFound:
		e.Next = []string{"parley cdp targets"}
	case keeper.CodeBusy:
		e.Next = []string{`parley cdp Page.handleJavaScriptDialog --params '{"accept":true}'`}
	case keeper.CodeTimeout:
		e.Next = []string{"give it longer with --timeout " + longer(r)}
	case keeper.CodeLimitExceeded:
		e.Next = []string{"ask for less, such as a part of the page"}
	}
	return e
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
	e := &host.Error{Message: manifest.CleanLine(fmt.Sprintf("navigation to %s failed: %s", q.URL, text)), Next: []string{"check the URL and that the server runs"}}
	details, _ := json.Marshal(map[string]string{"error_text": manifest.CleanLine(text)})
	declared(e, exitNavigationFailed, "navigation_failed", details)
	return e
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
	if len(text) > 1000 {
		text = strings.ToValidUTF8(text[:1000], "") + "…"
	}
	e := &host.Error{Message: manifest.CleanLine(fmt.Sprintf("the page's script threw: %s (line %d, column %d)", text, thrown.LineNumber+1, thrown.ColumnNumber+1))}
	if len(raw) > maxExceptionDetails {
		raw = nil
	}
	declared(e, exitScriptError, "script_error", raw)
	return e
}
