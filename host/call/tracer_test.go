package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/search"
)

// tracer writes down how operations end, each with those that it is within.
type tracer struct {
	mu    sync.Mutex
	begun []host.Operation
	ended []string
}

type withinKey struct{}

func (t *tracer) Begin(ctx context.Context, o host.Operation) (context.Context, func(host.Operation)) {
	within, _ := ctx.Value(withinKey{}).(string)
	within += "/" + o.Op
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = append(t.begun, o)
	return context.WithValue(ctx, withinKey{}, within), func(o host.Operation) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ended = append(t.ended, strings.TrimSpace(fmt.Sprintf("%s %s by %s: %s", within, o.Tool, o.Caller, o.Code)))
	}
}

// TestTracer checks what a tracer is told of each way in which an operation ends, and that it sees nothing that the
// caller made up.
func TestTracer(t *testing.T) {
	const canary = "canary-7f3a"
	caller := newFake(t, outerNamed("caller"), map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			return callTool(ctx, r, "shop.add", json.RawMessage(`{"title":"`+canary+`"}`), "")
		},
		"order.list": func(context.Context, *host.Request) (*job.Result, error) {
			return nil, &host.Error{Code: canary, Message: canary, Tool: &host.ToolError{}}
		},
	})
	for _, tt := range []struct {
		name string
		do   func(context.Context, *call.Host)
		want []string
	}{
		{"call", calling("shop.add", `{"title":"`+canary+`"}`, job.Options{}), []string{"/call shop.add by cli: ok"}},
		{"nested call", calling("caller.echo", `{}`, job.Options{}),
			[]string{"/call/call shop.add by plugin:caller: ok", "/call caller.echo by cli: ok"}},
		{"invalid parameters", calling("shop.add", `{"`+canary+`":1}`, job.Options{}),
			[]string{"/call shop.add by cli: invalid_args"}},
		{"code of a plugin", calling("caller.order.list", `{}`, job.Options{}),
			[]string{"/call caller.order.list by cli: tool_failed"}},
		{"unknown tool", calling("shop."+canary, `{}`, job.Options{}), []string{"/call  by cli: not_found"}},
		{"unknown plugin", calling(canary+".add", `{}`, job.Options{}), []string{"/call  by cli: not_found"}},
		{"unknown tool that is sent anyway", calling("pass."+strings.Replace(canary, "-", ".", 1), `{}`,
			job.Options{SendAnyway: true}), []string{"/call  by cli: ok"}},
		{"dry run", calling("shop.add", `{"title":"a"}`, job.Options{DryRun: true}),
			[]string{"/call shop.add by cli: ok"}},
		{"search", func(ctx context.Context, h *call.Host) {
			_, _, _ = h.Search(ctx, cli, search.Query{Text: canary})
		}, []string{"/search  by cli: ok"}},
		{"describe", func(ctx context.Context, h *call.Host) { _, _ = h.Describe(ctx, cli, "shop.add", 2) },
			[]string{"/describe shop.add by cli: ok"}},
		{"describe what does not exist", func(ctx context.Context, h *call.Host) {
			_, _ = h.Describe(ctx, cli, canary, 2)
		}, []string{"/describe  by cli: not_found"}},
	} {
		seen := &tracer{}
		pass := newFake(t, strings.Replace(shop, `"name": "shop"`, `"name": "pass"`, 1), nil).builtin()
		h := newHost(t, call.Config{Tracer: seen}, caller, newFake(t, shop, nil), passing{pass})
		tt.do(t.Context(), h)
		if !slices.Equal(seen.ended, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, seen.ended, tt.want)
		}
		for _, o := range seen.begun {
			if o.CallID == "" || o.Code != "" {
				t.Errorf("%s: began as %+v", tt.name, o)
			}
		}
		if all := fmt.Sprint(seen.begun, seen.ended); strings.Contains(all, canary) {
			t.Errorf("%s: the tracer is told %s", tt.name, all)
		}
	}
}

func calling(name, params string, o job.Options) func(context.Context, *call.Host) {
	return func(ctx context.Context, h *call.Host) {
		_, _ = h.Call(ctx, host.Call{Name: name, Params: json.RawMessage(params), Principal: cli, Options: o})
	}
}
