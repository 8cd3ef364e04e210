//go:build linux

package keeper

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// countScript counts its calls in the document, and says where and when it ran.
const countScript = `let calls = 0; const state = document.readyState, bodies = document.querySelectorAll("body").length;
exports.count = (by) => calls += by;
exports.seen = () => ({url: location.pathname, state, bodies, page: typeof pageValue, own: String(document.title)});
exports.later = async (text) => { await new Promise((r) => setTimeout(r, 5)); return {text}; };
exports.fail = () => { throw new TypeError("no such thing"); };
exports.nothing = () => {};
exports.number = function () { return this.number; };
exports.current = function () { return this.document === document; };
exports.input = () => document.querySelector("input");
exports.talk = () => confirm("sure?");`

// scriptRequest returns a request for a function of countScript, with the script's text.
func scriptRequest(function string, args ...any) api.ScriptRequest {
	q := api.ScriptRequest{Script: api.PageScript{Plugin: "page", Name: "count",
		SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(countScript))), Text: countScript}}
	q.Function = function
	for _, arg := range args {
		q.Args = append(q.Args, scan.Marshal(arg))
	}
	return q
}

// runCount calls a function of countScript in a target and returns its value.
func runCount(t *testing.T, c *Client, target, function string, args ...any) string {
	t.Helper()
	q := scriptRequest(function, args...)
	q.Target = target
	done, err := c.Script(testContext(t), q)
	if err != nil || done.Exception != nil {
		t.Errorf("%s: %v %s", function, err, done.Exception)
	}
	return string(done.Value)
}

// frameID returns the id of the only frame in a page's document that runs in its process.
func frameID(t *testing.T, c *Client, page string) string {
	t.Helper()
	raw, err := c.Call(testContext(t), api.CallRequest{Target: page, Method: "Page.getFrameTree"})
	var tree struct {
		Tree struct {
			Children []struct {
				Frame struct {
					ID string `json:"id"`
				} `json:"frame"`
			} `json:"childFrames"`
		} `json:"frameTree"`
	}
	if err != nil || json.Unmarshal(raw, &tree) != nil || len(tree.Tree.Children) != 1 {
		t.Fatalf("frames: %s, %v", raw, err)
	}
	return tree.Tree.Children[0].Frame.ID
}

