package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// how says how an element must be and what begins with it, for the function begin of page.js.
type how struct {
	Guarded bool  `json:"guarded,omitempty"`
	Focused bool  `json:"focused,omitempty"`
	All     bool  `json:"all"`
	Covered *bool `json:"covered,omitempty"` // false: the element may be covered
	Edit    bool  `json:"edit,omitempty"`
	// A point of the element, in pixels from its upper left corner; nil for its middle.
	Offset  []float64 `json:"offset,omitempty"`
	To      any       `json:"to,omitempty"`    // of a drag: where it ends
	Files   int       `json:"files,omitempty"` // how many the file input is to get; it may be invisible
	Timeout int64     `json:"timeout"`         // milliseconds; set by begin
}

var no = new(bool)

// patience is how long an action waits for its element. Of a call that may last less, there is time left to say why.
func patience(c *sdk.Call) time.Duration {
	if c.Deadline > 0 {
		return min(5*time.Second, c.Deadline*3/4)
	}
	return 5 * time.Second
}

// begin waits for the element of an action, in whatever frame it is, and starts the action. Word is "" for the element
// that has the focus.
func (b *browser) begin(word string, h how) (*begun, error) {
	return b.beginUntil(word, h, time.Now().Add(patience(b.Call)))
}

func (b *browser) beginUntil(word string, h how, until time.Time) (*begun, error) {
	var where any
	if word != "" {
		where = parseLocator(word)
	}
	var children []pageFrame
	for turn := 0; ; turn++ {
		start := &begun{}
		h.Timeout = max(min(time.Until(until).Milliseconds(), 1000), 1)
		if turn == 0 { // the element may be in a frame, which the next turn shows
			h.Timeout = min(h.Timeout, 150)
		}
		seq, err := b.script("", start, "begin", where, h)
		if canRetry("", err) && time.Now().Before(until) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if start.seq = seq; start.Failure == nil {
			return start, nil
		}
		mine := start.Failure
		if mine.Hosts && b.openClosedRoots("", true) {
			continue
		}
		if mine.elsewhere() {
			if children, err = b.frames(); err != nil {
				return nil, err
			}
			h.Timeout = 1
			for _, child := range children {
				f, err := b.opened(child.id, func() (*failure, error) {
					start = &begun{in: child.id}
					start.seq, err = b.script(start.in, start, "begin", where, h)
					return start.Failure, err
				})
				switch {
				case err != nil: // it is being replaced
				case f == nil:
					return b.throughFrames(start, children, word)
				case !f.elsewhere() && f.Code != "not_ready":
					return nil, f.error(word)
				case !f.elsewhere():
					mine = f
				}
			}
		}
		if mine.Code != "no_match" && mine.Code != "not_ready" || time.Now().After(until) {
			return nil, mine.error(word)
		}
	}
}

// throughFrames turns the point of an element in a frame into one of the page, and guards the frames around it.
func (b *browser) throughFrames(start *begun, all []pageFrame, word string) (*begun, error) {
	what := fmt.Sprintf("%q is in a frame that", word)
	err := b.outward(start.in, all, what, func(in frame, of place) (at point, err error) {
		_, err = b.script(in, &at, "hold", of, start.X, start.Y)
		start.To.X, start.To.Y = start.To.X+at.X-start.X, start.To.Y+at.Y-start.Y
		start.X, start.Y = at.X, at.Y
		start.around = append(start.around, in)
		return at, err
	})
	return start, err
}

// ClickParams say what to click, and how.
type ClickParams struct {
	// Ref or name of the element, or css=SELECTOR.
	Element string `json:"element,omitempty" aliases:"ref,uid,selector,sel,target,locator,on,name,text"`
	// Pixels [x, y] in the element or, without one, in the view.
	At []float64 `json:"at,omitempty" minItems:"2" maxItems:"2"`
	// Mouse button; the left one by default.
	Button string `json:"button,omitempty" enum:"right,middle"`
	// Number of clicks, such as 2 for a double-click.
	Count int `json:"count,omitempty" minimum:"1" maximum:"3" aliases:"clicks,click_count"`
	// Keys to hold down also, such as Shift.
	Modifiers []string `json:"modifiers,omitempty"`
}

