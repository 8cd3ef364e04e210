package main

import (
	"path/filepath"
	"strings"
)

// newPlaywright returns playwright-cli. Its --raw leaves out the state of the page and the code that has run.
func newPlaywright(home, modules, chrome string) tool {
	return &commandLine{
		title: "playwright-cli",
		env: []string{"HOME=" + home, "PLAYWRIGHT_CLI_SESSION=$SESSION", "PLAYWRIGHT_MCP_EXECUTABLE_PATH=" + chrome,
			"PLAYWRIGHT_MCP_BROWSER=chromium", "PLAYWRIGHT_MCP_SANDBOX=false"},
		start: "playwright-cli open about:blank", clear: "playwright-cli goto about:blank",
		close: "playwright-cli close", closeAll: "playwright-cli close-all",
		learn: []string{"cat " + filepath.Join(modules, "@playwright", "cli", "skills", "playwright-cli", "SKILL.md")},
	}
}

// code is a call that opens the page and runs Playwright code in it.
func code(statements ...string) string {
	all := append([]string{"await page.goto('URL')"}, statements...)
	return `playwright-cli --raw run-code "async page => { ` + strings.Join(all, "; ") + ` }"`
}

var playwrightScripts = map[string]script{
	"title": {code(`return page.title()`)},
	"login": {code(`await page.getByLabel('User').fill('ada')`, `await page.getByLabel('Password').fill('secret')`,
		`await page.getByRole('button', {name: 'Sign in'}).click()`, `return page.getByText('Welcome').innerText()`)},
	"list": {code(`await page.getByRole('button', {name: 'Delete Carl'}).click()`)},
	"table": {code(`return page.locator('body').innerText()`),
		"playwright-cli --raw eval '() => " + sumInvoices + "'"},
	"frames": {code(`for (const [label, value] of [['Coupon', 'SPRING'], ['Card number', '4111']]) ` +
		`for (const frame of page.frames()) ` +
		`if (await frame.getByLabel(label).count()) await frame.getByLabel(label).fill(value)`)},
	"shadow": {code(`await page.getByRole('button', {name: 'Renew'}).click()`)},
	"dialogs": {code(`page.on('dialog', d => d.accept('Spring'))`,
		`await page.getByRole('button', {name: 'Archive'}).click()`,
		`await page.getByRole('button', {name: 'Rename'}).click()`)},
	"download": {code(`const download = page.waitForEvent('download')`,
		`await page.getByText('Report of March').click()`, `await (await download).saveAs('report.csv')`)},
	"failures": {`playwright-cli goto URL && playwright-cli --raw requests && playwright-cli --raw console error`},
	"worker":   {code(`return page.getByText('Answer:').innerText()`)},
	"tab": {code(`const popup = page.waitForEvent('popup')`, `await page.getByRole('link', {name: 'Terms'}).click()`,
		`return (await popup).locator('body').innerText()`)},
	"upload":  {code(`await page.getByLabel('Photo').setInputFiles('FILE')`)},
	"drag":    {code(`await page.getByText('Letter').dragTo(page.getByLabel('Archive'))`)},
	"canvas":  {code(`await page.locator('canvas').click({position: {x: 120, y: 80}})`)},
	"covered": {`playwright-cli goto URL && playwright-cli --raw click "getByRole('button', {name: 'Order'})"`},
	"slow":    {code(`return page.getByText('Result:').innerText()`)},
	"cards": {`playwright-cli goto URL && playwright-cli --raw snapshot`,
		`playwright-cli --raw click "getByRole('link', {name: 'Fern 417'})"`},
}

// newPlaywrightServer returns the MCP server that is part of Playwright.
func newPlaywrightServer(node, modules, chrome string) tool {
	return &server{
		title: "playwright-mcp",
		command: []string{node, filepath.Join(modules, "playwright-core", "cli.js"), "mcp", "--headless", "--isolated",
			"--no-sandbox", "--codegen", "none", "--executable-path", chrome},
		start: `browser_navigate {"url":"about:blank"}`,
	}
}

func playwrightServerCode(function string) string {
	return `browser_run_code_unsafe {"code":` + quoteJSON(function) + "}"
}

// rawCode is a call that runs a function of Playwright, at the command line.
func rawCode(function string) string { return "playwright-cli --raw run-code '" + function + "'" }

// opened is a function that opens the page and goes on.
func opened(statements ...string) string {
	return `async page => { await page.goto("URL"); ` + strings.Join(statements, "; ") + " }"
}

// postedBy are statements that sign in on a page and post a note, posted those that post another.
func postedBy(page, user, note string) string {
	return `await ` + page + `.goto("URL"); await ` + page + `.getByLabel("User").fill("` + user + `"); await ` + page +
		`.getByLabel("Password").fill("secret"); await ` + page + `.getByRole("button", {name: "Sign in"}).click(); ` +
		posted(page, note)
}

