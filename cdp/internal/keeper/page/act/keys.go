package act

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

// The bits of modifiers in an input event.
var modifierBit = map[string]int{"alt": 1, "control": 2, "ctrl": 2, "meta": 4, "cmd": 4, "command": 4, "shift": 8}

// namedKeys are the keys that have a name, with their codes.
var namedKeys = map[string]struct {
	name string
	code int
	text string
}{
	"enter": {"Enter", 13, "\r"}, "return": {"Enter", 13, "\r"}, "tab": {"Tab", 9, ""}, "escape": {"Escape", 27, ""},
	"esc": {"Escape", 27, ""}, "backspace": {"Backspace", 8, ""}, "delete": {"Delete", 46, ""},
	"insert": {"Insert", 45, ""}, "home": {"Home", 36, ""}, "end": {"End", 35, ""}, "pageup": {"PageUp", 33, ""},
	"pagedown": {"PageDown", 34, ""}, "arrowleft": {"ArrowLeft", 37, ""}, "arrowup": {"ArrowUp", 38, ""},
	"arrowright": {"ArrowRight", 39, ""}, "arrowdown": {"ArrowDown", 40, ""}, "left": {"ArrowLeft", 37, ""},
	"up": {"ArrowUp", 38, ""}, "right": {"ArrowRight", 39, ""}, "down": {"ArrowDown", 40, ""},
	"space": {" ", 32, " "}, " ": {" ", 32, " "},
	"shift": {"Shift", 16, ""}, "control": {"Control", 17, ""}, "alt": {"Alt", 18, ""}, "meta": {"Meta", 91, ""},
}

// key returns the events of a key: one of namedKeys, F1 to F12, or a character.
func key(name string, modifiers int) []page.Object {
	event := page.Object{"type": "rawKeyDown", "modifiers": modifiers}
	set := func(key, code string, number int, text string) {
		event["key"], event["code"], event["windowsVirtualKeyCode"] = key, code, number
		if text != "" && modifiers&^8 == 0 {
			event["type"], event["text"], event["unmodifiedText"] = "keyDown", text, text
		}
	}
	named, ok := namedKeys[strings.ToLower(name)]
	number := functionKey(name)
	r := []rune(name)[0]
	switch {
	case ok:
		set(named.name, strings.Replace(named.name, " ", "Space", 1), named.code, named.text)
	case number > 0:
		set(strings.ToUpper(name), strings.ToUpper(name), 111+number, "")
	case r < 128 && unicode.IsLetter(r):
		if modifiers&8 != 0 {
			name = strings.ToUpper(name)
		}
		set(name, "Key"+strings.ToUpper(name), int(unicode.ToUpper(r)), name)
	case r < 128 && unicode.IsDigit(r):
		set(name, "Digit"+name, int(r), name)
	case strings.ContainsRune(usKeys, r):
		at := strings.IndexRune(usKeys, r) / 2
		set(name, usCodes[at], 186+at+at/7*26, name)
	default:
		set(name, "", 0, name)
	}
	up := page.Object{"type": "keyUp", "key": event["key"], "code": event["code"], "modifiers": modifiers,
		"windowsVirtualKeyCode": event["windowsVirtualKeyCode"]}
	return []page.Object{event, up}
}

// usKeys are other characters on a US keyboard, two a key, and usCodes the codes of the keys, for which shortcuts ask.
const usKeys = ";:=+,<-_.>/?`~[{\\|]}'\""

var usCodes = strings.Fields("Semicolon Equal Comma Minus Period Slash Backquote BracketLeft Backslash BracketRight" +
	" Quote")

// functionKey returns the number of a key from F1 to F12, 0 for any other.
func functionKey(name string) (number int) {
	if _, err := fmt.Sscanf(strings.ToUpper(name), "F%d", &number); err != nil || number < 1 || number > 12 {
		return 0
	}
	return number
}

// combination returns the events of a key such as Enter or Control+a.
func combination(given string) ([]page.Object, *api.Error) {
	parts := strings.Split(given, "+")
	if strings.HasSuffix(given, "+") { // the plus key itself
		parts = append(parts[:len(parts)-2], "+")
	}
	last := parts[len(parts)-1]
	modifiers, err := modifierBits(parts[:len(parts)-1])
	if err != nil {
		return nil, page.Invalid("/key", "a key such as Enter or Control+a", given, "")
	}
	if _, named := namedKeys[strings.ToLower(last)]; len([]rune(last)) != 1 && !named && functionKey(last) == 0 {
		return nil, page.Invalid("/key", "a key such as Enter, Escape, ArrowDown, F5 or a", last, "")
	}
	events := key(last, modifiers)
	if command := editing[strings.ToLower(last)]; modifiers == 2 && command != "" {
		events[0]["commands"] = []string{command}
	}
	return events, nil
}

// editing lists the editing commands of Control with a letter in a field. A browser without a window does not map
// them.
var editing = map[string]string{"a": "selectAll", "z": "undo", "y": "redo", "x": "cut", "c": "copy", "v": "paste"}

// modifierBits returns the bits of modifiers. A name may combine several, as in Shift+Alt.
func modifierBits(names []string) (bits int, err *api.Error) {
	for name := range strings.FieldsFuncSeq(strings.Join(names, "+"), func(c rune) bool { return c == '+' || c == ',' }) {
		bit := modifierBit[strings.ToLower(name)]
		if bit == 0 {
			return 0, page.Invalid("/modifiers", "Shift, Control, Alt or Meta", name, "")
		}
		bits |= bit
	}
	return bits, nil
}
