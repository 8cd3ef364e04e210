package act

import (
	"cmp"
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
	want float64       // NaN: it stays
	keys []page.Object // for it, in the place of a number
}

// setParts gives a number, a date or a time to a slider or spin button, or to a group of spin buttons. It leaves them
// as they were if one of them does not take its number.
func (start *begun) setParts(v *page.Visit, value string) *api.Error {
	all := []part{{Element: start.Element, Held: start.Held}}
	var wrong error
	if start.Role == "slider" || start.Role == "spinbutton" {
		all[0].want, wrong = strconv.ParseFloat(value, 64)
	} else {
		var found struct{ Parts []part }
		if err := v.Script(start.in, &found, "parts", start.Ref); err != nil {
			return err
		}
		if all = found.Parts; len(all) == 0 {
			return page.Exit("not_ready", start.Element.String()+" is not a field; page.click presses it", nil)
		}
		wrong = setWants(all, value)
	}
	if wrong != nil {
		return start.refused(value, "")
	}
	taken, err := setAll(v, start.in, all)
	if taken || err != nil {
		return err
	}
	for i, p := range all {
		if all[i].want, wrong = strconv.ParseFloat(p.Held, 64); wrong != nil { // it was empty
			all[i].want, all[i].keys = math.NaN(), slices.Repeat(key("Backspace", 0), 4)
		}
	}
	_, err = setAll(v, start.in, all)
	return cmp.Or(err, start.refused(value, ""))
}

// setAll gives parts their numbers, until one does not take its.
func setAll(v *page.Visit, in page.Frame, all []part) (taken bool, err *api.Error) {
	for _, p := range all {
		if taken, err = p.set(v, in); !taken || err != nil {
			break
		}
	}
	return taken, err
}

// set gives a slider or spin button its number: it types it, or presses arrow keys as often as what one press does
// says. It reports whether the number was taken.
func (p part) set(v *page.Visit, in page.Frame) (taken bool, err *api.Error) {
	if math.IsNaN(p.want) && p.keys == nil {
		return true, nil
	}
	if err = v.Script(in, nil, "focusOn", p.Ref); err == nil && p.keys != nil {
		return true, sendKeys(v, p.keys)
	}
	now := 0.0
	press := func(events []page.Object) (moved float64) {
		before, shown := now, field{}
		if err == nil {
			err = cmp.Or(sendKeys(v, events), v.Script(in, &shown, "held", p.Ref, false))
		}
		now, _ = strconv.ParseFloat(shown.Held, 64)
		return now - before
	}
	var digits []page.Object
	if text := strconv.FormatFloat(p.want, 'f', -1, 64); p.Role == "spinbutton" {
		digits = keysOf(strings.Repeat("0", max(len(strconv.Itoa(int(p.Max)))-len(text), 0)) + text)
	}
	press(digits)
	for range 20 { // what a press does can differ from place to place
		was := now
		for _, arrow := range []string{"ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"} {
			if err != nil || math.Abs(now-p.want) < 1e-9 {
				return true, err
			}
			if one := press(key(arrow, 0)); one*(p.want-now) > 0 {
				press(slices.Repeat(key(arrow, 0), min(int((p.want-now)/one+1e-6), 5000)))
			}
		}
		if now == was {
			break
		}
	}
	return false, err
}

// segmentNames finds in the name of a segment what it is. The layouts are those of what segments take, and their parts.
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

// setWants says for each segment what a date or a time wants it to be. A segment says by its name, or else by its
// largest number, what it is.
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
