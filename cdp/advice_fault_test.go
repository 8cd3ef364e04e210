package cdp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
)

// TestNavigationAdvice checks that the error of a navigation has advice for its reason.
func TestNavigationAdvice(t *testing.T) {
	r := &host.Request{Job: job.Job{Tool: "Page.navigate",
		Params: json.RawMessage(`{"url":"https://a.test:6000/"}`)}}
	for reason, want := range map[string]string{
		"net::ERR_UNSAFE_PORT":                "another port",
		"net::ERR_INVALID_AUTH_CREDENTIALS":   "login (HTTP 401)",
		"net::ERR_HTTP_RESPONSE_CODE_FAILURE": "401",
		"net::ERR_NAME_NOT_RESOLVED":          "spelling of the host",
		"net::ERR_CONNECTION_REFUSED":         "nothing listens",
		"net::ERR_CERT_AUTHORITY_INVALID":     "certificate",
		"net::ERR_SOMETHING_ELSE":             "check the URL",
	} {
		e := navigationError(reason, r)
		if !strings.Contains(e.Message, want) {
			t.Errorf("%s: %s", reason, e.Message)
		}
		if reason != "net::ERR_SOMETHING_ELSE" && strings.Contains(e.Message, "that the server runs") &&
			reason != "net::ERR_CONNECTION_REFUSED" {
			t.Errorf("%s: advice to check that the server runs: %s", reason, e.Message)
		}
	}
}

// TestStepsOfFaults checks that an error about too many pages, or a restless one, names the call that helps.
func TestStepsOfFaults(t *testing.T) {
	r := &host.Request{Job: job.Job{Tool: "Runtime.evaluate", Params: json.RawMessage(`{"expression":"1"}`)}}
	for tool, k := range map[string]*api.Error{
		"cdp.targets":          {Code: api.CodeLimitExceeded, Message: "too many pages"},
		"cdp.Runtime.evaluate": api.RestlessPage(),
		"":                     {Code: api.CodeLimitExceeded, Message: "a reply is too large", Bytes: 9},
	} {
		step := step.Step{}
		e := host.AsError(new(catalog).hostError(k, r))
		if len(e.Steps) > 0 {
			step = e.Steps[0]
		}
		if step.Tool != tool || strings.Contains(e.Message, "request less") != (tool == "") {
			t.Errorf("%s: %+v", e.Message, e.Steps)
		}
	}
}

// TestNavigationAdviceIgnoresURL checks that a number in the URL is no reason.
func TestNavigationAdviceIgnoresURL(t *testing.T) {
	e := &host.Error{}
	adviseNavigation(e, "cannot open http://127.0.0.1:4010/: net::ERR_CONNECTION_REFUSED", &host.Request{})
	if strings.Contains(e.Message, "login") || !strings.Contains(e.Message, "nothing listens") {
		t.Error(e.Message)
	}
}

// TestNavigateWithoutScheme checks that a URL is corrected before a browser starts, and nothing else is changed.
func TestNavigateWithoutScheme(t *testing.T) {
	p := New(Config{RunDir: t.TempDir()})
	for _, tool := range []string{"Page.navigate", "Target.createTarget"} {
		_, err := p.Invoke(t.Context(), &host.Request{Job: job.Job{Tool: tool,
			Params: json.RawMessage(`{"newWindow":12345678901234567,"url":"a.test/b"}`)}})
		e := host.AsError(err)
		if err == nil || e.Code != host.InvalidURL || len(e.Changes) != 1 ||
			string(e.Corrected) != `{"newWindow":12345678901234567,"url":"https://a.test/b"}` {
			t.Errorf("%s: %+v", tool, err)
		}
	}
}

func TestEvaluationAdvice(t *testing.T) {
	for _, c := range []struct{ params, data, warns, step string }{
		{`{"expression":"fetch('/x')"}`, `{"result":{"type":"object","subtype":"promise","className":"Promise"}}`,
			"not awaited", `{"awaitPromise":true,"expression":"fetch('/x')"}`},
		{`{"expression":"fetch('/x')","returnByValue":true}`, `{"result":{"type":"object","value":{}}}`,
			"not awaited", `{"awaitPromise":true,"expression":"fetch('/x')","returnByValue":true}`},
		{`{"expression":"() => 1;"}`, `{"result":{"type":"function"}}`, "not called", `{"expression":"(() => 1)()"}`},
		{`{"expression":"({})","returnByValue":true}`, `{"result":{"type":"object","value":{}}}`, "", ""},
		{`{"expression":"fetch('/x')","awaitPromise":true}`, `{"result":{"type":"object","className":"Response"}}`, "", ""},
		{`{"expression":"1"}`, `{"result":{"type":"number","value":1}}`, "", ""},
	} {
		got := adviseEvaluation(&job.Result{Data: json.RawMessage(c.data)},
			&host.Request{Job: job.Job{Tool: "Runtime.evaluate", Params: json.RawMessage(c.params)}})
		if warns := strings.Join(got.Warnings, ""); (c.warns == "") != (warns == "") || !strings.Contains(warns, c.warns) {
			t.Errorf("%s: warns %q", c.params, warns)
		}
		step := ""
		if len(got.Steps) > 0 {
			step = string(got.Steps[0].Params)
		}
		if step != c.step {
			t.Errorf("%s: step %s, want %s", c.params, step, c.step)
		}
	}
}

// TestScriptAdvice checks that the error of a script that V8 cannot parse says what to write.
func TestScriptAdvice(t *testing.T) {
	for description, want := range map[string]string{
		"SyntaxError: await is only valid in async functions and the top level bodies of modules": "replMode",
		"SyntaxError: Illegal return statement":                                                   "last expression",
		"SyntaxError: Function statements require a function name":                                "in parentheses",
		"TypeError: x is not a function":                                                          "",
	} {
		raw, _ := json.Marshal(map[string]any{"text": "Uncaught", "exception": map[string]any{"description": description}})
		e := scriptError(raw)
		if _, advice, _ := strings.Cut(e.Message, "; "); !strings.Contains(advice, want) || want == "" && advice != "" {
			t.Errorf("%s: %s", description, e.Message)
		}
	}
}
