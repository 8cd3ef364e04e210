// Package lazy makes values on first use: most commands run for milliseconds and use few of them.
package lazy

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled on first use.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
