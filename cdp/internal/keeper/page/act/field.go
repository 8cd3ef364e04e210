package act

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/internal/lazy"
)

// field is what page.js reports of a field.
type field struct {
	Picker, Select, Editable bool
	List, Input              bool        // List: it shows what is chosen in a list; Input: it is an input
	Open, Invalid            bool        // Open: it shows a list; Invalid: its value keeps the form from being sent
	Focused                  bool        // the page has the focus
	Gone, Stayed             bool        // Gone: it disappeared when it was left; Stayed: it was not left
	Took, Tags               bool        // Took: the page took its text when it was left; Tags: it makes tags of texts
	Boxes                    bool        // it takes the first character of the value; later fields take the others
	Completes                bool        // until it is left, it may list completions of a text
	Held, Would              string      // Held: its value; Would: what the browser would make of the new value
	Calendars                bool        // the page has something that may be a calendar
	Ended                    *ended      // the result of the act, if it is over
	Month                    string      // the month that its calendar shows, such as: March 2026
	Takes                    [][2]string // what its attributes say about values
}

type fillParams struct {
	Element string  `json:"element"`
	Value   *string `json:"value"`
	Secret  string  `json:"secret"`
	Submit  bool    `json:"submit"`
}

// filled is the result of fill.
type filled struct {
	Effects
	Value string `json:"value,omitempty"` // the value that the field has now, if it differs from the given one
}

// Step implements [page.Step].
func (f *filled) Step() (string, any) {
	url, rest := f.Effects.Step()
	if f.Value == "" {
		return url, rest
	}
	return url, filled{f.Effects.told(), f.Value}
}

// fill replaces the value of a field. A field that does not accept the value keeps its old one.
func fill(v *page.Visit, p fillParams) (*filled, *api.Error) {
	value := *cmp.Or(p.Value, new(string))
	start, err := begin(v, p.Element, how{Focused: true, All: true, Covered: no, Edit: true, Field: true, Value: value,
		verb: "fill"})
	if err != nil {
		return nil, err
	}
	if !start.Editable && (start.Select || start.List || start.Role == "listbox") && p.Secret == "" {
		e, err := start.choose(v, []string{value})
		if err == nil && p.Submit {
			e, err = press(v, pressParams{Key: "Enter", Element: start.Ref})
		}
		if err != nil {
			return nil, err
		}
		return &filled{Effects: *e}, nil
	}
	note := ""
	switch {
	case p.Secret != "":
		secret := v.Secrets[p.Secret]
		_, err = v.Keeper.Type(v.Ctx, v.By, v.Scope, api.TypeRequest{Target: v.Page.ID, Text: secret.Text,
			Origins: secret.Origins})
	default:
		note, err = start.set(v, value, p.Submit)
	}
	if err == nil && p.Submit {
		err = v.Input(key("Enter", 0)...)
	}
	if err != nil && err.Code == api.CodeExit {
		_, _, _ = finish(v, start, nil) // a failed attempt needs no report
		return nil, err
	}
	start.expected = !p.Submit
	e, last, err := finish(v, start, err)
	if err != nil {
		return nil, err
	}
	r := &filled{Effects: *e}
	if last.Document != start.Document {
		return r, nil
	}
	r.addNote(note)
	if last.Value == nil || start.Gone || p.Secret != "" || p.Submit || start.Boxes || !start.Editable && !start.Picker {
		return r, nil
	}
	if !same(*last.Value, value) {
		if !fits(*last.Value, value, "") && !endsPhone(*last.Value, value) { // accepted, and changed later
			return nil, start.restore(v, stays, value, *last.Value)
		}
		r.Value = *last.Value
		r.addNote("the field shows it in another form")
	}
	if last.Open {
		r.addNote("its list is open, and no option is chosen: page.select chooses one")
	}
	return r, nil
}

// leaving is how a field is left after it was filled, so that the page reads its value.
type leaving string

const (
	stays   leaving = ""     // it keeps the focus, for what follows, such as Enter
	tabbed  leaving = "blur" // by Tab, as a person does
	andBack leaving = "back" // it gets the focus back
)

