//go:build linux

package keeper

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"testing"

	"github.com/parley-tools/parley/host"
)

// testGuard is an egress that dials only the addresses that a grant names.
type testGuard struct{}

func testEgress() (host.Egress, error) { return testGuard{}, nil }

func (testGuard) Send(context.Context, *host.HTTPRequest, host.Outbound) (*host.HTTPResponse, error) {
	return nil, host.Errorf(host.Internal, "a browser only dials")
}

func (testGuard) Dial(ctx context.Context, address string, grants []host.HTTPGrant) (net.Conn, error) {
	if !slices.ContainsFunc(grants, func(g host.HTTPGrant) bool { return g.URL == "http://"+address }) {
		right := "http:GET:http://" + address
		return nil,
			&host.Error{Code: host.Denied, Message: "not granted: " + right,
				Denied: []host.Denial{{Right: right, Why: "it is loopback"}}}
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// A new scope reaches the network only through its proxy, and downloads in it are denied.
func TestNewScopeIsClosed(t *testing.T) {
	cfg := Config{}
	cfg.setDefaults()
	f := newFakeBrowser()
	e := newEngine(f, "test", false, &cfg)
	e.egress = testGuard{}
	go e.read()
	defer func() {
		f.Close()
		<-e.done
	}()
	created := make(chan *scope)
	go func() {
		s, err := e.newScope(t.Context(), Caller{Name: pluginPrefix + "one"})
		if err != nil {
			t.Error(err)
		}
		created <- s
	}()
	var params struct{ ProxyServer, ProxyBypassList, Behavior, BrowserContextID string }
	q := <-f.sent
	json.Unmarshal(q.Params, &params)
	if q.Method != "Target.createBrowserContext" || params.ProxyServer == "" || params.ProxyBypassList != "<-loopback>" {
		t.Errorf("the browser receives %s %s", q.Method, q.Params)
	}
	server := params.ProxyServer
	f.answer(q, `{"browserContextId":"C"}`)
	select {
	case q = <-f.sent:
	case <-created:
		t.Fatal("the scope is created before its downloads are denied")
	}
	json.Unmarshal(q.Params, &params)
	if q.Method != "Browser.setDownloadBehavior" || params.Behavior != "deny" || params.BrowserContextID != "C" {
		t.Errorf("the browser receives %s %s", q.Method, q.Params)
	}
	f.answer(q, `{}`)
	s := <-created
	defer s.proxy.close()
	if server != "http://"+s.proxy.address() {
		t.Errorf("the context's proxy is %s, not %s", server, s.proxy.address())
	}
}
