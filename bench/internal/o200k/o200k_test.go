package o200k

import "testing"

// TestCount compares the tokenizer with another implementation, gpt-tokenizer from npm.
func TestCount(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "hello world": 2, `{"type":"object","properties":{"name":{"type":"string"}}}`: 14, "Größe → 大きさ": 6,
		"<|endoftext|>": 7,
	} {
		if n := Count(text); n != want {
			t.Errorf("%q has %d tokens, expected %d", text, n, want)
		}
	}
}
