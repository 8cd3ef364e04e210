package page

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// TestSelectors checks how selectors that callers know from other products are read.
func TestSelectors(t *testing.T) {
	for word, want := range map[string]string{
		"@kqz12":                       `{"ref":"kqz12"}`,
		`role=button[name="Save"]`:     `{"name":"Save","role":"button"}`,
		`role=button[name="Save"i]`:    `{"name":"Save","role":"button"}`,
		`role=button[name=Options]`:    `{"name":"Options","role":"button"}`,
		`text="Sign in"`:               `{"text":"Sign in"}`,
		`button:has-text("Go")`:        `{"css":"button","has":"Go"}`,
		`css=button:has-text('Go on')`: `{"css":"button","has":"Go on"}`,
		`:has-text("Go")`:              `{"css":"*","has":"Go"}`,
		"xpath=//a[1]":                 `{"xpath":"//a[1]"}`,
		"//a[1]":                       `{"xpath":"//a[1]"}`,
		`"Say \"Hi\""`:                 `{"text":"Say \"Hi\""}`,
		"id=sign-in":                   `{"css":"[id=\"sign-in\"]"}`,
		`id=a"b`:                       `{"css":"[id=\"a\\\"b\"]"}`,
		"alt=Logo":                     `{"css":"[alt=\"Logo\" i]"}`,
		`title="Close"`:                `{"css":"[title=\"Close\" i]"}`,
		"#b":                           `{"word":"#b"}`,
	} {
		if got, _ := json.Marshal(parseLocator(word)); string(got) != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

// FuzzLocator reads lines that were copied from a snapshot, and whatever a caller writes.
func FuzzLocator(f *testing.F) {
	for _, piece := range []string{`"`, `\`, `\"`, "\n", "\r\n", "\u2028", "\u202e", "\u200d", "\x1b[31m", "😀",
		` [checked]`,
		` kqz12`, ` kqz12 [value="`, "\nbutton \"Save\" kqz12", `g1[2] link "A"`, `Iframe "A" kqz15`} {
		f.Add(piece, true)
	}
	f.Fuzz(func(t *testing.T, name string, checked bool) {
		line := Element{Role: "button", Name: name}.String()
		if checked {
			line += ` [checked value="a b"]`
		}
		if strings.ToValidUTF8(name, "") == name && name != "" {
			if l := parseLocator(line); l["role"] != "button" || l["name"] != name {
				t.Errorf("%s is read as %v", line, l)
			}
			if l := parseLocator(Element{Role: "button", Name: name, Ref: "kqz12"}.String()); l["ref"] != "kqz12" {
				t.Errorf("%s with a ref is read as %v", line, l)
			}
			if strings.ContainsFunc(line, func(r rune) bool {
				hidden := unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
				return hidden && r != 0x200c && r != 0x200d && r != 0xfe0f
			}) {
				t.Errorf("%q holds what is not shown", line)
			}
		}
		parseLocator(name)
	})
}
