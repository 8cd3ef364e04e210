// Package lazy creates values on first use: most commands run for milliseconds and use few of them.
package lazy

import (
	"regexp"
	"strings"
	"sync"
)

// Pattern is a regular expression that is compiled on first use.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// Words returns the set of the words in a list with white space between them. It is made on first use.
func Words(list string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		set := map[string]bool{}
		for _, w := range strings.Fields(list) {
			set[w] = true
		}
		return set
	})
}
