// The server refuses a payment, which the page does not expect.
function renderTotal_NONCE(receipt) { document.getElementById("total").textContent = receipt.total; }
function showReceipt_NONCE(receipt) { renderTotal_NONCE(receipt); }
document.querySelector("button").onclick = async () => {
	const reply = await fetch("/pay-NONCE", {method: "POST"});
	showReceipt_NONCE(reply.ok ? await reply.json() : null);
};