// leave returns how a field is left. A field with a date or a number is left by Tab, since many fields read such
// values only then, also one that might list completions. Another field is left and gets the focus back, unless it is
// to stay, or may list completions of the text.
func (start *begun) leave(value string, stay bool) leaving {
	number := slices.Contains(start.Takes, [2]string{"type", "number"})
	switch {
	case !start.Editable || stay:
		return stays
	case isDate().MatchString(value) || isDate().MatchString(start.Held) || len(readings(value)) > 0 ||
		dateForm().MatchString(inEnglish.Replace(hintOf(start.Takes))) || start.Role == "spinbutton" && !number,
		start.List && isNumber().MatchString(value) && isNumber().MatchString(start.Held):
		return tabbed
	}
	plain := slices.ContainsFunc(start.Takes, func(says [2]string) bool {
		return says[0] == "type" && slices.Contains([]string{"number", "password", "email", "tel", "url"}, says[1])
	})
	if !start.Input || start.List || start.Completes && !plain {
		return stays
	}
	return andBack
}

// set gives a field a value. It tries the ways for the field's kind, one after the other, until the field holds the
// value.
func (start *begun) set(v *page.Visit, value string, stay bool) (note string, err *api.Error) {
	typed := inForm(value, hintOf(start.Takes))
	insert := func() *api.Error { return start.insert(v, typed) }
	byKeys := func() *api.Error { return start.typeKeys(v, typed) }
	ways := []func() *api.Error{insert, byKeys}
	switch {
	case !fits(start.Would, value, ""): // the field would lose its present value
		return "", start.refused(value, "")
	case start.Picker:
		note = "set by value: this field has a picker of the browser"
		ways = []func() *api.Error{func() *api.Error { return put(v, start, "assign", value) }}
		if start.Role == "slider" {
			ways = append(ways, func() (err *api.Error) {
				note, err = start.setParts(v, value)
				return err
			})
		}
	case !start.Editable || start.Boxes:
		return start.setParts(v, value)
	}
	leave, before, others, asked := start.leave(value, stay || start.Picker), start.Held, []string(nil), false
	if leave == tabbed {
		ways = append(ways, func() *api.Error { return cmp.Or(byKeys(), v.Input(key("Enter", 0)...)) },
			func() *api.Error { return typeDigits(v, typed) })
		forms := otherForms(value, start.Held, typed, start.Calendars)
		if dateParts().MatchString(start.Held) && len(forms) > 0 {
			typed, others, asked = forms[0], append(forms[1:], typed), true
		}
	}
	now, rest := field{}, page.Object(nil)
	if afterEffect, _ := pace(v); afterEffect == 0 && !stay && leave != tabbed {
		rest = page.Object{"quiet": 0, "still": 0}
		if start.inserts(leave, typed) {
			rest["insert"], ways[0] = typed, func() *api.Error { return nil }
		}
	}
	for i := 0; i < len(ways); i++ {
		if err = ways[i](); err == nil && leave == tabbed && start.Input { // as a person does: some pages notice nothing else
			err = v.Input(key("Tab", 0)...)
		}
		if err == nil {
			err = v.Script(start.in, &now, "held", start.Ref, leave, false, typed, rest)
		}
		if start.Gone = now.Gone || now.Took; err == nil && start.Gone {
			return now.left(stay), nil
		}
		last := i == len(ways)-1
		taken := err == nil && !now.Invalid && fits(now.Held, typed, before) && (last || leave != tabbed || !now.Open)
		if taken = taken && (start.Input || i == 0 || same(now.Held, typed)); taken && leave == tabbed {
			taken, err = start.inCalendar(v, value)
		}
		if taken || err != nil {
			start.Ended = now.Ended
			return cmp.Or(now.left(stay || typed == ""), note), err
		}
		before = "" // a text that is left after it was deleted belongs to the field
		delete(rest, "insert")
		if err = v.Script(start.in, nil, "focusOn", start.Ref); err != nil {
			return note, err
		}
		if !asked && leave == tabbed { // the text that the field has made shows its form
			others = otherForms(value, cmp.Or(now.Held, start.Held), typed, now.Calendars || start.Month != "")
			if asked = last || len(others) == 1; !asked && now.Held == "" && len(others) > 0 { // the date was not kept
				others, asked, last = append(others, typed), true, true
			}
		}
		if len(others) > 0 && (len(others) == 1 || last) {
			typed, others = others[0], others[1:]
			ways, i = ways[:min(len(ways), 3)], -1
		}
	}
	return "", start.restore(v, leave, value, now.Held)
}

// insert replaces what is selected in a field, all at once: an editor would indent typed lines, and close brackets.
func (start *begun) insert(v *page.Visit, text string) *api.Error {
	switch {
	case text == "":
		return v.Input(key("Delete", 0)...)
	case start.Proxy:
		return put(v, start, "assign", text)
	}
	return v.Input(page.Object{"type": "insertText", "text": text})
}

