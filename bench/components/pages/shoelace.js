import "@shoelace-style/shoelace/dist/shoelace.js";
import "@shoelace-style/shoelace/dist/themes/light.css";
import {markup, seen} from "./seen.js";

markup(`
<sl-checkbox data-is=checkbox>News</sl-checkbox><br>
<sl-radio-group label=Plan data-is=radio><sl-radio value=a>Plan A</sl-radio><sl-radio value=b>Plan B</sl-radio></sl-radio-group>
<sl-radio-group label=Span data-is=buttons><sl-radio-button value=day>Day</sl-radio-button>
	<sl-radio-button value=week>Week</sl-radio-button></sl-radio-group>
<sl-switch data-is=switch>Wifi</sl-switch>
<sl-select label=Country data-is=select><sl-option value=no>Norway</sl-option><sl-option value=se>Sweden</sl-option></sl-select>
<sl-input type=date label=Due data-is=date></sl-input>
<sl-dropdown><sl-button slot=trigger caret>Actions</sl-button><sl-menu><sl-menu-item>Archive</sl-menu-item></sl-menu></sl-dropdown>
<sl-button id=delete>Delete</sl-button><sl-dialog label="Sure?" id=sure><sl-button data-click=dialog>Yes</sl-button></sl-dialog>
<sl-tab-group><sl-tab slot=nav panel=One>One</sl-tab><sl-tab slot=nav panel=Two>Two</sl-tab>
	<sl-tab-panel name=One>First</sl-tab-panel><sl-tab-panel name=Two>Second</sl-tab-panel></sl-tab-group>
<sl-range label=Volume value=30 data-is=slider></sl-range><sl-rating label=Stars data-is=rating></sl-rating><br>
<sl-tooltip content="Helpful text"><sl-button>Info</sl-button></sl-tooltip>
<sl-details summary=More>Details</sl-details>`);
for (const type of ["sl-change", "sl-input"]) document.addEventListener(type, ({target}) => {
	const {dataset: {is}} = target;
	if (is) seen[is] = target.checked ?? target.value;
});
document.addEventListener("sl-select", () => { seen.menu = true; });
document.addEventListener("sl-tab-show", ({detail}) => { seen.tabs = detail.name; });
document.addEventListener("sl-show", ({target}) => { if (target.summary) seen.accordion = true; });
document.getElementById("delete").addEventListener("click", () => document.getElementById("sure").show());
