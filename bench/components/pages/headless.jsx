import * as H from "@headlessui/react";
import {useState} from "react";
import {always, show} from "./react.jsx";
import {seen} from "./seen.js";

const box = {display: "inline-block", width: 20, height: 20, background: "#ccc"};

show(({set, kept}) => {
	const [typed, type] = useState(""), [open, setOpen] = useState(false);
	const fruits = ["Apple", "Banana"].filter((fruit) => fruit.toLowerCase().includes(typed.toLowerCase()));
	return <>
		<H.Field><H.Checkbox checked={kept.checkbox ?? false} onChange={set("checkbox")} style={box}/><H.Label>News</H.Label></H.Field>
		<H.RadioGroup value={kept.radio ?? "a"} onChange={set("radio")}>
			<H.Field><H.Radio value="a" style={box}/><H.Label>Plan A</H.Label></H.Field>
			<H.Field><H.Radio value="b" style={box}/><H.Label>Plan B</H.Label></H.Field>
		</H.RadioGroup>
		<H.Field><H.Label>Wifi</H.Label><H.Switch checked={kept.switch ?? false} onChange={set("switch")} style={box}/></H.Field>
		<H.Field><H.Label>Country</H.Label><H.Listbox value={kept.select ?? "no"} onChange={set("select")}>
			<H.ListboxButton>{kept.select === "se" ? "Sweden" : "Norway"}</H.ListboxButton>
			<H.ListboxOptions><H.ListboxOption value="no">Norway</H.ListboxOption>
				<H.ListboxOption value="se">Sweden</H.ListboxOption></H.ListboxOptions></H.Listbox></H.Field>
		<H.Field><H.Label>Fruit</H.Label><H.Combobox value={kept.combobox ?? null} onChange={set("combobox")}>
			<H.ComboboxInput onChange={(e) => type(e.target.value)}/><H.ComboboxOptions>
				{fruits.map((fruit) => <H.ComboboxOption key={fruit} value={fruit}>{fruit}</H.ComboboxOption>)}
			</H.ComboboxOptions></H.Combobox></H.Field>
		<H.Menu><H.MenuButton>Actions</H.MenuButton><H.MenuItems anchor="bottom"><H.MenuItem>
			<button onClick={set("menu", always)}>Archive</button></H.MenuItem></H.MenuItems></H.Menu>
		<button onClick={() => setOpen(true)}>Delete</button>
		<H.Dialog open={open} onClose={() => setOpen(false)}><H.DialogPanel><H.DialogTitle>Sure?</H.DialogTitle>
			<button onClick={() => { set("dialog", always)(); setOpen(false); }}>Yes</button></H.DialogPanel></H.Dialog>
		<H.TabGroup onChange={set("tabs", (index) => ["One", "Two"][index])}>
			<H.TabList><H.Tab>One</H.Tab><H.Tab>Two</H.Tab></H.TabList></H.TabGroup>
		<H.Disclosure><H.DisclosureButton>More</H.DisclosureButton><H.DisclosurePanel>Details</H.DisclosurePanel></H.Disclosure>
	</>;
});
Object.defineProperty(seen, "accordion", {get: () => document.body.innerText.includes("Details")});
