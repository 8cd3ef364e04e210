package frame

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestSkim checks which id a message that is not held has, in whatever pieces it arrives.
func TestSkim(t *testing.T) {
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"x"}`:            `1`,
		`{"params":{"id":2,"a":[{"id":3}]}, "id" : 1.50 }`: `1.50`,
		`{"params":"\"id\":7","id":"a\"},\\"}`:             `"a\"},\\"`,
		`{"\u0069d":"x","params":{}}`:                      `"x"`,
		` {"id":9007199254740993,"params":"` + "cut off":   `9007199254740993`,
		`{"id":1`:                     ``,
		`{"id":"1`:                    ``,
		`{"id":1,"id":2}`:             ``,
		`{"id":1,"id":1}`:             ``,
		`{"id":true}`:                 ``,
		`{"id":{"id":1}}`:             ``,
		`{"id":[1]}`:                  ``,
		`{"id":null}`:                 ``,
		`{"id":1 2}`:                  ``,
		`{"id":x}`:                    ``,
		`{"ID":1}`:                    ``,
		`{"a":"id","b":1}`:            ``,
		`["id",1]`:                    ``,
		`["id":1]`:                    ``,
		`{"a":{"x":0,"id":9},"id":1}`: `1`,
		`[{"id":1}]`:                  ``,
		`"id":1`:                      ``,
		`{"id":"` + strings.Repeat("x", maxSkimmedID) + `","a":1}`: ``,
		``: ``,
	} {
		if got := skim(strings.NewReader(message)); string(got) != want {
			t.Errorf("the id of %.100s is %.100s, expected %s", message, got, want)
		}
		if got := skim(iotest.OneByteReader(strings.NewReader(message))); string(got) != want {
			t.Errorf("byte by byte, the id of %.100s is %.100s, expected %s", message, got, want)
		}
	}
}

// TestSkimmedIDIsBounded checks that an id of any length is not held.
func TestSkimmedIDIsBounded(t *testing.T) {
	var s skimmer
	s.write([]byte(`{"id":"` + strings.Repeat("x", 16*maxSkimmedID)))
	if len(s.text) > maxSkimmedID+1 {
		t.Errorf("%d bytes are held", len(s.text))
	}
}

// FuzzSkim checks that skimming finds the id that a JSON decoder finds.
func FuzzSkim(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"params":{"id":[2,"}"]}}`))
	f.Add([]byte(`{"a":"\\","id":"\"","b":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		id := skim(strings.NewReader(string(data)))
		e := parseMessage(data)
		if !json.Valid(data) || e.err != nil && strings.Contains(e.err.Message, "twice") {
			return
		}
		if string(id) != string(e.id) {
			t.Errorf("the id of %q is %q, skimmed %q", data, e.id, id)
		}
	})
}

// TestRestore checks that every id comes back from what the SDK writes, and that nothing else changes.
func TestRestore(t *testing.T) {
	for _, id := range []string{`1`, `1.50`, `"a\"\u00e4"`, `""`} {
		inner := innerID([]byte(id))
		for _, form := range []string{`{"id":%s}`, `%s`, `[%[1]s,%[1]s,"x"]`, `{"text":"\"` + mark() + `\"","id":%s}`} {
			want := fmt.Sprintf(form, id)
			if got := string(restore([]byte(fmt.Sprintf(form, `"`+inner+`"`)))); got != want {
				t.Errorf("%s is restored as %s", want, got)
			}
		}
		message := outerError(fmt.Errorf("request %v is unknown", inner)).Message
		if message != "request "+id+" is unknown" {
			t.Errorf("the message is %q", message)
		}
	}
	for _, text := range []string{``, `"` + mark(), `"` + mark() + `!"`, `{"a":"` + mark() + `"}x`} {
		if got := restore([]byte(text)); len(got) == 0 != (text == "") {
			t.Errorf("%q is restored as %q", text, got)
		}
	}
}

// TestOuterError checks that no error leaves without a code of the table.
func TestOuterError(t *testing.T) {
	for code := int64(-33000); code < 10; code++ {
		e := outerError(fmt.Errorf("outer: %w", &jsonrpc.Error{Code: code, Message: "x", Data: json.RawMessage("1")}))
		if !slices.Contains(Codes(), e.Code) || slices.Contains(Codes(), code) && e.Code != code {
			t.Errorf("the code %d becomes %d", code, e.Code)
		}
	}
	long := outerError(errors.New(strings.Repeat("long\n", 1<<20)))
	if len(long.Message) > maxErrorMessage+10 || strings.Contains(long.Message, "\n") || long.Code != -32603 {
		t.Errorf("%d bytes, code %d", len(long.Message), long.Code)
	}
}
