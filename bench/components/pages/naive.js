import * as naive from "naive-ui";
import {createApp} from "vue";
import {iso, report} from "./seen.js";

const template = `<n-config-provider><div style="width: 500px">
<n-checkbox @update:checked="report('checkbox')($event)">News</n-checkbox>
<n-radio-group name="plan" v-model:value="plan" @update:value="report('radio')($event)"><n-radio value="a">Plan A</n-radio>
	<n-radio value="b">Plan B</n-radio></n-radio-group>
<n-radio-group name="span" v-model:value="span" @update:value="report('buttons')($event)">
	<n-radio-button value="day">Day</n-radio-button><n-radio-button value="week">Week</n-radio-button></n-radio-group>
<span id="wifi">Wifi</span><n-switch aria-labelledby="wifi" v-model:value="wifi" @update:value="report('switch')($event)"/>
<n-form><n-form-item label="Country" :label-props="{for: 'country'}"><n-select v-model:value="country"
	:input-props="{id: 'country'}" placeholder="Country" @update:value="report('select')($event)"
	:options="[{label: 'Norway', value: 'no'}, {label: 'Sweden', value: 'se'}]"/></n-form-item>
<n-form-item label="Fruit" :label-props="{for: 'fruit'}"><n-auto-complete v-model:value="fruit" :input-props="{id: 'fruit'}"
	:options="['Apple', 'Banana'].filter(f => fruit && f.startsWith(fruit))" @select="report('combobox')($event)"/></n-form-item>
<n-form-item label="Due"><n-date-picker v-model:value="due" type="date" format="yyyy-MM-dd" placeholder="Due"
	@update:value="report('date')(iso($event))"/></n-form-item></n-form>
<n-dropdown trigger="click" :options="[{label: 'Archive', key: 'archive'}]" @select="report('menu')(true)">
	<n-button>Actions</n-button></n-dropdown>
<n-button @click="open = true">Delete</n-button>
<n-modal v-model:show="open" preset="card" title="Sure?" style="width: 300px">
	<n-button @click="report('dialog')(true); open = false">Yes</n-button></n-modal>
<n-tabs @update:value="report('tabs')($event)"><n-tab-pane name="One" tab="One">First</n-tab-pane>
	<n-tab-pane name="Two" tab="Two">Second</n-tab-pane></n-tabs>
<n-slider v-model:value="volume" aria-label="Volume" @update:value="report('slider')($event)"/>
<n-rate @update:value="report('rating')($event)"/>
<n-upload :default-upload="false" @change="report('upload')($event.fileList.length)"><n-button>Upload file</n-button></n-upload>
<n-tooltip><template #trigger><n-button>Info</n-button></template>Helpful text</n-tooltip>
<n-collapse @item-header-click="report('accordion')($event.expanded)"><n-collapse-item title="More" name="1">Details</n-collapse-item>
</n-collapse>
<n-data-table :columns="[{title: 'Price', key: 'price', sorter: 'default'}]" :data="[{price: 2, key: 1}, {price: 1, key: 2}]"
	@update:sorter="report('sort')(Boolean($event && $event.order))"/></div></n-config-provider>`;

createApp({
	template,
	data: () => ({plan: "a", span: "day", wifi: false, country: null, fruit: "", due: null, open: false, volume: 30}),
	methods: {report, iso},
}).use(naive.default ?? naive).mount(document.body.appendChild(document.createElement("div")));
