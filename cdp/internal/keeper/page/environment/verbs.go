// Package environment has the verbs of page for what surrounds a page: its requests and console messages, its
// storage, its network and its device.
package environment

import "github.com/parley-tools/parley/cdp/internal/keeper/page"

// Verbs are the verbs of this package, by name.
var Verbs = page.Verbs{
	"cookies":   page.Look(cookies),
	"storage":   page.Look(storage),
	"state":     page.Look(state),
	"route":     page.Manage(route),
	"emulate":   page.Act(emulate),
	"vitals":    page.Look(vitals),
	"record":    page.List(record),
	"console":   page.List(console),
	"downloads": page.List(downloads),
	"requests":  page.List(requests),
}
