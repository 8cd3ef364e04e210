package call_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/grant"
)

// TestRevokedRightsEndCalls checks that a running call ends with denied within a second after its rights are revoked.
func TestRevokedRightsEndCalls(t *testing.T) {
	full := host.Decision{Verdict: host.Allow, Grant: grant.Grant{Clock: true, Tools: []string{"a.b"}}}
	for name, c := range map[string]struct {
		after host.Decision
		err   error
		gone  bool
		want  string
	}{
		"nothing changes": {after: full},
		"a right was revoked": {after: host.Decision{Verdict: host.Allow, Grant: grant.Grant{Clock: true}},
			want: "tool:a.b"},
		"the caller is denied":  {after: host.Decision{Verdict: host.Deny, Reason: "no more"}, want: "no more"},
		"the plugin is removed": {after: full, gone: true, want: "shop was removed"},
		"more is granted": {after: host.Decision{Verdict: host.Allow,
			Grant: grant.Grant{Clock: true, Random: true, Tools: []string{"a.b"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var changed atomic.Bool
				empty := catalogOf(t, newFake(t, shopNamed("other"), nil))
				h := newHost(t, call.Config{
					Policy: policy(func(host.Ask) (host.Decision, error) {
						if changed.Load() {
							return c.after, c.err
						}
						return full, nil
					}),
					Reload: func() (*host.Catalog, bool, error) { return empty, changed.Load() && c.gone, nil },
				}, newFake(t, shop, nil))
				began := time.Now()
				time.AfterFunc(2*time.Second, func() { changed.Store(true) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				a, _ := h.Call(ctx, host.Call{Name: "shop.order.slow", Principal: cli})
				took := time.Since(began)
				switch {
				case c.want == "" && a.Err.Code != host.Timeout:
					t.Errorf("%v", a.Err)
				case c.want != "" && (a.Err.Code != host.Denied || !strings.Contains(a.Err.Message, c.want)):
					t.Errorf("%v, want %q", a.Err, c.want)
				case c.want != "" && (took < 2*time.Second || took > 3*time.Second):
					t.Errorf("the call ended after %s", took)
				}
			})
		})
	}
}
