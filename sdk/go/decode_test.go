//go:build !wasip1

package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// kept has fields that unmarshal keeps as parts of the text, and others.
type kept struct {
	Data   json.RawMessage   `json:"data"`
	More   json.RawMessage   `json:"more,omitempty"`
	Pieces []json.RawMessage `json:"pieces,omitempty"`
	Any    any               `json:"any,omitempty"`
	Text   string            `json:"text,omitempty"`
	Number *int              `json:"number,omitempty"`
	Nested struct {
		Data json.RawMessage `json:"data"`
	} `json:"nested"`
}

// TestUnmarshal compares unmarshal with json.Unmarshal, with values on both sides of the size from which it differs.
func TestUnmarshal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	long := strings.Repeat(`é\"\\,:{}[]\u2028`, minKept/20)
	values := []string{`null`, `1`, `"a\"b"`, `{"data":[1]}`, `"` + long + `"`, `["` + long + `",{"data":"` + long + `"}]`,
		`{"` + long + `":[{},[],"\\"]}`, `"\\\\"`}
	for range 5000 {
		var members []string
		for _, name := range []string{"data", "more", "any", "text", "number", "pieces", "nested", "x\\\"y", "hidden"} {
			if r.IntN(2) == 0 {
				members = append(members, `"`+name+`"`+[]string{":", " : "}[r.IntN(2)]+values[r.IntN(len(values))])
			}
		}
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		text := "{" + strings.Join(members, []string{",", " ,\n"}[r.IntN(2)]) + "}"
		if r.IntN(10) == 0 {
			text = text[:r.IntN(len(text))] // not valid: an error, but no panic
		}
		var got, want kept
		gotErr, wantErr := unmarshal([]byte(text), &got), json.Unmarshal([]byte(text), &want)
		if (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("%.300s: %v, want %v", text, gotErr, wantErr)
		}
		if gotErr == nil && !reflect.DeepEqual(trimmed(got), trimmed(want)) {
			t.Fatalf("%.300s is decoded as\n%.300s\nwant\n%.300s", text, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
}

// trimmed returns k without the white space around the texts of its members.
func trimmed(k kept) kept {
	k.Data, k.More = bytes.TrimSpace(k.Data), bytes.TrimSpace(k.More)
	return k
}

// TestKeptMembersDoNotOverlap checks that a plugin which appends to a member changes no other.
func TestKeptMembersDoNotOverlap(t *testing.T) {
	long := `"` + strings.Repeat("a", minKept) + `"`
	var k kept
	if err := unmarshal(fmt.Appendf(nil, `{"data":%s,"more":%s}`, long, long), &k); err != nil {
		t.Fatal(err)
	}
	_ = append(k.Data, "overwritten"...)
	if string(k.More) != long {
		t.Errorf("the next member begins with %.20s", k.More)
	}
}

// TestEncodeEscapesLittle checks that a text is written with the escapes that JSON requires and no others.
func TestEncodeEscapesLittle(t *testing.T) {
	for text, want := range map[string]string{
		"<a>&\u2028\u2029é\u200d": "\"<a>&\u2028\u2029é\u200d\"",
		`\u2028`:                  `"\\u2028"`, `\` + "\u2028": `"\\` + "\u2028" + `"`, `\\u2029`: `"\\\\u2029"`, `\u202a`: `"\\u202a"`,
		"\"\n\x01": `"\"\n\u0001"`,
	} {
		raw, err := encode(text)
		var back string
		if err == nil {
			err = json.Unmarshal(raw, &back)
		}
		if string(raw) != want || back != text || err != nil {
			t.Errorf("%q is written as %s, %v; want %s", text, raw, err, want)
		}
	}
}
