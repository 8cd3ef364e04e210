//go:build linux

package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/manifest"
)

// TestMain also runs the child processes of these tests: the keepers are this program, started again.
func TestMain(m *testing.M) {
	switch os.Getenv(ChildVar) {
	case childName:
		os.Exit(Main(testEgress))
	case "oldkeeper":
		os.Exit(runOldKeeper())
	case "agent":
		os.Exit(runAgent())
	case "starter":
		os.Exit(runStarter())
	case "stranger":
		os.Exit(runStranger(os.Args[1]))
	}
	os.Exit(runTests(m))
}

// runTests gives the tests and their browsers a temporary folder of their own, and fails if files are
// left in it.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "parley-test-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer removeTree(dir)
	os.Setenv("TMPDIR", dir)
	code := m.Run()
	left := remaining(dir)
	for end := time.Now().Add(10 * time.Second); len(left) > 0 && time.Now().Before(end); left = remaining(dir) {
		time.Sleep(50 * time.Millisecond) // a keeper whose folder was removed may still be ending
	}
	if len(left) > 0 {
		fmt.Println("files remain in the temporary folder:", left)
		return max(code, 1)
	}
	return code
}

// remaining returns the paths in a folder, but not the folder for sockets of long run folders if that is empty: all
// browsers share it, so it is kept.
func remaining(dir string) (left []string) {
	os.Remove(filepath.Join(dir, fmt.Sprint("parley-", os.Geteuid())))
	filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
		if path != dir {
			left = append(left, path)
		}
		return nil
	})
	return left
}

// rounds returns how often a test repeats what depends on timing: once, or many times if PARLEY_HAMMER is set, as
// make hammer does.
func rounds(many int) int {
	if os.Getenv("PARLEY_HAMMER") == "" {
		return 1
	}
	return many
}

// testTimeout bounds every wait of a test. It is long enough for a machine under heavy load.
const testTimeout = 2 * time.Minute

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// within returns a context that leaves a call that many milliseconds.
func within(t testing.TB, ms int) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func config(t *testing.T) Config {
	t.Helper()
	cfg, err := foundConfig(tempDir(t))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("tests must not be skipped in CI: ", err)
		}
		t.Skip("needs a browser: ", err)
	}
	return cfg
}

// tempDir is like t.TempDir, but its path is short enough for sockets. Processes that have it on their command line
// end first: a browser that is just ending, because its keeper was killed, could create its folders again.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			found := false
			for pid, cmdline := range processes() {
				if strings.Contains(cmdline, dir) { // the folder may be the profile itself
					found = true
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			if !found {
				break
			}
		}
		if err := removeTree(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func foundConfig(dir string) (Config, error) {
	found, err := browser.Find("", os.Getenv(browser.EnvVar), "")
	return Config{RunDir: filepath.Join(dir, "run"), Chrome: found.Path, FoundBy: found.From, Version: "test"}, err
}

// startBrowser opens a browser. At the end of the test it checks that nothing of the browser is left.
func startBrowser(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := Start(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if _, err := Stop(context.Background(), cfg.RunDir, cfg.Browser, "test"); err != nil {
			t.Error("closing: ", err)
		}
		requireNothingLeft(t, cfg)
	})
	return c
}

// requireNothingLeft waits until no process and no file of a browser is left.
func requireNothingLeft(t *testing.T, cfg Config) {
	t.Helper()
	var left []string
	// each check is expensive
	for end := time.Now().Add(testTimeout); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		left = left[:0]
		for pid, cmdline := range processes() {
			if strings.Contains(cmdline, cfg.RunDir) {
				left = append(left, fmt.Sprint("process ", pid, " ", manifest.Clip(cmdline, 100)))
			}
		}
		entries, _ := os.ReadDir(cfg.RunDir)
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("remaining: %s", strings.Join(left, ", "))
}

// processes returns the command lines of all processes that are not zombies, by pid.
func processes() map[int]string {
	all := map[int]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		var pid int
		fmt.Sscanf(path, "/proc/%d/", &pid)
		if data, err := os.ReadFile(path); err == nil && len(data) > 0 && !isZombie(pid) {
			all[pid] = strings.ReplaceAll(string(data), "\x00", " ")
		}
	}
	return all
}

// site serves pages by path and returns its URL.
func site(t *testing.T, pages map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, page)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const plainPage = "<title>Plain</title><p>Hello"

func openPage(t *testing.T, c *Client, url string) api.Page {
	t.Helper()
	p, err := c.Open(testContext(t), api.OpenRequest{URL: url})
	if err != nil {
		t.Fatal("open: ", err)
	}
	return p
}

func params(v any) json.RawMessage { return scan.Marshal(v) }

// evaluate runs an expression in a target and returns its value as JSON.
func evaluate(t testing.TB, c *Client, target, expression string) (string, error) {
	t.Helper()
	raw, err := c.Call(testContext(t), api.CallRequest{Target: target, Method: "Runtime.evaluate",
		Params: params(map[string]any{"expression": expression, "returnByValue": true})})
	var reply struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
	}
	json.Unmarshal(raw, &reply)
	return string(reply.Result.Value), err
}

