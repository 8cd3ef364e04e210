package act

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
	"github.com/parley-tools/parley/cdp/internal/keeper/verb"
	"github.com/parley-tools/parley/internal/lazy"
)

// how is the argument of the function begin of page.js: the state that an element must have, and the act that begins.
type how struct {
	Guarded bool   `json:"guarded,omitempty"`
	Focused bool   `json:"focused,omitempty"`
	All     bool   `json:"all"`
	Covered *bool  `json:"covered,omitempty"` // false: the element may be covered
	Edit    bool   `json:"edit,omitempty"`
	Field   bool   `json:"field,omitempty"` // the element may stand for a field, which is then acted on
	Seek    bool   `json:"seek,omitempty"`  // the element may appear when its list is scrolled
	Value   string `json:"value,omitempty"` // the value that a field is to get
	// Offset is a point of the element, in pixels from its upper left corner; nil means its middle.
	Offset  []float64 `json:"offset,omitempty"`
	To      any       `json:"to,omitempty"`    // where a drag ends, or a hover begins
	Files   int       `json:"files,omitempty"` // number of files for the file input, which may be invisible
	Timeout int64     `json:"timeout"`         // milliseconds; set by begin, as Time
	Time    int64     `json:"time"`

	verb   string        // for the ledger
	within time.Duration // how long to wait for the element; 0 is as long as usual
}

var no = new(bool)

// begin waits for the element of an act, in whatever frame it is, and starts the act. word is "" for the element that
// has the focus.
func begin(v *page.Visit, word string, h how) (*begun, *api.Error) {
	return beginUntil(v, word, h, time.Now().Add(cmp.Or(h.within, v.Patience())))
}

func beginUntil(v *page.Visit, word string, h how, until time.Time) (*begun, *api.Error) {
	var where page.Locator // nil for the element that has the focus
	if word != "" {
		where = v.Locate(word)
	}
	defer page.StayUntil(v, until)()
	woken, soon := false, time.Now().Add(time.Second)
	for turn := 0; ; turn++ {
		h.Time = v.TimeLeft()
		seq := lastSeq(v)
		most := max(min(time.Until(until).Milliseconds(), 1000, h.Time/2), 1) // the rest is for a last look
		if turn == 0 && len(v.Frames()) > 0 {                                 // the element may be in one of them
			most = 1
		}
		look := where
		try := func(in page.Frame) (*begun, *page.Failure, *api.Error) {
			start := &begun{in: in, seq: seq, verb: h.verb}
			if h.Timeout = 1; in == "" {
				h.Timeout = most
			}
			err := v.Script(in, start, "begin", look, h)
			return start, start.Failure, err
		}
		began := time.Now()
		in, start, failure, err := page.Anywhere(v, where, try)
		late := time.Since(began) - time.Duration(most)*time.Millisecond // on a long page there is no time for another look
		if h.Field && failure != nil {                                   // a frame stands for its only field
			if inner, isFrame, _ := v.Inside(in, failure.Element); isFrame {
				in, look = inner, page.Locator{"css": ":root"}
				start, failure, err = try(in)
			}
		}
		if failure != nil {
			v.About(failure.Element, in)
		} else if err == nil {
			v.About(start.Element, in)
		}
		switch {
		case err != nil && time.Now().Before(until) && v.CanRetry("", err):
		case err != nil:
			return nil, err
		case failure == nil && start.Hidden && !woken:
			woken = true
			_ = wake(v) // on failure, the element acts as well as it can
		case failure == nil:
			if in != "" {
				if start, err = throughFrames(v, start, word); err != nil {
					return nil, err
				}
			}
			v.AskLate() // about the document of the previous act, if it is another one: this act may change it
			return start, nil
		case failure.Code != "no_match" && failure.Code != "not_ready" || time.Now().Add(late).After(until) ||
			failure.Lasts && time.Now().After(soon) || v.Ctx.Err() != nil:
			return nil, page.NotFound(v, failure, word)
		}
	}
}

