import * as A from "antd";
import {useState} from "react";
import {always, checked, show} from "./react.jsx";

const target = (event) => event.target.value;

show(({set}) => {
	const [open, setOpen] = useState(false);
	return <A.Form layout="vertical">
		<A.Checkbox onChange={set("checkbox", checked)}>News</A.Checkbox>
		<A.Radio.Group onChange={set("radio", target)}>
			<A.Radio value="a">Plan A</A.Radio><A.Radio value="b">Plan B</A.Radio>
		</A.Radio.Group>
		<A.Radio.Group optionType="button" onChange={set("buttons", target)}
			options={[{label: "Day", value: "day"}, {label: "Week", value: "week"}]}/>
		<A.Switch aria-label="Wifi" onChange={set("switch", (on) => on)}/>
		<A.Form.Item label="Country" name="country"><A.Select onChange={set("select", (value) => value)}
			options={[{value: "no", label: "Norway"}, {value: "se", label: "Sweden"}]}/></A.Form.Item>
		<A.Form.Item label="Fruit" name="fruit">
			<A.AutoComplete options={[{value: "Apple"}, {value: "Banana"}]} onSelect={set("combobox", (value) => value)}/>
		</A.Form.Item>
		<A.Form.Item label="Due" name="due"><A.DatePicker onChange={set("date", (date, text) => text)}/></A.Form.Item>
		<A.Dropdown trigger={["click"]} menu={{items: [{key: "archive", label: "Archive"}], onClick: set("menu", always)}}>
			<A.Button>Actions</A.Button></A.Dropdown>
		<A.Button onClick={() => setOpen(true)}>Delete</A.Button>
		<A.Modal title="Sure?" open={open} okText="Yes" onCancel={() => setOpen(false)}
			onOk={() => { set("dialog", always)(); setOpen(false); }}/>
		<A.Tabs onChange={set("tabs", (key) => key)} items={[{key: "One", label: "One"}, {key: "Two", label: "Two"}]}/>
		<A.Slider ariaLabelForHandle="Volume" defaultValue={30} onChange={set("slider", (value) => value)}/>
		<A.Rate onChange={set("rating", (value) => value)}/>
		<A.Upload beforeUpload={(file, all) => { set("upload", () => all.length)(); return false; }}>
			<A.Button>Upload file</A.Button></A.Upload>
		<A.Tooltip title="Helpful text"><A.Button aria-label="Info">i</A.Button></A.Tooltip>
		<A.Collapse onChange={set("accordion", (keys) => keys.length > 0)}
			items={[{key: "more", label: "More", children: "Details"}]}/>
		<A.Table pagination={false} onChange={set("sort", (page, filters, sorter) => Boolean(sorter.order))}
			columns={[{title: "Price", dataIndex: "price", sorter: (a, b) => a.price - b.price}]}
			dataSource={[{key: 1, price: 2}, {key: 2, price: 1}]}/>
	</A.Form>;
});
