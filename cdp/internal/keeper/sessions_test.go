//go:build linux

package keeper

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// inSession returns the person at the command line in a session.
func inSession(name string) api.Caller { return api.Caller{Name: "cli", Session: "user/" + name} }

// overConnection returns an MCP client whose session ends with its connection.
func overConnection(id string) api.Caller {
	return api.Caller{Name: "mcp:some", Session: "user/" + id, Connection: id, Temporary: true}
}

// Two sessions in one browser share no cookies, storage, current page or targets. Each close ends what its session has
// opened, and the last one the browser.
func TestSessionsShareNothing(t *testing.T) {
	t.Parallel()
	c := startBrowser(t, config(t))
	url := site(t, map[string]string{"/": plainPage})
	callers := []api.Caller{api.CommandLine, inSession("one"), inSession("two"), overConnection("m1")}
	for _, by := range callers {
		openPage(t, c.As(by), url+"/")
		evaluate(t, c.As(by), "", "document.cookie = 'of=' + '"+by.SessionKey()+"'; localStorage.of = document.cookie; 1")
	}
	for i, by := range callers {
		mine := c.As(by)
		openPage(t, mine, url+"/?again")
		wantValue(t, mine, "", "document.cookie", `"of=`+by.SessionKey()+`"`)
		wantValue(t, mine, "", "localStorage.of", `"of=`+by.SessionKey()+`"`)
		if targets := value(mine.Targets(testContext(t))); len(targets) != 2 {
			t.Errorf("%s sees %+v", by.SessionKey(), targets)
		}
		closed, err := mine.CloseSession(testContext(t), "")
		contexts, browser := 1, ""
		if by.SessionKey() == api.DefaultSession {
			contexts = 0
		}
		if i == len(callers)-1 {
			browser = "default"
		}
		if err != nil || len(closed.Targets) != 2 || len(closed.Contexts) != contexts || closed.Browser != browser {
			t.Errorf("%s closed %+v, %v", by.SessionKey(), closed, err)
		}
	}
}

// What a connection has opened stays open while any process serves it, and for the grace after that. A shared session
// keeps its context; the page that the connection has opened in it is closed.
func TestEndOfConnection(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Grace = 300 * time.Millisecond
	c := startBrowser(t, cfg)
	persons := openPage(t, c, "about:blank")
	shared := inSession("work")
	login := openPage(t, c.As(shared), "about:blank")

	dial := func() *Client {
		client, err := Dial(testContext(t), cfg.RunDir, cfg.Browser, "test")
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	first, second := dial(), dial()
	own := openPage(t, first.As(overConnection("m1")), "about:blank")
	inShared := api.Caller{Name: "mcp:some", Session: shared.Session, Connection: "m1"}
	agents := openPage(t, first.As(inShared), "about:blank")
	wantValue(t, second.As(overConnection("m1")), "", "1+1", "2") // the same connection, served by another process

	first.Close()
	time.Sleep(3 * cfg.Grace) // what could end wrongly would have ended
	if seen := targetIDs(t, c); len(seen) != 4 {
		t.Fatalf("while one process serves the connection, %v are open", seen)
	}
	second.Close()
	third := dial()
	defer third.Close()
	wantValue(t, third.As(overConnection("m1")), own.Target, "1+1", "2") // back within the grace
	time.Sleep(3 * cfg.Grace)
	wantValue(t, third.As(overConnection("m1")), own.Target, "1+1", "2")

	if err := third.As(overConnection("m1")).EndConnection(testContext(t)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the pages of the connection to close", func() bool { return len(targetIDs(t, c)) == 2 })
	seen := targetIDs(t, c)
	if !slices.Contains(seen, persons.Target) || !slices.Contains(seen, login.Target) {
		t.Errorf("left open: %v; closed %s, %s", seen, own.Target, agents.Target)
	}
	if sessions := value(c.Sessions(testContext(t))); len(sessions) != 2 {
		t.Errorf("sessions %+v", sessions)
	}
}

// A browser that only a connection used ends with it.
func TestLastConnectionEndsTheBrowser(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Grace = 50 * time.Millisecond
	c := startBrowser(t, cfg)
	client, err := Dial(testContext(t), cfg.RunDir, cfg.Browser, "test")
	if err != nil {
		t.Fatal(err)
	}
	openPage(t, client.As(overConnection("m1")), "about:blank")
	client.Close()
	waitFor(t, "the browser to end", c.Ended)
}
