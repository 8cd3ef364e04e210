package wasm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// desk is where a guest of one call asks the host for what lies outside its instance: JSON in, JSON out, so that
// the same code can serve a guest in this process or one behind a pipe. It decides by the grant and notes what it refused.
type desk struct {
	r      *host.Request
	plugin string

	asked    int
	logged   int
	logCalls int
	denied   []host.Denial
}

// answer serves one question; it always is {"ok":true,"result":..} or {"ok":false,"error":{..}}.
func (d *desk) answer(ctx context.Context, function string, question []byte) []byte {
	var result *host.Result
	var err error
	switch function {
	case "call_tool":
		result, err = d.callTool(ctx, question)
	case "http_request":
		result, err = d.httpRequest(question)
	case "read_secret":
		result, err = d.readSecret(question)
	default:
		err = host.Errorf(host.NotFound, "the host has no function %s", function)
	}
	if err != nil {
		return marshal(struct {
			OK    bool              `json:"ok"`
			Error *host.ErrorObject `json:"error"`
		}{false, asHostError(err).Object()})
	}
	return marshal(struct {
		OK       bool            `json:"ok"`
		Result   json.RawMessage `json:"result"`
		Warnings []string        `json:"warnings,omitempty"`
	}{true, orJSON(result.Data, "null"), result.Warnings})
}

func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"ok":false,"error":{"code":"internal","exit_code":110,"message":"the answer is no JSON"}}`)
	}
	return data
}

// deny notes a refusal once and returns the error that the guest is answered with.
func (d *desk) deny(right, why string) *host.Error {
	denial := host.Denial{Right: right, Why: why}
	if len(d.denied) < 100 && !slices.Contains(d.denied, denial) {
		d.denied = append(d.denied, denial)
	}
	return &host.Error{Code: host.Denied, Message: "not granted: " + right, Denied: []host.Denial{denial}}
}

// callTool runs a tool of another plugin, if the grant names it.
func (d *desk) callTool(ctx context.Context, question []byte) (*host.Result, error) {
	var q struct {
		Tool    string          `json:"tool"`
		Params  json.RawMessage `json:"params"`
		Options struct {
			Timeout  string `json:"timeout"`
			MaxBytes int    `json:"max_bytes"`
			Browser  string `json:"browser"`
			Target   string `json:"target"`
			DryRun   bool   `json:"dry_run"`
			OnDialog string `json:"on_dialog"`
		} `json:"options"`
	}
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, badQuestion("call_tool", `{"tool":"cdp.Page.navigate","params":{},"options":{}}`, err)
	}
	name := strings.ReplaceAll(q.Tool, "__", ".")
	if !MatchTool(d.r.Grant.Tools, name) {
		return nil, d.deny("tool:"+cut(manifest.CleanLine(name), 200), "no grant names this tool")
	}
	if d.r.CallTool == nil {
		return nil, host.Errorf(host.Unavailable, "no other tools can be called here")
	}
	o := host.Options{MaxBytes: max(q.Options.MaxBytes, 0), Browser: q.Options.Browser, Target: q.Options.Target, DryRun: q.Options.DryRun, OnDialog: q.Options.OnDialog}
	if q.Options.Timeout != "" {
		timeout, err := time.ParseDuration(q.Options.Timeout)
		if err != nil || timeout <= 0 {
			return nil, &host.Error{Code: host.InvalidArgs, Message: "options.timeout must be a duration such as \"10s\"", Details: []host.Detail{
				{Parameter: "/options/timeout", Keyword: "format", Provided: cut(manifest.CleanLine(q.Options.Timeout), 60), Expected: "a duration such as \"10s\""}}}
		}
		o.Timeout = timeout
	}
	return d.r.CallTool(ctx, name, orJSON(q.Params, "{}"), o)
}

// httpRequest refuses: nothing grants the network yet.
func (d *desk) httpRequest(question []byte) (*host.Result, error) {
	var q struct {
		Method string `json:"method"`
		URL    string `json:"url"`
	}
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, badQuestion("http_request", `{"method":"GET","url":"https://example.com/"}`, err)
	}
	method := firstText(strings.ToUpper(cut(manifest.CleanLine(q.Method), 20)), "GET")
	return nil, d.deny("http:"+method+":"+cut(manifest.CleanLine(q.URL), 200), "plugins have no network")
}

// readSecret refuses: no secrets can be read yet.
func (d *desk) readSecret(question []byte) (*host.Result, error) {
	var q struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, badQuestion("read_secret", `{"name":"SIGNING_KEY"}`, err)
	}
	return nil, d.deny("secret:read:"+cut(manifest.CleanLine(q.Name), 100), "plugins read no secrets")
}

func badQuestion(function, expected string, err error) *host.Error {
	return &host.Error{Code: host.InvalidArgs, Cause: err,
		Message: fmt.Sprintf("%s was not given a request: %s; expected %s", function, cut(manifest.CleanLine(err.Error()), 200), expected)}
}

// MatchTool tells whether one of the patterns names a tool. A pattern is a qualified name in which each * stands for any
// characters but a dot: "cdp.Page.*" is all of Page and nothing of Network, "cdp.*.*" is every command, "text.*" every
// tool of text that is in no group. "*" alone is every tool. Case counts.
func MatchTool(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return p == "*" || matchGlob(p, tool) })
}

// matchGlob is linear in both lengths: it goes back to the last * only.
func matchGlob(pattern, s string) bool {
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0 && s[mark] != '.':
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

func sortedNames[V any](m map[string]V) []string {
	return append([]string{}, slices.Sorted(maps.Keys(m))...)
}
