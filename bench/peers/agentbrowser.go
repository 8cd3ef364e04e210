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

// then is a call of several commands, the last of which may print into a pipe.
func then(commands ...string) string {
	return "agent-browser " + strings.Join(commands, " && agent-browser ")
}

// sessionPosts is a call that signs in and posts a note, in a session of its own.
func sessionPosts(user, note string) string {
	return "agent-browser --session " + user + " batch --bail " + quoteAll([]string{"open URL",
		"find label User fill " + user, "find label Password fill secret", `find role button click --name "Sign in"`,
		"wait --text Note", "find label Note fill " + note, "find role button click --name Post"})
}

// hottest is a filter of jq that finds the functions of a trace which were seen most often.
const hottest = `[.traceEvents[].args.data.cpuProfile? // empty] | ` +
	`(map(.nodes[]? | {(.id|tostring): .callFrame.functionName}) | add) as $f | map(.samples[]?) | group_by(.) | sort_by(-length)[:3] | map($f[.[0]|tostring])`

var agentBrowserJobs = map[string]script{
	"rows": {batch("open URL", "wait --load networkidle", "read"), "agent-browser eval '" + allRows + "' >rows.json"},
	"busy": {batch("profiler start", "open URL", "profiler stop p.json") + " && jq -c '" + hottest + "' p.json"},
	// fill does not reach a date.
	"form": {batch("open URL", "snapshot -i"), `agent-browser batch --bail "check @<radio "Post">" ` +
		`"eval 'document.querySelector(\"input[type=date]\").value = \"2026-12-24\"'" "upload @<button "Label"> FILE" ` +
		`"fill @<textbox "Card number"> 4111" "click @<button "Order">"`},
	"hash": {batch("open URL", "snapshot -i"),
		then(`download @<link "Archive of March"> archive.bin`) + " && sha256sum archive.bin"},
	"users": {sessionPosts("ada", "Lunch"), sessionPosts("bob", "Yes"), "agent-browser --session ada batch --bail " +
		quoteAll([]string{"find label Note fill Good", "find role button click --name Post"})},
	"stock": {then("open URL", "eval '"+stockBegin+"'"), then("eval '" + soldOut + "'")},
	"watch": {batch("open URL", "read"),
		then(`wait --fn '!document.body.innerText.includes("<~(Price: [0-9]+)~>")'`, "read")},
	"error": {batch("open URL", "find role button click --name Pay", "wait 500"),
		then("errors --json", "network requests --status 400-599")},
	"picture": {batch("open URL", "screenshot #poster a.png", "find role button click --name 'Next edition'",
		"screenshot #poster b.png") + ` && agent-browser eval "(` + strings.ReplaceAll(changedBox, `"`, "'") +
		`)('$(base64 -w0 a.png)', '$(base64 -w0 b.png)')"`},
	"restart": {batch("open URL", "find label User fill ada", "find label Password fill secret",
		`find role button click --name "Sign in"`, `wait --fn '!document.querySelector("[type=password]")'`,
		"state save ada.json"), then("close", "--state ada.json open URL")},
	"mock": {batch("network route * --abort --resource-type image",
		`network route */api/left --body '{"left":0}'`, "open URL")},
	"article": {batch("open URL", "read"),
		"agent-browser eval --stdin <<'E'\n(" + markdown + `)(document.querySelector("article"))` + "\nE"},
	"program": {"agent-browser open URL && agent-browser get text pre | jq -j '" + sumFilter + "' | sha256sum"},
}