func wantValue(t *testing.T, c *Client, target, expression, want string) {
	t.Helper()
	if got, err := evaluate(t, c, target, expression); err != nil || got != want {
		t.Errorf("%s = %s, %v; want %s", expression, got, err, want)
	}
}

func wantCode(t *testing.T, err error, code string, words ...string) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("error %v, want %s", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("%q does not contain %q", e.Message, w)
		}
	}
}

// TestBrowserClosedByCommand closes the browser by its own command. The next call must not reach the ending browser.
func TestBrowserClosedByCommand(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	c := startBrowser(t, cfg)
	openPage(t, c, "")
	if _, err := c.Call(testContext(t), api.CallRequest{Method: "Browser.close"}); err != nil {
		t.Fatal(err)
	}
	_, err := evaluate(t, c, "", "1")
	wantCode(t, err, api.CodeChromeConnection)
	requireNothingLeft(t, cfg)
}

func TestOpenEvaluateClose(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	url := site(t, map[string]string{"/": plainPage, "/two": "<title>Two</title>"})
	if _, err := Dial(testContext(t), cfg.RunDir, "", "test"); err == nil {
		t.Fatal("Dial succeeds before a browser was opened")
	} else {
		wantCode(t, err, api.CodeChromeConnection, "no browser")
	}
	c := startBrowser(t, cfg)
	if !c.Started() {
		t.Error("Started reports false")
	}
	p := openPage(t, c, url+"/")
	if p.Browser != "default" || p.URL != url+"/" || p.Title != "Plain" || p.Target == "" {
		t.Errorf("page %+v", p)
	}
	wantValue(t, c, "", "document.title", `"Plain"`)

	// The first open uses the initial blank page, the second creates a page, which becomes the current one.
	p2 := openPage(t, c, url+"/two")
	wantValue(t, c, "", "document.title", `"Two"`)
	targets, err := c.Targets(testContext(t))
	if err != nil || len(targets) != 2 || targets[0].ID != p.Target || !targets[1].Current {
		t.Errorf("targets %+v, %v", targets, err)
	}
	for _, selector := range []string{p.Target, p.Target[:8], strings.ToLower(p.Target[:8]), "0"} {
		wantValue(t, c, selector, "document.title", `"Plain"`)
	}
	wantValue(t, c, "/two", "document.title", `"Two"`)
	_, err = evaluate(t, c, url, "1")
	wantCode(t, err, api.CodeNotFound, "matches 2 targets")
	_, err = evaluate(t, c, "nowhere", "1")
	wantCode(t, err, api.CodeNotFound, "nowhere")
	_, err = evaluate(t, c, "7", "1")
	wantCode(t, err, api.CodeNotFound, "no target 7")

	// A command of the Browser domain that concerns a page uses the current one.
	if _, err := c.Call(testContext(t),
		api.CallRequest{Method: "Browser.getWindowForTarget", Params: json.RawMessage("{}")}); err != nil {
		t.Error(err)
	}

	if _, err := c.activate(testContext(t), "0"); err != nil {
		t.Error(err)
	}
	wantValue(t, c, "", "document.title", `"Plain"`)
	if _, err := c.CloseTarget(testContext(t), "", ""); err != nil {
		t.Error(err)
	}
	wantValue(t, c, "", "document.title", `"Two"`)
	_, err = evaluate(t, c, p.Target, "1")
	wantCode(t, err, api.CodeNotFound)

	s, err := c.Status(testContext(t), true)
	if err != nil || s.Mode != "launched" || !strings.Contains(s.Product, "/") || s.ChromePID == 0 || !s.Temporary ||
		s.IdleLimit != 30*60*1000 || len(s.Targets) != 1 || p2.Target != s.Targets[0].ID {
		t.Errorf("status %+v, %v", s, err)
	}
	if os.Geteuid() == 0 && (len(s.Notes) == 0 || !strings.Contains(s.Notes[0], "--no-sandbox")) {
		t.Errorf("notes %q", s.Notes)
	}

	// A client of another process finds the same browser.
	again, err := Dial(testContext(t), cfg.RunDir, "default", "test")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	wantValue(t, again, "", "1+1", "2")

	_, err = c.Call(testContext(t), api.CallRequest{Method: "Page.nonsense"})
	wantCode(t, err, api.CodeProtocolError, "Page.nonsense")
	var e *api.Error
	if errors.As(err, &e); e.Chrome == nil || e.Chrome.Code != -32601 {
		t.Errorf("Chrome's error: %+v", e)
	}
	raw, err := c.Call(testContext(t), api.CallRequest{Method: "Browser.getVersion"})
	if err != nil || !strings.Contains(string(raw), "protocolVersion") {
		t.Errorf("Browser.getVersion: %s %v", raw, err)
	}
	if err := again.CloseBrowser(testContext(t)); err != nil {
		t.Error("close: ", err)
	}
	requireNothingLeft(t, cfg)
	_, err = evaluate(t, c, "", "1")
	wantCode(t, err, api.CodeChromeConnection)
}

// asError converts any error to an *Error.
func asError(err error) *api.Error {
	if e := (*api.Error)(nil); errors.As(err, &e) {
		return e
	}
	return &api.Error{Code: api.CodeInternal, Message: err.Error()}
}