// throughFrames converts the point of an element in a frame to a point of the page, and guards the frames around the
// element. It starts over after a frame had to be scrolled into view.
func throughFrames(v *page.Visit, start *begun, word string) (*begun, *api.Error) {
	what := fmt.Sprintf("%q is in a frame that", word)
	inner := *start
	for range maxScrolls {
		moved := false
		*start = inner
		err := v.Outward(start.in, what, func(in page.Frame, of page.Place, toView func(x, y float64) (float64,
			float64)) *api.Error {
			start.X, start.Y = toView(start.X, start.Y)
			start.To.X, start.To.Y = toView(start.To.X, start.To.Y)
			var held struct {
				Failure *page.Failure
				Moved   bool
			}
			err := v.Script(in, &held, "hold", of, start.X, start.Y)
			if err == nil && held.Failure != nil {
				return held.Failure.Exit(what)
			}
			start.around = append(start.around, in)
			if moved = held.Moved; moved && err == nil {
				return page.Exit("not_ready", what+" moves", nil) // its points have changed
			}
			return err
		})
		if !moved {
			return start, err
		}
	}
	return nil, page.Exit("not_ready", what+" moves", nil)
}

// maxScrolls is how often frames around an element are scrolled, one at a time.
const maxScrolls = 10

// act begins an act on an element, sends its input, and waits until the effects are over.
func act(v *page.Visit, word string, h how, send func(*begun) *api.Error) (*Effects, *api.Error) {
	start, err := begin(v, word, h)
	if err != nil {
		return nil, err
	}
	e, _, err := finish(v, start, send(start))
	return e, err
}

// pointAt sends pointer events to an element, such as a click. Events that the element does not receive are swallowed
// and sent again, until the time is up.
func pointAt(v *page.Visit, word string, h how, send func(*begun) *api.Error) (*Effects, *ended, *api.Error) {
	h.Guarded, h.All = true, true
	missed := "" // the element that a pointer event has not reached
	for until := time.Now().Add(cmp.Or(h.within, v.Patience())); ; {
		start, err := beginUntil(v, word, h, until)
		if err != nil && err.Exit == "no_match" && missed != "" {
			err = page.Exit("not_ready", missed+" went away when the pointer reached it", nil)
		}
		if err != nil {
			return nil, nil, err
		}
		e, last, err := finish(v, start, send(start))
		for _, in := range start.around {
			var outer ended
			if page.Leaving(v) == "" && v.Script(in, &outer, "landed") == nil && outer.Missed != nil && last != nil {
				last.Missed = outer.Missed
			}
		}
		switch {
		case err != nil:
			return nil, nil, err
		case last.Missed != nil && time.Now().Before(until):
			missed = start.Element.String()
			continue
		case last.Missed != nil:
			return nil, nil, page.Exit("not_ready", fmt.Sprintf("%s moves: the %s would have hit %s, so it was not sent",
				start.Element, h.verb, last.Missed), page.Object{"by": last.Missed})
		case !last.Received && !last.Changed && e.quiet():
			meant := start.Element
			if start.To.Ref != "" {
				meant = start.To.Element
			}
			return nil, nil, page.Exit("not_ready", fmt.Sprintf("%s did not receive the %s", meant, h.verb), nil)
		}
		return e, last, nil
	}
}

type clickParams struct {
	Element   string    `json:"element"`
	At        []float64 `json:"at"`
	Button    string    `json:"button"`
	Count     int       `json:"count"`
	Modifiers []string  `json:"modifiers"`
}

// click clicks an element or a point.
func click(v *page.Visit, p clickParams) (*Effects, *api.Error) {
	modifiers, err := modifierBits(p.Modifiers)
	h := how{Offset: p.At, verb: "click"}
	switch {
	case err != nil:
		return nil, err
	case p.Element == "":
		h.Offset = nil
		return act(v, "", h, func(*begun) *api.Error { return v.Input(clicks(p.At[0], p.At[1], p, modifiers)...) })
	}
	e, last, err := clickAt(v, p.Element, h, p, modifiers)
	if err == nil && last.Unclicked != "" {
		e.addNote("it " + last.Unclicked + " while it was pressed: the press reached it, the click did not")
	}
	return e, err
}

// pressAt clicks an element as a part of another act.
func pressAt(v *page.Visit, word string, h how) (*Effects, *ended, *api.Error) {
	h.verb = "click"
	return clickAt(v, word, h, clickParams{}, 0)
}

