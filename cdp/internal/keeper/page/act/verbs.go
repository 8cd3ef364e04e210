// Package act has the verbs of page that act: input as a person gives it, navigation, and the caller's JavaScript.
// They report what they caused.
package act

import "github.com/parley-tools/parley/cdp/internal/keeper/page"

// Verbs are the verbs of this package, by name.
var Verbs = page.Verbs{
	"dialog":   page.Manage(answerDialog),
	"open":     page.Manage(open),
	"go":       page.Manage(move),
	"tabs":     page.Manage(tabs),
	"evaluate": page.Act(evaluate),
	"click":    page.Act(click),
	"drag":     page.Act(drag),
	"hover":    page.Act(hover),
	"upload":   page.Act(upload),
	"fill":     page.Act(fill),
	"type":     page.Act(typeText),
	"press":    page.Act(press),
	"select":   page.Act(selectOptions),
	"check":    page.Act(check),
	"scroll":   page.Act(scroll),
}
