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

// listed is what the function option of page.js returns.
type listed struct {
	page.Element
	Done    bool   // it is chosen already
	Closed  bool   // the list is not open
	Opener  string // the reference of what is clicked to open it
	Failure *page.Failure
}

// noLists are the roles of fields that have no options.
var noLists = strings.Fields("textbox checkbox radio switch slider spinbutton Date DateTime InputTime ColorWell")

// selectOptions selects options of a native list, or clicks them in one that the page has made.
func selectOptions(v *page.Visit, p selectParams) (*Effects, *api.Error) {
	start, err := begin(v, p.Element, how{Covered: no, Field: true, verb: "select"})
	if err != nil {
		return nil, err
	}
	if start.Select || slices.Contains(noLists, start.Role) && !start.List {
		if err = put(v, start, "choose", p.Options); err != nil && !page.IsDialog(err) {
			return nil, err
		}
		e, _, err := finish(v, start, err)
		return e, err
	}
	return start.choose(v, p.Options)
}

// choose clicks options in a list that the page has made.
func (start *begun) choose(v *page.Visit, options []string) (*Effects, *api.Error) {
	e := &Effects{Note: "it is so already"}
	for _, word := range options {
		o, err := start.find(v, word)
		if err == nil && !o.Done {
			e, _, err = pressAt(v, o.Ref, how{Covered: no})
		}
		if err != nil {
			return nil, err
		}
	}
	e.On = start.Element.String()
	if start.closeList(v) {
		e.addNote("its list was still open, and Escape was pressed")
	}
	return e, nil
}

// openTime is how long an option may take to come, after its list was opened or a text was typed.
const openTime = 1200 * time.Millisecond

// find finds an option in a list. If it is not there, it opens the list, by a click or a key, and then types the
// option.
func (start *begun) find(v *page.Visit, word string) (o listed, err *api.Error) {
	opened := false
	look := func(most time.Duration) (found bool) {
		if o = (listed{}); err == nil {
			err = v.Script(start.in, &o, "option", start.Ref, word, most.Milliseconds(), opened)
		}
		return err != nil || o.Failure == nil || !o.Closed && o.Failure.Code != "no_match"
	}
	found := look(0)
	if !found && o.Closed {
		_, _, err = pressAt(v, o.Opener, how{Covered: no})
		opened = true
		found = look(openTime / 4)
	}
	if !found && o.Closed {
		err = v.Input(key("ArrowDown", 0)...)
		found = look(openTime / 4)
	}
	if !found && !o.Closed {
		found = look(openTime)
	}
	if !found && start.Editable {
		if err = sendKeys(v, keysOf(word)); !look(openTime) {
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
