//go:build linux

package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/host/protect"
)

// callAsync starts a call and returns a channel for its error.
func callAsync(t *testing.T, c *Client, q api.CallRequest) <-chan error {
	return callWithin(testContext(t), c, q)
}

func callWithin(ctx context.Context, c *Client, q api.CallRequest) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, q)
		result <- err
	}()
	return result
}

// startCall is callAsync for a call that logs in the page. It returns once the page has logged.
func startCall(t *testing.T, c *Client, q api.CallRequest) (result <-chan error) {
	t.Helper()
	begun := errors.New("the call is under way")
	_, err := c.Listen(testContext(t), api.ListenRequest{Patterns: []string{"Runtime.consoleAPICalled"}, Target: q.Target},
		func() {
			result = callAsync(t, c, q)
		}, func(line json.RawMessage) error {
			if parseLine(t, line).Replayed {
				return nil
			}
			return begun
		})
	if err != begun {
		t.Fatal("listen: ", err)
	}
	return result
}

// startLoop starts an endless loop in the page, which must be one of a site. It returns once the page is busy with
// it.
func startLoop(ctx context.Context, t *testing.T, c *Client) <-chan error {
	t.Helper()
	busy := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { busy <- nil }))
	t.Cleanup(server.Close)
	result := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx,
			evaluation(`x = new XMLHttpRequest; x.open("GET", "`+server.URL+`", false); try { x.send() } catch {} for (;;) {}`))
		result <- err
	}()
	awaitError(t, busy)
	return result
}

func awaitError(t *testing.T, result <-chan error) error {
	t.Helper()
	select {
	case err := <-result:
		return err
	case <-time.After(testTimeout):
		t.Fatal("a call hangs")
		return nil
	}
}

// neverReturns is a call that never returns. It logs first, as startCall requires.
var neverReturns = api.CallRequest{Method: "Runtime.evaluate",
	Params: json.RawMessage(`{"expression":"console.log('never'); new Promise(() => {})","awaitPromise":true}`)}

var endlessLoop = evaluation("for (;;) {}")

func evaluation(expression string) api.CallRequest {
	return api.CallRequest{Method: "Runtime.evaluate",
		Params: params(map[string]any{"expression": expression, "returnByValue": true})}
}

func TestHammerCrashAndRevival(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	c := startBrowser(t, cfg)
	url := site(t, map[string]string{"/": plainPage})
	p := openPage(t, c, url+"/")
	crash := api.CallRequest{Method: "Page.navigate", Params: json.RawMessage(`{"url":"chrome://crash"}`)}
	for _, revive := range []api.CallRequest{
		{Method: "Page.navigate", Params: params(map[string]any{"url": url + "/"})},
		{Method: "Page.reload"},
	} {
		for range rounds(20) {
			waiting := startCall(t, c, neverReturns)
			c.Call(testContext(t), crash)
			wantCode(t, awaitError(t, waiting), api.CodeTargetCrashed, "a reload")
			// Revive it at once: the second event of the crash may still be on its way.
			if _, err := c.Call(testContext(t), revive); err != nil {
				t.Fatalf("%s after a crash: %v", revive.Method, err)
			}
			wantValue(t, c, "", "1+1", "2")
			loaded(t, c)

			c.Call(testContext(t), crash)
			_, err := evaluate(t, c, "", "1")
			wantCode(t, err, api.CodeTargetCrashed, p.Target)
			all, err := c.Targets(testContext(t))
			if err != nil || len(all) != 1 || !all[0].Crashed {
				t.Errorf("targets %+v, %v", all, err)
			}
			_, err = evaluate(t, c, "", "1") // calls do not revive the page
			wantCode(t, err, api.CodeTargetCrashed, p.Target)
			if _, err := c.Call(testContext(t), revive); err != nil {
				t.Fatalf("%s after a crash: %v", revive.Method, err)
			}
			loaded(t, c)
		}
	}
	// The dialogs of the new renderer are reported like those of the old one.
	_, err := evaluate(t, c, "", "alert('again')")
	wantCode(t, err, api.CodeBusy, "again")
	if _, err := c.Call(testContext(t), api.CallRequest{Method: "Page.close"}); err != nil {
		t.Error("close with a dialog open: ", err)
	}
}

