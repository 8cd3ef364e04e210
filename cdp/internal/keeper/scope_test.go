//go:build linux

package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/outbound"
)

// testGuard is an egress that dials only the addresses that a grant names.
type testGuard struct{}

func (testGuard) Send(context.Context, *outbound.Request, outbound.Rights) (*outbound.Response, error) {
	return nil, host.Errorf(host.Internal, "a browser only dials")
}

func (testGuard) Dial(ctx context.Context, address string, grants []grant.HTTP) (net.Conn, error) {
	if !slices.ContainsFunc(grants, func(g grant.HTTP) bool { return g.URL == "http://"+address }) {
		right := "http:GET:http://" + address
		return nil, &host.Error{Code: host.Denied, Message: "not granted: " + right,
			Denied: []grant.Denial{{Right: right, Why: "it is loopback"}}}
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

func testEgress() (outbound.Egress, error) { return testGuard{}, nil }

// withServer runs a test against a server whose browser does what it is sent, in a synctest bubble.
func withServer(t *testing.T, test func(t *testing.T, s *server)) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{}
		cfg.setDefaults()
		f := muxtest.New()
		e := verb.New(f, cfg.rooms(false))
		e.Tracker.Started = true
		go e.Mux.Read()
		go obey(f, e.Mux.Done)
		test(t, newServer(e, hello{}, time.Minute))
		f.Close()
		<-e.Mux.Done
	})
}

// obey lets a browser do what it is sent until done is closed: it creates the contexts C1, C2 and so on, with the pages
// P1, P2 and so on, and disposes of them.
func obey(f *muxtest.Browser, done <-chan struct{}) {
	contexts, pages, pagesIn := 0, 0, map[string][]string{}
	for {
		select {
		case q := <-f.Sent:
			var p muxtest.Info
			json.Unmarshal(q.Params, &p)
			result := `{}`
			switch q.Method {
			case "Target.createBrowserContext":
				contexts++
				result = fmt.Sprintf(`{"browserContextId":"C%d"}`, contexts)
			case "Target.createTarget":
				pages++
				p.ID, p.Type = fmt.Sprintf("P%d", pages), "page"
				pagesIn[p.Context] = append(pagesIn[p.Context], p.ID)
				f.Attach("", p)
				result = `{"targetId":"` + p.ID + `"}`
			case "Target.disposeBrowserContext":
				for _, id := range pagesIn[p.Context] {
					f.Report("", "Target.targetDestroyed", map[string]any{"targetId": id})
				}
			}
			f.Answer(q, result)
		case <-done:
			return
		}
	}
}

// opens lets a caller open a page.
func opens(t *testing.T, s *server, by api.Caller) {
	t.Helper()
	q := api.CallRequest{Method: "Target.createTarget", Params: json.RawMessage(`{"url":"http://a/"}`)}
	scope, release, err := s.verbs.Tenancy.Enter(t.Context(), by)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if r := s.verbs.Call(t.Context(), by, scope, q); r.Err != nil {
		t.Fatal(r.Err)
	}
}

// A client closes what its session has opened, whatever it names; a person can close another session. The browser ends
// with the last.
func TestCloseEndsBrowserWithLastSession(t *testing.T) {
	withServer(t, func(t *testing.T, s *server) {
		stops := 0
		s.requestStop = func(string) {
			stops++
			close(s.stopped)
		}
		for _, by := range []api.Caller{someClient, otherClient} {
			opens(t, s, by)
		}
		for _, c := range []struct {
			by     api.Caller
			q      api.CloseRequest
			closed api.Closed
			left   []string
		}{
			{someClient, api.CloseRequest{Session: otherClient.SessionKey()},
				api.Closed{Targets: []string{"P1"}, Contexts: []string{"C1"}}, []string{otherClient.SessionKey()}},
			{someClient, api.CloseRequest{}, api.Closed{Targets: []string{}, Contexts: []string{}},
				[]string{otherClient.SessionKey()}},
			{api.CommandLine, api.CloseRequest{Session: otherClient.SessionKey()},
				api.Closed{Targets: []string{"P2"}, Contexts: []string{"C2"}, Browser: "default"}, nil},
		} {
			got, err := s.close(t.Context(), c.by, c.q)
			if err != nil || !reflect.DeepEqual(got, c.closed) {
				t.Errorf("%s closes %+v, %v; want %+v", c.by.Name, got, err, c.closed)
			}
			synctest.Wait()
			var left []string
			s.verbs.Mux.Lock()
			for _, one := range s.verbs.Tenancy.OpenSessions() {
				left = append(left, one.Session)
			}
			s.verbs.Mux.Unlock()
			if !slices.Equal(left, c.left) || stops > 0 != (c.left == nil) {
				t.Errorf("then these sessions are open: %q, and the browser has ended %d times", left, stops)
			}
		}
	})
}

// The browser ends with the connection over which everything in it was opened.
func TestConnectionEndsBrowser(t *testing.T) {
	withServer(t, func(t *testing.T, s *server) {
		var stops []string
		s.requestStop = func(reason string) { stops = append(stops, reason) }
		for _, connection := range []string{"1", "2"} {
			by := api.Caller{Name: "mcp:some", Session: "user/" + connection, Connection: connection, Temporary: true}
			opens(t, s, by)
		}
		for n, connection := range []string{"none", "1", "1", "2"} {
			s.endConnection(connection)
			if len(stops) > 0 != (n == 3) {
				t.Errorf("after connection %s has ended, the browser stops: %q", connection, stops)
			}
		}
	})
}
