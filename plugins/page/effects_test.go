package main

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestNavigationIsPending sends the events of navigations. A page has something pending from the time it schedules a
// navigation, which may be long before the request is sent, until the document was loaded or the navigation given up.
func TestNavigationIsPending(t *testing.T) {
	const (
		scheduled = `{"method":"Page.frameScheduledNavigation","params":{"frameId":"F","url":"http://a.test/next"}}`
		cleared   = `{"method":"Page.frameClearedScheduledNavigation","params":{"frameId":"F"}}`
		sent      = `{"method":"Network.requestWillBeSent","params":{"requestId":"R","type":"Document","frameId":"F",
			"request":{"url":"http://a.test/next","method":"POST"}}}`
		response = `{"method":"Network.responseReceived","params":{"requestId":"R","type":"Document","frameId":"F",
			"response":{"url":"http://a.test/next","status":200}}}`
		navigated = `{"method":"Page.frameNavigated","params":{"frame":{"id":"F"}}}`
		inner     = `{"method":"Page.frameNavigated","params":{"frame":{"id":"G","parentId":"F"}}}`
		finished  = `{"method":"Network.loadingFinished","params":{"requestId":"R"}}`
		aborted   = `{"method":"Network.loadingFailed","params":{"requestId":"R","canceled":true}}`
	)
	for _, test := range []struct {
		name      string
		events    []string
		pending   []bool // after each event
		navigated bool
	}{
		{"form", []string{scheduled, sent, cleared, response, navigated, finished},
			[]bool{true, true, true, true, true, false}, true},
		{"no content", []string{scheduled, sent, cleared, response, aborted}, []bool{true, true, true, true, false}, false},
		{"fragment", []string{scheduled, cleared}, []bool{true, false}, false},
		{"frame", []string{inner}, []bool{false}, false},
	} {
		a, pending := newActivity(0), []bool(nil)
		for _, text := range test.events {
			var e actionEvent
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatal(err)
			}
			a.note(&browser{target: "F"}, e)
			pending = append(pending, len(a.pending) > 0)
		}
		if !slices.Equal(pending, test.pending) || a.navigated != test.navigated {
			t.Errorf("%s: pending %v, navigated %t", test.name, pending, a.navigated)
		}
	}
}