func posted(page, note string) string {
	return `await ` + page + `.getByLabel("Note").fill("` + note + `"); await ` + page +
		`.getByRole("button", {name: "Post"}).click()`
}

// playwrightJobs returns scripts in which each call runs a function, so that they serve both programs of Playwright.
func playwrightJobs(run func(function string) string) map[string]script {
	return map[string]script{
		"busy": {run(`async page => { const c = await page.context().newCDPSession(page); await c.send("Profiler.enable"); ` +
			`await c.send("Profiler.start"); await page.goto("URL"); const {profile} = await c.send("Profiler.stop"); return ` +
			`profile.nodes.sort((a, b) => b.hitCount - a.hitCount).slice(0, 3).map(n => n.callFrame.functionName) }`)},
		"form": {run(opened(`await page.getByLabel("Post").check()`, `await page.getByLabel("Day").fill("2026-12-24")`,
			`await page.locator("[type=file]").setInputFiles("FILE")`,
			`for (const f of page.frames()) if (await f.getByLabel("Card number").count()) `+
				`await f.getByLabel("Card number").fill("4111")`,
			`await page.getByRole("button", {name: "Order"}).click()`))},
		"hash": {run(opened(`const d = page.waitForEvent("download")`, `const a = page.getByText("Archive of March")`,
			`await a.click()`, `await d`, "return a.evaluate("+hashLink+")"))},
		"users": {run(`async page => { const [a, b] = await Promise.all([0, 0].map(async () => (await ` +
			`page.context().browser().newContext()).newPage())); ` + postedBy("a", "ada", "Lunch") + "; " +
			postedBy("b", "bob", "Yes") + "; " + posted("a", "Good") + " }")},
		"stock": {run(opened("return page.evaluate(() => " + stockBegin + ")")),
			run("page => page.evaluate(() => " + soldOut + ")")},
		"watch": {run(opened(`return page.locator("body").innerText()`)),
			run(`async page => { await page.getByText("<~(Price: [0-9]+)~>").waitFor({state: "hidden"}); ` +
				`return page.locator("body").innerText() }`)},
		"error": {run(`async page => { const all = []; page.on("pageerror", e => all.push(e.stack)); page.on("response", ` +
			`r => r.status() >= 400 && all.push(r.status() + " " + r.url())); await page.goto("URL"); await ` +
			`page.getByRole("button", {name: "Pay"}).click(); await page.waitForTimeout(500); return all }`)},
		"picture": {run(opened(`const shot = async () => (await page.locator("#poster").screenshot()).toString("base64")`,
			`const a = await shot()`, `await page.getByText("Next edition").click()`,
			"return page.evaluate(([a, b]) => ("+changedBox+")(a, b), [a, await shot()])"))},
		"mock": {run(`async page => { await page.route("**/*", r => r.request().resourceType() == "image" ? r.abort() : ` +
			`r.fallback()); await page.route("**/api/left", r => r.fulfill({json: {left: 0}})); await page.goto("URL"); ` +
			`return page.locator("body").innerText() }`)},
		"article": {run(opened(`return page.locator("article").evaluate(` + markdown + ")"))},
		"program": {run(opened("return page.evaluate(() => " + sumHash + ")"))},
	}
}

// firstPage is a function that shows the first page of a table.
var firstPage = opened(`await page.waitForLoadState("networkidle")`, `return page.locator("body").innerText()`)

// playwrightShellJobs are where the command line has a shorter way, or the only one.
var playwrightShellJobs = map[string]script{
	"rows": {rawCode(firstPage),
		"playwright-cli --raw eval '() => " + allRows + "' >rows.json"},
	"hash": {rawCode(opened(`const d = page.waitForEvent("download")`, `await page.getByText("Archive of March").click()`,
		`await (await d).saveAs("archive.bin")`)) + " && sha256sum archive.bin"},
	"restart": {rawCode(opened(`await page.getByLabel("User").fill("ada")`, `await page.getByLabel("Password").fill("secret")`,
		`await page.getByRole("button", {name: "Sign in"}).click()`)) + ` && playwright-cli --raw state-save ada.json`,
		"playwright-cli --raw close && playwright-cli --raw open && playwright-cli --raw state-load ada.json && " +
			"playwright-cli --raw goto URL"},
}

// playwrightServerJobs are where MCP has a shorter way, or needs another.
var playwrightServerJobs = map[string]script{
	"rows": {playwrightServerCode(firstPage),
		`browser_evaluate {"filename":"rows.json","function":` + quoteJSON("() => "+allRows) + "}"},
	"restart": {playwrightServerCode(opened(`await page.getByLabel("User").fill("ada")`,
		`await page.getByLabel("Password").fill("secret")`, `await page.getByRole("button", {name: "Sign in"}).click()`,
		`return JSON.stringify(await page.context().cookies())`)), `browser_close {}`,
		playwrightServerCode(`async page => { await page.context().addCookies(<~([[]{.*}])~>); await page.goto("URL") }`)},
}
