package call_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
)

const cameras = `{
  "manifest": 1, "name": "cam", "version": "1.0.0", "kind": "parley/1", "docs": {"brief": "Take pictures"},
  "tools": [
    {"name": "shoot", "docs": {"brief": "Take a picture"}, "effect": "read", "params": {"type": "object"},
     "returns": {"type": "object", "properties": {"at": {"type": "string"},
       "left": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"},
       "right": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"}}}},
    {"name": "add", "docs": {"brief": "Add"}, "effect": "read", "params": {"type": "object"}},
    {"name": "order.slow", "group": "order", "docs": {"brief": "Wait"}, "effect": "read", "params": {"type": "object"}}
  ],
  "groups": [{"name": "order", "docs": {"brief": "Orders"}}]
}`

var (
	png  = "\x89PNG\r\n\x1a\n and what follows"
	jpeg = "\xff\xd8\xff and what follows"
)

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// TestKeepBinary checks that binary parts of a result, and binary content blocks, go to files that are kept for the
// session, and that what is not binary stays.
func TestKeepBinary(t *testing.T) {
	result := &job.Result{
		Data: json.RawMessage(`{"at":"noon","left":"` + encoded(png) + `","right":"` + encoded(jpeg) + `"}`),
		Content: []job.Content{
			{Type: job.ContentImage, Data: encoded(png), MIME: "image/png"}, {Type: job.ContentText, Text: "hi"},
		},
	}
	sessions := &session.Store{Dir: t.TempDir()}
	h := newHost(t, call.Config{Sessions: sessions}, newFake(t, cameras, map[string]handler{
		"shoot": func(context.Context, *host.Request) (*job.Result, error) { return result, nil },
	}))
	shoot := func(c host.Call) *host.Answer {
		t.Helper()
		c.Name, c.Principal.Name = "cam.shoot", "cli"
		a, err := h.Call(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, of := range []caller.Session{{}, {Name: "s"}} { // also for calls without a session
		a := shoot(host.Call{Principal: caller.Principal{Session: of}, KeepBinary: true})
		var data struct {
			At          string
			Left, Right session.File
		}
		if err := json.Unmarshal(a.Data, &data); err != nil || data.At != "noon" {
			t.Fatalf("%s: %v", a.Data, err)
		}
		for file, want := range map[session.File][2]string{data.Left: {png, "image/png"}, data.Right: {jpeg, "image/jpeg"}} {
			if got, err := os.ReadFile(file.Out); err != nil || string(got) != want[0] || file.MIME != want[1] ||
				file.Bytes != int64(len(want[0])) {
				t.Errorf("%+v: %q, %v", file, got, err)
			}
		}
		if string(a.Whole) != string(result.Data) {
			t.Errorf("the whole is %s", a.Whole)
		}
		c := a.Content[0]
		if c.Data != "" || c.MIME != "image/png" || filepath.Ext(c.URI) != ".png" || a.Content[1].Text != "hi" {
			t.Errorf("content: %+v", a.Content)
		}
		kept, err := sessions.FindResult(of, a.CallID)
		if err != nil || kept.JSON || kept.Path != data.Left.Out {
			t.Errorf("%+v, %v", kept, err)
		}
		if _, err := sessions.Result(of, a.CallID); err == nil {
			t.Error("a binary file was returned as JSON")
		}
		if _, err := sessions.FindResult(caller.Session{Name: "other"}, a.CallID); err == nil {
			t.Error("another session can read the file")
		}
	}
	if a := shoot(host.Call{}); string(a.Data) != string(result.Data) || a.Whole != nil || a.Content[0].Data == "" {
		t.Errorf("without KeepBinary: %s", a.Data)
	}
	result = &job.Result{Data: json.RawMessage(`{"at":"noon","left":"","right":"not base64"}`)}
	if a := shoot(host.Call{KeepBinary: true}); string(a.Data) != string(result.Data) {
		t.Errorf("nothing to keep: %s", a.Data)
	}
	left := answers(`{"left":"` + encoded(png) + `"}`)
	h = newHost(t, call.Config{}, newFake(t, cameras, map[string]handler{"shoot": left}))
	if a := shoot(host.Call{KeepBinary: true}); !strings.Contains(string(a.Data), encoded(png)) {
		t.Errorf("without a place to keep it: %s", a.Data)
	}
}

// TestKeptResults checks what is known of whole results: the tool, unless a filter has changed them, how the caller
// reads them, and the order of calls.
func TestKeptResults(t *testing.T) {
	now := time.Now()
	sessions := &session.Store{Dir: t.TempDir(), Now: func() time.Time { return now }}
	same := filterFunc(func(_ context.Context, data json.RawMessage) (json.RawMessage, error) { return data, nil })
	echo := answers(`{"text":"a long text"}`)
	h := newHost(t, call.Config{Sessions: sessions, Filter: same}, newFake(t, shop, map[string]handler{"echo": echo}))
	render := func(s step.Step) string { return "read " + strings.Join(s.Args, " ") }
	var ids []string
	for i, c := range []host.Call{
		{Options: job.Options{MaxBytes: 5}, Render: render},
		{Options: job.Options{MaxBytes: 5, JQ: "."}, Render: render},
	} {
		c.Name, c.Principal.Name = "shop.echo", "cli"
		a, err := h.Call(t.Context(), c)
		if err != nil || !strings.HasSuffix(string(a.Data), `"next":"read `+a.CallID+`"}`) {
			t.Fatalf("%s, %v", a.Data, err)
		}
		kept, err := sessions.FindResult(caller.Session{}, a.CallID)
		if err != nil || !kept.JSON || kept.Tool != []string{"shop.echo", ""}[i] {
			t.Errorf("%+v, %v", kept, err)
		}
		if err := os.Chtimes(kept.Path, now, now.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
		ids = append([]string{a.CallID}, ids...)
	}
	if got := sessions.ResultIDs(caller.Session{}); strings.Join(got, " ") != strings.Join(ids, " ") {
		t.Errorf("the ids are %v, expected the last one of %v first", got, ids)
	}
	if got := sessions.ResultIDs(caller.Session{Name: "s"}); got != nil {
		t.Errorf("another session has %v", got)
	}
	old := ids[0]
	now = now.Add(25 * time.Hour)
	if _, err := sessions.FindResult(caller.Session{}, old); err == nil {
		t.Error("a result is kept for longer than a day")
	}
	small := host.Call{Name: "shop.echo", Principal: cli, Options: job.Options{MaxBytes: 5}}
	if _, err := h.Call(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(sessions.Dir, "results", "*")); len(files) != 1 {
		t.Errorf("calls without a session leave expired results: %v", files)
	}
}

func TestMediaType(t *testing.T) {
	for content, want := range map[string]string{
		png: "image/png", jpeg: "image/jpeg", "RIFF\x00\x00\x00\x00WEBPVP": "image/webp", "GIF89a": "image/gif",
		"RIFF\x00\x00\x00\x00WAVE": "audio/wav", "%PDF-1.4": "application/pdf", "\x1f\x8b\x08": "application/gzip",
		`{"traceEvents":[`: "application/json", "<html>": "a/b", "": "a/b",
	} {
		if got := session.MediaType([]byte(content), "a/b"); got != want {
			t.Errorf("%q: %s, expected %s", content, got, want)
		}
	}
	if got := session.MediaType([]byte("\x00\x01"), ""); got != "application/octet-stream" {
		t.Errorf("unknown content: %s", got)
	}
}

// TestKeptBinaryHasNoSecret checks that binary content with a secret that the guest read is not stored.
func TestKeptBinaryHasNoSecret(t *testing.T) {
	const canary = "canary-7f3a9c51e2"
	sessions := &session.Store{Dir: t.TempDir()}
	readable := policy(func(host.Ask) (host.Decision, error) {
		secret := grant.Secret{Name: "KEY", Read: true}
		return host.Decision{Verdict: host.Allow, Grant: grant.Grant{Secrets: []grant.Secret{secret}}}, nil
	})
	h := newHost(t, call.Config{Sessions: sessions, Policy: readable, Secrets: secrets{"KEY": canary}},
		newFake(t, cameras, map[string]handler{"shoot": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			key, err := readSecret(ctx, r, "KEY")
			return &job.Result{Data: json.RawMessage(`{"left":"` + encoded(png+key) + `"}`)}, err
		}}))
	a, err := h.Call(t.Context(), host.Call{Name: "cam.shoot", Principal: cli, KeepBinary: true})
	if err != nil {
		t.Fatal(err)
	}
	if ids := sessions.ResultIDs(caller.Session{}); len(ids) > 0 || strings.Contains(string(a.Data), encoded(png+canary)) {
		t.Errorf("the content was stored for %v; the answer is %s", ids, a.Data)
	}
}
