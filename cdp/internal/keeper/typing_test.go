//go:build linux

package keeper

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

const secretText = `c0rrect "horse" staple`

// loginPage has a password field that has the focus, and records its events.
const loginPage = `<title>Login</title><form onsubmit="submitted = true; return false"><input type=password id=p></form>
<input type=checkbox id=c><script>var submitted = false, events = ''; p.oninput = e => events += e.inputType;
addEventListener('load', () => p.focus()); addEventListener('focus', () => p.focus());</script>`

// TestType types a secret into pages and frames.
func TestType(t *testing.T) {
	t.Parallel()
	c := startBrowser(t, config(t)).As(inSession("one"))
	bound := site(t, map[string]string{"/": loginPage, "/sandboxed": loginPage})
	other := site(t, map[string]string{
		"/": loginPage, "/frame": `<iframe src="` + bound + `/" id=f></iframe>`,
		"/other": `<iframe src="` + strings.Replace(bound, "127.0.0.1", "localhost", 1) + `/" id=f></iframe>`,
	})
	outer := site(t, map[string]string{
		"/frame":     `<iframe src="` + strings.Replace(other, "127.0.0.1", "localhost", 1) + `/" id=f></iframe>`,
		"/sandboxed": `<iframe sandbox="allow-scripts" src="` + bound + `/" id=f></iframe>`,
	})
	q := api.TypeRequest{Text: secretText, Origins: []string{"https://a.test", bound}}
	refused := func(err error, code string, words ...string) {
		t.Helper()
		wantCode(t, err, code, words...)
		if err != nil && strings.Contains(err.Error(), "horse") {
			t.Errorf("the error has the secret: %v", err)
		}
	}

	openPage(t, c, bound+"/")
	done, err := c.Type(testContext(t), q)
	if err != nil || done.Origin != bound {
		t.Fatalf("typed %+v, %v", done, err)
	}
	wantValue(t, c, "", "p.value", string(scan.Marshal(secretText)))
	wantValue(t, c, "", "events", `"insertText"`)
	wantValue(t, c, "", "submitted", "false")
	submit := q
	submit.Submit = true
	if _, err := c.Type(testContext(t), submit); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the form to be submitted", func() bool {
		value, _ := evaluate(t, c, "", "submitted")
		return value == "true"
	})
	for _, by := range []*Client{c, c.As(api.CommandLine)} {
		events, err := by.Events(testContext(t), api.EventsRequest{})
		if text := string(scan.Marshal(events)); err != nil || strings.Contains(text, "horse") {
			t.Errorf("an event has the secret: %s, %v", text, err)
		}
	}
	evaluate(t, c, "", "p.blur()")
	_, err = c.Type(testContext(t), q)
	refused(err, api.CodeProtocolError, "no element has the focus")
	evaluate(t, c, "", "document.getElementById('c').focus()")
	_, err = c.Type(testContext(t), q)
	refused(err, api.CodeProtocolError, "takes no text")

	// another origin, whatever the page says its origin is
	openPage(t, c, other+"/")
	evaluate(t, c, "", `Array.prototype.includes = () => true; String.prototype.toString = () => "`+bound+`"; 1`)
	_, err = c.Type(testContext(t), q)
	refused(err, api.CodeDenied, "origin "+other, "https://a.test, "+bound)
	wantValue(t, c, "", "p.value", `""`)

	// the focused frame decides, not the page around it; in the same process and in another one
	openPage(t, c, other+"/frame")
	evaluate(t, c, "", "f.focus()")
	waitFor(t, "the secret to be typed into a frame", func() bool {
		done, err := c.Type(testContext(t), q)
		return err == nil && done.Origin == bound
	})
	for url, origin := range map[string]string{
		other + "/other": "http://localhost:", outer + "/frame": "http://localhost:", outer + "/sandboxed": "null",
	} {
		openPage(t, c, url)
		evaluate(t, c, "", "f.focus()")
		_, err = c.Type(testContext(t), api.TypeRequest{Text: secretText, Origins: []string{bound, outer, other}})
		refused(err, api.CodeDenied, "origin "+origin)
	}
}

// A page that moves between origins gets the secret in the bound one only.
func TestTypeWhileNavigating(t *testing.T) {
	t.Parallel()
	c := startBrowser(t, config(t))
	got := make(chan string, 1000)
	var bound, other string
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			got <- r.Host + " " + r.FormValue("v")
			return
		}
		next := bound
		if "http://"+r.Host == bound {
			next = other
		}
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<input id=p autofocus><script>p.focus();
			p.oninput = () => navigator.sendBeacon('/', new URLSearchParams({v: p.value}));
			setTimeout(() => location = '` + next + `/?' + Math.random(), 200 * Math.random());</script>`))
	}
	first, second := httptest.NewUnstartedServer(http.HandlerFunc(handler)),
		httptest.NewUnstartedServer(http.HandlerFunc(handler))
	t.Cleanup(first.Close)
	t.Cleanup(second.Close)
	bound = "http://" + first.Listener.Addr().String()
	other = strings.Replace("http://"+second.Listener.Addr().String(), "127.0.0.1", "localhost", 1)
	first.Start()
	second.Start()
	openPage(t, c, "about:blank")
	if _, err := c.Call(testContext(t), api.CallRequest{Method: "Page.navigate",
		Params: json.RawMessage(`{"url":"` + bound + `/"}`)}); err != nil {
		t.Fatal(err)
	}
	typed, began := 0, time.Now()
	for i := 0; i < 100 || typed == 0 && time.Since(began) < time.Minute; i++ { // on a busy machine most pages end before
		_, err := c.Type(testContext(t), api.TypeRequest{Text: secretText, Origins: []string{bound}})
		var e *api.Error
		if err == nil {
			typed++
		} else if !errors.As(err, &e) || strings.Contains(e.Message, "horse") {
			t.Error(err)
		}
	}
	first.Close() // which waits for the requests under way
	second.Close()
	close(got)
	for line := range got {
		if host, value, _ := strings.Cut(line, " "); "http://"+host != bound && strings.Contains(value, "horse") {
			t.Errorf("%s got the secret", host)
		}
	}
	if typed == 0 {
		t.Error("nothing was typed at all")
	}
}