func testScript(t *testing.T, c *Client) {
	far := strings.Replace(site(t, map[string]string{"/": `<p>text`}), "127.0.0.1", "localhost", 1)
	url := site(t, map[string]string{
		"/": `<title>One</title><form id=parleyExports></form><iframe src="/inner"></iframe>
			<iframe name=parleyExports src="` + far + `/"></iframe>
			<script>var pageValue = 1; Object.hasOwn = () => true; Promise.prototype.then = null; JSON.stringify = null</script>`,
		"/inner": `<title>Inner</title><p>text`,
	})
	first := openPage(t, c, url+"/")
	q := scriptRequest("count", 2)
	q.Script.Text = ""
	if _, err := c.Script(testContext(t), q); !errors.Is(err, api.ErrNoScript) {
		t.Errorf("a script that the keeper does not have: %v", err)
	}
	for i, want := range []string{"2", "4"} {
		if got := runCount(t, c, "", "count", 2); got != want {
			t.Errorf("call %d: %s, want %s", i, got, want)
		}
	}
	done, err := c.Script(testContext(t), q)
	if err != nil || string(done.Value) != "6" || done.Target != first.Target || done.Frame != first.Target {
		t.Errorf("without the text: %+v, %v", done, err)
	}
	if got := runCount(t, c, "", "seen"); !strings.Contains(got, `"own":"One","page":"undefined"`) &&
		!strings.Contains(got, `"page":"undefined","own":"One"`) {
		t.Errorf("in the page: %s", got)
	}
	wantValue(t, c, "", "typeof Object.getOwnPropertyDescriptor(globalThis, 'parleyExports')", `"undefined"`)
	if got := runCount(t, c, "", "later", `a "b"`); got != `{"text":"a \"b\""}` {
		t.Errorf("a promise: %s", got)
	}
	if got := runCount(t, c, "", "nothing"); got != "" {
		t.Errorf("undefined: %s", got)
	}
	if done, err := c.Script(testContext(t), scriptRequest("fail")); err != nil ||
		!strings.Contains(string(done.Exception), "no such thing") {
		t.Errorf("an exception: %+v, %v", done, err)
	}
	for _, name := range []string{"toString", "nowhere", "constructor"} {
		_, err = c.Script(testContext(t), scriptRequest(name))
		wantCode(t, err, api.CodeInvalidArgs, "has no function")
	}
	_, err = c.Script(testContext(t), scriptRequest("talk"))
	wantCode(t, err, api.CodeBusy, "dialog", "sure?")
	if _, err := c.Call(testContext(t), api.CallRequest{Method: "Page.handleJavaScriptDialog",
		Params: json.RawMessage(`{"accept":true}`)}); err != nil {
		t.Error(err)
	}
	accepted := scriptRequest("talk")
	accepted.OnDialog = api.DialogAccept
	if done, err := c.Script(testContext(t), accepted); err != nil || string(done.Value) != "true" {
		t.Errorf("an accepted dialog: %+v, %v", done, err)
	}

	// Another plugin's script of the same name shares nothing with it.
	theirs := api.ScriptRequest{Script: api.PageScript{Plugin: "other", Name: "count",
		SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("theirs"))), Text: `exports.count = () => "theirs";`}}
	theirs.Function = "count"
	if done, err := c.Script(testContext(t), theirs); err != nil || string(done.Value) != `"theirs"` {
		t.Errorf("another plugin's script: %+v, %v", done, err)
	}

	inner := frameID(t, c, first.Target)
	if got := runCount(t, c, inner, "seen"); !strings.Contains(got, `"/inner"`) || !strings.Contains(got, `"Inner"`) {
		t.Errorf("in the frame: %s", got)
	}
	if got := runCount(t, c, inner, "count", 1); got != "1" {
		t.Errorf("the frame shares the state of its page: %s", got)
	}
	number := runCount(t, c, "", "number")
	if again := runCount(t, c, "", "number"); again != number {
		t.Errorf("the number of a document changes from %s to %s", number, again)
	}
	if other := runCount(t, c, inner, "number"); other == number {
		t.Errorf("two documents have the number %s", number)
	}
	// Another document has nothing of the one before.
	if _, err := c.Call(testContext(t), api.CallRequest{Method: "Page.reload", Wait: api.WaitLoad}); err != nil {
		t.Fatal(err)
	}
	if got := runCount(t, c, "", "count", 1); got != "1" {
		t.Errorf("after a reload: %s", got)
	}
	if other := runCount(t, c, "", "number"); other == number {
		t.Errorf("two documents have the number %s", number)
	}
	// Nor does another session find the page or its frame.
	other := c.As(inSession("two"))
	for _, id := range []string{first.Target, inner, frameID(t, c, first.Target)} {
		q := scriptRequest("count", 1)
		q.Target = id
		_, err := other.As(someClient).Script(testContext(t), q)
		wantCode(t, err, api.CodeNotFound)
		_, err = other.As(someClient).input(testContext(t), api.VerbOptions{Target: id},
			json.RawMessage(`{"type":"insertText","text":"a"}`))
		wantCode(t, err, api.CodeNotFound)
	}
}

// openPopup lets the current page open the popup /popup.
func openPopup(t *testing.T, c *Client) {
	t.Helper()
	if _, err := c.Call(testContext(t), api.CallRequest{Method: "Runtime.evaluate",
		Params: json.RawMessage(`{"expression":"void open('/popup')","userGesture":true}`)}); err != nil {
		t.Fatal(err)
	}
}