// Click clicks an element or a point.
func Click(c *sdk.Call, p ClickParams) (*Effects, error) {
	b := &browser{Call: c, writes: true}
	modifiers, err := modifierBits(p.Modifiers)
	if err != nil {
		return nil, err
	}
	switch {
	case p.Element == "" && len(p.At) == 2:
		return b.act("", how{}, func(*begun) error { return b.input(clicks(p.At[0], p.At[1], p, modifiers)...) })
	case p.Element == "":
		return nil, sdk.Invalid("/element", "an element, or a point in at", "nothing", "page.snapshot shows the elements")
	}
	e, _, err := b.pointAt(p.Element, how{Offset: p.At}, "click", func(start *begun) error {
		return b.input(clicks(start.X, start.Y, p, modifiers)...)
	})
	return e, err
}

// clicks returns the events of clicks at a point.
func clicks(x, y float64, p ClickParams, modifiers int) (all []map[string]any) {
	at := map[string]any{"x": x, "y": y, "modifiers": modifiers}
	all = append(all, with(at, "type", "mouseMoved"))
	for i := range max(p.Count, 1) {
		press := with(with(at, "button", cmp.Or(p.Button, "left")), "clickCount", i+1)
		all = append(all, with(press, "type", "mousePressed"), with(press, "type", "mouseReleased"))
	}
	return all
}

// act begins an action on an element, sends its input, and waits until what it caused is over.
func (b *browser) act(word string, h how, send func(*begun) error) (*Effects, error) {
	start, err := b.begin(word, h)
	if err != nil {
		return nil, err
	}
	e, _, err := b.finish(start, send(start))
	return e, err
}

// DragParams say what to drag where.
type DragParams struct {
	// Ref or name of the element to drag, or css=SELECTOR.
	Element string `json:"element" aliases:"ref,uid,selector,sel,target,locator,from,source,name,start_target,start_ref,from_uid"`
	// Ref, name or css= of the element to drop it on.
	To string `json:"to,omitempty" aliases:"onto,destination,end_target,end_ref,to_uid"`
	// How far to drag it instead: [x, y] in pixels.
	By []float64 `json:"by,omitempty" minItems:"2" maxItems:"2" aliases:"offset"`
}

// Drag drags an element to another one of its document, or by some pixels.
func Drag(c *sdk.Call, p DragParams) (*Effects, error) {
	b := &browser{Call: c, writes: true}
	h := how{}
	switch {
	case p.To != "":
		h.To = parseLocator(p.To)
	case len(p.By) == 2:
		h.To = locator{"by": p.By}
	default:
		return nil, sdk.Invalid("/to", "an element to drag to, or pixels in by", "nothing", "")
	}
	var sent struct{ Dragged bool }
	e, last, err := b.pointAt(p.Element, h, "drag", func(start *begun) error {
		return b.cdp("input", map[string]any{"events": []any{map[string]any{"type": "drag", "x": start.X, "y": start.Y,
			"toX": start.To.X, "toY": start.To.Y}}}, &sent)
	})
	if err == nil && sent.Dragged && !last.Received {
		return nil, sdk.Exit("not_ready", "it was dragged, and nothing took it where it was dropped", nil)
	}
	return e, err
}

// pointAt sends pointer events to an element, such as a click. What the element does not receive is swallowed and tried
// again, until the time is up.
func (b *browser) pointAt(word string, h how, what string, send func(*begun) error) (*Effects, *ended, error) {
	h.Guarded, h.All = true, true
	for until := time.Now().Add(patience(b.Call)); ; {
		start, err := b.beginUntil(word, h, until)
		if err != nil {
			return nil, nil, err
		}
		e, last, err := b.finish(start, send(start))
		for _, in := range start.around {
			var outer ended
			if _, released := b.script(in, &outer, "landed"); released == nil && outer.Missed != nil && last != nil {
				last.Missed = outer.Missed
			}
		}
		switch {
		case err != nil:
			return nil, nil, err
		case last.Missed != nil && time.Now().Before(until):
			continue
		case last.Missed != nil:
			return nil, nil, sdk.Exit("not_ready",
				fmt.Sprintf("%s moves: the %s would have hit %s, so the page did not get it",
					start.element, what, last.Missed), map[string]any{"by": last.Missed})
		case !last.Received && !last.Changed && e.quiet():
			meant := start.element
			if start.To.Ref != "" {
				meant = start.To.element
			}
			return nil, nil, sdk.Exit("not_ready", fmt.Sprintf("%s did not receive the %s", meant, what), nil)
		case !last.Received && last.Pressed:
			e.addNote("it moved while it was pressed: the press reached it, the click did not")
		}
		return e, last, nil
	}
}

