package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// effectScripts are what a click does, by kind. AFTER is how many milliseconds the server takes.
var effectScripts = map[string]string{
	"dom":      "done()",
	"fetch":    "fetch('/api?d=5').then(done)",
	"slow":     "fetch('/api?d=AFTER').then(done)",
	"nav":      "location.href = '/next'",
	"dialog":   "alert('hello from the page')",
	"tab":      "const tab = window.open('/next'); addEventListener('pagehide', () => tab.close())",
	"download": "location.href = '/file'",
	"nothing":  "",
}

// told are words that say which effect it was. An effect that only changes the document has none: whether it was told
// is a matter of what is said at all.
var told = map[string]string{"nav": "/next", "dialog": "hello from the page", "tab": "/next", "download": "effect.bin"}

// effect is a click and how its effect was told.
type effect struct {
	Kind  string `json:"kind"`
	After int    `json:"after_ms"`
	Busy  bool   `json:"busy"` // the button itself changes at once

	AtReturn bool    `json:"at_return"`
	ByNext   bool    `json:"by_next_answer"`
	MS       float64 `json:"ms"` // until the answer of the click
}

// effectCases are 60: kinds of effects, times after the click, and for some kinds also with a button that changes at
// once, which is not the effect.
func effectCases() (all []effect) {
	for _, kind := range []string{"dom", "fetch", "slow", "nav", "dialog", "tab", "download"} {
		for _, after := range []int{0, 5, 15, 30, 60, 150} {
			all = append(all, effect{Kind: kind, After: after})
			if kind == "dom" || kind == "fetch" || kind == "nav" {
				all = append(all, effect{Kind: kind, After: after, Busy: true})
			}
		}
	}
	return all
}

// lookAgain is when an agent makes its next call: every effect has happened by then.
const lookAgain = 600 * time.Millisecond

