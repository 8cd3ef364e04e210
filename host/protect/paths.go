package protect

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// PathShortener returns a function for texts that leave this machine. It shortens the paths in a text that begin with
// one of the prefixes to their last element.
func PathShortener(prefixes []string) func(text string) string {
	var all []string
	for _, p := range prefixes {
		if len(p) > 1 { // neither "" nor the root
			all = append(all, regexp.QuoteMeta(p))
		}
	}
	if len(all) == 0 {
		return func(text string) string { return text }
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	pattern := regexp.MustCompile("(?:" + strings.Join(all, "|") + `)[^\s"'\\:,;)]*`)
	return func(text string) string { return pattern.ReplaceAllStringFunc(text, path.Base) }
}
