package redact

import (
	"context"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// TestRedactForms checks the encodings in which servers and programs repeat a value, whole and in part.
func TestRedactForms(t *testing.T) {
	const value = `S3cr3t/Val+ue&"q"<x>-0123456789`
	std := base64.StdEncoding.EncodeToString
	escaped := func(format string) string {
		var b strings.Builder
		for _, r := range value {
			fmt.Fprintf(&b, format, r)
		}
		return b.String()
	}
	broken := func(s, lineBreak string) string {
		var lines []string
		for len(s) > 9 {
			lines, s = append(lines, s[:9]), s[9:]
		}
		return strings.Join(append(lines, s), lineBreak)
	}
	quoted := string(jsontext.Marshal(value))
	texts := map[string]string{
		"plain": value, "lower case": strings.ToLower(value), "upper case": strings.ToUpper(value),
		"broken": broken(value, "\n"), "broken and indented": broken(value, "\r\n\t  "),
		"base64": std([]byte(value)), "base64 url": base64.RawURLEncoding.EncodeToString([]byte(value)),
		"base64 broken": broken(std([]byte(value)), "\r\n"), "base64 broken in JSON": broken(std([]byte(value)), `\n`),
		"base64 in a text": std([]byte("user:" + value)), "base64 between": std([]byte("ab" + value + "xyz")),
		"base64 twice": std([]byte(std([]byte(value)))), "base64 of base64": std([]byte("b " + std([]byte("u"+value)))),
		"base64 of URL":  std([]byte(base64.URLEncoding.EncodeToString([]byte("ab" + value)))),
		"base64 escaped": url.QueryEscape(std([]byte(value))),
		"base32":         base32.StdEncoding.EncodeToString([]byte(value)),
		"base32 lower":   strings.ToLower(base32.StdEncoding.EncodeToString([]byte("abc" + value))),
		"hex":            hex.EncodeToString([]byte(value)), "hex upper": strings.ToUpper(hex.EncodeToString([]byte(value))),
		"hex apart": fmt.Sprintf("% X", value), "hex with colons": strings.ReplaceAll(fmt.Sprintf("% x", value), " ", ":"),
		"octal":   escaped(`\%03o`),
		"percent": url.QueryEscape(value), "percent twice": url.QueryEscape(url.QueryEscape(value)),
		"percent three times": url.QueryEscape(url.QueryEscape(url.QueryEscape(value))),
		"percent all":         escaped("%%%02x"), "%u": escaped("%%u%04x"),
		"\\u": escaped(`\u%04x`), "\\U": escaped(`\u%04X`), "\\x": escaped(`\x%02x`), "quoted": quoted,
		"quoted twice": string(jsontext.Marshal(quoted)), "entities": html.EscapeString(value), "decimal": escaped("&#%d;"),
		"hexadecimal": escaped("&#x%x;"), "named": strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;",
			"/", "&sol;", "+", "&plus;").Replace(value), "entities of percent": html.EscapeString(url.QueryEscape(value)),
	}
	forms := newSecretForms(map[string]string{"TOKEN": value})
	for name, text := range texts {
		for _, around := range [][2]string{{"", ""}, {"before: ", " :after"}} {
			got := forms.Redact(around[0] + text + around[1])
			rest := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(got, around[0]), around[1]), "[secret TOKEN]", "")
			// Text around the value is kept: its neighbors within an encoding, quotes and padding.
			if !strings.Contains(got, "[secret TOKEN]") || len(rest) > 10 {
				t.Errorf("%s: %q became %q", name, text, got)
			}
			if !strings.HasPrefix(got, around[0]) || !strings.HasSuffix(got, around[1]) {
				t.Errorf("%s: the text around the value was changed: %q", name, got)
			}
		}
	}
	if got := forms.Redact(std([]byte(value))); strings.Trim(got, "=") != "[secret TOKEN]" {
		t.Errorf("the base64 still has %q", got)
	}
	percent := url.QueryEscape(value)
	for _, cut := range []string{"log: " + value[:20], value[10:] + " in the log", "log: " + std([]byte(value))[:30],
		"log: " + hex.EncodeToString([]byte(value))[:40],
		// within escapes, and within one
		"log: " + percent[:30], "log: " + percent[:29], "log: " + percent[:28], percent[12:] + " in the log",
		"log: " + url.QueryEscape(percent)[:40], "log: " + html.EscapeString(value)[:22],
		"log: " + value[:10] + "%2", "log: " + escaped(`\u%04x`)[:84], "log: " + escaped(`\u%04x`)[:88],
		escaped("%%%02x")[30:] + " in the log"} {
		if got := forms.Redact(cut); !strings.Contains(got, "[secret TOKEN]") || len(got) > 28 {
			t.Errorf("cut: %q became %q", cut, got)
		}
	}
	for _, other := range []string{"", "an honest text", "S3cr3t", strings.Repeat("%25 &amp; \\u0041\n", 100), "100% & \\",
		"\\u", "%4", "&#;", "&#99999999999;", "\u00e9\u4e16 \xff"} {
		if got := forms.Redact(other); got != other {
			t.Errorf("%q became %q", other, got)
		}
	}
	// Characters that are two units of UTF-16, and those that are two bytes of UTF-8.
	wide := newSecretForms(map[string]string{"TOKEN": "sch\u00f6n-\U0001f600-0123"})
	for _, text := range []string{`sch\u00f6n-\ud83d\ude00-0123`, `SCH\u00F6N-\uD83D\uDE00-0123`,
		"sch%C3%B6n-%F0%9F%98%80-0123", "sch&#xf6;n-&#128512;-0123"} {
		if got := wide.Redact(text); got != "[secret TOKEN]" {
			t.Errorf("%q became %q", text, got)
		}
	}
	short := newSecretForms(map[string]string{"PIN": "hunt7", "LOGIN": "alice:correct horse"})
	for _, text := range []string{"hunt7", "HUNT7", "%68%75%6e%74%37", `\u0068\u0075\u006e\u0074\u0037`, "68756E7437",
		std([]byte("hunt7")), std([]byte("a hunt7!")), "alice:correct horse", "correct horse", "Correct+Horse",
		"correct%20%68orse", hex.EncodeToString([]byte("correct horse")), std([]byte("x correct horse y")),
		std([]byte("alice:correct horse"))} {
		got := short.Redact("it says: " + text + ", twice")
		if !strings.HasPrefix(got, "it says: ") || !strings.HasSuffix(got, ", twice") || !strings.Contains(got, "[secret ") ||
			len(got) > 40 {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := short.Redact("alice has a correct horse, and hunts"); got != "alice has a [secret LOGIN], and hunts" {
		t.Error(got)
	}
	webhook := newSecretForms(map[string]string{"HOOK": "https://hooks.test/services/T000/B000/XXXXXXXXXXXXXXXXXXXXXXXX"})
	if got := webhook.Redact("it starts with https://"); strings.Contains(got, "HOOK") {
		t.Errorf("a common beginning was redacted: %q", got)
	}
}

// secretValues is a source of secrets. Some of them refuse reflection.
type secretValues map[string]string

func (s secretValues) Secret(_ context.Context, name string) (string, error) { return s[name], nil }

func (s secretValues) RefusesReflection(name string) bool { return strings.HasPrefix(name, "NEVER") }

// TestReflected checks that an answer with a value whose binding refuses reflection is an error, in any encoding, and
// that the error does not contain it.
func TestReflected(t *testing.T) {
	values := secretValues{"NEVER": "never-reflected-value", "SOMETIMES": "sometimes-reflected"}
	v := &Redactor{Source: values, Grants: []grant.Secret{{Name: "NEVER"}, {Name: "SOMETIMES"}}}
	for name := range values {
		if _, err := v.Value(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(values["NEVER"]))
	inJSON, _ := json.Marshal(map[string]any{"a": []string{"x", encoded}})
	for _, text := range []string{values["NEVER"], "<" + strings.ToUpper(values["NEVER"]) + ">", string(inJSON)} {
		err := v.Reflected("the answer", "fine", text)
		if err == nil || host.AsError(err).Code != host.Denied || strings.Contains(err.Error(), values["NEVER"]) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := v.Reflected("the answer", "fine", values["SOMETIMES"]); err != nil {
		t.Error(err)
	}
	for i := range 9 { // of several the first name
		name := fmt.Sprintf("NEVER%d", 8-i)
		values[name] = name + "-reflected-value"
		v.Grants = append(v.Grants, grant.Secret{Name: name})
		if _, err := v.Value(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	all := strings.Join(slices.Collect(maps.Values(values)), " ")
	if err := v.Reflected("the answer", all); !strings.Contains(fmt.Sprint(err), "secret NEVER,") {
		t.Error(err)
	}
}

func BenchmarkRedact(b *testing.B) {
	forms := newSecretForms(map[string]string{"A": "0123456789abcdef0123456789abcdef", "B": "another-secret-value"})
	text := strings.Repeat(`{"name":"an honest text","url":"https://a.test/?q=%20"},`+"\n", 20_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		forms.Redact(text)
	}
}

// TestRedactAllError checks that the copy of an error has no secret in any field that a text of a tool can reach, and
// that the error itself stays as it is.
func TestRedactAllError(t *testing.T) {
	const secret = "hunter2-hunter2"
	fill := func() *host.Error {
		e := &host.Error{}
		fillStrings(reflect.ValueOf(e).Elem(), secret, 0)
		e.Code, e.Docs, e.Next, e.Retry = host.ToolFailed, nil, nil, nil
		// What follows are names of functions, keywords, tools and places, and no texts of a call.
		e.Trace.Frames, e.DidYouMean, e.Details[0].Keyword, e.Changes[0].How = nil, nil, "", ""
		e.Steps[0].Choose, e.Steps[0].Options = nil, step.Options{JQ: secret}
		return e
	}
	var v Redactor
	v.Add("password", secret)
	e, want := fill(), fill()
	got := v.RedactAllError(e)
	if !reflect.DeepEqual(e, want) {
		t.Errorf("the error was changed: %+v", e)
	}
	if text := fmt.Sprintf("%#v %+v %+v %+v", *got, got.Tool, got.Trace, got.Protocol); strings.Contains(text, secret) {
		t.Errorf("the copy has the secret: %s", text)
	}
}

// held has the secrets that a host holds.
type held struct{ host.Secrets }

func (held) HeldSecrets(context.Context) map[string]string {
	return map[string]string{"password": "hunter2-hunter2"}
}

// TestRedactEvent puts a secret into every text of an event, whatever field it is in, and finds it in none but those
// that the host chooses.
func TestRedactEvent(t *testing.T) {
	const secret = "hunter2-hunter2"
	for _, text := range []string{secret, "of " + secret + ".", "aHVudGVyMi1odW50ZXIy", "http://a.test/?q=" + secret} {
		var e host.Event
		fillStrings(reflect.ValueOf(&e).Elem(), text, 0)
		e.Members, e.Err = map[string][]string{"kind": {text}}, &host.Error{Message: text}
		got := (&Redactor{Source: held{}}).RedactEvent(e)
		of := reflect.ValueOf(&got).Elem()
		for _, name := range ownTexts {
			of.FieldByName(name).SetString("")
		}
		if all, err := json.Marshal(got); err != nil || strings.Contains(string(all), text) {
			t.Errorf("%q is left: %s %v", text, all, err)
		}
	}
}

// fillStrings sets the strings in a value, and makes what they are in. Texts of JSON are strings in quotes.
func fillStrings(v reflect.Value, text string, depth int) {
	switch {
	case depth > 6:
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		v.Set(reflect.New(v.Type().Elem()))
		fillStrings(v.Elem(), text, depth+1)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillStrings(v.Field(i), text, depth+1)
			}
		}
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`"` + text + `"`))
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillStrings(v.Index(0), text, depth+1)
	case v.Type() == reflect.TypeFor[string]():
		v.SetString(text)
	}
}
