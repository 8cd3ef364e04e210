import {initialize} from "@ionic/core/components";
import {defineCustomElement as accordion} from "@ionic/core/components/ion-accordion.js";
import {defineCustomElement as accordions} from "@ionic/core/components/ion-accordion-group.js";
import {defineCustomElement as alert} from "@ionic/core/components/ion-alert.js";
import {defineCustomElement as app} from "@ionic/core/components/ion-app.js";
import {defineCustomElement as button} from "@ionic/core/components/ion-button.js";
import {defineCustomElement as checkbox} from "@ionic/core/components/ion-checkbox.js";
import {defineCustomElement as content} from "@ionic/core/components/ion-content.js";
import {defineCustomElement as datetime} from "@ionic/core/components/ion-datetime.js";
import {defineCustomElement as datetimeButton} from "@ionic/core/components/ion-datetime-button.js";
import {defineCustomElement as item} from "@ionic/core/components/ion-item.js";
import {defineCustomElement as label} from "@ionic/core/components/ion-label.js";
import {defineCustomElement as list} from "@ionic/core/components/ion-list.js";
import {defineCustomElement as modal} from "@ionic/core/components/ion-modal.js";
import {defineCustomElement as popover} from "@ionic/core/components/ion-popover.js";
import {defineCustomElement as radio} from "@ionic/core/components/ion-radio.js";
import {defineCustomElement as radios} from "@ionic/core/components/ion-radio-group.js";
import {defineCustomElement as range} from "@ionic/core/components/ion-range.js";
import {defineCustomElement as segment} from "@ionic/core/components/ion-segment.js";
import {defineCustomElement as segmentButton} from "@ionic/core/components/ion-segment-button.js";
import {defineCustomElement as select} from "@ionic/core/components/ion-select.js";
import {defineCustomElement as option} from "@ionic/core/components/ion-select-option.js";
import {defineCustomElement as tab} from "@ionic/core/components/ion-tab.js";
import {defineCustomElement as tabBar} from "@ionic/core/components/ion-tab-bar.js";
import {defineCustomElement as tabButton} from "@ionic/core/components/ion-tab-button.js";
import {defineCustomElement as tabs} from "@ionic/core/components/ion-tabs.js";
import {defineCustomElement as toggle} from "@ionic/core/components/ion-toggle.js";
import "@ionic/core/css/core.css";
import "@ionic/core/css/normalize.css";
import "@ionic/core/css/structure.css";
import "@ionic/core/css/typography.css";
import {markup, report, seen} from "./seen.js";

initialize();
for (const define of [accordion, accordions, alert, app, button, checkbox, content, datetime, datetimeButton, item, label, list, modal,
	popover, radio, radios, range, segment, segmentButton, select, option, tab, tabBar, tabButton, tabs, toggle]) define();

markup(`<ion-app><ion-content>
<ion-list>
<ion-item><ion-checkbox data-is=checkbox>News</ion-checkbox></ion-item>
<ion-radio-group value=a data-is=radio><ion-item><ion-radio value=a>Plan A</ion-radio></ion-item>
	<ion-item><ion-radio value=b>Plan B</ion-radio></ion-item></ion-radio-group>
<ion-item><ion-toggle data-is=switch>Wifi</ion-toggle></ion-item>
<ion-item><ion-select label=Country interface=popover data-is=select><ion-select-option value=no>Norway</ion-select-option>
	<ion-select-option value=se>Sweden</ion-select-option></ion-select></ion-item>
<ion-item><ion-label>Due</ion-label><ion-datetime-button datetime=due></ion-datetime-button></ion-item>
<ion-item><ion-range label=Volume value=30 data-is=slider></ion-range></ion-item>
</ion-list>
<ion-modal keep-contents-mounted=true><ion-datetime id=due presentation=date data-is=date></ion-datetime></ion-modal>
<ion-segment value=day data-is=buttons><ion-segment-button value=day><ion-label>Day</ion-label></ion-segment-button>
	<ion-segment-button value=week><ion-label>Week</ion-label></ion-segment-button></ion-segment>
<ion-button id=actions>Actions</ion-button>
<ion-popover trigger=actions dismiss-on-select=true><ion-content><ion-list>
	<ion-item button detail=false data-click=menu>Archive</ion-item></ion-list></ion-content></ion-popover>
<ion-button id=delete>Delete</ion-button><ion-alert trigger=delete header="Sure?"></ion-alert>
<ion-accordion-group data-is=accordion><ion-accordion value=more><ion-item slot=header><ion-label>More</ion-label></ion-item>
	<div class=ion-padding slot=content>Details</div></ion-accordion></ion-accordion-group>
<div style="position: relative; height: 120px"><ion-tabs><ion-tab tab=One>First</ion-tab><ion-tab tab=Two>Second</ion-tab>
	<ion-tab-bar slot=bottom><ion-tab-button tab=One>One</ion-tab-button><ion-tab-button tab=Two>Two</ion-tab-button></ion-tab-bar>
</ion-tabs></div>
</ion-content></ion-app>`);

document.querySelector("ion-alert").buttons = [{text: "No", role: "cancel"}, {text: "Yes", handler: () => report("dialog")(true)}];
const isChecked = (el) => el.checked;
const read = {checkbox: isChecked, switch: isChecked, date: (el) => el.value.slice(0, 10), accordion: (el) => el.value === "more"};
for (const type of ["ionChange", "ionInput"]) document.addEventListener(type, ({target}) => {
	const {dataset: {is}} = target;
	if (is) seen[is] = read[is] ? read[is](target) : target.value;
});
document.querySelector("ion-tabs").addEventListener("ionTabsDidChange", ({detail}) => { seen.tabs = detail.tab; });
