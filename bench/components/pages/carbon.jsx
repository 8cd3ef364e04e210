import {Accordion, AccordionItem, Button, Checkbox, ComboBox, ContentSwitcher, DatePicker, DatePickerInput, Dropdown,
	FileUploader, MenuButton, MenuItem, Modal, RadioButton, RadioButtonGroup, Slider, Switch, Tab, TabList, TabPanel, TabPanels, Tabs,
	Table, TableHead, TableHeader, TableRow, Toggle, Tooltip} from "@carbon/react";
import "@carbon/styles/css/styles.css";
import {useState} from "react";
import {always, show} from "./react.jsx";
import {iso} from "./seen.js";

show(({set, kept}) => {
	const [open, setOpen] = useState(false);
	return <>
		<Checkbox id="news" labelText="News" onChange={set("checkbox", (_, {checked}) => checked)}/>
		<RadioButtonGroup legendText="Plan" name="plan" defaultSelected="a" onChange={set("radio")}>
			<RadioButton id="a" labelText="Plan A" value="a"/><RadioButton id="b" labelText="Plan B" value="b"/></RadioButtonGroup>
		<ContentSwitcher onChange={set("buttons", ({name}) => name)} selectedIndex={0}>
			<Switch name="day" text="Day"/><Switch name="week" text="Week"/></ContentSwitcher>
		<Toggle id="wifi" labelText="Wifi" onToggle={set("switch")}/>
		<Dropdown id="country" titleText="Country" label="Choose" items={[{id: "no", text: "Norway"}, {id: "se", text: "Sweden"}]}
			itemToString={(item) => item?.text ?? ""} onChange={set("select", ({selectedItem}) => selectedItem?.id)}/>
		<ComboBox id="fruit" titleText="Fruit" items={["Apple", "Banana"]} onChange={set("combobox", ({selectedItem}) => selectedItem)}/>
		<DatePicker datePickerType="single" dateFormat="Y-m-d" onChange={set("date", ([date]) => iso(date))}>
			<DatePickerInput id="due" labelText="Due" pattern="\d{4}-\d\d-\d\d"/></DatePicker>
		<MenuButton label="Actions"><MenuItem label="Archive" onClick={set("menu", always)}/></MenuButton>
		<Button onClick={() => setOpen(true)}>Delete</Button>
		<Modal open={open} modalHeading="Sure?" primaryButtonText="Yes" secondaryButtonText="No" onRequestClose={() => setOpen(false)}
			onRequestSubmit={() => { set("dialog", always)(); setOpen(false); }}/>
		<Tabs onChange={set("tabs", ({selectedIndex}) => ["One", "Two"][selectedIndex])}>
			<TabList aria-label="Numbers"><Tab>One</Tab><Tab>Two</Tab></TabList>
			<TabPanels><TabPanel>First</TabPanel><TabPanel>Second</TabPanel></TabPanels></Tabs>
		<Slider id="volume" labelText="Volume" min={0} max={100} value={30} hideTextInput onChange={set("slider", ({value}) => value)}/>
		<FileUploader buttonLabel="Upload file" onChange={set("upload", ({target}) => target.files.length)}/>
		<Tooltip label="Helpful text"><button type="button">Info</button></Tooltip>
		<Accordion><AccordionItem title="More" onHeadingClick={set("accordion", ({isOpen}) => isOpen)}>Details</AccordionItem></Accordion>
		<Table><TableHead><TableRow><TableHeader id="price" isSortable isSortHeader={kept.sort} sortDirection="ASC"
			onClick={set("sort", always)}>Price</TableHeader></TableRow></TableHead></Table>
	</>;
});
