package look

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

type waitParams struct {
	Text       string `json:"text"`
	Element    string `json:"element"`
	URL        string `json:"address"`
	Request    string `json:"request"`
	Expression string `json:"expression"`
	Idle       bool   `json:"idle"`
	Gone       bool   `json:"gone"`
	Timeout    int64  `json:"timeout"`
}

// waited is the result of wait: how long it took, and the line with the text, if it has more than the text.
type waited struct {
	MS   int64  `json:"ms"`
	Line string `json:"line,omitempty"`
}

// Step implements [page.Step].
func (w waited) Step() (string, any) {
	if w.Line == "" {
		return "", nil
	}
	return "", page.Object{"line": w.Line}
}

// seen is what met a condition, or else what the page has instead.
type seen struct {
	Found      bool
	URL, Title string
	Near       []string
	Line       string
	Failure    *page.Failure
}

// wait waits for a condition.
func wait(v *page.Visit, p waitParams) (waited, *api.Error) {
	began := time.Now()
	w := waiting{v, began.Add(v.Within(time.Duration(p.Timeout) * time.Millisecond))}
	defer page.StayUntil(v, w.end)()
	var what string
	var last seen
	var err *api.Error
	condition := page.Object{"gone": p.Gone}
	switch {
	case p.Text != "":
		condition["text"], what = p.Text, fmt.Sprintf("the text %q", p.Text)
	case p.Element != "":
		condition["locator"], what = v.Locate(p.Element), fmt.Sprintf("the element %q", p.Element)
	case p.URL != "":
		condition["url"], what = p.URL, fmt.Sprintf("an address with %q", p.URL)
	case p.Request != "":
		what = fmt.Sprintf("a response from %q", p.Request)
		last.Found = w.response(p.Request)
	case p.Expression != "":
		what = "the expression"
		last.Found, err = w.isTrue(p.Expression)
	case p.Idle:
		what = "an idle page"
		last.Found, err = w.idle()
	default:
		return waited{}, page.Invalid("/text", "a condition: text, element, url, request, expression or idle", "none", "")
	}
	if len(condition) > 1 {
		last, err = w.until(condition)
	}
	if url := page.Leaving(v); err != nil && err.Code == api.CodeTimeout && url != "" {
		err, what = nil, what+" while the server of a navigation did not respond: "+page.Clip(url, 160)
	}
	if err != nil {
		return waited{}, err
	}
	if !last.Found {
		if p.Gone {
			what += " to go"
		}
		return waited{}, page.Exit("not_met", fmt.Sprintf("waited %d ms for %s%s", time.Since(began).Milliseconds(), what,
			last.instead()), nil)
	}
	return waited{time.Since(began).Milliseconds(), last.Line}, nil
}

// instead describes what the page shows instead of what was asked for.
func (s seen) instead() string {
	if s.URL == "" {
		return ""
	}
	text := fmt.Sprintf("; the page is %s at %s", page.Quote(s.Title), page.Quote(page.Clip(s.URL, 200)))
	for _, line := range s.Near {
		text += ", it shows " + page.Quote(line)
	}
	return text
}

// waiting waits for something in the page of a call, until its time is up.
type waiting struct {
	v   *page.Visit
	end time.Time
}

// until waits in the page for a condition, through changes of the document. Elements and texts may be in a frame.
func (w waiting) until(condition page.Object) (last seen, err *api.Error) {
	for most := int64(300); ; most = 2000 {
		condition["timeout"] = max(min(time.Until(w.end).Milliseconds(), most), 0)
		condition["time"] = w.v.TimeLeft()
		var now seen
		if err = w.v.Script("", &now, "until", condition); err != nil && !w.v.CanRetry("", err) {
			return last, err
		}
		if err == nil {
			last = now
		}
		if last.Failure != nil {
			return last, last.Failure.Exit(fmt.Sprint(condition["locator"].(page.Locator)["css"]))
		}
		if last.Found {
			return last, nil
		}
		if condition["url"] == nil && condition["gone"] != true {
			condition["timeout"] = 0
			for _, f := range w.v.Frames() {
				if w.v.Briefly(f.ID, &now, "until", condition) == nil && now.Found {
					return now, nil
				}
			}
		}
		if time.Now().After(w.end) {
			return last, nil
		}
	}
}

// response waits for a response from an address to the page or one of its frames. A response that has arrived since
// the session began counts.
func (w waiting) response(part string) bool {
	ctx, cancel := context.WithDeadline(w.v.Ctx, w.end)
	defer cancel()
	return w.v.Keeper.Events.AwaitRecords(ctx, func() bool {
		for _, r := range page.History(w.v, "Network.responseReceived") {
			if strings.Contains(r.URL, part) {
				return true
			}
		}
		return false
	}) == nil
}

// pollTime is the pause between two checks of a state that no event reports.
const pollTime = 50 * time.Millisecond

// poll calls try repeatedly until it is done, fails, or the time is up.
func (w waiting) poll(try func() (done bool, err *api.Error)) (bool, *api.Error) {
	for {
		begun := time.Now()
		done, err := try()
		again := time.Now().Add(time.Since(begun)) // when another check would end
		if err != nil || done || again.After(w.end) || !w.v.Pause(pollTime) {
			return err == nil && done, err
		}
	}
}