// loaded waits until the page is loaded, because a navigation that is still running would drop a crash
// command.
func loaded(t *testing.T, c *Client) {
	t.Helper()
	waitFor(t, "the page", func() bool {
		value, err := evaluate(t, c, "", "document.readyState + document.title")
		return err == nil && value == `"completePlain"`
	})
}

func TestDialogs(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	c := startBrowser(t, cfg)
	url := site(t, map[string]string{"/": plainPage, "/alert": "<title>A</title><script>alert('at load')</script>",
		"/frame": `<title>F</title><iframe src="/"></iframe>`})
	openPage(t, c, url+"/")

	_, err := evaluate(t, c, "", "confirm('Sure?')")
	wantCode(t, err, api.CodeBusy, "dialog", "confirm", "Sure?")
	_, err = c.Call(testContext(t), api.CallRequest{Method: "DOM.getDocument"})
	wantCode(t, err, api.CodeBusy, "Sure?")
	all, _ := c.Targets(testContext(t))
	if len(all) != 1 || all[0].Dialog == nil || all[0].Dialog.Type != "confirm" {
		t.Errorf("targets %+v", all)
	}
	if _, err := c.Call(testContext(t),
		api.CallRequest{Method: "Page.handleJavaScriptDialog", Params: json.RawMessage(`{"accept":true}`)}); err != nil {
		t.Error(err)
	}
	wantValue(t, c, "", "1+1", "2")

	for how, want := range map[string]string{api.DialogAccept: "true", api.DialogDismiss: "false"} {
		q := evaluation("confirm('one') && confirm('two')")
		q.OnDialog = how
		raw, err := c.Call(testContext(t), q)
		if err != nil || !strings.Contains(string(raw), `"value":`+want) {
			t.Errorf("on_dialog %s: %s, %v", how, raw, err)
		}
	}
	q := evaluation("prompt('Name?', 'Ada')")
	q.OnDialog = api.DialogAccept
	if raw, err := c.Call(testContext(t), q); err != nil || !strings.Contains(string(raw), `"value":"Ada"`) {
		t.Errorf("a prompt accepted with its preset text: %s, %v", raw, err)
	}
	q = evaluation("1")
	q.OnDialog = "maybe"
	_, err = c.Call(testContext(t), q)
	wantCode(t, err, api.CodeInvalidArgs, "accept, accept=TEXT, dismiss or fail")
	q = evaluation(`prompt("Name?", "Bob")`)
	q.OnDialog = "accept=Ada"
	if raw, err := c.Call(testContext(t), q); err != nil || !strings.Contains(string(raw), `"Ada"`) {
		t.Errorf("a prompt filled with a text: %s, %v", raw, err)
	}

	// on_dialog of a call does not apply to a dialog of another call.
	_, err = evaluate(t, c, "", "alert('open')")
	wantCode(t, err, api.CodeBusy)
	for _, how := range []string{api.DialogAccept, api.DialogDismiss} {
		q = evaluation("1+1")
		q.OnDialog = how
		_, err = c.Call(testContext(t), q)
		wantCode(t, err, api.CodeBusy, "open", "accept or dismiss it")
	}
	if all, _ := c.Targets(testContext(t)); len(all) != 1 || all[0].Dialog == nil {
		t.Errorf("the dialog was closed: %+v", all)
	}
	if _, err := c.Call(testContext(t),
		api.CallRequest{Method: "Page.handleJavaScriptDialog", Params: json.RawMessage(`{"accept":true}`)}); err != nil {
		t.Error(err)
	}

	for _, way := range []api.CallRequest{
		{Method: "Page.reload"},
		{Method: "Page.navigate", Params: params(map[string]any{"url": url + "/frame"})},
	} {
		_, err = evaluate(t, c, "", "alert('stuck')")
		wantCode(t, err, api.CodeBusy)
		if _, err := c.Call(testContext(t), way); err != nil {
			t.Errorf("%s with a dialog open: %v", way.Method, err)
		}
		waitFor(t, "the dialog to close", func() bool { _, err := evaluate(t, c, "", "1"); return err == nil })
	}

	_, err = c.Open(testContext(t), api.OpenRequest{URL: url + "/alert"})
	wantCode(t, err, api.CodeBusy, "at load")
	if _, err := c.Open(testContext(t), api.OpenRequest{URL: url + "/alert", OnDialog: api.DialogAccept}); err != nil {
		t.Error("open with accept: ", err)
	}
	// A dialog of one page blocks neither another page nor the browser.
	wantValue(t, c, "/frame", "1+1", "2")
	if _, err := c.Call(testContext(t), api.CallRequest{Method: "Browser.getVersion"}); err != nil {
		t.Error(err)
	}
}