// typeKeys types a text in place of what is selected. Some editors notice in the next frame what is selected.
func (start *begun) typeKeys(v *page.Visit, text string) *api.Error {
	_ = v.Script(start.in, nil, "painted")
	return cmp.Or(v.Input(key("Delete", 0)...), typeLines(v, start.in, text))
}

// endsPhone reports whether a text is the end of a phone number that begins with the country's code.
func endsPhone(text, number string) bool {
	return letters(text) != "" && strings.HasPrefix(number, "+") && strings.HasSuffix(letters(number), letters(text))
}

// typeDigits types the digits of a date. It is for fields in which a complete part selects the next one in a later
// frame.
func typeDigits(v *page.Visit, date string) *api.Error {
	digits := strings.Join(figure().FindAllString(date, -1), "")
	for one := range slices.Chunk(slices.Concat(key("Backspace", 0), keysOf(digits)), 1) {
		if err := v.Input(one...); err != nil || !v.Pause(20*time.Millisecond) {
			return err
		}
	}
	return nil
}

// inserts reports whether page.js itself can insert a text, as a keyboard would. The page has the focus then.
func (start *begun) inserts(leave leaving, text string) bool {
	return leave == andBack && start.Focused && text != "" && !strings.ContainsAny(text, "\r\n")
}

// left describes what happened to a filled field when it was left. submitted means that the caller need not do
// anything more.
func (now field) left(submitted bool) string {
	switch {
	case now.Took:
		return "the page took the text when the field was left, and shows it next to the field"
	case now.Gone:
		return "it went away when it lost the focus"
	case now.Tags && !submitted:
		return "it holds a text, which is not a tag yet: page.press Enter makes it one"
	case now.Stayed:
		return "it keeps the focus, as a list for the text may be shown; if the page reads it only then: page.press Tab"
	}
	return ""
}

// inCalendar reports whether the calendar that a field shows while it has the focus shows the date. It returns true
// for a field without a calendar. Some pages keep a text that they cannot read, or do not read.
func (start *begun) inCalendar(v *page.Visit, value string) (shown bool, err *api.Error) {
	var wanted []page.Object
	for _, t := range readings(value) {
		wanted = append(wanted, page.Object{"month": t.Format("January 2006"), "day": t.Day()})
	}
	if len(wanted) == 0 {
		return true, nil
	}
	var now struct {
		Comes, Shown bool // Comes: it may open with the focus; Shown: it shows the date
		Month        string
	}
	if err = v.Script(start.in, &now, "callCalendar", start.Ref); err != nil || !now.Comes {
		return true, err
	}
	// After Tab at the end of the page, the page gets the focus back only with the next key.
	err = cmp.Or(v.Input(key("Shift", 0)...), v.Script(start.in, &now, "calendar", start.Ref, wanted),
		v.Input(key("Tab", 0)...))
	start.Month = now.Month
	return now.Shown, err
}

// restore gives a field the value that it had before, and returns the error for a field that did not accept a value.
// For many fields deleting the value is enough, and masked fields handle that better.
func (start *begun) restore(v *page.Visit, leave leaving, value, made string) *api.Error {
	var now field
	look := func() *api.Error { return v.Script(start.in, &now, "held", start.Ref, stays, true) }
	err := look()
	for _, name := range []string{"Delete", "Backspace"} { // some fields know only Backspace
		if err == nil && now.Held != start.Held && now.Held != "" && start.Input && start.Editable && !start.Picker {
			err = cmp.Or(v.Script(start.in, nil, "focusOn", start.Ref), v.Input(key(name, 0)...), look())
		}
	}
	for range maxUndos {
		if err != nil || now.Held == start.Held || !start.Editable || start.Input {
			break
		}
		err = cmp.Or(v.Input(key("z", modifierBit["control"])...), look())
	}
	if err == nil && now.Held != start.Held {
		err = put(v, start, "assign", start.Held, stays)
	}
	if err == nil && leave == tabbed && start.Input {
		err = v.Input(key("Tab", 0)...)
	}
	if err == nil {
		err = cmp.Or(v.Script(start.in, &now, "held", start.Ref, leave, true), start.refused(value, made))
	}
	if leave == andBack && made == start.Held {
		err.Message += "; if Enter commits it: submit true"
	}
	if now.Held != start.Held {
		err.Message = strings.TrimSuffix(err.Message, leftAlone) + "; it now holds " + page.Quote(page.Clip(now.Held, 40))
	}
	return err
}

