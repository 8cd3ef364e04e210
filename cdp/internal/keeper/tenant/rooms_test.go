package tenant

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/cdp"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/outbound"
)

// rooms are this room and those below it.
type rooms struct {
	Mux     *mux.Mux
	Tracker *target.Tracker
	Events  *event.Events
	Owners  *Owners
	Tenancy *Tenancy
}

func newRooms(f *muxtest.Browser) *rooms {
	m := mux.New(f, 1<<20)
	tr := target.NewTracker(m, "test", false)
	ev := event.New(tr, 1000, 1<<20)
	ow, tn := New(ev)
	f.OnSend = func() {
		if m.TryLock() {
			panic("a command was sent while the mux was not locked")
		}
	}
	go m.Read()
	return &rooms{m, tr, ev, ow, tn}
}

// Call runs a caller's command as the room above does, without what that knows of documents and domains.
func (e *rooms) Call(ctx context.Context, by api.Caller, q api.CallRequest) mux.Reply {
	s, release, err := e.Tenancy.Enter(ctx, by)
	if err != nil {
		return mux.Reply{Err: err}
	}
	defer release()
	if err := e.Tenancy.Confine(by, s, &q); err != nil {
		return mux.Reply{Err: err}
	}
	if s.DisposedBy(q) {
		return mux.Reply{Result: json.RawMessage("{}"), Err: e.Tenancy.Dispose(s)}
	}
	var t *target.Target
	if q.Target != api.BrowserTarget && (q.Target != "" || !api.IsBrowserDomain(api.DomainOf(q.Method))) {
		if t, err = e.Owners.Resolve(by, q.Target); err != nil {
			return mux.Reply{Err: err}
		}
		e.Mux.Lock()
		e.Owners.Claim(by, t)
		e.Mux.Unlock()
	}
	raw, err := e.Tracker.Sender.Do(ctx, t, q.Method, q.Params, target.CallOptions{By: by})
	if err == nil && t == nil {
		e.Owners.OnBrowserCommand(by, q, raw)
	}
	return mux.Reply{Result: raw, Err: err}
}

// withPage runs a test against the rooms with one page, T, in a synctest bubble. There, synctest.Wait returns once
// every message was handled.
func withPage(t *testing.T, test func(t *testing.T, e *rooms, f *muxtest.Browser)) {
	synctest.Test(t, func(t *testing.T) {
		f := muxtest.New()
		e := newRooms(f)
		f.Event("attached")
		synctest.Wait()
		test(t, e, f)
		f.Close()
		<-e.Mux.Done
	})
}

// addScope gives a caller's session a context with an id, as if it had made its first call.
func addScope(e *rooms, by api.Caller, context string) *Scope {
	s := &Scope{
		session: by.SessionKey(), within: by.Within, Context: cdp.BrowserContextID(context),
		firstPageLock: make(chan struct{}, 1),
	}
	if by.Temporary {
		s.connection = by.Connection
	}
	e.Mux.Lock()
	defer e.Mux.Unlock()
	e.Tenancy.scopes[s.session], e.Owners.contextOwners[context] = s, s.session
	return s
}

const testTimeout = 30 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// waitFor waits for a condition that another goroutine brings about.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("timed out waiting for " + what)
		}
	}
}

var (
	someClient  = api.Caller{Name: "mcp:some"}
	otherClient = api.Caller{Name: "mcp:other"}
)

// plugin returns a plugin with grants for URLs.
func plugin(name string, urls ...string) api.Caller {
	c := api.Caller{Name: api.PluginPrefix + name}
	for _, u := range urls {
		c.HTTP = append(c.HTTP, grant.HTTP{URL: strings.TrimSuffix(u, "/"), Methods: []string{"GET"}})
	}
	return c
}

func wantResult(t *testing.T, what string, ended <-chan *api.Error, code string) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-ended:
		switch {
		case err == nil && code != "":
			t.Errorf("%s succeeds, want %s", what, code)
		case err != nil && err.Code != code:
			t.Errorf("%s fails with %s (%s), want %q", what, err.Code, err.Message, code)
		}
	default:
		t.Errorf("%s still waits, want %q", what, code)
	}
}

// must returns a result that comes without an error.
func must[T any](result T, err *api.Error) T {
	if err != nil {
		panic(err)
	}
	return result
}

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
