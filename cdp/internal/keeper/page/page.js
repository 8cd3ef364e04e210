// What the verbs of the plugin page do in a document. It runs in an isolated world of each frame: it sees the document,
// and nothing that the page's own scripts have replaced. It leaves no trace in the page, except where a function says so.
// All that leaves a function is JSON and bounded.

// ---- The DOM
//
// A form, a document and a window have properties that a page can name after its elements: form.getAttribute may be an
// input. So members of all elements are called through the prototypes, which no page can reach in this world. Texts, shadow
// roots and drawings have no such properties.

const bound = Function.prototype.call;
const method = (name, of = Element) => bound.bind(of.prototype[name]);
const getter = (name, of = Element) => bound.bind(Object.getOwnPropertyDescriptor(of.prototype, name).get);
const ofDocument = (name, kind = getter) => {
	const member = kind(name, Document);
	return (...args) => member(document, ...args);
};
const arrayBy = (find) => (...args) => [...find(...args)];

const nodeType = getter("nodeType", Node), parentNode = getter("parentNode", Node);
const firstChild = getter("firstChild", Node), nextSibling = getter("nextSibling", Node);
const childNodes = arrayBy(getter("childNodes", Node)), textContent = getter("textContent", Node);
const isConnected = getter("isConnected", Node), rootNode = method("getRootNode", Node);
const contains = method("contains", Node), tag = getter("localName"), namespace = getter("namespaceURI");
const attribute = method("getAttribute"), has = method("hasAttribute");
const ariaOf = (el, name) => attribute(el, "aria-" + name), matches = method("matches"), closest = method("closest");
const query = method("querySelector"), queryAll = arrayBy(method("querySelectorAll"));
const openRoot = getter("shadowRoot"), assignedSlot = getter("assignedSlot"), clientRects = method("getClientRects");
const ownRect = method("getBoundingClientRect"), scrollIntoView = method("scrollIntoView");
const checkVisibility = method("checkVisibility"), innerHTML = getter("innerHTML");
const innerText = getter("innerText", HTMLElement), isEditable = getter("isContentEditable", HTMLElement);
const htmlTabIndex = getter("tabIndex", HTMLElement), isInert = getter("inert", HTMLElement);
const focusHTML = method("focus", HTMLElement), documentElement = ofDocument("documentElement");
const elementById = ofDocument("getElementById", method), evaluateXPath = ofDocument("evaluate", method);
const animations = ofDocument("getAnimations", method);
const queryDocument = arrayBy(ofDocument("querySelectorAll", method)), titleOf = ofDocument("title");
const activeIn = ofDocument("activeElement"), pointInDocument = ofDocument("elementFromPoint", method);
const readyState = ofDocument("readyState"), contentType = ofDocument("contentType");
const dispatch = method("dispatchEvent", EventTarget), listen = method("addEventListener", EventTarget);
const unlisten = method("removeEventListener", EventTarget), scrollingElement = ofDocument("scrollingElement");
const createElement = ofDocument("createElement", method), cookiesOf = ofDocument("cookie");

const clock = () => performance.now(); // milliseconds

// rootElement returns the outermost element of the document. One that has none, as while it is replaced, is empty.
const rootElement = () => documentElement() || createElement("html");

const isElement = (node) => nodeType(node) === 1, isText = (node) => nodeType(node) === 3;
const isHTML = (el) => el instanceof HTMLElement;
const isSelect = (el) => tag(el) === "select";
const textIn = (el) => (isHTML(el) ? innerText(el) : textContent(el)) || "";
const editable = (el) => isHTML(el) && isEditable(el);
const tabIndex = (el) => isHTML(el) ? htmlTabIndex(el) : el instanceof SVGElement ? el.tabIndex : -1;

// pictured returns the image on which an area of an image map is, and any other element itself.
const pictured = (el) => {
	const map = tag(el) === "area" && closest(el, "map");
	return map && queryDocument(`img[usemap="#${CSS.escape(attribute(map, "name"))}"]`)[0] || el;
};
const center = (el, at = "center") => scrollIntoView(pictured(el), {block: at, inline: at, behavior: "instant"});

// rectOf returns the box of an element, that of an area on its image.
function rectOf(el) {
	const image = pictured(el), box = ownRect(image);
	if (image === el || !box.width) return box;
	const at = (attribute(el, "coords") || "").split(/[\s,]+/).map(Number);
	if (at.length < 3) return box;
	const [x, y, r] = at, points = at.length > 3 ? at : [x - r, y - r, x + r, y + r]; // of a circle
	const side = (odd) => points.filter((_, i) => i % 2 === odd), left = Math.min(...side(0)), top = Math.min(...side(1));
	return new DOMRect(box.x + left, box.y + top, Math.max(...side(0)) - left, Math.max(...side(1)) - top);
}

// What one call has read. Reading it again costs more than remembering.
let styles, labels, exclusions, listed, kindsHere;
const readAgain = () => {
	styles = new Map();
	labels = new Map();
	exclusions = new Map();
	listed = new Map();
	kindsHere = null;
};
readAgain();
const style = (el) => {
	let s = styles.get(el);
	if (!s) styles.set(el, s = getComputedStyle(el));
	return s;
};

// closedRoots are the closed shadow roots that the keeper has handed over, since no script can get them; askedFor are
// the elements that it was asked about.
const closedRoots = new WeakMap(), askedFor = new WeakSet();
const shadowRoot = (el) => openRoot(el) || closedRoots.get(el) || null;
const adopt = (el, root) => void closedRoots.set(el, root);

// The flat tree: with shadow roots, and what their slots show.
const parent = (node) => {
	const slot = isElement(node) ? assignedSlot(node) : node.assignedSlot;
	if (slot) return slot;
	const up = parentNode(node);
	return up instanceof ShadowRoot ? up.host : up && isElement(up) ? up : null;
};

function children(el) {
	const root = shadowRoot(el);
	if (!root && tag(el) === "slot") {
		const assigned = el.assignedNodes({flatten: true});
		if (assigned.length) return assigned;
	}
	const all = []; // much faster than to iterate over childNodes
	for (let node = firstChild(root || el); node; node = nextSibling(node)) all.push(node);
	return all;
}

const within = (el, inner) => {
	for (let at = inner; at; at = parent(at)) if (at === el) return true;
	return false;
};

// outward returns an element and what is around it in the body, the innermost first.
const outward = (el) => {
	const all = [];
	for (let at = el; at && tag(at) !== "body"; at = parent(at)) all.push(at);
	return all;
};

function byIds(el, name) {
	const ids = attribute(el, name);
	if (!ids) return [];
	const root = rootNode(el);
	const find = root instanceof ShadowRoot ? (x) => root.getElementById(x) : elementById;
	return ids.split(/\s+/).filter(Boolean).map(find).filter(Boolean);
}

// A call has a time and a depth, so that no page can hold it up. What is beyond them is left out, and the answer says so.
const maxDepth = 1000;
let deadline = Infinity, partial = false, steps = 0;

// fitting returns those of some elements that are visible and fit, as far as there is time.
const fitting = (fits, all = allElements()) => all.filter((el) => !beyond(0) && visible(el) && fits(el));

// beyond reports whether what is so deep in the document, or comes so late, is left out.
const beyond = (depth, until = deadline) => {
	if (depth > maxDepth || ++steps % 64 === 0 && clock() > until) partial = true;
	return depth > maxDepth || partial && clock() > until;
};

const clean = (text) => (text || "").replace(/[\s\u00a0\u200b]+/g, " ").trim();
const lower = (text) => clean(text).toLowerCase();
const flat = (text) => lower(text).replaceAll(" ", ""); // blocks have line breaks between them
// collapse leaves of white space what a reader sees. What else is blank or invisible is content. trimmed has no edges.
const collapse = (text) => text.replace(/[ \t\n\r\f]+/g, " "), trimmed = (text) => collapse(text).replace(/^ | $/g, "");
const clip = (text, size) => text.length > size ? text.slice(0, size - 1) + "…" : text;
const set = (words) => new Set(words.split(" "));

