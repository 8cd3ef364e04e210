package record

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// notNames are the texts of an event that are no names: words of the host, the query, which only traces record, and the
// subject, which is shorter.
var notNames = []string{"Op", "Mode", "Query", "Audit", "Transport", "Subject"}

// Whoever calls cannot get a long text, a line break or a control character into a record by a name.
func TestNamed(t *testing.T) {
	hostile := "a\nb\x1b[2J\u202e" + strings.Repeat("x", 1000)
	var e host.Event
	fields := reflect.VisibleFields(reflect.TypeFor[host.Event]())
	for _, f := range fields {
		if f.Type.Kind() == reflect.String {
			reflect.ValueOf(&e).Elem().FieldByIndex(f.Index).SetString(hostile)
		}
	}
	named, names := Named(e), 0
	for _, f := range fields {
		if f.Type.Kind() != reflect.String || slices.Contains(notNames, f.Name) {
			continue
		}
		names++
		got := reflect.ValueOf(named).FieldByIndex(f.Index).String()
		if len(got) > MaxName || manifest.CleanLine(got) != got || !strings.HasSuffix(got, "…") {
			t.Errorf("%s is %q", f.Name, got)
		}
	}
	if names < 10 {
		t.Errorf("only %d names", names)
	}
	if got := named.Subject; len(got) > maxSubject || manifest.CleanLine(got) != got || !strings.HasSuffix(got, "…") {
		t.Errorf("Subject is %q", got)
	}
	for given, want := range map[string]string{
		`button "Why? #1" at https://u:p@a.example:8/b/c?token=s3#k`: `button "Why? #1" at https://a.example:8/b/c`,
		`document at http://a.example/d?next=http://b.example/?x`:    `document at http://a.example/d`,
		`link "HTTPS://a.example?s3" at data:text/html,<p>s3`:        `link "HTTPS://a.example" at data:`,
		`document at about:blank`:                                    `document at about:blank`,
	} {
		if got := Named(host.Event{Subject: given}).Subject; got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
	if got := Name("text.hash"); got != "text.hash" {
		t.Error(got)
	}
	if got := Milliseconds(1234567); got != 1.235 {
		t.Error(got)
	}
}
