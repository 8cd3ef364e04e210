package index

import (
	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// stem returns the stem of an English word in lower case by the Snowball English algorithm (Porter2). It returns words
// that are not plain ASCII letters, or are very long, unchanged.
func stem(word string) string {
	if len(word) < 3 || len(word) > maxTerm {
		return word
	}
	for i := range len(word) {
		if c := word[i]; (c < 'a' || c > 'z') && c != '\'' {
			return word
		}
	}
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}