// testFrames names frames inside a page as targets.
func testFrames(t *testing.T, c *Client) {
	url := site(t, map[string]string{"/": `<title>Outer</title><iframe src="/inner"></iframe>`,
		"/inner": `<title>Inner</title>`, "/next": `<title>Next</title>`})
	p := openPage(t, c, url+"/")
	inner := frameID(t, c, p.Target)
	wantValue(t, c, inner, "document.title", `"Inner"`)
	wantValue(t, c, "", "document.title", `"Outer"`)
	if _, err := c.Call(testContext(t), api.CallRequest{Target: inner, Method: "Page.navigate",
		Params: params(map[string]any{"url": url + "/next"})}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the frame to show another document", func() bool {
		title, _ := evaluate(t, c, inner, "document.title")
		return title == `"Next"`
	})
	wantValue(t, c, "", "document.title", `"Outer"`)
	_, err := c.Call(testContext(t), api.CallRequest{Target: inner, Method: "Page.captureScreenshot"})
	wantCode(t, err, api.CodeInvalidArgs, "acts on a whole page", p.Target)
	_, err = c.As(someClient).Call(testContext(t), api.CallRequest{Target: inner, Method: "Runtime.evaluate",
		Params: json.RawMessage(`{"expression":"1"}`)})
	wantCode(t, err, api.CodeNotFound)
	evaluate(t, c, "", "document.querySelector('iframe').remove()")
	waitFor(t, "the frame to be forgotten", func() bool {
		_, err := c.Call(testContext(t), api.CallRequest{Target: inner, Method: "Runtime.evaluate",
			Params: json.RawMessage(`{"expression":"1"}`)})
		return err != nil
	})
}

// testDocumentStart registers a script for the documents of a session: those of later pages, popups, frames of the same
// and another process, and present ones; and those of no other session.
func testDocumentStart(t *testing.T, c *Client) {
	other := site(t, map[string]string{"/far": `<title>Far</title><p>text`, "/second": `<title>Second</title><p>text`})
	far := strings.Replace(other, "127.0.0.1", "localhost", 1) + "/far"
	url := site(t, map[string]string{
		"/": `<title>One</title><iframe src="/inner"></iframe><iframe src="` + far + `"></iframe>`, "/inner": `<p>text`,
		"/popup": `<title>Popup</title><p>text`})
	mine, stranger := c.As(inSession("one")), c.As(inSession("two"))
	present, theirs := openPage(t, mine, url+"/popup"), openPage(t, stranger, url+"/popup")
	q := scriptRequest("")
	q.DocumentStart = true
	for range 2 { // the second time changes nothing
		if _, err := mine.Script(testContext(t), q); err != nil {
			t.Fatal(err)
		}
	}
	// What the script found when it began: of a document that was there already, of one that had nothing yet.
	seen := func(c *Client, target, want string) {
		t.Helper()
		if got := runCount(t, c, target, "seen"); !strings.Contains(got, want) {
			t.Errorf("it began when the document was %s; want %s", got, want)
		}
	}
	seen(mine, present.Target, `"bodies":1`)
	seen(stranger, theirs.Target, `"bodies":1`)
	openPage(t, stranger, url+"/popup")
	seen(stranger, "", `"bodies":1`)
	page := openPage(t, mine, url+"/")
	seen(mine, "", `"bodies":0`)
	seen(mine, frameID(t, mine, page.Target), `"bodies":0`)
	openPopup(t, mine)
	found := func(part string) (id string) {
		waitFor(t, "the target of "+part, func() bool {
			for _, one := range value(mine.Targets(testContext(t))) {
				if strings.Contains(one.URL, part) && one.ID != present.Target {
					id = one.ID
				}
			}
			return id != ""
		})
		return id
	}
	seen(mine, found("/far"), `"bodies":0`)
	// A popup keeps the global object of its blank document for one of its opener's origin, and then the call runs it.
	seen(mine, found("/popup"), `"bodies":1`)
	if got := runCount(t, mine, found("/popup"), "current"); got != "true" {
		t.Error("in a popup the script has the state of the blank document before")
	}
	if _, err := mine.Call(testContext(t), api.CallRequest{Method: "Runtime.evaluate", Target: page.Target, Params: params(
		map[string]any{"expression": "void open('" + other + "/second')", "userGesture": true})}); err != nil {
		t.Fatal(err)
	}
	seen(mine, found("/second"), `"bodies":0`)
	if _, err := mine.CloseSession(testContext(t), ""); err != nil {
		t.Fatal(err)
	}
	openPage(t, mine, url+"/popup")
	seen(mine, "", `"bodies":1`) // the session has ended, and what it had set up
	for _, of := range []*Client{mine, stranger} {
		of.CloseSession(testContext(t), "")
	}
}

