import ElementPlus from "element-plus";
import "element-plus/dist/index.css";
import {createApp} from "vue";
import {report, seen} from "./seen.js";

const template = `<el-form label-position="top" style="width: 500px">
<el-checkbox v-model="news" @change="report('checkbox')($event)">News</el-checkbox>
<el-radio-group v-model="plan" @change="report('radio')($event)"><el-radio value="a">Plan A</el-radio>
	<el-radio value="b">Plan B</el-radio></el-radio-group><br>
<el-radio-group v-model="span" @change="report('buttons')($event)"><el-radio-button value="day">Day</el-radio-button>
	<el-radio-button value="week">Week</el-radio-button></el-radio-group><br>
<el-switch v-model="wifi" aria-label="Wifi" @change="report('switch')($event)"/>
<el-form-item label="Country"><el-select v-model="country" @change="report('select')($event)">
	<el-option value="no" label="Norway"/><el-option value="se" label="Sweden"/></el-select></el-form-item>
<el-form-item label="Fruit"><el-autocomplete v-model="fruit" :fetch-suggestions="suggest"
	@select="report('combobox')($event.value)"/></el-form-item>
<el-form-item label="Due"><el-date-picker v-model="due" value-format="YYYY-MM-DD" @change="report('date')($event)"/></el-form-item>
<el-dropdown trigger="click" @command="report('menu')(true)"><el-button>Actions</el-button><template #dropdown>
	<el-dropdown-menu><el-dropdown-item command="archive">Archive</el-dropdown-item></el-dropdown-menu></template></el-dropdown>
<el-button @click="open = true">Delete</el-button>
<el-dialog v-model="open" title="Sure?"><el-button @click="report('dialog')(true); open = false">Yes</el-button></el-dialog>
<el-tabs v-model="tab" @tab-change="report('tabs')($event)"><el-tab-pane label="One" name="One">First</el-tab-pane>
	<el-tab-pane label="Two" name="Two">Second</el-tab-pane></el-tabs>
<el-slider v-model="volume" aria-label="Volume" @input="report('slider')($event)"/>
<el-rate v-model="stars" @change="report('rating')($event)"/>
<el-upload action="/none" :before-upload="take"><el-button>Upload file</el-button></el-upload>
<el-tooltip content="Helpful text"><el-button>Info</el-button></el-tooltip>
<el-collapse v-model="opened" @change="report('accordion')($event.length > 0)">
	<el-collapse-item title="More" name="more">Details</el-collapse-item></el-collapse>
<el-table :data="[{price: 2}, {price: 1}]" @sort-change="report('sort')(Boolean($event.order))">
	<el-table-column prop="price" label="Price" sortable/></el-table></el-form>`;

createApp({
	template,
	data: () => ({news: false, plan: "a", span: "day", wifi: false, country: "", fruit: "", due: "", open: false,
		tab: "One", volume: 30, stars: 0, opened: []}),
	methods: {
		report,
		suggest: (typed, done) => done([{value: "Apple"}, {value: "Banana"}].filter(({value}) =>
			value.toLowerCase().includes(typed.toLowerCase()))),
		take() {
			seen.upload = 1;
			return false;
		},
	},
}).use(ElementPlus).mount(document.body.appendChild(document.createElement("div")));