// testBeforeUnloadDialog tests a page with a beforeunload dialog. Only closing the dialog ends it, another
// navigation does not.
func testBeforeUnloadDialog(t *testing.T, c *Client) {
	url := site(t,
		map[string]string{"/": "<title>Stay</title><script>onbeforeunload = e => e.preventDefault()</script>",
			"/two": "<title>Two</title>"})
	to := func(path string) api.CallRequest {
		return api.CallRequest{Method: "Page.navigate", Params: params(map[string]any{"url": url + path})}
	}
	openAsking := func() {
		t.Helper()
		openPage(t, c, url+"/")
		gesture := evaluation("1") // without a user gesture the page may not show the dialog
		gesture.Params = params(map[string]any{"expression": "1", "userGesture": true})
		if _, err := c.Call(testContext(t), gesture); err != nil {
			t.Fatal(err)
		}
		_, err := c.Call(testContext(t), to("/two"))
		wantCode(t, err, api.CodeBusy, "beforeunload")
	}
	openAsking()
	for _, blocked := range []api.CallRequest{to("/two"), {Method: "Page.reload"}, {Method: "Page.close"}} {
		_, err := c.Call(testContext(t), blocked)
		wantCode(t, err, api.CodeBusy, "beforeunload", "dismiss it to stay")
		if err != nil && strings.Contains(err.Error(), "reload") {
			t.Errorf("%s: %v", blocked.Method, err)
		}
	}
	accepting := to("/two")
	accepting.OnDialog = api.DialogAccept
	_, err := c.Call(testContext(t), accepting)
	wantCode(t, err, api.CodeBusy, "beforeunload") // a dialog of another call
	if _, err := c.Call(testContext(t),
		api.CallRequest{Method: "Page.handleJavaScriptDialog", Params: json.RawMessage(`{"accept":true}`)}); err != nil {
		t.Error(err)
	}
	waitFor(t, "the navigation", func() bool {
		title, _ := evaluate(t, c, "", "document.title")
		return title == `"Two"`
	})
	openAsking()
	if _, err := c.CloseTarget(testContext(t), "", ""); err != nil {
		t.Error("closing a page with a beforeunload dialog: ", err)
	}
}

func TestEndlessLoopIsStopped(t *testing.T) {
	c := startBrowser(t, config(t))
	openPage(t, c, site(t, map[string]string{"/": plainPage}))
	_, err := c.Call(within(t, 500), endlessLoop)
	wantCode(t, err, api.CodeTimeout, "stopped")
	wantValue(t, c, "", "1+1", "2")

	// The script of a page that only waits is not stopped.
	if _, err := evaluate(t, c, "", "window.n = 0; setInterval(() => n++, 1); 0"); err != nil {
		t.Fatal(err)
	}
	_, err = c.Call(within(t, 200), neverReturns)
	wantCode(t, err, api.CodeTimeout)
	if strings.Contains(err.Error(), "stopped") {
		t.Errorf("a promise: %v", err)
	}

	// The deadline of the context and a caller that disconnects end the loop, too.
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	_, err = c.Call(ctx, endlessLoop)
	wantCode(t, err, api.CodeTimeout, "stopped")

	other, err := Dial(testContext(t), c.hello.runDir(t), "", "test")
	if err != nil {
		t.Fatal(err)
	}
	result := startLoop(testContext(t), t, other)
	other.Close()
	wantCode(t, awaitError(t, result), api.CodeChromeConnection)
	wantValue(t, c, "", "1+1", "2")

	ctx, cancel = context.WithCancel(t.Context())
	result = startLoop(ctx, t, c)
	cancel()
	wantCode(t, awaitError(t, result), api.CodeTimeout, "cancelled")
	wantValue(t, c, "", "1+1", "2")
}

