import "daisyui/daisyui.css";
import "daisyui/themes.css";
import {markup, seen} from "./seen.js";

markup(`
<label class=label><span>News</span><input type=checkbox class=checkbox data-seen=checkbox></label><br>
<label class=label><span>Plan A</span><input type=radio name=plan class=radio value=a data-seen=radio></label>
<label class=label><span>Plan B</span><input type=radio name=plan class=radio value=b data-seen=radio></label><br>
<div class=join><input class="join-item btn" type=radio name=span aria-label=Day value=day data-seen=buttons>
	<input class="join-item btn" type=radio name=span aria-label=Week value=week data-seen=buttons></div><br>
<label class=label><span>Wifi</span><input type=checkbox class=toggle data-seen=switch></label><br>
<label class=select><span class=label>Country</span><select data-seen=select>
	<option value=no>Norway<option value=se>Sweden</select></label><br>
<label class=input><span class=label>Due</span><input type=date data-seen=date></label><br>
<div class=dropdown><div tabindex=0 role=button class=btn>Actions</div>
	<ul tabindex=0 class="dropdown-content menu bg-base-100"><li><a data-click=menu>Archive</a></ul></div>
<label for=sure class=btn>Delete</label><input type=checkbox id=sure class=modal-toggle>
<div class=modal role=dialog><div class=modal-box>Sure?
	<div class=modal-action><label for=sure class=btn data-click=dialog>Yes</label></div></div></div>
<div role=tablist class="tabs tabs-lift"><input type=radio name=tab class=tab aria-label=One value=One checked data-seen=tabs>
	<div class=tab-content>First</div><input type=radio name=tab class=tab aria-label=Two value=Two data-seen=tabs>
	<div class=tab-content>Second</div></div>
<label><span>Volume</span><input type=range class=range value=30 data-seen=slider></label><br>
<div class=rating>${[1, 2, 3, 4, 5].map((n) => `<input type=radio name=stars class="mask mask-star"
	aria-label="${n} star" value=${n} data-seen=rating>`).join("")}</div><br>
<label><span>Upload file</span><input type=file class=file-input data-seen=upload></label>
<div class=tooltip data-tip="Helpful text"><button class=btn>Info</button></div>
<div class="collapse collapse-arrow"><input type=checkbox data-seen=accordion><div class=collapse-title>More</div>
	<div class=collapse-content>Details</div></div>`);
Object.defineProperty(seen, "tooltip", { // it is drawn by a style
	get: () => getComputedStyle(document.querySelector(".tooltip"), "::before").opacity > 0.5,
});
