package environment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/internal/lazy"
)

type consoleFilter struct {
	Level    string `json:"level"`
	Contains string `json:"contains"`
	All      bool   `json:"all"`
	Async    *bool  `json:"async_stacks"`
	Limit    int    `json:"limit"`
}

// messageList is the result of console.
type messageList struct {
	Total  int    `json:"total"` // including repeated ones
	Errors int    `json:"errors,omitempty"`
	Text   string `json:"text,omitempty"` // one line per message, the newest last
	// LeftOut says how many failed loads are not shown, and which positions refer to the script as it was served.
	LeftOut string `json:"left_out,omitempty"`
}

// message is a line of the console.
type message struct {
	level, text string
	at          stack
	depth       int // of nested groups
	count       int
}

// callFrame is where something was logged or thrown. Line and Column start at 0.
type callFrame struct {
	Function string `json:"functionName"`
	URL      string `json:"url"`
	Line     int    `json:"lineNumber"`
	Column   int    `json:"columnNumber"`
}

func (f callFrame) String() string { return strings.TrimSpace(f.Function + " " + f.position()) }

func (f callFrame) position() string {
	return fmt.Sprintf("%s:%d:%d", shortURL(f.URL), f.Line+1, f.Column+1)
}

// stack is a stack of calls. Parent is the stack of the code that scheduled it, named by Parent's description.
type stack struct {
	Description string      `json:"description"`
	Frames      []callFrame `json:"callFrames"`
	Parent      *stack      `json:"parent"`
}

// maxFrames bounds the calls that a message shows.
const maxFrames = 6

// String returns the innermost calls, the innermost first.
func (s stack) String() string {
	var calls []string
	for at := &s; at != nil; at = at.Parent {
		for i, f := range at.Frames {
			call := f.String()
			if i == 0 && at != &s {
				call = "async " + cmp.Or(at.Description, "call") + " " + call
			}
			calls = append(calls, call)
		}
	}
	if len(calls) > maxFrames {
		calls = append(calls[:maxFrames], "…")
	}
	return strings.Join(calls, " < ")
}

// consoleParams are the parameters of an event about what a page logs, or about its document, as far as messages show
// them.
type consoleParams struct {
	page.EventParams
	Stack            stack `json:"stackTrace"`
	ExceptionDetails struct {
		callFrame
		page.ExceptionText
		Stack stack `json:"stackTrace"`
	} `json:"exceptionDetails"`
	Entry logEntry `json:"entry"`
}

type logEntry struct {
	page.LogEntry
	Line  int   `json:"lineNumber"`
	Stack stack `json:"stackTrace"`
}

// isLoad reports whether an entry says that a load has failed. The verb requests shows those.
func (e logEntry) isLoad() bool { return e.Source == "network" && e.Level == "error" }

// levels are the levels of messages, the worst first.
var levels = []string{"error", "warning", "info", "debug"}

// message returns the message of an event, or nil for a request's failure, which the verb requests shows.
func (p *consoleParams) message(method string) *message {
	m := &message{level: "info", count: 1}
	var at stack
	switch method {
	case "Runtime.exceptionThrown":
		m.level, m.text, at = "error", p.ExceptionDetails.ExceptionText.String(), p.ExceptionDetails.Stack
		if len(at.Frames) == 0 {
			at.Frames = []callFrame{p.ExceptionDetails.callFrame}
		}
		if at.Parent == nil {
			at.Frames = append(at.Frames, awaiting(p.ExceptionDetails.Exception.Description)...)
		}
	case "Runtime.consoleAPICalled":
		m.text, at = p.Logged(), p.Stack
		switch p.Type {
		case "error":
			m.level = "error"
		case "assert":
			m.level, m.text = "error", strings.TrimSuffix("Assertion failed: "+m.text, ": console.assert")
		case "warning", "debug":
			m.level = p.Type
		}
		if m.level != "error" && p.Type != "trace" { // add where it was logged
			at = stack{Frames: at.Frames[:min(len(at.Frames), 1)]}
			for i := range at.Frames {
				at.Frames[i].Function = ""
			}
		}
	case "Log.entryAdded":
		if p.Entry.isLoad() {
			return nil
		}
		if m.text, at = p.Entry.Text, p.Entry.Stack; len(at.Frames) == 0 {
			at.Frames = []callFrame{{URL: p.Entry.URL, Line: p.Entry.Line}}
		}
		if m.level = p.Entry.Level; m.level == "verbose" {
			m.level = "debug"
		}
	default:
		return nil
	}
	if m.text = page.Clip(m.text, 400); len(at.Frames) > 0 && at.Frames[0].URL != "" {
		m.at = at
	}
	return m
}

