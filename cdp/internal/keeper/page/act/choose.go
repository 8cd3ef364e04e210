package act

import (
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

type selectParams struct {
	Element string   `json:"element"`
	Options []string `json:"options"`
}

// listed is the result of the functions option and taken of page.js.
type listed struct {
	page.Element
	Done    bool   // the option is chosen already
	Closed  bool   // the list is not open
	Opener  string // the reference of the element to click to open the list
	Search  string // the reference of a field of the list that has the focus
	Failure *page.Failure

	// The following are set by the function taken.
	Missing []string       // wanted options that are not chosen
	Several bool           // a missing option is one of several that can be chosen
	Extra   []page.Element // chosen options that were not wanted
	Shows   string         // what the control shows
	Was     []string       // what the control had chosen, if it shows something else now
	Added   bool           // the control shows what it showed before, and more
}

// noLists are the roles of fields that have no options.
var noLists = strings.Fields("textbox checkbox radio switch slider spinbutton Date DateTime InputTime ColorWell")

// selectOptions selects options of a native list, or clicks them in one that the page has made.
func selectOptions(v *page.Visit, p selectParams) (*Effects, *api.Error) {
	start, err := begin(v, p.Element, how{Covered: no, Field: true, verb: "select"})
	if err != nil {
		return nil, err
	}
	e, err := start.choose(v, p.Options)
	path := strings.Split(p.Options[0], " / ")
	if err != nil && err.Exit == "no_match" && len(p.Options) == 1 && len(path) > 1 {
		var now listed
		if e, err = start.choosePath(v, path); err != nil && v.Script(start.in, &now, "taken", start.Ref, 0) == nil &&
			now.Was != nil {
			if _, failed := start.choose(v, now.Was); failed != nil {
				err.Message += "; it now shows " + page.Quote(page.Clip(now.Shows, 80))
			}
		}
	}
	return e, err
}

// choosePath chooses an option in lists that open each other, as in a cascader.
func (start *begun) choosePath(v *page.Visit, path []string) (e *Effects, err *api.Error) {
	err = v.Script(start.in, nil, "offering", start.Ref, path, true)
	for i := 0; i < len(path) && err == nil; i++ {
		var o listed
		if o, err = start.find(v, path[i]); err == nil && !o.Done {
			e, _, err = pressAt(v, o.Ref, how{Covered: no})
		}
	}
	if err != nil {
		return nil, err
	}
	var now listed
	err, e.On = v.Script(start.in, &now, "taken", start.Ref, 0), start.Element.String()
	if last := path[len(path)-1]; err == nil && !strings.Contains(now.Shows, last) {
		return nil, start.notKept(last, now.Shows)
	}
	return e, nil
}

// choose chooses options in a list. Afterwards the list has no other options chosen, as far as clicks can deselect
// them.
func (start *begun) choose(v *page.Visit, options []string) (*Effects, *api.Error) {
	if start.Select || slices.Contains(noLists, start.Role) && !start.List {
		return start.chooseNative(v, options)
	}
	err := v.Script(start.in, nil, "offering", start.Ref, options)
	if len(options) > 1 && !start.Editable { // if one option is missing, none is clicked
		for i := 0; i < len(options) && err == nil; i++ {
			_, err = start.find(v, options[i])
		}
	}
	if err != nil {
		return nil, err
	}
	e := &Effects{Note: "it is so already"}
	for i, word := range options {
		o, err := start.find(v, word)
		for turn := 0; err == nil && !o.Done; turn++ {
			e, _, err = pressAt(v, o.Ref, how{Covered: no, within: openTime})
			if err == nil || err.Exit != "stale" && err.Exit != "not_ready" || turn == 3 {
				break
			}
			o, err = start.find(v, word) // the page has rebuilt its list, or closed it
		}
		if err != nil && i > 0 && v.Script(start.in, &o, "taken", start.Ref, 0) == nil {
			err.Message += "; it now shows " + page.Quote(page.Clip(o.Shows, 80))
		}
		if err != nil {
			return nil, err
		}
	}
	return start.verify(v, e)
}

// maxRepairs limits the clicks on options that are still missing or wrongly chosen.
const maxRepairs = 40

// verify checks that a list has exactly the clicked options chosen. A plain click may deselect other options, so a
// missing option is clicked again with Ctrl. An option that is chosen but not wanted is clicked, too.
func (start *begun) verify(v *page.Visit, e *Effects) (*Effects, *api.Error) {
	e.On = start.Element.String()
	var now listed
	modifiers := 0
	for range maxRepairs {
		now = listed{}
		if v.Script(start.in, &now, "taken", start.Ref, (openTime/4).Milliseconds()) != nil {
			return e, nil // the page has moved on
		}
		ref := ""
		if len(now.Missing) > 0 && now.Several {
			modifiers = modifierBit["ctrl"]
			o, _ := start.find(v, now.Missing[0])
			ref = o.Ref
		} else if len(now.Missing) == 0 && len(now.Extra) > 0 {
			ref = now.Extra[0].Ref
		}
		if ref == "" {
			break
		}
		last, _, err := clickAt(v, ref, how{Covered: no, verb: "click"}, clickParams{}, modifiers)
		if err != nil {
			break
		}
		last.On, e = e.On, last
	}
	if start.closeList(v) {
		e.addNote("its list was still open, so Escape was pressed")
	}
	if len(now.Missing) > 0 {
		return nil, start.notKept(now.Missing[0], now.Shows)
	}
	if len(now.Extra) > 0 || now.Added {
		e.addNote("it keeps what was chosen before, and now shows " + page.Quote(page.Clip(now.Shows, 80)))
	}
	return e, nil
}

// notKept returns the error of a list that does not have an option that was chosen.
func (start *begun) notKept(option, shows string) *api.Error {
	why := "it did not keep " + page.Quote(page.Clip(option, 40)) + ", but shows " + page.Quote(page.Clip(shows, 80))
	if shows == "" { // such as the list of a cascader
		why += "; if it opened a further list, the option is " + page.Quote(page.Clip(option, 40)+" / ..")
	}
	return (&page.Failure{Code: "not_accepted", Element: start.Element, Why: why}).Exit("")
}

// chooseNative chooses options of a native list, and checks that the page keeps them.
func (start *begun) chooseNative(v *page.Visit, options []string) (*Effects, *api.Error) {
	var chosen struct {
		Value   string
		Failure *page.Failure
	}
	err := v.Script(start.in, &chosen, "choose", start.Ref, options, openTime.Milliseconds(),
		v.Patience().Milliseconds())
	if chosen.Failure != nil {
		return nil, chosen.Failure.Exit(start.Ref)
	}
	if err != nil && !page.IsDialog(err) && !page.Interrupted(err) {
		return nil, err
	}
	e, last, err := finish(v, start, err)
	if err == nil && last.Value != nil && last.Document == start.Document && !same(*last.Value, chosen.Value) {
		return nil, start.notKept(chosen.Value, *last.Value)
	}
	return e, err
}

// openTime is how long an option may take to come, after its list was opened or a text was typed.
const openTime = 1200 * time.Millisecond

// find finds an option in a list. If the option is not there, find opens the list, by a click or a key, and then
// types the option. An open list that is not placed at the control is closed and opened again, to make sure that it
// belongs to the control.
func (start *begun) find(v *page.Visit, word string) (o listed, err *api.Error) {
	look := func(most time.Duration) (found bool) {
		if o = (listed{}); err == nil {
			err = v.Script(start.in, &o, "option", start.Ref, word, most.Milliseconds())
		}
		return err != nil || o.Failure == nil || !o.Closed && o.Failure.Code != "no_match"
	}
	found := look(0)
	if !found && start.Open {
		start.Open = false
		start.closeList(v)
		found = look(0)
	}
	if !found && o.Closed {
		_, _, err = pressAt(v, o.Opener, how{Covered: no})
		found = look(openTime / 4)
	}
	if !found && o.Closed {
		err = v.Input(key("ArrowDown", 0)...)
		found = look(openTime / 4)
	}
	if !found && !(o.Closed && start.Editable) {
		found = look(openTime)
	}
	if !found && o.Search != "" {
		err = sendKeys(v, keysOf(word))
		found = look(openTime)
	}
	if !found && start.Editable {
		if err = v.Script(start.in, nil, "focusOn", start.Ref); err == nil { // typing replaces the present text
			err = sendKeys(v, keysOf(word))
		}
		if !look(openTime) {
			_ = put(v, start, "assign", start.Held)
		}
	}
	if err != nil || o.Failure == nil {
		return o, err
	}
	start.closeList(v)
	return o, o.Failure.Exit(start.Ref)
}

// closeList closes a list if it is open.
func (start *begun) closeList(v *page.Visit) (closed bool) {
	var now field
	return v.Script(start.in, &now, "held", start.Ref, stays) == nil && now.Open && v.Input(key("Escape", 0)...) == nil
}
