package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// WaitParams say what to wait for. Exactly one condition is given.
type WaitParams struct {
	// Text to wait for, instead of the others.
	Text string `json:"text,omitempty" aliases:"for"`
	// Element to wait for instead: ref, name or css=SELECTOR.
	Element string `json:"element,omitempty" aliases:"ref,uid,selector,sel,target,locator"`
	// Part of an address to wait for instead, such as /done.
	URL string `json:"address,omitempty" pattern:"^[^*]*$" aliases:"url"`
	// Part of the URL of a response to wait for instead.
	Request string `json:"request,omitempty" aliases:"response"`
	// JavaScript to wait for instead; it must change nothing.
	Expression string `json:"expression,omitempty" aliases:"function,js,fn"`
	// Wait until the page makes no requests.
	Idle bool `json:"idle,omitempty" aliases:"network_idle"`
	// Wait until the text or element is gone.
	Gone bool `json:"gone,omitempty" aliases:"hidden,absent"`
	// How long to wait, in milliseconds.
	Timeout int64 `json:"timeout,omitempty" minimum:"1" maximum:"600000" default:"10000" aliases:"timeout_ms"`
}

// WaitResult says how long it took, and what came.
type WaitResult struct {
	// How long it took, in milliseconds.
	MS int64 `json:"ms"`
	// The line with the text, if it says more than that.
	Line string `json:"line,omitempty" untrusted:"long"`
}

// seen is what a condition met, or else what is there instead.
type seen struct {
	Found      bool
	URL, Title string
	Near       []string
	Line       string
	Failure    *failure
}

// Wait waits for a condition.
func Wait(c *sdk.Call, p WaitParams) (WaitResult, error) {
	b := &browser{Call: c}
	began := time.Now()
	w := waiting{b, began.Add(time.Duration(p.Timeout) * time.Millisecond)}
	var what string
	var last seen
	var err error
	condition := map[string]any{"gone": p.Gone}
	switch {
	case p.Text != "":
		condition["text"], what = p.Text, fmt.Sprintf("the text %q", p.Text)
	case p.Element != "":
		condition["locator"], what = parseLocator(p.Element), fmt.Sprintf("the element %q", p.Element)
	case p.URL != "":
		condition["url"], what = p.URL, fmt.Sprintf("an address with %q", p.URL)
	case p.Request != "":
		what = fmt.Sprintf("a response from %q", p.Request)
		last.Found, err = w.response(p.Request)
	case p.Expression != "":
		what = "the expression"
		last.Found, err = w.isTrue(p.Expression)
	case p.Idle:
		what = "an idle page"
		last.Found, err = w.idle()
	default:
		return WaitResult{}, sdk.Invalid("/text", "a condition: text, element, url, request, expression or idle", "none", "")
	}
	if len(condition) > 1 {
		last, err = w.until(condition)
	}
	if err != nil {
		return WaitResult{}, err
	}
	if !last.Found {
		if p.Gone {
			what += " to go"
		}
		return WaitResult{}, sdk.Exit("not_met", fmt.Sprintf("waited %d ms for %s%s", time.Since(began).Milliseconds(), what,
			last.instead()), nil)
	}
	return WaitResult{time.Since(began).Milliseconds(), last.Line}, nil
}

// instead says what the page shows instead of what was asked for.
func (s seen) instead() string {
	if s.URL == "" {
		return ""
	}
	text := fmt.Sprintf("; the page is %s at %s", quote(s.Title), quote(clip(s.URL, 200)))
	for _, line := range s.Near {
		text += ", it shows " + quote(line)
	}
	return text
}

// waiting waits for something in the page of a call, until its time is up.
type waiting struct {
	b   *browser
	end time.Time
}

// until waits in the page for a condition, through changes of the document. Elements and texts may be in a frame.
func (w waiting) until(condition map[string]any) (last seen, err error) {
	for turn := 0; ; turn++ {
		left := time.Until(w.end)
		condition["timeout"] = max(min(left.Milliseconds(), 2000), 0)
		if turn == 0 {
			condition["timeout"] = min(left.Milliseconds(), 300)
		}
		var now seen
		if _, err = w.b.script("", &now, "until", condition); err != nil && !canRetry("", err) {
			return last, err
		}
		if err == nil {
			last = now
		}
		if last.Failure != nil {
			return last, last.Failure.error(fmt.Sprint(condition["locator"].(locator)["css"]))
		}
		if last.Found {
			return last, nil
		}
		if condition["url"] == nil && condition["gone"] != true {
			children, err := w.b.frames()
			if err != nil && !canRetry("", err) {
				return last, err
			}
			condition["timeout"] = 0
			for _, f := range children {
				if _, err := w.b.script(f.id, &now, "until", condition); err == nil && now.Found {
					return now, nil
				}
			}
		}
		if time.Now().After(w.end) {
			return last, nil
		}
	}
}

// response waits for a response from an address. One that has come since the document began counts.
func (w waiting) response(part string) (bool, error) {
	return w.poll(func() (bool, error) {
		var list struct{ Events []json.RawMessage }
		match := []string{"Network.responseReceived"}
		err := w.b.cdp("events", map[string]any{"match": match, "url": part, "limit": 1}, &list)
		return len(list.Events) > 0, err
	})
}

// poll tries something again and again until it is done, fails, or the time is up.
func (w waiting) poll(try func() (done bool, err error)) (bool, error) {
	for {
		done, err := try()
		if err != nil || done || time.Now().After(w.end) {
			return err == nil && done, err
		}
		if err := w.b.pause(); err != nil {
			return false, err
		}
	}
}

// pause waits a little, in the page: a guest cannot sleep cheaply.
func (b *browser) pause() error {
	var now seen
	_, err := b.script("", &now, "until", map[string]any{"url": "\x00", "timeout": 50})
	if canRetry("", err) {
		return nil
	}
	return err
}