// awaitingCall matches a function that awaits the one that threw, as the stack of an error has it.
var awaitingCall = lazy.Pattern(`(?m)^ +at (async(?: .+?)?) \(?(\S+?):(\d+):(\d+)\)?$`)

// awaiting returns the functions that await the one that threw an error. Its stack has them at no cost to the page.
func awaiting(stack string) (calls []callFrame) {
	for _, m := range awaitingCall().FindAllStringSubmatch(stack, maxFrames) {
		line, _ := strconv.Atoi(m[3])
		column, _ := strconv.Atoi(m[4])
		calls = append(calls, callFrame{m[1], m[2], line - 1, column - 1})
	}
	return calls
}

// shortURL returns the path of a URL, which distinguishes the scripts of a page.
func shortURL(full string) string {
	u, err := url.Parse(full)
	if err != nil || u.Host == "" {
		return page.Clip(full, 60)
	}
	return page.Clip(u.Path, 80)
}

func (m *message) line() string {
	text := strings.Repeat("  ", m.depth) + m.level
	if m.count > 1 {
		text += fmt.Sprintf(" x%d", m.count)
	}
	if text += " " + strings.Join(strings.Fields(m.text), " "); len(m.at.Frames) > 0 {
		text += " (" + m.at.String() + ")"
	}
	return text
}

// console shows what the page has logged and thrown.
func console(v *page.Visit, p consoleFilter) (*messageList, *api.Error) {
	if p.Async != nil { // not by default: an await takes 200 times as long
		depth := map[bool]int{true: maxFrames}[*p.Async]
		if err := v.Command("Runtime.setAsyncCallStackDepth", page.Object{"maxDepth": depth}, nil); err != nil {
			return nil, err
		}
	}
	r, found, depth, loads := &messageList{}, []*message{}, 0, 0
	records, logs := page.History(v, "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded",
		"Network.responseReceived"), map[string]bool{} // logs are the targets whose own messages are known
	for _, e := range records {
		logs[e.Target] = logs[e.Target] || strings.HasPrefix(e.Method, "Runtime.")
	}
	for _, e := range records {
		var params consoleParams
		_ = json.Unmarshal(e.Params, &params)
		if e.Method == "Network.responseReceived" && params.Type == "Document" && params.FrameID == v.Page.ID && !p.All {
			r, found, depth, loads = &messageList{}, nil, 0, 0
			continue
		}
		if params.Type == "endGroup" {
			depth = max(depth-1, 0)
			continue
		}
		if logs[params.Entry.WorkerID] {
			continue
		}
		if entry := params.Entry; entry.isLoad() && !strings.HasSuffix(entry.URL, page.OwnIcon) {
			loads++
		}
		m := params.message(e.Method)
		if m != nil {
			m.depth = min(depth, 10)
		}
		if strings.HasPrefix(params.Type, "startGroup") {
			depth++
		}
		if m == nil || slices.Index(levels, m.level) > slices.Index(levels, cmp.Or(p.Level, "debug")) ||
			!strings.Contains(m.text, p.Contains) {
			continue
		}
		if r.Total++; m.level == "error" {
			r.Errors++
		}
		if at := slices.IndexFunc(found, func(o *message) bool {
			return o.level == m.level && o.text == m.text && o.at.String() == m.at.String() && o.depth == m.depth
		}); at >= 0 {
			m.count += found[at].count
			found = slices.Delete(found, at, at+1)
		}
		found = append(found, m)
	}
	var lines []string
	found = found[max(0, len(found)-p.Limit):]
	if r.LeftOut = findSources(v, found); loads > 0 {
		r.LeftOut = strings.TrimPrefix(fmt.Sprintf("%s; %d failed loads (page.requests failed true)", r.LeftOut, loads), "; ")
	}
	for _, m := range found {
		lines = append(lines, m.line())
	}
	r.Text = strings.Join(lines, "\n")
	return r, nil
}
