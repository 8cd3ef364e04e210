package act

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/internal/lazy"
)

// part is a slider, a spin button, or a segment of a field.
type part struct {
	page.Element
	Held string
	Max  float64
	want float64       // NaN: unchanged
	keys []page.Object // keys to press instead of a number
}

// setParts gives a number, a date or a time to a slider or spin button, or to a group of spin buttons, and a text to
// fields of one character each. It restores all of them if one does not accept its part.
func (start *begun) setParts(v *page.Visit, value string) (note string, err *api.Error) {
	all := []part{{Element: start.Element, Held: start.Held}}
	var wrong error
	if start.Role == "slider" || start.Role == "spinbutton" {
		all[0].want, wrong = strconv.ParseFloat(value, 64)
	} else {
		var found struct {
			Parts []part
			Near  []page.Element
		}
		if err := v.Script(start.in, &found, "parts", start.Ref); err != nil {
			return "", err
		}
		switch all = found.Parts; {
		case len(all) == 0 && len(found.Near) > 0:
			return "", (&page.Failure{Code: "not_ready", Element: start.Element, Near: found.Near,
				Why: "it is not a field itself"}).Exit("")
		case len(all) == 0:
			return "", page.Exit("not_ready",
				start.Element.String()+" is not a field; page.click presses it, page.drag moves it", nil)
		case all[0].Role != "spinbutton":
			return "", start.setBoxes(v, all, value)
		}
		wrong = setWants(all, value)
		start.Takes = append(start.Takes, [2]string{"type", "segments"})
	}
	if wrong != nil {
		return "", start.refused(value, "")
	}
	taken, between, err := setAll(v, start.in, all)
	if taken || err != nil {
		return "", err
	}
	if len(all) == 1 && start.Role == "slider" {
		held, err := start.setByPointer(v, all[0].want)
		if near, _ := strconv.ParseFloat(held, 64); held != "" && math.Abs(near-all[0].want) > 1e-9 {
			return "the pointer brought it to " + held, nil
		}
		if held != "" || err != nil {
			return "", err
		}
	}
	for i, p := range all {
		if all[i].want, wrong = strconv.ParseFloat(p.Held, 64); wrong != nil { // it was empty
			all[i].want, all[i].keys = math.NaN(), slices.Repeat(key("Backspace", 0), 4)
		}
	}
	back, _, err := setAll(v, start.in, all)
	if err != nil {
		return "", err
	}
	var now field
	if len(all) == 1 && v.Script(start.in, &now, "held", start.Ref, stays, true) == nil {
		back = back && now.Held == start.Held
	}
	err = start.refused(value, "")
	if len(between) > 0 && len(all) == 1 {
		err.Message = strings.Replace(err.Message, leftAlone,
			"; the nearest that it accepts: "+strings.Join(between, " and ")+leftAlone, 1)
	}
	if !back {
		err.Message = strings.Replace(err.Message, leftAlone, "; it could not be set back", 1)
	}
	return "", err
}

// setBoxes gives each of some fields one character of a text.
func (start *begun) setBoxes(v *page.Visit, all []part, value string) *api.Error {
	given, typed := strings.Split(value, ""), 0
	look := func(p part) (now field, err *api.Error) {
		err = v.Script(start.in, &now, "held", p.Ref, stays, true)
		return now, err
	}
	if len(given) == len(all) {
		for i, p := range all {
			err := cmp.Or(v.Script(start.in, nil, "focusOn", p.Ref), sendKeys(v, keysOf(given[i])))
			now, failed := look(p)
			if err = cmp.Or(err, failed); err != nil {
				return err
			}
			if now.Held == given[i] {
				typed++
			}
		}
	}
	if typed == len(all) {
		return nil
	}
	err, last := start.refused(value, ""), ""
	err.Message = strings.TrimSuffix(err.Message, leftAlone) +
		fmt.Sprintf(", one character in each of %d fields", len(all))
	for _, p := range all {
		if failed := v.Script(start.in, nil, "assign", p.Ref, p.Held, stays); failed != nil {
			return failed
		}
		now, failed := look(p)
		if failed != nil {
			return failed
		}
		if now.Held != p.Held {
			last = "; " + p.Element.String() + " now holds " + page.Quote(page.Clip(now.Held, 40))
		}
	}
	err.Message += cmp.Or(last, leftAlone)
	return err
}