func testInput(t *testing.T, c *Client) {
	url := site(t, map[string]string{"/": `<title>Input</title><style>*{margin:0;padding:0}button{width:100px;height:40px}</style>
		<button onclick="clicks.push(event.isTrusted); location.hash = clicks.length">x</button><br><input id=field>
		<script>var clicks = [], order = [];
		for (const type of ['mousedown', 'mouseup', 'keydown', 'keyup', 'input'])
			addEventListener(type, e => { order.push(type); if (type == 'mousedown') setTimeout(() => order.push('timer')) })
		</script>`, "/dialog": `<button style="width:100px;height:40px" onclick="alert('hello')">x</button>`,
		"/link": `<a href="/" style="display:block;height:100px">next</a>`})
	click := []json.RawMessage{
		json.RawMessage(`{"type":"mouseMoved","x":20,"y":20}`),
		json.RawMessage(`{"type":"mousePressed","x":20,"y":20,"button":"left","clickCount":1}`),
		json.RawMessage(`{"type":"mouseReleased","x":20,"y":20,"button":"left","clickCount":1}`)}
	p := openPage(t, c, url+"/")
	sent, err := c.input(testContext(t), api.VerbOptions{}, click...)
	if err != nil || sent.Events != 3 || sent.Target != p.Target {
		t.Errorf("%+v, %v", sent, err)
	}
	wantValue(t, c, "", "JSON.stringify(clicks)", `"[true]"`)
	evaluate(t, c, "", "order = []; field.focus()")
	_, err = c.input(testContext(t), api.VerbOptions{},
		json.RawMessage(`{"type":"keyDown","key":"a","text":"a"}`), json.RawMessage(`{"type":"keyUp","key":"a"}`),
		json.RawMessage(`{"type":"insertText","text":"bc"}`))
	if err != nil {
		t.Error(err)
	}
	wantValue(t, c, "", "order.filter(e => e != 'timer').join() + field.value", `"keydown,input,keyup,inputabc"`)
	_, err = c.input(testContext(t), api.VerbOptions{}, append(click, json.RawMessage(`{"type":"tap"}`))...)
	wantCode(t, err, api.CodeInvalidArgs, "event 3", `"tap"`)
	wantValue(t, c, "", "clicks.length", `1`) // nothing was sent

	openPage(t, c, url+"/link")
	if _, err := c.input(testContext(t), api.VerbOptions{Wait: api.WaitLoad}, click...); err != nil {
		t.Error(err)
	}
	wantValue(t, c, "", "document.title", `"Input"`)

	openPage(t, c, url+"/dialog")
	_, err = c.input(testContext(t), api.VerbOptions{}, click...)
	wantCode(t, err, api.CodeBusy, "dialog", "hello")
	if _, err := c.Call(testContext(t), api.CallRequest{Method: "Page.handleJavaScriptDialog",
		Params: json.RawMessage(`{"accept":true}`)}); err != nil {
		t.Error(err)
	}
	if _, err := c.input(testContext(t), api.VerbOptions{OnDialog: api.DialogAccept}, click...); err != nil {
		t.Error(err)
	}
}

// TestFramesOfExternalBrowser names a frame that was there before Parley attached to its browser.
func TestFramesOfExternalBrowser(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Args = []string{"--remote-debugging-port=0"}
	c := startBrowser(t, cfg)
	url := site(t, map[string]string{"/": `<title>Outer</title><iframe src="/inner"></iframe>`,
		"/inner": `<title>Inner</title>`})
	p := openPage(t, c, url+"/")
	inner := frameID(t, c, p.Target)
	port, err := os.ReadFile(filepath.Join(value(c.Status(testContext(t), true)).Profile, "DevToolsActivePort"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(port), "\n")
	attached, err := Start(testContext(t), Config{RunDir: cfg.RunDir, Browser: "attached", Attach: first, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer Stop(context.Background(), cfg.RunDir, "attached", "test")
	wantValue(t, attached, p.Target, "document.title", `"Outer"`) // which attaches to the page
	waitFor(t, "the frame to be known", func() bool {
		title, _ := evaluate(t, attached, inner, "document.title")
		return title == `"Inner"`
	})
	if got := runCount(t, attached, inner, "seen"); !strings.Contains(got, `"Inner"`) {
		t.Errorf("in the frame: %s", got)
	}
}
