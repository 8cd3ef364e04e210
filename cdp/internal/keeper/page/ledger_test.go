package page

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestNavigationIsPending notes the events of navigations. A page has something pending from the time it schedules a
// navigation, which may be long before the request is sent, until the document was loaded or the navigation given up.
func TestNavigationIsPending(t *testing.T) {
	const (
		scheduled = `{"method":"Page.frameScheduledNavigation","params":{"frameId":"F","url":"http://a.test/next"}}`
		cleared   = `{"method":"Page.frameClearedScheduledNavigation","params":{"frameId":"F"}}`
		sent      = `{"method":"Network.requestWillBeSent","params":{"requestId":"R","type":"Document","frameId":"F",
			"request":{"url":"http://a.test/next","method":"POST"}}}`
		response = `{"method":"Network.responseReceived","params":{"requestId":"R","type":"Document","frameId":"F",
			"response":{"url":"http://a.test/next","status":200}}}`
		navigated = `{"method":"Page.frameNavigated","params":{"frame":{"id":"F","loaderId":"R"}}}`
		other     = `{"method":"Page.frameNavigated","params":{"frame":{"id":"F","loaderId":"S"}}}`
		inner     = `{"method":"Page.frameNavigated","params":{"frame":{"id":"G","parentId":"F","url":"http://a.test/in"}}}`
		finished  = `{"method":"Network.loadingFinished","params":{"requestId":"R"}}`
		aborted   = `{"method":"Network.loadingFailed","params":{"requestId":"R","canceled":true}}`
	)
	for _, test := range []struct {
		name      string
		events    []string
		pending   []bool // after each event
		navigated bool
		frames    int
	}{
		{"form", []string{scheduled, sent, cleared, response, navigated, finished},
			[]bool{true, true, true, true, true, false}, true, 0},
		{"no content", []string{scheduled, sent, cleared, response, aborted}, []bool{true, true, true, true, false}, false,
			0},
		{"fragment", []string{scheduled, cleared}, []bool{true, false}, false, 0},
		{"frame", []string{inner}, []bool{false}, false, 1},
		{"another document", []string{sent, other}, []bool{true, false}, true, 0},
		{"frame of a new document", []string{navigated, inner}, []bool{false, false}, true, 0},
	} {
		a, pending := NewActivity("F", 0, map[string]string{}), []bool(nil)
		for _, text := range test.events {
			var e struct {
				Method string
				Params actionParams
			}
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatal(err)
			}
			a.note(e.Method, "", &e.Params)
			pending = append(pending, len(a.Pending) > 0)
		}
		if !slices.Equal(pending, test.pending) || a.Navigated != test.navigated || len(a.Frames) != test.frames {
			t.Errorf("%s: pending %v, navigated %t, frames %v", test.name, pending, a.Navigated, a.Frames)
		}
	}
}

// TestDownloadsEnd tells how downloads end that began in the same act or in an earlier one.
func TestDownloadsEnd(t *testing.T) {
	for _, test := range []struct {
		begins bool
		state  string
		want   string
	}{
		{true, "inProgress", `"a.bin" (under way)`}, {true, "completed", `"a.bin": /tmp/x`}, {true, "canceled", `"a.bin" (cancelled)`},
		{false, "completed", "/tmp/x"}, {false, "canceled", "(cancelled)"},
	} {
		a := NewActivity("F", 0, map[string]string{})
		if test.begins {
			a.note("Browser.downloadWillBegin", "", &actionParams{GUID: "G", Name: "a.bin"})
		}
		a.note("Browser.downloadProgress", "", &actionParams{GUID: "G", State: test.state, File: "/tmp/x"})
		if got := a.downloads["G"]; got != test.want || len(a.order) != 1 {
			t.Errorf("%+v: %q, %d", test, got, len(a.order))
		}
	}
}

// TestIconsFailSilently ends requests for what a page loads, and for the icon that the browser asks for by itself. That
// may be the icon of the document before.
func TestIconsFailSilently(t *testing.T) {
	for url, want := range map[string]int{"http://a.test/x.png": 2, "http://a.test" + OwnIcon: 0} {
		a := NewActivity("F", 0, map[string]string{})
		p := &actionParams{RequestID: "R", ErrorText: "net::ERR_CONNECTION_REFUSED"}
		p.Response.URL, p.Response.Status = url, 404
		a.note("Network.responseReceived", url, p)
		a.note("Network.loadingFailed", url, p)
		if len(a.failed) != want {
			t.Errorf("%s: %q", url, a.failed)
		}
	}
}

// TestMissedEndsAreForgotten sends requests whose ends are not recorded.
func TestMissedEndsAreForgotten(t *testing.T) {
	a := NewActivity("F", 0, map[string]string{})
	for i := range 5 * maxMethods {
		p := &actionParams{RequestID: fmt.Sprint(i)}
		p.Request.URL, p.Request.Method = "http://a.test/", "GET"
		a.note("Network.requestWillBeSent", "", p)
	}
	if len(a.methods) > maxMethods {
		t.Errorf("the methods of %d requests are known", len(a.methods))
	}
}

// TestProjection maps the corners and the middle of a view to quadrilaterals, and back.
func TestProjection(t *testing.T) {
	for _, quad := range [][]float64{
		{10, 20, 310, 20, 310, 170, 10, 170},       // as it is
		{100, 0, 200, 100, 100, 200, 0, 100},       // turned
		{0, 0, 300, 40, 260, 180, 30, 150},         // tilted in space
		{300, 170, 0, 170, 0, 20, 300, 20},         // upside down
		{50, 0, 250, 0, 300, 100, 0, 100},          // a trapezoid
		{0, 0, 100, 50, 150, 150, 50, 100},         // a parallelogram
		{0.5, 0.25, 30.5, 0.25, 30.5, 15, 0.5, 15}, // small
	} {
		p := projectionOf(quad, 300, 150)
		if p == nil {
			t.Fatalf("%v has no projection", quad)
		}
		for i, corner := range [][2]float64{{0, 0}, {300, 0}, {300, 150}, {0, 150}} {
			if x, y := p.point(corner[0], corner[1]); math.Hypot(x-quad[2*i], y-quad[2*i+1]) > 1e-6 {
				t.Errorf("%v: corner %d is at %g, %g", quad, i, x, y)
			}
		}
		for _, at := range [][2]float64{{150, 75}, {20, 140}, {299, 1}} {
			x, y := p.point(at[0], at[1])
			if backX, backY := p.inverse(x, y); math.Hypot(backX-at[0], backY-at[1]) > 1e-6 {
				t.Errorf("%v: %v came back as %g, %g", quad, at, backX, backY)
			}
		}
	}
	if projectionOf([]float64{0, 0, 10, 0, 20, 0, 30, 0}, 300, 150) != nil ||
		projectionOf(make([]float64, 8), 0, 0) != nil {
		t.Error("a quadrilateral without an area has a projection")
	}
}
