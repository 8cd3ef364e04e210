package manifest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStrip(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "plain text, ünïcödé, 日本語 and 😀", "plain text, ünïcödé, 日本語 and 😀"},
		{"newlines and tabs are kept", "a\n\tb", "a\n\tb"},
		{"carriage return", "good\rbad", "goodbad"},
		{"backspaces", "ab\b\bcd", "abcd"},
		{"NUL and DEL", "a\x00b\x7fc", "abc"},
		{"CSI colour", "\x1b[1;31mred\x1b[0m", "red"},
		{"CSI private", "\x1b[?25lhidden cursor\x1b[?25h", "hidden cursor"},
		{"CSI at the end", "a\x1b[31", "a"},
		{"CSI ended by a newline", "a\x1b[3\nb", "a\nb"},
		{"CSI ended by a letter that is not ASCII", "a\x1b[3éb", "aéb"},
		{"OSC title, BEL", "\x1b]0;title\x07text", "text"},
		{"OSC link, ST", "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"OSC ended by C1 ST", "\x1b]0;title\u009ctext", "text"},
		{"OSC without an end does not remove the next line", "a\x1b]0;title\nb", "a\nb"},
		{"OSC ended by another sequence", "\x1b]0;title\x1b[31mtext", "text"},
		{"DCS", "\x1bPq#0;2;0;0;0\x1b\\text", "text"},
		{"APC, PM, SOS", "\x1b_a\x1b\\1\x1b^b\x1b\\2\x1bXc\x1b\\3", "123"},
		{"character sets", "\x1b(Btext\x1b)0", "text"},
		{"reset and index", "\x1bctext\x1bM", "text"},
		{"ESC without a sequence", "a\x1béb", "aéb"},
		{"ESC ( without a final byte", "a\x1b(éb", "aéb"},
		{"ESC alone", "a\x1b", "a"},
		{"two ESC", "\x1b\x1b[31mred", "red"},
		{"C1 CSI", "\u009b31mred", "red"},
		{"C1 OSC", "\u009d0;title\u009ctext", "text"},
		{"C1 without parameters", "a\u0085b\u0080c", "abc"},
		{"C1 as a byte is not UTF-8", "a\x9b31m", "a\ufffd31m"},
		{"bidi overrides", "a\u202eb\u202cc\u2066d\u2069e", "abcde"},
		{"bidi marks", "a\u200eb\u200fc\u061cd", "abcd"},
		{"zero width", "a\u200bb\u200cc\u200dd\u2060e\ufefff", "abcdef"},
		{"soft hyphen", "co\u00adoperate", "cooperate"},
		{"tags", "a\U000e0001\U000e0041\U000e0042\U000e007fb", "ab"},
		{"variation selectors supplement", "a\U000e0100b", "ab"},
		{"variation selectors of emoji are kept", "❤️", "❤️"},
		{"line and paragraph separators", "a\u2028b\u2029c", "abc"},
		{"fillers", "a\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5b", "ab"},
		{"interlinear and musical", "a\ufff9b\ufffac\ufffbd\U0001d173e", "abcde"},
		{"invisible operators", "a\u2061b\u2064c\u206fd", "abcd"},
		{"invalid UTF-8", "a\xff\xc3b", "a\ufffd\ufffdb"},
		{"surrogate as bytes", "a\xed\xa0\x80b", "a\ufffd\ufffd\ufffdb"},
	} {
		if got := Strip(c.in); got != c.want {
			t.Errorf("%s: Strip(%q) = %q, expected %q", c.name, c.in, got, c.want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain ünïcödé, 日本語\n\t😀 ❤️":       "plain ünïcödé, 日本語\n\t😀 ❤️",
		"a\x1b[31mred\x00\x7f\u009b":       `a\u001b[31mred\u0000\u007f\u009b`,
		"a\u202eb\u2066c\u200e":            `a\u202eb\u2066c\u200e`,
		"a\u200bb\ufeff\u00ad\u2028":       `a\u200bb\ufeff\u00ad\u2028`,
		"pay\u200cpal\u200d":               `pay\u200cpal\u200d`,
		"می\u200cخواهم क्\u200dष 👨\u200d👩": "می\u200cخواهم क्\u200dष 👨\u200d👩",
		"م\u200c\u200dم م\u200c":           `م\u200c\u200dم م\u200c`,
		"\U000e0041":                       `\udb40\udc41`,
		"one\r\ntwo\rthree":                "one\ntwo\\u000dthree",
		"a\xffb":                           "a\ufffdb",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, expected %q", in, got, want)
		}
	}
}

func TestCleanLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"  a \n\n b\t\tc  ":           "a b c",
		"a\r\nb":                      "a b",
		"a\u200b \u200bb":             `a\u200b \u200bb`,
		"Error: fine\n\x1b[2J\x1b[Hx": `Error: fine \u001b[2J\u001b[Hx`,
		"a\u00a0b":                    "a b",
	} {
		if got := CleanLine(in); got != want {
			t.Errorf("CleanLine(%q) = %q, expected %q", in, got, want)
		}
	}
}

func TestEscapeJSON(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"a": "plain ünï"}`, `{"a": "plain ünï"}`},
		{"\"a\u202eb\"", `"a\u202eb"`},
		{"\"\U000e0041\"", `"\udb40\udc41"`},
		{"\"\x7f\"", `"\u007f"`},
		{"\"\u009b31m\"", `"\u009b31m"`},
		{"[1,\r\n\t2]", "[1, \n\t2]"},
		{`"\u001b[31m"`, `"\u001b[31m"`},
		{"\"a\xffb\"", "\"a\ufffdb\""},
		{"", ""},
	} {
		if got := string(EscapeJSON([]byte(c.in))); got != c.want {
			t.Errorf("EscapeJSON(%q) = %q, expected %q", c.in, got, c.want)
		}
	}
}

func TestCleanJSON(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nothing to clean", `{"z": 1, "a": [true, null, "x"]}`, `{"z": 1, "a": [true, null, "x"]}`},
		{"order of keys is kept", `{"z":"\u202e1","b":"2","a":{"y":1,"x":2}}`, `{"z":"\\u202e1","b":"2","a":{"y":1,"x":2}}`},
		{"escapes of ANSI", `{"a":"\u001b[31mred\u001b[0m"}`, `{"a":"\\u001b[31mred\\u001b[0m"}`},
		{"short escapes", `{"a":"x\b\b\f\ry"}`, `{"a":"x\\u0008\\u0008\\u000c\\u000dy"}`},
		{"newlines remain escaped", `{"a":"x\ny\t"}`, `{"a":"x\ny\t"}`},
		{"keys", `{"\u200ba":1}`, `{"\\u200ba":1}`},
		{"surrogate pair", `["\udb40\udc41b"]`, `["\\udb40\\udc41b"]`},
		{"half a pair", `["\ud800b"]`, "[\"\ufffdb\"]"},
		{"no HTML escapes", `["\u003cb>&"]`, `["<b>&"]`},
		{"quotes and backslashes", `["\"\\ \u200b"]`, `["\"\\ \\u200b"]`},
		{"a pattern keeps its escapes", `{"pattern":"^[^\u0000-\u001f]+$","description":"a\u0007"}`, `{"pattern":"^[^\u0000-\u001f]+$","description":"a\\u0007"}`},
		{"a raw character in a pattern", "{\"pattern\":\"[\u202e]\"}", `{"pattern":"[\u202e]"}`},
		{"empty", ``, ``},
	} {
		if got := string(CleanJSON(json.RawMessage(c.in))); got != c.want {
			t.Errorf("%s: CleanJSON(%s) = %s, expected %s", c.name, c.in, got, c.want)
		}
	}
}

// hostileTexts seed the fuzz targets of this file.
var hostileTexts = []string{
	"", "plain", "\x1b[31mred\x1b[0m", "\x1b]0;t\x07x", "\x1b]0;t\u009cx", "\x1b(B", "\u009b1m", "a\u202eb", "\xff\xfe",
	"\u00ad", "\U000e0041", "\x1bP\x1b\x1b\\", "\ufffd", "a\x1b", "\x1b(\xc3\xa9", "\xc2", "\xc2\x9b",
	"{\"a\":\"\\u001b\"}", "\"\\ud800\"",
}

func FuzzClean(f *testing.F) {
	for _, s := range hostileTexts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := Clean(in)
		if !utf8.ValidString(got) {
			t.Errorf("Clean(%q) = %q is not UTF-8", in, got)
		}
		for _, r := range got {
			if Hidden(r) && r != 0x200c && r != 0x200d {
				t.Errorf("Clean(%q) = %q leaves %U", in, got, r)
			}
		}
		if again := Clean(got); again != got {
			t.Errorf("Clean(%q) = %q, which Clean changes to %q", in, got, again)
		}
		line := CleanLine(in)
		if strings.ContainsAny(line, "\n\t") || CleanLine(line) != line {
			t.Errorf("CleanLine(%q) = %q", in, line)
		}
	})
}

func FuzzEscapeJSON(f *testing.F) {
	for _, s := range hostileTexts {
		f.Add([]byte(s))
		quoted, _ := json.Marshal(s)
		f.Add(quoted)
	}
	f.Add([]byte("{\"k\u200b\":[\"\u202e\",1.5e3,true,null,\"\x7f\"]}\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		got := EscapeJSON(in)
		for _, r := range string(got) {
			if Hidden(r) {
				t.Errorf("EscapeJSON(%q) = %q leaves %U", in, got, r)
			}
		}
		if !json.Valid(in) {
			return
		}
		if want, have := decoded(t, in), decoded(t, got); !reflect.DeepEqual(want, have) {
			t.Errorf("EscapeJSON(%q) = %q has other data", in, got)
		}
		cleaned := CleanJSON(in)
		for _, r := range textsOf(decoded(t, cleaned)) {
			if Hidden(r) && r != 0x200c && r != 0x200d && !bytes.Contains(in, []byte("pattern")) {
				t.Errorf("CleanJSON(%q) = %q leaves %U", in, cleaned, r)
			}
		}
	})
}

func decoded(t *testing.T, data []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	return v
}

// textsOf returns every string of a document, including keys.
func textsOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var b strings.Builder
		for _, e := range v {
			b.WriteString(textsOf(e))
		}
		return b.String()
	case map[string]any:
		var b strings.Builder
		for k, e := range v {
			b.WriteString(k + textsOf(e))
		}
		return b.String()
	}
	return ""
}

// TestStripEndsAtTheSequence checks that each sequence of a terminal ends at its last character.
func TestStripEndsAtTheSequence(t *testing.T) {
	for _, start := range []string{"\x1b[", "\u009b"} {
		for _, parameters := range []string{"", "2", "1;31", "?25", " "} {
			for last := '@'; last <= '~'; last++ {
				text := "a" + start + parameters + string(last) + "1;2Text"
				if got := Strip(text); got != "a1;2Text" {
					t.Errorf("Strip(%q) = %q", text, got)
				}
			}
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text  string
		bytes int
		want  string
	}{
		{"short", 5, "short"}, {"longer", 5, "lo…"}, {"äöü", 6, "äöü"}, {"äöüß", 6, "ä…"}, {"äöüß", 7, "äö…"},
		{"none", 1, "…"}, {"", 0, ""},
	} {
		if got := Clip(c.text, c.bytes); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.text, c.bytes, got, c.want)
		}
	}
}

// hiddenRanges is an independent copy of the hidden ranges, without those that only the category Cf covers.
var hiddenRanges = [][2]rune{
	{0x00, 0x08}, {0x0b, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c}, {0x115f, 0x1160},
	{0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
	{0xfe00, 0xfe0d}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
}

// TestHidden checks both ends of each range, the characters next to them, and characters of the category Cf elsewhere.
func TestHidden(t *testing.T) {
	for _, r := range hiddenRanges {
		for c := r[0]; c <= r[1]; c++ {
			if !Hidden(c) {
				t.Errorf("%U is not hidden", c)
			}
		}
		for _, c := range []rune{r[0] - 1, r[1] + 1} {
			if c >= 0 && Hidden(c) {
				t.Errorf("%U is hidden", c)
			}
		}
	}
	for _, c := range []rune{0x600, 0x605, 0x6dd, 0x70f, 0x8e2, 0x110bd, 0x1bca0} {
		if !Hidden(c) || Hidden(c+0x30) {
			t.Errorf("%U is not hidden, or %U is", c, c+0x30)
		}
	}
	if Hidden('\n') || Hidden('\t') || Hidden(' ') || Hidden(0xfe0e) || Hidden(0xfe0f) {
		t.Error("white space or the selector of an emoji is hidden")
	}
}
