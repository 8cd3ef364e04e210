// Package look has the verbs of page that look at a page: what it shows, what is in it, and whether it is as
// expected.
package look

import "github.com/parley-tools/parley/cdp/internal/keeper/page"

// Verbs are the verbs of this package, by name.
var Verbs = page.Verbs{
	"wait":       page.Wait(wait),
	"expect":     page.Wait(expect),
	"snapshot":   page.Look(snapshot),
	"text":       page.Look(text),
	"find":       page.Look(findElements),
	"get":        page.Look(get),
	"screenshot": page.Look(screenshot),
}
