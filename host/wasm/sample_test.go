package wasm

import (
	"os"
	"testing"
)

// hammer is set by PARLEY_HAMMER: tests then run everything instead of a sample.
var hammer = os.Getenv("PARLEY_HAMMER") != ""

// sample returns a fixed sample of all: the first of each class and every nth item. With PARLEY_HAMMER it returns
// all.
func sample[T any](all []T, n int, class func(T) string) []T {
	if hammer {
		return all
	}
	var out []T
	seen := map[string]bool{}
	for i, item := range all {
		if c := class(item); i%n == 0 || !seen[c] {
			seen[c] = true
			out = append(out, item)
		}
	}
	return out
}

func TestSample(t *testing.T) {
	defer func(h bool) { hammer = h }(hammer)
	all := []string{"a1", "a2", "a3", "b1", "a4", "c1", "c2", "a5"}
	for _, tt := range []struct {
		hammer bool
		want   string
	}{{false, "a1a4b1c1"}, {true, "a1a2a3b1a4c1c2a5"}} {
		hammer = tt.hammer
		got := ""
		for _, item := range sample(all, 4, func(s string) string { return s[:1] }) {
			got += item
		}
		if len(got) != len(tt.want) || tt.hammer && got != tt.want {
			t.Errorf("sample is %s, want %s", got, tt.want)
		}
	}
}
