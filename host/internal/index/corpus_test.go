package index

import "strings"

// tool makes a document from one line: name | brief | parameters | text. A leading ! in the brief marks a deprecated
// tool, a leading ~ an experimental one; lists are separated by ";".
func tool(line string, phrases ...string) Doc {
	f := strings.Split(line, "|")
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	d := Doc{Name: f[0], Brief: strings.TrimLeft(f[1], "!~"), Deprecated: strings.HasPrefix(f[1], "!"),
		Experimental: strings.HasPrefix(f[1], "~"), Effect: "read"}
	group, name := splitName(d.Name)
	d.Group = strings.TrimSuffix(group, ".")
	if len(f) > 2 && f[2] != "" {
		for _, p := range strings.Split(f[2], ";") {
			words := strings.Fields(p)
			d.Params = append(d.Params, Param{Name: words[0], Enum: words[1:]})
		}
	}
	d.Signature = name + "()"
	if len(f) > 3 {
		d.Text = f[3]
	}
	for _, p := range phrases {
		switch kind, text, _ := strings.Cut(p, ":"); kind {
		case "alias":
			d.Aliases = append(d.Aliases, text)
		case "task":
			d.Tasks = append(d.Tasks, text)
		case "keyword":
			d.Keywords = append(d.Keywords, text)
		case "effect":
			d.Effect = text
		case "category":
			d.Category = text
		}
	}
	return d
}

// browserDocs represents a large plugin with browser tools.
var browserDocs = []Doc{
	tool("Network.getCookies | Returns all browser cookies for the current URL | urls", "alias:list cookies",
		"task:read the cookies of a page"),
	tool("Network.getAllCookies | !Returns all browser cookies"),
	tool("Network.setCookie | Sets a cookie with the given cookie data; may overwrite equivalent cookies | "+
		"name;value;url;sameSite Strict Lax None", "effect:write"),
	tool("Network.deleteCookies | Deletes browser cookies with matching name and url | name;url", "effect:destructive"),
	tool("Network.clearBrowserCookies | Clears browser cookies", "effect:destructive"),
	tool("Network.clearBrowserCache | Clears browser cache", "effect:destructive"),
	tool("Network.setBlockedURLs | ~Blocks URLs from loading | urls", "task:block ads"),
	tool("Network.setExtraHTTPHeaders | Specifies whether to always send extra HTTP headers with the requests | headers"),
	tool("Network.setUserAgentOverride | Allows overriding user agent with the given string | " +
		"userAgent;acceptLanguage;platform"),
	tool("Network.emulateNetworkConditions | Activates emulation of network conditions | "+
		"offline;latency;downloadThroughput;connectionType none cellular2g cellular3g wifi", "task:simulate slow internet",
		"task:go offline"),
	tool("Network.getResponseBody | Returns content served for the given request | requestId",
		"task:read what the server answered"),
	tool("Page.navigate | Navigates current page to the given URL | url;referrer;transitionType link typed", "alias:goto",
		"task:open a website", "effect:write"),
	tool("Page.reload | Reloads given page optionally ignoring the cache | ignoreCache", "alias:refresh", "effect:write"),
	tool("Page.captureScreenshot | Capture page screenshot | format jpeg png webp;quality;captureBeyondViewport",
		"task:take a picture of the page", "alias:full page screenshot"),
	tool("Page.printToPDF | Print page as PDF | landscape;displayHeaderFooter;paperWidth",
		"task:save the page as a pdf file"),
	tool("Page.handleJavaScriptDialog | Accepts or dismisses a JavaScript initiated dialog (alert, confirm, prompt, or "+
		"onbeforeunload) | accept;promptText", "task:close an alert box"),
	tool("Page.addScriptToEvaluateOnNewDocument | Evaluates given script in every frame upon creation | source;worldName"),
	tool("Page.setGeolocationOverride | !Overrides the Geolocation Position or Error | latitude;longitude"),
	tool("Page.startScreencast | ~Starts sending each frame using the screencastFrame event | format jpeg png"),
	tool("Page.getLayoutMetrics | Returns metrics relating to the layouting of the page, such as viewport bounds and " +
		"scale"),
	tool("Page.enable | Enables page domain notifications"),
	tool("Network.enable | Enables network tracking, network events will now be delivered to the client"),
	tool("Runtime.enable | Enables reporting of execution contexts creation"),
	tool("Runtime.evaluate | Evaluates expression on global object | expression;returnByValue;awaitPromise",
		"alias:run javascript", "task:javascript execution"),
	tool("Runtime.callFunctionOn | Calls function with given declaration on the given object | "+
		"functionDeclaration;objectId", "task:run a javascript function on an object"),
	tool("Runtime.terminateExecution | ~Terminate current or next JavaScript execution"),
	tool("Runtime.getProperties | Returns properties of a given object | objectId;ownProperties"),
	tool("Debugger.evaluateOnCallFrame | Evaluates expression on a given call frame | callFrameId;expression",
		"task:javascript execution in a paused frame"),
	tool("Debugger.setBreakpoint | Sets JavaScript breakpoint at a given location | location;condition"),
	tool("Debugger.resume | Resumes JavaScript execution"),
	tool("DOM.querySelector | Executes querySelector on a given node | nodeId;selector",
		"task:find an element by css selector"),
	tool("DOM.querySelectorAll | Executes querySelectorAll on a given node | nodeId;selector"),
	tool("DOM.getDocument | Returns the root DOM node (and optionally the subtree) to the caller | depth;pierce"),
	tool("DOM.removeNode | Removes node with given id | nodeId", "effect:destructive"),
	tool("DOM.setFileInputFiles | Sets files for the given file input element | files;nodeId", "task:upload a file"),
	tool("DOM.getOuterHTML | Returns node's HTML markup | nodeId", "task:get the html of the page"),
	tool("Input.dispatchMouseEvent | Dispatches a mouse event to the page | type mousePressed mouseReleased mouseMoved "+
		"mouseWheel;x;y;button", "task:click on a button", "effect:write"),
	tool("Input.dispatchKeyEvent | Dispatches a key event to the page | type keyDown keyUp rawKeyDown char;key;text",
		"task:press a key"),
	tool("Input.insertText | ~Emulates inserting text that doesn't come from a key press, such as an emoji keyboard or "+
		"an IME | text", "task:type text into a field"),
	tool("Emulation.setGeolocationOverride | Overrides the Geolocation Position or Error | latitude;longitude;accuracy",
		"task:fake the gps position"),
	tool("Emulation.clearGeolocationOverride | Clears the overridden Geolocation Position and Error"),
	tool("Emulation.setDeviceMetricsOverride | Overrides the values of device screen dimensions | "+
		"width;height;deviceScaleFactor;mobile", "task:emulate a mobile phone"),
	tool("Emulation.setCPUThrottlingRate | Enables CPU throttling to emulate slow CPUs | rate"),
	tool("Emulation.setEmulatedMedia | Emulates the given media type or media feature for CSS media queries | "+
		"media;features", "task:dark mode"),
	tool("Accessibility.getFullAXTree | ~Fetches the entire accessibility tree for the root Document | depth"),
	tool("Storage.getCookies | Returns all browser cookies | browserContextId"),
	tool("Storage.setCookies | Sets given cookies | cookies"),
	tool("DOMStorage.getDOMStorageItems | ~ | storageId", "task:read local storage"),
	tool("WebAuthn.addVirtualAuthenticator | Creates and adds a virtual authenticator | options",
		"task:passkey without a device"),
	tool("HeapProfiler.takeHeapSnapshot | ~ | reportProgress", "task:find a memory leak"),
	{Name: "Network.requestWillBeSent", Kind: "event", Group: "Network",
		Brief: "Fired when page is about to send HTTP request"},
	{Name: "Page.loadEventFired", Kind: "event", Group: "Page", Brief: "Fired when the page has loaded"},
	{Name: "Network.Cookie", Kind: "type", Group: "Network", Brief: "Cookie object",
		Params: []Param{{Name: "httpOnly"}, {Name: "sameSite"}}},
}

