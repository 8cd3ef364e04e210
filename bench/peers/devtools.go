package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// newDevtools returns chrome-devtools-mcp, with the option that adds clicks at coordinates.
func newDevtools(node, modules, chrome string) tool {
	return &server{
		title: "chrome-devtools-mcp",
		command: []string{node,
			filepath.Join(modules, "chrome-devtools-mcp", "build", "src", "bin", "chrome-devtools-mcp.js"), "--headless",
			"--isolated", "--executablePath", chrome, "--chromeArg=--no-sandbox", "--experimentalVision",
			"--no-usage-statistics"},
		start: `navigate_page {"pageId":1,"url":"about:blank"}`,
	}
}

const navigate = `navigate_page {"pageId":1,"url":"URL"}`

// look is how an agent gets the refs that actions require.
const look = `take_snapshot {"pageId":1}`

// click is a call that clicks an element, such as button "Save".
func click(element string) string { return `click {"pageId":1,"uid":"<` + element + `>"}` }

// evaluate is a call that runs a function in the page.
func evaluate(function string) string {
	return `evaluate_script {"pageId":1,"function":` + quoteJSON(function) + `}`
}

var devtoolsScripts = map[string]script{
	"title": {navigate}, // the reply has the title
	"login": {navigate, look, `fill_form {"pageId":1,"elements":[{"uid":"<textbox "User">","value":"ada"},` +
		`{"uid":"<textbox "Password">","value":"secret"}],"includeSnapshot":true}`,
		click(`button "Sign in"`), `wait_for {"pageId":1,"text":["Welcome"]}`},
	"list":  {navigate, look, click(`button "Delete Carl"`)},
	"table": {navigate, evaluate("() => document.body.innerText"), evaluate("() => " + sumInvoices)},
	"frames": {navigate, look, `fill_form {"pageId":1,"elements":[{"uid":"<textbox "Coupon">","value":"SPRING"},` +
		`{"uid":"<textbox "Card number">","value":"4111"}]}`},
	"shadow": {navigate, look, click(`button "Renew"`)},
	"dialogs": {navigate, look, click(`button "Archive"`), `handle_dialog {"pageId":1,"action":"accept"}`,
		click(`button "Rename"`), `handle_dialog {"pageId":1,"action":"accept","promptText":"Spring"}`},
	"download": {navigate, look, // no tool tells where a download is
		`evaluate_script {"pageId":1,"function":"async a => (await fetch(a.href)).text()",` +
			`"args":["<link "Report of March">"],"filePath":"report.csv"}`},
	"failures": {navigate, `list_network_requests {"pageId":1}`,
		`list_console_messages {"pageId":1,"types":["error"]}`},
	"worker": {navigate, `wait_for {"pageId":1,"text":["Answer:"]}`},
	"tab":    {navigate, look, click(`link "Terms"`), `list_pages {}`, `take_snapshot {"pageId":<new page>}`},
	"upload": {navigate, look, `upload_file {"pageId":1,"uid":"<button "Photo">","filePaths":["FILE"]}`},
	"drag":   {navigate, look, `drag {"pageId":1,"from_uid":"<text "Letter">","to_uid":"<region "Archive">"}`},
	"canvas": {navigate, evaluate(`() => document.querySelector("canvas").getBoundingClientRect()`),
		`click_at {"pageId":1,"x":<x+120>,"y":<y+80>}`},
	"covered": {navigate, look, click(`button "Order"`)},
	"slow":    {navigate, `wait_for {"pageId":1,"text":["Result:"]}`},
	"cards":   {navigate, look, click(`link "Fern 417"`)},
}

// evaluateOn is evaluate of an element, such as link "Terms".
func evaluateOn(element, function string) string {
	return `evaluate_script {"pageId":1,"function":` + quoteJSON(function) + `,"args":["<` + element + `>"]}`
}

// inContext is a call about the page of an isolated context.
func inContext(user, call, arguments string) string {
	return call + ` {"pageId":<~(\d+): [^\n]*isolatedContext=` + user + `~>` + arguments + "}"
}

// contextPosts sign in with an isolated context of the browser, and post a note.
func contextPosts(user, note string) script {
	return append(script{`new_page {"url":"URL","isolatedContext":"` + user + `"}`, inContext(user, "take_snapshot", ""),
		inContext(user, "fill_form", `,"elements":[{"uid":"<textbox "User">","value":"`+user+`"},`+
			`{"uid":"<textbox "Password">","value":"secret"}]`), inContext(user, "click", `,"uid":"<button "Sign in">","includeSnapshot":true`)},
		contextNote(user, note)...)
}

func contextNote(user, note string) script {
	return script{inContext(user, "fill", `,"uid":"<textbox "Note">","value":"`+note+`"`),
		inContext(user, "click", `,"uid":"<button "Post">"`)}
}

// devtoolsJobs has no script for picture, restart and mock: no tool compares pictures, keeps a login, or answers or
// blocks requests by their type.
var devtoolsJobs = map[string]script{
	"rows": {navigate, look, strings.TrimSuffix(evaluate("() => "+allRows), "}") + `,"filePath":"rows.json"}`},
	"busy": {navigate, `performance_start_trace {"pageId":1}`},
	"form": {navigate, look, `fill_form {"pageId":1,"elements":[{"uid":"<radio "Post">","value":"true"},` +
		`{"uid":"<Date "Day">","value":"2026-12-24"},{"uid":"<textbox "Card number">","value":"4111"}]}`,
		`upload_file {"pageId":1,"uid":"<button "Label">","filePaths":["FILE"]}`, click(`button "Order"`)},
	"hash": {navigate, look, click(`link "Archive of March"`), evaluateOn(`link "Archive of March"`, hashLink)},
	"users": slices.Concat(contextPosts("ada", "Lunch"), contextPosts("bob", "Yes"),
		script{inContext("ada", "take_snapshot", "")}, contextNote("ada", "Good")),
	"stock": {navigate, evaluate("() => " + stockBegin), evaluate("() => " + soldOut)},
	"watch": {navigate, look, evaluate(`async () => { let t; do { await new Promise(r => setTimeout(r, 50)); t = ` +
		`document.body.innerText } while (t.includes("<~(Price: [0-9]+)~>")); return t }`)},
	"error": {navigate, look, click(`button "Pay"`), `list_console_messages {"pageId":1,"types":["error"]}`,
		// It shows no text of an error that a promise leads to.
		`navigate_page {"pageId":1,"type":"reload","initScript":"addEventListener(\"unhandledrejection\", e => ` +
			`console.log(e.reason.stack))"}`, look, click(`button "Pay"`),
		`list_console_messages {"pageId":1,"types":["log"]}`,
		`list_network_requests {"pageId":1,"resourceTypes":["fetch","xhr"]}`},
	"article": {navigate, look, evaluate("() => (" + markdown + `)(document.querySelector("main"))`)},
	"program": {navigate, evaluate("() => " + sumHash)},
}
