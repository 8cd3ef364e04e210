import {Alert, BlueprintProvider, Button, Checkbox, FileInput, FormGroup, Menu, MenuItem, PopoverNext, Radio, RadioGroup, Section,
	SectionCard, SegmentedControl, Slider, Switch, Tab, Tabs, Tooltip} from "@blueprintjs/core";
import "@blueprintjs/core/lib/css/blueprint.css";
import {DateInput} from "@blueprintjs/datetime";
import "@blueprintjs/datetime/lib/css/blueprint-datetime.css";
import {Select, Suggest} from "@blueprintjs/select";
import "@blueprintjs/select/lib/css/blueprint-select.css";
import {enUS} from "date-fns/locale";
import "normalize.css";
import {useState} from "react";
import {always, checked, show} from "./react.jsx";
import {iso} from "./seen.js";

const countries = [{name: "Norway", code: "no"}, {name: "Sweden", code: "se"}];
const item = (text, {handleClick, handleFocus, modifiers, ref}) => modifiers.matchesPredicate &&
	<MenuItem key={text} text={text} ref={ref} active={modifiers.active} roleStructure="listoption" onClick={handleClick}
		onFocus={handleFocus}/>;

show(({set, kept}) => {
	const [open, setOpen] = useState(false), [due, setDue] = useState(null), [file, setFile] = useState();
	return <BlueprintProvider>
		<Checkbox label="News" onChange={set("checkbox", checked)}/>
		<RadioGroup label="Plan" selectedValue={kept.radio ?? "a"} onChange={set("radio", (e) => e.currentTarget.value)}>
			<Radio label="Plan A" value="a"/><Radio label="Plan B" value="b"/></RadioGroup>
		<SegmentedControl defaultValue="day" onValueChange={set("buttons")}
			options={[{label: "Day", value: "day"}, {label: "Week", value: "week"}]}/>
		<Switch label="Wifi" onChange={set("switch", checked)}/>
		<FormGroup label="Country" labelFor="country"><Select items={countries} filterable={false}
			itemRenderer={({name}, props) => item(name, props)} onItemSelect={set("select", ({code}) => code)}>
			<Button id="country" endIcon="caret-down" text={countries.find(({code}) => code === kept.select)?.name ?? "Choose"}/>
		</Select></FormGroup>
		<FormGroup label="Fruit" labelFor="fruit"><Suggest items={["Apple", "Banana"]} inputProps={{id: "fruit"}}
			inputValueRenderer={(fruit) => fruit} itemRenderer={item} noResults={<MenuItem disabled text="No results."/>}
			itemPredicate={(query, fruit) => fruit.toLowerCase().includes(query.toLowerCase())} onItemSelect={set("combobox")}/></FormGroup>
		<FormGroup label="Due" labelFor="due"><DateInput inputProps={{id: "due"}} locale={enUS} dateFnsFormat="yyyy-MM-dd"
			placeholder="yyyy-mm-dd" value={due} onChange={(date) => { setDue(date); set("date", iso)(date); }}/></FormGroup>
		<PopoverNext placement="bottom" content={<Menu><MenuItem text="Archive" onClick={set("menu", always)}/></Menu>}>
			<Button text="Actions"/></PopoverNext>
		<Button text="Delete" onClick={() => setOpen(true)}/>
		<Alert isOpen={open} confirmButtonText="Yes" cancelButtonText="No" onCancel={() => setOpen(false)}
			onConfirm={() => { set("dialog", always)(); setOpen(false); }}><p>Sure?</p></Alert>
		<Tabs id="numbers" onChange={set("tabs")}><Tab id="One" title="One" panel={<p>First</p>}/>
			<Tab id="Two" title="Two" panel={<p>Second</p>}/></Tabs>
		<Slider min={0} max={100} labelStepSize={20} value={kept.slider ?? 30} handleHtmlProps={{"aria-label": "Volume"}}
			onChange={set("slider")}/>
		<FileInput text={file ?? "Upload file"} hasSelection={Boolean(file)}
			onInputChange={({target: {files}}) => { setFile(files[0]?.name); set("upload")(files.length); }}/>
		<Tooltip content="Helpful text"><Button text="Info"/></Tooltip>
		<Section title="More" collapsible
			collapseProps={{isOpen: Boolean(kept.accordion), onToggle: set("accordion", () => !kept.accordion)}}>
			<SectionCard>Details</SectionCard></Section>
	</BlueprintProvider>;
});