// runDir returns the keeper's working directory, which is its run folder.
func (h hello) runDir(t *testing.T) string {
	t.Helper()
	dir, err := os.Readlink("/proc/" + strconv.Itoa(h.PID) + "/cwd")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReplyOverLimit(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.MaxMessage = 4 << 20
	c := startBrowser(t, cfg)
	openPage(t, c, "")
	q := evaluation("'x'.repeat(1e6)")
	q.MaxBytes = 1000
	_, err := c.Call(testContext(t), q)
	wantCode(t, err, api.CodeLimitExceeded, "at most 1000")
	_, err = c.Call(testContext(t), evaluation("'x'.repeat(5e6)"))
	wantCode(t, err, api.CodeLimitExceeded, "at most 4194304 are read")
	q.MaxBytes = 0
	if raw, err := c.Call(testContext(t), q); err != nil || len(raw) < 1e6 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	_, err = c.Call(testContext(t),
		api.CallRequest{Method: "Runtime.evaluate", Params: json.RawMessage(`{"expression":"1"}` + "\x00{}")})
	wantCode(t, err, api.CodeInvalidArgs)
	wantValue(t, c, "", "1+1", "2")
}

// TestResultInPieces writes results of any size, also above the limit, to a writer. Abandoned results leave no file
// open.
func TestResultInPieces(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.MaxMessage = 4 << 20
	c := startBrowser(t, cfg)
	openPage(t, c, "")
	testPieces(t, c)

	stop := errors.New("the disk is full")
	_, _, err := c.CallTo(testContext(t), evaluation("'x'.repeat(8e6)"), writer(func([]byte) (int, error) {
		return 0, stop
	}))
	if err != stop {
		t.Errorf("the writer's error: %v", err)
	}
	_, n, err := c.CallTo(testContext(t), evaluation("'x'.repeat(2e6) + y"), io.Discard)
	if err != nil || n != 0 {
		t.Errorf("a script that throws: %d bytes, %v", n, err)
	}
	other, err := Dial(testContext(t), cfg.RunDir, "", "test")
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		_, _, err := other.CallTo(testContext(t), evaluation("'x'.repeat(30e6)"), writer(func(b []byte) (int, error) {
			other.Close()
			return len(b), nil
		}))
		result <- err
	}()
	wantCode(t, awaitError(t, result), api.CodeChromeConnection)
	wantValue(t, c, "", "1+1", "2")
	waitFor(t, "the files of replies to be closed", func() bool {
		links, _ := filepath.Glob("/proc/" + strconv.Itoa(c.hello.PID) + "/fd/*")
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && strings.HasSuffix(to, " (deleted)") {
				return false
			}
		}
		return true
	})
}