// with returns a copy of an event with one more field.
func with(event map[string]any, name string, value any) map[string]any {
	more := maps.Clone(event)
	more[name] = value
	return more
}

// ElementParams name an element.
type ElementParams struct {
	// Ref or name of the element, or css=SELECTOR.
	Element string `json:"element" aliases:"ref,uid,selector,sel,target,locator,on,name"`
}

// Hover moves the mouse to an element.
func Hover(c *sdk.Call, p ElementParams) (*Effects, error) {
	b := &browser{Call: c, writes: true}
	return b.act(p.Element, how{}, func(start *begun) error {
		return b.input(map[string]any{"type": "mouseMoved", "x": start.X, "y": start.Y})
	})
}

// UploadParams say which files a file input is to have.
type UploadParams struct {
	// File input: its ref or label, or css=.
	Element string `json:"element" aliases:"ref,uid,selector,sel,target,locator,on,input,name"`
	// Paths of your files.
	Files []sdk.File `json:"files,omitempty" maxItems:"20" handed:"true" aliases:"file,path,paths,file_path,file_paths"`
	// Files of page.downloads, by name.
	Downloads []string `json:"downloads,omitempty" maxItems:"20" aliases:"download"`
}

// UploadResult is what giving files caused.
type UploadResult struct {
	Effects
	// Names and sizes of the files that the page got.
	Files []UploadedFile `json:"files"`
}

// UploadedFile is a file that the page has.
type UploadedFile struct {
	// Name of the file.
	Name string `json:"name"`
	// Size in bytes.
	Size int64 `json:"size"`
}

// Upload gives files to a file input, or to the one that belongs to a label or a button.
func Upload(c *sdk.Call, p UploadParams) (*UploadResult, error) {
	b := &browser{Call: c, writes: true}
	r := &UploadResult{}
	var files []string
	for _, f := range p.Files {
		files = append(files, string(f))
		r.Files = append(r.Files, UploadedFile{f.Name(), f.Size()})
	}
	if len(p.Downloads) > 0 {
		list, _, err := b.downloads()
		if err != nil {
			return nil, err
		}
		for _, name := range p.Downloads {
			at := slices.IndexFunc(list.Downloads, func(d Download) bool { return d.Name == name && d.State == "done" })
			if at < 0 {
				return nil, sdk.Exit("no_match", fmt.Sprintf("no download is named %q; page.downloads lists them", name), nil)
			}
			files = append(files, list.Downloads[at].Path)
			r.Files = append(r.Files, UploadedFile{name, list.Downloads[at].Bytes})
		}
	}
	if len(files) == 0 {
		return nil, sdk.Invalid("/files", "files, or downloads of the session", "none", "")
	}
	start, err := b.begin(p.Element, how{Files: len(files)})
	if err != nil {
		return nil, err
	}
	err = b.CallTool("cdp.script", map[string]any{"script": "page", "call": "chosen", "files": files},
		sdk.Options{Target: cmp.Or(string(start.in), b.target)}, nil)
	if _, own := err.(*sdk.HostError); err != nil && (!own || !isDialog(err)) {
		return nil, err
	}
	e, _, err := b.finish(start, err)
	if err != nil {
		return nil, err
	}
	r.Effects = *e
	return r, nil
}

// FillParams say what a field is to hold.
type FillParams struct {
	// Ref or label of the field, or css=SELECTOR.
	Element string `json:"element" aliases:"ref,uid,selector,sel,target,locator,on,field,label,name"`
	// New text; a date as 2026-01-31.
	Value string `json:"value,omitempty" maxLength:"1000000" aliases:"text,with,content"`
	// Name of a secret to fill in instead of a value.
	Secret string `json:"secret,omitempty"`
	// Press Enter afterwards.
	Submit bool `json:"submit,omitempty" aliases:"enter,press_enter"`
}

