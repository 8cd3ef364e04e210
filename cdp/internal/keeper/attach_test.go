//go:build linux

package keeper

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
)

// startExternalChrome starts a Chrome outside Parley with a debugging port. It returns its process id and its ws://
// address. One that ends at once, as Chrome does on a busy machine now and then, is started again.
func startExternalChrome(t testing.TB, chrome string) (pid int, address string) {
	t.Helper()
	for range 3 {
		if pid, address = launchExternal(t, chrome); address != "" {
			return pid, address
		}
	}
	t.Fatal("Chrome names no address")
	return 0, ""
}

func launchExternal(t testing.TB, chrome string) (pid int, address string) {
	t.Helper()
	profile := filepath.Join(tempDir(t), "theirs")
	cmd := exec.Command(chrome, "--headless", "--disable-gpu", "--no-sandbox", "--no-first-run",
		"--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--remote-debugging-port=0", "--user-data-dir="+profile,
		"about:blank")
	cmd.Env = append(os.Environ(), "BREAKPAD_DUMP_LOCATION="+profile, "TMPDIR="+filepath.Dir(profile))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		killOrphans(profile, 0)
	})
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if _, after, ok := strings.Cut(lines.Text(), "DevTools listening on "); ok {
			address = strings.TrimSpace(after)
			break
		}
		t.Log(lines.Text())
	}
	go func() {
		for b := make([]byte, 4096); ; {
			if _, err := stderr.Read(b); err != nil {
				return
			}
		}
	}()
	return cmd.Process.Pid, address
}

// TestAttach attaches to an external Chrome by each form of its address.
func TestAttach(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	pid, address := startExternalChrome(t, cfg.Chrome)
	port := strings.Split(strings.TrimPrefix(address, "ws://127.0.0.1:"), "/")[0]
	for _, form := range []string{port, "http://127.0.0.1:" + port, "http://localhost:" + port + "/",
		"localhost:" + port} {
		other := cfg
		other.Chrome, other.Attach, other.Browser = "", form, "form"
		c := startBrowser(t, other)
		wantValue(t, c, "", "1+1", "2")
		if err := c.CloseBrowser(testContext(t)); err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
	cfg.Chrome, cfg.Attach = "", address
	c := startBrowser(t, cfg)
	s, err := c.Status(testContext(t), true)
	if err != nil || s.Mode != "attached" || s.Endpoint != address || len(s.Targets) != 1 || s.Targets[0].Attached {
		t.Errorf("status %+v, %v", s, err)
	}
	wantValue(t, c, "", "1+1", "2") // the engine attaches on first use
	p := openPage(t, c, site(t, map[string]string{"/": plainPage}))
	all, _ := c.Targets(testContext(t))
	if p.Title != "Plain" || len(all) != 2 {
		t.Errorf("page %+v of %+v", p, all)
	}
	testPieces(t, c)
	_, err = evaluate(t, c, "", "alert('hi')")
	wantCode(t, err, api.CodeBusy, "hi")
	if _, err := c.CloseTarget(testContext(t), "", ""); err != nil {
		t.Error(err)
	}

	// Another browser of that name is not opened, and all that was opened is closed, but for what a person has given.
	other := cfg
	other.Attach = port
	if _, err = Start(testContext(t), other); host.AsError(err).Code != host.AlreadyExists {
		t.Errorf("attaching to another browser: %v", err)
	}
	openPage(t, c, site(t, map[string]string{"/": plainPage}))
	session := c.As(api.Caller{Name: "cli", Session: "user/one"})
	openPage(t, session, site(t, map[string]string{"/": plainPage}))
	if _, err := session.activate(testContext(t), s.Targets[0].ID); err != nil {
		t.Error(err)
	}
	_, err = session.CloseTarget(testContext(t), s.Targets[0].ID, "")
	wantCode(t, err, api.CodeDenied, "was given")
	if err := c.CloseBrowser(testContext(t)); err != nil {
		t.Error(err)
	}
	c = startBrowser(t, cfg)
	if all, _ := c.Targets(testContext(t)); len(all) != 1 || all[0].ID != s.Targets[0].ID {
		t.Errorf("left open: %+v", all)
	}
	if err := c.CloseBrowser(testContext(t)); err != nil {
		t.Error(err)
	}
	if !processExists(pid) || isZombie(pid) {
		t.Error("closing ended the external browser")
	}
	requireNothingLeft(t, cfg)

	// When the browser ends, so do the calls and the keeper.
	c = startBrowser(t, cfg)
	waiting := startCall(t, c, neverReturns)
	syscall.Kill(-pid, syscall.SIGKILL)
	wantCode(t, awaitError(t, waiting), api.CodeChromeConnection)
	requireNothingLeft(t, cfg)
}

// TestListenInExternalBrowser receives events of existing pages that were never used, and of new ones.
func TestListenInExternalBrowser(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	_, address := startExternalChrome(t, cfg.Chrome)
	url := site(t,
		map[string]string{"/": plainPage,
			"/ticks": `<title>T</title><script>setInterval(() => console.log("tick"), 50)</script>`})
	otherConfig := config(t)
	otherConfig.Chrome, otherConfig.Attach = "", address
	other := startBrowser(t, otherConfig) // acts as the external browser's own user
	unused := openPage(t, other, url+"/ticks")
	cfg.Chrome, cfg.Attach = "", address
	c := startBrowser(t, cfg)
	q := api.ListenRequest{Patterns: []string{"Runtime.consoleAPICalled"}, Max: 2, TimeoutMS: 20_000}
	lines, end := listen(t, c, q, nil)
	if end.End != "max" || lines[0].Target != unused.Target {
		t.Errorf("events of an unused page: %+v, %v", lines, end)
	}
	if _, err := other.CloseTarget(testContext(t), unused.Target, ""); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the page to be gone", func() bool {
		left := value(c.Targets(testContext(t)))
		return !slices.ContainsFunc(left, func(one api.Target) bool { return one.ID == unused.Target })
	})
	var opened api.Page
	lines, end = listen(t, c, q, func() { opened, _ = other.Open(testContext(t), api.OpenRequest{URL: url + "/ticks"}) })
	if end.End != "max" || lines[0].Target == unused.Target {
		t.Errorf("events of the new page %s: %+v, %v", opened.Target, lines, end)
	}
	// A stream of browser events attaches to no page.
	openPage(t, other, url+"/")
	if _, end = listen(t, c, api.ListenRequest{Patterns: []string{"Target.*"}, TimeoutMS: 50}, nil); end.End != "timeout" {
		t.Errorf("events of targets: %+v", end)
	}
	all, err := c.Targets(testContext(t))
	if err != nil || len(all) != 3 || all[len(all)-1].Attached {
		t.Errorf("targets %+v, %v", all, err)
	}
}