// maxUndos is how often an editor is asked to undo. Undoing also restores what a text does not have, such as links.
const maxUndos = 5

// leftAlone ends the error of a field that has kept its old value.
const leftAlone = "; it was left unchanged"

// forms describes the values that types of inputs take.
var forms = map[string]string{"number": "a number", "range": "a number", "color": "a colour such as #ff8800",
	"date": "a date such as 2026-01-31", "month": "a month such as 2026-01", "week": "a week such as 2026-W05",
	"time": "a time such as 13:45", "datetime-local": "a time such as 2026-01-31T13:45",
	"segments": "a date such as 2026-01-31, or a time such as 13:45", "email": "an e-mail address",
	"url": "an address such as https://example.com"}

// hintOf returns what a field says about values, in lower case.
func hintOf(takes [][2]string) string { return strings.ToLower(fmt.Sprint(takes)) }

// refused returns the error of a field that does not accept a value. It says what the field accepts, as far as known,
// and what the field made of the value.
func (start *begun) refused(value, made string) *api.Error {
	why := "it does not take " + page.Quote(page.Clip(value, 40))
	if made != "" && made != value && made != start.Held && !slices.Contains(start.Takes, [2]string{"type", "password"}) {
		why += " and turned it into " + page.Quote(page.Clip(made, 40))
	}
	if start.Month != "" {
		why += ", and its calendar, in which page.click chooses a day, stays at " + start.Month
	}
	sep := "; it takes "
	for _, says := range start.Takes {
		if form := cmp.Or(forms[says[1]], says[0]+" "+page.Clip(says[1], 60)); says[0] != "type" || forms[says[1]] != "" {
			why, sep = why+sep+form, ", "
		}
	}
	if dates := readings(value); len(dates) > 0 && start.Editable && sep != ", " {
		why += "; it names no date format, and may take " + dates[0].Format("02.01.2006, 01/02/2006 or 2 Jan 2006")
	}
	return (&page.Failure{Code: "not_accepted", Element: start.Element, Why: why + leftAlone}).Exit("")
}

var (
	// isDate matches dates and times in figures. Text fields read them when they are left.
	isDate   = lazy.Pattern(`^\d{4}-\d\d(-\d\d)?\b|^\d{1,2}[-./]\d{1,2}[-./](\d\d|\d{4})$|^\d{1,2}:\d\d`)
	isNumber = lazy.Pattern(`^-?\d+([.,]\d+)?$`)
	// dateForm and hourForm match the form of a date, and of a time on a 12-hour clock, that a field asks for.
	dateForm = lazy.Pattern(`\b(dd?|m{1,4}|yy(yy)?)[-./, ]+(dd?|m{1,4})[-./, ]+(dd?|mm?|yy(yy)?)\b`)
	hourForm = lazy.Pattern(`\bhh?:mm ?(aa?|am|pm)\b`)
	layout   = strings.NewReplacer("yyyy", "2006", "yy", "06", "mmmm", "January", "mmm", "Jan", "mm", "01", "m", "1",
		"dd", "02", "d", "2")
	// inEnglish replaces the letters of date forms in German, French, Spanish and Dutch with the English ones.
	inEnglish = strings.NewReplacer("tt", "dd", "jjjj", "yyyy", "aaaa", "yyyy", "jj", "dd")
	// dateLayouts are the layouts in which people write a date.
	dateLayouts = strings.Split("2006-1-2|2006-01-02T15:04|2006-01-02 15:04|2.1.2006|1/2/2006|2/1/2006|1-2-2006|2-1-2006|"+
		"2 Jan 2006|2 January 2006|Jan 2 2006|January 2 2006|Mon Jan 2 2006|Monday January 2 2006|Mon 2 Jan 2006|"+
		"Monday 2 January 2006", "|")
	dateParts = lazy.Pattern(`^\D*(\d{1,2})([-./])(\d{1,2})[-./][\d_]`)
)

// readings returns the dates that a text can mean.
func readings(text string) (all []time.Time) {
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, strings.ReplaceAll(text, ",", "")); err == nil {
			all = append(all, t)
		}
	}
	return all
}

