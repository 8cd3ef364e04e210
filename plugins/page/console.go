package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// ConsoleParams say which messages to show.
type ConsoleParams struct {
	// Show only messages of this level or worse.
	Level string `json:"level,omitempty" enum:"error,warning,info,debug" default:"debug" aliases:"severity,type"`
	// Show only messages that contain this.
	Contains string `json:"contains,omitempty" aliases:"text,filter"`
	// Include messages of earlier documents.
	All bool `json:"all,omitempty" aliases:"include_preserved_messages"`
	// How many lines to show at most.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000" default:"30" aliases:"page_size"`
}

// ConsoleResult are messages.
type ConsoleResult struct {
	// Number of messages, with repeated ones.
	Total int `json:"total"`
	// Number of errors among them.
	Errors int `json:"errors,omitempty"`
	// Messages with level, count and position; the newest is last.
	Text string `json:"text,omitempty" untrusted:"true"`
}

// message is a line of the console.
type message struct {
	level, text, position string
	count                 int
}

// callFrame is where something was logged or thrown, counted from 0.
type callFrame struct {
	URL    string
	Line   int `json:"lineNumber"`
	Column int `json:"columnNumber"`
}

type stack struct {
	Frames []callFrame `json:"callFrames"`
}

// consoleEvent is a record of what a page logs, as far as messages show it, or of its document.
type consoleEvent struct {
	event
	Params struct {
		eventParams
		Stack            stack `json:"stackTrace"`
		ExceptionDetails struct {
			callFrame
			exceptionText
			Stack stack `json:"stackTrace"`
		}
		Entry struct {
			logEntry
			Line int `json:"lineNumber"`
		}
	}
}

// levels are the levels of messages, the worst first.
var levels = []string{"error", "warning", "info", "debug"}

// message returns what an event says, nil if that is a request's failure, which requests shows.
func (e *consoleEvent) message() *message {
	m := &message{level: "info", count: 1}
	p := &e.Params
	var at callFrame
	switch e.Method {
	case "Runtime.exceptionThrown":
		m.level, m.text, at = "error", p.ExceptionDetails.String(), p.ExceptionDetails.callFrame
		if frames := p.ExceptionDetails.Stack.Frames; len(frames) > 0 {
			at = frames[0]
		}
	case "Runtime.consoleAPICalled":
		m.text = consoleText(p.Args)
		switch p.Type {
		case "error", "assert":
			m.level = "error"
		case "warning", "debug":
			m.level = p.Type
		}
		if len(p.Stack.Frames) > 0 {
			at = p.Stack.Frames[0]
		}
	case "Log.entryAdded":
		if p.Entry.Source == "network" && p.Entry.Level == "error" {
			return nil
		}
		m.text, at = p.Entry.Text, callFrame{URL: p.Entry.URL, Line: p.Entry.Line}
		if m.level = p.Entry.Level; m.level == "verbose" {
			m.level = "debug"
		}
	default:
		return nil
	}
	if m.text = clip(m.text, 400); at.URL != "" {
		m.position = fmt.Sprintf("%s:%d:%d", shortURL(at.URL), at.Line+1, at.Column+1)
	}
	return m
}

// shortURL returns the path of a URL, which is what tells the scripts of a page apart.
func shortURL(full string) string {
	u, err := url.Parse(full)
	if err != nil || u.Host == "" {
		return clip(full, 60)
	}
	return clip(u.Path, 80)
}

func (m *message) line() string {
	text := m.level
	if m.count > 1 {
		text += fmt.Sprintf(" x%d", m.count)
	}
	if text += " " + strings.Join(strings.Fields(m.text), " "); m.position != "" {
		text += " (" + m.position + ")"
	}
	return text
}

// Console shows what the page has logged and thrown.
func Console(c *sdk.Call, p ConsoleParams) (*ConsoleResult, error) {
	b := &browser{Call: c}
	events, err := history(b, []string{"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded",
		"Network.responseReceived"}, func(e *consoleEvent) string { return e.Target })
	if err != nil {
		return nil, err
	}
	r, found := &ConsoleResult{}, []*message{}
	for i := range events {
		e := &events[i]
		if e.Method == "Network.responseReceived" && e.Params.Type == "Document" && e.Params.FrameID == b.target && !p.All {
			r, found = &ConsoleResult{}, nil
			continue
		}
		m := e.message()
		if m == nil || slices.Index(levels, m.level) > slices.Index(levels, p.Level) ||
			!strings.Contains(m.text, p.Contains) {
			continue
		}
		if r.Total++; m.level == "error" {
			r.Errors++
		}
		if at := slices.IndexFunc(found, func(o *message) bool {
			return o.level == m.level && o.text == m.text && o.position == m.position
		}); at >= 0 {
			m.count += found[at].count
			found = slices.Delete(found, at, at+1)
		}
		found = append(found, m)
	}
	var lines []string
	for _, m := range found[max(0, len(found)-p.Limit):] {
		lines = append(lines, m.line())
	}
	r.Text = strings.Join(lines, "\n")
	return r, nil
}

