package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

// TestScripts checks that a built-in provider gets the scripts of the plugin that calls it, and of no other.
func TestScripts(t *testing.T) {
	var got job.Script
	browser := newFake(t, shopNamed("browser"), map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			var err error
			got, err = askScript(ctx, r, strings.Contains(string(r.Params), "text"))
			return &job.Result{Data: json.RawMessage(`{}`)}, err
		}})
	browser.info.Kind = manifest.KindBuiltin
	who := newFake(t, strings.Replace(shopNamed("caller"), `"kind":`,
		`"scripts": [{"name": "page", "sha256": "`+strings.Repeat("ab", 32)+`"}], "kind":`, 1), map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			if _, err := askScript(ctx, r, true); host.AsError(err).Code != host.NotFound {
				t.Errorf("a plugin gets the text of scripts: %v", err)
			}
			return callTool(ctx, r, "browser.echo", r.Params, "")
		}})
	who.features.Script = func(name string) ([]byte, error) {
		if name != "page" {
			return nil, errors.New("no script")
		}
		return []byte("exports.f = () => 1"), nil
	}
	other := newFake(t, shopNamed("other"), map[string]handler{"echo": callOther("browser.echo")})
	rules := policy(func(host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Allow, Grant: grant.Grant{Tools: []string{"*"}}}, nil
	})
	h := newHost(t, call.Config{Policy: rules}, browser, who, other)
	for _, c := range []struct{ tool, params, want, text string }{
		{"caller.echo", `{}`, "", ""},
		{"caller.echo", `{"name":"text"}`, "", "exports.f = () => 1"},
		{"other.echo", `{}`, "other ships no script page", ""},
		{"browser.echo", `{}`, "only a plugin can run a script", ""},
	} {
		got = job.Script{}
		_, err := h.Call(t.Context(), host.Call{Name: c.tool, Principal: caller.Principal{Name: "mcp:some"},
			Params: []byte(c.params)})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.tool, err, c.want)
			}
			continue
		}
		if err != nil || got.Plugin != "caller" || got.SHA256 != strings.Repeat("ab", 32) || got.Text != c.text {
			t.Errorf("%s %s: %+v, %v", c.tool, c.params, got, err)
		}
	}
}

// TestEffectOfCall checks that a provider can say that a call has less effect than its tool, and not more.
func TestEffectOfCall(t *testing.T) {
	effect := ""
	inner := newFake(t, shopNamed("inner"), nil)
	inner.features.Effect = func(j *job.Job) string {
		if j.Caller == "plugin:outer" {
			return effect
		}
		return manifest.EffectDestructive
	}
	outer := newFake(t, shopNamed("outer"), map[string]handler{"echo": func(ctx context.Context, r *host.Request) (
		*job.Result, error,
	) {
		return callTool(ctx, r, "inner.add", json.RawMessage(`{"title":"a"}`), "")
	}})
	var decided []string
	rules := policy(func(a host.Ask) (host.Decision, error) {
		if a.Tool == "add" {
			decided = append(decided, a.Effect)
		}
		return host.Decision{Verdict: host.Allow, Grant: grant.Grant{Tools: []string{"*"}}}, nil
	})
	h := newHost(t, call.Config{Policy: rules}, inner, outer)
	for _, c := range []struct {
		effect string
		ok     bool
	}{{manifest.EffectRead, true}, {manifest.EffectWrite, false}, {manifest.EffectDestructive, false}} {
		effect, decided = c.effect, nil
		a := makeCall(t, h, "outer.echo", `{}`)
		if a.Err == nil != c.ok || c.ok && (len(decided) == 0 || decided[0] != manifest.EffectRead) {
			t.Errorf("%s: %v, decided as %q", c.effect, a.Err, decided)
		}
	}
	decided = nil
	if a := makeCall(t, h, "inner.add", `{"title":"a"}`); a.Err != nil || len(decided) == 0 ||
		slices.Contains(decided, manifest.EffectDestructive) {
		t.Errorf("the effect of a call is more than that of its tool: %v, decided as %q", a.Err, decided)
	}
}