// FillResult is what filling in a field caused.
type FillResult struct {
	Effects
	// What the field holds now, if that is not the given value.
	Value string `json:"value,omitempty"`
}

// Fill replaces the text of a field.
func Fill(c *sdk.Call, p FillParams) (*FillResult, error) {
	b := &browser{Call: c, writes: true}
	start, err := b.begin(p.Element, how{Focused: true, All: true, Covered: no, Edit: true})
	if err != nil {
		return nil, err
	}
	note := ""
	switch {
	case p.Secret != "":
		err = b.cdp("type", map[string]any{"secret": p.Secret}, nil)
	case start.Picker:
		note = "set by value: this field has a picker of the browser"
		err = b.call(start, "assign", p.Value)
	case start.Select:
		err = b.call(start, "choose", []string{p.Value})
	case !start.Editable:
		return nil, sdk.Exit("not_ready", start.element.String()+" is not a field; page.click presses it", nil)
	case p.Value == "":
		err = b.input(key("Delete", 0)...)
	default:
		err = b.input(map[string]any{"type": "insertText", "text": p.Value})
	}
	if err == nil && p.Submit {
		err = b.input(key("Enter", 0)...)
	}
	if _, own := err.(*sdk.HostError); err != nil && !own {
		return nil, err
	}
	e, last, err := b.finish(start, err)
	if err != nil {
		return nil, err
	}
	e.addNote(note)
	r := &FillResult{Effects: *e}
	if last.Value != nil && p.Secret == "" && !p.Submit && !same(*last.Value, p.Value) && !start.Select {
		r.Value = *last.Value
		r.addNote("the field has another value than was given")
	} else if !p.Submit && r.quiet() {
		r.Note = strings.TrimSuffix(strings.TrimSuffix(r.Note, "no change seen"), "; ")
	}
	return r, nil
}

// same reports whether a field has the text that was given: it may have been shortened, or be that of a password.
func same(now, wanted string) bool {
	if strings.Trim(now, "•") == "" {
		return (now == "") == (wanted == "")
	}
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	now = strings.TrimSuffix(flat(now), "…")
	return now == flat(wanted) || len(now) > 150 && strings.HasPrefix(flat(wanted), now)
}

func (e *Effects) addNote(note string) {
	e.Note = strings.Trim(e.Note+"; "+note, "; ")
}

// call calls a function of page.js for the element of an action, which can fail.
func (b *browser) call(start *begun, function string, arg any) error {
	var done struct{ Failure *failure }
	if _, err := b.script(start.in, &done, function, start.Ref, arg); err != nil {
		return err
	}
	if done.Failure != nil {
		return done.Failure.error(start.Ref)
	}
	return nil
}

// TypeParams say what to type.
type TypeParams struct {
	// Text to type.
	Text string `json:"text" maxLength:"10000" aliases:"value,keys"`
	// Element to focus first.
	Element string `json:"element,omitempty" aliases:"ref,uid,selector,sel,target,locator,on,into,field"`
	// Press Enter afterwards.
	Submit bool `json:"submit,omitempty" aliases:"enter,press_enter"`
}

// Type types a text, key by key, at the end of what is there.
func Type(c *sdk.Call, p TypeParams) (*Effects, error) {
	b := &browser{Call: c, writes: true}
	var events []map[string]any
	for _, r := range p.Text {
		switch r {
		case '\n', '\r':
			events = append(events, key("Enter", 0)...)
		case '\t':
			events = append(events, key("Tab", 0)...)
		default:
			events = append(events, key(string(r), 0)...)
		}
	}
	if p.Submit {
		events = append(events, key("Enter", 0)...)
	}
	return b.act(p.Element, how{Focused: true, Covered: no}, func(*begun) (err error) {
		for part := range slices.Chunk(events, 1000) {
			if err = b.input(part...); err != nil {
				break
			}
		}
		return err
	})
}

// PressParams say which keys to press.
type PressParams struct {
	// Key or combination, such as Enter, ArrowDown or Control+a.
	Key string `json:"key" minLength:"1" maxLength:"60" aliases:"keys,shortcut"`
	// Element to focus first.
	Element string `json:"element,omitempty" aliases:"ref,uid,selector,sel,target,locator,on"`
	// How often to press it.
	Count int `json:"count,omitempty" minimum:"1" maximum:"100" default:"1" aliases:"times,repeat"`
}

