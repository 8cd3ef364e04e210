package main

import (
	"encoding/json"
	"path/filepath"
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
	raw, _ := json.Marshal(function) // a string has always an encoding
	return `evaluate_script {"pageId":1,"function":` + string(raw) + `}`
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
