package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// OpenParams say what to open.
type OpenParams struct {
	// Address to open, such as https://example.com/.
	URL string `json:"url" format:"uri" minLength:"1" aliases:"uri,href,link,address,page"`
	// Open it in the current page instead of a new one.
	Here bool `json:"here,omitempty" aliases:"same_tab,current"`
}

// PageResult is where a page is.
type PageResult struct {
	// Address of the page after redirects.
	URL string `json:"url"`
	// Title of the page.
	Title string `json:"title"`
	// HTTP status; absent where the address is not http or https.
	Status int `json:"status,omitempty"`
	// What else happened, if anything did.
	Caused *Caused `json:"caused,omitempty"`
}

// Open opens a page and waits until it is there.
func Open(c *sdk.Call, p OpenParams) (*PageResult, error) {
	b := &browser{Call: c, writes: true}
	if p.Here {
		return b.move(func(*begun) error {
			return b.CallTool("cdp.Page.navigate", map[string]any{"url": p.URL}, sdk.Options{Target: b.target, Wait: "load"},
				nil)
		})
	}
	var page struct {
		Target, URL, Title string
		Status             int
	}
	if err := b.CallTool("cdp.open", map[string]any{"url": p.URL}, sdk.Options{}, &page); err != nil {
		return nil, err
	}
	b.target = page.Target
	start := &begun{}
	r := &PageResult{URL: page.URL, Title: page.Title, Status: page.Status}
	e, last, err := b.finish(start, nil)
	if err != nil {
		return nil, err
	}
	r.add(e)
	if last.URL != "" {
		r.URL, r.Title = last.URL, last.Title
	}
	return r, nil
}

func (r *PageResult) add(e *Effects) {
	r.Caused = e.Caused
	if e.Status != 0 {
		r.Status = e.Status
	}
}

// move navigates the current page.
func (b *browser) move(how func(*begun) error) (*PageResult, error) {
	start := &begun{}
	var err error
	if start.seq, err = b.script("", start, "begin", nil); err != nil {
		return nil, err
	}
	fault := how(start)
	if e, ok := fault.(*sdk.HostError); fault != nil && (!ok || !isDialog(e)) {
		return nil, fault
	}
	e, last, err := b.finish(start, fault)
	if err != nil {
		return nil, err
	}
	r := &PageResult{URL: last.URL, Title: last.Title}
	r.add(e)
	return r, nil
}

// GoParams say where to go.
type GoParams struct {
	// Direction in the history, or reload.
	To string `json:"to" enum:"back,forward,reload" aliases:"direction,action"`
}

// Go goes back, forward, or loads the page again.
func Go(c *sdk.Call, p GoParams) (*PageResult, error) {
	b := &browser{Call: c, writes: true}
	return b.move(func(*begun) error {
		wait := sdk.Options{Target: b.target, Wait: "load"}
		if p.To == "reload" {
			return b.CallTool("cdp.Page.reload", struct{}{}, wait, nil)
		}
		var history struct {
			CurrentIndex int
			Entries      []struct {
				ID  int
				URL string
			}
		}
		if err := b.cdp("Page.getNavigationHistory", nil, &history); err != nil {
			return err
		}
		next := history.CurrentIndex + 1
		if p.To == "back" {
			next -= 2
		}
		if next < 0 || next >= len(history.Entries) {
			return sdk.Exit("no_match", fmt.Sprintf("the history has no page to go %s to", p.To), nil)
		}
		return b.CallTool("cdp.Page.navigateToHistoryEntry", map[string]any{"entryId": history.Entries[next].ID}, wait, nil)
	})
}

// EvaluateParams are a program.
type EvaluateParams struct {
	// A JavaScript expression, or a function: it is called, with the element.
	Expression string `json:"expression" minLength:"1" maxLength:"1000000" aliases:"script,code,js,javascript,function"`
	// Ref or locator of an element, which the function gets as its argument.
	Element string `json:"element,omitempty" aliases:"ref,uid,selector,sel,target,locator,on"`
}

// EvaluateResult is a value.
type EvaluateResult struct {
	// Any JSON: the value, or null.
	Value json.RawMessage `json:"value" untrusted:"long"`
}

// Evaluate runs JavaScript in the page.
func Evaluate(c *sdk.Call, p EvaluateParams) (EvaluateResult, error) {
	b := &browser{Call: c, writes: true}
	r := EvaluateResult{json.RawMessage("null")}
	expression, target := p.Expression, ""
	if p.Element != "" {
		in, e, err := b.focus(p.Element)
		if err != nil {
			return r, err
		}
		if e.CSS == "" {
			return r, sdk.Exit("not_ready", p.Element+" is in a shadow root, where no selector finds it", nil)
		}
		selector, _ := json.Marshal(e.CSS)
		expression, target = "("+p.Expression+")(document.querySelector("+string(selector)+"))", string(in)
	}
	var done struct {
		Result struct {
			Value       json.RawMessage
			Type        string
			Unusable    string `json:"unserializableValue"`
			Description string
		}
	}
	statements, call := false, ""
	var err error
	switch {
	case p.Element != "":
	case functionText.MatchString(expression):
		// A program that only begins with a function stays as it is.
		call, err = callOf(b, "(", expression, "\n)")
	case strings.Contains(expression, "await"):
		// An expression becomes one that is a promise. Statements stay as they are: the mode of a console, in which they
		// run, awaits what they await, but not a promise that is their result.
		call, err = callOf(b, "(async () => (\n", expression, "\n))")
		statements = call == ""
	}
	if err != nil {
		return r, err
	}
	err = b.CallTool("cdp.Runtime.evaluate", map[string]any{"expression": cmp.Or(call, expression), "awaitPromise": true,
		"returnByValue": true, "userGesture": true, "replMode": statements},
		sdk.Options{Target: cmp.Or(target, b.target)}, &done)
	if e, ok := err.(*sdk.HostError); ok && e.Code == "script_error" {
		return r, sdk.Exit("script_error", e.Message, nil)
	}
	switch {
	case err != nil:
		return r, err
	case done.Result.Type == "function":
		c.Warn("the value is a function, which was not called: call it in the expression")
	case len(done.Result.Value) > 0:
		r.Value = done.Result.Value
	case done.Result.Unusable != "":
		r.Value, err = json.Marshal(done.Result.Unusable)
	}
	return r, err
}

// functionText matches how the text of a function begins. Callers used to other tools pass a function.
var functionText = regexp.MustCompile(`^\s*(async\b\s*)?(function\b|(\([^()]*\)|[\w$]+)\s*=>)`)

// callOf makes a function of a program and returns a call of it, "" if Chrome cannot compile that.
func callOf(b *browser, before, program, after string) (string, error) {
	function := before + strings.TrimRight(program, "; \t\r\n") + after
	err := b.cdp("Runtime.compileScript", map[string]any{"expression": function, "sourceURL": "", "persistScript": false},
		nil)
	if e, ok := err.(*sdk.HostError); ok && e.Code == "script_error" {
		return "", nil
	}
	return function + "()", err
}
