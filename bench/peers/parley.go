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

// newParleyServer returns Parley over MCP, in its default mode.
func newParleyServer(parley, home string) tool {
	return &server{
		title: "parley-mcp", command: []string{parley, "mcp"}, env: []string{"PARLEY_HOME=" + filepath.Join(home, "mcp")},
		start: `page__open {"url":"about:blank"}`,
	}
}

// program is a call that runs a program.
func program(source string) string { return "parley code - <<'E'\n" + source + "\nE" }

// The same calls over MCP.
func serverDo(steps ...string) string { return `page__do {"steps":[` + strings.Join(steps, ",") + "]}" }

func serverProgram(source string) string {
	return `call_tool {"name":"js.run","arguments":{"source":` + quoteJSON(source) + "}}"
}

// expression is a step that evaluates an expression.
func expression(text string) string { return `["evaluate",` + quoteJSON(text) + "]" }

// postSteps sign in, and post a note.
func postSteps(user, note string) []string {
	return []string{open, `["fill","User","` + user + `"]`, `["fill","Password","secret"]`, `["click","Sign in"]`,
		`["fill","Note","` + note + `"]`, `["click","Post"]`}
}

const (
	sums = `await tools.page.open({url: "URL"});
const data = JSON.parse((await tools.page.get({element: "css=pre"})).value);
const {results: [text]} = await tools.json.query({data, filter: '` + sumFilter + `'});
return (await tools.text.hash({text})).hex;`
	postGood = `["fill","Note","Good"],["click","Post"]`
)

// parleyScripted returns the jobs that differ at the command line and over MCP only by how a call is written.
func parleyScripted(do func(...string) string, program func(string) string, wait string) map[string]script {
	return map[string]script{
		"busy": {do(`["record","start"]`, open, `["record","stop"]`)},
		"form": {do(open, `["check","Post"]`, `["fill","Day","2026-12-24"]`, `["upload","Label","FILE"]`,
			`["fill","Card number","4111"]`, `["click","Order"]`)},
		"watch":   {do(open, `["text"]`), wait},
		"error":   {do(open, `["click","Pay"]`, `["console"]`)},
		"mock":    {do(`["route","block",{"resource":"image"}]`, `["route","mock","*/api/left","{\"left\":0}"]`, open)},
		"article": {do(open, `{"tool":"text","params":{"main":true}}`)},
		"program": {program(sums)},
	}
}

// Another connection of MCP may not replace a state.
const saveState, loadState = `["state","save","NAME"]`, `["state","load","NAME"],` + open

// What is compared is the part that was in the last picture.
var nextEdition = []string{`["click","Next edition"]`, `["compare"]`}

var parleyJobs = join(parleyScripted(do, program, `parley page wait "<~(Price: [0-9]+)~>" --gone`), map[string]script{
	"rows":    {do(open, `["text"]`), "parley page evaluate '" + allRows + "' --jq .value >rows.json"},
	"stock":   {do(open, expression(stockBegin)), "parley page evaluate '" + soldOut + "'"},
	"hash":    {do(open, `["click","Archive of March"]`, `{"tool":"downloads","params":{"save":"archive.bin"}}`)},
	"picture": {do(open), "parley page screenshot css=#poster", do(nextEdition...)},
	"users": {do(postSteps("ada", "Lunch")...) + " --session ada", do(postSteps("bob", "Yes")...) + " --session bob",
		do(postGood) + " --session ada"},
	"restart": {do(append(postSteps("ada", "")[:4], saveState)...), "parley cdp close --all && " + do(loadState)},
})

var parleyServerJobs = join(parleyScripted(serverDo, serverProgram,
	`page__wait {"text":"<~(Price: [0-9]+)~>","gone":true}`), map[string]script{
	"rows":  {serverDo(open, `["text"]`), serverDo(expression(allRows))},
	"stock": {serverDo(open, expression(stockBegin)), serverDo(expression(soldOut))},
	// The client's policy lets no tool write a file: this is the hash of what the link leads to.
	"hash": {serverDo(open, `["click","Archive of March"]`,
		`{"tool":"evaluate","params":{"element":"Archive of March","expression":`+quoteJSON(hashLink)+"}}")},
	"picture": {serverDo(open), `page__screenshot {"element":"css=#poster"}`, serverDo(nextEdition...)},
	"users": {serverDo(postSteps("ada", "Lunch")...), `call_tool {"name":"page.do","arguments":{"steps":[` +
		strings.Join(postSteps("bob", "Yes"), ",") + `]},"options":{"context":"bob"}}`, serverDo(postGood)},
	"restart": {serverDo(append(postSteps("ada", "")[:4], saveState)...), `call_tool {"name":"cdp.close","arguments":{}}`,
		serverDo(loadState)},
})