// clickAt clicks an element. It sends all events at once, except to an element that reacts to the pointer being over
// it before the click: the page needs a frame to show that.
func clickAt(v *page.Visit, word string, h how, p clickParams, modifiers int) (*Effects, *ended, *api.Error) {
	return pointAt(v, word, h, func(start *begun) *api.Error {
		all := clicks(start.X, start.Y, p, modifiers)
		if start.Hovers {
			if err := cmp.Or(v.Input(all[0]), v.Script(start.in, nil, "painted")); err != nil {
				return err
			}
			all = all[1:]
		}
		return v.Input(all...)
	})
}

// clicks returns the events of clicks at a point.
func clicks(x, y float64, p clickParams, modifiers int) (all []page.Object) {
	at := page.Object{"x": x, "y": y, "modifiers": modifiers}
	all = append(all, with(at, "type", "mouseMoved"))
	for i := range max(p.Count, 1) {
		press := with(with(at, "button", cmp.Or(p.Button, "left")), "clickCount", i+1)
		all = append(all, with(press, "type", "mousePressed"), with(press, "type", "mouseReleased"))
	}
	return all
}

// with returns a copy of an event with one more field.
func with(event page.Object, name string, value any) page.Object {
	more := maps.Clone(event)
	more[name] = value
	return more
}

type dragParams struct {
	Element string    `json:"element"`
	To      string    `json:"to"`
	By      []float64 `json:"by"`
}

// drag drags an element to another element of its document, or by some pixels. It uses the pointer; if that moves
// nothing and the element says that keys move it, it uses keys.
func drag(v *page.Visit, p dragParams) (*Effects, *api.Error) {
	h := how{verb: "drag"}
	switch {
	case p.To != "":
		h.To = v.Locate(p.To)
	case len(p.By) == 2:
		h.To = page.Locator{"by": p.By}
	default:
		return nil, page.Invalid("/to", "an element to drag to, or pixels in by", "nothing", "")
	}
	d := dragOnce(v, p.Element, h, 0)
	byKeys := d.isStill() && d.start.Keys != "" && d.start.Steps > 0
	if (d.isStill() || d.start != nil && d.start.Sorts && d.stays()) && !byKeys &&
		v.Patience() > 4*longPress*time.Millisecond {
		item := d.start.Element
		if again := dragOnce(v, cmp.Or(d.start.Grip, p.Element), h, longPress); again.start != nil {
			d, again.start.Element = again, item
		}
	}
	switch {
	case byKeys:
		return dragByKeys(v, d.start, d.was)
	case d.err != nil:
		return nil, d.err
	case d.dropped && !d.last.Received && d.was == d.now:
		return nil, page.Exit("not_ready", "it was dragged, but nothing accepted the drop", nil)
	case p.To != "" && d.start.Role != "Canvas" && (d.isStill() || d.start.Sorts && d.stays()):
		what := "the page did not change"
		if d.err == nil && d.last.Changed {
			what = "it is back where it was"
		}
		return nil, page.Exit("not_ready", d.start.Element.String()+" was dragged, but "+what+": drag its "+
			"handle if it has one, or try page.press if keys move it", nil)
	case p.To != "" && d.start.Role != "Canvas" && d.stays():
		d.e.addNote("it is back where it was")
	}
	d.e.On = d.start.on()
	if in := true; d.was != d.now && d.start.Role == "treeitem" && d.start.To.Role == "treeitem" &&
		v.Script(d.start.in, &in, "nests", d.start.Ref, d.start.To.Ref) == nil && !in {
		d.e.addNote("it is now beside " + d.start.To.Element.String() + ", not in it")
	}
	return d.e, nil
}

// dragged is the outcome of a drag by the pointer.
type dragged struct {
	start    *begun // nil: the drag did not begin
	was, now spot   // positions of the dragged element
	dropped  bool   // by the browser
	e        *Effects
	last     *ended
	err      *api.Error
}

// isStill reports whether a drag was made and changed nothing. A change that an item of a list shows only of itself
// does not count.
func (d *dragged) isStill() bool {
	return d.start != nil && d.was == d.now && (d.err != nil && d.err.Exit != "" ||
		d.err == nil && d.e.quiet() && (!d.last.Changed || d.stays() && d.start.Sorts && !d.last.Around))
}

