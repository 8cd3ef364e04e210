package mcp_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/mcp"
)

// TestLostStream checks that a client whose connection is lost during a call gets the result with the id of the last
// event that it has received, with the id that its request had.
func TestLostStream(t *testing.T) {
	f := newFixture(t, mcp.Minimal, trustNetwork)
	begun, release := make(chan struct{}), make(chan struct{})
	f.shop.handlers["order.slow"] = func(context.Context, *host.Request) (*job.Result, error) {
		close(begun)
		<-release
		return jsonData(`"finished"`)
	}
	url := f.listen(t, mcp.HTTPConfig{})
	request := func(method, body string, header ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		header = append(header, "Content-Type", "application/json", "Accept", "application/json, text/event-stream",
			"Mcp-Protocol-Version", "2025-11-25")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	begin := request("POST", initialize)
	session := []string{"Mcp-Session-Id", begin.Header.Get("Mcp-Session-Id")}
	_, _ = io.Copy(io.Discard, begin.Body)
	request("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
	lost := request("POST", `{"jsonrpc":"2.0","id":1.50,"method":"tools/call","params":{"name":"shop__order__slow",`+
		`"arguments":{}}}`, session...)
	last := ""
	for events := bufio.NewScanner(lost.Body); last == "" && events.Scan(); {
		if id, is := strings.CutPrefix(events.Text(), "id: "); is {
			last = id
		}
	}
	if last == "" {
		t.Fatal("no event has an id")
	}
	<-begun
	resume := func(last string) (int, string) {
		response := request("GET", "", append([]string{"Last-Event-ID", last}, session...)...)
		var all strings.Builder
		for events := bufio.NewScanner(response.Body); events.Scan() && !strings.Contains(all.String(), "data: {"); {
			all.WriteString(events.Text() + "\n")
		}
		return response.StatusCode, all.String()
	}
	check := func() {
		if status, text := resume(last); status != 200 || !strings.Contains(text, `"id":1.50,"result"`) ||
			!strings.Contains(text, "finished") {
			t.Errorf("after %q: %d, %s", last, status, text)
		}
	}
	resumed, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(resumed)
		check() // the server has not noticed the loss
	}()
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, lost.Body)
	}()
	select {
	case <-ended:
	case <-resumed: // and was refused
	}
	close(release)
	<-resumed
	check()
	if status, text := resume("unknown_0"); status != 400 {
		t.Errorf("an unknown stream: %d, %s", status, text)
	}
	first := request("GET", "", session...)
	for range 3 { // each time the server has not noticed that the client has lost the last one
		if again := request("GET", "", session...); again.StatusCode != http.StatusOK {
			t.Fatalf("the stream again: %d", again.StatusCode)
		}
	}
	if _, err := io.Copy(io.Discard, first.Body); err != nil {
		t.Errorf("the stream that was opened again: %v", err)
	}
}