// TestAttachToSilentServer attaches to a server that never responds.
func TestAttachToSilentServer(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	var up websocket.Upgrader
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ws, err := up.Upgrade(w, r, nil); err == nil {
			defer ws.Close()
			for {
				if _, _, err := ws.ReadMessage(); err != nil {
					return
				}
			}
		}
	}))
	defer server.Close()
	cfg.Attach = "ws" + strings.TrimPrefix(server.URL, "http")
	cfg.LaunchTimeout = 5 * time.Second
	_, err := Start(testContext(t), cfg)
	wantCode(t, err, api.CodeChromeConnection, "did not respond")
	requireNothingLeft(t, cfg)
}

// TestAttachWithConsentPrompt attaches to a browser that asks its user about each connection and serves no
// description of itself. One connection is made and kept for all clients.
func TestAttachWithConsentPrompt(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	_, address := startExternalChrome(t, cfg.Chrome)
	consent := make(chan struct{})
	var asked atomic.Int32
	prompts := make(chan struct{}, 100)
	var up websocket.Upgrader
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/devtools/browser" {
			http.NotFound(w, r)
			return
		}
		asked.Add(1)
		prompts <- struct{}{}
		select {
		case <-consent:
		case <-r.Context().Done():
			return
		}
		there, _, err := websocket.DefaultDialer.Dial(address, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer there.Close()
		here, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer here.Close()
		go forward(here, there)
		forward(there, here)
	}))
	t.Cleanup(server.Close)
	cfg.Chrome, cfg.Attach = "", server.URL

	// The connection is not allowed: the error says so, within the timeout.
	cfg.LaunchTimeout = 300 * time.Millisecond
	_, err := Start(testContext(t), cfg)
	wantCode(t, err, api.CodeChromeConnection, "allow remote debugging")
	requireNothingLeft(t, cfg)

	cfg.LaunchTimeout = testTimeout
	before := asked.Load()
	for len(prompts) > 0 {
		<-prompts
	}
	go func() {
		<-prompts
		close(consent)
	}()
	c := startBrowser(t, cfg)
	openPage(t, c, site(t, map[string]string{"/": plainPage}))
	for range 3 {
		again, err := Start(testContext(t), cfg)
		if err != nil {
			t.Fatal(err)
		}
		wantValue(t, again, "", "document.title", `"Plain"`)
		again.Close()
	}
	testPieces(t, c)
	if n := asked.Load() - before; n != 1 {
		t.Errorf("the user was asked %d times", n)
	}
}

// forward copies messages until one side ends.
func forward(from, to *websocket.Conn) {
	for {
		kind, message, err := from.ReadMessage()
		if err != nil || to.WriteMessage(kind, message) != nil {
			to.Close()
			return
		}
	}
}