// setByPointer sets a slider that keys do not move, or only by larger steps. It drags the handle, or presses on the
// track, where the number should be, and corrects from the number that this sets. It returns the number that was set,
// which differs by a pixel at most, or "".
func (start *begun) setByPointer(v *page.Visit, want float64) (held string, err *api.Error) {
	var at *struct {
		X, Y, Left, Top, Width, Height, Low, High float64
		Handle, Upright                           bool
	}
	now, aim, off := field{}, want, math.Inf(1)
	look := func() *api.Error { return v.Script(start.in, &now, "held", start.Ref, stays, true) }
	err = look() // keys may have moved it
	for turn := 0; turn < 7 && start.in == "" && err == nil; turn++ {
		is, wrong := strconv.ParseFloat(now.Held, 64)
		rest := math.Abs(is - want)
		if wrong == nil && rest < 1e-9 {
			return now.Held, nil
		}
		if turn > 0 && wrong == nil && at.Handle && rest >= off { // it has steps, or a pixel is more than the rest
			if rest <= (at.High-at.Low)/max(at.Width, at.Height) {
				return now.Held, nil
			}
			break
		}
		if turn > 0 {
			aim = min(max(aim+(want-is)*.6, at.Low), at.High)
		}
		off = rest
		if err = v.Script("", &at, "track", start.Ref); err != nil || turn > 0 && wrong != nil || at == nil ||
			at.High <= at.Low || want < at.Low || want > at.High {
			break
		}
		part, left, bottom := (aim-at.Low)/(at.High-at.Low), at.Left, at.Top+at.Height
		if at.Handle && wrong == nil { // its track may move with it
			part, left, bottom = (want-is)/(at.High-at.Low), at.X, at.Y
		}
		x, y := left+part*at.Width, at.Top+at.Height/2
		if at.Upright {
			x, y = at.Left+at.Width/2, bottom-part*at.Height
		}
		if at.Handle {
			err = v.Input(page.Object{"type": "drag", "x": at.X, "y": at.Y, "toX": x, "toY": y})
		} else {
			err = v.Input(clicks(min(max(x, at.Left+1), at.Left+at.Width-1), min(max(y, at.Top+1), at.Top+at.Height-1),
				clickParams{}, 0)...)
		}
		err = cmp.Or(err, look())
	}
	if now.Held != "" && now.Held != start.Held {
		if was, wrong := strconv.ParseFloat(start.Held, 64); wrong == nil && was != want {
			_, err = start.setByPointer(v, was)
		}
	}
	return "", err
}

// setAll gives parts their numbers, until one does not accept its number. between has the numbers next to one that
// was skipped, and is nil if nothing has moved.
func setAll(v *page.Visit, in page.Frame, all []part) (taken bool, between []string, err *api.Error) {
	for _, p := range all {
		if taken, between, err = p.set(v, in); !taken || err != nil {
			break
		}
	}
	return taken, between, err
}

// set gives a slider or spin button its number: it types the number, or presses arrow keys, as often as the effect of
// one press requires. taken reports whether the number was accepted. between has the accepted numbers next to it.
func (p part) set(v *page.Visit, in page.Frame) (taken bool, between []string, err *api.Error) {
	if math.IsNaN(p.want) && p.keys == nil {
		return true, nil, nil
	}
	if err = v.Script(in, nil, "focusOn", p.Ref); err == nil && p.keys != nil {
		return true, nil, sendKeys(v, p.keys)
	}
	now, below, above := 0.0, math.Inf(-1), math.Inf(1)
	press := func(events []page.Object) (moved float64) {
		before, shown := now, field{}
		if err == nil {
			err = cmp.Or(sendKeys(v, events), v.Script(in, &shown, "held", p.Ref, stays))
		}
		if now, _ = strconv.ParseFloat(shown.Held, 64); now < p.want {
			below = max(below, now)
		} else {
			above = min(above, now)
		}
		return now - before
	}
	var digits []page.Object
	if text := strconv.FormatFloat(p.want, 'f', -1, 64); p.Role == "spinbutton" {
		digits = keysOf(strings.Repeat("0", max(len(strconv.Itoa(int(p.Max)))-len(text), 0)) + text)
	}
	press(digits)
	first, still := now, true
	for range 20 { // the effect of a press can differ between positions
		was := now
		for _, arrow := range []string{"ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"} {
			for range 200 {
				if err != nil || math.Abs(now-p.want) < 1e-9 {
					return true, nil, err
				}
				one := press(key(arrow, 0))
				still = still && now == first
				if one*(p.want-now) <= 0 {
					break
				}
				press(slices.Repeat(key(arrow, 0), min(int((p.want-now)/one+1e-6), 5000)))
			}
		}
		if now == was {
			break
		}
	}
	if still {
		return false, nil, err
	}
	between = []string{}
	for _, n := range []float64{below, above} {
		if !math.IsInf(n, 0) {
			between = append(between, strconv.FormatFloat(n, 'f', -1, 64))
		}
	}
	return false, between, err
}

// segmentNames identifies a segment by its name. segmentLayouts are the layouts of values that are split into
// segments.
var (
	segmentNames   = lazy.Pattern(`year|month|day ?period|meridiem|am/pm|day|hour|minute|second`)
	segmentLayouts = []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01", "15:04", "15:04:05"}
	layoutParts    = map[string]string{"year": "2006", "month": "01", "day": "02", "hour": "15", "minute": "04",
		"second": "05"}
	largest = []struct {
		number float64
		name   string
	}{{12, "month"}, {24, "hour"}, {31, "day"}, {59, "minute"}, {math.Inf(1), "year"}}
)

// setWants computes the value of each segment for a date or a time. A segment is identified by its name, or else by
// its largest number.
func setWants(all []part, value string) (err error) {
	for _, layout := range segmentLayouts {
		var t time.Time
		if t, err = time.Parse(layout, value); err != nil {
			continue
		}
		for i, p := range all {
			name := segmentNames().FindString(strings.ToLower(p.Name))
			for _, l := range largest {
				if name == "" && p.Max <= l.number {
					name = l.name
				}
			}
			form := layoutParts[name]
			switch all[i].want = math.NaN(); {
			case form == "" && strings.Contains(layout, "15"):
				all[i].keys = keysOf(strings.ToLower(t.Format("PM"))[:1])
			case !strings.Contains(layout, form):
			case name == "hour" && p.Max <= 12:
				form = "03"
				fallthrough
			default:
				all[i].want, _ = strconv.ParseFloat(t.Format(form), 64)
			}
		}
		return nil
	}
	return err
}
