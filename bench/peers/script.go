package main

// script holds the calls of an agent that knows its tool, in order. It knows a page only from what it was asked and
// from replies; [agent.fill] replaces what it learns from those. It puts as much as the tool allows into one call, and
// looks at the page only where the tool needs it.
type script []string

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