// isTrue waits until an expression is true. Chrome stops one that would change something.
func (w waiting) isTrue(expression string) (bool, error) {
	return w.poll(func() (bool, error) {
		var done struct{ Result struct{ Value any } }
		err := w.b.cdp("Runtime.evaluate", map[string]any{"expression": "!!(" + expression + "\n)", "returnByValue": true,
			"throwOnSideEffect": true}, &done)
		if e, ok := err.(*sdk.HostError); ok && e.Code == "script_error" && strings.Contains(e.Message, "side-effect") {
			return false, sdk.Exit("script_error", "the expression changes something; page.evaluate runs it", nil)
		} else if ok && e.Code == "script_error" && time.Now().After(w.end) {
			return false, sdk.Exit("script_error", e.Message, nil)
		} else if err != nil && !ok {
			return false, err
		}
		return done.Result.Value == true, nil
	})
}

// idle waits until the document is quiet and no request of it is under way.
func (w waiting) idle() (bool, error) {
	a := newActivity(0)
	for {
		var now struct{ Settled bool }
		left := max(min(time.Until(w.end).Milliseconds(), 2000), 1)
		if _, err := w.b.script("", &now, "settle", map[string]any{"quiet": 200, "timeout": left}); err != nil &&
			!canRetry("", err) {
			return false, err
		}
		if err := a.read(w.b); err != nil {
			return false, err
		}
		if now.Settled && len(a.pending) == 0 {
			return true, nil
		}
		if time.Now().After(w.end) {
			return false, nil
		}
	}
}

// ExpectParams say how the page should be. All conditions must hold.
type ExpectParams struct {
	// Also: the page shows this text.
	Text string `json:"text,omitempty"`
	// Ref or name of an element, or css=SELECTOR.
	Element string `json:"element,omitempty" aliases:"ref,uid,selector,sel,target,locator"`
	// State of the element; visible by default.
	State string `json:"state,omitempty" enum:"visible,hidden,enabled,disabled,checked,unchecked"`
	// Also: the element has this value.
	Value *string `json:"value,omitempty"`
	// Also: so many elements match; 0 for none.
	Count *int `json:"count,omitempty" minimum:"0"`
	// Also: the address contains this, such as /done.
	URL string `json:"address,omitempty" pattern:"^[^*]*$" aliases:"url"`
	// How long to wait for it, in milliseconds.
	Timeout int64 `json:"timeout,omitempty" minimum:"0" maximum:"600000" default:"2000" aliases:"timeout_ms"`
}

// ExpectResult is empty where the page is as expected.
type ExpectResult struct {
	// Always true; where the page is not as expected, the call fails.
	Met bool `json:"met"`
}

// Expect checks the page.
func Expect(c *sdk.Call, p ExpectParams) (ExpectResult, error) {
	b := &browser{Call: c}
	w := waiting{b, time.Now().Add(time.Duration(p.Timeout) * time.Millisecond)}
	if p.Text == "" && p.Element == "" && p.URL == "" {
		return ExpectResult{}, sdk.Invalid("/text", "a condition: text, element or url", "none", "")
	}
	fail := func(format string, args ...any) (ExpectResult, error) {
		return ExpectResult{}, sdk.Exit("not_met", fmt.Sprintf(format, args...), nil)
	}
	for _, c := range []struct{ kind, value, name string }{
		{"url", p.URL, "an address with"}, {"text", p.Text, "the text"},
	} {
		if c.value == "" {
			continue
		}
		s, err := w.until(map[string]any{c.kind: c.value})
		if err != nil {
			return ExpectResult{}, err
		}
		if !s.Found {
			return fail("expected %s %q%s", c.name, c.value, s.instead())
		}
	}
	if p.Element == "" {
		return ExpectResult{true}, nil
	}
	problem := ""
	met, err := w.poll(func() (_ bool, err error) {
		problem, err = b.differs(p)
		if e, ok := err.(*sdk.ExitError); ok {
			problem, err = e.Message, nil
		}
		return problem == "", err
	})
	if err == nil && !met {
		return fail("%q: %s", p.Element, problem)
	}
	return ExpectResult{met}, err
}

// differs returns how an element is not as expected, "" if it is.
func (b *browser) differs(p ExpectParams) (string, error) {
	get := func(what string) (json.RawMessage, error) {
		r, err := Get(b.Call, GetParams{Element: p.Element, What: what})
		return r.Value, err
	}
	if p.Count != nil {
		n, err := get("count")
		if err != nil || string(n) == fmt.Sprint(*p.Count) {
			return "", err
		}
		return fmt.Sprintf("expected %d elements, %s match", *p.Count, n), nil
	}
	visible, err := get("visible")
	var missing *sdk.ExitError
	if e, ok := err.(*sdk.ExitError); ok && (e.Name == "no_match" || e.Name == "stale") {
		missing, err = e, nil
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
		if err == nil {
			err = json.Unmarshal(raw, &now)
		}
		if err != nil || now != *p.Value {
			return fmt.Sprintf("expected the value %s, it has %s", quote(*p.Value), quote(now)), err
		}
	}
	if p.State == "" || p.State == "visible" {
		return "", nil
	}
	raw, err := get("state")
	words := " " + strings.Trim(string(raw), `"`) + " "
	has := map[string]bool{"enabled": !strings.Contains(words, " disabled "), "disabled": strings.Contains(words,
		" disabled "),
		"checked": strings.Contains(words, " checked "), "unchecked": !strings.Contains(words, " checked ")}
	if err != nil || has[p.State] {
		return "", err
	}
	return fmt.Sprintf("expected %s, it is [%s]", p.State, strings.TrimSpace(words)), nil
}
