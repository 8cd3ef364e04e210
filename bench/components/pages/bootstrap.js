import * as bootstrap from "bootstrap";
import "bootstrap/dist/css/bootstrap.css";
import {markup, seen} from "./seen.js";

markup(`
<div class=form-check><input class=form-check-input type=checkbox id=news data-seen=checkbox>
	<label class=form-check-label for=news>News</label></div>
<div class=form-check><input class=form-check-input type=radio name=plan id=a value=a checked data-seen=radio>
	<label class=form-check-label for=a>Plan A</label></div>
<div class=form-check><input class=form-check-input type=radio name=plan id=b value=b data-seen=radio>
	<label class=form-check-label for=b>Plan B</label></div>
<div class=btn-group>
	<input type=radio class=btn-check name=span id=day value=day checked data-seen=buttons>
	<label class="btn btn-outline-primary" for=day>Day</label>
	<input type=radio class=btn-check name=span id=week value=week data-seen=buttons>
	<label class="btn btn-outline-primary" for=week>Week</label></div>
<div class="form-check form-switch"><input class=form-check-input type=checkbox role=switch id=wifi data-seen=switch>
	<label class=form-check-label for=wifi>Wifi</label></div>
<div class=form-floating><select class=form-select id=country data-seen=select>
	<option value=no>Norway<option value=se>Sweden</select><label for=country>Country</label></div>
<label class=form-label for=due>Due</label><input type=date class=form-control id=due data-seen=date>
<div class=dropdown><button class="btn btn-secondary dropdown-toggle" data-bs-toggle=dropdown>Actions</button>
	<ul class=dropdown-menu><li><a class=dropdown-item href=# data-click=menu>Archive</a></ul></div>
<button class="btn btn-danger" data-bs-toggle=modal data-bs-target=#sure>Delete</button>
<div class="modal fade" id=sure tabindex=-1><div class=modal-dialog><div class=modal-content>
	<h5 class=modal-title>Sure?</h5><button class=btn data-bs-dismiss=modal data-click=dialog>Yes</button></div></div></div>
<ul class="nav nav-tabs"><li class=nav-item><button class="nav-link active" data-bs-toggle=tab data-bs-target=#one>One</button>
	<li class=nav-item><button class=nav-link data-bs-toggle=tab data-bs-target=#two>Two</button></ul>
<div class=tab-content><div class="tab-pane active" id=one>First</div><div class=tab-pane id=two>Second</div></div>
<label class=form-label for=volume>Volume</label>
<input type=range class=form-range id=volume value=30 data-seen=slider>
<label class=form-label for=file>Upload file</label><input type=file class=form-control id=file data-seen=upload>
<button class=btn data-bs-toggle=tooltip data-bs-title="Helpful text">Info</button>
<div class=accordion><div class=accordion-item><h2 class=accordion-header>
	<button class="accordion-button collapsed" data-bs-toggle=collapse data-bs-target=#more>More</button></h2>
	<div id=more class="accordion-collapse collapse"><div class=accordion-body>Details</div></div></div></div>`);
new bootstrap.Tooltip("[data-bs-toggle=tooltip]");
document.addEventListener("shown.bs.tab", ({target}) => { seen.tabs = target.textContent; });
document.addEventListener("shown.bs.collapse", () => { seen.accordion = true; });
