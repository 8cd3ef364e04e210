// Package muxtest has a browser for tests: a connection whose other end is the test.
package muxtest

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/parley-tools/parley/cdp/internal/browser"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// Browser is a connection to the test. It replies by itself to what the keeper sends to each new target, so that a test
// sees only its own commands.
type Browser struct {
	Sent      chan Command
	Automatic []Command // commands that it has answered by itself
	Messages  chan string
	Closed    chan struct{}
	OnSend    func() // is called before each message to the browser is read; may be nil
}

// Command is a command that the browser has received.
type Command struct {
	ID      int64           `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Session string          `json:"sessionId"`
}

// New returns a browser without targets.
func New() *Browser {
	return &Browser{Sent: make(chan Command, 100), Messages: make(chan string, 100), Closed: make(chan struct{})}
}

// Send implements [browser.Conn].
func (f *Browser) Send(message []byte) error {
	if f.OnSend != nil {
		f.OnSend()
	}
	var q Command
	if err := json.Unmarshal(message, &q); err != nil {
		return err
	}
	if slices.Contains([]string{"Target.setAutoAttach", "Page.enable", "Page.getFrameTree",
		"Page.setInterceptFileChooserDialog", "Network.enable", "Runtime.enable", "Log.enable"}, q.Method) {
		f.Automatic = append(f.Automatic, q)
		f.Answer(q, `{}`)
	} else {
		f.Sent <- q
	}
	return nil
}

// Receive implements [browser.Conn].
func (f *Browser) Receive() (browser.Message, error) {
	select {
	case m := <-f.Messages:
		return browser.Message{Data: []byte(m), Size: int64(len(m))}, nil
	case <-f.Closed:
		return browser.Message{}, browser.ErrClosed
	}
}

// SetSpill implements [browser.Conn].
func (f *Browser) SetSpill(func([]byte) io.Writer) {}

// Close implements [browser.Conn].
func (f *Browser) Close() error {
	close(f.Closed)
	return nil
}

// Answer replies to a command.
func (f *Browser) Answer(q Command, result string) {
	f.Messages <- fmt.Sprintf(`{"id":%d,"sessionId":"S","result":%s}`, q.ID, result)
}

// Event sends an event of the page T, or says that this page is attached.
func (f *Browser) Event(name string) {
	switch name {
	case "attached":
		f.AttachTwice("", "S", Info{ID: "T", Type: "page", URL: "http://a/", Title: "A"})
	case "Target.targetCrashed":
		f.Report("", name, map[string]any{"targetId": "T", "status": "crashed", "errorCode": 11})
	default:
		f.Report("S", name, map[string]any{})
	}
}

// Info describes a target.
type Info struct {
	ID      string `json:"targetId"`
	Type    string `json:"type"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Opener  string `json:"openerId,omitempty"`
	Parent  string `json:"parentId,omitempty"`
	Context string `json:"browserContextId,omitempty"`
}

// Attach reports a target in a session of its own. via is the session that reports it, "" for the browser's.
func (f *Browser) Attach(via string, info Info) { f.AttachTwice(via, "session of "+info.ID, info) }

// AttachTwice is Attach with the name of the session, for a second one with the same target.
func (f *Browser) AttachTwice(via, session string, info Info) {
	f.Report(via, "Target.attachedToTarget", map[string]any{"sessionId": session, "targetInfo": info})
}

// Show reports that a target shows another URL.
func (f *Browser) Show(info Info, url string) {
	info.URL = url
	f.Report("", "Target.targetInfoChanged", map[string]any{"targetInfo": info})
}

// Report sends an event of a session, "" for the browser's.
func (f *Browser) Report(session, method string, params any) {
	f.Messages <- string(scan.Marshal(map[string]any{"method": method, "sessionId": session, "params": params}))
}
