//go:build !wasip1

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
)

// reference decodes with encoding/json, and makes ints of short integers as decode promises.
func reference(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return withInts(v), err
}

func withInts(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withInts(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = withInts(v[name])
		}
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil && len(v) <= maxInt && v != "-0" {
			return n
		}
	}
	return v
}

// decodeSeeds are values in which a decoder of JSON can err.
var decodeSeeds = []string{
	`null`, `true`, ` false `, `0`, `-0`, `-1`, `999999999999999999`, `-99999999999999999`, `1000000000000000000`,
	`12345678901234567890123`, `1.10`, `-0.0`, `1e400`, `2E-7`, `1e+5`,
	`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\u2028\uD83D\ude00"`, "\"\u2028\u2029\\u2028\"",
	`"\ud800"`, `"\ud800x"`, `"\ud800\n"`, `"\udc00\ud83d\ude00"`, `"\ud83d\ud83d\ude00"`, `"\ud83d\u0041"`, `"\\u0041"`,
	"\"\xff\xfea\xc3\"", "\"\xff\\n\xed\xa0\x80\"",
	`[]`, `{}`, `[[],{},[{}]]`, "\t[ 1 ,\n2 , \"\" ]\r\n", ` { "a" : [ 1 , { "b" : null } ] , "" : "x" } `,
	`{"a":1,"a":2}`, `{"\u0061":1,"a":2}`, `[1,[2,[3,[4]]],{"a":{"b":{"c":5}}},6]`,
}

func FuzzDecode(f *testing.F) {
	for _, seed := range decodeSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return // the host passes valid JSON only
		}
		want, err := reference(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is decoded as %#v, want %#v", text, got, want)
		}
	})
}

// TestDecode decodes random nests of the seeds, which are deeper and larger than what FuzzDecode finds in seconds.
func TestDecode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var nest func(depth int) string
	nest = func(depth int) string {
		if depth == 0 || r.IntN(8) == 0 {
			return decodeSeeds[r.IntN(len(decodeSeeds))]
		}
		object, items := r.IntN(2) == 0, make([]string, r.IntN(20))
		for i := range items {
			if items[i] = nest(depth - 1); object {
				items[i] = fmt.Sprintf(`"%d":%s`, r.IntN(12), items[i])
			}
		}
		if object {
			return "{" + strings.Join(items, ",") + "}"
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	for range 300 {
		text := nest(4)
		want, err := reference([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := decode([]byte(text)); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s is decoded as %#v, want %#v", text, got, want)
		}
	}
}

// TestDecodeKeepsNumbers checks that what was decoded is written with the same digits.
func TestDecodeKeepsNumbers(t *testing.T) {
	for _, number := range decodeSeeds[3:15] {
		if got, err := gojq.Marshal(decode([]byte(number))); err != nil || string(got) != number {
			t.Errorf("%s is written as %s, %v", number, got, err)
		}
	}
}

// BenchmarkDecode compares decode with encoding/json.
func BenchmarkDecode(b *testing.B) {
	text := []byte("[" + strings.Repeat(`{"id":12345,"name":"a name","tags":["a","b"],"x":0.25,"text":"some <b>text</b>"},`,
		10_000) + "{}]")
	b.Run("encoding/json", func(b *testing.B) {
		for b.Loop() {
			_, _ = reference(text)
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			decode(text)
		}
	})
}