// testPieces reads a result of several megabytes in pieces and a small one as a whole.
func testPieces(t *testing.T, c *Client) {
	t.Helper()
	var got bytes.Buffer
	const want = `{"result":{"type":"string","value":"`
	_, n, err := c.CallTo(testContext(t), evaluation("'x'.repeat(8e6)"), &got)
	if err != nil || n != int64(got.Len()) || got.String() != want+strings.Repeat("x", 8e6)+`"}}` {
		t.Errorf("%d bytes, %.60s..., %v", n, got.String(), err)
	}
	small, n, err := c.CallTo(testContext(t), evaluation("'y'"), io.Discard)
	if err != nil || n != 0 || string(small) != want+`y"}}` {
		t.Errorf("a small result: %s, %d, %v", small, n, err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestHammerHugeReply(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.MaxMessage = 14 << 20
	size := "15"
	if rounds(2) > 1 {
		// Above about 256 MiB Chrome drops a reply without an error, after several seconds.
		cfg.MaxMessage, size = 0, "270"
	}
	c := startBrowser(t, cfg)
	openPage(t, c, "")
	_, err := c.Call(testContext(t), evaluation("'x'.repeat("+size+" << 20)"))
	if err == nil {
		t.Fatal("no error")
	}
	t.Log(err)
	var e *api.Error
	if e = asError(err); e.Code != api.CodeLimitExceeded && e.Code != api.CodeTimeout && e.Code != api.CodeProtocolError {
		t.Errorf("code %s", e.Code)
	}
	wantValue(t, c, "", "1+1", "2")
}

func TestHammerStoppedChrome(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	c := startBrowser(t, cfg)
	openPage(t, c, "")
	s, err := c.Status(testContext(t), true)
	if err != nil {
		t.Fatal(err)
	}
	stopProcess(t, s.ChromePID)
	// Fill the pipe as well. No call may block forever.
	q := evaluation("'" + strings.Repeat("y", 8<<20) + "'.length")
	for range rounds(3) {
		_, err := c.Call(within(t, 300), q)
		wantCode(t, err, api.CodeTimeout)
	}
	syscall.Kill(s.ChromePID, syscall.SIGCONT)
	wantValue(t, c, "", "1+1", "2")
	stopProcess(t, s.ChromePID)
	if err := c.CloseBrowser(testContext(t)); err != nil {
		t.Error(err)
	}
	requireNothingLeft(t, cfg)
}

// stopProcess returns once every thread of a process has stopped. A signal is delivered when a thread of the process
// runs next, which takes its time on a busy machine.
func stopProcess(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the process to be stopped", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			if err == nil && !strings.Contains(string(stat), ") T ") {
				return false
			}
		}
		return true
	})
}

func TestStoppedKeeper(t *testing.T) {
	t.Parallel()
	c := startBrowser(t, config(t))
	stopProcess(t, c.hello.PID)
	ctx, cancel := context.WithTimeout(testContext(t), 50*time.Millisecond)
	defer cancel()
	_, err := c.Call(ctx,
		api.CallRequest{Method: "Runtime.evaluate",
			Params: params(map[string]any{"expression": "new Promise(() => 0)", "awaitPromise": true})})
	syscall.Kill(c.hello.PID, syscall.SIGCONT)
	wantCode(t, err, api.CodeTimeout, "Runtime.evaluate", "keeper", fmt.Sprint(c.hello.PID))
}

func TestKilledChrome(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	c := startBrowser(t, cfg)
	openPage(t, c, "")
	s, err := c.Status(testContext(t), true)
	if err != nil {
		t.Fatal(err)
	}
	waiting := startCall(t, c, neverReturns)
	syscall.Kill(s.ChromePID, syscall.SIGKILL)
	wantCode(t, awaitError(t, waiting), api.CodeChromeConnection)
	requireNothingLeft(t, cfg)
	_, err = Dial(testContext(t), cfg.RunDir, "", "test")
	wantCode(t, err, api.CodeChromeConnection)
}

func TestKilledKeeper(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	for _, next := range []string{"start", "dial", "sweep", "stop"} {
		c := startBrowser(t, cfg)
		openPage(t, c, "")
		waiting := startCall(t, c, neverReturns)
		syscall.Kill(c.hello.PID, syscall.SIGKILL)
		wantCode(t, awaitError(t, waiting), api.CodeChromeConnection)
		waitFor(t, "the keeper's lock to be released", func() bool { return !files{cfg.RunDir, "default"}.isLocked() })
		if entries, _ := os.ReadDir(cfg.RunDir); len(entries) == 0 {
			t.Fatal("the killed keeper left no files to test")
		}
		list, err := List(cfg.RunDir)
		if err != nil || len(list) != 1 || list[0].Alive || list[0].PID != c.hello.PID {
			t.Errorf("list %+v, %v", list, err)
		}
		switch next {
		case "start":
			again := startBrowser(t, cfg)
			wantValue(t, again, "", "1+1", "2")
			again.CloseBrowser(testContext(t))
		case "dial":
			_, err := Dial(testContext(t), cfg.RunDir, "", "test")
			wantCode(t, err, api.CodeChromeConnection, "was killed")
		case "sweep":
			if names, err := Sweep(cfg.RunDir); err != nil || len(names) != 1 {
				t.Errorf("sweep: %q, %v", names, err)
			}
		case "stop":
			if ok, err := Stop(testContext(t), cfg.RunDir, "", "test"); !ok || err != nil {
				t.Errorf("stop: %v, %v", ok, err)
			}
		}
		requireNothingLeft(t, cfg)
	}
}

