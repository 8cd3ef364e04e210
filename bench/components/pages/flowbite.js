import {initFlowbite} from "flowbite";
import "./flowbite.css";
import {markup, seen} from "./seen.js";

markup(`
<div><input id=news type=checkbox data-seen=checkbox><label for=news>News</label></div>
<ul><li><input type=radio id=a name=plan value=a class="hidden peer" data-seen=radio><label for=a class=card>Plan A</label>
	<li><input type=radio id=b name=plan value=b class="hidden peer" data-seen=radio><label for=b class=card>Plan B</label></ul>
<label class=toggle><input type=checkbox class="sr-only peer" data-seen=switch><div class=track></div><span>Wifi</span></label><br>
<label for=country>Country</label><select id=country data-seen=select><option value=no>Norway<option value=se>Sweden</select>
<div><label for=due>Due</label><input id=due datepicker datepicker-format=yyyy-mm-dd datepicker-autohide></div>
<button data-dropdown-toggle=menu>Actions</button>
<div id=menu class="hidden floating"><ul><li><a href=# data-click=menu>Archive</a></ul></div>
<button data-modal-target=sure data-modal-toggle=sure>Delete</button>
<div id=sure tabindex=-1 aria-hidden=true class="hidden modal"><div class=card>Sure?
	<button data-modal-hide=sure data-click=dialog>Yes</button></div></div>
<ul data-tabs-toggle=#panels role=tablist><li role=presentation><button data-tabs-target=#one role=tab aria-controls=one>One</button>
	<li role=presentation><button data-tabs-target=#two role=tab aria-controls=two data-tab>Two</button></ul>
<div id=panels><div id=one role=tabpanel>First</div><div id=two role=tabpanel class=hidden>Second</div></div>
<label for=volume>Volume</label><input id=volume type=range value=30 data-seen=slider><br>
<label for=file>Upload file</label><input id=file type=file data-seen=upload>
<label for=zone class="card zone"><span>Drop zone</span><input id=zone type=file class=hidden></label>
<button data-tooltip-target=tip>Info</button>
<div id=tip role=tooltip class="invisible floating">Helpful text<div data-popper-arrow></div></div>
<div data-accordion=collapse><h2><button data-accordion-target=#more aria-expanded=false aria-controls=more>More</button></h2>
	<div id=more class=hidden>Details</div></div>`);
initFlowbite();
const shown = (id) => document.getElementById(id).checkVisibility();
document.getElementById("due").addEventListener("changeDate", ({target}) => { seen.date = target.value; });
Object.defineProperty(seen, "tabs", {get: () => shown("two") && "Two"});
Object.defineProperty(seen, "accordion", {get: () => shown("more")});
