package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type scriptParams struct {
	Script        string            `json:"script"`
	Call          string            `json:"call"`
	Args          []json.RawMessage `json:"args"`
	DocumentStart bool              `json:"document_start"`
}

// readFunctions are the functions of scripts of shipped plugins that were reviewed to change nothing that a page or its
// user can see, as PLUGIN/SCRIPT.FUNCTION.
var readFunctions = []string{
	"page/page.snapshot", "page/page.text", "page/page.find", "page/page.get", "page/page.until", "page/page.settle",
	"page/page.place", "page/page.area",
}

// Effect returns the effect of a call: that of a script is read where a shipped plugin calls a reviewed function, that
// of an expression where a shipped plugin lets Chrome stop it before it changes anything, and that of route where it
// only lists the rules.
func (p *Provider) Effect(j *host.Job) string {
	switch j.Tool {
	case "script":
		var q scriptParams
		if json.Unmarshal(j.Params, &q) != nil || q.DocumentStart || !j.Trusted {
			return manifest.EffectWrite
		}
		plugin := strings.TrimPrefix(j.Caller, "plugin:")
		if slices.Contains(readFunctions, plugin+"/"+q.Script+"."+q.Call) {
			return manifest.EffectRead
		}
		return manifest.EffectWrite
	case "Runtime.evaluate":
		var q struct {
			Pure bool `json:"throwOnSideEffect"`
		}
		if j.Trusted && json.Unmarshal(j.Params, &q) == nil && q.Pure {
			return manifest.EffectRead
		}
		return manifest.EffectWrite
	case "route":
		var q routeParams
		if json.Unmarshal(j.Params, &q) == nil && q.Rules == nil {
			return manifest.EffectRead
		}
		return manifest.EffectWrite
	}
	return manifest.EffectDestructive // not less than that of the tool
}

// script calls a function of a script that the calling plugin ships. Its text is read only if the keeper lacks it.
func (p *Provider) script(ctx context.Context, r *host.Request) (*host.Result, error) {
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
	declared, err := r.Script(ctx, q.Script, false)
	if err != nil {
		return nil, err
	}
	c, err := p.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	request := keeper.NewScriptRequest(declared.Plugin, q.Script, declared.SHA256, "")
	request.Target, request.OnDialog = r.Options.Target, r.Options.OnDialog
	request.Function, request.Args, request.DocumentStart = q.Call, q.Args, q.DocumentStart
	done, err := c.Script(ctx, request)
	if errors.Is(err, keeper.ErrNoScript) {
		if declared, err = r.Script(ctx, q.Script, true); err != nil {
			return nil, err
		}
		request.Script.Text = declared.Text
		done, err = c.Script(ctx, request)
	}
	if err != nil {
		return nil, p.hostError(err, r)
	}
	if done.Exception != nil {
		return nil, scriptError(done.Exception)
	}
	return result(done)
}

// input sends input events to a page.
func (p *Provider) input(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q struct {
		Events []json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	c, err := p.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	sent, err := c.Input(ctx, keeper.InputRequest{Target: r.Options.Target, Events: q.Events, OnDialog: r.Options.OnDialog,
		Wait: r.Options.Wait})
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(sent)
}

type routeParams struct {
	Rules *[]routeParam `json:"rules"`
}

// routeParam is a rule as callers give it.
type routeParam struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Action  string            `json:"action"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Binary  []byte            `json:"body_base64"`
	DelayMS int64             `json:"delay_ms"`
}

// route replaces or lists the rules for requests.
func (p *Provider) route(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q routeParams
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, host.Errorf(host.InvalidArgs, "body_base64 is not base64: %v", err)
	}
	var request keeper.RouteRequest
	if q.Rules != nil {
		rules := make([]keeper.RouteRule, len(*q.Rules))
		for i, given := range *q.Rules {
			rules[i] = keeper.RouteRule{URL: given.URL, Method: given.Method, Action: given.Action, Status: given.Status,
				Headers: given.Headers, Body: append([]byte(given.Body), given.Binary...), DelayMS: given.DelayMS}
		}
		request.Rules = &rules
	}
	c, err := p.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	rules, err := c.Route(ctx, request)
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(rules)
}