// stays reports whether an element is where it was before a drag that the page handled.
func (d *dragged) stays() bool {
	return d.err == nil && !d.dropped && d.was == d.now && d.e.quiet() && d.last.Now == nil
}

// dragOnce drags an element by the pointer, which rests for some milliseconds before it moves and before it drops.
func dragOnce(v *page.Visit, word string, h how, hold int) *dragged {
	d := &dragged{}
	d.e, d.last, d.err = pointAt(v, word, h, func(start *begun) *api.Error {
		d.start, d.was, d.now = start, start.Spot, spot{}
		toX, toY, _ := aimed(start)
		sent, err := v.SendInput([]page.Object{
			{"type": "drag", "x": start.X, "y": start.Y, "toX": toX, "toY": toY, "hold": hold}}, func(to api.Drag) api.Drag {
			var now spot
			var at struct{ X, Y float64 }
			if start.To.Far && v.Script(start.in, &at, "reach", start.To.Ref) == nil {
				to.ToX, to.ToY = to.ToX+at.X-start.To.X, to.ToY+at.Y-start.To.Y
			} else if before := start.To.Spot; start.To.Ref != "" && v.Script(start.in, &now, "spot", start.To.Ref) == nil {
				to.ToX, to.ToY = to.ToX+float64(now.X-before.X), to.ToY+float64(now.Y-before.Y)
			}
			return to
		})
		if d.dropped = sent.Dragged; err == nil {
			_ = v.Script(start.in, &d.now, "spot", start.Ref) // the element may be gone
		}
		return err
	})
	return d
}

// longPress is how long the mouse is held, in ms, for a second attempt when a drag has moved nothing: some lists
// require it.
const longPress = 600

// spot is what the function spot of page.js returns: where an element is in its document.
type spot struct {
	X int `json:"x"`
	Y int `json:"y"`
}

// past is how far beyond the middle of the target item a dragged item is dropped to take its place, as a fraction of
// the target's size.
const past = 0.4

// aimed returns the point at which a drag ends, and the arrow key of its direction.
func aimed(start *begun) (x, y float64, arrow string) {
	x, y = start.To.X, start.To.Y
	right, down, part := x-start.X, y-start.Y, past*float64(min(start.Steps, 1))
	back, on, way := "ArrowUp", "ArrowDown", down
	if math.Abs(right) > math.Abs(down) {
		back, on, way = "ArrowLeft", "ArrowRight", right
		x += math.Copysign(part*start.To.Width, right)
	} else {
		y += math.Copysign(part*start.To.Height, down)
	}
	if way < 0 {
		on = back
	}
	return x, y, on
}

// modifierKeys finds the modifier with which arrow keys move an element that need not be lifted first.
var modifierKeys = lazy.Pattern(`(alt|ctrl|control|cmd|command|meta|shift)[ +]+(and |the )?(arrow|up|down)`)

// dragByKeys moves an element by the keys that its description names: arrow keys with a modifier, or arrow keys after
// a key that lifts the element.
func dragByKeys(v *page.Visit, lifted *begun, was spot) (*Effects, *api.Error) {
	_, _, arrow := aimed(lifted)
	says, now, modifiers := strings.ToLower(lifted.Keys), was, 0
	lift := key("Space", 0)
	if m := modifierKeys().FindStringSubmatch(says); m != nil {
		lift, modifiers = nil, modifierBit[m[1]]
	} else if !strings.Contains(says, "space") && strings.Contains(says, "enter") {
		lift = key("Enter", 0)
	}
	e, err := act(v, lifted.Ref, how{Focused: true, Covered: no, verb: "drag"}, func(start *begun) (err *api.Error) {
		look := func() *api.Error { return v.Script(start.in, &now, "spot", start.Ref) }
		if err = cmp.Or(sendKeys(v, lift), look()); err != nil {
			return err
		}
		step := func() (moved bool) {
			from := now
			// Some lists miss the first key while they measure themselves.
			for turn := 0; turn < 2 && err == nil && now == from; turn++ {
				if err = sendKeys(v, key(arrow, modifiers)); err == nil {
					err = v.Script(start.in, &now, "spot", start.Ref, from)
				}
			}
			return now != from
		}
		for left := lifted.Steps; left > 0 && step(); left-- {
		}
		return cmp.Or(err, sendKeys(v, lift), look()) // in any case, put down what was lifted
	})
	if err != nil {
		return nil, err
	}
	if now == was {
		return nil, page.Exit("not_ready", lifted.Element.String()+
			" was dragged, by the pointer and by keys, but did not move", nil)
	}
	e.addNote("by keys, since the pointer did not move it")
	return e, nil
}

