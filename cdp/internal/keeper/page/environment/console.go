package environment

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

type consoleFilter struct {
	Level    string `json:"level"`
	Contains string `json:"contains"`
	All      bool   `json:"all"`
	Limit    int    `json:"limit"`
}

// messageList is the result of console.
type messageList struct {
	Total  int    `json:"total"` // with repeated ones
	Errors int    `json:"errors,omitempty"`
	Text   string `json:"text,omitempty"` // the newest is last
}

// message is a line of the console.
type message struct {
	level, text, position string
	count                 int
}

// callFrame is where something was logged or thrown, counted from 0.
type callFrame struct {
	URL    string `json:"url"`
	Line   int    `json:"lineNumber"`
	Column int    `json:"columnNumber"`
}

type stack struct {
	Frames []callFrame `json:"callFrames"`
}

// consoleParams are the parameters of an event of what a page logs, as far as messages show it, or of its document.
type consoleParams struct {
	page.EventParams
	Stack            stack `json:"stackTrace"`
	ExceptionDetails struct {
		callFrame
		page.ExceptionText
		Stack stack `json:"stackTrace"`
	} `json:"exceptionDetails"`
	Entry struct {
		page.LogEntry
		Line int `json:"lineNumber"`
	} `json:"entry"`
}

// levels are the levels of messages, the worst first.
var levels = []string{"error", "warning", "info", "debug"}

// message returns what an event says, nil if that is a request's failure, which requests shows.
func (p *consoleParams) message(method string) *message {
	m := &message{level: "info", count: 1}
	var at callFrame
	switch method {
	case "Runtime.exceptionThrown":
		m.level, m.text, at = "error", p.ExceptionDetails.String(), p.ExceptionDetails.callFrame
		if frames := p.ExceptionDetails.Stack.Frames; len(frames) > 0 {
			at = frames[0]
		}
	case "Runtime.consoleAPICalled":
		m.text = p.Logged()
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
	if m.text = page.Clip(m.text, 400); at.URL != "" {
		m.position = fmt.Sprintf("%s:%d:%d", shortURL(at.URL), at.Line+1, at.Column+1)
	}
	return m
}

// shortURL returns the path of a URL, which is what tells the scripts of a page apart.
func shortURL(full string) string {
	u, err := url.Parse(full)
	if err != nil || u.Host == "" {
		return page.Clip(full, 60)
	}
	return page.Clip(u.Path, 80)
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

// console shows what the page has logged and thrown.
func console(v *page.Visit, p consoleFilter) (*messageList, *api.Error) {
	r, found := &messageList{}, []*message{}
	for _, e := range history(v, []string{"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded",
		"Network.responseReceived"}) {
		var params consoleParams
		_ = json.Unmarshal(e.Params, &params)
		if e.Method == "Network.responseReceived" && params.Type == "Document" && params.FrameID == v.Page.ID && !p.All {
			r, found = &messageList{}, nil
			continue
		}
		m := params.message(e.Method)
		if m == nil || slices.Index(levels, m.level) > slices.Index(levels, cmp.Or(p.Level, "debug")) ||
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

type downloadsParams struct {
	Wait int64 `json:"wait"` // milliseconds
}

// downloadsResult are the files that the session has downloaded, the newest last.
type downloadsResult struct {
	Downloads []page.Download `json:"downloads"`
}

// downloads lists the downloads of the session.
func downloads(v *page.Visit, p downloadsParams) (*downloadsResult, *api.Error) {
	ctx, cancel := context.WithDeadline(v.Ctx, time.Now().Add(time.Duration(p.Wait)*time.Millisecond))
	defer cancel()
	r := &downloadsResult{}
	_ = v.Keeper.Events.AwaitRecords(ctx, func() (done bool) {
		r.Downloads, done = v.DownloadList()
		return done
	})
	return r, nil
}