// TestHammerKillKeeperDuringStart kills the keeper while it starts. The next start must succeed.
func TestHammerKillKeeperDuringStart(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	f := files{cfg.RunDir, "default"}
	for _, after := range []time.Duration{120, 0, 20, 40, 60, 80, 160, 200, 280, 350}[:rounds(10)] {
		started := make(chan error, 1)
		go func() {
			c, err := Start(testContext(t), cfg)
			if err == nil {
				c.Close()
			}
			started <- err
		}()
		waitFor(t, "the keeper", func() bool { return f.lockPID() > 0 })
		time.Sleep(after * time.Millisecond) // after each delay the start is in another phase
		if pid := f.lockPID(); pid > 0 {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := awaitError(t, started); err != nil {
			wantCode(t, err, asError(err).Code)
		}
		c, err := Start(testContext(t), cfg)
		if err != nil {
			t.Fatalf("after a kill at %d ms: %v", after, err)
		}
		wantValue(t, c, "", "1+1", "2")
		if err := c.CloseBrowser(testContext(t)); err != nil {
			t.Error(err)
		}
		requireNothingLeft(t, cfg)
	}
}

func TestKilledStarter(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), ChildVar+"=starter")
	cmd.Stdin = strings.NewReader(string(scan.Marshal(cfg)))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f := files{cfg.RunDir, "default"}
	waitFor(t, "the keeper", func() bool { return f.lockPID() > 0 })
	cmd.Process.Kill()
	cmd.Wait()
	requireNothingLeft(t, cfg)
}

// TestStarterWithRemovedBinary starts a keeper from a process whose binary was removed, for example by an update.
func TestStarterWithRemovedBinary(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	binary := filepath.Join(tempDir(t), "starter")
	data, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(binary, data, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), ChildVar+"=starter")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	if err := os.Remove(binary); err != nil {
		t.Fatal(err)
	}
	stdin.Write(scan.Marshal(cfg))
	stdin.Close()
	waitFor(t, "the socket", func() bool { return checkSocket(files{cfg.RunDir, "default"}.socket()) == nil })
	wantValue(t, startBrowser(t, cfg), "", "1+1", "2")
}

// TestHungKeeperWithEmptyLock stops a keeper whose lock has no pid, as if the disk had been full.
func TestHungKeeperWithEmptyLock(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	c := startBrowser(t, cfg)
	if err := os.Truncate(files{cfg.RunDir, "default"}.lock(), 0); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(c.hello.PID, syscall.SIGSTOP)
	if ok, err := Stop(testContext(t), cfg.RunDir, "", "test"); !ok || err != nil {
		t.Errorf("stop: %v, %v", ok, err)
		syscall.Kill(c.hello.PID, syscall.SIGKILL)
	}
	requireNothingLeft(t, cfg)
}

