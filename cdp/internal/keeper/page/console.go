package page

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
)

func init() {
	list("console", (*visit).console)
	manage("dialog", (*visit).answerDialog)
	list("downloads", (*visit).downloads)
}

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
	URL    string
	Line   int `json:"lineNumber"`
	Column int `json:"columnNumber"`
}

type stack struct {
	Frames []callFrame `json:"callFrames"`
}

// consoleParams are the parameters of an event of what a page logs, as far as messages show it, or of its document.
type consoleParams struct {
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

// logged is a value in a message of the console.
type logged struct {
	Value       any
	Description string
}

type exceptionText struct {
	Text      string
	Exception struct{ Description string }
}

// String returns the first line of an exception.
func (e exceptionText) String() string {
	text, _, _ := strings.Cut(e.Exception.Description, "\n")
	return cmp.Or(text, e.Text)
}

type logEntry struct{ Source, Level, Text, URL string }

// consoleText returns what was logged.
func consoleText(args []logged) string {
	var words []string
	for _, arg := range args {
		text, _, _ := strings.Cut(arg.Description, "\n")
		if arg.Value != nil {
			text = fmt.Sprint(arg.Value)
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
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

// console shows what the page has logged and thrown.
func (v *visit) console(p consoleFilter) (*messageList, *api.Error) {
	r, found := &messageList{}, []*message{}
	for _, e := range v.history([]string{"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded",
		"Network.responseReceived"}) {
		var params consoleParams
		_ = json.Unmarshal(e.Params, &params)
		if e.Method == "Network.responseReceived" && params.Type == "Document" && params.FrameID == v.page.ID && !p.All {
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

type dialogParams struct {
	Action string `json:"action"`
	Text   string `json:"text"`
}

// answered is a dialog, and what its answer caused.
type answered struct {
	Effects
	Dialog shownDialog `json:"dialog"`
}

// shownDialog is a JavaScript dialog.
type shownDialog struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// answerDialog shows the dialog that blocks the page, and answers it.
func (v *visit) answerDialog(p dialogParams) (*answered, *api.Error) {
	if err := v.findPage(); err != nil {
		return nil, err
	}
	open := v.dialog()
	if open == nil {
		return nil, exit("no_match", "no dialog is open", nil)
	}
	r := &answered{Dialog: shownDialog{open.Type, open.Message}}
	if p.Action == "" {
		return r, nil
	}
	v.ledger().acts++
	start := &begun{URL: v.url(), seq: v.lastSeq(), verb: "dialog " + p.Action}
	answer := object{"accept": p.Action == "accept"}
	if p.Text != "" {
		answer["promptText"] = p.Text
	}
	if err := v.cdp("Page.handleJavaScriptDialog", answer, nil); err != nil {
		return nil, err
	}
	var now ended
	if v.script("", &now, "end", object{"timeout": 50}) == nil && now.URL == start.URL {
		start.Document = now.Document
	}
	e, _, err := v.finish(start, nil)
	if err != nil {
		return nil, err
	}
	r.Effects = *e
	return r, nil
}

type downloadsParams struct {
	Wait int64 `json:"wait"` // milliseconds
}

// downloadsResult are the files that the session has downloaded, the newest last.
type downloadsResult struct {
	Downloads []download `json:"downloads"`
}

type download struct {
	Name  string `json:"name"`
	State string `json:"state"` // done, under way, cancelled
	Path  string `json:"path,omitempty"`
	URL   string `json:"url"`
	Bytes int64  `json:"bytes,omitempty"`
}

// downloads lists the downloads of the session.
func (v *visit) downloads(p downloadsParams) (*downloadsResult, *api.Error) {
	ctx, cancel := context.WithDeadline(v.ctx, time.Now().Add(time.Duration(p.Wait)*time.Millisecond))
	defer cancel()
	r := &downloadsResult{}
	_ = v.verbs.Events.AwaitRecords(ctx, func() (done bool) {
		r.Downloads, done = v.downloadList()
		return done
	})
	return r, nil
}

// downloadList returns the downloads of the session, and whether none is under way.
func (v *visit) downloadList() (list []download, done bool) {
	list, at := []download{}, map[string]int{}
	records, _ := v.verbs.Events.Records(v.by, v.page.Owner, 0, []string{"Browser.downloadWillBegin",
		"Browser.downloadProgress"})
	for _, e := range records {
		var d struct {
			GUID  string
			URL   string
			State string
			File  string  `json:"filePath"`
			Name  string  `json:"suggestedFilename"`
			Bytes float64 `json:"totalBytes"`
		}
		_ = json.Unmarshal(e.Params, &d)
		if e.Method == "Browser.downloadWillBegin" {
			at[d.GUID] = len(list)
			list = append(list, download{Name: d.Name, State: "under way", URL: clip(d.URL, 200)})
			continue
		}
		i, known := at[d.GUID]
		if !known {
			continue
		}
		list[i].Bytes = int64(d.Bytes)
		switch d.State {
		case "completed":
			list[i].State, list[i].Path = "done", d.File
		case "canceled":
			list[i].State = "cancelled"
		}
	}
	return list, !slices.ContainsFunc(list, func(d download) bool { return d.State == "under way" })
}
