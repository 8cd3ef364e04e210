package cdp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
)

var greeting = fmt.Sprintf(`{"parley_keeper":%d,"version":"0.1.0","browser":"default","pid":1}`, keeper.WireVersion)

// TestTypeSecret checks that the value of a secret goes to the keeper with its origins and no others, and nowhere else,
// and that nothing is typed that the policy does not bind.
func TestTypeSecret(t *testing.T) {
	typed := make(chan api.TypeRequest, 2)
	p := New(Config{RunDir: fakeKeeper(t, greeting, func(q fakeRequest) string {
		var body api.TypeRequest
		if err := json.Unmarshal(q.Body, &body); err != nil || q.Op != "type" || q.By.Name != "mcp:some" {
			t.Errorf("the keeper gets %+v, %v", q, err)
		}
		typed <- body
		return `{"target":"T","origin":"https://a.test"}`
	}), Version: "0.1.0"})
	defer p.Close()
	r := stateRequest("mcp:some", caller.Session{Name: "work"}, `{"secret":"PASSWORD","submit":true}`)
	r.Options.Target = "page"
	r.Ask = (&call.Functions{BoundSecret: func(_ context.Context, name string) (s job.BoundSecret, err error) {
		if name != "PASSWORD" {
			return s, host.Errorf(host.Denied, "no")
		}
		return job.BoundSecret{Value: "the value", Origins: []string{"https://a.test", "https://b.test"}}, nil
	}}).Ask
	got, err := p.browsers.typeSecret(t.Context(), r)
	if err != nil || strings.Contains(string(got.Data), "value") {
		t.Errorf("%+v, %v", got, err)
	}
	if q := <-typed; q.Text != "the value" || !q.Submit || q.Target != "page" ||
		fmt.Sprint(q.Origins) != "[https://a.test https://b.test]" {
		t.Errorf("typed %+v", q)
	}
	r.Params = json.RawMessage(`{"secret":"OTHER"}`)
	_, err = p.browsers.typeSecret(t.Context(), r)
	if err == nil || host.AsError(err).Code != host.Denied || len(typed) != 0 {
		t.Errorf("typed, %v", err)
	}
}

// TestStateOfBrowser saves what the browser stores and loads a part of it. Answers have numbers, no values.
func TestStateOfBrowser(t *testing.T) {
	type body struct {
		Origins []string
		State   *api.State
	}
	sent := make(chan body, 1)
	p := New(Config{StateDir: t.TempDir(), RunDir: fakeKeeper(t, greeting, func(q fakeRequest) string {
		var b body
		if err := json.Unmarshal(q.Body, &b); err != nil {
			t.Error(err)
		}
		sent <- b
		if q.Op == "save_state" {
			return `{"cookies":[{"name":"c","value":"s3cret","domain":"a.test","path":"/"}],
				"local_storage":{"https://a.test":[["k","s3cret"],["l","2"]]}}`
		}
		return `{"cookies":1,"items":2,"left":["https://b.test"]}`
	}), Version: "0.1.0"})
	defer p.Close()
	run := func(params string) string {
		t.Helper()
		got, err := p.browsers.state(t.Context(), stateRequest("cli", caller.Session{Name: "work"}, params))
		if err != nil {
			t.Fatal(err)
		}
		text := string(got.Data) + strings.Join(got.Warnings, " ")
		if strings.Contains(text, "s3cret") {
			t.Errorf("the answer has a value: %s", text)
		}
		return text
	}
	saved := run(`{"action":"save","name":"w","origins":["https://b.test","https://a.test/"]}`)
	if !strings.Contains(saved, `"cookies":1,"items":2`) ||
		fmt.Sprint((<-sent).Origins) != "[https://a.test https://b.test]" {
		t.Errorf("saved %s", saved)
	}
	run(`{"action":"list"}`)
	store, err := p.browsers.statesOf(stateRequest("cli", caller.Session{Name: "work"}, ""))
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(store.path("w"), old, old); err != nil {
		t.Fatal(err)
	}
	loaded := run(`{"action":"load","name":"w"}`)
	last := <-sent
	if len(last.Origins) != 2 || last.State == nil || last.State.Cookies[0].Value != "s3cret" ||
		!strings.Contains(loaded, "https://b.test belongs to a page") {
		t.Errorf("loaded %s of %+v", loaded, last)
	}
	if info, err := os.Stat(store.path("w")); err != nil || !info.ModTime().After(old) {
		t.Errorf("a load is no use: %v, %v", info, err)
	}
	run(`{"action":"load","name":"w","origins":["https://b.test"]}`)
	if last := <-sent; fmt.Sprint(last.Origins) != "[https://b.test]" {
		t.Errorf("loaded %q", last.Origins)
	}
	_, err = p.browsers.state(t.Context(), stateRequest("cli", caller.Session{},
		`{"action":"load","name":"w","origins":["https://c.test"]}`))
	if err == nil || host.AsError(err).Code != host.InvalidArgs {
		t.Errorf("an origin that was not saved: %v", err)
	}
}
