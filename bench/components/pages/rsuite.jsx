import {useState} from "react";
import {Accordion, AutoComplete, Button, Checkbox, DatePicker, Dropdown, Modal, Radio, RadioGroup, Rate, SelectPicker, Slider,
	Table, Tabs, Toggle, Tooltip, Uploader, Whisper} from "rsuite";
import "rsuite/dist/rsuite.css";
import {always, show} from "./react.jsx";
import {iso} from "./seen.js";

const second = (_, value) => value;

show(({set, kept}) => {
	const [open, setOpen] = useState(false), [tab, setTab] = useState("One");
	return <>
		<Checkbox onChange={set("checkbox", second)}>News</Checkbox>
		<RadioGroup name="plan" onChange={set("radio")}><Radio value="a">Plan A</Radio><Radio value="b">Plan B</Radio></RadioGroup>
		<RadioGroup name="span" appearance="picker" inline defaultValue="day" onChange={set("buttons")}>
			<Radio value="day">Day</Radio><Radio value="week">Week</Radio></RadioGroup>
		<Toggle onChange={set("switch")}>Wifi</Toggle>
		<div><label htmlFor="country">Country</label><SelectPicker id="country" searchable={false} onChange={set("select")}
			data={[{label: "Norway", value: "no"}, {label: "Sweden", value: "se"}]}/></div>
		<div><label htmlFor="fruit">Fruit</label><AutoComplete id="fruit" data={["Apple", "Banana"]} onSelect={set("combobox")}/></div>
		<div><label htmlFor="due">Due</label><DatePicker id="due" format="yyyy-MM-dd" oneTap onChange={set("date", iso)}/></div>
		<Dropdown title="Actions"><Dropdown.Item onSelect={set("menu", always)}>Archive</Dropdown.Item></Dropdown>
		<Button onClick={() => setOpen(true)}>Delete</Button>
		<Modal open={open} onClose={() => setOpen(false)}><Modal.Body>Sure?</Modal.Body><Modal.Footer>
			<Button onClick={() => { set("dialog", always)(); setOpen(false); }}>Yes</Button></Modal.Footer></Modal>
		<Tabs activeKey={tab} onSelect={(key) => { setTab(key); set("tabs")(key); }}>
			<Tabs.Tab eventKey="One" title="One">First</Tabs.Tab><Tabs.Tab eventKey="Two" title="Two">Second</Tabs.Tab></Tabs>
		<Slider aria-label="Volume" value={kept.slider ?? 30} onChange={set("slider")}/>
		<Rate onChange={set("rating")}/>
		<Uploader action="" autoUpload={false} onChange={set("upload", (files) => files.length)}><Button>Upload file</Button></Uploader>
		<Whisper trigger="hover" speaker={<Tooltip>Helpful text</Tooltip>}><Button>Info</Button></Whisper>
		<Accordion onSelect={set("accordion", always)}><Accordion.Panel header="More" eventKey={1}>Details</Accordion.Panel></Accordion>
		<Table data={[{price: 2}, {price: 1}]} onSortColumn={set("sort", (key) => key === "price")}>
			<Table.Column sortable width={200}><Table.HeaderCell>Price</Table.HeaderCell><Table.Cell dataKey="price"/></Table.Column></Table>
	</>;
});