// Press presses a key or a combination.
func Press(c *sdk.Call, p PressParams) (*Effects, error) {
	b := &browser{Call: c, writes: true}
	one, err := combination(p.Key)
	if err != nil {
		return nil, err
	}
	return b.act(p.Element, how{Focused: true, Covered: no}, func(*begun) error {
		return b.input(slices.Repeat(one, p.Count)...)
	})
}

// SelectParams say which options to select.
type SelectParams struct {
	// Ref or label of the field, or css=SELECTOR.
	Element string `json:"element" aliases:"ref,uid,selector,sel,target,locator,on,field,label,name"`
	// Labels or values of the options.
	Options []string `json:"options" minItems:"1" maxItems:"100" aliases:"option,value,values"`
}

// Select selects options of a native select.
func Select(c *sdk.Call, p SelectParams) (*Effects, error) {
	b := &browser{Call: c, writes: true}
	start, err := b.begin(p.Element, how{Focused: true, Covered: no})
	if err != nil {
		return nil, err
	}
	if err = b.call(start, "choose", p.Options); err != nil && !isDialog(err) {
		return nil, err
	}
	e, _, err := b.finish(start, err)
	return e, err
}

// CheckParams say whether a box is to be checked.
type CheckParams struct {
	// Ref or label of the box, or css=SELECTOR.
	Element string `json:"element" aliases:"ref,uid,selector,sel,target,locator,on,label,name"`
	// Uncheck it instead.
	Off bool `json:"off,omitempty" aliases:"uncheck,unchecked"`
}

// Check checks or unchecks a box by a click, if it is not so already.
func Check(c *sdk.Call, p CheckParams) (*Effects, error) {
	b := &browser{Call: c, writes: true}
	start, err := b.begin(p.Element, how{})
	if err != nil {
		return nil, err
	}
	if start.Checked == !p.Off {
		return &Effects{On: start.element.String(), Note: "it is so already"}, nil
	}
	e, last, err := b.pointAt(p.Element, how{}, "click", func(start *begun) error {
		return b.input(clicks(start.X, start.Y, ClickParams{}, 0)...)
	})
	if err != nil {
		return nil, err
	}
	if last.Document == start.Document && last.Value != nil && last.Checked == p.Off {
		return nil, sdk.Exit("not_ready", start.element.String()+" received the click and did not change", nil)
	}
	return e, nil
}

// ScrollParams say what to scroll.
type ScrollParams struct {
	// Element to scroll into view, or to turn the wheel over.
	Element string `json:"element,omitempty" aliases:"ref,uid,selector,sel,target,locator,on"`
	// How far to turn the wheel: [x, y] in pixels.
	By []float64 `json:"by,omitempty" minItems:"2" maxItems:"2"`
	// Scroll to this end of the page instead.
	To string `json:"to,omitempty" enum:"top,bottom" aliases:"direction"`
}

// Scroll scrolls the page or an element.
func Scroll(c *sdk.Call, p ScrollParams) (*Effects, error) {
	b := &browser{Call: c, writes: true}
	start, err := b.begin(p.Element, how{Covered: no})
	if err != nil {
		return nil, err
	}
	switch {
	case p.To != "":
		var ref any
		if start.Ref != "" {
			ref = start.Ref
		}
		var done json.RawMessage
		_, err = b.script(start.in, &done, "scrollEnd", ref, p.To)
	case len(p.By) == 2:
		x, y := start.X, start.Y
		if p.Element == "" {
			x, y = 20, 20
		}
		err = b.input(map[string]any{"type": "mouseWheel", "x": x, "y": y, "deltaX": p.By[0], "deltaY": p.By[1]})
	case p.Element == "":
		err = b.input(map[string]any{"type": "mouseWheel", "x": 20, "y": 20, "deltaX": 0, "deltaY": 600})
	default: // aiming at it has scrolled it into view
		return &Effects{On: start.element.String()}, nil
	}
	e, _, err := b.finish(start, err)
	return e, err
}
