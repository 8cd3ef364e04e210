import {Accordion, Button, ChakraProvider, Checkbox, CloseButton, Combobox, createListCollection, DatePicker, defaultSystem, Dialog,
	FileUpload, Menu, Portal, RadioGroup, RatingGroup, SegmentGroup, Select, Slider, Span, Switch, Tabs, Tooltip, useFilter,
	useListCollection} from "@chakra-ui/react";
import {useState} from "react";
import {always, show} from "./react.jsx";

const countries = createListCollection({items: [{label: "Norway", value: "no"}, {label: "Sweden", value: "se"}]});
const value = (details) => details.value;
const first = (details) => details.value[0];
const isChecked = (details) => details.checked;

show(({set}) => {
	const [open, setOpen] = useState(false), {contains} = useFilter({sensitivity: "base"});
	const {collection: fruits, filter} = useListCollection({initialItems: ["Apple", "Banana"], filter: contains});
	return <ChakraProvider value={defaultSystem}>
		<Checkbox.Root onCheckedChange={set("checkbox", isChecked)}><Checkbox.HiddenInput/><Checkbox.Control/>
			<Checkbox.Label>News</Checkbox.Label></Checkbox.Root>
		<RadioGroup.Root defaultValue="a" onValueChange={set("radio", value)}>{["a", "b"].map((plan) =>
			<RadioGroup.Item key={plan} value={plan}><RadioGroup.ItemHiddenInput/><RadioGroup.ItemIndicator/>
				<RadioGroup.ItemText>Plan {plan.toUpperCase()}</RadioGroup.ItemText></RadioGroup.Item>)}</RadioGroup.Root>
		<SegmentGroup.Root defaultValue="day" onValueChange={set("buttons", value)}><SegmentGroup.Indicator/>
			<SegmentGroup.Items items={[{label: "Day", value: "day"}, {label: "Week", value: "week"}]}/></SegmentGroup.Root>
		<Switch.Root onCheckedChange={set("switch", isChecked)}><Switch.HiddenInput/><Switch.Control/>
			<Switch.Label>Wifi</Switch.Label></Switch.Root>
		<Select.Root collection={countries} onValueChange={set("select", first)}><Select.HiddenSelect/>
			<Select.Label>Country</Select.Label><Select.Control><Select.Trigger><Select.ValueText placeholder="Choose"/></Select.Trigger>
				<Select.IndicatorGroup><Select.Indicator/></Select.IndicatorGroup></Select.Control>
			<Portal><Select.Positioner><Select.Content>{countries.items.map((country) =>
				<Select.Item key={country.value} item={country}>{country.label}<Select.ItemIndicator/></Select.Item>)}
			</Select.Content></Select.Positioner></Portal></Select.Root>
		<Combobox.Root collection={fruits} onInputValueChange={({inputValue}) => filter(inputValue)} onValueChange={set("combobox", first)}>
			<Combobox.Label>Fruit</Combobox.Label><Combobox.Control><Combobox.Input/>
				<Combobox.IndicatorGroup><Combobox.ClearTrigger/><Combobox.Trigger/></Combobox.IndicatorGroup></Combobox.Control>
			<Portal><Combobox.Positioner><Combobox.Content><Combobox.Empty>No fruit</Combobox.Empty>{fruits.items.map((fruit) =>
				<Combobox.Item key={fruit} item={fruit}>{fruit}<Combobox.ItemIndicator/></Combobox.Item>)}
			</Combobox.Content></Combobox.Positioner></Portal></Combobox.Root>
		<DatePicker.Root onValueChange={set("date", (details) => details.value[0]?.toString())}><DatePicker.Label>Due</DatePicker.Label>
			<DatePicker.Control><DatePicker.Input/>
				<DatePicker.IndicatorGroup><DatePicker.Trigger>▾</DatePicker.Trigger></DatePicker.IndicatorGroup></DatePicker.Control>
			<Portal><DatePicker.Positioner><DatePicker.Content>
				<DatePicker.View view="day"><DatePicker.Header/><DatePicker.DayTable/></DatePicker.View>
				<DatePicker.View view="month"><DatePicker.Header/><DatePicker.MonthTable/></DatePicker.View>
				<DatePicker.View view="year"><DatePicker.Header/><DatePicker.YearTable/></DatePicker.View>
			</DatePicker.Content></DatePicker.Positioner></Portal></DatePicker.Root>
		<Menu.Root onSelect={set("menu", (details) => details.value === "archive")}>
			<Menu.Trigger asChild><Button variant="outline">Actions</Button></Menu.Trigger>
			<Portal><Menu.Positioner><Menu.Content><Menu.Item value="archive">Archive</Menu.Item></Menu.Content></Menu.Positioner></Portal>
		</Menu.Root>
		<Dialog.Root role="alertdialog" open={open} onOpenChange={(details) => setOpen(details.open)}>
			<Dialog.Trigger asChild><Button>Delete</Button></Dialog.Trigger>
			<Portal><Dialog.Backdrop/><Dialog.Positioner><Dialog.Content><Dialog.Header><Dialog.Title>Sure?</Dialog.Title></Dialog.Header>
				<Dialog.Footer><Dialog.ActionTrigger asChild><Button variant="outline">No</Button></Dialog.ActionTrigger>
					<Button onClick={() => { set("dialog", always)(); setOpen(false); }}>Yes</Button></Dialog.Footer>
				<Dialog.CloseTrigger asChild><CloseButton/></Dialog.CloseTrigger></Dialog.Content></Dialog.Positioner></Portal></Dialog.Root>
		<Tabs.Root defaultValue="One" onValueChange={set("tabs", value)}>
			<Tabs.List><Tabs.Trigger value="One">One</Tabs.Trigger><Tabs.Trigger value="Two">Two</Tabs.Trigger></Tabs.List>
			<Tabs.Content value="One">First</Tabs.Content><Tabs.Content value="Two">Second</Tabs.Content></Tabs.Root>
		<Slider.Root defaultValue={[30]} onValueChange={set("slider", first)}><Slider.Label>Volume</Slider.Label>
			<Slider.Control><Slider.Track><Slider.Range/></Slider.Track><Slider.Thumbs/></Slider.Control></Slider.Root>
		<RatingGroup.Root count={5} onValueChange={set("rating", value)}><RatingGroup.HiddenInput/><RatingGroup.Control/></RatingGroup.Root>
		<FileUpload.Root onFileAccept={set("upload", ({files}) => files.length)}><FileUpload.HiddenInput/>
			<FileUpload.Trigger asChild><Button variant="outline">Upload file</Button></FileUpload.Trigger><FileUpload.List/></FileUpload.Root>
		<Tooltip.Root><Tooltip.Trigger asChild><Button>Info</Button></Tooltip.Trigger>
			<Portal><Tooltip.Positioner><Tooltip.Content>Helpful text</Tooltip.Content></Tooltip.Positioner></Portal></Tooltip.Root>
		<Accordion.Root collapsible onValueChange={set("accordion", (details) => details.value.includes("more"))}>
			<Accordion.Item value="more"><Accordion.ItemTrigger><Span flex="1">More</Span><Accordion.ItemIndicator/></Accordion.ItemTrigger>
				<Accordion.ItemContent><Accordion.ItemBody>Details</Accordion.ItemBody></Accordion.ItemContent></Accordion.Item></Accordion.Root>
	</ChakraProvider>;
});
