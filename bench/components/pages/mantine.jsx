import * as M from "@mantine/core";
import "@mantine/core/styles.css";
import {DateInput} from "@mantine/dates";
import "@mantine/dates/styles.css";
import {useState} from "react";
import {always, checked, show} from "./react.jsx";
import {iso} from "./seen.js";

show(({set}) => {
	const [open, setOpen] = useState(false);
	return <M.MantineProvider>
		<M.Checkbox label="News" onChange={set("checkbox", checked)}/>
		<M.Radio.Group onChange={set("radio")}><M.Radio value="a" label="Plan A"/><M.Radio value="b" label="Plan B"/></M.Radio.Group>
		<M.SegmentedControl data={[{value: "day", label: "Day"}, {value: "week", label: "Week"}]} onChange={set("buttons")}/>
		<M.Switch label="Wifi" onChange={set("switch", checked)}/>
		<M.Select label="Country" onChange={set("select")} data={[{value: "no", label: "Norway"}, {value: "se", label: "Sweden"}]}/>
		<M.Autocomplete label="Fruit" data={["Apple", "Banana"]} onOptionSubmit={set("combobox")}/>
		<DateInput label="Due" valueFormat="YYYY-MM-DD" onChange={set("date", iso)}/>
		<M.Menu><M.Menu.Target><M.Button>Actions</M.Button></M.Menu.Target>
			<M.Menu.Dropdown><M.Menu.Item onClick={set("menu", always)}>Archive</M.Menu.Item></M.Menu.Dropdown></M.Menu>
		<M.Button onClick={() => setOpen(true)}>Delete</M.Button>
		<M.Modal opened={open} onClose={() => setOpen(false)} title="Sure?">
			<M.Button onClick={() => { set("dialog", always)(); setOpen(false); }}>Yes</M.Button></M.Modal>
		<M.Tabs defaultValue="One" onChange={set("tabs")}><M.Tabs.List>
			<M.Tabs.Tab value="One">One</M.Tabs.Tab><M.Tabs.Tab value="Two">Two</M.Tabs.Tab></M.Tabs.List></M.Tabs>
		<M.Slider thumbLabel="Volume" defaultValue={30} onChange={set("slider")}/>
		<M.Rating onChange={set("rating")}/>
		<M.FileInput label="Upload file" onChange={set("upload", (file) => file ? 1 : 0)}/>
		<M.Tooltip label="Helpful text"><M.Button>Info</M.Button></M.Tooltip>
		<M.Accordion onChange={set("accordion", Boolean)}><M.Accordion.Item value="more">
			<M.Accordion.Control>More</M.Accordion.Control><M.Accordion.Panel>Details</M.Accordion.Panel></M.Accordion.Item></M.Accordion>
	</M.MantineProvider>;
});
