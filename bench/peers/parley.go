package main

import (
	"path/filepath"
	"strings"
)

// newParley returns Parley's command line. Each task gets a new session with an empty page, as others have one; a page
// of another session keeps the browser open between tasks.
func newParley(home string) tool {
	lessons := []string{"parley --help", "parley page --list"}
	for _, verb := range []string{"do", "snapshot", "text", "click", "fill", "wait", "get", "evaluate", "upload", "drag"} {
		lessons = append(lessons, "parley page "+verb+" --describe")
	}
	return &commandLine{
		title: "parley",
		env:   []string{"PARLEY_HOME=" + filepath.Join(home, "parley"), "PARLEY_AGENT=1", "PARLEY_SESSION=$SESSION"},
		start: "parley page open about:blank --session keep-$SESSION && parley page open about:blank",
		clear: "parley session end $SESSION && parley page open about:blank",
		close: "parley session end $SESSION", closeAll: "parley cdp close --all", learn: lessons,
	}
}

// do is a call that runs steps.
func do(steps ...string) string { return "parley page do '[" + strings.Join(steps, ",") + "]'" }

const open = `["open","URL"]`

var parleyScripts = map[string]script{
	"title":    {`parley page open URL`},
	"login":    {do(open, `["fill","User","ada"]`, `["fill","Password","secret"]`, `["click","Sign in"]`, `["wait","Welcome"]`)},
	"list":     {do(open, `["click","Delete Carl"]`)},
	"table":    {do(open, `["text"]`), "parley page evaluate '" + sumInvoices + "'"},
	"frames":   {do(open, `["fill","Coupon","SPRING"]`, `["fill","Card number","4111"]`)},
	"shadow":   {do(open, `["click","Renew"]`)},
	"dialogs":  {do(open, `["click","Archive"]`, `["click","Rename"]`) + " --on-dialog accept=Spring"},
	"download": {do(open, `["click","Report of March"]`)},
	"failures": {`parley page open URL`},
	"worker":   {do(open, `["wait","Answer:"]`)},
	"tab":      {do(open, `["click","Terms"]`), `parley page text --target <new page>`},
	"upload":   {do(open, `["upload","Photo","FILE"]`)},
	"drag":     {do(open, `["drag","Letter","Archive"]`)},
	"canvas":   {do(open, `{"tool":"click","params":{"element":"css=canvas","at":[120,80]}}`)},
	"covered":  {do(open, `["click","Order"]`)},
	"slow":     {do(open, `["wait","Result:"]`)},
	"cards":    {do(open, `["snapshot"]`), `parley page click "Fern 417"`},
}
