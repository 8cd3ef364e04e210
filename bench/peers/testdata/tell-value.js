// Tells the server what the field of a frame holds. A synchronous request keeps the order.
const {as} = document.currentScript.dataset;
document.querySelector("input").oninput = ({target}) => {
	const request = new XMLHttpRequest();
	request.open("GET", `/did?${as}=${encodeURIComponent(target.value)}`, false);
	request.send();
};