// quoted writes what a page says as one value that nothing in it can end, as quote of element.go does. What is not shown
// is escaped, but for the joiners and selectors that scripts and emoji need.
const unseen = /(?![\u200c\u200d\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const quoted = (text) => JSON.stringify(text).replace(unseen, (all) => all.split("")
	.map((unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0")).join(""));

// ---- Roles, as Chrome's accessibility tree names them

const unrendered = set("script style template noscript head meta link title base param source track datalist " +
	"col colgroup");
const fieldWords = "textbox searchbox combobox checkbox radio switch slider spinbutton ColorWell Date DateTime InputTime";
const pressedWords = "button link tab menuitem menuitemcheckbox menuitemradio option treeitem DisclosureTriangle";
const fieldRoles = set(`${fieldWords} listbox`), leaves = set(`${fieldWords} ${pressedWords} heading`);
const interactive = set(`${fieldWords} ${pressedWords} listbox scrollbar`);
const containers = set("heading navigation main complementary banner contentinfo form search region dialog " +
	"alertdialog alert status table row list listitem group tablist tabpanel toolbar menu menubar tree treegrid " +
	"grid radiogroup progressbar meter article Iframe Canvas image figure listbox");
const known = new Set([...interactive, ...containers, ...set("application blockquote caption cell code columnheader " +
	"comment definition deletion directory document emphasis feed generic gridcell img insertion log mark marquee math " +
	"none note paragraph presentation rowgroup rowheader separator strong subscript suggestion superscript term time " +
	"timer tooltip")]);
const namedByContent = set("button cell gridcell checkbox columnheader rowheader heading link menuitem " +
	"menuitemcheckbox menuitemradio option radio row switch tab tooltip treeitem DisclosureTriangle LabelText " +
	"legend comment");
const globalStates = ("atomic busy controls current describedby details dropeffect flowto keyshortcuts label labelledby " +
	"live owns relevant roledescription").split(" ");
const sectioning = "article,aside,main,nav,section,[role=article],[role=complementary],[role=main],[role=navigation]," +
	"[role=region]";

// The roles of elements and of inputs; an element without a colon is called as its role is.
const table = (words) => Object.fromEntries(words.split(" ").map((word) => word.split(":")).map(([a, b = a]) => [a, b]));
const plainRoles = table("button ul:list ol:list menu:list li:listitem nav:navigation main aside:complementary article " +
	"table tr:row td:cell thead:rowgroup tbody:rowgroup tfoot:rowgroup dialog fieldset:group details:group " +
	"optgroup:group legend label:LabelText progress:progressbar meter output:status hr:separator iframe:Iframe embed:Iframe " +
	"frame:Iframe p:paragraph figure search textarea:textbox option svg:image canvas:Canvas video:Video audio:Audio");
const inputRoles = table("hidden:none button submit:button reset:button image:button file:button checkbox radio " +
	"range:slider number:spinbutton color:ColorWell date:Date datetime-local:DateTime month:DateTime week:DateTime " +
	"time:InputTime");

const focusable = (el) => !el.disabled && (tabIndex(el) >= 0 || has(el, "tabindex") || editingHost(el));
const editingHost = (el) => {
	const up = editable(el) && parent(el);
	return editable(el) && !(up && editable(up));
};

function role(el) {
	const words = attribute(el, "role");
	if (!words) return ownRole(el);
	for (const word of words.toLowerCase().split(/\s+/)) {
		if (!known.has(word)) continue;
		if (word === "none" || word === "presentation") {
			if (focusable(el) || globalStates.some((s) => has(el, "aria-" + s))) break;
			return "none";
		}
		return word === "img" ? "image" : word === "directory" ? "list" : word;
	}
	return ownRole(el);
}

const isControl = (el) => interactive.has(role(el)), isField = (el) => fieldRoles.has(role(el));

function ownRole(el) {
	const named = () => has(el, "aria-label") || has(el, "aria-labelledby") || has(el, "title");
	const name = tag(el);
	switch (name) {
	case "a": case "area":
		return has(el, "href") || has(el, "onclick") || el.href && el.href.baseVal ? "link" : "generic";
	case "summary": {
		const up = parentNode(el);
		return up && isElement(up) && tag(up) === "details" && query(up, ":scope>summary") === el ?
			"DisclosureTriangle" : "generic";
	}
	case "input": {
		const own = inputRoles[el.type];
		return own || (has(el, "list") ? "combobox" : el.type === "search" ? "searchbox" : "textbox");
	}
	case "select": return el.multiple || el.size > 1 ? "listbox" : "combobox";
	case "img": return attribute(el, "alt") === "" && !has(el, "title") ? "none" : "image";
	case "object": return el.contentWindow ? "Iframe" : "generic";
	case "header": return closest(el, sectioning) ? "generic" : "banner";
	case "footer": return closest(el, sectioning) ? "generic" : "contentinfo";
	case "section": return named() ? "region" : "generic";
	case "form": return named() ? "form" : "generic";
	case "th": return attribute(el, "scope") === "row" ? "rowheader" : "columnheader";
	}
	return editingHost(el) ? "textbox" : Object.hasOwn(plainRoles, name) ? plainRoles[name] :
		/^h[1-6]$/.test(name) ? "heading" : "generic";
}

// ---- Names, by the rules of accessible names as Chrome applies them

const hiddenInNames = (el) => {
	const s = style(el);
	return unrendered.has(tag(el)) || s.display === "none" || s.visibility !== "visible" ||
		ariaOf(el, "hidden") === "true";
};

// generated returns the text of a pseudo-element.
function generated(el, which) {
	const s = getComputedStyle(el, which), text = s.content;
	if (!text || text === "none" || text === "normal" || s.display === "none" || s.visibility === "hidden") return "";
	const alternative = text.match(/\/\s*(["'])(.*)\1\s*$/);
	if (alternative) return ` ${alternative[2]} `;
	let out = "";
	for (const [, quoted, attr] of text.replace(/url\("(?:[^"\\]|\\.)*"\)/g, "")
		.matchAll(/"((?:[^"\\]|\\.)*)"|attr\(([^)]+)\)/g)) {
		out += quoted !== undefined ? quoted.replace(/\\(["\\])/g, "$1") : attribute(el, attr) || "";
	}
	return s.display.startsWith("inline") ? out : ` ${out} `;
}

function shownText(node, el) {
	const text = node.data;
	switch (style(parent(node) || el).textTransform) {
	case "uppercase": return text.toUpperCase();
	case "lowercase": return text.toLowerCase();
	case "capitalize":
		return text.replace(/(^|[^\p{L}\p{N}'’])(\p{L})/gu, (all, before, letter) => before + letter.toUpperCase());
	}
	return text;
}

function contentName(el, seen, how) {
	if (role(el) === "treeitem") how = {...how, tree: true};
	let out = how.svg ? "" : generated(el, "::before");
	for (const node of [...children(el), ...byIds(el, "aria-owns")]) {
		if (isText(node)) out += shownText(node, el);
		if (!isElement(node) || seen.has(node)) continue;
		if (tag(node) === "br" || tag(node) === "wbr") {
			out += " ";
			continue;
		}
		if (how.hidden ? unrendered.has(tag(node)) : hiddenInNames(node) || how.tree && role(node) === "group") continue;
		const text = nameOf(node, seen, {...how, inside: true}), display = style(node).display;
		out += display === "inline" || display === "contents" ? text : ` ${text} `;
	}
	return how.svg ? out : out + generated(el, "::after");
}

// nameOf computes the name of an element. seen are the elements that are being named; how says on whose behalf: inside
// the content of another one, by a reference of it (of a hidden element, if hidden), or as a label of a control.
function nameOf(el, seen, how) {
	if (seen.has(el)) return "";
	seen.add(el);
	if (!how.reference) {
		const others = byIds(el, "aria-labelledby").map((other) => nameOf(other, other === el ? new Set() : new Set([el]),
			{reference: true, hidden: hiddenInNames(other) || !rendered(other)}));
		if (clean(others.join(" "))) return others.join(" ");
	}
	const own = role(el);
	if (how.inside && how.label !== el) {
		const embedded = embeddedValue(el, own, seen);
		if (embedded !== null) return embedded;
	}
	const label = ariaOf(el, "label");
	if (clean(label)) return label;
	const native = nativeName(el, seen, how);
	if (clean(native)) return native;
	const fromContent = namedByContent.has(own) || how.inside || how.reference;
	const field = own === "textbox" && editable(el) && !how.inside && !how.reference;
	if (fromContent && !["select", "textarea", "iframe"].includes(tag(el)) && !field) {
		const text = contentName(el, seen, how);
		if (clean(text)) return text;
	}
	const title = attribute(el, "title");
	if (clean(title)) return title;
	return how.inside ? "" : ["textbox", "searchbox", "spinbutton", "combobox"].includes(own) &&
		(el.placeholder || ariaOf(el, "placeholder")) || "";
}

// embeddedValue returns what a control inside the content of another element adds to its name, null if it is no field.
function embeddedValue(el, own, seen) {
	if (!["textbox", "searchbox", "combobox", "spinbutton", "slider", "listbox"].includes(own)) return null;
	if (isSelect(el)) return value(el);
	if (own === "combobox" || own === "listbox") {
		const chosen = queryAll(el, "[aria-selected=true]");
		if (chosen.length) return chosen.map((x) => nameOf(x, new Set(seen), {inside: true})).join(" ");
	}
	const text = value(el);
	return text || !clean(ariaOf(el, "label")) ? text : null;
}

function nativeName(el, seen, how) {
	const byLabel = () => labelText(el, how), first = (selector) => query(el, selector);
	switch (tag(el)) {
	case "input":
		switch (el.type) {
		case "submit": case "reset": case "button":
			return byLabel() || clean(el.value) && el.value || attribute(el, "title") ||
				{submit: "Submit", reset: "Reset"}[el.type] || "";
		case "image": return byLabel() || el.alt || el.value || attribute(el, "title") || "Submit";
		case "file": return byLabel() || (el.multiple ? "Choose Files" : "Choose File");
		}
		return byLabel();
	case "select": case "textarea": case "button": case "meter": case "progress": case "output": return byLabel();
	case "img": case "area": return attribute(el, "alt");
	case "svg": case "a": {
		if (namespace(el) === "http://www.w3.org/1999/xhtml") return "";
		const title = childNodes(el).find((node) => isElement(node) && tag(node) === "title");
		return title ? textContent(title) : tag(el) === "svg" && how.inside ? contentName(el, seen, {...how, svg: true}) : "";
	}
	case "fieldset": case "table": case "figure": {
		const by = first({fieldset: ":scope>legend", table: ":scope>caption", figure: ":scope>figcaption"}[tag(el)]);
		return by ? nameOf(by, seen, {...how, inside: true}) : "";
	}
	case "option": case "optgroup": return el.label;
	case "iframe": return attribute(el, "title");
	}
	return "";
}

const labelable = set("button input meter output progress select textarea");

// isLabelled reports whether a label says that it is for an element that none can have, so that a click on it does nothing.
const isLabelled = (el, text) => has(el, "id") && !labelable.has(tag(el)) && queryRoot(rootNode(el),
	`label[for="${CSS.escape(attribute(el, "id"))}"]`).some((label) => !label.control && equal(textIn(label), text));
const queryRoot = (root, css) => [...root instanceof ShadowRoot ? root.querySelectorAll(css) : queryDocument(css)];

// labelsOf returns the labels of a control. The property labels searches the document each time.
function labelsOf(el) {
	const root = rootNode(el);
	if (!labelable.has(tag(el)) || isElement(root)) return [];
	let all = labels.get(root);
	if (!all) {
		labels.set(root, all = new Map());
		for (const label of queryRoot(root, "label")) {
			const control = label.control;
			if (control) all.set(control, [...all.get(control) || [], label]);
		}
	}
	return all.get(el) || [];
}

const labelText = (el, how) => {
	if (how.reference && how.inside) return "";
	return clean(labelsOf(el).map((label) => nameOf(label, new Set([el]),
		{inside: true, label: el, hidden: !rendered(label)})).join(" "));
};

function name(el) {
	try {
		return clean(nameOf(el, new Set(), {}));
	} catch (error) {
		if (!(error instanceof RangeError)) throw error; // it is too deep for the stack
		return clean(clip(textContent(el), 1000));
	}
}

// value returns what a control holds, and tidy makes of the text that it shows. That of a password is never shown.
function value(el, tidy = clean) {
	const own = role(el);
	if (isSelect(el)) return [...el.selectedOptions].map((o) => o.label).join(", ");
	if (isInput(el)) {
		if (el.type === "file") return [...el.files].map((file) => file.name).join(", ");
		if (isBox(el) || own === "button" || el.type === "hidden") return "";
		return el.type === "password" ? "•".repeat(el.value.length) : el.value;
	}
	if (/slider|spinbutton|progressbar|meter/.test(own)) {
		return ariaOf(el, "valuetext") || ariaOf(el, "valuenow") ||
			(el.value === undefined ? "" : `${el.value}`);
	}
	const shows = own === "combobox" && !query(el, "input");
	return shows || own === "textbox" && editable(el) ? tidy(textIn(shows && query(el, "[aria-selected=true]") || el)) : "";
}

// shows returns what a control shows in place of its name, as a button does that is named by a label and shows what was
// chosen.
const shows = (el) => {
	if (!has(el, "aria-label") && !has(el, "aria-labelledby") || isField(el)) return "";
	const text = clean(textIn(el));
	return /[\p{L}\p{N}]{2}/u.test(text) && !says(name(el), text) ? text : "";
};

function states(el, own) {
	const out = [], aria = (word) => ariaOf(el, word);
	const when = (holds, word) => holds && out.push(word);
	when(disabled(el), "disabled");
	when(/checkbox|radio|switch/.test(own) && el.checked === true || aria("checked") === "true", "checked");
	when(el.indeterminate === true || aria("checked") === "mixed", "mixed");
	const open = aria("expanded") === "true" || parent(el)?.open === true;
	when(aria("expanded") || own === "DisclosureTriangle", open ? "open" : "closed");
	when(aria("selected") === "true" || el.selected === true, "selected");
	when(aria("pressed") === "true", "pressed");
	when(el.required === true || aria("required") === "true", "required");
	when(isReadOnly(el), "readonly");
	when(aria("invalid") === "true", "invalid");
	when(aria("current") && aria("current") !== "false", "current");
	when(focused() === el, "focused");
	return out.join(" ");
}

const disabled = (el) => matches(el, ":disabled") || closest(el, "[aria-disabled=true]") !== null;

// isReadOnly reports whether a field is read-only, which not every type of input can be. opensList reports whether a
// field shows what is chosen in a list.
const neverReadOnly = set("range color checkbox radio file hidden button submit reset image");
const isReadOnly = (el) => ariaOf(el, "readonly") === "true" ||
	el.readOnly === true && !neverReadOnly.has(el.type);
const opensList = (el) => role(el) === "combobox" || ariaOf(el, "haspopup") === "listbox";

const focused = () => {
	let at = activeIn();
	for (let root; at && (root = shadowRoot(at))?.activeElement;) at = root.activeElement;
	return at;
};

// ---- Closed shadow roots

const frameTags = set("frame iframe embed object");
// hostTags are the elements that may have a shadow root, besides custom ones. mayHold finds both and frames, without most
// of the others: the browser leaves these out much faster.
const mayHold = "*:not(a,b,button,br,code,dd,dl,dt,em,g,i,img,input,label,li,ol,option,path,script,strong,style,svg,table,tbody," +
	"td,th,tr,ul)";
const hostTags = set("body article aside blockquote div footer h1 h2 h3 h4 h5 h6 header main nav p section span");

// mayHost reports whether an element may have a closed shadow root that nobody has asked for: a custom element or, to be
// thorough, an element with nothing in it that has a size all the same.
function mayHost(el, thorough) {
	if (askedFor.has(el) || shadowRoot(el)) return false;
	if (tag(el).includes("-")) return rendered(el);
	if (!thorough) return false;
	const box = rectOf(el);
	return box.width >= 16 && box.height >= 16;
}

// hosts returns elements that may have a closed shadow root, at most 100, each once.
function hosts(thorough) {
	const found = [];
	for (const el of kinds().hosts) {
		if (!mayHost(el, thorough)) continue;
		askedFor.add(el);
		if (found.push(el) === 100) break;
	}
	return found;
}

const hasHosts = (thorough) => kinds().hosts.some((el) => mayHost(el, thorough));

// kinds returns which kinds of elements there are, hidden or not: {hosts, roots, frames}, the last in their order. hosts
// are those that could have a closed shadow root. It costs much less than to read which are shown.
function kinds() {
	const look = (all) => {
		for (const el of all) {
			const name = tag(el), isCustom = name.includes("-");
			if (frameTags.has(name)) kindsHere.frames.push(el);
			if (!isCustom && !hostTags.has(name)) continue;
			const inside = shadowRoot(el);
			if (!inside && (isCustom || !firstChild(el))) kindsHere.hosts.push(el);
			if (!inside) continue;
			kindsHere.roots = true;
			look(queryRoot(inside, mayHold));
		}
	};
	if (!kindsHere) {
		kindsHere = {hosts: [], roots: false, frames: []};
		look(queryDocument(mayHold));
	}
	return kindsHere;
}

// ---- The tree that a person could see

// rendered reports whether an element has a place in the page, whatever its visibility is.
const rendered = (el) => {
	if (unrendered.has(tag(el))) return false;
	if (["option", "optgroup", "area"].includes(tag(el)) || style(el).display === "contents") return true;
	return checkVisibility(el, {contentVisibilityAuto: false});
};

const excluded = (el) => {
	let out = exclusions.get(el);
	if (out === undefined) exclusions.set(el, out = isExcluded(el));
	return out;
};

// isMuted reports whether an element says that it and what is in it are for nobody.
const isMuted = (el) => unrendered.has(tag(el)) || ariaOf(el, "hidden") === "true" || isHTML(el) && isInert(el);

const isExcluded = (el) => {
	if (isMuted(el)) return true;
	const s = style(el);
	return s.display === "none" && tag(el) !== "area" || s.contentVisibility === "hidden";
};

const visible = (el) => style(el).visibility === "visible";
const withoutChildren = set("textbox searchbox slider spinbutton progressbar meter scrollbar Canvas Video " +
	"Audio Iframe");

const isLeaf = (el) => withoutChildren.has(role(el)) || isSelect(el);
const isClosed = (el) => tag(el) === "details" && !el.open;
const summaryOf = (el) => query(el, ":scope>summary");

// shownChildren returns the nodes in an element that the tree has.
const shownChildren = (el) => {
	if (isLeaf(el)) return [];
	return isClosed(el) ? [summaryOf(el)].filter(Boolean) : children(el);
};

// elements returns all elements of the tree below a node, in its order, and takes half of the time, since its callers look
// at them. It does not recurse, so that it may go deeper than what does; Chrome reads some properties by way of all that
// is around an element.
function elements(from) {
	const out = [], left = [from], depths = [0], until = (clock() + deadline) / 2;
	while (left.length && !beyond(0, until)) {
		const el = left.pop(), depth = depths.pop();
		if (excluded(el)) continue;
		out.push(el);
		const inner = beyond(depth / 3) ? [] : shownChildren(el);
		for (let i = inner.length - 1; i >= 0; i--) {
			if (!isElement(inner[i])) continue;
			left.push(inner[i]);
			depths.push(depth + 1);
		}
	}
	return out;
}
const allElements = () => elements(rootElement());

// isListed reports whether allElements has an element.
function isListed(el) {
	const below = [];
	let at = el, is = true; // of what is above all elements
	for (; at && !listed.has(at); at = parent(at)) below.push(at);
	if (at) is = listed.get(at);
	for (const inner of below.reverse()) {
		is &&= !(at && (isLeaf(at) || isClosed(at) && inner !== summaryOf(at))) && !excluded(inner);
		listed.set(inner, is);
		at = inner;
	}
	return is;
}

// selected returns the elements of the tree that a selector matches, in its order. Without shadow roots the browser finds
// them, much faster.
const selected = (css) => kinds().roots ? allElements().filter((el) => matches(el, css)) :
	queryDocument(css).filter((el) => !beyond(0) && isListed(el));

// clickable reports whether an element without a role of its own looks as if it could be clicked.
const clickable = (el) => {
	if (has(el, "onclick")) return true;
	const up = parent(el);
	return style(el).cursor === "pointer" && !(up && style(up).cursor === "pointer");
};

// ---- References
//
// A reference is three letters that stand for the document, and a number: kqz12. The keeper numbers the documents so that
// no reference of one can mean an element of another, and no page can foresee its letters.

const refs = new Map(), refOf = new WeakMap();
let documentLetters = "";

const letters = (number) => [676, 26, 1].map((unit) => String.fromCharCode(97 + Math.floor(number / unit) % 26)).join("");

// refer returns the reference of an element, and keeps what its caller shows of it: role and name.
const refer = (el, own = role(el), named = shownName(el, own)) => {
	let ref = refOf.get(el);
	if (!ref) refOf.set(el, ref = `${documentLetters}${refs.size + 1}`);
	refs.set(ref, {el: new WeakRef(el), role: own, name: named, around: ancestors(el)});
	return ref;
};

// shownName returns the name of an element, or the text that stands for it where an element has no name but that. A
// label has the name of its box if the tree does not have that, and a frame that of its window.
const namedByText = set("generic none listitem paragraph article");
const shownName = (el, own = role(el)) => name(boxLabelledBy(el) || el) ||
	(own === "Iframe" ? attribute(el, "name") : namedByText.has(own) && clip(clean(textIn(el)), 80)) || "";

// ancestors describes where an element is, by the roles around it and the names of those that have one.
function ancestors(el) {
	const out = [];
	for (let at = parent(el); at && out.length < 5; at = parent(at)) {
		const own = role(at);
		if (own === "generic" || own === "none") continue;
		const item = own === "listitem" || own === "row";
		const named = item ? clean(clip(textContent(at), 300)).slice(0, 80) : ariaOf(at, "label");
		out.push(own + (named ? ":" + named : ""));
	}
	return out.join(" ");
}

const describe = (el) => {
	const own = role(el), named = shownName(el, own);
	return {ref: refer(el, own, named), role: own, name: clip(named || clean(textIn(el)), 60)};
};

// ---- Locators

// locate returns the elements that a locator means: {elements}, or {failure}. A locator has one of ref, css (with has, a
// text in it), xpath, role (with name), label, text, placeholder, test_id, and word, which tries a selector, name, label,
// placeholder and text in this order.
function locate(locator) {
	readAgain();
	partial = false;
	if (locator.ref) return byRef(locator.ref);
	try {
		if (locator.css !== undefined) matches(rootElement(), locator.css);
		if (locator.xpath !== undefined) xpathSearch(locator.xpath);
	} catch {
		return failed("invalid");
	}
	let found = matching(locator);
	if (!found.length && locator.name !== undefined) found = wordSearch(`${locator.role} "${locator.name}"`); // a quotation
	if (locator.has !== undefined) {
		found = innermost(found.filter((el) => visible(el) && says(textContent(el), locator.has)))
			.filter((el) => flat(textIn(el)).includes(flat(locator.has)));
	}
	if (locator.in) {
		const outer = outerOf(locator.in), all = found;
		found = Object.keys(locator).length > 1 ? inside(all, outer) : innermost([...new Set(outer.map((el) => holder(el, locator.in)))]);
		if (!found.length) return failed("no_match", {near: all.slice(0, 2).map(describe),
			why: outer.length ? `${nothing({...locator, in: undefined})} in ${written(locator.in)}` :
				`${nothing(locator.in)}, given as the parameter in`});
	}
	return found.length ? {elements: found} : failed("no_match", {near: nearest(locator),
		...contentType() === "application/pdf" ? {why: noElements} : inBranches(locator),
		...partial && {why: "there was no time for all of the page"}, ...hasHosts(true) && {hosts: true}});
}

// inBranches says which closed branches of trees may have what is not found: those with its text or, if nothing else is
// near, all.
function inBranches(locator) {
	const shut = fitting((el) => role(el) === "treeitem" && ariaOf(el, "expanded") === "false");
	const having = shut.filter((el) => says(textContent(el), locator.word ?? locator.name ?? "\0"));
	if (!having.length && (!shut.length || nearest(locator).length)) {
		return !locator.in && sparse().length && {why: `${nothing(locator)}, but a list has only what is in view: page.scroll with this element scrolls until it comes`, lasts: true};
	}
	return {near: (having.length ? having : shut).slice(0, 3)
		.map(describe), why: `${nothing(locator)}, which may be in a closed branch`};
}

const rolls = (el, times) => el.scrollHeight > times * el.clientHeight && (el === scroller() || /auto|scroll/.test(style(el).overflowY));
const rolling = (times) => [...new Set([scroller(), ...allElements()])].filter((el) => rolls(el, times));

// sparse returns what scrolls and has texts in a part of its height only: its items are in the document while they are in view.
// A document of which a part is not there is not large.
function sparse() {
	if (allElements().length > 5000) return [];
	return rolling(2).filter((el) => {
		const all = elements(el).filter((x) => !query(x, "*") && clean(textContent(x))).map(boxOf);
		const height = Math.max(...all.map((box) => box.bottom)) - Math.min(...all.map((box) => box.top));
		return all.length > 4 && height < el.scrollHeight - el.clientHeight;
	});
}

const rollEnd = () => Math.min(deadline, clock() + 10_000);

// roll scrolls an element from a place on until something is seen, which it reports. At its end it waits a moment, since
// it may get longer there. In vain, it is where it was.
async function roll(el, look, at = 0, until = rollEnd()) {
	const before = el.scrollTop, isEnd = () => at >= el.scrollHeight - el.clientHeight;
	for (let last = false; !last && clock() < until; at += el.clientHeight * .8) {
		el.scrollTop = at;
		await frame();
		await pause(0); // what the page does after its event
		for (let turn = 0; turn < 20 && isEnd(); turn++) await pause(30);
		last = isEnd();
		readAgain();
		if (look()) return true;
	}
	el.scrollTop = before;
	return false;
}

// rollTo scrolls, first what is sparse and then the rest to its end, until there is what a locator means, and all of a
// name. It returns "", or why there is not.
async function rollTo(locator) {
	const parts = wordsOf(locator.word ?? locator.name ?? locator.text), lists = sparse(), until = rollEnd();
	for (const el of new Set([...lists, ...rolling(1)])) {
		const at = lists.includes(el) ? 0 : el.scrollHeight - el.clientHeight;
		const look = () => {
			const html = innerHTML(el).toLowerCase(); // to read it costs less than to search
			return parts.every((part) => html.includes(part)) && matching(locator).length > 0 && rank !== 6;
		};
		if (await roll(el, look, at, until)) return "";
	}
	return nothing(locator) + (clock() < until ? ", to the end of what scrolls" : " yet: page.scroll goes on");
}

// written returns the words of a locator.
const written = (locator) => quoted(clip(Object.values(locator).filter((part) => typeof part === "string").join(" "), 60));

const nothing = (locator) => `nothing matches ${written(locator)}`;

// holder returns what the parameter in means without an element: of a text that is all of an element, as of a cell or a
// heading, the row or the card.
const holder = (el, {word, text}) => parent(el) && equal(textIn(el), word ?? text) ? holder(parent(el), {word, text}) : el;

// outerOf returns what a locator of the parameter in means: a dialog or region by its name, a heading, a text.
function outerOf(locator) {
	if (locator.ref) return byRef(locator.ref).elements || [];
	const {word} = locator, named = word === undefined ? [] : fitting((el) =>
		!isControl(el) && (equal(name(el), word) || role(el) === word));
	const outer = named.length ? named : matching(locator);
	return outer.length || !word ? outer :
		innermost(fitting((el) => says(textContent(el), word)));
}

// inside returns those of some elements that are in others, or else closest around one: in the row of a cell, in the card
// of a heading.
function inside(all, outer) {
	const sets = [];
	for (const el of outer) {
		for (const at of outward(el)) {
			const here = all.filter((inner) => inner !== at && within(at, inner));
			if (here.length) sets.push(here);
			if (here.length) break;
		}
	}
	const nearby = sets.filter((here) => !sets.some((less) => less.length < here.length && less.every((el) => here.includes(el))));
	return all.filter((el) => nearby.some((here) => here.includes(el)));
}

// apart returns the outermost element around one that has none of the others.
function apart(el, others) {
	const taken = new Set();
	for (const other of others) for (let at = other !== el && other; at && !taken.has(at); at = parent(at)) taken.add(at);
	let at = el;
	for (let up = parent(at); up && !taken.has(up); up = parent(at)) at = up;
	return at;
}

// branch says what around an element tells it from others: the row, card or dialog that has none of them.
function branch(el, others) {
	const at = apart(el, others);
	if (at === el) return "";
	const titles = elements(at).filter((other) => matches(other, "h1,h2,h3,h4,h5,h6,th,td,legend,dt,strong") &&
		!within(other, el)).map((other) => clean(textIn(other))).filter(Boolean);
	const titled = ariaOf(at, "label") || attribute(at, "label") || titles.find((title) => !others.some((other) => other !== el &&
		says(textIn(apart(other, others)), title))) || titles[0] || clean(textIn(at).replace(textIn(el), ""));
	return titled && `${/generic|none/.test(role(at)) ? "" : role(at) + " "}${quoted(clip(clean(titled), 40))}`;
}

const noElements = "a PDF has no elements; page.text reads it";

function byRef(ref) {
	const kept = refs.get(ref);
	if (!kept) { // a word may look like a reference
		const named = wordSearch(ref);
		return named.length ? {elements: named} :
			failed("stale", {foreign: true, why: `${ref} belongs to a document that is gone`});
	}
	const el = kept.el.deref();
	if (el && isConnected(el)) return {elements: [el]};
	const same = allElements().filter((x) => role(x) === kept.role && shownName(x) === kept.name);
	const placed = same.filter((x) => ancestors(x) === kept.around);
	if (placed.length === 1) {
		refs.set(ref, {...kept, el: new WeakRef(placed[0])});
		refOf.set(placed[0], ref);
		return {elements: placed,
			resolved: `${ref} was rendered again: it is now another element with the same role, name and place`};
	}
	return failed("stale", {why: `${ref} (${kept.role} ${quoted(clip(kept.name, 40))}) is no longer in the document`, near: same.slice(0, 2).map(describe)});
}

// changed returns what was shown of a reference's element, if its role and name are others now.
const changed = (ref) => {
	const kept = refs.get(ref), el = kept?.el.deref();
	return el && isConnected(el) && (role(el) !== kept.role || shownName(el) !== kept.name) ? kept : null;
};

// checkShown returns the failure of an action on a reference whose element is not what its caller was shown.
function checkShown({ref}) {
	const kept = ref && changed(ref);
	if (!kept) return null;
	const {role: own, name: named} = describe(kept.el.deref());
	return failed("stale", {why: `${ref} was shown as ${kept.role} ${quoted(clip(kept.name, 60))} and ` +
		`is now ${own} ${quoted(named)}, so nothing was done`});
}

const equal = (a, b) => lower(a) === lower(b);

function search(locator) {
	if (locator.css !== undefined) {
		const found = selected(locator.css);
		if (found.length) return found; // otherwise a part of a control, or a box that is hidden, whose label is shown
		return queryDocument(locator.css).filter((el) => shown(el) || isBox(el) && labelsOf(el).some(shown));
	}
	if (locator.text !== undefined) return textSearch(locator.text);
	if (locator.xpath !== undefined) return xpathSearch(locator.xpath);
	const fits = {
		role: (el) => isShownAs(el, locator.role) && (locator.name === undefined || equal(shownName(el), locator.name)),
		label: (el) => isField(el) && equal(name(el), locator.label) || isLabelled(el, locator.label),
		placeholder: (el) => equal(attribute(el, "placeholder"), locator.placeholder) && has(el, "placeholder"),
		test_id: (el) => attribute(el, "data-testid") === locator.test_id,
	};
	const by = Object.keys(fits).find((key) => locator[key] !== undefined);
	const found = by ? fitting(fits[by]) : [];
	if (found.length || by !== "role" || locator.name === undefined || locator.exact) return found;
	return fitting((el) => isShownAs(el, locator.role) && says(shownName(el), locator.name));
}

// isShownAs reports whether a snapshot shows an element with a role, as it does the label of a box that it does not have.
const isShownAs = (el, wanted) => wanted === "clickable" ? clickable(el) :
	roleName(role(boxLabelledBy(el) || el)) === roleName(wanted);

// textSearch returns the innermost elements that show exactly a text, or that show it among others.
const textSearch = (text, fits = equal) => {
	const most = 10_000 + 10 * text.length; // with white space; to compare much longer ones takes long
	const same = (all) => all.length < most && fits(all, text);
	const found = innermost(fitting((el) => same(textContent(el)) && rendered(el))).filter(isRead);
	return found.length ? found : fitting((el) => same(ownText(el)) && rendered(el)); // beside other elements in it
};

// isRead reports whether anything of the text of an element is shown: all of it may be that of a hidden one in it.
const isRead = (el) => clean(textIn(el)) !== "";
const ownText = (el) => childNodes(el).map((node) => isText(node) ? node.data : "").join(" ");

const xpathSearch = (path) => {
	const found = evaluateXPath(path, document, null, 7, null);
	return Array.from({length: found.snapshotLength}, (_, i) => found.snapshotItem(i)).filter(isElement);
};

// innermost returns those of some elements that have none of the others in them.
const innermost = (all) => {
	const outer = new Set();
	for (const el of all) for (let at = parentNode(el); at && !outer.has(at); at = parentNode(at)) outer.add(at);
	return all.filter((el) => !outer.has(el));
};

// rank says how well what the last search by a word has found fits it: the less, the better.
let rank = 0;

const matching = (locator) => locator.word === undefined ? search(locator) : wordSearch(locator.word);

function wordSearch(word) {
	rank = 0;
	if (/[#.[>:]/.test(word)) {
		try {
			const found = search({css: word});
			if (found.length) return found;
		} catch { /* it is no selector */ }
	}
	const all = allElements();
	for (const fits of [
		(el) => isControl(el) && equal(name(el), word),
		(el) => has(el, "placeholder") && equal(attribute(el, "placeholder"), word),
		(el) => tag(el) === "label" && isBox(controlOf(el)) && equal(textContent(el), word) && rendered(el) && isRead(el),
		(el) => isLabelled(el, word) || isBox(el) && equal(nextSibling(el)?.data, word),
	]) {
		const found = fitting(fits, all);
		rank++;
		if (found.length) return found;
	}
	const part = fitting((el) => isControl(el) && saysWords(name(el), word), all), texts = textSearch(word);
	const pressed = part.length ? texts.filter((el) => isPressed(el, part)) : texts;
	const framed = pressed[0] ? [] : kinds().frames.filter((el) => visible(el) && equal(shownName(el), word));
	rank = framed[0] ? 5 : part[0] ? 6 : pressed[0] ? 7 : 8;
	const best = framed[0] ? framed : pressed[0] ? pressed : part;
	if (best[0]) return best;
	const isNamed = (el) => clickable(el) || !namedByText.has(role(el));
	const asShown = fitting((el) => isNamed(el) && equal(shownName(el), word), all); // by a snapshot
	if (asShown[0] || word.length < 3) return asShown;
	rank = 6;
	return fitting((el) => isControl(el) && says(name(el), word), all);
}

// saysWords reports whether a text has a part that begins with one of its words, and ends with one if it is short.
const saysWords = (text, part) => says(text, part) &&
	` ${wordsOf(text).join(" ")} `.includes(` ${wordsOf(part).join(" ")}${part.length < 3 ? " " : ""}`);

// withoutOne returns a word, and what is left of it without one of its letters; nothing for a very long word. Words
// that differ in a letter, or in the order of two, have one of these in common.
const withoutOne = (word) => word[40] ? [] :
	[word, ...[...word].map((_, i) => word.slice(0, i) + word.slice(i + 1))];

// ranked returns the things that have words in common with a text, or words like its words, the best ones first.
const wordsOf = (text) => lower(text).split(/[^\p{L}\p{N}]+/u).filter(Boolean);
function ranked(all, textOf, wanted) {
	const asked = wordsOf(wanted), parts = new Set(asked.flatMap(withoutOne));
	const begins = (a, b) => b[2] && a.startsWith(b);
	const score = (word) => asked.includes(word) ? 9 : word[3] && withoutOne(word).some((part) => parts.has(part)) ||
		asked.some((other) => begins(word, other) || begins(other, word)) ? 1 : 0;
	return all.map((one) => [one, wordsOf(textOf(one)).reduce((sum, word) => sum + score(word), 0)])
		.filter(([, sum]) => sum).sort((a, b) => b[1] - a[1]).map(([one]) => one);
}

// isPressed reports whether an element can be clicked, and not for what is around it: an entry of a menu, whose whole
// name a button has in its own if it owns the menu.
const isPressed = (el, others) => style(el).cursor === "pointer" && !closest(el, "label") &&
	!others.some((other) => contains(other, el));

// nearest returns the two interactive elements whose names are most like what was not found.
const nearest = (locator) => ranked(fitting(isControl), name,
	Object.values({...locator, in: ""}).join(" ")).slice(0, 2).map(describe);

// one returns the only element that a locator means: {el}, or {failure} with the first candidates.
function one(locator) {
	const found = locate(locator);
	if (found.failure) return found;
	// Lists that are there twice have one without a size, for assistive technology.
	const first = found.elements[0];
	if (locator.word !== undefined && ["option", "menuitem"].includes(role(first)) && !found.elements.some(hasSize)) {
		const other = textSearch(locator.word).filter(hasSize);
		if (other.length === 1) return {el: other[0]};
	}
	const words = (locator.css ?? locator.xpath) === undefined && found.elements.length < 10;
	let all = words ? withoutWrappers(found.elements) : found.elements;
	if (all.length > 1 && locator.word !== undefined && !all.some(isControl)) {
		const pressed = all.filter((el) => isPressed(el, [])); // of texts, such as a label and what stands in a list
		if (pressed.length === 1) all = pressed;
	}
	if (all.length > 1) {
		const open = all.filter((el) => !isFolded(el));
		if (open.length) all = open;
	}
	return all.length > 1 ? several(all) : {el: all[0], resolved: found.resolved};
}

// several returns the failure of what means several elements, and what distinguishes the first ones.
const several = (all, most = 3) => failed("many", {total: all.length, near: all.slice(0, most)
	.map((el) => ({...describe(el), in: branch(el, all)}))});

// withoutWrappers leaves out controls that have nothing in them but another one of them, as a button around a button.
const withoutWrappers = (all) => all.filter((el) => !all.some((inner) => inner !== el && contains(el, inner) &&
	equal(textContent(el), textContent(inner))));

// ---- The snapshot

const unnamed = set("row listitem list table main paragraph");
const items = set("listitem cell gridcell columnheader");

const inView = (el) => {
	const r = rectOf(el);
	return r.bottom > 0 && r.right > 0 && r.top < innerHeight && r.left < innerWidth;
};

// The options of lists are shown if they were asked for, and counted otherwise.
let withOptions = false, optionsLeft = 0;

const nodeOf = (role, name, more) => ({role, name, value: "", state: "", kids: [], ...more});

// tree returns the nodes of the snapshot of an element: {role, name, value, state, el, kids}. Boxes without a meaning
// are left out; those that hold several things stay, without a role, to keep them together. The names of controls cost
// most, and few are shown of a long list, so nameIn reads them when they are needed.
function tree(el, depth = 0) {
	if (beyond(depth) || excluded(el)) return [];
	const own = role(el), shown = visible(el);
	const node = (kids, more) => nodeOf(own, "", {kids, ...more});
	const control = (kids) => node(kids, {name: undefined, value: value(el) || shows(el), state: states(el, own), el});
	const list = shown && (isSelect(el) ? el : tag(el) === "input" && el.list);
	if (list) {
		if (withOptions) return [control(optionNodes(list))];
		optionsLeft += list.options.length;
		return [control([])];
	}
	if (shown && leaves.has(own)) {
		if (!["heading", "treeitem", "combobox"].includes(own)) return [control([])];
		const kids = controlsIn(treeOf(el, depth)), itself = control(kids);
		if (own !== "heading") return [itself];
		if (kids.length === 1 && (isAll(el, kids[0].el) || nameIn(kids[0]) === nameIn(itself))) {
			return [{...kids[0], state: `heading ${kids[0].state}`.trim()}];
		}
		return [{...itself, name: nameIn(itself), value: "", el: undefined}];
	}
	if (own === "Iframe") return [node([], {name: shownName(el, own), el})];
	if (own === "image") {
		const kids = tag(el) === "svg" ? controlsIn(treeOf(el, depth)) : [];
		return name(el) ? [node(kids, {name: name(el)})] : kids;
	}
	const labelled = controlOf(el), isSaid = labelled !== el && inTree(labelled), box = boxLabelledBy(el); // its name has the text
	if (shown && box) return [node([], {role: role(box), name: name(box), state: states(box, role(box)), el})];
	const kids = treeOf(el, depth).filter((kid) =>
		!isSaid || kid.role !== "text" && !(kid.role === "clickable" && kid.name === name(labelled)));
	if (shown && interactive.has(own)) return [control(kids)];
	const plain = own === "generic" || items.has(own) && kids.length < 2 && kids.every((kid) => kid.role === "text");
	if (shown && plain && clickable(el) && !controls(kids)) {
		const named = shownName(el, own), input = !named && parent(el) && query(parent(el), "input");
		if (input && isBox(input) && within(drawing(input), el)) return []; // it is what the box looks like
		return [node([], {role: "clickable", name: named, el})];
	}
	if (containers.has(own)) {
		if (!kids.length && !/Canvas|progressbar|meter/.test(own)) return [];
		if (kids.length === 1 && ["listitem", "group", "figure", "article"].includes(own)) return kids;
		return [node(kids, {name: unnamed.has(own) ? clean(ariaOf(el, "label")) : name(el),
			value: /progressbar|meter/.test(own) ? value(el) : "", el: own === "Canvas" ? el : undefined, box: el})];
	}
	const inline = style(el).display === "inline" || style(el).display === "contents";
	return kids.length > 1 && !inline ? [node(kids, {role: "", box: el})] : kids;
}

// optionNodes returns the nodes of the options of a list, those of a group in it.
function optionNodes(list) {
	const top = [], groups = new Map();
	for (const o of list.options) {
		const group = closest(o, "optgroup");
		if (group && !groups.has(group)) {
			groups.set(group, nodeOf("group", group.label, {state: group.disabled ? "disabled" : ""}));
			top.push(groups.get(group));
		}
		(groups.get(group)?.kids || top).push(nodeOf("option", o.label,
			{state: states(o, "option"), value: isSelect(list) || o.value === o.label ? "" : o.value}));
	}
	return top;
}

// controlsIn returns the controls among nodes and in boxes without a meaning.
const controlsIn = (nodes) => nodes.flatMap((node) => interactive.has(node.role) ? [node] :
	node.role ? [] : controlsIn(node.kids));

// nameIn returns the name of a node.
const nameIn = (node) => node.name === undefined ? node.name = name(node.el) : node.name;

// isAll reports whether an element has nothing in it but another one, so that it has the same name.
const isAll = (el, inner) => !has(el, "aria-label") && !has(el, "aria-labelledby") &&
	children(el).every((node) => isText(node) ? !clean(node.data) : !isElement(node) || node === inner);

function treeOf(el, depth) {
	const out = [];
	for (const child of shownChildren(el)) {
		if (isText(child)) {
			const text = clean(child.data);
			if (!text || !visible(parent(child) || el)) continue;
			join(out, nodeOf("text", text, {box: el}));
		} else if (isElement(child)) {
			for (const node of tree(child, depth + 1)) join(out, node);
		}
	}
	return out;
}

// join appends a node, a text to the text before it.
const join = (out, node) => {
	const last = out.at(-1);
	if (node.role === "text" && last?.role === "text") {
		out[out.length - 1] = {...last, name: `${last.name} ${node.name}`};
	} else out.push(node);
};

// shape describes a node without its names; nodes of one shape are a group.
function shape(node) {
	if (node.shape === undefined) {
		const kids = node.kids.filter((kid) => kid.role !== "text").map(shape);
		const parts = kids.filter((kid, i) => kid !== kids[i - 1]).join(" ");
		node.shape = clip(`${roleName(node.role)}${parts ? `(${parts})` : ""}`, 200);
	}
	return node.shape;
}

const roleName = (own) => own === "DisclosureTriangle" ? "summary" : own;
const label = (node) => nameIn(node) || node.kids.map(label).find(Boolean) || "";
const withState = (kids) => kids.flatMap((kid) => [...kid.state ? [kid] : [], ...withState(kid.kids)]);
const stateIn = (node) => [node.state, ...node.kids.map(stateIn)].join("|").replace("focused", "");

// controls returns how many nodes have a reference.
const controls = (nodes) => nodes.reduce((sum, node) => sum + (node.el ? 1 : 0) + controls(node.kids), 0);

const minGroup = 4;
let groups = [];

// levels say what is given up, one after the other, until the snapshot fits: prose outside the view, prose, repeated
// groups, and what is nested outside the view.
const levels = [
	{text: 400, name: 120},
	{text: 200, name: 100, proseInView: true},
	{text: 100, name: 80, noProse: true},
	{text: 100, name: 60, noProse: true, fold: true},
	{text: 100, name: 40, noProse: true, fold: true, closed: true},
];

// render returns the lines of nodes: {lines, left}, and how many of each kind were left out.
function render(nodes, level, only) {
	const lines = [], left = {prose: 0, grouped: 0, closed: 0};
	groups = [];
	const line = (node, refers) => {
		if (node.role === "text") return quoted(clip(node.name, level.text));
		const states = node.state ? [node.state] : [];
		if (node.value) states.push("value=" + quoted(clip(node.value, 40)));
		if (node.isClosed) states.push("…");
		let out = roleName(node.role);
		if (nameIn(node)) out += " " + quoted(clip(nameIn(node), level.name));
		if (node.el) out += " " + (refers ? refer(node.el, ...asShown(node)) : `${documentLetters}0000`);
		return states.length ? `${out} [${states.join(" ")}]` : out;
	};
	const asShown = (node) => role(node.el) === node.role ? [node.role, nameIn(node) || undefined] : [];
	const put = (depth, make) => lines.push((refers) => "  ".repeat(depth) + make(refers));
	const prose = (node) => node.role === "text" ?
		level.noProse || only || level.proseInView && !(node.box && inView(node.box)) :
		!node.el && node.kids.length > 0 && node.kids.every(prose) && !nameIn(node);
	const texts = (node) => node.role === "text" ? 1 : node.kids.reduce((sum, kid) => sum + texts(kid), 0);
	const show = (all, depth) => {
		const kept = all.filter((node) => !prose(node) || !(left.prose += texts(node)));
		for (let i = 0, end = 0; i < kept.length; i++) {
			if (i >= end) { // a run of one role begins
				for (end = i + 1; end < kept.length && kept[end].role === kept[i].role && kept[i].role !== "text";) end++;
				if (level.fold && end - i >= minGroup && group(kept.slice(i, end), depth)) {
					i = end - 1;
					continue;
				}
			}
			single(kept[i], depth);
		}
	};
	const single = (node, depth) => {
		const opaque = only && !interactive.has(node.role) || node.role === "";
		if (node.kids.length && opaque) return show(node.kids, depth);
		if (node.kids.length && level.closed && depth > 1 && node.box && !inView(node.box)) {
			left.closed++;
			return put(depth, (refers) => line({...node, el: node.el || node.box, isClosed: true}, refers));
		}
		put(depth, (refers) => line(node, refers));
		show(node.kids, depth + 1);
	};
	// group shows a run of like nodes as one line, and those that differ from most of them.
	const group = (run, depth) => {
		const counts = new Map(), key = (node) => shape(node) + stateIn(node);
		for (const node of run) counts.set(key(node), (counts.get(key(node)) || 0) + 1);
		const [usual, times] = [...counts].sort((a, b) => b[1] - a[1])[0];
		const odd = run.map((node, i) => [node, i]).filter(([node]) => key(node) !== usual);
		if (times < minGroup || odd.length > run.length / 4) return false;
		groups.push(run);
		const handle = `g${groups.length}`, typical = run.find((node) => key(node) === usual);
		left.grouped += times;
		const first = clip(label(run[0]), 40), last = clip(label(run.at(-1)), 40);
		put(depth, () => `${run.length} x ${clip(shape(typical), 100)} ${quoted(first)} … ${quoted(last)} ${handle}`);
		for (const [node, i] of odd.slice(0, 8)) {
			put(depth + 1, (refers) => `${handle}[${i}] ${line({...node, name: label(node)}, refers)}`);
			for (const part of withState(node.kids)) put(depth + 2, (refers) => line(part, refers));
		}
		return true;
	};
	show(nodes, 0);
	return {lines, left};
}

const encoder = new TextEncoder();
const bytes = (text) => /^[\0-\x7f]*$/.test(text) ? text.length : encoder.encode(text).length;
const bytesPerToken = 4; // less than it is, so that the promise holds

// last is the last snapshot of the whole document, and how it was asked for.
let last = {lines: []};

// unnamedControls returns a line for each control without a name.
const unnamedControls = (top) => elements(top)
	.filter((el) => visible(el) && isControl(el) && !name(el))
	.map((el) => `${roleName(role(el))} ${refer(el)} [css=${quoted(clip(path(el), 80))}]`);

// framesIn returns the frames that an element shows, as find does elements.
const framesIn = (top) => kinds().frames.filter((el) => role(el) === "Iframe" && within(top, el) && inTree(el)).map(describe);

const inTree = (el) => isListed(el) && rendered(el) && visible(el);

// placeOf returns the index of a window in the one around it, -1 if it has none, as in a shadow root.
const placeOf = (around, inner) => [...Array(around.length)].findIndex((_, i) => around[i] === inner);

// place returns what tells this document from those of other frames in the one around it: {index, url}. The document
// around it knows the same index, and the address that a frame was opened with.
// The size is that of the view.
const place = () => ({index: window.parent === window ? -1 : placeOf(window.parent, window), url: location.href,
	width: innerWidth, height: innerHeight, loading: readyState() === "loading"});

// frameAt returns the element of a frame by its place.
const frameAt = ({index, url}) => {
	const all = kinds().frames, like = all.filter((el) => placeOf(window, el.contentWindow) === index);
	return like.find((el) => el.src === url) || like[0] || all.find((el) => tag(el) === "embed" && el.src === url);
};

const blank = "about:blank"; // the address of the empty document that each frame begins with

// hasDocument reports whether a frame is to have a document of its own: nothing says that it has none.
const hasDocument = (el) => el.contentWindow && !/^(about:blank|javascript:.*)?$/.test(attribute(el, "src") || attribute(el, "data") ||
	has(el, "srcdoc") && "srcdoc" || "") && el.loading !== "lazy";

// frames returns the references of frames by their places, "" for one that is not shown, or whose document is to come.
const frames = (places) => ({refs: places.map((place) => {
	const el = frameAt(place);
	return el && inTree(el) && !(place.url === blank && hasDocument(el)) ? refer(el) : "";
})});

// snapshot returns the page as text, at most max_tokens long: {title, url, text, frames, left_out}. With since it is as the
// last one was asked for, however long, without title and address if they are the same, and with the lines of the last
// one. With audit only controls without a name are shown, with options those of lists. Unless it is final it returns
// only {hosts} if custom elements may have closed shadow roots that nobody has asked for.
function snapshot({max_tokens = 1500, roles = "", focus = "", group = "", from = 0, count = 20, since = false,
	audit = false, options = false, final = true} = {}) {
	if (!final && !group && hasHosts(true)) return {hosts: true};
	if (since) ({roles = "", options = false} = last);
	let top = rootElement(), nodes;
	if (group) {
		const run = groups[Number(group.slice(1)) - 1];
		if (!run) return failed("no_match", {why: `there is no group ${group} in the last snapshot; take one with page.snapshot`});
		nodes = run.slice(from, from + count);
	} else {
		if (focus) {
			const found = one({ref: focus});
			if (found.failure) return found;
			top = found.el;
		}
		withOptions = options;
		optionsLeft = 0;
		nodes = tree(top);
	}
	const isWhole = !group && !focus, keptGroups = groups, budget = Math.max(200, max_tokens * bytesPerToken - 240);
	const head = {title: clip(titleOf(), 100), url: clip(location.href, 200), type: contentType()};
	// part returns the first lines that fit into the budget.
	const part = (lines) => {
		let size = 0, end = 0;
		while (end < lines.length && (size += bytes(lines[end]) + 1) <= budget) end++;
		return {text: lines.slice(0, end).join("\n"), cut: lines.length - end};
	};
	if (audit) {
		const {text, cut} = part(unnamedControls(top));
		return {...head, text, frames: framesIn(top), left_out: {prose: 0, grouped: 0, closed: 0, cut}};
	}
	let best, used = 0, lines = [], level;
	const least = group ? 0 : controls(nodes) * `link ${documentLetters}1 `.length;
	for (level of since && last.level ? [last.level] : levels) {
		if (!level.fold && least > budget) continue; // it cannot fit, whatever the names are
		best = render(nodes, level, roles === "interactive");
		lines = best.lines.map((make) => make(false));
		used = lines.reduce((sum, text) => sum + bytes(text) + 1, 0);
		if (used <= budget || group) break;
	}
	let shown = lines.length;
	while (used > budget && !since) used -= bytes(lines[--shown]) + 1;
	if (group) groups = keptGroups;
	const result = {...head, partial, frames: group ? [] : framesIn(top),
		left_out: {...best.left, options: optionsLeft, cut: lines.length - shown}};
	lines = best.lines.map((make) => make(true));
	const before = last;
	if (isWhole) last = {...head, lines, level, roles, options};
	const isSame = before.url === head.url && before.title === head.title;
	return {...result, text: lines.slice(0, shown).join("\n"),
		...isWhole && since && {since: before.lines, ...isSame && {url: "", title: ""}}};
}

// ---- Text

const pictureTags = set("img svg canvas"), fieldTags = set("select textarea input"), codeTags = set("code kbd samp tt");
// mayHide are elements whose children the tree may not have, without a role that says so.
const mayHide = new Set([...frameTags, ...set("video audio progress meter details")]);
const withVisibility = {visibilityProperty: true};
const inlineMarks = new Map([["b", "**"], ["strong", "**"], ["i", "_"], ["em", "_"], ["del", "~~"], ["s", "~~"], ["q", '"']]);
// What stands between two parts of a text; a line that the page breaks ends with two spaces.
const gaps = new Map([[0, ""], [1, " "], [2, "\n"], [2.5, "  \n"], [3, "\n\n"]]);
const mathMarks = {mfrac: "/", msup: "^", msub: "_"};

// escaped returns text that is none of the marks of Markdown which would change the structure around it: tags, references
// of characters and, where a line starts, headings, lists, quotes, rules and fences.
const escaped = (words, starts) => {
	const inLine = words.replace(/<(?=\/?[a-z][^<>]*>|!--)|&(?=#?\w+;)/gi, "\\$&");
	return starts ? inLine.replace(/^(#{1,6}|[-+*])(?=\s|$)|^(>|```|~~~)|^([-=_*])(?=\3{2,}$)/, "\\$&").replace(/^(\d{1,9})([.)])(?=\s|$)/, "$1\\$2") : inLine;
};
const boilerplate = set("navigation banner contentinfo complementary search"), asideTags = "nav,header,footer,aside,search,[role]";

// weigh returns how many characters of text each element has: [all, in links to other pages, what is not aside]. Aside is
// what stands around the main content: by its role, or because it consists of links.
function weigh(withLinks) {
	const sums = new Map(), here = location.href.split("#")[0];
	const isAside = (el, [all, linked]) => matches(el, asideTags) && boilerplate.has(role(el)) || withLinks && linked > all * 0.6 &&
		/^(ul|ol|dl|table|div|p|section)$/.test(tag(el)) && queryAll(el, "a[href]").length > 2;
	for (const el of allElements().reverse()) { // what is in an element comes before it
		const own = sums.get(el) || [0, 0, 0], up = parent(el), around = sums.get(up) || [0, 0, 0];
		for (const node of shownChildren(el)) {
			const text = isText(node) ? clean(node.data) : "", size = text && visible(el) ? text.length : 0;
			own[0] += size;
			own[2] += size;
		}
		if (tag(el) === "a" && isHTML(el) && el.href && el.href.split("#")[0] !== here) own[1] = own[0];
		own.aside = isAside(el, own);
		sums.set(el, own);
		sums.set(up, [around[0] + own[0], around[1] + own[1], around[2] + (own.aside ? 0 : own[2])]);
	}
	return sums;
}

// mainPart returns what holds the main content of the document, what weigh says of it, and what is left out: {top, sums,
// left}.
function mainPart() {
	const longest = (css) => queryDocument(css).filter(inTree)
		.reduce((a, b) => !a || textContent(b).length > textContent(a).length ? b : a, null);
	const declared = longest("main,[role=main]"), root = rootElement();
	let sums = weigh(!declared);
	const weight = (el) => sums.get(el) || [0, 0, 0], said = (el) => weight(el)[2];
	if (said(root) < weight(root)[1]) sums = weigh(false); // links are what the page is about
	const article = longest("article"), least = article ? 0.5 : 0.75, heading = query(root, "h1");
	let top = declared || article;
	if (!top) { // what holds most of the paragraphs, with the heading
		const paragraphs = new Map();
		for (const el of queryDocument("p,pre,blockquote")) {
			let size = inTree(el) ? textContent(el).length : 0;
			for (let at = parent(el); at && size > 20; at = parent(at), size /= 2) paragraphs.set(at, (paragraphs.get(at) || 0) + size);
		}
		const [best] = [...paragraphs].sort((a, b) => b[1] - a[1]).map(([el]) => el);
		top = outward(best).find((at) => !heading || contains(at, heading)) || best || root;
	}
	if (!declared) { // content may be in several places: the main part has most of it, and the heading beside it
		while (parent(top) && said(top) < said(root) * least) top = parent(top);
		let beside = top;
		while (heading && beside && !contains(beside, heading)) beside = parent(beside);
		if (beside && said(beside) < said(top) * 1.1) top = beside;
	}
	const left = queryDocument(asideTags).filter((el) =>
		boilerplate.has(role(el)) && inTree(el)).map((el) => role(el));
	if (!declared && top !== article) left.push(...around(top));
	if ([...sums].some(([el, own]) => own.aside && !boilerplate.has(role(el)) && within(top, el))) left.push("lists of links");
	const [all] = weight(root), share = all && Math.round(100 - 100 * said(top) / all);
	if (left.length || share) left.push(`in all ${share || "less than 1"} % of the text (without main)`);
	return {top, sums, left: [...new Set(left)]};
}

// around names what stands around the main content where no role tells it.
function around(top) {
	const names = [];
	for (let at = top; parent(at); at = parent(at)) {
		for (const other of children(parent(at))) {
			if (other === at || !isElement(other) || !isListed(other) || !clean(textIn(other)) || names.length > 7) continue;
			const own = role(other), words = attribute(other, "id") || attribute(other, "class") || tag(other);
			if (!boilerplate.has(own)) names.push(own === "generic" ? quoted(clip(words, 30)) : own);
		}
	}
	return names;
}

// linked returns the text of a link in Markdown: with blocks in it, its heading or first line is the link.
const linked = (inner, href) => inner.replace(/^#/m.test(inner) ? /^(#+ )(.*?)( *)$/m : /^()(.*?)( *)$/m,
	(all, mark, words, end) => `${mark}[${words}](${href.trim().replace(/\s/g, "%20")})${end}`);

// ticks encloses code, which may have such marks itself.
const ticks = (code, least) => "`".repeat(Math.max(least, ...(code.match(/`+/g) || []).map((run) => run.length + 1)));

// language returns the language of code, which pages say in classes of what is in it or around it.
function language(el) {
	for (const at of [query(el, "code"), el, parent(el), parent(parent(el) || el)]) {
		const said = at && (attribute(at, "data-lang") ||
			/(?:highlight-(?:source-|lang-)?|\blang(?:uage)?-|brush: *)([\w+#]+)/.exec(attribute(at, "class"))?.[1]);
		if (said) return said;
	}
	return "";
}

// isLayout reports whether a table only places what is in it.
const isLayout = (table) => matches(table, "[role=none],[role=presentation]") ||
	query(table, "table,pre,h1,h2,h3,blockquote") !== null;

// text returns what the page says, as Markdown: {text, cut, frames}, cut being about how many characters are left out: what
// does not fit is not read. main leaves out what stands around the main content: {left}.
function text({max_tokens = 2000, focus = "", main = false, final = true} = {}) {
	if (!final && hasHosts(true)) return {hosts: true};
	const aside = main ? mainPart() : {left: []};
	let top = aside.top || rootElement();
	if (focus) {
		const found = one({ref: focus});
		if (found.failure) return found;
		top = found.el;
	}
	const budget = max_tokens * bytesPerToken, rows = new Map(), numbers = new Map();
	// A gap comes before what is written next, lead before out, which starts a line or is a part of one.
	let out = "", gap = 0, lead = 0, starts = true, spent = 0, full = false;
	const put = (words) => {
		if (out) out += gaps.get(gap);
		else lead = gap;
		out += words;
		gap = 0;
	};
	const widen = (least) => { gap = Math.max(gap, least); };
	const newLine = () => { gap = gap < 2 ? 2.5 : 3; };
	// enclose writes something on its own, which starts a line or does not, and then what finish makes of it.
	const enclose = (fill, finish, isLine = false) => {
		const before = [out, gap, lead, starts], size = out.length;
		spent += size;
		out = "";
		gap = lead = 0;
		starts = isLine;
		fill();
		const [inner, first, last] = [out, lead, gap];
		spent -= size;
		[out, gap, lead, starts] = before;
		widen(first);
		const words = inner && finish(inner);
		if (words) put(words);
		widen(last);
	};
	// isAlone reports whether a text is all of a block. A blank one, as a no-break space is, makes a distance.
	const isAlone = (el) => childNodes(el).length === 1 && !/^inline/.test(style(el).display);
	const putText = (text, el) => {
		const lines = /\S\s*\n\s*\S/.test(text) && /^pre/.test(style(el).whiteSpace) ? text.split("\n") : [text];
		for (const [i, part] of lines.entries()) {
			const words = collapse(part), inner = trimmed(words);
			if (i) newLine();
			if (words[0] === " ") widen(1);
			if (inner.trim() || inner && !isAlone(el)) put(escaped(inner, out ? gap >= 2 : starts));
			if (inner && words.at(-1) === " ") widen(1);
		}
	};
	const putRow = (el, depth, table) => {
		const before = rows.get(table), left = before || [], cells = []; // left are rows that the cells above take
		const fill = () => { for (; left[cells.length] > 0; cells.push("")) left[cells.length]--; };
		let isHead = true;
		for (const cell of children(el)) {
			if (!isElement(cell) || excluded(cell)) continue;
			let words = "";
			enclose(() => write(cell, depth + 1), (inner) => { words = inner.replace(/ *\n[ \n]*/g, " ").replaceAll("|", "\\|"); });
			fill();
			for (let i = 0; i < Math.min(cell.colSpan || 1, 99); i++) {
				left[cells.length] = cell.rowSpan - 1;
				cells.push(i ? "" : words);
			}
			isHead &&= tag(cell) === "th" || attribute(cell, "role") === "columnheader";
		}
		fill();
		if (!cells.some(Boolean)) return; // it makes a distance
		rows.set(table, left);
		const rule = `|${" --- |".repeat(cells.length)}`, row = `| ${cells.join(" | ")} |`;
		gap = before ? 2 : 3;
		put(before ? row : isHead ? `${row}\n${rule}` : `|${"  |".repeat(cells.length)}\n${rule}\n${row}`);
		gap = 2;
	};
	const write = (el, depth) => {
		full ||= spent + out.length > budget;
		if (full || beyond(depth)) return;
		const seen = checkVisibility(el, withVisibility); // much faster than to read its style
		if (seen ? isMuted(el) || style(el).contentVisibility === "hidden" :
			excluded(el) || !visible(el) && !children(el).length) return;
		const kind = tag(el), own = attribute(el, "role");
		const inside = () => {
			for (const node of !own && !mayHide.has(kind) || editable(el) ? children(el) : shownChildren(el)) {
				if (isElement(node)) write(node, depth + 1);
				else if (isText(node) && (seen || visible(el))) putText(node.data, el);
			}
		};
		if (kind === "br") return newLine();
		if (pictureTags.has(kind) || own === "img") {
			const named = name(el);
			if (named) return put(`[image: ${named}]`);
			if (kind === "img") return;
		}
		if (kind === "tr" || own === "row") {
			const table = closest(el, "table,[role=table],[role=grid],[role=treegrid]") || el;
			if (!isLayout(table)) return putRow(el, depth, table);
		}
		if (fieldTags.has(kind)) {
			const said = isBox(el) ? `[${el.checked ? "x" : " "}]` : value(el);
			if (!said) return;
			widen(1);
			put(said);
			return widen(1);
		}
		const formula = kind === "math" && query(el, "annotation[encoding*=tex]");
		if (formula) return put(`$${clean(textContent(formula))}$`);
		if (mathMarks[kind]) {
			const parts = [];
			for (const part of children(el)) {
				if (isElement(part)) enclose(() => write(part, depth + 1), (inner) => void parts.push(inner.length > 1 ? `(${inner})` : inner));
			}
			return put(parts.join(mathMarks[kind]));
		}
		if (kind === "pre") {
			const words = textIn(query(el, "button") && query(el, "code") || el).replace(/[ \n]+$/, "");
			if (!words) return;
			widen(3);
			put(`${ticks(words, 3)}${language(el)}\n${words}\n${ticks(words, 3)}`);
			return widen(3);
		}
		if (codeTags.has(kind)) {
			const words = trimmed(textIn(el)), mark = ticks(words, 1), edge = /^`|`$/.test(words) ? " " : "", link = query(el, "a[href]");
			const all = mark + edge + words + edge + mark;
			return words && put(link && trimmed(textIn(link)) === words ? linked(all, attribute(link, "href")) : all);
		}
		if (main && el !== top && aside.sums.get(el)?.aside) return;
		const s = style(el), level = /^h[1-6]$/.test(kind) ? kind[1] : own === "heading" && (ariaOf(el, "level") || 2);
		const block = level || /^(block(?! math)|flex|grid|table|list-item|flow-root)/.test(s.display) && s.float === "none" &&
			s.position !== "absolute";
		const mark = inlineMarks.get(kind), href = kind === "a" && attribute(el, "href");
		const wide = kind === "li" || kind === "tr" || kind === "dt" || kind === "dd" || (kind === "ul" || kind === "ol") && tag(parent(el) || el) === "li" ? 2 : block ? 3 :
			kind === "button" || interactive.has(own) ? 1 : 0;
		widen(kind === "dt" ? 3 : wide);
		if (kind === "li") {
			const up = parent(el);
			let bullet = "- ";
			if (up && tag(up) === "ol") {
				numbers.set(up, has(el, "value") ? el.value : numbers.has(up) ? numbers.get(up) + 1 : up.start);
				bullet = `${numbers.get(up)}. `;
			}
			enclose(inside, (inner) => bullet + inner.replace(/\n(?!\n)/g, "\n" + " ".repeat(bullet.length)), true);
		} else if (kind === "dd") enclose(() => { inside(); lead = 0; }, (inner) => ": " + inner.replace(/\n(?!\n)/g, "\n  "), true);
		else if (kind === "hr") put("---");
		else if (kind === "blockquote") enclose(inside, (inner) => inner.split("\n").map((line) => line ? `> ${line}` : ">").join("\n"), true);
		else if (level) enclose(inside, (inner) => `${"#".repeat(level)} ${inner.replace(/ *\n[ \n]*/g, " ")}`);
		else if (mark) enclose(inside, (inner) => inner.includes("\n") || inner.startsWith(mark) ? inner : mark + inner + mark);
		else if (href && href.length < 2000 && !/^(#|javascript:|data:)/i.test(href)) enclose(inside, (inner) => linked(inner, href));
		else inside();
		widen(wide);
	};
	write(top, 0);
	let size = budget, end = out.length;
	if (bytes(out) > size) for (end = 0; end < out.length && size > 0; end++) size -= out.charCodeAt(end) < 128 ? 1 : 3;
	const all = full ? Math.max(out.length + 1, textIn(top).length) : out.length;
	return {type: contentType(), text: out.slice(0, end), cut: all - end, partial, frames: framesIn(top),
		left: aside.left};
}

// ---- What a locator finds

function find(locator, {limit = 5, acting = false} = {}) {
	rank = 0;
	const found = acting && checkShown(locator) || locate(locator);
	const more = window !== window.top && readyState() === "loading"; // than the frames that it has so far
	const here = {frames: kinds().frames.filter(hasDocument).length + Number(more), blank: location.href === blank};
	if (found.failure) return {...found, ...here};
	const unseen = innerWidth * innerHeight === 0 || !found.elements.some(rendered);
	return {...here, rank: unseen ? rank + 10 : rank, partial, total: found.elements.length, matches: found.elements.slice(0, limit).map((el) => {
		const own = role(el), value_ = value(el), state = states(el, own);
		return {...describe(el), value: clip(value_, 60), state, ...found.elements.length < 3 && {css: path(el)}};
	}), resolved: found.resolved};
}

// cover describes what covers an element. One without a role is hard to find by its name.
const cover = (el) => ({...describe(el), ...role(el) === "generic" && {css: path(el)}});

// path returns a short CSS selector that finds the element alone, "" in a shadow root.
function path(el) {
	if (rootNode(el) !== document) return "";
	const only = (before, word, after = "") => {
		const selector = word && before + CSS.escape(word) + after;
		return word && queryDocument(selector).length === 1 && selector;
	};
	const byTest = only("[data-testid=", attribute(el, "data-testid"), "]");
	if (byTest) return byTest;
	const parts = [];
	for (let at = el; at && isElement(at); at = parentNode(at)) {
		const own = only("#", attribute(at, "id"));
		if (own) return [own, ...parts].join(">");
		const like = childNodes(parentNode(at)).filter((x) => isElement(x) && tag(x) === tag(at));
		parts.unshift(CSS.escape(tag(at)) + (like.length > 1 ? `:nth-of-type(${like.indexOf(at) + 1})` : ""));
	}
	return parts.join(">");
}

// get returns a property of the only element that a locator means.
function get(locator, what, of = "") {
	const found = one(locator);
	if (found.failure) return found;
	const {el} = found, {x, y, width, height} = rectOf(el);
	const read = {
		value: () => value(el, String), text: () => textIn(el), html: () => innerHTML(el),
		attribute: () => attribute(el, of), name: () => name(el), role: () => role(el), state: () => states(el, role(el)),
		box: () => ({x, y, width, height}),
		style: () => getComputedStyle(el).getPropertyValue(of), visible: () => rendered(el) && visible(el),
	}[what];
	return {value: read(), ref: refer(el)};
}

// ---- Actions

const frame = () => new Promise((done) => {
	requestAnimationFrame(done);
	pause(document.hidden ? 20 : 300).then(done); // a page in the background has no frames, and a busy one late ones
});

// pause waits. Timers do not fire where a sandbox or a setting forbids scripts; timeouts of signals do.
const pause = (ms) => new Promise((done) => listen(AbortSignal.timeout(Math.max(ms, 0)), "abort", done));

// eventually looks again until what it sees is so, at most for some milliseconds, and returns what it has seen last.
async function eventually(look, ms, isSo = Boolean) {
	for (const until = clock() + ms; ; await pause(30)) {
		const seen = look();
		if (isSo(seen) || clock() > until) return seen;
	}
}

function pointedAt(x, y) {
	let el = pointInDocument(x, y);
	for (let root; el && (root = shadowRoot(el));) {
		const inner = root.elementFromPoint(x, y);
		if (!inner || inner === el) break;
		el = inner;
	}
	return el;
}

// takes reports whether an event at an element reaches the one that is meant: in it, or in what stands in for it. That is
// a label of it, the control of a label, the host whose text it shows in a slot, what is drawn for a control, and what is
// around a text, or the host of a control, that lets the pointer through.
const takes = (el, hit) => within(el, hit) || labelsOf(el).some((label) => within(label, hit)) ||
	controlOf(el) !== el && within(controlOf(el), hit) || showsTextOf(el, hit) ||
	drawn.has(role(el)) && within(drawing(el), hit) || isInvisibleBox(hit) && within(drawing(hit), el) ||
	passes(el) && (rootNode(el).host === hit || !isControl(el) && within(hit, el));

const reaches = (el, hit) => hit && takes(el, hit); // nothing is hit outside of the view

// isInvisibleBox reports whether an element is a box that nobody sees, and that lies on what is drawn for it.
const isInvisibleBox = (el) => isBox(el) && !checkVisibility(el, {opacityProperty: true});

// controlOf returns the control of a label, and any other element itself.
const controlOf = (el) => tag(el) === "label" && el.control || el;

// showsTextOf reports whether an element shows text of a shadow host in a slot. Chrome reports the host as hit.
const showsTextOf = (el, hit) => Boolean(shadowRoot(hit)) && childNodes(hit).some((node) =>
	isText(node) && node.assignedSlot && within(el, node.assignedSlot));

const drawn = set("checkbox radio switch combobox textbox searchbox spinbutton");
// boxLabelledBy returns the check box or radio button of a label that stands for it, since the tree does not have the box.
const boxLabelledBy = (el) => controlOf(el) !== el && isBox(controlOf(el)) && !inTree(controlOf(el)) && controlOf(el);
const isBox = (el) => tag(el) === "input" && ["checkbox", "radio"].includes(el.type);
const hasSize = (el) => boxOf(el).width > 1 && boxOf(el).height > 1; // one pixel is for assistive technology
const shown = (el) => rendered(el) && visible(el) && hasSize(el);

// drawing returns the largest element around a control that has no other control in it: it holds what is drawn for the
// control, such as a switch beside an input without a size, or a placeholder on top of a field. A native list that no key
// reaches is a copy of the control, for forms.
function drawing(el) {
	const most = 3 * Math.max(rectOf(el).height, 24);
	let all = el, up = parent(el);
	for (let turn = 0; up && turn < 4 && !["body", "form", "fieldset"].includes(tag(up)); turn++, up = parent(up)) {
		const others = queryAll(up, "input,select,textarea,button,a[href],[tabindex],label").filter((other) =>
			tabIndex(other) >= 0 || tag(other) === "label" || tag(other) !== "select" && isControl(other));
		if (rectOf(up).height > most || others.some((other) => other !== el && !contains(other, el))) break;
		all = up;
	}
	return all;
}

// filling returns what is shown in an element without a size, such as a link around a picture that floats.
const filling = (el) => boxOf(el).width && boxOf(el).height ? el : elements(el).find(shown) || el;

// standIn returns what a person clicks for a control that is not shown: the label of a checkbox or radio button, or its
// drawing.
const standIn = (el) => !drawn.has(role(el)) || shown(el) ? filling(el) :
	isBox(el) && labelsOf(el).find(shown) || (shown(drawing(el)) ? drawing(el) : el);

// boxOf returns where an element can be hit: its first line, or the middle of a line that is drawn.
const boxOf = (el) => {
	const box = [...clientRects(el)].find((r) => r.width > 0 && r.height > 0);
	if (!(el instanceof SVGGeometryElement) || box && style(el).fill !== "none") return box || rectOf(el);
	const {x, y} = el.getPointAtLength(el.getTotalLength() / 2).matrixTransform(el.getScreenCTM());
	return new DOMRect(x - 1, y - 1, 2, 2);
};

// atRest reports whether an element stays where it is as far as is known: the watch of the last act has seen no change
// lately, and no animation runs. A change that came alone is not one of an animation once a frame has passed. A guard
// tells when that was wrong.
const restTime = 50, frameTime = 20;
const cameAlone = ({noted, earlier}) => !(noted - earlier < restTime);
const atRest = () => action && !action.stopped && !action.missed &&
	clock() - action.last > (cameAlone(action) ? frameTime : restTime) && !animations().length;

// clipped returns the innermost box around an element that would have to be scrolled to a point of it.
const clipped = (el, x, y) => pastBoxes(el, x, y).find((up) => /auto|scroll/.test(style(up).overflow));

// pastBoxes returns the boxes around an element that a point is outside of, the innermost first.
const pastBoxes = (el, x, y) => outward(parent(el)).filter((up) => isPast(rectOf(up), x, y));
const isPast = ({left, top, right, bottom}, x, y) => x < left || x >= right || y < top || y >= bottom;

// sticks reports whether what covers an element stays in its place while that is scrolled, but for a part of the view or
// of the box that scrolls.
const sticks = (hit, el) => {
	const isPart = (at, {width, height}) => rectOf(at).width < width || rectOf(at).height < height;
	return outward(hit).some((up) => /fixed|sticky/.test(style(up).position) && isPart(up, visualViewport)) ||
		outward(parent(el)).some((up) => rolls(up, 1) && !within(up, hit) && isPart(apart(hit, [el]), rectOf(up)));
};

// ready returns where an element can be clicked now, {x, y}, or why it cannot, {why}. keys: it is focused instead. One that
// is covered by what sticks is scrolled to the middle, the beginning and the end in turn. With why it cannot
// comes the point of a part that is not covered, {free}.
async function ready(el, {keys, guarded, covered = true, edit = false, scroll = true, offset, turn = 0} = {}) {
	readAgain();
	if (!isConnected(el)) return {why: "it is no longer in the document"};
	if (disabled(el) || disabled(controlOf(el))) return {why: "it is disabled"};
	if (outward(el).some((up) => isHTML(up) && isInert(up))) return {why: "it is inert"};
	el = standIn(el);
	if (edit && isReadOnly(el) && !opensList(el)) return {why: "it is read-only", lasts: true};
	if (!rendered(el) || !visible(el)) return {why: "it is not visible"};
	let box = boxOf(el), still = keys || guarded && atRest(); // the keyboard reaches an element wherever it moves
	if (!keys && (!box.width || !box.height)) return {why: "it has no size"};
	if (scroll && !turn && (box.top < 0 || box.left < 0 || box.bottom > innerHeight || box.right > innerWidth ||
		clipped(el, box.left + box.width / 2, box.top + box.height / 2))) {
		center(el);
		still = keys;
	}
	box = boxOf(el);
	if (!still) await frame();
	const now = boxOf(el);
	if (JSON.stringify(box) !== JSON.stringify(now)) return {why: "it is moving"};
	const inside = (at, size, limit) => (Math.max(0, at) + Math.min(limit, at + size)) / 2;
	let x = inside(now.x, now.width, innerWidth), y = inside(now.y, now.height, innerHeight);
	if (offset) {
		[x, y] = [now.x + offset[0], now.y + offset[1]];
		if (offset.some((n) => n < 0) || offset[0] >= now.width || offset[1] >= now.height) {
			return {why: `it has ${now.width} x ${now.height} pixels, and the point is outside`};
		}
	}
	const hit = pointedAt(x, y);
	if (!reaches(el, hit)) {
		const other = !offset && (isBox(el) && labelsOf(el).find(shown) || // or it is clipped, so that what is around it is hit
			drawn.has(role(el)) && hit && within(hit, el) && drawing(el));
		if (other && other !== el) return ready(other, {keys, covered, scroll});
		const way = ["center", "start", "end"][turn];
		if (covered && scroll && way && hit && sticks(hit, el)) {
			center(el, way);
			return ready(el, {keys, edit, offset, turn: turn + 1});
		}
		const spots = [.1, .5, .9], free = covered && !offset && spots.flatMap((a) => spots.map((b) =>
			({x: now.x + now.width * a, y: now.y + now.height * b}))).find(({x, y}) => reaches(el, pointedAt(x, y)));
		if (covered) return {...hit ? unreached(el, hit, x, y) : {why: "it is outside the view"}, free};
	}
	return {x, y};
}

// unreached says why the pointer reaches something else than an element at a point: what is around one cannot cover it.
const unreached = (el, hit, x, y) => {
	if (passes(el)) return {why: "the pointer goes through it"};
	const clips = pastBoxes(el, x, y).find((up) => style(up).overflow !== "visible");
	if (clips) return {why: "it is clipped", by: cover(clips)};
	return within(hit, el) ? {why: "it is clipped"} : {why: "it is covered", by: cover(hit)};
};

// aim waits until the only element that a locator means can be acted on: {ref, role, name, x, y}, or {failure}.
async function aim(locator, {timeout = 5000, ...how} = {}) {
	const until = clock() + timeout;
	for (let turn = 0; ; turn++) {
		const found = how.field ? field(locator) : one(locator);
		let failure = found.failure;
		if (isNone(failure)) failure = inList(locator) || failure;
		if (isNone(failure) && how.seek) {
			const why = await rollTo(locator);
			if (!why) continue;
			failure = {...failure, why};
		}
		if (failure && failure.code !== "no_match") return {failure};
		if (how.field && !failure && role(found.el) === "Iframe") return notReady(found.el, {why: "it is a frame"});
		if (!failure) {
			const at = await ready(found.el, how), other = checkShown(locator);
			if (other) return other;
			if (at.x !== undefined) return {...describe(found.el), ...at, resolved: found.resolved};
			failure = notReady(found.el, at).failure;
		}
		if (clock() > until) {
			const {free} = failure; // what covers the rest stays there
			return free ? {...describe(found.el), ...free, resolved: found.resolved} : {failure};
		}
		await pause(turn < 3 ? 20 : 80);
	}
}

const isNone = (failure) => failure?.code === "no_match";

// notReady returns the failure of an act on an element that cannot be acted on, and why.
const failed = (code, more) => ({failure: {code, ...more}});
const notReady = (el, why) => failed("not_ready", {...describe(el), ...why});

// inUse reports whether a native list is shown and can be reached, and nothing is shown in its place.
const inUse = (el) => shown(el) && tabIndex(el) >= 0;

// inList returns the failure of an act on an option of a native list, which no pointer reaches.
const inList = ({css, role: own = "option", word, text = word, name: named = text}) => {
	const option = own === "option" && (css || named) && queryDocument(css || "option").find((el) =>
		tag(el) === "option" && (css || equal(el.label, named)) && inUse(closest(el, "select") || el));
	return option && {code: "in_list", ...describe(closest(option, "select")), near: [{name: option.label}]};
};

// field finds what fill and select act on: what a locator means, the group of spin buttons that has its name, the control
// of a label, the only field in an element, and what is shown in place of a native list that is not.
function field(locator) {
	const found = one(locator), many = found.failure?.code === "many";
	if (found.failure && !many) return found;
	const all = many ? locate(locator).elements : [found.el], natives = many ? all.filter(isSelect) : all;
	const whole = all.filter((x) => !all.some((of) => of !== x && controlled(of).includes(x))); // without the lists of others
	let [el, other] = natives.length || whole.length > 1 ? natives : whole;
	if (!el || !isField(el)) {
		const groups = fitting((x) => role(x) === "group" && equal(name(x), locator.word) && segments(x).length > 1);
		if (groups.length) [el, other] = groups;
		else if (el && tag(el) === "legend") el = parent(el);
		else if (el) {
			const around = el;
			el = tag(el) === "label" && byIds(el, "for")[0] || controlOf(el);
			const inner = isField(el) || editable(el) ? [] :
				elements(within(around, el) ? around : el).filter(isField);
			if (inner.length === 1) [el] = inner;
		}
	}
	if (!el || other) return found;
	if (role(el) === "textbox" && !shown(el) || tag(el) === "label") el = editorBeside(el) || el;
	if (isSelect(el) && !inUse(el)) {
		const native = el;
		el = drawnFor(el) || el;
		if (el !== native) drawings.set(el, native);
	}
	return {el, resolved: found.resolved};
}

// editorBeside returns the only editor before or after an element: libraries show it in place of the field that they hide.
const editorBeside = (el) => {
	const all = [el.previousElementSibling, el.nextElementSibling].filter(Boolean).flatMap((x) => [x, ...queryAll(x, "*")])
		.filter((x) => editable(x) && !editable(parent(x)) && shown(x) || isProxy(x));
	return all.length === 1 && all[0];
};

// drawnFor returns what is shown in place of a native list that is not: what is around it, what comes after it, what is beside it
// if that has no other list, or the text of what is chosen in what comes after it. A label begins another field.
function drawnFor(el) {
	const lists = "[role=combobox],[aria-haspopup=listbox]", beside = el.nextElementSibling, [chosen] = el.selectedOptions;
	const all = queryAll(parent(el), `${lists},select,label`).filter((x) => x === el || isSelect(x) || rendered(x));
	const others = all.filter(isSelect).length === 1 ? all : [];
	return closest(el, lists) || [all[all.indexOf(el) + 1], ...others].find((x) => x && matches(x, lists)) || beside && chosen?.label &&
		innermost(queryAll(beside, "*").filter((x) => shown(x) && equal(textContent(x), chosen.label)))[0];
}

// drawings are the native lists for which others are shown, by those. nativeOf returns that of a list.
const drawings = new WeakMap(), nativeOf = (el) => query(el, "select") || drawings.get(el);
const controlled = (el) => ["aria-controls", "aria-owns"].flatMap((by) => byIds(el, by));

const segments = (el) => elements(el).filter((inner) => role(inner) === "spinbutton");

// boxes returns the fields of one character that an element has, or begins.
function boxes(el) {
	let all = [], up = el;
	for (let turn = 0; up && all.length < 2 && turn < 4; turn++, up = parent(up)) {
		all = queryAll(up, "input[maxlength='1']").filter(shown);
	}
	return all.slice(Math.max(all.indexOf(el), 0));
}

// guard swallows trusted pointer events that would miss an element, until landed is called: between the last look at
// the page and the event, anything can move under the pointer.
const pointer = "pointerdown mousedown pointerup mouseup click auxclick dblclick contextmenu dragstart drop".split(" ");
let guarded = null;

// In a drag, what comes after the press may reach another element.
const released = set("pointerup mouseup drop");

function onPointer(event) {
	if (!guarded || !event.isTrusted || event.timeStamp > guarded.until) return; // a busy page gets it later
	const {type} = event;
	if (type === "dragstart") guarded.dragging = true; // from now on, only the drop counts
	if (guarded.dragging && type !== "drop") return;
	const press = type === "pointerdown";
	const ends = guarded.to ? released.has(type) : /^(aux)?click$|menu/.test(type);
	let hit = event.composedPath()[0]; // what is dragged may follow the pointer, or capture it
	if (isElement(hit) && closedRoots.has(hit)) hit = pointedAt(event.clientX, event.clientY) || hit; // the path ends there
	const right = guarded.el && isElement(hit) && (takes(guarded.el, hit) || guarded.to && ends && takes(guarded.to, hit));
	// What follows a press that has arrived is the page's business: the press may open what covers the element, what is
	// dragged may let the pointer through, and the click that a label hands on to its control cannot be told from that of a
	// pointer.
	if (guarded.pressed && !guarded.missed && !press) {
		guarded.received ||= right && ends;
		return;
	}
	if (!right && !guarded.missed) guarded.missed = isElement(hit) ? describe(hit) : {role: "document", name: ""};
	if (guarded.missed) {
		event.preventDefault();
		event.stopImmediatePropagation();
	} else if (ends) guarded.received = true;
	if (right && press) guarded.pressed = {x: event.clientX, y: event.clientY};
}

// These listeners come before those of the page where the script runs at document start. document.open removes them, so
// that each guard puts them back; what is there stays in its place.
const listenToPointer = () => {
	for (const type of pointer) listen(window, type, onPointer, {capture: true});
};
listenToPointer();

// For an address of another program, such as tel:5, Chrome asks a person, and the tab takes no input until they answer.
// In a browser that only programs control there is nobody: the navigation is refused, and the console says so. A page
// sees that it was.
const shownByChrome = /^(?:https?|file|data|blob|about|javascript|filesystem|devtools|view-source|chrome[\w-]*):/;
if (navigator.webdriver) {
	listen(navigation, "navigate", (event) => {
		const url = event.destination.url;
		if (shownByChrome.test(url)) return;
		event.preventDefault();
		console.error(`${url} was not opened: it belongs to another program`);
	});
}

// guardTime is how long a guard holds if nothing ends it, so that no later click of a person is swallowed.
const guardTime = 3000;

const guard = (el, to) => {
	listenToPointer();
	guarded = {el, to, received: false, missed: null, until: clock() + guardTime};
	return {};
};

// landed ends guard: {received}, what was hit instead, {missed}, and why no click followed the press, {unclicked}. A press
// on an element that has moved away since then is not received, since the click went elsewhere, but it has reached the
// page.
function landed() {
	const {el, to, received = false, missed = null, pressed = null} = guarded || {};
	guarded = null;
	if (missed && action) action.missed = true;
	const held = () => !isConnected(el) || !isPast(boxOf(standIn(el)), pressed.x, pressed.y);
	const unclicked = !received && !missed && pressed &&
		(!isConnected(el) ? "went away" : disabled(el) ? "was disabled" : held() ? "was covered" : "moved");
	return {received: !missed && (received || Boolean(!to && pressed && held())), ...unclicked && {unclicked}, missed};
}

// hold swallows pointer events during an act in a frame, since they are meant for the frame. The point is where they
// will be in this view. If the frame had to be scrolled into view for it, the point is another one: {moved}.
async function hold(of, x, y) {
	const el = frameAt(of);
	if (!el) return failed("not_ready", {why: "its frame is not visible"});
	const clip = clipped(el, x, y), hit = pointedAt(x, y); // null outside the view
	if (!hit || clip || hit !== el && sticks(hit, el)) {
		const before = rectOf(el), box = clip || scroller(), {left, top} = clip ? rectOf(clip) : {left: 0, top: 0};
		box.scrollBy({left: x - left - box.clientWidth / 2, top: y - top - box.clientHeight / 2, behavior: "instant"});
		await frame();
		const after = rectOf(el);
		if (before.x !== after.x || before.y !== after.y) return {moved: true};
	}
	if (hit === el) return guard(null);
	if (!hit) return notReady(el, {why: "it is outside the view"});
	if (!rendered(el) || !visible(el)) return notReady(el, {why: "its frame is not visible"});
	const {why, by} = unreached(el, hit, x, y), subject = "its frame";
	return notReady(el, {by, why: why.replace(/\bit\b/, subject)});
}

// ---- An action: begin, the input, end

let action = null;

// isChecked reports whether an element is checked: it says so, or the only box in it does. Some say nothing.
const isChecked = (el) => {
	const own = controlOf(el), root = shadowRoot(own), inner = root ? queryRoot(root, "[type=checkbox],[type=radio]") : [];
	const at = inner.length === 1 ? inner[0] : own, says = ariaOf(at, "checked");
	return isBox(at) || says ? at.checked || says === "true" : undefined;
};

// watch observes what changes in the document and calls seen with the changes of a moment, until stop is called.
function watch(seen) {
	const observer = new MutationObserver(seen), all = {subtree: true, childList: true, attributes: true, characterData: true};
	const into = (root) => {
		observer.observe(root, all);
		for (const host of queryRoot(root, mayHold)) {
			if (shadowRoot(host)) into(shadowRoot(host));
		}
	};
	into(document);
	return () => observer.disconnect();
}

// What an act shows at once is trivial: that its element has changed, is focused, or has other things in it. It does not
// tell that the act is over. Anything else is an effect.
const watchTime = 30_000;

// prepare starts to watch what an act changes.
function prepare(el) {
	action?.stop();
	const own = el ? [el, controlOf(el), ...labelsOf(controlOf(el))] : [];
	const now = {el, own, trivial: 0, effects: 0, told: 0, effectsTold: 0, last: clock(), before: looks(el), fields: fieldsLook()};
	const note = now.note = (trivial) => {
		now.last = clock();
		if (!(now.last - now.noted < 5)) [now.earlier, now.noted] = [now.noted, now.last]; // an act changes several things at once
		if (trivial) now.trivial++;
		else if (now.effects++ === now.effectsTold) now.wake?.();
	};
	const isOwn = (node) => own.some((x) => within(x, node));
	const stop = watch((changes) => {
		const all = changes.every((change) => isOwn(change.target));
		now.around ||= !all;
		note(all);
	});
	const onEvent = (event) => {
		const at = event.composedPath()[0], own = isElement(at) && isOwn(at);
		if (!own || event.type !== "focusin") note(own && event.type === "scroll"); // a click focuses its element
	};
	const events = ["focusin", "input", "change", "scroll"];
	for (const type of events) listen(window, type, onEvent, {capture: true, passive: true});
	now.stop = () => {
		now.stopped = true;
		stop();
		for (const type of events) unlisten(window, type, onEvent, {capture: true});
	};
	pause(watchTime).then(now.stop);
	action = now;
}

// fieldsLook sums up what the fields of the document hold, which no observer reports.
const fieldsLook = () => {
	const all = queryDocument("input,select,textarea"), out = [];
	for (const el of all.slice(0, 1000)) out.push(el.type === "file" ? el.files.length : el.value, el.checked);
	return out.join("\0");
};

// effect says that the act has an effect which this document does not show.
const effect = () => action?.note(false);

// idle tells for how many milliseconds nothing is due in this thread, at most longestIdle. After an input the browser is
// idle only once it has drawn a frame.
const longestIdle = 50;
async function idle() {
	await frame();
	return (await new Promise((done) => requestIdleCallback(done, {timeout: longestIdle}))).timeRemaining();
}

// calm waits until nothing has changed for a while: quiet milliseconds after an effect, still ones while there was none.
// What is left of it is not waited for when nothing is due in that time. It returns false when the time is up before.
async function calm(now, {quiet, still, timeout}) {
	const until = clock() + timeout;
	for (let free = 0; ; ) {
		const time = clock(), left = now.last + (now.effects > now.effectsTold ? quiet : still) - time;
		if (left <= free) return true;
		if (time >= until) return false;
		const wait = free || Math.min(left - longestIdle, until - time);
		if (wait > 0) await Promise.race([pause(wait), new Promise((done) => now.wake = done)]);
		free = wait > 0 ? 0 : await idle();
	}
}

// looks sums up what an action can change besides the document: URL, scroll positions, and the state of its element.
const looks = (el) => {
	readAgain();
	const own = el && role(el), state = el ? states(el, own) : "";
	return JSON.stringify([location.href, scrollX, scrollY, el && [el.scrollTop, el.scrollLeft, value(el), el.checked,
		editable(el) || /input|textarea|select/.test(tag(el)) ? state : state.replace(/ ?focused/, "")]]);
};

// begin prepares an action on the only element that a locator means: it waits until the element can be acted on, guards
// it if guarded, or focuses it if focused. It returns what aim does, and what focusOn does. Without a locator the
// focused element is meant.
async function begin(locator, {guarded: guards = false, focused: focuses = false, all = true, to, value: given,
	...how} = {}) {
	if (!locator) {
		prepare(focused());
		return here();
	}
	if (how.files) return beginFiles(locator, how);
	const at = await aim(locator, {...how, keys: focuses, guarded: guards});
	if (at.failure) return at;
	const {el} = one({ref: at.ref});
	let other = null, toward = {};
	if (to?.beside) { // where a pointer comes from
		const {left, right} = boxOf(standIn(el));
		toward = {to: {x: left > 2 ? left - 2 : right + 2, y: at.y}};
	} else if (to) { // another element, to which this one is dragged
		let end = to.by ? {el: rootElement()} : checkShown(to) || one(to);
		if (isNone(end.failure) && to.in) end = one({...to, in: undefined});
		if (isNone(end.failure)) end.failure.why = `${nothing(to)}, where it is to be dragged`;
		if (end.failure?.code === "many") Object.assign(end.failure, {why: written(to)});
		if (end.failure) return end;
		other = end.el;
		if (to.by) toward = {to: {x: at.x + to.by[0], y: at.y + to.by[1]}};
		else {
			const there = await ready(other);
			if (there.x === undefined) return notReady(other, there);
			let again = await ready(el, {...how, scroll: false}); // the page may have been scrolled
			const far = again.x === undefined; // it is scrolled to while the element is dragged
			if (far) again = await ready(el, how);
			if (again.x === undefined) return notReady(el, again);
			Object.assign(at, again);
			const {width, height} = boxOf(other);
			toward = {to: {...there, far, width, height, spot: inDocument(other), ...describe(other)}, ...beside(el, other)};
		}
		toward.spot = inDocument(el);
		if (toward.sorts) getSelection().empty(); // selected text would be dragged instead
	}
	if (focuses) focus(el, all);
	prepare(el);
	if (guards) guard(el, other);
	return {...at, ...toward, checked: isChecked(el), hovers: isPart(el), ...how.field && fieldState(el, given), ...here()};
}

// isPart reports whether an element is a part of a widget that the page has made: some choose at a click what the pointer
// was over before.
const isPart = (el) => /^(option|menuitem|treeitem|gridcell|radio)/.test(role(el)) && !isBox(el);

// isGrip reports whether an element looks like what another one is dragged by.
const isGrip = (el) => /grab|move/.test(style(el).cursor) || /handle|grip/i.test(attribute(el, "class"));

// beside returns how many items two elements are apart, whether these are of a list that one can sort, the part by which
// the first one is dragged, if there is one, and what it says of keys that move it.
function beside(el, other) {
	const own = apart(el, [other]), items = parent(own) ? children(parent(own)).filter(isElement) : [];
	const to = items.findIndex((item) => within(item, other));
	const sorts = to >= 0 && role(own) === role(items[to]) && /^(listitem|option|row|treeitem)$/.test(role(own));
	const grip = !isGrip(own) && elements(own).find(isGrip);
	return {sorts, grip: grip ? refer(grip) : "", steps: to < 0 ? 0 : Math.abs(to - items.indexOf(own)), keys: [el, own].flatMap((x) =>
		[ariaOf(x, "roledescription"), ...byIds(x, "aria-describedby").map(textContent)]).join(" ").trim()};
}

// inDocument returns where an element is in the document; spot waits until it stands, after it has left a place if one
// is given.
const inDocument = (el, {x, y} = rectOf(el)) => ({x: Math.round(x + scrollX), y: Math.round(y + scrollY)});
async function spot(el, from) {
	await frame();
	if (from) await eventually(() => Object.entries(inDocument(el)).some(([side, at]) => at !== from[side]), 500);
	const moves = el.getAnimations().map((move) => move.finished);
	if (moves.length) await Promise.race([Promise.allSettled(moves), pause(1000)]).then(frame); // at its end the page may move it
	return inDocument(el);
}

// nests reports whether an element is in another one, or below it in a tree whose items are not in each other.
const nests = (el, ref) => {
	const {el: to} = one({ref});
	return !to || within(to, el) || ariaOf(el, "level") - ariaOf(to, "level") > 0;
};

// reach scrolls to an element and returns its middle.
async function reach(el) {
	center(el);
	await frame();
	const {x, y, width, height} = boxOf(el);
	return {x: x + width / 2, y: y + height / 2};
}

// fileInput is the one that the last beginFiles has found; chosen returns it to the keeper, which gives it files.
let fileInput = null;
const chosen = () => fileInput;
const isFileInput = (el) => tag(el) === "input" && el.type === "file";

// inputOf returns the file input that an element means: itself, that of a label, or the only one in what is close around
// it. It returns an element without one itself.
const inputOf = (el) => {
	el = controlOf(el);
	if (isFileInput(el)) return el;
	const near = outward(el).slice(0, 4).map((up) => queryAll(up, "input[type=file]")).find((all) => all.length);
	return near?.length === 1 ? near[0] : el;
};

// beginFiles begins an action on the file input that a locator means, which is often invisible. An element without one
// may take files that are dropped on it, or open a chooser: {opener}.
async function beginFiles(locator, {files: count, ...how}) {
	const hidden = locator.css === undefined ? [] : queryDocument(locator.css).filter(isFileInput);
	const found = hidden.length === 1 ? {el: hidden[0]} : checkShown(locator) || one(locator);
	if (found.failure?.code === "many") {
		const inputs = new Set(locate(locator).elements.map(inputOf)), [input] = inputs;
		if (inputs.size === 1 && isFileInput(input)) [found.el, found.failure] = [input];
	}
	if (found.failure) return found;
	const el = inputOf(found.el);
	if (!isFileInput(el)) {
		const at = await ready(found.el, how);
		if (at.x === undefined) return notReady(found.el, at);
		dragged = null;
		listen(window, "dragover", onDragOver, {capture: true});
		prepare(found.el);
		return {...describe(found.el), ...at, opener: isControl(found.el) ? "pressed" : "dropped", ...here()};
	}
	const why = disabled(el) ? "it is disabled" : el.webkitdirectory ? "it takes a folder, which only a person can give" :
		count > 1 && !el.multiple ? "it takes only one file" : "";
	if (why) return notReady(el, {why});
	fileInput = el;
	prepare(el);
	return {...describe(found.el), accept: el.accept, ...here()};
}

// takesDrop reports whether the page lets what is dragged over it be dropped.
let dragged = null;
const onDragOver = (event) => { if (event.isTrusted) dragged = event; };
const takesDrop = () => Boolean(dragged?.defaultPrevented) && dragged.dataTransfer?.dropEffect !== "none";

// here returns which document this is, and whether it is in the background; where adds what it is called.
const here = () => ({document: documentLetters, url: location.href, hidden: document.hidden});
const where = () => ({...here(), title: clip(titleOf(), 100)});

// end ends an act, as soon as the document is calm: {received, missed, changed, settled, url, title, value}. It may be
// called again. In another document than that of begin there is nothing but what it shows.
async function end({quiet = 35, still = 150, timeout = 1000} = {}) {
	const done = guarded ? landed() : {};
	if (done.missed) return done;
	const now = action;
	if (!now) {
		const {settled} = await settle({quiet, timeout});
		return {...where(), settled};
	}
	if (!now.ended && now.trivial + now.effects === 0) now.last = clock(); // the input has just arrived
	now.ended = true;
	const settled = await calm(now, {quiet, still, timeout}), el = now.el && isConnected(now.el) ? now.el : null;
	const altered = now.trivial + now.effects > 0 || looks(now.el) !== now.before || fieldsLook() !== now.fields;
	remember(now);
	return {...done, ...where(), changed: altered, around: now.around, settled, ...el && changed(refOf.get(el)) && {now: describe(el)}, ...el && {...!isProxy(el) && {value: clip(value(el) || editable(el) && holds(el) || "", 200)}, checked: isChecked(el),
		open: isOpen(el)}};
}

// remember notes what was told of an act.
const remember = (now) => {
	now.told = now.trivial + now.effects;
	now.effectsTold = now.effects;
	now.fields = fieldsLook();
};

// late returns what this document shows, and whether it has changed since the last act was told: {changed, document,
// url, title}. It is told once.
const late = () => {
	const now = action, changed = Boolean(now) && (now.trivial + now.effects > now.told || fieldsLook() !== now.fields);
	if (now) remember(now);
	return {...where(), changed};
};

// painted waits for a frame and returns whether the document shows anything. A hidden one never does.
async function painted() {
	await frame();
	return document.hidden || performance.getEntriesByType("paint").length > 0;
}

// focus focuses a field, or the editor that it is a part of, and selects what it holds, so that text that is typed replaces
// it, or is to come after it.
function focus(el, all = true) {
	const isNew = focused() !== el;
	if (isHTML(el)) focusHTML(editable(el) && outward(el).findLast(editable) || el);
	if (all && typeof el.select === "function" && tag(el) !== "form") el.select();
	else if (all && editable(el)) getSelection().selectAllChildren(el);
	else if (!all && isNew && typesIn(el)) getSelection().modify("move", "forward", "documentboundary");
	if (isProxy(el) && (all || isNew)) press(el, "a", 65);
	if (isProxy(el) && !all && isNew) press(el, ...rightKey);
}

// isProxy reports whether a field only receives what is typed, for an editor that draws its text elsewhere. Such an editor
// is asked by keys and by events of the clipboard, which it handles as those of a person; the clipboard has no part in it.
const isProxy = (el) => Boolean(el.editContext) || tag(el) === "textarea" && rendered(el) &&
	(isFolded(el) || !hasSize(el) || !checkVisibility(el, {opacityProperty: true}));
const send = (el, Kind, type, more) => dispatch(el, new Kind(type, {bubbles: true, composed: true, cancelable: true, ...more}));
const press = (el, key, keyCode, chord = /^Mac/.test(navigator.platform) ? "metaKey" : "ctrlKey") =>
	send(el, KeyboardEvent, "keydown", {key, keyCode, [chord]: true});
const rightKey = ["ArrowRight", 39, ""]; // leads to the end of what is selected

// clipboard sends an editor a text to paste, or returns the one that it copies.
const clipboard = (el, type, text = "") => {
	const clipboardData = new DataTransfer(), kind = "text/plain";
	clipboardData.setData(kind, text);
	send(el, ClipboardEvent, type, {clipboardData});
	return clipboardData.getData(kind);
};

// copied returns the text of the editor of a proxy, and leaves it selected. Of an empty one, some copy the empty line.
const copied = (el) => {
	press(el, "a", 65);
	const text = clipboard(el, "copy") || `${getSelection()}`;
	return text.trim() ? text : "";
};

// besideField is the text around a field before it was filled. tagWords are in the classes of fields that make tags.
let besideField = "";
const textAround = (el) => textContent(outward(el)[3] || rootElement()), tagWords = /(tag|pill)s?-?input|tagify|(tag|chip)s?\b/i;
const makesTags = (el) => outward(el).slice(0, 3).some((up) => tagWords.test(attribute(up, "class")));

const focusOn = (el) => {
	focus(el);
	return fieldState(el);
};

// fieldState says how a field takes a value, what it holds, what it says that it takes, and what the browser would make of a
// value.
function fieldState(el, given = "") {
	const probe = tag(el) === "input" && el.cloneNode(), own = probe && inputRoles[el.type];
	const picker = /Date|Time|Color|slider/.test(own), typed = picker || own === "spinbutton";
	if (typed) probe.value = given;
	besideField = textAround(el);
	return {select: isSelect(el) || typesIn(el) && el.list instanceof HTMLDataListElement, picker, boxes: el.maxLength === 1 && given.length > 1 && boxes(el).length > 1,
		completes: el.type === "search" || suggests(el) ||
			matches(el, "[list],[aria-controls],[aria-owns],[aria-haspopup]"),
		editable: typesIn(el) && !isBox(el) && role(el) !== "button", proxy: isProxy(el), list: opensList(el) || suggests(el),
		input: probe !== false || tag(el) === "textarea" && !isProxy(el), held: holds(el), open: isOpen(el), focused: document.hasFocus(), calendars: hasCalendars(),
		takes: limits.filter((name) => has(el, name)).map((name) => [name, attribute(el, name)]),
		would: typed ? probe.value : given};
}

// suggests reports whether a text field says that a list of its own comes when something is typed.
const suggests = (el) => tag(el) === "input" && (attribute(el, "autocomplete") === "off" || has(el, "aria-autocomplete"));

const limits = ("type min max step aria-valuemin aria-valuemax minlength maxlength pattern " +
	"title placeholder data-date-format").split(" ");

// holds returns exactly what a field holds.
const typesIn = (el) => holdsText(el) && !isReadOnly(el);
const isInput = (el) => tag(el) === "input" || tag(el) === "textarea";
const holdsText = (el) => isInput(el) || isProxy(el) || editable(el) && role(el) !== "spinbutton";
const holds = (el) => isProxy(el) ? copied(el) : !holdsText(el) ? ariaOf(el, "valuenow") || "" :
	el.value ?? innerText(el).replace(/\ufeff/g, ""); // marks the place of the caret in an empty line

// held returns what a field holds, and whether a form is not sent with it. It is left before, if asked for, since many
// parse a date only then: {gone} if it goes away at that. One that is to have the focus again stays, {stayed}, where its
// text has changed the page, which may show a list for it. A field of a phone number may show the country's code beside it. An editor may still be busy with what it is to hold. With rest
// it is all of the act: a text is inserted before, as by a keyboard, a page that shows no reaction is given no frame, and
// the act ends, {ended}, as end does it.
async function held(el, leave, later, wanted, rest) {
	if (rest?.insert) document.execCommand("insertText", false, rest.insert);
	if (wanted) send(el, KeyboardEvent, "keyup", {key: wanted.at(-1)}); // some read it only then
	const stayed = leave === "back" && el.type !== "number" && (isOpen(el) || action?.around && hasPopup(el));
	if (leave && !stayed) el.blur();
	if (leave === "back" && !stayed) focus(el, false);
	const isQuick = rest && !later && holdsText(el);
	if (isQuick || later) await pause(0); // what the page does after its event
	if (isQuick ? action.around : leave || later || !holdsText(el)) await frame();
	if (wanted && el.value === undefined) await eventually(() => flat(holds(el)) === flat(wanted), 180);
	const is = !el.form?.noValidate && el.validity;
	const took = Boolean(leave && wanted) && !holds(el) && says(textAround(el), wanted) && !says(besideField, wanted);
	const text = holds(el), digits = (text) => text.replace(/\D/g, "");
	const code = wanted?.[0] === "+" && text && textIn(parent(el) || el).match(/\d+/g)?.find((code) => digits(wanted) === code + digits(text));
	if (isProxy(el)) press(el, ...rightKey); // what is typed next belongs there
	return {held: code ? `+${code} ${text}` : text, open: isOpen(el), gone: !isConnected(el), ...rest && {ended: await end(rest)}, took, tags: makesTags(el), calendars: leave === "blur" && hasCalendars(), stayed, invalid: is && (is.patternMismatch || is.typeMismatch ||
		is.tooShort || matches(el, ":out-of-range") || is.stepMismatch && has(el, "step")) || leave === "blur" && ariaOf(el, "invalid") === "true"};
}
const isOpen = (el) => ariaOf(el, "expanded") === "true";

// hasPopup reports whether something lies over the page below a field, as a list of what completes its text does.
const hasPopup = (el) => {
	const {left, width, bottom} = rectOf(el);
	return outward(pointedAt(left + width / 2, bottom + 12)).some((up) =>
		!within(up, el) && /absolute|fixed/.test(style(up).position));
};

const calendars = "[class*=picker],[class*=calendar]";
const monthOf = /((?:Jan|Febr)uary|March|April|May|June|July|August|(?:Septem|Octo|Novem|Decem)ber),?\s*(\d{4})(?!\d)/;

const hasCalendars = () => queryDocument(calendars).length > 0;

// calendarNow returns the month that a calendar shows, as in: March 2026, and the days that look like no other in it, as
// one that is chosen does: {month, days}. It returns null if none is shown.
function calendarNow() {
	readAgain();
	for (const el of queryDocument(calendars)) {
		const set = queryAll(el, "select,input"), at = monthOf.exec(set.map(value).join(" ") || textContent(el));
		if (!at || !hasSize(el) || boxOf(el).x < -1000 || style(el).visibility === "hidden") continue;
		const cells = innermost(queryAll(el, "*").filter((x) => /^\s*\d\d?\s*$/.test(textContent(x))));
		const all = cells.map((x) => [Number(textContent(x)), outward(x).slice(0, 3).map((up) =>
			[style(up).backgroundColor, attribute(up, "class"), ariaOf(up, "selected")]).join().replace(/\d/g, "")]);
		const first = all.findIndex(([day]) => day === 1), after = all.findIndex(([day], i) => i > first && day === 1);
		const month = all.slice(first, after < 0 ? undefined : after);
		return {month: `${at[1]} ${at[2]}`, ...month.length > 27 && {days: month.filter(([, look]) =>
			month.filter(([, other]) => other === look).length === 1).map(([day]) => day)}};
	}
	return null;
}

// callCalendar focuses a field again, once no calendar is shown, and reports whether that can bring one: {comes}. One may
// stay beside its field.
async function callCalendar(el) {
	focused()?.blur(); // the next field may have one
	const comes = await eventually(() => !calendarNow(), 1000) || queryDocument(calendars).some((x) => {
		const a = rectOf(x), b = rectOf(el);
		return /absolute|fixed/.test(style(x).position) && a.left < b.right && b.left < a.right && a.top < b.bottom + 20 && b.top < a.bottom + 20;
	});
	if (comes) focus(el);
	return {comes};
}

// calendar reports whether the calendar that has come, if one has, shows a date that is wanted: {shown, month}.
async function calendar(el, wanted) {
	const isWanted = (now) => wanted.some(({month, day}) => now?.month === month && (now.days?.includes(day) ?? true));
	await frame();
	const now = hasCalendars() && await eventually(calendarNow, 250, isWanted);
	return {shown: !now || isWanted(now), month: now?.month};
}

// parts returns the segments of a group, or its fields of one character.
const parts = (el) => {
	const all = segments(el), inner = all.length ? all : boxes(el);
	return {parts: inner.map((part) => ({...describe(part), held: holds(part),
		max: Number(part.max || ariaOf(part, "valuemax"))})), near: elements(el).filter((x) => x !== el &&
		(isField(x) || isBox(x))).slice(0, 10).map(describe)};
};

// track returns where a slider can be set by the pointer: the box of its track, and the point of its handle, if it has
// one; null if the pointer does not reach it.
function track(el) {
	const own = boxOf(el), x = own.x + own.width / 2, y = own.y + own.height / 2, hit = pointedAt(x, y);
	if (!hit || !within(el, hit)) return null;
	const long = (box) => Math.max(box.width, box.height) > 3 * Math.min(own.width, own.height);
	const up = outward(el).find((at) => long(boxOf(at)));
	if (!up) return null;
	const box = boxOf(up);
	return {...box.toJSON(), x, y, handle: up !== el, upright: ariaOf(el, "orientation") === "vertical" || box.height > box.width,
		low: Number(ariaOf(el, "valuemin")), high: Number(ariaOf(el, "valuemax") || 100)};
}

// scroller returns the element that scrolls with the document: the body, in a document without a doctype.
const scroller = () => scrollingElement() || rootElement();

// scrollEnd scrolls an element, or without one the document, to its top or bottom.
const scrollEnd = (el, end) => {
	el ||= scroller();
	el.scrollTop = end === "top" ? 0 : el.scrollHeight;
	return {};
};

// area returns the box of an element in the document; without one that of the document.
const area = (el) => {
	const {scrollWidth, scrollHeight} = scroller(), {x, y, width, height} = el ? rectOf(el) :
		{x: -scrollX, y: -scrollY, width: Math.max(scrollWidth, 1), height: scrollHeight};
	if (el && !(width && height)) return notReady(el, {why: "it has no size"});
	return {x: x + scrollX, y: y + scrollY, width, height, scroll: {x: scrollX, y: scrollY}, ratio: devicePixelRatio};
};

// marks returns the boxes of controls, in pixels of the view: those in it, or all.
function marks({all = false, limit = 300} = {}) {
	const found = [];
	for (const el of allElements()) {
		if (!visible(el) || !(isControl(el) || clickable(el)) || !rendered(el)) continue;
		const {x, y, width, height} = boxOf(el);
		if (!width || !height || !all && !inView(el)) continue;
		if (found.push({ref: refer(el), x, y, width, height}) === limit) break;
	}
	return {marks: found, scroll: {x: scrollX, y: scrollY}, width: innerWidth};
}

const announce = (el) => {
	for (const type of ["input", "change"]) dispatch(el, new Event(type, {bubbles: true, composed: type === "input"}));
};

// choose selects the options of a select by label or value, once they are there. The events are not trusted: no input opens
// the list. It returns what was chosen before the page knew of it. A list with a placeholder alone is waited for longer.
async function choose(el, wanted, timeout, patience) {
	const list = isSelect(el) ? el : el.list;
	if (!list) return notReady(el, {why: "it is not a select"});
	for (const began = clock(); ; await pause(30)) {
		const options = [...list.options], pick = wanted.map((word) => optionsOf(el, word));
		const at = pick.findIndex(([o]) => !o || disabled(o));
		if (at >= 0 && !pick[at].length && clock() - began < (options[1] ? timeout : patience)) {
			focus(el, false); // some are filled then
			continue;
		}
		if (at >= 0) return noOption(el, wanted[at], pick[at][0], options);
		const twice = pick.find((all) => all.length > 1), chosen = pick.flat();
		if (twice) return alike(el, wanted[pick.indexOf(twice)], twice);
		if (wanted.length > 1 && !el.multiple) return failed("not_accepted", {...describe(el), why: "it takes one option"});
		if (list === el) for (const o of options) o.selected = chosen.includes(o);
		else assign(el, chosen[0].value);
		const held = value(el);
		if (list === el) announce(el);
		return {value: clip(held, 200)};
	}
}

// optionsOf returns the options of a native list that a word means: those that show it or have that reference, or else
// that value, or else nearly that label.
const optionsOf = (el, word) => {
	const all = [...(el.list || el).options];
	const is = [(o) => o.label === word || refOf.get(o) === word, (o) => o.value === word, (o) => equal(o.label, word)];
	return all.filter(is.find((is) => all.some(is)) || is[2]);
};

// alike returns the failure of a list in which several options are what is wanted.
const alike = (el, wanted, all) => ({failure: {...describe(el), ...several(all, 5).failure,
	why: `${quoted(clip(wanted, 40))} of ${describeLine(el)}`}});

// noOption returns the failure of a list in which an option is not there, or disabled, and names those that are.
const noOption = (el, wanted, found, options) => ({failure: {...describe(el), code: found ? "not_accepted" : "no_match",
	why: (found ? "it has disabled " : "it has no option ") + quoted(clip(wanted, 40)), near: options
		.filter((o) => !disabled(o)).slice(0, 10).map((o) => ({role: "option", name: clip(name(o), 40) +
		(ariaOf(o, "expanded") === "false" ? " / .." : "")}))}});

const isOption = (el) => /^(option|menuitem|treeitem|radio$)/.test(role(el));

// body returns what a person sees of a control: around one without a size, what holds it.
const body = (el) => boxOf(el).width > 9 && boxOf(el).x >= 0 || !parent(el) ? el : body(parent(el));

// offer is what is known of a list that is to be opened: the texts of the options that are wanted, the elements that were
// options or showed one of these texts before, what its control showed and had chosen, whether the texts are a path, and
// the option that was found for each of them.
let offer = {words: [], before: [], shows: "", was: [], isPath: false, found: new Map()};

function offering(el, words, again) {
	const {before} = offer, tags = tagsOf(el);
	offer = {words, before: [], shows: showsNow(el), isPath: again, found: new Map(),
		was: tags.length ? tags.map(({text}) => text) : [value(el) || clean(textIn(drawing(el)))]};
	offer.before = again ? before : shownOptions().filter((x) => !passes(x)).map((x) => ({el: x, spot: spotOf(x)}));
	return {};
}

// passes reports whether an element lets the pointer through, as options do while their list is unfolded or goes away.
const passes = (el) => style(el).pointerEvents === "none";

// spotOf tells whether an element that was made again is another one.
const spotOf = (el) => {
	const {x, y, width, height} = rectOf(el);
	return [tag(el), x + scrollX, y + scrollY, width, height].join();
};

// showsNow returns what a person sees that is chosen in a list.
const showsNow = (el) => clean(`${textIn(drawing(el))} ${value(el)}`);

const isNamed = (el, word) => refOf.get(el) === word ||
	[name(el), textContent(el), attribute(el, "data-value"), attribute(el, "value")].some((text) => equal(text, word)) ||
	rootNode(el) instanceof ShadowRoot && role(el) === "option" && elements(el).some((inner) => equal(ownText(inner), word));

// shownOptions returns what a person sees that is an option, or has the text of one that is wanted.
const shownOptions = () => {
	const texts = textSearch("", (all) => offer.words.some((word) => equal(all, word)));
	return [...new Set([...fitting(isOption), ...texts])].filter((x) => shown(x) && !isFolded(x) && boxOf(x).right > 0 &&
		boxOf(x).bottom + scrollY > 0 && checkVisibility(x, {opacityProperty: true}));
};

// isFolded reports whether nothing of an element is seen since what is around it has no size.
const isFolded = (el) => Boolean(el) && (style(el).overflow !== "visible" && !hasSize(el) || isFolded(parent(el)));

// tagsOf returns what is chosen in a list of several that shows it around the control: {text, at}, which what is at removes.
function tagsOf(el) {
	const removes = (x) => /^[^\p{L}\p{N}]*x?$/iu.test(textContent(x)) && hasSize(x) && (role(x) === "button" || style(x).cursor === "pointer");
	for (const up of outward(el).slice(0, 5)) {
		const all = queryAll(up, "*"), tags = [];
		if (all.some((x) => x !== el && isField(x) && shown(x))) break;
		for (const at of all.filter((x) => removes(x) && !removes(parent(x)))) {
			const tag = outward(at).find((x) => !removes(x) && clean(textContent(x)));
			if (tag && tag !== up && within(up, tag) && !within(tag, el) && queryAll(tag, "*").length < 9) {
				tags.push({at, text: clean(textContent(tag).replace(textContent(at), ""))});
			}
		}
		if (tags.length) return tags;
	}
	return [];
}

// ownOptions returns the options in a control, and in what it says that it controls.
const ownOptions = (el) => {
	const inside = [el, ...queryAll(el, "*")], lists = inside.flatMap(controlled);
	const active = inside.flatMap((x) => byIds(x, "aria-activedescendant")).map(parent);
	return {lists, mine: [...new Set([el, ...lists, ...active].flatMap(elements))].filter(isOption)};
};

// newOptions returns what was not seen before the list of a control was opened, and may be an option of it: options first,
// and what is near. What was seen all the time belongs to the page.
function newOptions(el) {
	const now = shownOptions(), spots = now.map(spotOf), {x, y} = boxOf(body(el));
	const far = (at) => Math.hypot(boxOf(at).x - x, boxOf(at).y - y);
	offer.before = offer.before.filter((old) => now.includes(old.el) || spots.includes(old.spot));
	return now.filter((at, i) => !within(el, at) && !offer.before.some((old) => old.el === at || old.spot === spots[i]))
		.sort((a, b) => isOption(b) - isOption(a) || far(a) - far(b));
}

// option waits for an option of a list that the page has made: {ref}, {done} if it is chosen, {closed} if no list is open.
async function option(el, wanted, timeout) {
	const tag = tagsOf(el).find(({text}) => equal(text, wanted));
	if (tag) return {...describe(tag.at), done: true};
	for (const begun = clock(), until = begun + timeout; ; await pause(30)) {
		readAgain();
		const {lists, mine} = ownOptions(el), open = mine.some(hasSize), same = mine.filter((x) => isNamed(x, wanted));
		const sized = innermost(same.filter(hasSize)); // of two lists of a control, one is not shown
		const expanded = ariaOf(el, "expanded"), native = nativeOf(el), searched = !sized.length && (same.length || !open);
		const fresh = searched || expanded === "false" ? newOptions(el) : [], others = searched ? fresh : [];
		const all = open ? mine.filter(hasSize) : others.filter(isOption), named = others.filter((x) => isNamed(x, wanted));
		const at = sized[0] || named.find((x) => lists.some((list) => within(parent(list), x))) || named[0];
		// Some say all the time that they are closed: what is shown since it was opened is open.
		const closed = expanded === "false" ? !fresh.some((x) => (mine.length ? mine.includes(x) : isOption(x)) && !passes(x)) : expanded !== "true" && !at && !all.length;
		if (!closed && sized.length > 1) return alike(el, wanted, sized);
		const isThrough = at && isControl(at) && passes(at);
		if (!closed && isThrough && clock() < begun + unfoldTime) continue;
		if (!closed && at && !isThrough && !isOff(at)) {
			offer.found.set(wanted, at);
			// An item of a tree has others in it. Some libraries mark as selected what is only highlighted.
			const text = role(at) === "treeitem" && queryAll(at, "*").find((x) => equal(textContent(x), wanted) && hasSize(x));
			const isOpenBranch = role(at) === "treeitem" && isOpen(at) && wanted !== offer.words.at(-1);
			return {...describe(text || at), done: offer.isPath ? isOpenBranch : native ? optionsOf(native, wanted).some((o) => o.selected) :
				matches(at, "[aria-checked=true],[aria-multiselectable=true] [aria-selected=true]")};
		}
		const box = !closed && !at && clock() > until && timeout > unfoldTime && !typesIn(el) && all[0] && outward(all[0]).find((up) => rolls(up, 2));
		if (box && await roll(box, () => elements(box).some((x) => isNamed(x, wanted)))) return option(el, wanted, 0);
		if (!closed && at || clock() > until) {
			const search = focused();
			return {closed, opener: refer(body(el)), ...search && search !== el && typesIn(search) && {search: refer(search)}, ...noOption(el, wanted, !closed && at, all)};
		}
	}
}

// isOff reports whether an option is disabled, or looks so.
const isOff = (el) => disabled(el) || style(el).cursor === "not-allowed";
const unfoldTime = 500;

// taken waits until a list has the options that are wanted. It returns those that are {missing} for all that is known, and
// the {extra} ones: that are chosen, too, where {several} can be.
function taken(el, timeout) {
	return eventually(() => {
		readAgain();
		const {words, found, shows: before} = offer, shows = showsNow(el), native = nativeOf(el);
		const own = ownOptions(el).mine, all = own.length ? own : newOptions(el).filter(isOption);
		const named = (word) => [...all.filter((x) => isNamed(x, word)), found.get(word)].filter((x) => x && isConnected(x));
		const marks = (word) => named(word).map((x) => ariaOf(x, "checked") || ariaOf(x, "selected"));
		const inMany = (x) => hasSize(x) && closest(x, "[aria-multiselectable=true]");
		const tags = tagsOf(el), isTag = (word) => tags.some(({text}) => equal(text, word));
		const isMissing = (word) => {
			if (isTag(word)) return false;
			const behind = native ? optionsOf(native, word) : [], known = marks(word), at = named(word);
			if (behind.some((o) => o.selected) || known.includes("true") ||
				!at.some(inMany) && [word, ...at.map(name)].some((text) => text && says(shows, text))) return false;
			return behind.length > 0 || known.includes("false") || at.some((x) => matches(x, "[aria-haspopup=true]")) || role(el) === "combobox" && shows === before && shows !== "";
		};
		const missing = words.filter(isMissing);
		// One that only marks what is highlighted has no two that are marked.
		const extra = words.every(isTag) ? tags.filter(({text}) => !words.some((word) => equal(text, word))).map(({at}) => at) :
			!words.every((word) => marks(word).includes("true")) ? [] : all.filter((x) => inMany(x) && !isOff(x) &&
			matches(x, "[aria-checked=true],[aria-selected=true]") && !words.some((word) => isNamed(x, word)) &&
			(!native || [...native.selectedOptions].some((o) => isNamed(x, o.label) || isNamed(x, o.value))));
		return {missing, extra: extra.map(describe), several: words.some((word) => named(word).some(inMany)), shows,
			...shows !== before && {was: offer.was},
			added: words.every(isTag) ? extra.length > 0 : native ? native.selectedOptions.length > words.length : before !== "" && before !== clean(name(el)) && shows !== before &&
				says(shows, before)};
	}, timeout, (now) => !now.missing.length);
}

// assign sets what a field holds: that of a native picker, which no typing can, or what it held before it did not take
// what was given.
function assign(el, text, leave) {
	if (isProxy(el)) {
		focus(el);
		if (text) clipboard(el, "paste", text);
		else press(el, "Delete", 46, "");
	} else if (isInput(el)) {
		const {set} = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(el), "value");
		set.call(el, text);
		announce(el);
		if (leave !== undefined) set.call(el, text); // the page may have formed it
	} else if (holdsText(el)) {
		focus(el);
		document.execCommand(text ? "insertText" : "delete", false, text);
	}
	if (leave) el.blur();
	return {value: holds(el)};
}

// settle waits until the document has not changed for a while: {settled}, false when the time is up before.
async function settle({quiet = 100, timeout = 2000} = {}) {
	const now = {last: clock()}, stop = watch(() => { now.last = clock(); });
	try {
		return {settled: await calm(now, {quiet, still: quiet, timeout})};
	} finally {
		stop();
	}
}

// until waits for a text, or for what a locator means: {found}, false when the time is up before. line is where the text
// is, if it says more than the text, or what stands there when it is gone.
let leaving = {};
async function until({text: wanted, url, locator, within: outer = {}, gone = false, timeout = 5000}) {
	const end = clock() + timeout;
	for (;;) {
		const begun = clock();
		readAgain();
		const found = locator && locate(locator);
		if (found?.failure?.code === "invalid") return found;
		const text = wanted !== undefined && (outer.in ? (locate(outer).elements || []).map(textIn).join("\n") : pageText());
		const there = wanted !== undefined ? says(text, wanted) :
			url !== undefined ? location.href.includes(url) :
			(found.elements || []).some((el) => rendered(el) && visible(el));
		if (there && gone && text && leaving.text !== wanted) leaving = {text: wanted, el: textSearch(wanted, says)[0]};
		if (there !== gone) {
			const left = gone && text && leaving.text === wanted && leaving.el;
			return {found: true, line: left ? clip(clean(textIn(left)), 90) : there && text ? lineWith(text, wanted) : ""};
		}
		const took = clock() - begun; // on a long page much, of which the page has the same for itself
		if (begun + 2 * took >= end) return {...where(), found: false, near: text ? nearTexts(text, wanted) : []};
		await pause(Math.max(50, took));
	}
}

// says reports whether a text includes another one, without regard to case and white space.
const says = (text, part) => lower(text).includes(lower(part));

// lineWith returns the line of a text that includes a part of it and more, from the part on if it is long.
const lineWith = (text, part) => {
	const line = clean(text.split("\n").find((line) => says(line, part)) || "");
	if (line.length <= clean(part).length) return "";
	return line.length > 90 ? clip(line.slice(line.toLowerCase().indexOf(lower(part))), 90) : line;
};

// pageText returns what the page says, in shadow roots, too.
function pageText() {
	const parts = [textIn(rootElement())];
	const addRoots = (all) => {
		for (const el of all) {
			const root = shadowRoot(el);
			if (!root || excluded(el)) continue;
			for (const node of childNodes(root)) {
				parts.push(isText(node) ? node.data : isElement(node) && !excluded(node) ? textIn(node) : "");
			}
			addRoots(queryRoot(root, "*"));
		}
	};
	addRoots(queryDocument("*"));
	return parts.join("\n");
}

// nearTexts returns the lines of the page that have most words in common with a text that is not there, at most two;
// if none has any, what the page reports in headings and alerts.
const nearTexts = (text, wanted) => {
	const near = ranked(text.slice(0, 300_000).split("\n").map(clean).filter(Boolean), (line) => line, wanted);
	const reports = () => fitting((el) => /^(heading|alert|status)$/.test(role(el)))
		.map((el) => clean(textIn(el))).filter(Boolean);
	return (near.length ? near : reports()).slice(0, 2).map((line) => clip(line, 100));
};

// ---- What a page stores, and how fast it was

// stored returns entries of a storage of the document's origin, and sets one if it has a value.
function stored({area = "local", key = "", value: text} = {}) {
	const here = {url: location.href, now: Date.now() / 1000, entries: []};
	try {
		const store = area === "session" ? sessionStorage : localStorage, most = key ? 100000 : 60;
		if (typeof text === "string") store.setItem(key, text);
		cookiesOf(); // waits until Chrome has stored what scripts have set
		const keys = key ? [key] : Array.from({length: Math.min(store.length, 200)}, (_, i) => store.key(i));
		here.entries = keys.map((name) => [name, store.getItem(name)]).filter(([, text]) => text !== null)
			.map(([name, text]) => ({key: clip(name, 200), value: clip(text, most),
				...text.length > most && {length: text.length}}));
	} catch (error) {
		here.error = error.message;
	}
	return here;
}

// vitals returns how fast the document was, as the browser has recorded it.
async function vitals() {
	const read = (type) => new Promise((done) => {
		const all = [], observer = new PerformanceObserver((list) => all.push(...list.getEntries()));
		observer.observe({type, buffered: true});
		pause(60).then(() => {
			all.push(...observer.takeRecords());
			observer.disconnect();
			done(all);
		});
	});
	const [paints, largest, shifts, tasks] = await Promise.all(
		["paint", "largest-contentful-paint", "layout-shift", "longtask"].map(read));
	const [navigation] = performance.getEntriesByType("navigation"), last = largest.at(-1);
	const ms = (time) => Math.round(time || 0);
	return {ttfb: ms(navigation?.responseStart), fcp: ms(paints.find((p) => p.name === "first-contentful-paint")?.startTime),
		lcp: ms(last?.startTime), ...last?.element && {lcp_element: describeLine(last.element)},
		shifts: shifts.filter((shift) => !shift.hadRecentInput).map(({startTime, value}) => [startTime, value]), long_tasks: tasks.length,
		longest_task: ms(Math.max(0, ...tasks.map((task) => task.duration))), load: ms(navigation?.loadEventEnd)};
}

const describeLine = (el) => {
	const {role: own, name: named, ref} = describe(el);
	return `${own} ${quoted(named)} ${ref}`;
};

// ofElement are functions of an element, which their callers give by its reference. One that is not in the document any
// more is gone.
const ofElement = {focusOn, choose, assign, held, callCalendar, calendar, parts, track, offering, option, taken, spot, nests, reach, guard, scrollEnd, area};
for (const [key, f] of Object.entries(ofElement)) {
	ofElement[key] = (ref, ...args) => {
		const found = ref ? one({ref}) : {};
		return found.failure ? {...found, gone: true} : f(found.el, ...args);
	};
}

for (const [key, f] of Object.entries({...ofElement, snapshot, text, find, get, aim, landed, settle,
	until, place, frames, frameAt, stored, vitals, hold, begin, end, effect, late, painted, chosen, hosts,
	adopt, marks, takesDrop})) {
	exports[key] = function (...args) {
		documentLetters = letters(this.number - 1);
		readAgain();
		partial = false;
		deadline = clock() + (args.find((arg) => arg?.time)?.time ?? 20_000);
		return f(...args);
	};
}

// also calls an export, and returns beside its value what late returns: reading that takes no call of its own.
exports.also = async function (key, ...args) {
	documentLetters = letters(this.number - 1);
	const before = late();
	return {late: before, value: await exports[key].apply(this, args)};
};
