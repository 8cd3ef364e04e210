package command

import (
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// UnknownValue returns the error of a word that is not one of the allowed ones. The name is that of an option, without
// dashes, or in capitals that of a positional word.
func UnknownValue(name, given string, allowed []string) *host.Error {
	given = manifest.CleanLine(given)
	if strings.ToLower(name) == name {
		name = "--" + name
	}
	expected := "one of " + strings.Join(allowed, ", ")
	e := host.Errorf(host.InvalidArgs, "%s: %q is not %s", name, given, expected)
	e.Details = []host.Detail{{Parameter: name, Keyword: "enum", Provided: given, Expected: expected}}
	for _, n := range schema.Nearest(given, allowed, 3) {
		e.DidYouMean = append(e.DidYouMean, host.NearName(n))
	}
	return e
}
