const paragraph = (textContent) => Object.assign(document.createElement("p"), {textContent});
const list = document.querySelector(".list"), at = (id) => document.getElementById(id);
const names = ["First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth", "Eleventh", "Twelfth"];
for (const name of names) list.append(Object.assign(document.createElement("li"), {textContent: name}));
console.info("ready");
console.warn("retry 1");
localStorage.setItem("theme", "dark");
sessionStorage.setItem("step", "2");
at("clear").onclick = () => confirm("Delete?");
at("rename").onclick = () => prompt("Name?");
at("add").onclick = () => document.querySelector("main").append(paragraph("Ada wrote this."));
at("attach").onclick = () => at("attached").click();
at("late").onmouseenter = () => setTimeout(() => at("late").title = "It is late", 100);
document.querySelector(".drop").ondragover = (event) => event.preventDefault();
document.querySelector(".drop").ondrop = (event) => {
	event.preventDefault();
	event.target.after(document.querySelector("[draggable]"));
};
at("products").onmouseenter = () => at("products").after(paragraph("Tea"));
at("load").onclick = () => {
	const spinner = paragraph("");
	spinner.className = "spinner";
	at("load").after(spinner);
	setTimeout(() => fetch("/api/user").then(() => {
		spinner.className = "";
		spinner.textContent = "Loaded 12 teas";
	}), 1500);
};
fetch("/api/stock");
