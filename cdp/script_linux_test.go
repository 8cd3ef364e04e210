package cdp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

// TestScript checks that the keeper is asked to run what the host says the plugin ships, and gets its text only if it
// lacks that.
func TestScript(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	got := make(chan api.ScriptRequest, 4)
	p := New(Config{RunDir: fakeKeeper(t, greeting, func(q fakeRequest) string {
		var body api.ScriptRequest
		if err := json.Unmarshal(q.Body, &body); err != nil || q.Op != "script" {
			t.Errorf("the keeper gets %+v, %v", q, err)
		}
		got <- body
		if body.Function == "fail" {
			return `{"target":"T","frame":"F","exception":{"text":"Uncaught","exception":{"description":"TypeError: no"}}}`
		}
		return `{"target":"T","frame":"F","value":{"a":1}}`
	}), Version: "0.1.0"})
	defer p.Close()
	texts := 0
	request := func(params string) *host.Request {
		r := stateRequest("plugin:page", caller.Session{Name: "work"}, params)
		r.Options.Target = "frame"
		r.Ask = (&call.Functions{Script: func(name string, withText bool) (job.Script, error) {
			s := job.Script{Plugin: "page", SHA256: digest}
			if withText {
				s.Text = "exports." + name
				texts++
			}
			return s, nil
		}}).Ask
		return r
	}
	done, err := p.browsers.script(t.Context(), request(`{"script":"page","call":"find","args":[{"b":2},"c"]}`))
	if err != nil || string(done.Data) != `{"target":"T","frame":"F","value":{"a":1}}` || len(got) != 1 || texts > 0 {
		t.Fatalf("%+v, %v, %d requests, the text was read %d times", done, err, len(got), texts)
	}
	q := <-got
	if q.Script.Plugin+q.Script.Name != "pagepage" || q.Script.SHA256 != digest || q.Script.Text != "" ||
		q.Target != "frame" || q.Function != "find" || len(q.Args) != 2 || string(q.Args[0]) != `{"b":2}` {
		t.Errorf("asked for %+v", q)
	}
	_, err = p.browsers.script(t.Context(), request(`{"script":"page","call":"fail"}`))
	if e := host.AsError(err); err == nil || e.Exit != exitScriptError || !strings.Contains(e.Message, "TypeError: no") {
		t.Errorf("a function that throws: %v", err)
	}
	if _, err = p.browsers.script(t.Context(), request(`{"script":"page"}`)); host.AsError(err).Code != host.InvalidArgs {
		t.Errorf("nothing to do: %v", err)
	}
	refused := request(`{"script":"page","call":"find"}`)
	refused.Ask = (&call.Functions{Script: func(string, bool) (job.Script, error) {
		return job.Script{}, host.Errorf(host.NotFound, "ships no script")
	}}).Ask
	if _, err = p.browsers.script(t.Context(), refused); host.AsError(err).Code != host.NotFound || len(got) != 1 {
		t.Errorf("a script that the plugin does not ship: %v, %d requests", err, len(got))
	}
}

// TestScriptWithText checks that the text follows where the keeper lacks it.
func TestScriptWithText(t *testing.T) {
	texts := make(chan string, 4)
	p := New(Config{RunDir: fakeKeeper(t, greeting, func(q fakeRequest) string {
		var body api.ScriptRequest
		_ = json.Unmarshal(q.Body, &body)
		texts <- body.Script.Text
		if body.Script.Text == "" {
			return `!{"code":"invalid_args","message":"` + api.ErrNoScript.Error() + `"}`
		}
		return `{"target":"T","frame":"F"}`
	}), Version: "0.1.0"})
	defer p.Close()
	r := stateRequest("plugin:page", caller.Session{Name: "work"}, `{"script":"page","call":"find"}`)
	r.Ask = (&call.Functions{Script: func(_ string, withText bool) (job.Script, error) {
		s := job.Script{Plugin: "page", SHA256: strings.Repeat("ab", 32)}
		if withText {
			s.Text = "text"
		}
		return s, nil
	}}).Ask
	if _, err := p.browsers.script(context.Background(), r); err != nil || <-texts != "" || <-texts != "text" {
		t.Errorf("%v", err)
	}
}

// TestEffect checks which calls of a verb that writes only read.
func TestEffect(t *testing.T) {
	for _, c := range []struct{ tool, params, want string }{
		{"script", `{"script":"page","call":"find"}`, manifest.EffectDestructive},
		{"Runtime.evaluate", `{"expression":"1","throwOnSideEffect":true}`, manifest.EffectDestructive},
		{"route", `{}`, manifest.EffectRead},
		{"route", `{"add":[{"url":"*","action":"block"}]}`, manifest.EffectDestructive},
		{"route", `{"remove":["*"]}`, manifest.EffectDestructive},
		{"route", `{"rules":[]}`, manifest.EffectDestructive},
		{"route", `{"rules":[{"url":"*","action":"block"}]}`, manifest.EffectDestructive},
		{"Page.reload", `{}`, manifest.EffectDestructive},
	} {
		if got := effectOf(&job.Job{Tool: c.tool, Params: json.RawMessage(c.params)}); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.params, got, c.want)
		}
	}
}
