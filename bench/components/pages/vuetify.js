import {createApp} from "vue";
import {createVuetify} from "vuetify";
import * as components from "vuetify/components";
import {aliases, mdi} from "vuetify/iconsets/mdi-svg";
import "vuetify/styles";
import {iso, report} from "./seen.js";

const template = `<v-app><v-main><div style="width: 500px">
<v-checkbox v-model="news" label="News" @update:modelValue="report('checkbox')($event)"/>
<v-radio-group v-model="plan" @update:modelValue="report('radio')($event)"><v-radio label="Plan A" value="a"/>
	<v-radio label="Plan B" value="b"/></v-radio-group>
<v-btn-toggle v-model="span" @update:modelValue="report('buttons')($event)"><v-btn value="day">Day</v-btn>
	<v-btn value="week">Week</v-btn></v-btn-toggle>
<v-switch v-model="wifi" label="Wifi" :true-value="true" @update:modelValue="report('switch')($event)"/>
<v-select v-model="country" label="Country" :items="[{title: 'Norway', value: 'no'}, {title: 'Sweden', value: 'se'}]"
	@update:modelValue="report('select')($event)"/>
<v-autocomplete v-model="fruit" label="Fruit" :items="['Apple', 'Banana']" @update:modelValue="report('combobox')($event)"/>
<v-date-input v-model="due" label="Due" input-format="yyyy-mm-dd" @update:modelValue="report('date')(iso($event))"/>
<v-menu><template #activator="{props}"><v-btn v-bind="props">Actions</v-btn></template>
	<v-list><v-list-item @click="report('menu')(true)">Archive</v-list-item></v-list></v-menu>
<v-dialog v-model="open" width="300"><template #activator="{props}"><v-btn v-bind="props">Delete</v-btn></template>
	<v-card title="Sure?"><v-btn @click="report('dialog')(true); open = false">Yes</v-btn></v-card></v-dialog>
<v-tabs v-model="tab" @update:modelValue="report('tabs')($event)"><v-tab value="One">One</v-tab><v-tab value="Two">Two</v-tab></v-tabs>
<v-slider v-model="volume" aria-label="Volume" step="1" @update:modelValue="report('slider')($event)"/>
<v-rating v-model="stars" @update:modelValue="report('rating')($event)"/>
<v-file-input label="Upload file" @update:modelValue="report('upload')($event ? 1 : 0)"/>
<v-tooltip text="Helpful text"><template #activator="{props}"><v-btn v-bind="props">Info</v-btn></template></v-tooltip>
<v-expansion-panels @update:modelValue="report('accordion')($event !== undefined)">
	<v-expansion-panel title="More" text="Details"/></v-expansion-panels>
<v-data-table :headers="[{title: 'Price', key: 'price'}]" :items="[{price: 2}, {price: 1}]" hide-default-footer
	@update:sortBy="report('sort')($event.length > 0)"/></div></v-main></v-app>`;

createApp({
	template,
	data: () => ({news: false, plan: "a", span: "day", wifi: false, country: null, fruit: null, due: null, open: false,
		tab: "One", volume: 30, stars: 0}),
	methods: {report, iso},
}).use(createVuetify({components, icons: {defaultSet: "mdi", aliases, sets: {mdi}}}))
	.mount(document.body.appendChild(document.createElement("div")));