// runStarter runs a process that opens a browser and keeps running.
func runStarter() int {
	var cfg Config
	if json.NewDecoder(os.Stdin).Decode(&cfg) != nil {
		return 1
	}
	os.Unsetenv(ChildVar)
	if _, err := Start(context.Background(), cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

func TestConcurrentStartsShareOneKeeper(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	const n = 4
	clients := make([]*Client, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			c, err := Start(testContext(t), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			clients[i] = c
		})
	}
	wg.Wait()
	first := 0
	for _, c := range clients {
		if c == nil {
			t.FailNow()
		}
		if c.Started() {
			first++
		}
		if c.hello.PID != clients[0].hello.PID {
			t.Error("the clients have different keepers")
		}
	}
	if first != 1 {
		t.Errorf("%d clients started the keeper", first)
	}
	if err := clients[0].CloseBrowser(testContext(t)); err != nil {
		t.Error(err)
	}
	requireNothingLeft(t, cfg)
}

func TestStaleAndForeignFiles(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	f := files{cfg.RunDir, "default"}
	if err := protect.Dir(cfg.RunDir); err != nil {
		t.Fatal(err)
	}
	socket := f.socket()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	os.MkdirAll(filepath.Join(f.profile(), "Default"), 0o700)
	os.WriteFile(f.info(), []byte("{damaged"), 0o600)
	c := startBrowser(t, cfg)
	wantValue(t, c, "", "1+1", "2")
	c.CloseBrowser(testContext(t))
	requireNothingLeft(t, cfg)

	// A link at the socket's path is not followed.
	elsewhere := filepath.Join(tempDir(t), "s")
	other, err := net.Listen("unix", elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	os.Symlink(elsewhere, socket)
	_, err = Dial(testContext(t), cfg.RunDir, "", "test")
	wantCode(t, err, api.CodeChromeConnection)

	// A link at the lock's path is rejected.
	os.Symlink(elsewhere, f.lock())
	_, err = Start(testContext(t), cfg)
	wantCode(t, err, api.CodeConfigError, "lock")
	os.Remove(f.lock())
}

// TestCheckBrowserLimit locks as many browser names as may be open.
func TestCheckBrowserLimit(t *testing.T) {
	dir := tempDir(t)
	for n := range maxBrowsers {
		if err := CheckBrowserLimit(dir, "another"); err != nil {
			t.Fatalf("with %d browsers: %v", n, err)
		}
		lock, err := files{dir, fmt.Sprint("b", n)}.tryLock()
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
	}
	wantCode(t, CheckBrowserLimit(dir, "another"), api.CodeLimitExceeded, fmt.Sprint(maxBrowsers))
	if err := CheckBrowserLimit(dir, "b1"); err != nil {
		t.Errorf("a browser that is already open: %v", err)
	}
}

// TestShortPaths checks the length of every path with sockets, and that no path could be that of another browser.
func TestShortPaths(t *testing.T) {
	seen := map[string]files{}
	for _, dir := range []string{"/run", "/" + strings.Repeat("d", 40), "/" + strings.Repeat("d", 74),
		"/" + strings.Repeat("d", 200)} {
		for _, name := range []string{"default", strings.Repeat("n", 30), strings.Repeat("n", 64)} {
			f := files{dir, name}
			for path, most := range map[string]int{f.socket(): maxSocketPath, f.temp(): browser.MaxTemp} {
				if len(path) > most {
					t.Errorf("%s has %d bytes, the limit is %d", path, len(path), most)
				}
				if other, twice := seen[path]; twice {
					t.Errorf("%+v and %+v share %s", f, other, path)
				}
				seen[path] = f
				if base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)); base != name && CheckName(base) == nil {
					t.Errorf("%s of %+v looks like that of the browser %s", path, f, base)
				}
			}
		}
	}
}

func TestLongRunDir(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.RunDir = filepath.Join(tempDir(t), strings.Repeat("long", 30), "run")
	cfg.Browser = "other"
	c := startBrowser(t, cfg)
	wantValue(t, c, "", "1+1", "2")
	path := SocketPath(cfg.RunDir, "other")
	if len(path) > maxSocketPath || strings.HasPrefix(path, cfg.RunDir) {
		t.Errorf("socket %s", path)
	}
	if err := c.CloseBrowser(testContext(t)); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket still exists")
	}
}

func TestLaunchErrors(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Chrome = "/bin/false"
	_, err := Start(testContext(t), cfg)
	wantCode(t, err, api.CodeChromeLaunch, "exited with 1")
	requireNothingLeft(t, cfg)
	cfg.Attach = "http://127.0.0.1:1"
	_, err = Start(testContext(t), cfg)
	wantCode(t, err, api.CodeChromeConnection, "no browser responds")
	requireNothingLeft(t, cfg)
	cfg.Browser = "../evil"
	_, err = Start(testContext(t), cfg)
	wantCode(t, err, api.CodeInvalidArgs)
}

