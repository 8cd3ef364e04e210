// Several functions run when the page loads. One of them, two calls below the handler, takes most of the time.
function drawMenu_NONCE() { return document.querySelectorAll("*").length; }
function indexPrices_NONCE() {
	let sum = 0;
	for (let i = 0; i < 6e8; i++) sum = (sum + i) | 0;
	return sum;
}
function drawShelf_NONCE() { return indexPrices_NONCE() + drawMenu_NONCE(); }
addEventListener("load", () => document.querySelector("p").append(`: ${drawMenu_NONCE()}, ${drawShelf_NONCE()}`));
