package main

import "strings"

// newAgentBrowser returns the native binary of agent-browser. Its log of requests is of the whole session and would
// grow from task to task.
func newAgentBrowser(env []string) tool {
	return &commandLine{
		title: "agent-browser",
		env:   append(env, "AGENT_BROWSER_SESSION=$SESSION"),
		start: "agent-browser open about:blank",
		clear: `agent-browser batch --bail "open about:blank" "network requests --clear" "console --clear" "errors --clear"`,
		close: "agent-browser close", closeAll: "agent-browser close --all",
		learn: []string{"agent-browser skills get core"},
	}
}

// batch is a call that makes other calls until one fails.
func batch(calls ...string) string { return "agent-browser batch --bail " + quoteAll(calls) }

// quoteAll quotes the words of a shell as a person would.
func quoteAll(words []string) string {
	var all []string
	for _, word := range words {
		switch {
		case !strings.Contains(word, " "):
		case strings.Contains(word, `"`) && !strings.Contains(word, "'"):
			word = "'" + word + "'"
		default:
			word = `"` + strings.ReplaceAll(word, `"`, `\"`) + `"`
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

var agentBrowserScripts = map[string]script{
	"title": {`agent-browser open URL`},
	"login": {batch("open URL", "find label User fill ada", "find label Password fill secret",
		`find role button click --name "Sign in"`, "wait --text Welcome", "read")},
	"list":  {batch("open URL", `find role button click --name "Delete Carl"`)},
	"table": {batch("open URL", "read"), "agent-browser eval '" + sumInvoices + "'"},
	"frames": { // find does not look into frames
		batch("open URL", "snapshot -i"),
		`agent-browser batch --bail "fill @<textbox "Coupon"> SPRING" "fill @<textbox "Card number"> 4111"`,
	},
	"shadow": {batch("open URL", "find role button click --name Renew")},
	"dialogs": {batch("open URL", "find role button click --name Archive", "dialog accept",
		"find role button click --name Rename", "dialog accept Spring")},
	"download": {batch("open URL", "snapshot -i"), `agent-browser download @<link "Report of March"> report.csv`},
	"failures": { // without --json, errors prints no texts
		`agent-browser batch "open URL" "network requests --status 400-599" console errors`,
		`agent-browser errors --json`,
	},
	"worker":  {batch("open URL", "wait --text Answer:", "read")},
	"tab":     {batch("open URL", "find role link click --name Terms", "read")},
	"upload":  {batch("open URL", "upload 'input[type=file]' FILE")},
	"drag":    {batch("open URL", `drag "xpath=//*[text()='Letter']" "xpath=//*[text()='Archive']"`)},
	"canvas":  {batch("open URL", "get box canvas"), batch("mouse move <x+120> <y+80>", "mouse down", "mouse up")},
	"covered": {batch("open URL", "find role button click --name Order")},
	"slow":    {batch("open URL", "wait --text Result:", "read")},
	"cards":   {batch("open URL", "snapshot -i"), `agent-browser click @<link "Fern 417">`},
}
