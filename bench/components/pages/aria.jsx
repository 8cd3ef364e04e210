import * as A from "react-aria-components";
import {always, show} from "./react.jsx";

const box = <span style={{display: "inline-block", width: 16, height: 16, background: "#ccc"}}/>;

show(({set}) => <>
	<A.Checkbox onChange={set("checkbox")}>{box}News</A.Checkbox>
	<A.RadioGroup onChange={set("radio")}><A.Label>Plan</A.Label>
		<A.Radio value="a">{box}Plan A</A.Radio><A.Radio value="b">{box}Plan B</A.Radio></A.RadioGroup>
	<A.ToggleButtonGroup aria-label="Span" onSelectionChange={set("buttons", ([key]) => key)}>
		<A.ToggleButton id="day">Day</A.ToggleButton><A.ToggleButton id="week">Week</A.ToggleButton></A.ToggleButtonGroup>
	<A.Switch onChange={set("switch")}>{box}Wifi</A.Switch>
	<A.Select onChange={set("select")}><A.Label>Country</A.Label><A.Button><A.SelectValue/></A.Button><A.Popover><A.ListBox>
		<A.ListBoxItem id="no">Norway</A.ListBoxItem><A.ListBoxItem id="se">Sweden</A.ListBoxItem></A.ListBox></A.Popover></A.Select>
	<A.ComboBox onSelectionChange={set("combobox")}><A.Label>Fruit</A.Label><A.Input/><A.Button>v</A.Button><A.Popover><A.ListBox>
		<A.ListBoxItem id="Apple">Apple</A.ListBoxItem><A.ListBoxItem id="Banana">Banana</A.ListBoxItem></A.ListBox></A.Popover></A.ComboBox>
	<A.DatePicker onChange={set("date", String)}><A.Label>Due</A.Label><A.Group><A.DateInput style={{display: "flex"}}>
		{(segment) => <A.DateSegment segment={segment}/>}</A.DateInput><A.Button>Calendar</A.Button></A.Group></A.DatePicker>
	<A.MenuTrigger><A.Button>Actions</A.Button><A.Popover><A.Menu onAction={set("menu", always)}>
		<A.MenuItem id="archive">Archive</A.MenuItem></A.Menu></A.Popover></A.MenuTrigger>
	<A.DialogTrigger><A.Button>Delete</A.Button><A.Modal><A.Dialog>{({close}) => <><A.Heading slot="title">Sure?</A.Heading>
		<A.Button onPress={() => { set("dialog", always)(); close(); }}>Yes</A.Button></>}</A.Dialog></A.Modal></A.DialogTrigger>
	<A.Tabs onSelectionChange={set("tabs")}><A.TabList aria-label="Tabs"><A.Tab id="One">One</A.Tab><A.Tab id="Two">Two</A.Tab></A.TabList>
		<A.TabPanel id="One">First</A.TabPanel><A.TabPanel id="Two">Second</A.TabPanel></A.Tabs>
	<A.Slider defaultValue={30} onChange={set("slider")} style={{width: 200}}><A.Label>Volume</A.Label>
		<A.SliderTrack style={{position: "relative", height: 20, width: "100%"}}>
			<A.SliderThumb style={{width: 16, height: 16, top: 10, background: "#000"}}/></A.SliderTrack></A.Slider>
	<A.FileTrigger onSelect={set("upload", (files) => files.length)}><A.Button>Upload file</A.Button></A.FileTrigger>
	<A.TooltipTrigger delay={0}><A.Button>Info</A.Button><A.Tooltip>Helpful text</A.Tooltip></A.TooltipTrigger>
	<A.Disclosure onExpandedChange={set("accordion")}><A.Heading><A.Button slot="trigger">More</A.Button></A.Heading>
		<A.DisclosurePanel>Details</A.DisclosurePanel></A.Disclosure>
	<A.Table aria-label="Prices" onSortChange={set("sort", always)}><A.TableHeader>
		<A.Column id="price" isRowHeader allowsSorting>Price</A.Column></A.TableHeader>
		<A.TableBody><A.Row><A.Cell>2</A.Cell></A.Row></A.TableBody></A.Table>
</>);
