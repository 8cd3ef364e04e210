package main

import (
	"encoding/json"
	"maps"
	"strings"
)

// script holds the calls of an agent that knows its tool, in order. It knows a page only from what it was asked and
// from replies; [agent.fill] replaces what it learns from those. It puts as much as the tool allows into one call, and
// looks at the page only where the tool needs it.
type script []string

// scripts are by the name of a tool and of a task or job.
var scripts = map[string]map[string]script{
	"parley":              join(parleyScripts, parleyJobs),
	"agent-browser":       join(agentBrowserScripts, agentBrowserJobs),
	"playwright-cli":      join(playwrightScripts, join(playwrightJobs(rawCode), playwrightShellJobs)),
	"chrome-devtools-mcp": join(devtoolsScripts, devtoolsJobs),
	"parley-mcp":          parleyServerJobs,
	"playwright-mcp":      join(playwrightJobs(playwrightServerCode), playwrightServerJobs),
}

func join(a, b map[string]script) map[string]script {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// quoteJSON returns a text as JSON, as a model writes it.
func quoteJSON(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string has always an encoding
	return strings.TrimSuffix(b.String(), "\n")
}

// sumInvoices is how an agent adds up the pages of a table that it has seen the first page of.
const sumInvoices = `(async () => {
let sum = 0;
for (let page = 1; ; page++) {
while (!document.body.innerText.includes("Page " + page + " of 9")) await new Promise(r => setTimeout(r, 20));
for (const row of document.querySelectorAll("tbody tr")) sum += +row.cells[2].textContent;
if (page == 9) return sum;
[...document.querySelectorAll("button")].find(b => b.textContent == "Next").click();
}
})()`

// Functions and expressions that agents write for jobs, once they know the page.
const (
	allRows = `(async () => {
const rows = [];
for (let page = 1; ; page++) {
while (!document.body.innerText.includes("Page " + page + " of <~of ([0-9]+)~>"))
await new Promise(r => setTimeout(r, 20));
for (const {cells: [n, c, a]} of document.querySelectorAll("tbody tr"))
rows.push({number: n.innerText, customer: c.innerText, amount: +a.innerText});
if (page == <~of ([0-9]+)~>) return rows;
[...document.querySelectorAll("button")].find(b => b.innerText == "Next").click();
}
})()`
	hex        = `[...new Uint8Array(h)].map(b => b.toString(16).padStart(2, "0")).join("")`
	stockBegin = `fetch("/stock.json").then(r => r.text()).then(t => t.slice(0, 300))`
	soldOut    = `fetch("/stock.json").then(r => r.json()).then(d => ` +
		`d.items.filter(i => !i.left && i.price > 900).map(i => i.sku))`
	hashLink = `async a => { const h = await crypto.subtle.digest("SHA-256", ` +
		`await (await fetch(a.href)).arrayBuffer()); return ` + hex + ` }`
	sumHash = `(async () => {
const sum = {};
for (const o of JSON.parse(document.querySelector("pre").innerText)) sum[o.customer] = (sum[o.customer] || 0) + o.amount;
const line = ["Ada", "Bob", "Carl"].map(c => c + "=" + sum[c]).join(" ");
const h = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(line));
return ` + hex + `;
})()`
	sumFilter  = `group_by(.customer) | map(.[0].customer + "=" + (map(.amount) | add | tostring)) | join(" ")`
	changedBox = `async (...both) => {
const [a, b] = await Promise.all(both.map(async data => {
const i = await createImageBitmap(await (await fetch("data:image/png;base64," + data)).blob());
const c = new OffscreenCanvas(i.width, i.height).getContext("2d");
c.drawImage(i, 0, 0);
return c.getImageData(0, 0, i.width, i.height);
}));
const xs = [], ys = [];
a.data.forEach((v, i) => { if (v != b.data[i]) { xs.push((i >> 2) % a.width); ys.push(Math.floor((i >> 2) / a.width)) } });
const ends = all => all.reduce(([l, h], v) => [Math.min(l, v), Math.max(h, v + 1)], [1e9, 0]);
return [ends(xs), ends(ys)];
}`
	// markdown is of an element, for tools that do not write it.
	markdown = `e => { const md = n => n.nodeType == 3 ? n.data.replace(/\s+/g, " ") : n.tagName == "PRE" ?
"\n" + "` + "```" + `\n" + n.innerText + "\n` + "```" + `\n" : n.tagName == "TABLE" ?
[...n.rows].map((r, i) => "\n| " + [...r.cells].map(md).join(" | ") + " |" +
(i ? "" : "\n" + "| --- ".repeat(r.cells.length) + "|")).join("") + "\n" :
wrap(n, [...n.childNodes].map(md).join(""));
const wrap = (n, t) => ({H1: "\n# " + t + "\n", H2: "\n## " + t + "\n", P: "\n" + t + "\n", LI: "\n- " + t,
STRONG: "**" + t + "**", A: "[" + t + "](" + n.href + ")"})[n.tagName] ?? t;
return md(e) }`
)
