import "@quasar/extras/material-icons/material-icons.css";
import {ClosePopup, QBtn, QBtnDropdown, QBtnToggle, QCard, QCardActions, QCardSection, QCheckbox, QDate, QDialog, QExpansionItem,
	QFile, QIcon, QInput, QItem, QItemSection, QList, QOptionGroup, QPopupProxy, QRating, QSelect, QSlider, QTab, QTabPanel, QTabPanels,
	QTable, QTabs, QToggle, QTooltip, Quasar} from "quasar";
import "quasar/dist/quasar.css";
import {createApp} from "vue";
import {report} from "./seen.js";

const template = `<div style="width: 500px">
<q-checkbox v-model="news" label="News" @update:model-value="report('checkbox')($event)"/>
<q-option-group v-model="plan" :options="[{label: 'Plan A', value: 'a'}, {label: 'Plan B', value: 'b'}]"
	@update:model-value="report('radio')($event)"/>
<q-btn-toggle v-model="span" :options="[{label: 'Day', value: 'day'}, {label: 'Week', value: 'week'}]"
	@update:model-value="report('buttons')($event)"/>
<q-toggle v-model="wifi" label="Wifi" @update:model-value="report('switch')($event)"/>
<q-select v-model="country" label="Country" emit-value map-options @update:model-value="report('select')($event)"
	:options="[{label: 'Norway', value: 'no'}, {label: 'Sweden', value: 'se'}]"/>
<q-select v-model="fruit" label="Fruit" use-input hide-selected fill-input input-debounce="0" :options="fruits" @filter="filter"
	@update:model-value="report('combobox')($event)"/>
<q-input v-model="due" label="Due" mask="####-##-##" @update:model-value="report('date')($event)"><template #append>
	<q-icon name="event" class="cursor-pointer"><q-popup-proxy cover transition-show="scale" transition-hide="scale">
		<q-date v-model="due" mask="YYYY-MM-DD" @update:model-value="report('date')($event)"><div class="row items-center justify-end">
			<q-btn v-close-popup label="Close" color="primary" flat/></div></q-date></q-popup-proxy></q-icon></template></q-input>
<q-btn-dropdown label="Actions"><q-list><q-item clickable v-close-popup @click="report('menu')(true)">
	<q-item-section>Archive</q-item-section></q-item></q-list></q-btn-dropdown>
<q-btn label="Delete" @click="open = true"/>
<q-dialog v-model="open"><q-card><q-card-section>Sure?</q-card-section><q-card-actions align="right">
	<q-btn flat label="Yes" v-close-popup @click="report('dialog')(true)"/></q-card-actions></q-card></q-dialog>
<q-tabs v-model="tab" @update:model-value="report('tabs')($event)">
	<q-tab name="One" label="One"/><q-tab name="Two" label="Two"/></q-tabs>
<q-tab-panels v-model="tab" animated><q-tab-panel name="One">First</q-tab-panel>
	<q-tab-panel name="Two">Second</q-tab-panel></q-tab-panels>
<q-slider v-model="volume" aria-label="Volume" :min="0" :max="100" @update:model-value="report('slider')($event)"/>
<q-rating v-model="stars" size="2em" @update:model-value="report('rating')($event)"/>
<q-file v-model="file" label="Upload file" @update:model-value="report('upload')($event ? 1 : 0)"/>
<q-btn label="Info"><q-tooltip>Helpful text</q-tooltip></q-btn>
<q-expansion-item label="More" @update:model-value="report('accordion')($event)">Details</q-expansion-item>
<q-table :rows="[{price: 2}, {price: 1}]" row-key="price" v-model:pagination="pagination" hide-bottom
	:columns="[{name: 'price', label: 'Price', field: 'price', sortable: true}]"
	@update:pagination="report('sort')($event.sortBy === 'price')"/></div>`;

createApp({
	template,
	data: () => ({news: false, plan: "a", span: "day", wifi: false, country: null, fruit: null, fruits: ["Apple", "Banana"], due: "",
		open: false, tab: "One", volume: 30, stars: 0, file: null, pagination: {sortBy: null, descending: false}}),
	methods: {
		report,
		filter(typed, update) {
			update(() => { this.fruits = ["Apple", "Banana"].filter((f) => f.toLowerCase().includes(typed.toLowerCase())); });
		},
	},
}).use(Quasar, {
	components: {QBtn, QBtnDropdown, QBtnToggle, QCard, QCardActions, QCardSection, QCheckbox, QDate, QDialog, QExpansionItem, QFile,
		QIcon, QInput, QItem, QItemSection, QList, QOptionGroup, QPopupProxy, QRating, QSelect, QSlider, QTab, QTabPanel, QTabPanels, QTable,
		QTabs, QToggle, QTooltip},
	directives: {ClosePopup},
}).mount(document.body.appendChild(document.createElement("div")));