type elementParams struct {
	Element string `json:"element"`
}

// hover moves the mouse to an element, starting beside it: pages that tell a mouse from touch input notice the mouse
// when it moves, not when it enters.
func hover(v *page.Visit, p elementParams) (*Effects, *api.Error) {
	return act(v, p.Element, how{To: page.Locator{"beside": true}, verb: "hover"}, func(start *begun) *api.Error {
		move := func(x, y float64) *api.Error { return v.Input(page.Object{"type": "mouseMoved", "x": x, "y": y}) }
		return cmp.Or(move(start.To.X, start.To.Y), move(start.X, start.Y)) // Chrome drops the first of two sent at once
	})
}

type uploadParams struct {
	Element   string   `json:"element"`
	Files     []string `json:"files"` // paths, which the host has copied for the page
	Downloads []string `json:"downloads"`
}

// uploaded is the result of upload.
type uploaded struct {
	Effects
	Files []uploadedFile `json:"files"`
}

// uploadedFile is a file that the page has.
type uploadedFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// upload gives files to a file input, or to the one that belongs to a label or a button.
func upload(v *page.Visit, p uploadParams) (*uploaded, *api.Error) {
	r, paths := &uploaded{}, p.Files
	for _, path := range p.Files {
		size := int64(0)
		if info, err := os.Stat(path); err == nil {
			size = info.Size()
		}
		r.Files = append(r.Files, uploadedFile{filepath.Base(path), size})
	}
	for _, name := range p.Downloads {
		list, _ := v.DownloadList()
		d, err := page.NamedDownload(list, name)
		if err != nil {
			return nil, err
		}
		paths = append(paths, d.Path)
		r.Files = append(r.Files, uploadedFile{d.Name, d.Bytes})
	}
	if len(paths) == 0 {
		return nil, page.Invalid("/files", "files, or downloads of the session", "none", "")
	}
	start, err := begin(v, p.Element, how{Files: len(paths), verb: "upload"})
	if err != nil {
		return nil, err
	}
	if start.Opener != "" {
		err = giveToOpener(v, start, paths)
	} else if t, _, failed := v.At(start.in); failed == nil {
		_, err = v.Call(start.in, verb.ScriptCall{Function: "chosen", Class: "Element",
			Use: v.Keeper.GiveFiles(v.Ctx, v.By, t, paths)})
	} else {
		err = failed
	}
	e, _, err := finish(v, start, err)
	if err != nil {
		return nil, err
	}
	r.Effects = *e
	for _, file := range r.Files {
		if start.Opener == "" && !accepts(start.Accept, file.Name) {
			r.addNote(fmt.Sprintf("the field asks for %s, and a person would not be offered %s", page.Clip(start.Accept, 60),
				page.Quote(page.Clip(file.Name, 60))))
			break
		}
	}
	return r, nil
}

// accepts reports whether a file has one of the types that a file input asks for: endings of names, and media types.
func accepts(types, name string) bool {
	ending := strings.ToLower(filepath.Ext(name))
	media, _, _ := strings.Cut(mime.TypeByExtension(ending), ";")
	return types == "" || slices.ContainsFunc(strings.Split(strings.ToLower(types), ","), func(one string) bool {
		one = strings.TrimSpace(one)
		family, all := strings.CutSuffix(one, "*")
		return one == ending || all && strings.HasPrefix(media, strings.TrimPrefix(family, "*/")) || one == media ||
			media == "" && strings.Contains(one, "/") // the type of the file is unknown
	})
}

// chooserTime is how long a click may take to open a chooser of files.
const chooserTime = 2 * time.Second

// pressed is the opener of a button or a similar element.
const pressed = "pressed"