// otherForms returns further forms of a date that a field may take, derived from the form of the date that it shows.
// A number above 12 tells which number is the day. Otherwise both orders are tried, also for a field that shows no
// date, if it would reject the wrong one, or if the wrong one would be seen.
func otherForms(value, shown, typed string, seen bool) (forms []string) {
	date, err := time.Parse(time.DateOnly, value)
	m := dateParts().FindStringSubmatch(shown)
	switch {
	case err == nil && m == nil && (seen || date.Day() > 12):
		return []string{date.Format("01/02/2006"), date.Format("02/01/2006"), date.Format("02.01.2006")}
	case err != nil || m == nil:
		return nil
	}
	first, _ := strconv.Atoi(m[1])
	second, _ := strconv.Atoi(m[3])
	dayFirst := strings.Join([]string{"02", "01", "2006"}, m[2])
	monthFirst := strings.Join([]string{"01", "02", "2006"}, m[2])
	switch {
	case first > 12 || m[2] == ".":
		forms = []string{dayFirst}
	case second > 12:
		forms = []string{monthFirst}
	case date.Day() > 12 || seen:
		forms = []string{monthFirst, dayFirst}
	}
	for i, form := range forms {
		forms[i] = date.Format(form)
	}
	return slices.DeleteFunc(forms, func(form string) bool { return form == typed })
}

// inForm returns a date or a time in the form that a field asks for. It returns any other text unchanged.
func inForm(text, hint string) string {
	if clock, err := time.Parse("15:04", text); err == nil && hourForm().MatchString(hint) {
		return clock.Format("03:04 PM")
	}
	date, err := time.Parse(time.DateOnly, text)
	if form := dateForm().FindString(inEnglish.Replace(hint)); form != "" && err == nil {
		return date.Format(layout.Replace(form))
	}
	return text
}

// fits reports whether a field that held the text before has accepted the wanted one. The field may format it, as a
// mask does.
func fits(now, wanted, before string) bool {
	if same(now, wanted) || isDate().MatchString(wanted) && sameFigures(now, wanted) {
		return true
	}
	n, err := strconv.ParseFloat(now, 64)
	m, wrong := strconv.ParseFloat(wanted, 64)
	if err == nil && wrong == nil {
		return n == m
	}
	kept, given, old := letters(now), letters(wanted), letters(before)
	if given == "" || old != "" && strings.Contains(kept, old) && len(kept) >= len(given)+len(old) {
		return false // the old text is still there
	}
	for _, r := range given {
		_, rest, ok := strings.Cut(kept, string(r))
		if !ok {
			return false
		}
		kept = rest
	}
	return true
}

var (
	noLetter, figure = lazy.Pattern(`[^\pL\pN]+`), lazy.Pattern(`\d+`)
	monthNames       = lazy.Pattern(`(?i)\b(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|` +
		`oct(ober)?|nov(ember)?|dec(ember)?)\b`)
)

// letters returns the letters and digits of a text, in lower case.
func letters(text string) string { return noLetter().ReplaceAllString(strings.ToLower(text), "") }

// sameFigures reports whether a text has the numbers of a date or a time in another form: the month may be a word,
// the year may have two digits, and the hour may be on a 12-hour clock.
func sameFigures(text, date string) bool {
	months, days := monthNames().FindAllString(text, -1), readings(date)
	if len(months) > 0 && len(days) > 0 && !slices.ContainsFunc(days, func(t time.Time) bool {
		return slices.ContainsFunc(months, func(m string) bool { return strings.EqualFold(m[:3], t.Format("Jan")) })
	}) {
		return false
	}
	for _, layout := range []string{"15:04", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if clock, err := time.Parse(layout, date); err == nil {
			date = strings.Replace(date, "T", " ", 1) + clock.Format(" 3")
		}
	}
	found := figure().FindAllString(text, -1)
	return len(found) > 1 && !slices.ContainsFunc(found, func(n string) bool {
		return !regexp.MustCompile(`\b(20|19)?0*` + strings.TrimLeft(n, "0") + `\b`).MatchString(date)
	})
}

// same reports whether a field has the given text. The field may show it shortened, or masked as a password.
func same(now, wanted string) bool {
	if strings.Trim(now, "•") == "" {
		return (now == "") == (wanted == "")
	}
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	now = strings.TrimSuffix(flat(now), "…")
	return now == flat(wanted) || len(now) > 150 && strings.HasPrefix(flat(wanted), now)
}

// put calls a function of page.js that sets a value of an act's element. The function can report a failure.
func put(v *page.Visit, start *begun, function string, values ...any) *api.Error {
	var done struct{ Failure *page.Failure }
	if err := v.Script(start.in, &done, function, append([]any{start.Ref}, values...)...); err != nil {
		return err
	}
	if done.Failure != nil {
		return done.Failure.Exit(start.Ref)
	}
	return nil
}
