package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// browser is the page of a call. Its calls go to the current page, or to the one that the caller's option target names,
// and once that is known always to the same.
type browser struct {
	*sdk.Call
	target string // the page, as of the first call of a script
	writes bool   // the tool may change something
	unseen int    // frames that the last call of frames left out
}

// frame is where an element is: "" is the page's own document, otherwise the id of a frame.
type frame string

// called is the result of cdp.script.
type called struct {
	Target  string          `json:"target"`
	LastSeq int64           `json:"last_seq"`
	Value   json.RawMessage `json:"value"`
}

// script calls a function of page.js in a frame and decodes what it returned. It returns the number of the newest event
// before the call.
func (b *browser) script(in frame, result any, function string, args ...any) (seq int64, err error) {
	params := map[string]any{"script": "page", "call": function}
	if len(args) > 0 {
		params["args"] = args
	}
	if b.writes {
		params["document_start"] = true
	}
	target := string(in)
	if target == "" {
		target = b.target
	}
	var done called
	if err := b.CallTool("cdp.script", params, sdk.Options{Target: target}, &done); err != nil {
		return 0, err
	}
	if in == "" {
		b.target = done.Target
	}
	if len(done.Value) == 0 {
		return done.LastSeq, nil
	}
	return done.LastSeq, json.Unmarshal(done.Value, result)
}

// openClosedRoots lets page.js look into closed shadow roots of a frame, and reports whether it found any: of custom
// elements or, if thorough, of all that may have one.
func (b *browser) openClosedRoots(in frame, thorough bool) bool {
	params := map[string]any{"script": "page", "call": "hosts", "args": []any{thorough}, "closed_roots": true}
	var done struct{ Value int }
	err := b.CallTool("cdp.script", params, sdk.Options{Target: cmp.Or(string(in), b.target)}, &done)
	return err == nil && done.Value > 0
}

// pauseTime is how long a call waits before it tries again what has failed.
const pauseTime = 30 * time.Millisecond

// maxClosedDepth limits how deep closed shadow roots in each other are looked into.
const maxClosedDepth = 5

// cdp calls a tool of the plugin cdp for the page.
func (b *browser) cdp(tool string, params, result any) error {
	if params == nil {
		params = struct{}{}
	}
	return b.CallTool("cdp."+tool, params, sdk.Options{Target: b.target}, result)
}

// cdpAll calls a tool of the plugin cdp for all pages of the session.
func (b *browser) cdpAll(tool string, params, result any) error {
	return b.CallTool("cdp."+tool, params, sdk.Options{}, result)
}

// input sends input events to the page.
func (b *browser) input(events ...map[string]any) error {
	return b.cdp("input", map[string]any{"events": events}, nil)
}

// canRetry reports whether a call of a script in a frame failed because its document was replaced. It then pauses,
// since its caller tries again.
func canRetry(in frame, err error) bool {
	var e *sdk.HostError
	// Without a page there is nothing to wait for. A frame may be back soon.
	if !errors.As(err, &e) || e.Code != "protocol_error" && (e.Code != "not_found" || in == "") {
		return false
	}
	for _, sign := range []string{"ontext", "navigated", "ollected", "No target", "no frame", "not found"} {
		if e.Code == "not_found" || strings.Contains(e.Message, sign) {
			time.Sleep(pauseTime)
			return true
		}
	}
	return false
}

// isDialog reports whether a call failed because a dialog is open.
func isDialog(err error) bool {
	var e *sdk.HostError
	return errors.As(err, &e) && e.Code == "busy" && strings.Contains(e.Message, "dialog")
}

// target is a page, frame or worker, as cdp.targets lists it.
type target struct {
	ID, Type, URL, Title, Parent, Opener string
	Since                                int64
	Current                              bool
	Dialog                               *Dialog
}

func (b *browser) targets() ([]target, error) {
	var list struct{ Targets []target }
	err := b.cdp("targets", nil, &list)
	return list.Targets, err
}

// element is what page.js says of an element.
type element struct {
	Ref   string `json:"ref"`
	Role  string `json:"role"`
	Name  string `json:"name"`
	State string `json:"state,omitempty"`
	Value string `json:"value,omitempty"`
	CSS   string `json:"css,omitempty"`
}

func (e element) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Role, quote(e.Name), e.Ref))
}

// quote writes what a page says as one value that nothing in it can end, as quoted of page.js does. What is not shown
// is escaped, but for the joiners and selectors that scripts and emoji need.
func quote(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == 0x200c || r == 0x200d || r == 0xfe0e || r == 0xfe0f || !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl,
			unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
			b = utf8.AppendRune(b, r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				b = fmt.Appendf(b, `\u%04x`, unit)
			}
		}
	}
	return string(append(b, '"'))
}

// failure is why page.js did not do what was asked.
type failure struct {
	element
	Code    string // no_match, many, stale, not_ready, or invalid: not a CSS selector
	Why     string
	Foreign bool // the reference is not of this document
	Hosts   bool // elements may have closed shadow roots, which were not looked into
	Total   int
	Near    []element
	By      *element // what covers the element
}

// error returns the failure as the error of a tool. Wanted is the locator as the caller gave it.
func (f *failure) error(wanted string) error {
	var near []string
	for _, e := range f.Near {
		near = append(near, e.String())
	}
	list := strings.Join(near, ", ")
	details := map[string]any{"candidates": f.Near}
	if len(f.Near) == 0 {
		details = nil
	}
	switch f.Code {
	case "invalid":
		return sdk.Invalid("/element", "a CSS selector", wanted, "an element by its name, such as: button \"Sign in\"")
	case "many":
		return sdk.Exit("ambiguous", fmt.Sprintf("%s matches %d elements: %s", quote(clip(wanted, 200)), f.Total, list),
			details)
	case "stale":
		if list != "" {
			list = ", or use " + list
		}
		return sdk.Exit("stale", f.Why+list, details)
	case "not_ready":
		why := f.Why
		if f.By != nil {
			why += " by " + f.By.String()
			if f.By.CSS != "" {
				why += " (css=" + quote(clip(f.By.CSS, 80)) + ")"
			}
			details = map[string]any{"by": f.By}
		}
		if f.Ref != "" {
			why = f.element.String() + ": " + why
		}
		if advice := adviceFor[f.Why]; advice != "" {
			why += " (" + advice + ")"
		}
		return sdk.Exit("not_ready", why, details)
	}
	if list != "" {
		list = "; nearest: " + list
	}
	if f.Why != "" {
		return sdk.Exit("no_match", f.Why+list, details)
	}
	return sdk.Exit("no_match", fmt.Sprintf("nothing matches %s%s (page.snapshot shows the page)",
		quote(clip(wanted, 200)), list), details)
}

// adviceFor says what to do where an element cannot be acted on, by the reason of page.js. A reason that says it
// itself, or about which nothing can be done, has none.
var adviceFor = map[string]string{
	"it is covered":                   "deal with what covers it",
	"its frame is covered":            "deal with what covers it",
	"it is disabled":                  "fill in or choose first what enables it",
	"it is read-only":                 "act on what sets it",
	"it is moving":                    "wait until it stands, and act again",
	"it is not visible":               "open what contains it; page.snapshot shows what is visible",
	"its frame is not visible":        "open what contains the frame",
	"it has no size":                  "act on its label, or on what is drawn for it",
	"it is not a select":              "page.click opens it, and page.snapshot shows its options",
	"it is no longer in the document": "look again with page.snapshot",
}

// elsewhere reports whether the element may be in another frame.
func (f *failure) elsewhere() bool { return f.Code == "no_match" || f.Foreign }