// giveToOpener gives files to an element that is not a file input: it drops them on the element, or clicks the
// element and gives them to the file chooser that opens. An element that has something to click is clicked first,
// because some pages cover themselves when files are dragged over them.
func giveToOpener(v *page.Visit, start *begun, paths []string) *api.Error {
	if start.Opener != pressed {
		if dropped, err := drop(v, start, paths); err != nil || dropped {
			return err
		}
	}
	opened, err := openChooser(v, start)
	if start.Opener == pressed && err != nil && !page.IsDialog(err) && v.Dialog() == nil {
		if dropped, failed := drop(v, start, paths); failed != nil || dropped {
			return failed
		}
	}
	const none = "it takes no files: it is not a file input, nothing can be dropped on it, and a click on it "
	why := ""
	switch {
	case page.IsDialog(err) || opened.Mode == "" && v.Dialog() != nil:
		why = none + "has opened a dialog, which page.dialog answers"
	case err != nil:
		why = none + "opens no chooser"
	case opened.Node == 0:
		why = "it opens a chooser " + page.ByPerson
	case len(paths) > 1 && opened.Takes() == page.OneFile:
		why = "it takes only one file"
	}
	if why != "" {
		return (&page.Failure{Code: "not_ready", Element: start.Element, Why: why}).Exit("")
	}
	in := opened.Frame
	if in == page.Frame(v.Page.ID) {
		in = ""
	}
	t, _, err := v.At(in)
	if err == nil {
		paths, err = v.Keeper.FilesFor(v.By, t, paths)
	}
	if err == nil {
		err = send(v, t, "DOM.setFileInputFiles", page.Object{"files": paths, "backendNodeId": opened.Node})
	}
	return err
}

// openChooser clicks an element and returns the file chooser that opens.
func openChooser(v *page.Visit, start *begun) (opened page.Chooser, err *api.Error) {
	since := lastSeq(v)
	if err = v.Input(clicks(start.X, start.Y, clickParams{}, 0)...); err != nil {
		return opened, err
	}
	ctx, cancel := context.WithTimeout(v.Ctx, v.Within(chooserTime))
	defer cancel()
	return opened, v.Keeper.Events.AwaitRecords(ctx, func() (found bool) {
		records, _ := v.Records(since, page.ChooserOpened)
		for _, e := range records {
			found = json.Unmarshal(e.Params, &opened) == nil
		}
		return found || v.Dialog() != nil
	})
}

// drop drags files over an element, and drops them if the page accepts them there.
func drop(v *page.Visit, start *begun, paths []string) (dropped bool, err *api.Error) {
	if paths, err = v.Keeper.FilesFor(v.By, v.Page, paths); err != nil {
		return false, err
	}
	drag := func(kind string) {
		if err == nil {
			err = send(v, v.Page, "Input.dispatchDragEvent", page.Object{"type": kind, "x": start.X, "y": start.Y,
				"data": page.Object{"items": []any{}, "files": paths, "dragOperationsMask": 1}})
		}
	}
	drag("dragEnter")
	drag("dragOver")
	drag("dragOver") // the first event may have revealed the element that accepts files
	if err != nil || v.Script(start.in, &dropped, "takesDrop") != nil || !dropped {
		drag("dragCancel") // otherwise Chrome would open the file in place of the page
		return false, err
	}
	drag("drop")
	return true, err
}

// send sends a command with the rights of the keeper.
func send(v *page.Visit, t *target.Target, method string, params page.Object) *api.Error {
	_, err := v.Keeper.Tracker.Sender.Do(v.Ctx, t, method, scan.Marshal(params))
	return err
}

type typeParams struct {
	Text    string `json:"text"`
	Element string `json:"element"`
	Submit  bool   `json:"submit"`
}

// typeText types a text, key by key, at the end of the present text. It reports what a field holds instead of it.
func typeText(v *page.Visit, p typeParams) (*Effects, *api.Error) {
	start, err := begin(v, p.Element, how{Focused: true, Covered: no, Field: true, verb: "type"})
	if err != nil {
		return nil, err
	}
	if err = typeLines(v, start.in, p.Text); err == nil && p.Submit {
		err = v.Input(key("Enter", 0)...)
	}
	e, last, err := finish(v, start, err)
	if held := last.Value; err == nil && held != nil && len(*held) < 200 && letters(*held) != "" &&
		!strings.Contains(letters(*held), letters(p.Text)) {
		e.addNote("the field now holds " + page.Quote(page.Clip(*held, 80)))
	}
	return e, err
}

