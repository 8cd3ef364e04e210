package page

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// Element is what page.js reports of an element.
type Element struct {
	Ref   string `json:"ref"`
	Role  string `json:"role"`
	Name  string `json:"name"`
	State string `json:"state,omitempty"`
	Value string `json:"value,omitempty"`
	CSS   string `json:"css,omitempty"`
	In    string `json:"in,omitempty"` // what distinguishes it from others, such as: row "Bob"
}

func (e Element) String() string {
	text := strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Role, Quote(e.Name), e.Ref))
	if e.In != "" {
		text += " in " + e.In
	}
	return text
}

// Quote writes a text of a page as one quoted value that nothing in the text can end, as quoted of page.js does.
// Characters that are not shown are escaped, except for the joiners and selectors that scripts and emoji need.
func Quote(s string) string {
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

// Failure is why page.js did not do what was asked.
type Failure struct {
	Element
	Code    string // no_match, many, stale, not_ready, not_accepted, in_list, or invalid: not a CSS selector
	Why     string
	Foreign bool // the reference belongs to another document
	Lasts   bool // it seldom passes: the field is read-only, or the item of a list is not in view
	Hosts   bool // elements may have closed shadow roots, which were not searched
	Total   int
	Near    []Element
	By      *Element // what covers or clips the element
	// Unsearched is the number of frames that were not searched.
	Unsearched int
}

// Exit returns the failure as the error of a verb. wanted is the locator as the caller gave it.
func (f *Failure) Exit(wanted string) *api.Error {
	var near []string
	for _, e := range f.Near {
		near = append(near, e.String())
	}
	list := strings.Join(near, ", ")
	details := Object{"candidates": f.Near}
	if len(f.Near) == 0 {
		details = nil
	}
	switch f.Code {
	case "invalid":
		return Invalid("/element", "a CSS selector", wanted, "an element by its name, such as: button \"Sign in\"")
	case "many":
		return Exit("ambiguous", fmt.Sprintf("%s matches %d elements: %s", cmp.Or(f.Why, Quote(Clip(wanted, 200))),
			f.Total, list), details)
	case "stale":
		if list != "" {
			list = ", or use " + list
		}
		return Exit("stale", f.Why+"; look again with page.snapshot"+list, details)
	case "in_list":
		option := f.Near[0].Name
		return Exit("not_ready", Quote(Clip(option, 60))+" is an option of "+f.Element.String()+": page.select chooses it",
			Object{"select": Object{"element": f.Ref, "options": []string{option}}})
	case "not_ready", "not_accepted":
		why := f.Why
		if f.By != nil {
			why += " by " + f.By.String()
			if f.By.CSS != "" {
				why += " (css=" + Quote(Clip(f.By.CSS, 80)) + ")"
			}
			details = Object{"by": f.By}
		}
		if list != "" {
			why += "; it has " + list
		}
		if f.Ref != "" {
			why = f.Element.String() + ": " + why
		}
		return Exit(f.Code, why+cmp.Or(adviceOn(f.Why), adviceOn(strings.Replace(f.Why, "its frame", "it", 1))), details)
	}
	if list != "" {
		list = "; nearest: " + list
	}
	if f.Why != "" {
		return Exit("no_match", f.Why+adviceOn(f.Why)+list, details)
	}
	if f.Unsearched > 0 {
		list += fmt.Sprintf("; frames that were not searched: %d", f.Unsearched)
	}
	return Exit("no_match", fmt.Sprintf("nothing matches %s%s (page.snapshot shows the page)", Quote(Clip(wanted, 200)),
		list), details)
}

// adviceOn returns the advice for a reason in parentheses, or "".
func adviceOn(why string) string {
	if adviceFor[why] == "" {
		return ""
	}
	return " (" + adviceFor[why] + ")"
}

// adviceFor says what to do if an element cannot be acted on, by the reason of page.js. There is no advice where the
// reason itself says what to do, or where nothing can be done.
var adviceFor = map[string]string{
	"it is covered":                         "close or move away what covers it, or act on that",
	"it is clipped":                         "scroll or open what clips it",
	"it is inert":                           "finish or close what keeps this part of the page from being used",
	"the pointer goes through it":           "act on what is around it, or wait until the page lets it be clicked",
	"it is disabled":                        "fill in or choose first what enables it",
	"it is read-only":                       "act on what sets it: page.click opens a calendar, page.drag moves a slider",
	"it is moving":                          "wait until it stands, and act again",
	"it is not visible":                     "open what contains it; page.snapshot shows what is visible",
	"its frame is not visible":              "open what contains the frame",
	"it has no size":                        "act on its label, or on what is drawn for it",
	"it is not a select":                    "page.fill fills it in, and page.check checks a box",
	"it is a frame":                         "name the field in it",
	"it is no longer in the document":       "look again with page.snapshot",
	"there was no time for all of the page": "give a larger timeout, or name the element by css=",
}

// Elsewhere reports whether the element may be in another frame.
func (f *Failure) Elsewhere() bool { return f.Code == "no_match" || f.Code == "in_list" || f.Foreign }
