package cdp

import (
	"encoding/json"
	"sync"

	"github.com/parley-tools/parley/manifest"
)

// verbs are the tools for the browser itself, next to the protocol's commands. They are built on demand and must not be
// modified.
var verbs = sync.OnceValue(func() []manifest.Tool {
	return []manifest.Tool{
		{
			Name: "open", Category: "action", Effect: manifest.EffectWrite,
			Reach: manifest.ReachMachine, URL: []string{"/url"}, Files: []string{"/user_data_dir", "/chrome"}, OpenWorld: true,
			Docs: manifest.Docs{
				Brief: "Open a page, starting Chrome or attaching if needed",
				Standard: "Opens url in a new page, which becomes the current target, and waits for its load event. Without a " +
					"browser open it starts Chrome, headless unless headed, or attaches to a running one.",
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
"title":{"type":"string","description":"Its title"}}}`),
			Positional: []string{"url"}, ExitCodes: []string{"navigation_failed"},
			Examples: []manifest.Example{
				{Title: "Open a page", Kind: "minimal", Params: json.RawMessage(`{"url":"https://example.com/"}`)},
				{Title: "Open an empty page in a window", Kind: "common", Params: json.RawMessage(`{"headed":true}`)},
				{Title: "Attach to a running Chrome", Kind: "full",
					Params: json.RawMessage(`{"attach":"9222","url":"https://example.com/"}`)},
			},
			Tasks: []string{"open a page", "open a web page", "start the browser", "launch chrome", "go to a url",
				"visit a website", "attach to a running chrome"},
			Keywords: []string{"browser", "launch", "start", "goto", "visit"}, Aliases: []string{"launch", "goto"},
			When: "before anything else", WhenNot: "to move the current page: use Page.navigate",
			Related: []manifest.Related{{Tool: "cdp.close", Why: "ends the browser"},
				{Tool: "cdp.Page.navigate", Why: "moves the current page"}},
		},
		{
			Name: "close", Category: "action", Effect: manifest.EffectDestructive,
			Reach: manifest.ReachBrowser, Idempotent: true,
			Docs: manifest.Docs{
				Brief: "Close the browser, or one page with the option target",
				Standard: "Ends the browser, its keeper and its temporary profile; nothing is left running. With the option " +
					"target only that page is closed.",
			},
			Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"properties":{
"all":{"type":"boolean","default":false,"description":"Close every open browser"}}}`),
			Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["closed"],"properties":{
"closed":{"type":"array","items":{"type":"string"},"description":"Browsers or pages that were closed"}}}`),
			Positional: []string{"all"},
			Examples: []manifest.Example{
				{Title: "Close the browser", Kind: "minimal", Params: json.RawMessage(`{}`)},
				{Title: "Close every browser", Kind: "full", Params: json.RawMessage(`{"all":true}`)},
			},
			Tasks:    []string{"close the browser", "quit chrome", "close a tab", "end the browser"},
			Keywords: []string{"quit", "exit", "stop", "kill"},
		},
		{
			Name: "status", Category: "query", Effect: manifest.EffectRead,
			Reach: manifest.ReachPage, Idempotent: true,
			Docs: manifest.Docs{
				Brief: "Tell what the browser is and how it does",
				Standard: "Says which browser is open, since when, what it runs, why it is that one, where its log is, and " +
					"after how long unused it ends. With no browser open it says so and ends well.",
			},
			Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"properties":{
"all":{"type":"boolean","default":false,"description":"Every browser, also stale ones"}}}`),
			Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["browsers"],"properties":{
"browsers":{"type":"array","items":{"type":"object"},"description":"One object a browser: name, product, executable, why, pids, targets, idle limit, log"}}}`),
			Positional: []string{"all"},
			Examples: []manifest.Example{
				{Title: "Ask for the default browser", Kind: "minimal", Params: json.RawMessage(`{}`)},
				{Title: "Ask for every browser", Kind: "full", Params: json.RawMessage(`{"all":true}`)},
			},
			Tasks: []string{"is a browser open", "which chrome is running", "browser status"},
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
"targets":{"type":"array","items":{"type":"object"},"description":"index, id, type, url, title, current, crashed, owner, parent, opener, dialog"}}}`),
			Examples: []manifest.Example{{Title: "List the targets", Kind: "minimal", Params: json.RawMessage(`{}`)}},
			Tasks:    []string{"list open tabs", "which pages are open", "list tabs"},
			Keywords: []string{"tabs", "pages", "windows"},
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
		},
		{
			Name: "events", Category: "query", Effect: manifest.EffectRead,
			Reach: manifest.ReachPage,
			Docs: manifest.Docs{
				Brief: "Read events that the browser has sent",
				Standard: "Returns kept events by sequence number, oldest first, and says how many were dropped. Read on with " +
					"since set to last_seq.",
			},
			Params: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"properties":{
"match":{"type":"array","items":{"type":"string","minLength":1},"description":"Event names such as Network.* or Page.loadEventFired; default all"},
"since":{"type":"integer","minimum":0,"default":0,"description":"Last sequence number already seen"},
"limit":{"type":"integer","minimum":1,"maximum":10000,"default":100,"description":"How many at most"},
"until":{"type":"string","minLength":1,"description":"In a stream: end after this event"},
"max":{"type":"integer","minimum":1,"description":"In a stream: end after this many"},
"timeout_ms":{"type":"integer","minimum":1,"description":"In a stream: end after this long"}}}`),
			Returns: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{
"events":{"type":"array","items":{"type":"object"},"description":"seq, t, browser, target, method, params"},
"dropped":{"type":"integer","description":"How many were lost since"},
"last_seq":{"type":"integer","description":"Read on from here"},
"end":{"type":"string","description":"Why a stream ended: until, timeout, max or closed"}}}`),
			Examples: []manifest.Example{
				{Title: "Read what is there", Kind: "minimal", Params: json.RawMessage(`{}`)},
				{Title: "Read requests on from event 120", Kind: "full",
					Params: json.RawMessage(`{"match":["Network.requestWillBeSent"],"since":120,"limit":50}`)},
			},
			Tasks: []string{"read console messages", "see network requests that were made", "what events happened",
				"read console errors", "which requests failed", "wait for an event"},
			When:     "after its domain was turned on, as by Network.enable",
			WhenNot:  "to wait for an event: stream the events until it arrives",
			Keywords: []string{"console", "log", "listen", "stream"},
		},
	}
})