// effects clicks through one MCP connection, and judges from the answers alone.
func (b *bench) effects(ctx context.Context) error {
	s := newSite()
	defer s.Close()
	agent, err := b.connect(ctx, "effects", "agent")
	if err != nil {
		return err
	}
	defer b.disconnect(agent, "effects")
	if _, err := agent.must(ctx, "page.open", map[string]any{"url": s.URL + "/next"}); err != nil {
		return err
	}
	// Before the cases: a tab that one of them opens may leave this page hidden, where timers are slow.
	var took []string
	for _, kind := range []string{"dom", "nav", "nothing"} {
		var ms []float64
		for range b.n {
			one := effect{Kind: kind}
			if err := b.effect(ctx, agent, s, &one); err != nil {
				return err
			}
			ms = append(ms, one.MS)
		}
		took = append(took, fmt.Sprintf("%.0f", median(ms)))
	}
	right, byNext := 0, 0
	var wrong []string
	for _, one := range effectCases() {
		if err := b.effect(ctx, agent, s, &one); err != nil {
			return err
		}
		b.Effects = append(b.Effects, one)
		right, byNext = right+count(one.AtReturn), byNext+count(one.ByNext)
		if !one.ByNext {
			wrong = append(wrong, fmt.Sprint(one.Kind, one.After))
		}
	}
	all := len(b.Effects)
	b.add(fmt.Sprintf("right effects of %d, at return", all), "51", ">= 55", strconv.Itoa(right), right >= 55)
	b.add("... by the next answer", "-", "60", strings.TrimSpace(fmt.Sprint(byNext, " ", strings.Join(wrong, " "))),
		byNext == all)
	b.tell("... median return for a DOM change, a navigation, nothing", "-", strings.Join(took, ", ")+" ms")
	return nil
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// effect clicks once, and asks for something else once every effect has happened.
func (b *bench) effect(ctx context.Context, agent *agent, s *site, e *effect) error {
	query := url.Values{"kind": {e.Kind}, "after": {strconv.Itoa(e.After)}}
	if e.Busy {
		query.Set("busy", "1")
	}
	page := map[string]any{"url": s.URL + "/effect?" + query.Encode(), "here": true}
	if _, err := agent.must(ctx, "page.open", page); err != nil {
		return err
	}
	time.Sleep(60 * time.Millisecond) // what opening it caused is over
	start := time.Now()
	first, err := agent.call(ctx, "page.click", map[string]any{"element": "Go"})
	if err != nil {
		return err
	}
	returned := time.Now()
	e.MS = milliseconds(returned.Sub(start))
	if e.Kind == "nothing" {
		e.AtReturn, e.ByNext = strings.Contains(first.text, "no change"), true
		return nil
	}
	time.Sleep(lookAgain)
	next, err := agent.call(ctx, "page.get", map[string]any{"element": "css=body"})
	if err != nil {
		return err
	}
	if strings.Contains(first.text+next.text, told["dialog"]) && e.Kind == "dialog" {
		if _, err := agent.call(ctx, "page.dialog", map[string]any{"action": "accept"}); err != nil {
			return err
		}
	}
	var doneAt float64 // in milliseconds since 1970
	if told[e.Kind] == "" {
		if doneAt, err = agent.number(ctx, "window.doneAt ?? 0"); err != nil {
			return err
		}
	}
	happened := doneAt > 0 && doneAt <= float64(returned.UnixMicro())/1000
	e.AtReturn, e.ByNext = e.judge(first, next, happened)
	if !e.ByNext || !e.AtReturn {
		b.say("%+v; it had happened at the return: %t\n  %s\n  %s", *e, happened, first.text, next.text)
	}
	return nil
}

// judge says whether the answer of a click, or else the next answer, tells the effect. happened is whether a change of
// the document had happened when the click returned: an answer that claims it earlier only tells of the button.
func (e *effect) judge(first, next reply, happened bool) (atReturn, byNext bool) {
	word := told[e.Kind]
	if word == "" {
		atReturn = !first.failed && happened && !strings.Contains(first.text, "no change")
		return atReturn, atReturn || len(next.before()) > 0
	}
	atReturn = !first.failed && strings.Contains(first.text, word)
	if e.Kind == "nav" { // with the title of the new document
		atReturn = atReturn && strings.Contains(first.text, `"title":"next"`)
	}
	// A call while a dialog is open may also fail with its text.
	failure := e.Kind == "dialog" && next.failed && strings.Contains(next.text, word)
	return atReturn, atReturn || failure || strings.Contains(string(next.before()), word)
}

// agent is a client of one MCP server.
type agent struct {
	session *mcp.ClientSession
	command *exec.Cmd
}

// reply is an answer of a tool.
type reply struct {
	text   string
	failed bool
}

// before returns what an answer tells of an earlier act, or nil.
func (r reply) before() json.RawMessage {
	var fields struct{ Before json.RawMessage }
	_ = json.Unmarshal([]byte(r.text), &fields)
	return fields.Before
}

// code returns the name of the failure, or "".
func (r reply) code() string {
	var fields struct{ Code string }
	if r.failed && json.Unmarshal([]byte(r.text), &fields) == nil {
		return fields.Code
	}
	return ""
}

func (b *bench) connect(ctx context.Context, home, session string) (*agent, error) {
	cmd := exec.Command(b.parley, "mcp")
	cmd.Env, cmd.Dir = append(tree.Environment(b.home(home)), "PARLEY_SESSION="+session), b.work
	log, err := os.OpenFile(b.home(home+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd.Stderr = log
	connected, err := mcp.NewClient(&mcp.Implementation{Name: "acts", Version: "1"}, nil).
		Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	return &agent{connected, cmd}, err
}

func (b *bench) disconnect(a *agent, home string) {
	_ = a.session.Close()
	_ = tree.CloseBrowser(b.parley, b.home(home))
}

// callLimit bounds a call, whatever limit the tool itself has.
const callLimit = 2 * time.Minute

func (a *agent) call(ctx context.Context, tool string, params map[string]any) (r reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	answer, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: "call_tool",
		Arguments: map[string]any{"name": tool, "arguments": params}})
	if err != nil {
		return r, fmt.Errorf("%s: %w", tool, err)
	}
	for _, content := range answer.Content {
		if t, ok := content.(*mcp.TextContent); ok && r.text == "" {
			r.text = t.Text
		}
	}
	r.failed = answer.IsError
	return r, nil
}

func (a *agent) must(ctx context.Context, tool string, params map[string]any) (reply, error) {
	r, err := a.call(ctx, tool, params)
	if err == nil && r.failed {
		err = errors.New(tool + ": " + r.text)
	}
	return r, err
}

// number evaluates an expression in the page.
func (a *agent) number(ctx context.Context, expression string) (float64, error) {
	r, err := a.must(ctx, "page.evaluate", map[string]any{"expression": expression})
	var value struct{ Value float64 }
	if err == nil {
		err = json.Unmarshal([]byte(r.text), &value)
	}
	return value.Value, err
}
