import * as R from "radix-ui";
import {always, show} from "./react.jsx";

const box = {width: 20, height: 20};

show(({set}) => <>
	<R.Checkbox.Root id="news" style={box} onCheckedChange={set("checkbox")}><R.Checkbox.Indicator>x</R.Checkbox.Indicator>
	</R.Checkbox.Root><R.Label.Root htmlFor="news">News</R.Label.Root>
	<R.RadioGroup.Root onValueChange={set("radio")}>
		<R.RadioGroup.Item style={box} id="a" value="a"/><label htmlFor="a">Plan A</label>
		<R.RadioGroup.Item style={box} id="b" value="b"/><label htmlFor="b">Plan B</label>
	</R.RadioGroup.Root>
	<R.ToggleGroup.Root type="single" onValueChange={set("buttons")}>
		<R.ToggleGroup.Item value="day">Day</R.ToggleGroup.Item><R.ToggleGroup.Item value="week">Week</R.ToggleGroup.Item>
	</R.ToggleGroup.Root>
	<label htmlFor="wifi">Wifi</label>
	<R.Switch.Root id="wifi" onCheckedChange={set("switch")}><R.Switch.Thumb>o</R.Switch.Thumb></R.Switch.Root><br/>
	<R.Select.Root onValueChange={set("select")}>
		<R.Select.Trigger aria-label="Country"><R.Select.Value placeholder="Pick"/></R.Select.Trigger>
		<R.Select.Portal><R.Select.Content><R.Select.Viewport>
			<R.Select.Item value="no"><R.Select.ItemText>Norway</R.Select.ItemText></R.Select.Item>
			<R.Select.Item value="se"><R.Select.ItemText>Sweden</R.Select.ItemText></R.Select.Item>
		</R.Select.Viewport></R.Select.Content></R.Select.Portal>
	</R.Select.Root>
	<R.DropdownMenu.Root><R.DropdownMenu.Trigger>Actions</R.DropdownMenu.Trigger><R.DropdownMenu.Portal>
		<R.DropdownMenu.Content><R.DropdownMenu.Item onSelect={set("menu", always)}>Archive</R.DropdownMenu.Item>
		</R.DropdownMenu.Content></R.DropdownMenu.Portal></R.DropdownMenu.Root>
	<R.Dialog.Root><R.Dialog.Trigger>Delete</R.Dialog.Trigger><R.Dialog.Portal><R.Dialog.Overlay/>
		<R.Dialog.Content aria-describedby={undefined}><R.Dialog.Title>Sure?</R.Dialog.Title>
			<R.Dialog.Close onClick={set("dialog", always)}>Yes</R.Dialog.Close></R.Dialog.Content>
	</R.Dialog.Portal></R.Dialog.Root>
	<R.Tabs.Root defaultValue="One" onValueChange={set("tabs")}><R.Tabs.List>
		<R.Tabs.Trigger value="One">One</R.Tabs.Trigger><R.Tabs.Trigger value="Two">Two</R.Tabs.Trigger></R.Tabs.List></R.Tabs.Root>
	<R.Slider.Root style={{position: "relative", display: "flex", width: 200, height: 20}} defaultValue={[30]}
		onValueChange={set("slider", ([value]) => value)}>
		<R.Slider.Track style={{flexGrow: 1, height: 4, background: "#ccc"}}><R.Slider.Range/></R.Slider.Track>
		<R.Slider.Thumb aria-label="Volume" style={{display: "block", width: 16, height: 16, background: "#000"}}/>
	</R.Slider.Root>
	<R.Tooltip.Provider><R.Tooltip.Root><R.Tooltip.Trigger>Info</R.Tooltip.Trigger>
		<R.Tooltip.Portal><R.Tooltip.Content>Helpful text</R.Tooltip.Content></R.Tooltip.Portal></R.Tooltip.Root></R.Tooltip.Provider>
	<R.Accordion.Root type="single" collapsible onValueChange={set("accordion", Boolean)}><R.Accordion.Item value="more">
		<R.Accordion.Header><R.Accordion.Trigger>More</R.Accordion.Trigger></R.Accordion.Header>
		<R.Accordion.Content>Details</R.Accordion.Content></R.Accordion.Item></R.Accordion.Root>
</>);
