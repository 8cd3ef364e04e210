package cdp

import (
	"encoding/json"

	"github.com/parley-tools/parley/manifest"
)

// verbs are the tools for the browser itself, next to the protocol's commands. They must not be modified. All values
// are constant, so that the compiler lays them out and a process that needs none of them does not build any.
var verbs = []manifest.Tool{
	{
		Name: "open", Category: "action", Effect: manifest.EffectWrite,
		Reach: manifest.ReachMachine, URL: []string{"/url"}, Files: []string{"/user_data_dir", "/chrome"}, OpenWorld: true,
		Docs: manifest.Docs{
			Brief: "Open a page, starting Chrome or attaching if needed",
			Standard: "Opens url in a new page, which becomes the current target, and waits for its load event, or as the " +
				"option wait says (load, idle, none). Without a browser open it starts Chrome, headless unless headed, or " +
				"attaches to a running one.",
			Full: "The browser stays open, owned by a keeper process, until close or until nobody used it for its idle " +
				"time. Give several browsers names with the option browser. As root Chrome runs without its sandbox, and " +
				"the answer's warnings say so.",
		},
		Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"properties":{
"url":{"type":"string","minLength":1,"description":"Page to open, such as https://example.com/; default about:blank","x-aliases":["uri","href","link","address","location","page"]},
"headed":{"type":"boolean","default":false,"description":"Show a window"},
"attach":{"type":"string","minLength":1,"description":"Use a running Chrome instead: a port, http:// or ws:// address"},
"user_data_dir":{"type":"string","minLength":1,"description":"Profile folder to use and keep; default a temporary one"},
"chrome":{"type":"string","minLength":1,"description":"Path of the browser to start"}}}`),
		Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["browser","target","url","title"],"properties":{
"browser":{"type":"string","description":"Name of the browser"},
"target":{"type":"string","description":"Id of the page"},
"url":{"type":"string","description":"Where it ended up"},
"title":{"type":"string","description":"Its title"},
"status":{"type":"integer","description":"HTTP status of the page; absent for other URLs than http"}}}`),
		Positional: []string{"url"}, ExitCodes: []string{"navigation_failed"},
		Examples: []manifest.Example{
			{Title: "Open a page", Kind: "minimal", Params: json.RawMessage(`{"url":"https://example.com/"}`)},
			{Title: "Open an empty page in a window", Kind: "common", Params: json.RawMessage(`{"headed":true}`)},
			{Title: "Start a certain Chrome with a profile that stays", Kind: "common", Params: json.RawMessage(
				`{"url":"https://example.com/","chrome":"/usr/bin/chromium","user_data_dir":"/home/ada/profile"}`)},
			{Title: "Attach to a running Chrome", Kind: "full",
				Params: json.RawMessage(`{"attach":"9222","url":"https://example.com/"}`)},
		},
		Tasks: []string{"open a page", "open a page and wait until it is loaded", "open a web page", "start the browser",
			"launch chrome", "go to a url", "visit a website", "attach to a running chrome"},
		Keywords: []string{"browser", "launch", "start", "goto", "visit"}, Aliases: []string{"launch", "goto"},
		When: "no page is open yet, or you want another one", WhenNot: "the current page goes to a URL: Page.navigate",
		Related: []manifest.Related{{Tool: "cdp.close", Why: "ends the browser"},
			{Tool: "cdp.Page.navigate", Why: "moves the current page"}},
	},
	{
		Name: "close", Category: "action", Effect: manifest.EffectWrite,
		Reach: manifest.ReachContext, Idempotent: true,
		Docs: manifest.Docs{
			Brief: "Close the browser, or one page with the option target",
			Standard: "Closes what this session has opened, and the browser once no other session has anything open. With " +
				"the option target only that page is closed.",
			Full: "A session is an MCP connection, or has the name that a call at the command line gives; without a name " +
				"it is the browser's default context. When the browser ends, its keeper and temporary profile end with it, " +
				"and nothing is left running. Only the command line can close everything with all.",
		},
		Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"properties":{
"all":{"type":"boolean","default":false,"description":"Close every browser with what all sessions have open; command line only"}}}`),
		Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["closed"],"properties":{
"closed":{"type":"object","required":["targets","contexts"],"description":"What was closed","properties":{
"targets":{"type":"array","items":{"type":"string"},"description":"Ids of the pages"},
"contexts":{"type":"array","items":{"type":"string"},"description":"Ids of the browser contexts"},
"browser":{"type":"string","description":"Name of the browser, if it has ended"},
"browsers":{"type":"array","items":{"type":"string"},"description":"With all: names of the browsers"}}}}}`),
		Positional: []string{"all"},
		Examples: []manifest.Example{
			{Title: "Close what this session opened", Kind: "minimal", Params: json.RawMessage(`{}`)},
			{Title: "Close every browser", Kind: "full", Params: json.RawMessage(`{"all":true}`)},
		},
		Tasks:    []string{"close the browser", "quit chrome", "close a tab", "end the browser"},
		Keywords: []string{"quit", "exit", "stop", "kill"},
		When:     "you are done with what you opened", WhenNot: "you close one of several pages: Target.closeTarget",
		Related: []manifest.Related{{Tool: "cdp.targets", Why: "lists what is open"}},
	},
	{
		Name: "status", Category: "query", Effect: manifest.EffectRead,
		Reach: manifest.ReachPage, Idempotent: true,
		Docs: manifest.Docs{
			Brief: "Tell what the browser is and how it does",
			Standard: "Says which browser is open, since when, what it runs, why it is that one, which sessions use it, " +
				"where its log is, and after how long unused it ends. With no browser open it says so and ends well.",
		},
		Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"properties":{
"all":{"type":"boolean","default":false,"description":"Every browser, also stale ones"}}}`),
		Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["browsers"],"properties":{
"browsers":{"type":"array","items":{"type":"object","properties":{"browser":{"type":"string"},"mode":{"type":"string"},"product":{"type":"string"},"protocol":{"type":"string"},"executable":{"type":"string"},"why":{"type":"string"},"headed":{"type":"boolean"},"profile":{"type":"string"},"keeper_pid":{"type":"integer"},"chrome_pid":{"type":"integer"},"targets":{"type":"array","items":{"type":"object"}},"log":{"type":"string"}}},"description":"One object a browser"}}}`),
		Positional: []string{"all"},
		Examples: []manifest.Example{
			{Title: "Ask for the default browser", Kind: "minimal", Params: json.RawMessage(`{}`)},
			{Title: "Ask for every browser", Kind: "full", Params: json.RawMessage(`{"all":true}`)},
		},
		Tasks: []string{"is a browser open", "which chrome is running", "browser status"},
		When:  "you want to know which browser runs and who uses it", WhenNot: "you want its pages: cdp.targets",
		Related: []manifest.Related{{Tool: "cdp.Browser.getVersion", Why: "only the version"}},
	},
	{
		Name: "targets", Category: "query", Effect: manifest.EffectRead,
		Reach: manifest.ReachContext, Idempotent: true,
		Docs: manifest.Docs{
			Brief: "List pages, frames, workers and popups",
			Standard: "Lists the targets of the browser with id, type, URL and title; the current one is marked. Calls take " +
				"the option target: an id, a part of the URL, or the index.",
		},
		Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"properties":{}}`),
		Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["targets"],"properties":{
"targets":{"type":"array","items":{"type":"object","required":["index","id","type","url","title"],"properties":{"index":{"type":"integer"},"id":{"type":"string"},"type":{"type":"string"},"url":{"type":"string"},"title":{"type":"string"},"current":{"type":"boolean"},"crashed":{"type":"boolean"},"owner":{"type":"string"},"parent":{"type":"string"},"opener":{"type":"string"},"since":{"type":"integer"},"dialog":{"type":"object"}}},"description":"Pages, frames and workers; since is an event"}}}`),
		Examples: []manifest.Example{{Title: "List the targets", Kind: "minimal", Params: json.RawMessage(`{}`)}},
		Tasks:    []string{"list open tabs", "which pages are open", "list tabs"},
		Keywords: []string{"tabs", "pages", "windows"},
		When:     "you want to know what is open, or need a target for a call",
		WhenNot:  "you want all browser contexts: Target.getTargets",
		Related:  []manifest.Related{{Tool: "cdp.activate", Why: "makes one of them current"}},
	},
	{
		Name: "activate", Category: "action", Effect: manifest.EffectWrite,
		Reach: manifest.ReachContext, Idempotent: true,
		Docs: manifest.Docs{
			Brief:    "Make a page the current target",
			Standard: "Brings a page to the front; calls that name no target go to it from then on.",
		},
		Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"required":["target"],"properties":{
"target":{"type":"string","minLength":1,"description":"Id, part of the URL, or index of a target"}}}`),
		Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["target"],"properties":{
"target":{"type":"string","description":"Id of the page that is current now"},"url":{"type":"string","description":"Its URL"},"title":{"type":"string","description":"Its title"}}}`),
		Positional: []string{"target"},
		Examples: []manifest.Example{{Title: "Go to the second target", Kind: "minimal",
			Params: json.RawMessage(`{"target":"1"}`)}},
		Tasks:    []string{"switch to another tab", "focus a page", "select a tab"},
		Keywords: []string{"switch", "focus", "tab"},
		When:     "later calls should go to another page", WhenNot: "one call goes there: its option target",
		Related: []manifest.Related{{Tool: "cdp.targets", Why: "lists the pages"}},
	},
	{
		Name: "events", Category: "query", Effect: manifest.EffectRead,
		Reach: manifest.ReachPage,
		Docs: manifest.Docs{
			Brief: "Read requests, console and other events",
			Standard: "Recorded from a page's start: requests, console, exceptions, downloads. Newest first; with since, " +
				"the oldest after it first.",
			Full: "A record has url where the params of a request's end lack it. Browser.downloadProgress names the file " +
				"of a completed download in filePath; it is removed with the browser. " +
				"Events of other domains are recorded while a caller has enabled them. Records have no cookies, " +
				"Authorization headers and bodies: Network.getResponseBody gets the body of a recent request by its " +
				"requestId. The newest events of each kind are kept; dropped says how many are lost. In a browser that " +
				"Parley attached to, a page is recorded from its first use on.",
		},
		Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"properties":{
"match":{"type":"array","items":{"type":"string","minLength":1},"description":"Event names or patterns: Network.*","x-aliases":["method","methods","event","events","name","names","pattern","patterns","filter"]},
"url":{"type":"string","minLength":1,"description":"Part of the URL of request or page","x-aliases":["url_part","url_contains","href","contains"]},
"status":{"type":["integer","string"],"description":"404 or 5xx; failed: 4xx, 5xx, no response","x-aliases":["status_code","statusCode","http_status","code"]},
"since":{"type":"integer","minimum":0,"description":"Read on after this seq"},
"limit":{"type":"integer","minimum":1,"maximum":10000,"default":100,"description":"How many at most"},
"until":{"type":"string","minLength":1,"description":"Streams: last event"},
"max":{"type":"integer","minimum":1,"description":"Streams: how many"},
"timeout_ms":{"type":"integer","minimum":1,"description":"Streams: how long"}}}`),
		Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{
"events":{"type":"array","items":{"type":"object","required":["seq"],"properties":{"seq":{"type":"integer"},"t":{"type":"number"},"browser":{"type":"string"},"target":{"type":"string"},"method":{"type":"string"},"params":{"type":"object"}}},"description":"Newest first; with since, oldest first"},
"dropped":{"type":"integer","description":"Lost since"},
"last_seq":{"type":"integer","description":"The next since"},
"end":{"type":"string","description":"Of a stream: why"}}}`),
		Examples: []manifest.Example{
			{Title: "Read the newest", Kind: "minimal", Params: json.RawMessage(`{}`)},
			{Title: "Read which requests failed", Kind: "common", Params: json.RawMessage(`{"status":"failed"}`)},
			{Title: "Find requests by URL", Kind: "common",
				Params: json.RawMessage(`{"match":["Network.responseReceived"],"url":"/api/"}`)},
			{Title: "Wait up to a minute for the end of a download", Kind: "common", Params: json.RawMessage(
				`{"match":["Browser.download*"],"until":"Browser.downloadProgress","max":100,"timeout_ms":60000}`)},
			{Title: "Read console messages and exceptions", Kind: "common",
				Params: json.RawMessage(`{"match":["Runtime.consoleAPICalled","Runtime.exceptionThrown"]}`)},
			{Title: "Read requests on from event 120", Kind: "full",
				Params: json.RawMessage(`{"match":["Network.requestWillBeSent"],"since":120,"limit":50}`)},
		},
		Tasks: []string{"read console messages", "see network requests that were made", "what events happened",
			"read console errors", "which requests failed", "wait for an event", "why did a request fail",
			"read javascript errors", "which files were downloaded", "find the status of a request"},
		When:     "you want to know what pages did; nothing has to be enabled",
		WhenNot:  "you wait for what a call causes: its option until",
		Related:  []manifest.Related{{Tool: "cdp.Network.getResponseBody", Why: "gets the body of a response"}},
		Keywords: []string{"console", "log", "listen", "stream", "network", "exceptions", "downloads", "history"},
	},
	{
		Name: "state", Category: "action", Effect: manifest.EffectWrite,
		Reach: manifest.ReachBrowser, URL: []string{"/origins"},
		Docs: manifest.Docs{
			Brief: "Save or load a login: cookies and storage of origins",
			Standard: "Saves cookies, localStorage and the current page's sessionStorage of origins under a name, and loads " +
				"them into this session. Answers with counts, never with values.",
			Full: "Cookies are those that would be sent to the origins. load replaces what the session has of them; " +
				"without origins it loads all that the state has, and sessionStorage only into the current page. Nothing " +
				"is requested from the sites. A state belongs to the user, the token or the version of a plugin that saved " +
				"it; for others the name is not found. Only the command line uses a state of another of its sessions without " +
				"confirmation. list shows the states, delete removes one; one that is not used for 30 days is removed.",
		},
		Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"required":["action"],"properties":{
"action":{"enum":["save","load","list","delete"],"description":"What to do","x-aliases":["op","operation","mode","command","do"]},
"name":{"type":"string","pattern":"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$","description":"Name of the state; all but list require it","x-aliases":["state","file","id","key"]},
"origins":{"type":"array","items":{"type":"string","minLength":1,"maxLength":300},"maxItems":32,"description":"Such as https://example.com; save requires them","x-aliases":["origin","urls","url","sites","domains"]}}}`),
		Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["action"],"properties":{
"action":{"type":"string","description":"What was done"},
"name":{"type":"string","description":"Of the state"},
"origins":{"type":"array","items":{"type":"string"},"description":"Saved or loaded"},
"cookies":{"type":"integer","description":"How many"},
"items":{"type":"integer","description":"Entries of storage"},
"states":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"session":{"type":"string"},"origins":{"type":"array","items":{"type":"string"}},"cookies":{"type":"integer"},"items":{"type":"integer"},"saved":{"type":"string"},"used":{"type":"string"}}},"description":"Of list"}}}`),
		Positional: []string{"action", "name"}, ExitCodes: []string{"protocol_error"},
		Examples: []manifest.Example{
			{Title: "Load what was saved as work", Kind: "minimal", Params: json.RawMessage(`{"action":"load","name":"work"}`)},
			{Title: "Save the login of a site", Kind: "common",
				Params: json.RawMessage(`{"action":"save","name":"work","origins":["https://example.com"]}`)},
			{Title: "List what was saved", Kind: "common", Params: json.RawMessage(`{"action":"list"}`)},
			{Title: "Load the part of two origins", Kind: "full", Params: json.RawMessage(
				`{"action":"load","name":"work","origins":["https://example.com","https://id.example.com"]}`)},
		},
		Tasks: []string{"save a login", "stay logged in", "restore cookies and local storage", "reuse a session of a site",
			"save cookies to a file", "load storage state", "log in once and reuse it"},
		Keywords:    []string{"cookies", "localstorage", "sessionstorage", "login", "persist", "restore", "auth"},
		When:        "you want to stay logged in across sessions",
		WhenNot:     "you read values: Storage.getCookies, DOMStorage.getDOMStorageItems",
		Related:     []manifest.Related{{Tool: "cdp.open", Why: "shows the site after a load"}},
		Limitations: []string{"IndexedDB, caches and service workers are not saved", "at most 16 MiB a state, 32 states"},
	},
	{
		Name: "type", Category: "action", Effect: manifest.EffectWrite,
		Reach: manifest.ReachPage,
		Docs: manifest.Docs{
			Brief: "Type a secret, such as a password, into the focused field",
			Standard: "Types a secret of the operator into the focused field, without showing it, if the policy binds the " +
				"secret to the origin of that frame. Focus the field before.",
			Full: "The policy names the origins: origins in [secrets.NAME]. The frame that has the focus, which may be one " +
				"in the page, must be of one of them when the text enters it; otherwise the call ends in 82 and nothing is " +
				"typed. A plugin needs the grant secret:NAME, too. The page gets input events, but no key events except " +
				"those of submit. The page can read what was typed.",
		},
		Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"required":["secret"],"properties":{
"secret":{"type":"string","minLength":1,"maxLength":64,"description":"Name of the secret, not its value","x-aliases":["name","secret_name","key"]},
"submit":{"type":"boolean","default":false,"description":"Press Enter afterwards","x-aliases":["enter","press_enter"]}}}`),
		Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["target","origin"],"properties":{
"target":{"type":"string","description":"Id of the page or frame"},
"origin":{"type":"string","description":"Of the frame that has the text"}}}`),
		Positional: []string{"secret"}, ExitCodes: []string{"protocol_error"},
		Examples: []manifest.Example{
			{Title: "Type a password into the focused field", Kind: "minimal", Params: json.RawMessage(`{"secret":"PASSWORD"}`)},
			{Title: "Type it and submit the form", Kind: "full",
				Params: json.RawMessage(`{"secret":"PASSWORD","submit":true}`)},
		},
		Tasks: []string{"type a password", "fill in a secret", "log in to a site with a stored password",
			"enter credentials without seeing them"},
		Keywords: []string{"password", "login", "credentials", "fill", "secret"},
		When:     "you log in without knowing the password",
		WhenNot:  "the text is not a secret: Input.insertText",
		Related: []manifest.Related{{Tool: "cdp.DOM.focus", Why: "focuses the field"},
			{Tool: "cdp.state", Why: "keeps the login"}},
	},
	{
		Name: "script", Category: "action", Effect: manifest.EffectWrite,
		Reach: manifest.ReachContext,
		Docs: manifest.Docs{
			Brief: "Call a function of a script that the calling plugin ships",
			Standard: "Runs in an isolated world of the page, or of the frame that the option target names: it sees the " +
				"document, and nothing that the page's own scripts have replaced. Only plugins can call it.",
			Full: "The manifest of the plugin names its scripts under scripts, with their digests. A script assigns its " +
				"functions to exports. It begins in each document once, at the first call, or with document_start at the " +
				"start of each document of the session, also of later pages, frames and popups, until the session ends; a " +
				"popup's first document of its opener's origin waits for the first call. The call has the effect read " +
				"where a shipped plugin calls a function that was reviewed as such. A grant has to name this tool: no " +
				"wildcard includes it.",
		},
		Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"required":["script"],"properties":{
"script":{"type":"string","pattern":"^[a-z][a-z0-9_-]{0,39}$","description":"Name of the script in the plugin's manifest","x-aliases":["name"]},
"call":{"type":"string","minLength":1,"maxLength":100,"description":"Function to call, an export of the script","x-aliases":["function","method"]},
"args":{"type":"array","maxItems":32,"description":"Its arguments; promises that it returns are awaited","x-aliases":["arguments"]},
"files":{"type":"array","maxItems":20,"items":{"type":"string"},"description":"Files for the file input that the function returns: handed on by the host, or downloads of the session"},
"closed_roots":{"type":"boolean","default":false,"description":"The function returns an array of elements: call the export adopt with each that has a closed shadow root, and with that root. The value is how many have one"},
"document_start":{"type":"boolean","default":false,"description":"Also run the script at the start of each document of the session from now on"}}}`),
		Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{
"target":{"type":"string","description":"Id of the page, or of the frame that is a target of its own"},
"frame":{"type":"string","description":"Id of the frame"},
"last_seq":{"type":"integer","description":"Newest event before the call, for since of cdp.events"},
"value":{"description":"What the function returned; absent if undefined"}}}`),
		Positional: []string{"script", "call"}, ExitCodes: []string{"script_error", "protocol_error"},
		Examples: []manifest.Example{
			{Title: "Call a function", Kind: "minimal", Params: json.RawMessage(`{"script":"page","call":"snapshot"}`)},
			{Title: "Call it with arguments", Kind: "common",
				Params: json.RawMessage(`{"script":"page","call":"find","args":[{"role":"button","name":"Sign in"}]}`)},
			{Title: "Give a file to the input that it returns", Kind: "common",
				Params: json.RawMessage(`{"script":"page","call":"fileInput","args":["Photo"],"files":["/data/photo.png"]}`)},
			{Title: "Look into closed shadow roots", Kind: "common",
				Params: json.RawMessage(`{"script":"page","call":"hosts","closed_roots":true}`)},
			{Title: "Run it in later documents, too", Kind: "full",
				Params: json.RawMessage(`{"script":"page","call":"snapshot","document_start":true}`)},
		},
		Tasks: []string{"run a plugin's script in a page", "call a function in an isolated world",
			"inject a script into every page"},
		Keywords: []string{"content", "inject", "isolated", "world", "javascript", "evaluate"},
		When:     "a plugin works on the document",
		WhenNot:  "the script is your own: Runtime.evaluate, Page.addScriptToEvaluateOnNewDocument",
		Related:  []manifest.Related{{Tool: "cdp.Runtime.evaluate", Why: "runs an expression of the caller"}},
	},
	{
		Name: "input", Category: "action", Effect: manifest.EffectWrite,
		Reach: manifest.ReachPage,
		Docs: manifest.Docs{
			Brief: "Send several input events in one request",
			Standard: "Sends all events in one request, without waiting between them. They have the fields of " +
				"Input.dispatchMouseEvent, dispatchKeyEvent, dispatchTouchEvent or insertText; type selects which.",
			Full: "drag, alone, presses the mouse at x and y, moves it to toX and toY and releases it; a drag that the page " +
				"leaves to the browser, as of a draggable element, ends in a drop there. Between the press and the release " +
				"of a click nothing else gets in. The page gets trusted events. Events with an unknown type or field are " +
				"refused before any is sent.",
		},
		Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"required":["events"],"properties":{
"events":{"type":"array","minItems":1,"maxItems":1000,"description":"Events in their order","items":{"type":"object","additionalProperties":false,"required":["type"],"properties":{
"type":{"enum":["mousePressed","mouseReleased","mouseMoved","mouseWheel","keyDown","keyUp","rawKeyDown","char","touchStart","touchEnd","touchMove","touchCancel","insertText","drag"]},
"x":{"type":"number"},"y":{"type":"number"},"toX":{"type":"number"},"toY":{"type":"number"},"button":{"enum":["none","left","middle","right","back","forward"]},"buttons":{"type":"integer"},"clickCount":{"type":"integer"},
"deltaX":{"type":"number"},"deltaY":{"type":"number"},"modifiers":{"type":"integer"},"pointerType":{"enum":["mouse","pen"]},"force":{"type":"number"},
"key":{"type":"string"},"code":{"type":"string"},"text":{"type":"string","maxLength":1000000},"unmodifiedText":{"type":"string"},"keyIdentifier":{"type":"string"},
"windowsVirtualKeyCode":{"type":"integer"},"nativeVirtualKeyCode":{"type":"integer"},"location":{"type":"integer"},"autoRepeat":{"type":"boolean"},"isKeypad":{"type":"boolean"},
"commands":{"type":"array","items":{"type":"string"}},"timestamp":{"type":"number"},
"touchPoints":{"type":"array","items":{"type":"object","required":["x","y"]}}}}}}}`),
		Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["target","events"],"properties":{
"target":{"type":"string","description":"Id of the page or frame"},
"events":{"type":"integer","description":"How many were sent"},
"dragged":{"type":"boolean","description":"The browser itself dragged, and dropped"}}}`),
		ExitCodes: []string{"protocol_error"},
		Examples: []manifest.Example{
			{Title: "Move the mouse", Kind: "minimal",
				Params: json.RawMessage(`{"events":[{"type":"mouseMoved","x":20,"y":20}]}`)},
			{Title: "Click", Kind: "common", Params: json.RawMessage(`{"events":[{"type":"mousePressed","x":20,"y":20,` +
				`"button":"left","clickCount":1},{"type":"mouseReleased","x":20,"y":20,"button":"left","clickCount":1}]}`)},
			{Title: "Drag", Kind: "common",
				Params: json.RawMessage(`{"events":[{"type":"drag","x":20,"y":20,"toX":200,"toY":90}]}`)},
			{Title: "Type and press Enter", Kind: "full", Params: json.RawMessage(`{"events":[{"type":"insertText",` +
				`"text":"hello"},{"type":"keyDown","key":"Enter","code":"Enter","text":"\r","windowsVirtualKeyCode":13},` +
				`{"type":"keyUp","key":"Enter","code":"Enter","windowsVirtualKeyCode":13}]}`)},
		},
		Tasks: []string{"click at a point in one call", "send several input events at once", "drag with the mouse",
			"type text and press enter"},
		Keywords: []string{"click", "mouse", "keyboard", "touch", "drag", "press"},
		When:     "events belong together, as in a click or a drag",
		WhenNot:  "you send a single event: Input.dispatchMouseEvent",
		Related:  []manifest.Related{{Tool: "cdp.type", Why: "types secrets"}},
	},
	{
		Name: "route", Category: "action", Effect: manifest.EffectWrite,
		Reach: manifest.ReachContext, Idempotent: true,
		Docs: manifest.Docs{
			Brief: "Mock, block or delay requests of this session by rules",
			Standard: "rules replaces the session's rules, add puts some before them. They apply to present and later pages, " +
				"frames and popups until the session ends; the first that matches decides. Without parameters it only lists " +
				"them; rules [] removes all.",
			Full: "mock answers with status, headers and body, and sends nothing; block fails the request; delay sends it " +
				"after delay_ms, which also delays the other two. What is sent is subject to the grants of a plugin as " +
				"before. While a session has rules, Fetch.enable is refused in its pages.",
		},
		Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"properties":{
"rules":{"type":"array","maxItems":64,"description":"All rules of the session; url: * and ? are wildcards; body or body_base64","x-aliases":["routes","rule"],"items":{"$ref":"#/definitions/rule"}},
"add":{"type":"array","maxItems":64,"description":"Rules to put first; they replace those of the same url and method","items":{"$ref":"#/definitions/rule"}},
"remove":{"type":"array","maxItems":64,"items":{"type":"string"},"description":"Patterns of rules to remove"}},
"definitions":{"rule":{"type":"object","additionalProperties":false,"required":["url","action"],"properties":{
"url":{"type":"string","minLength":1,"maxLength":2000},
"method":{"type":"string","pattern":"^[A-Za-z]{1,20}$"},
"action":{"enum":["mock","block","delay"]},
"status":{"type":"integer","minimum":200,"maximum":599},
"headers":{"type":"object","additionalProperties":{"type":"string"}},
"body":{"type":"string"},
"body_base64":{"type":"string","contentEncoding":"base64"},
"delay_ms":{"type":"integer","minimum":0,"maximum":60000}}}}}`),
		Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["rules"],"properties":{
"rules":{"type":"array","items":{"type":"object","required":["url","action","requests"],"properties":{"url":{"type":"string"},"method":{"type":"string"},"action":{"type":"string"},"requests":{"type":"integer"}}},"description":"The rules now, and how many requests they matched"}}}`),
		ExitCodes: []string{"protocol_error"},
		Examples: []manifest.Example{
			{Title: "List the rules", Kind: "minimal", Params: json.RawMessage(`{}`)},
			{Title: "Block images", Kind: "common", Params: json.RawMessage(`{"rules":[{"url":"*.png","action":"block"}]}`)},
			{Title: "Mock an API", Kind: "full", Params: json.RawMessage(`{"rules":[{"url":"*/api/user","method":"GET",` +
				`"action":"mock","headers":{"Content-Type":"application/json"},"body":"{\"name\":\"Ada\"}"}]}`)},
			{Title: "Add a rule and remove another", Kind: "common",
				Params: json.RawMessage(`{"add":[{"url":"*/ads/*","action":"block"}],"remove":["*.png"]}`)},
			{Title: "Remove all rules", Kind: "common", Params: json.RawMessage(`{"rules":[]}`)},
		},
		Tasks: []string{"mock an api response", "block requests to a url", "delay a request", "stub the network",
			"simulate a slow api", "block ads or trackers"},
		Keywords:    []string{"intercept", "mock", "stub", "fetch", "network", "fulfill", "abort"},
		When:        "a page should get other responses",
		WhenNot:     "you decide on each request yourself: Fetch.enable",
		Related:     []manifest.Related{{Tool: "cdp.Fetch.enable", Why: "pauses requests for the caller"}},
		Limitations: []string{"requests that workers send by themselves are not matched", "at most 64 rules, 2 MiB"},
	},
}
