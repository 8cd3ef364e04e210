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