// typeLines types a text key by key. Before each further line it waits for a frame: some editors break the line only
// then.
func typeLines(v *page.Visit, in page.Frame, text string) (err *api.Error) {
	for i, line := range strings.SplitAfter(text, "\n") {
		if i > 0 && line != "" {
			_ = v.Script(in, nil, "painted") // the page may be gone
		}
		if err = sendKeys(v, keysOf(line)); err != nil {
			break
		}
	}
	return err
}

// keysOf returns the events of the keys that type a text.
func keysOf(text string) (events []page.Object) {
	for _, r := range text {
		switch r {
		case '\n', '\r':
			events = append(events, key("Enter", 0)...)
		case '\t':
			events = append(events, key("Tab", 0)...)
		default:
			events = append(events, key(string(r), 0)...)
		}
	}
	return events
}

// sendKeys sends key events, in batches of the size that the keeper accepts.
func sendKeys(v *page.Visit, events []page.Object) (err *api.Error) {
	for part := range slices.Chunk(events, 1000) {
		if err = v.Input(part...); err != nil {
			break
		}
	}
	return err
}

type pressParams struct {
	Key     string `json:"key"`
	Element string `json:"element"`
	Count   int    `json:"count"`
}

// press presses a key or a combination.
func press(v *page.Visit, p pressParams) (*Effects, *api.Error) {
	one, err := combination(p.Key)
	if err != nil {
		return nil, err
	}
	h := how{Focused: true, Covered: no, verb: "press " + page.Clip(p.Key, 40)}
	return act(v, p.Element, h, func(*begun) *api.Error { return v.Input(slices.Repeat(one, max(p.Count, 1))...) })
}

type checkParams struct {
	Element string `json:"element"`
	Off     bool   `json:"off"`
}

// check checks or unchecks a box by a click, unless it is in that state already.
func check(v *page.Visit, p checkParams) (*Effects, *api.Error) {
	start, err := begin(v, p.Element, how{verb: "check"})
	if err != nil {
		return nil, err
	}
	if slices.Contains(strings.Fields("textbox searchbox combobox listbox slider spinbutton"), start.Role) {
		return nil, page.Exit("not_ready", start.Element.String()+" has no state; page.fill fills in a field, "+
			"page.select chooses in a list", nil)
	}
	if start.Checked != nil && *start.Checked == !p.Off {
		return &Effects{On: start.Element.String(), Note: "it is so already"}, nil
	}
	e, last, err := pressAt(v, p.Element, how{})
	if err != nil {
		return nil, err
	}
	switch same := last.Document == start.Document && last.Value != nil; {
	case same && last.Checked == nil && last.Changed:
		e.addNote("it was clicked, and does not say whether it is checked")
	case same && (last.Checked == nil || *last.Checked == p.Off):
		return nil, page.Exit("not_accepted", start.Element.String()+
			" received the click and did not change; if it does something else, page.click is enough", nil)
	}
	return e, nil
}

type scrollParams struct {
	Element string    `json:"element"`
	By      []float64 `json:"by"`
	To      string    `json:"to"`
}

// scroll scrolls the page or an element.
func scroll(v *page.Visit, p scrollParams) (*Effects, *api.Error) {
	start, err := begin(v, p.Element, how{Covered: no, Seek: p.By == nil, verb: "scroll"})
	if err != nil {
		return nil, err
	}
	switch {
	case p.To != "":
		err = v.Script(start.in, nil, "scrollEnd", start.Ref, p.To)
	case len(p.By) == 2:
		x, y := start.X, start.Y
		if p.Element == "" {
			x, y = 20, 20
		}
		err = v.Input(page.Object{"type": "mouseWheel", "x": x, "y": y, "deltaX": p.By[0], "deltaY": p.By[1]})
	case p.Element == "":
		err = v.Input(page.Object{"type": "mouseWheel", "x": 20, "y": 20, "deltaX": 0, "deltaY": 600})
	default:
		start.expected = true // aiming at the element has scrolled it into view
	}
	e, _, err := finish(v, start, err)
	return e, err
}
