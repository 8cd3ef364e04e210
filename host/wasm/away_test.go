package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/providertest"
)

// otherMachine has the engine of another machine run calls, over a connection in this process.
type otherMachine struct {
	t      testing.TB
	engine *Engine
	plugin *Provider
	unfit  string
	ran    int
}

// goAway has the calls of a plugin that name a pool run on another machine.
func goAway(t testing.TB, p *Provider) *otherMachine {
	o := &otherMachine{t: t, engine: runnerEngine(t)}
	o.engine.cfg.Isolate = true
	o.engine.cfg.Debug = func(string) {} // a runner that ends after the test cannot log to it
	o.plugin = o.engine.Provider(p.loadParts().src)
	p.engine.cfg.Away = o
	return o
}

func (o *otherMachine) Reserve(_ context.Context, e Errand) (Slot, string, error) {
	if o.unfit != "" {
		return nil, o.unfit, nil
	}
	o.ran++
	here, there := net.Pipe()
	s := Service{Isolate: e.Isolate, Scope: "front ", Shorten: strings.Clone}
	s.Find = func(_ context.Context, digest string) (*Provider, error) {
		if digest != o.plugin.info.Digest {
			return nil, host.Errorf(host.NotFound, "there is no %s", digest)
		}
		return o.plugin, nil
	}
	go func() {
		_ = s.Serve(context.Background(), there)
		_ = there.Close()
	}()
	return &pipe{here}, "", nil
}

type pipe struct{ net.Conn }

func (p *pipe) Lost() string { return "the other machine is gone" }

func (p *pipe) Close() { _ = p.Conn.Close() }

// away is a provider whose calls name a pool.
type away struct{ *Provider }

func (p away) Invoke(ctx context.Context, r *host.Request) (*job.Result, error) {
	r.Pool = "pool"
	return p.Provider.Invoke(ctx, r)
}

// TestProviderAway runs the tests for all providers over plugins that run on another machine.
func TestProviderAway(t *testing.T) {
	skipWithRace(t)
	p := testGuest(t, runnerEngine(t), "echo", "echo")
	o := goAway(t, p)
	providertest.Run(t, away{p}, providertest.Options{
		Calls: []providertest.Case{
			{Tool: "echo", Params: `{"value":1}`, Want: `{"value":1}`},
			{Tool: "fail", Code: "declared"},
			{Tool: "trap", Code: host.Trapped},
		},
		Slow: &providertest.Case{Tool: "spin"},
	})
	if o.ran == 0 {
		t.Error("no call ran on the other machine")
	}
}

// TestWhatStays runs calls here that cannot run on another machine, and says why.
func TestWhatStays(t *testing.T) {
	p := testGuest(t, runnerEngine(t), "rev", "rev")
	o := goAway(t, p)
	for _, c := range []struct {
		name, warning string
		change        func(*host.Request)
	}{
		{"a folder", "fs:ro:" + t.TempDir() + "=/data", nil},
		{"a variable", "env:LANG", func(r *host.Request) { r.Grant.Env = map[string]string{"LANG": "C"} }},
		{"a secret", "secret:read:TOKEN", func(r *host.Request) {
			r.Grant.Secrets = []grant.Secret{{Name: "OTHER"}, {Name: "TOKEN", Read: true}}
		}},
		{"the browser", "browser:session", func(r *host.Request) { r.Grant.Browser = true }},
		{"no isolation", "isolate is none", func(r *host.Request) { r.Isolate = isolateNone }},
		{"an unfit pool", "its workers are small", func(*host.Request) { o.unfit = "its workers are small" }},
	} {
		r := requestFor(t, p, "word", `{"text":"abc"}`)
		r.Pool = "pool"
		if c.change != nil {
			c.change(r)
		} else {
			source := strings.TrimSuffix(strings.TrimPrefix(c.warning, "fs:ro:"), "=/data")
			r.Grant.FS = []grant.FS{{Path: "/data", Source: source, Mode: "ro"}}
		}
		result, err := invokeRequest(t, p, r)
		if err != nil || len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], c.warning) || o.ran > 0 {
			t.Errorf("%s: %+v, %v", c.name, result, err)
		}
	}
}

// TestServicePaths checks that no outcome has a path of the machine that ran the call: no error with any code and a
// path in each of its texts, and no warning.
func TestServicePaths(t *testing.T) {
	const folder = "/srv/worker"
	path := folder + "/cache/wasm"
	s := Service{Shorten: protect.PathShortener([]string{folder})}
	for _, o := range host.Outcomes() {
		out := s.outcome(&job.Result{Data: json.RawMessage(`{}`), Warnings: []string{"cannot write " + path}}, nil)
		if o.Code != host.OK {
			out = s.outcome(nil, &host.Error{Code: o.Code, Message: "mkdir " + path + ": not a folder",
				Details:  []host.Detail{{Parameter: "/a", Expected: path}},
				Denied:   []grant.Denial{{Right: "fs:ro:" + path + "=/data", Why: path}},
				Protocol: &host.ProtocolError{Message: path}, Effects: []string{"fs:write:" + path},
				Next: []string{"rm " + path}, Cause: errors.New(path)})
		}
		text, err := json.Marshal(out)
		if err != nil || strings.Contains(string(text), folder) || !strings.Contains(string(text), "wasm") {
			t.Errorf("%s: %s, %v", o.Code, text, err)
		}
	}
}
