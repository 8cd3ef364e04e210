import {useState} from "react";
import {createRoot} from "react-dom/client";
import {seen} from "./seen.js";

// show renders a page. Its component gets set(key), which returns a handler that keeps a value and reports it, and the
// values that were kept.
export function show(Page) {
	function App() {
		const [kept, keep] = useState({});
		Object.assign(seen, kept);
		return <Page set={(key, read = (value) => value) => (...given) =>
			keep((before) => ({...before, [key]: read(...given)}))} kept={kept}/>;
	}
	const root = document.body.appendChild(document.createElement("div"));
	root.style.width = "500px";
	createRoot(root).render(<App/>);
}

export const checked = (event) => event.target.checked;
export const always = () => true;