// TestBrowserCrashAtLaunch launches a browser that crashes the first time and exits the second time.
func TestBrowserCrashAtLaunch(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	dir := tempDir(t)
	script := fmt.Sprintf(
		"#!/bin/sh\nif [ ! -e %[1]s/tried ]; then touch %[1]s/tried; kill -SEGV $$; fi\n"+
			"if [ ! -e %[1]s/again ]; then touch %[1]s/again; exit 5; fi\nexec %[2]s \"$@\"\n", dir, cfg.Chrome)
	cfg.Chrome = filepath.Join(dir, "chrome")
	if err := os.WriteFile(cfg.Chrome, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	wantValue(t, startBrowser(t, cfg), "", "1+1", "2")

	cfg.Browser = "never"
	if err := os.WriteFile(cfg.Chrome, []byte("#!/bin/sh\nkill -SEGV $$\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(testContext(t), cfg)
	wantCode(t, err, api.CodeChromeLaunch, "was killed")
}

func TestProfileInUse(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.UserDataDir = filepath.Join(tempDir(t), "mine")
	c := startBrowser(t, cfg)
	again, err := Start(testContext(t), cfg)
	if err != nil || len(again.Notes()) != 0 {
		t.Errorf("the same options: %v %q", err, again.Notes())
	}
	again.Close()
	differs := cfg
	differs.Headed, differs.UserDataDir = true, tempDir(t)
	again, err = Start(testContext(t), differs)
	if err != nil || len(again.Notes()) != 1 || !strings.Contains(again.Notes()[0], "headed, user_data_dir") {
		t.Errorf("other options: %v %q", err, again.Notes())
	}
	again.Close()
	second := cfg
	second.Browser = "second"
	_, err = Start(testContext(t), second)
	wantCode(t, err, api.CodeChromeLaunch, "user_data_dir")
	c.CloseBrowser(testContext(t))
	if _, err := os.Stat(filepath.Join(cfg.UserDataDir, "Default")); err != nil {
		t.Error("the user's own profile was removed: ", err)
	}
}

// shortIdle is an idle limit that even slow tests reach only on purpose.
const shortIdle = 3 * time.Second

func TestIdleKeeperEnds(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Idle = shortIdle
	c := startBrowser(t, cfg)
	s, err := c.Status(testContext(t), true)
	if err != nil || s.IdleLimit != shortIdle.Milliseconds() {
		t.Errorf("%+v %v", s, err)
	}
	requireNothingLeft(t, cfg)
}

func TestKeeperEndsWithItsFolder(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	startBrowser(t, cfg)
	if err := os.RemoveAll(cfg.RunDir); err != nil {
		t.Log(err) // Chrome may still be writing
		os.RemoveAll(cfg.RunDir)
	}
	requireNothingLeft(t, cfg)
}

// TestKeeperOfRemovedFolderLeavesNextAlone removes the run folder and starts another keeper in it before the first
// one has noticed.
func TestKeeperOfRemovedFolderLeavesNextAlone(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	first := startBrowser(t, cfg)
	if err := removeTree(cfg.RunDir); err != nil {
		t.Fatal(err)
	}
	second := startBrowser(t, cfg)
	if first.hello.PID == second.hello.PID {
		t.Fatal("the first keeper is still used")
	}
	waitFor(t, "the first keeper to exit", func() bool {
		return !processExists(first.hello.PID) || isZombie(first.hello.PID)
	})
	wantValue(t, second, "", "1+1", "2")
	again, err := Dial(testContext(t), cfg.RunDir, "", "test")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	wantValue(t, again, "", "1+1", "2")
}

func TestFailedNavigation(t *testing.T) {
	t.Parallel()
	c := startBrowser(t, config(t))
	_, err := c.Open(testContext(t), api.OpenRequest{URL: "http://127.0.0.1:1/"})
	wantCode(t, err, api.CodeNavigationFailed, "net::ERR_")
	_, err = c.Open(testContext(t), api.OpenRequest{URL: "no url"})
	wantCode(t, err, api.CodeProtocolError, "invalid URL")
	p := openPage(t, c, site(t, map[string]string{"/": plainPage}))
	all, err := c.Targets(testContext(t))
	if err != nil || len(all) != 1 || all[0].ID != p.Target {
		t.Errorf("pages of failed navigations are still open: %+v %v", all, err)
	}
}
