package o200k

import "testing"

// TestCount holds the tokenizer to what another implementation, npm's gpt-tokenizer, counts.
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
