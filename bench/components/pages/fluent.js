import * as fluent from "@fluentui/web-components";
import {markup, seen} from "./seen.js";

fluent.provideFluentDesignSystem().register(fluent.allComponents);
markup(`
<fluent-checkbox data-is=checkbox>News</fluent-checkbox>
<fluent-radio-group data-is=radio><label slot=label>Plan</label><fluent-radio value=a>Plan A</fluent-radio>
	<fluent-radio value=b>Plan B</fluent-radio></fluent-radio-group>
<fluent-switch data-is=switch>Wifi</fluent-switch><br>
<label for=country>Country</label><fluent-select id=country aria-label=Country data-is=select>
	<fluent-option value=none>None</fluent-option>
	<fluent-option value=no>Norway</fluent-option><fluent-option value=se>Sweden</fluent-option></fluent-select><br>
<label for=fruit>Fruit</label><fluent-combobox id=fruit placeholder=Fruit autocomplete=both data-is=combobox>
	<fluent-option>Apple</fluent-option><fluent-option>Banana</fluent-option></fluent-combobox><br>
<fluent-text-field type=date data-is=date>Due</fluent-text-field><br>
<fluent-button id=actions>Actions</fluent-button>
<fluent-menu id=menu hidden><fluent-menu-item>Archive</fluent-menu-item></fluent-menu>
<fluent-button id=delete>Delete</fluent-button>
<fluent-dialog id=sure hidden modal aria-label=Sure>Sure? <fluent-button id=yes>Yes</fluent-button></fluent-dialog>
<fluent-tabs><fluent-tab id=One>One</fluent-tab><fluent-tab id=Two>Two</fluent-tab>
	<fluent-tab-panel>First</fluent-tab-panel><fluent-tab-panel>Second</fluent-tab-panel></fluent-tabs>
<fluent-slider aria-label=Volume value=30 min=0 max=100 step=1 style="width:300px" data-is=slider></fluent-slider><br>
<fluent-button id=info>Info</fluent-button><fluent-tooltip anchor=info delay=0>Helpful text</fluent-tooltip>
<fluent-accordion><fluent-accordion-item><span slot=heading>More</span>Details</fluent-accordion-item></fluent-accordion>`);
const get = (id) => document.getElementById(id);
for (const type of ["change", "input"]) document.addEventListener(type, ({target}) => {
	const {dataset: {is}} = target;
	if (is) seen[is] = is === "slider" ? Number(target.value) :
		is === "checkbox" || is === "switch" ? target.checked : target.value;
	if (target.tagName === "FLUENT-MENU-ITEM") [seen.menu, get("menu").hidden] = [true, true];
	if (target.tagName === "FLUENT-TABS") seen.tabs = target.activeid;
	if (target.tagName === "FLUENT-ACCORDION-ITEM") seen.accordion = target.expanded;
});
get("actions").addEventListener("click", () => { get("menu").hidden = false; });
get("delete").addEventListener("click", () => get("sure").show());
get("yes").addEventListener("click", () => {
	seen.dialog = true;
	get("sure").hide();
});
Object.defineProperty(seen, "tabs", {get: () => document.querySelector("fluent-tabs").activeid});
Object.defineProperty(seen, "accordion", {get: () => document.querySelector("fluent-accordion-item").expanded});
