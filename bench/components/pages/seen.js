// The global seen has what a person would see of the components of a page. The benchmark reads it after each act.

const text = "Helpful text";
const showsText = (root) => [...root.querySelectorAll("*")].some((el) => el.shadowRoot && showsText(el.shadowRoot) ||
	[...el.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.includes(text)) && isShown(el));
const isShown = (el) => getComputedStyle(el).display === "contents" ? isShown(el.parentElement) : // as a slot
	el.checkVisibility({opacityProperty: true, visibilityProperty: true});

export const seen = globalThis.seen = {
	get tooltip() { return showsText(document.body); },
};

// report returns a handler that notes the value of a component.
export const report = (key) => (value) => { seen[key] = value; };

export const iso = (date) => date && new Date(date).toLocaleDateString("sv"); // as 2026-03-04

// markup shows HTML. A field with data-seen reports when the page is told of its value.
export function markup(html) {
	document.body.insertAdjacentHTML("beforeend", html);
	for (const type of ["input", "change"]) document.addEventListener(type, ({target}) => {
		const {dataset: {seen: key}, type, checked, files, value} = target;
		if (key) seen[key] = {checkbox: checked, file: files?.length, range: Number(value)}[type] ?? value;
	});
	for (const el of document.querySelectorAll("[data-click]")) {
		el.addEventListener("click", () => { seen[el.dataset.click] = true; });
	}
}