// DialogParams say what to do with a dialog.
type DialogParams struct {
	// How to answer; without it the dialog is only shown.
	Action string `json:"action,omitempty" enum:"accept,dismiss" aliases:"answer"`
	// Text to enter into a prompt.
	Text string `json:"text,omitempty" maxLength:"10000" aliases:"prompt,prompt_text,value"`
}

// DialogResult is a dialog, and what its answer caused.
type DialogResult struct {
	Effects
	// The dialog that was open.
	Dialog Dialog `json:"dialog"`
}

// AnswerDialog shows the dialog that blocks the page, and answers it.
func AnswerDialog(c *sdk.Call, p DialogParams) (*DialogResult, error) {
	b := &browser{Call: c, writes: true}
	targets, err := b.locate()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(targets, func(t target) bool { return t.ID == b.target })
	if at < 0 || targets[at].Dialog == nil {
		return nil, sdk.Exit("no_match", "no dialog is open", nil)
	}
	r := &DialogResult{Dialog: *targets[at].Dialog}
	if p.Action == "" {
		return r, nil
	}
	var list struct {
		LastSeq int64 `json:"last_seq"`
	}
	if err := b.cdpAll("events", map[string]any{"limit": 1}, &list); err != nil {
		return nil, err
	}
	answer := map[string]any{"accept": p.Action == "accept"}
	if p.Text != "" {
		answer["promptText"] = p.Text
	}
	if err := b.cdp("Page.handleJavaScriptDialog", answer, nil); err != nil {
		return nil, err
	}
	start := &begun{URL: targets[at].URL, seq: list.LastSeq}
	var now ended
	if _, err := b.script("", &now, "end", map[string]any{"timeout": 50}); err == nil && now.URL == start.URL {
		start.Document = now.Document
	}
	e, _, err := b.finish(start, nil)
	if err != nil {
		return nil, err
	}
	r.Effects = *e
	return r, nil
}

// DownloadsParams have nothing to say.
type DownloadsParams struct {
	// How long to wait for unfinished downloads, in milliseconds.
	Wait int64 `json:"wait,omitempty" minimum:"0" maximum:"600000" aliases:"timeout,wait_ms"`
}

// DownloadsResult are the files that the page has downloaded.
type DownloadsResult struct {
	// The downloaded files; the newest is last.
	Downloads []Download `json:"downloads"`
}

// Download is a file.
type Download struct {
	// As the page named it.
	Name string `json:"name"`
	// Done, under way, cancelled.
	State string `json:"state"`
	// Where it is.
	Path string `json:"path,omitempty"`
	// Its address.
	URL string `json:"url"`
	// Size.
	Bytes int64 `json:"bytes,omitempty"`
}

// Downloads lists the downloads of the session.
func Downloads(c *sdk.Call, p DownloadsParams) (*DownloadsResult, error) {
	b := &browser{Call: c}
	var r *DownloadsResult
	w := waiting{b, time.Now().Add(time.Duration(p.Wait) * time.Millisecond)}
	_, err := w.poll(func() (done bool, err error) {
		r, done, err = b.downloads()
		return done, err
	})
	return r, err
}

// downloads returns the downloads of the session, and whether none is under way.
func (b *browser) downloads() (r *DownloadsResult, done bool, err error) {
	var list struct {
		Events []struct {
			Method, URL string
			Params      struct {
				GUID  string
				URL   string
				State string
				File  string  `json:"filePath"`
				Name  string  `json:"suggestedFilename"`
				Bytes float64 `json:"totalBytes"`
			}
		}
	}
	if err := b.cdpAll("events", map[string]any{"match": []string{"Browser.downloadWillBegin",
		"Browser.downloadProgress"}, "limit": 1000}, &list); err != nil {
		return nil, false, err
	}
	slices.Reverse(list.Events)
	r = &DownloadsResult{Downloads: []Download{}}
	at := map[string]int{}
	for _, e := range list.Events {
		d := &e.Params
		if e.Method == "Browser.downloadWillBegin" {
			at[d.GUID] = len(r.Downloads)
			r.Downloads = append(r.Downloads, Download{Name: d.Name, State: "under way", URL: clip(d.URL, 200)})
			continue
		}
		i, known := at[d.GUID]
		if !known {
			continue
		}
		r.Downloads[i].Bytes = int64(d.Bytes)
		switch d.State {
		case "completed":
			r.Downloads[i].State, r.Downloads[i].Path = "done", d.File
		case "canceled":
			r.Downloads[i].State = "cancelled"
		}
	}
	return r, !slices.ContainsFunc(r.Downloads, func(d Download) bool { return d.State == "under way" }), nil
}