// textDocs, issueDocs and audioDocs represent small third-party plugins.
var textDocs = []Doc{
	tool("hash | Checksum of a text | algorithm md5 sha1 sha256;text", "alias:sha256sum", "category:generation"),
	tool("encode_base64 | Encode text as base64 | text", "category:generation"),
	tool("decode_base64 | Decode base64 to text | data", "category:generation"),
	tool("replace | Replace matches of a pattern in a text | pattern;with;text", "category:correction"),
	tool("find | Find matches of a regular expression | pattern;text", "category:query", "alias:grep"),
	tool("diff | Compare two texts line by line | a;b", "category:review"),
	tool("count | Count words, lines and characters | text", "alias:wc", "category:query"),
	tool("json-to-yaml | Convert JSON to YAML | json", "category:generation"),
	tool("format_json | Indent JSON | json;indent", "alias:prettify json", "category:generation"),
}

var issueDocs = []Doc{
	tool("issue.list | List issues of a repository | repo;state open closed all", "task:show open bugs"),
	tool("issue.create | Open a new issue | repo;title;body", "effect:write"),
	tool("issue.add_comment | Comment on an issue | repo;number;body", "effect:write"),
	tool("pull.list | List pull requests | repo;state"),
	tool("pull.merge | Merge a pull request | repo;number;method merge squash rebase", "effect:write"),
	tool("file.get_contents | Read a file of a repository | repo;path;ref"),
	tool("file.search_code | Search code in all repositories | query;language"),
}

var audioDocs = []Doc{
	tool("speak | Say a text aloud | text;voice kal awb rms slt;speed", "task:text to speech", "keyword:tts"),
	tool("voices | List the voices"),
	tool("wetter | 天気予報を取得する | city | Wettervorhersage für Zürich"),
	tool("convert | Convert between audio formats | input;format wav mp3 ogg"),
}
