//go:build linux

package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/page/act"
	"github.com/parley-tools/parley/cdp/internal/keeper/page/environment"
	"github.com/parley-tools/parley/cdp/internal/keeper/page/look"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
)

// inProcess starts a browser whose keeper is this process, with little room for events.
func inProcess(t *testing.T) *page.Pages {
	t.Helper()
	cfg := config(t)
	cfg.setDefaults()
	cfg.RingEvents, cfg.RingBytes = 600, 128<<10
	proc, err := browser.Launch(testContext(t), browser.LaunchConfig{Path: cfg.Chrome, Profile: tempDir(t),
		Temp: tempDir(t), Timeout: cfg.LaunchTimeout, MaxMessage: cfg.MaxMessage, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	e := verb.New(proc.Conn, cfg.rooms(false))
	t.Cleanup(e.Mux.Close)
	e.Owners.Setups.Dir, e.Events.Downloads.Dir = tempDir(t), tempDir(t)
	if err := e.Tracker.Start(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := e.Events.KeepDownloads(testContext(t), ""); err != nil {
		t.Fatal(err)
	}
	return page.New(e, act.Verbs, look.Verbs, environment.Verbs)
}

// busyPage has something of everything that a page can do.
const busyPage = `<title>Busy</title><h1>Busy</h1><button onclick="out.textContent = Math.random()">Change</button>
	<button onclick="fetch('/x?' + Math.random())">Fetch</button><button onclick="alert(1)">Alert</button>
	<button onclick="console.error({a: Math.random()}, document.body)">Log</button>
	<button onclick="setTimeout(() => { throw new Error('x' + Math.random()) })">Throw</button>
	<button onclick="window.open('/next')">Window</button><a href="/file">File</a><a href="/next">Next</a>
	<button onclick="history.pushState({}, '', '#' + Math.random())">Push</button>
	<button onclick="for (const f of document.querySelectorAll('iframe')) f.remove()">Drop</button>
	<button onclick="new Worker(URL.createObjectURL(new Blob(['1'])))">Work</button>
	<button onclick="new WebSocket(location.href.replace('http', 'ws'))">Socket</button>
	<input aria-label=Field><p id=out></p><iframe srcdoc="<button>Inner</button>"></iframe>
	<iframe src="http://localhost:PORT/inner"></iframe>`

// TestNothingGrows does random verbs for three sessions, one of which ends now and then, and compares what the keeper
// has in its memory after some of them with what it has after as many more. With PARLEY_HAMMER set these are 2,000.
func TestNothingGrows(t *testing.T) {
	p := inProcess(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch _, port, _ := strings.Cut(r.Host, ":"); r.URL.Path {
		case "/":
			_, _ = io.WriteString(w, strings.Replace(busyPage, "PORT", port, 1))
		case "/file":
			w.Header().Set("Content-Disposition", `attachment; filename="a.bin"`)
			_, _ = io.WriteString(w, "abc")
		default:
			_, _ = io.WriteString(w, "<title>Next</title><h1>Next</h1><a href=/>Back</a>")
		}
	}))
	t.Cleanup(s.Close)
	run := func(by api.Caller, verb, params string) ([]byte, *api.Error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return p.Run(ctx, by, page.Prefix+verb, fmt.Appendf(nil, `{"params":%s}`, params))
	}
	address := string(scan.Quote(s.URL + "/"))
	acts := []string{`open {"url":` + address + `}`, `open {"url":` + address + `,"new":true}`, `go {"to":"back"}`,
		`go {"to":"reload"}`, `fill {"element":"Field","value":"x"}`, `snapshot {"max_tokens":500}`, `screenshot {}`,
		`evaluate {"expression":"for (let i = 0; i < 40; i++) console.log(i, {i})"}`, `text {"max_tokens":500}`,
		`requests {"limit":20}`, `console {"limit":20}`,
		`do {"steps":[{"tool":"click","params":{"element":"Change"}},{"tool":"press","params":{"key":"Tab"}}]}`}
	for name := range strings.FieldsSeq(`Change Fetch Alert Log Throw Window File Next Push Drop Work Socket Inner
		Nowhere`) {
		acts = append(acts, `click {"element":"`+name+`"}`)
	}
	callers := []api.Caller{api.CommandLine, {Name: "mcp:a", Session: "a"}, {Name: "mcp:b", Session: "b"}}
	random := rand.New(rand.NewPCG(1, 2))
	step := func(i int) {
		by := callers[random.IntN(len(callers))]
		verb, params, _ := strings.Cut(acts[random.IntN(len(acts))], " ")
		_, err := run(by, verb, params)
		switch {
		case err == nil:
		case err.NoPage:
			_, _ = run(by, "open", `{"url":`+address+`}`)
		case err.Code == api.CodeBusy:
			_, _ = run(by, "dialog", `{"action":"accept"}`)
		case err.Code == api.CodeInternal:
			t.Errorf("%s %s: %s", verb, params, err.Message)
		}
		if i%20 == 0 {
			closeOthers(run, callers)
		}
		if i%50 == 0 {
			_, _ = p.Keeper.Tenancy.CloseSession(t.Context(), "b")
		}
	}
	memory := func(steps int) int64 {
		for i := range steps {
			step(i + 1)
		}
		runtime.GC()
		runtime.GC() // what finalizers let go
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	steps := 40 * rounds(25)
	before := memory(steps)
	if after := memory(steps); after > before+300<<10 {
		t.Errorf("after %d verbs %d KB are in use, after as many more %d", steps, before>>10, after>>10)
	}
}

// closeOthers closes all pages of callers but one of each.
func closeOthers(run func(by api.Caller, verb, params string) ([]byte, *api.Error), callers []api.Caller) {
	for _, by := range callers {
		listed, _ := run(by, "tabs", "{}")
		var tabs struct {
			Data struct{ Tabs []struct{ Target string } }
		}
		_ = json.Unmarshal(listed, &tabs)
		for _, tab := range tabs.Data.Tabs[min(len(tabs.Data.Tabs), 1):] {
			_, _ = run(by, "tabs", `{"action":"close","target":"`+tab.Target+`"}`)
		}
	}
}