// isTrue waits until an expression is true. Chrome stops an expression that would change something.
func (w waiting) isTrue(expression string) (bool, *api.Error) {
	return w.poll(func() (bool, *api.Error) {
		value, err := w.v.EvaluateIn("", page.Object{"expression": "!!(" + expression + "\n)", "returnByValue": true,
			"throwOnSideEffect": true})
		switch {
		case err != nil && err.Exit == "script_error" && strings.Contains(err.Message, "side-effect"):
			return false, page.Exit("script_error", "the expression changes something; page.evaluate runs it", nil)
		case err != nil && err.Exit == "script_error" && !time.Now().After(w.end):
			return false, nil
		case err != nil && w.v.CanRetry("", err):
			return false, nil
		}
		return err == nil && string(value.Value) == "true", err
	})
}

// idleTime is how long, in milliseconds, a page must be without changes and requests to count as idle.
const idleTime = 200

// idle waits until the document is quiet and has no request under way.
func (w waiting) idle() (bool, *api.Error) {
	a := page.NewActivity(w.v.Page.ID, 0, map[string]string{})
	return w.poll(func() (bool, *api.Error) {
		var now struct{ Settled bool }
		left := max(min(time.Until(w.end).Milliseconds(), 2000), 1)
		err := w.v.Script("", &now, "settle", page.Object{"quiet": idleTime, "timeout": left})
		if err != nil && w.v.CanRetry("", err) {
			return false, nil
		}
		a.Read(w.v)
		return now.Settled && len(a.Pending) == 0, err
	})
}

type expectParams struct {
	Text    string  `json:"text"`
	Element string  `json:"element"`
	State   string  `json:"state"`
	Value   *string `json:"value"`
	Count   *int    `json:"count"`
	URL     string  `json:"address"`
	Timeout int64   `json:"timeout"`
}

// expected is the result for a page that is as expected.
type expected struct {
	Met bool `json:"met"`
}

// Step implements [page.Step].
func (expected) Step() (string, any) { return "", nil }

// expect checks the page.
func expect(v *page.Visit, p expectParams) (expected, *api.Error) {
	w := waiting{v, time.Now().Add(v.Within(time.Duration(p.Timeout) * time.Millisecond))}
	defer page.StayUntil(v, w.end)()
	if p.Text == "" && p.Element == "" && p.URL == "" {
		return expected{}, page.Invalid("/text", "a condition: text, element or url", "none", "")
	}
	fail := func(format string, args ...any) (expected, *api.Error) {
		return expected{}, page.Exit("not_met", fmt.Sprintf(format, args...), nil)
	}
	where := ""
	if v.In != "" {
		where = fmt.Sprintf(" in %q", v.In)
	}
	for _, c := range []struct{ kind, value, name string }{
		{"url", p.URL, "an address with"}, {"text", p.Text, "the text"},
	} {
		if c.value == "" {
			continue
		}
		s, err := w.until(page.Object{c.kind: c.value, "within": v.Locate("")})
		if err != nil {
			return expected{}, err
		}
		if !s.Found {
			return fail("expected %s %q%s%s", c.name, c.value, where, s.instead())
		}
	}
	if p.Element == "" {
		return expected{true}, nil
	}
	problem := ""
	met, err := w.poll(func() (_ bool, err *api.Error) {
		problem, err = differs(v, p)
		if err != nil && err.Code == api.CodeExit {
			problem, err = err.Message, nil
		}
		return problem == "", err
	})
	if err == nil && !met {
		return fail("%q: %s", p.Element, problem)
	}
	return expected{met}, err
}

// differs returns how an element differs from what is expected, "" if it does not.
func differs(v *page.Visit, p expectParams) (string, *api.Error) {
	get := func(what string) (json.RawMessage, *api.Error) {
		r, err := get(v, getParams{Element: p.Element, What: what})
		return r.Value, err
	}
	if p.Count != nil {
		n, err := get("count")
		if err != nil || string(n) == strconv.Itoa(*p.Count) {
			return "", err
		}
		return fmt.Sprintf("expected %d elements, %s match", *p.Count, n), nil
	}
	visible, err := get("visible")
	var missing *api.Error
	if err != nil && (err.Exit == "no_match" || err.Exit == "stale") {
		missing, err = err, nil
	}
	if err != nil {
		return "", err
	}
	shown := string(visible) == "true"
	switch {
	case p.State == "hidden":
		if shown {
			return "expected hidden, it is visible", nil
		}
		return "", nil
	case missing != nil:
		return missing.Message, nil
	case !shown:
		return "it is not visible", nil
	}
	if p.Value != nil {
		raw, err := get("value")
		var now string
		if err == nil && (json.Unmarshal(raw, &now) != nil || now != *p.Value) {
			return fmt.Sprintf("expected the value %s, it has %s", page.Quote(*p.Value), page.Quote(now)), nil
		}
		if err != nil {
			return "", err
		}
	}
	if p.State == "" || p.State == "visible" {
		return "", nil
	}
	raw, err := get("state")
	words := " " + strings.Trim(string(raw), `"`) + " "
	has := func(word string) bool { return strings.Contains(words, " "+word+" ") }
	if err != nil || map[string]bool{"enabled": !has("disabled"), "disabled": has("disabled"), "checked": has("checked"),
		"unchecked": !has("checked")}[p.State] {
		return "", err
	}
	return fmt.Sprintf("expected %s, it is [%s]", p.State, strings.TrimSpace(words)), nil
}
