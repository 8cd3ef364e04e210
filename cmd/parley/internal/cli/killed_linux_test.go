package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// victim is an agent that works until it is stopped, and what can be killed of it.
type victim struct {
	kill  func()     // its server, or the client that it is
	stop  func()     // after its next call
	ended chan error // one, with what went wrong: calls that fail do not
}

// startVictim connects a client and lets it work: it opens pages, loads them and closes them.
func startVictim(t *testing.T, transport sdk.Transport, kill func()) *victim {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	v := &victim{kill: kill, stop: stop, ended: make(chan error, 1)}
	go func() {
		defer stop()
		v.ended <- work(ctx, transport)
	}()
	return v
}

// work makes calls until the context is done or the connection has ended. A call that takes longer than callLimit is an
// error.
func work(ctx context.Context, transport sdk.Transport) error {
	const callLimit = 2 * time.Minute
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
	defer cancel()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "victim", Version: "1"}, nil).
		Connect(limited, transport, &sdk.ClientSessionOptions{ProtocolVersion: revisions[0]})
	if err != nil {
		return limited.Err()
	}
	defer s.Close()
	for ctx.Err() == nil {
		for _, arguments := range []string{
			`{"name":"cdp.open","arguments":{"url":"about:blank"}}`,
			`{"name":"cdp.Page.reload","options":{"wait":"load"}}`,
			`{"name":"cdp.Runtime.evaluate","arguments":{"expression":"1+1"}}`,
			`{"name":"cdp.open"}`, `{"name":"cdp.close"}`,
		} {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
			defer cancel()
			_, err := s.CallTool(limited, &sdk.CallToolParams{Name: "call_tool", Arguments: json.RawMessage(arguments)})
			switch {
			case limited.Err() != nil:
				return fmt.Errorf("%s did not end: %w", arguments, limited.Err())
			case err != nil:
				return nil // the connection has ended
			}
		}
	}
	return nil
}

// stdioVictim has a server of its own. kill ends the server, or else breaks the pipes as the end of the client does.
func stdioVictim(t *testing.T, home string, killServer bool) *victim {
	t.Helper()
	cmd := homeCommand(home, "mcp")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _, _ = cmd.Process.Wait(); close(exited) }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return startVictim(t, &sdk.IOTransport{Reader: out, Writer: in}, func() {
		if killServer {
			_ = cmd.Process.Kill()
		}
		_ = out.Close()
		_ = in.Close()
		select {
		case <-exited:
		case <-time.After(2 * time.Minute):
			t.Error("the server of a client that has gone goes on")
		}
	})
}

// httpVictim is a client of a server. kill breaks its connections and makes no more, as the end of its process does.
func httpVictim(t *testing.T, url string) *victim {
	t.Helper()
	var mu sync.Mutex
	var conns []net.Conn
	killed := false
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && killed {
			_ = c.Close()
			return nil, net.ErrClosed
		}
		conns = append(conns, c)
		return c, err
	}}
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+agentTokens[0])
		return transport.RoundTrip(r)
	})}
	return startVictim(t, &sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1, HTTPClient: client}, func() {
		mu.Lock()
		defer mu.Unlock()
		killed = true
		for _, c := range conns {
			_ = c.Close()
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestHammerKilledServers kills servers and clients of MCP on both transports at random moments, now and then the
// keeper or Chrome, each time beside another session's page in the same browser. No call hangs, the other session keeps
// its page unless its own browser ended, and nothing is left in the end.
func TestHammerKilledServers(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	home := shortHome(t)
	kills, hammer := 6, os.Getenv("PARLEY_HAMMER") != ""
	if hammer {
		kills = 100 // of each repetition
	}
	server := serveAgents(t, home)
	var target string
	open := func() {
		t.Helper()
		var out []byte
		var err error
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); { // a browser may just be ending
			var page struct{ Target string }
			out, err = homeCommand(home, "cdp", "open", "--session", "work").CombinedOutput()
			if err == nil && json.Unmarshal(out, &page) == nil {
				target = page.Target
				return
			}
		}
		t.Fatalf("open: %v: %s", err, out)
	}
	open()
	for i := range kills {
		var v *victim
		ends := false // the browser
		switch i % 6 {
		case 0:
			v = stdioVictim(t, home, true)
		case 1:
			v = stdioVictim(t, home, false)
		case 2:
			v = httpVictim(t, server.url)
		case 3:
			v = httpVictim(t, server.url)
			v.kill = func() {
				_ = server.cmd.Process.Kill()
				<-server.stopped
				server = serveAgents(t, home)
			}
		default:
			v = httpVictim(t, server.url)
			who := map[int]string{4: "keeper", 5: "chrome"}[i%6]
			v.kill, ends = func() {
				if n, err := killHome(home, who); n == 0 || err != nil {
					t.Errorf("killed %d, %v", n, err)
				}
			}, true
		}
		time.Sleep(rand.N(600 * time.Millisecond)) // a random stage of its work
		v.kill()
		v.stop()
		if ends {
			open()
		}
		select {
		case err := <-v.ended:
			if err != nil {
				t.Errorf("kill %d: %v", i, err)
			}
		case <-time.After(5 * time.Minute):
			t.Fatalf("kill %d: a call hangs", i)
		}
		out, err := homeCommand(home, "cdp", "Runtime.evaluate", "--param", "expression=6*7", "--session", "work",
			"--target", target).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "42") {
			t.Fatalf("kill %d: the page of another session: %v: %s", i, err, out)
		}
	}
	if hammer {
		waitForOnlySession(t, home)
	}
	_ = server.cmd.Process.Kill()
	<-server.stopped
	if out, err := homeCommand(home, "cdp", "close", "--all").CombinedOutput(); err != nil {
		t.Errorf("close: %v: %s", err, out)
	}
	var left []process
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if left = processesOf(home); len(left) == 0 {
			return
		}
	}
	t.Errorf("these processes are left: %+v", left)
}

// waitForOnlySession waits until the grace of all connections is over and only one session has pages.
func waitForOnlySession(t *testing.T, home string) {
	t.Helper()
	var out []byte
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		var status struct {
			Browsers []struct{ Sessions []struct{ Session string } }
		}
		out, _ = homeCommand(home, "cdp", "status", "--param", "all=true", "--session", "work").Output()
		if json.Unmarshal(out, &status) == nil && len(status.Browsers) == 1 && len(status.Browsers[0].Sessions) == 1 {
			return
		}
	}
	t.Errorf("after the grace there are %s", out)
}
