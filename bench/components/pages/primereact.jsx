import {Accordion, AccordionTab} from "primereact/accordion";
import {AutoComplete} from "primereact/autocomplete";
import {Button} from "primereact/button";
import {Calendar} from "primereact/calendar";
import {Checkbox} from "primereact/checkbox";
import {Column} from "primereact/column";
import {DataTable} from "primereact/datatable";
import {Dialog} from "primereact/dialog";
import {Dropdown} from "primereact/dropdown";
import {FileUpload} from "primereact/fileupload";
import {InputSwitch} from "primereact/inputswitch";
import {Menu} from "primereact/menu";
import {RadioButton} from "primereact/radiobutton";
import {Rating} from "primereact/rating";
import "primereact/resources/themes/lara-light-blue/theme.css";
import {SelectButton} from "primereact/selectbutton";
import {Slider} from "primereact/slider";
import {TabPanel, TabView} from "primereact/tabview";
import {useRef, useState} from "react";
import {always, show} from "./react.jsx";
import {iso} from "./seen.js";

const value = (event) => event.value;

show(({set, kept}) => {
	const menu = useRef(null), [open, setOpen] = useState(false);
	const [typed, type] = useState(""), [found, find] = useState([]);
	return <>
		<Checkbox inputId="news" checked={kept.checkbox ?? false} onChange={set("checkbox", (e) => e.checked)}/><label htmlFor="news">News</label>
		<RadioButton inputId="a" value="a" checked={kept.radio === "a"} onChange={set("radio", value)}/><label htmlFor="a">Plan A</label>
		<RadioButton inputId="b" value="b" checked={kept.radio === "b"} onChange={set("radio", value)}/><label htmlFor="b">Plan B</label>
		<SelectButton value={kept.buttons} onChange={set("buttons", value)}
			options={[{label: "Day", value: "day"}, {label: "Week", value: "week"}]}/>
		<label htmlFor="wifi">Wifi</label><InputSwitch inputId="wifi" checked={kept.switch ?? false} onChange={set("switch", value)}/>
		<div><label htmlFor="country">Country</label><Dropdown inputId="country" value={kept.select} onChange={set("select", value)}
			options={[{label: "Norway", value: "no"}, {label: "Sweden", value: "se"}]}/></div>
		<div><label htmlFor="fruit">Fruit</label><AutoComplete inputId="fruit" value={typed} suggestions={found}
			completeMethod={({query}) => find(["Apple", "Banana"].filter((fruit) => fruit.toLowerCase().includes(query.toLowerCase())))}
			onChange={(e) => type(e.value)} onSelect={set("combobox", value)}/></div>
		<div><label htmlFor="due">Due</label><Calendar inputId="due" dateFormat="yy-mm-dd"
			value={kept.date ? new Date(`${kept.date}T00:00`) : null} onChange={set("date", (e) => iso(e.value))}/></div>
		<Button label="Actions" onClick={(e) => menu.current.toggle(e)}/>
		<Menu popup ref={menu} model={[{label: "Archive", command: set("menu", always)}]}/>
		<Button label="Delete" onClick={() => setOpen(true)}/>
		<Dialog header="Sure?" visible={open} onHide={() => setOpen(false)}>
			<Button label="Yes" onClick={() => { set("dialog", always)(); setOpen(false); }}/></Dialog>
		<TabView onTabChange={set("tabs", ({index}) => ["One", "Two"][index])}>
			<TabPanel header="One">First</TabPanel><TabPanel header="Two">Second</TabPanel></TabView>
		<Slider aria-label="Volume" value={kept.slider ?? 30} onChange={set("slider", value)}/>
		<Rating value={kept.rating} cancel={false} onChange={set("rating", value)}/>
		<FileUpload mode="basic" chooseLabel="Upload file" onSelect={set("upload", ({files}) => files.length)}/>
		<Button label="Info" tooltip="Helpful text"/>
		<Accordion onTabOpen={set("accordion", always)}><AccordionTab header="More">Details</AccordionTab></Accordion>
		<DataTable value={[{price: 2}, {price: 1}]} onSort={set("sort", (e) => e.sortField === "price")}>
			<Column field="price" header="Price" sortable/></DataTable>
	</>;
});
