// Package keeper keeps a browser open between the short-lived processes of the command line. A process of its
// own, the keeper, owns Chrome; clients talk to it over a Unix socket.
//
// # Structure
//
// The keeper has rooms, each a package that knows only the ones below it. A request enters each once, from top to
// bottom, and its result comes back the same way:
//
//	keeper  the process: [Start], [Stop], [Main], its lock and its files; the wire, with [Client] at one end and the
//	        server at the other
//	page    the verbs of the plugin page: looks at pages, acts on them, and what these cause
//	verb    what callers ask for: commands, pages, scripts, input, secrets, rules for requests, uploads, states
//	tenant  what a session may use: owners know to which session targets, events and downloads belong; tenancy gives
//	        each session a scope, and a plugin's own a proxy; set-ups are what a session has set up for its pages
//	event   the journals of events, what is recorded and redacted, streams, downloads
//	target  the targets, their sessions, documents and dialogs; which domains are enabled; why a command cannot be sent
//	        or does not return
//	mux     the wire to the browser: it numbers commands, and delivers replies; the lock of all state
//
// What the lower ones have to say, such as an event or a new target, they say to an interface of their own (Observer).
// Package api has what the keeper and its clients exchange, and package scan finds values in JSON.
//
// # Life cycle
//
// [Start] connects to the keeper of a browser name. If there is none, it starts one: it runs this program again
// with PARLEY_CHILD=keeper, and the program's main must then call [Main] before anything else. A keeper exits on
// request, when Chrome exits, when the last session closes, after the idle limit without a request, on SIGTERM, and
// when its folder is removed.
//
// # Files
//
// All files are in one folder with mode 0700 that the user owns:
//
//	NAME.lock     locked (flock) from before the start until after the exit; contains the
//	              keeper's pid. If a process can lock it, the other files are stale
//	NAME.sock     the socket; in another folder if its path would be too long
//	NAME.json     pids, product and profile of the browser
//	NAME.log      the log of the keeper and Chrome's stderr
//	NAME.profile  Chrome's user data directory, unless the user gave one
//	NAME.tmp      Chrome's temporary directory, and what pages download; in another folder as NAME.sock
//
// A killed keeper leaves its files behind. Every command that finds such files removes them first.
//
// # Sessions
//
// Each request names its caller and a session. Everything in the browser belongs to a session: a target to the one in
// which it was opened, an event or a download to the one of its page. A session uses and sees only what belongs to it.
// The person at the command line without a session uses the browser's default context, and can name any target by its
// id. Every other session has a scope, which is a browser context of its own with a current target. A plugin that was
// not granted its caller's session has one of its own; the pages of that dial through a proxy in the keeper, which
// passes every connection to the host's egress guard with the plugin's grants. Which commands a caller may call at all,
// the host has decided before.
//
// A session ends when it is closed. What was opened over a caller's connection, such as that of an MCP client, is
// closed a grace after the connection has ended, or the process that served it (see connections). When nothing is left
// in the browser, the keeper exits.
//
// # Wire format, version 11
//
// Frames have the format of package wire. The first frame of each side is its hello:
//
//	{"parley_keeper":11,"version":"0.1.0"}                                            the client
//	{"parley_keeper":11,"version":"0.1.0","pid":7,"chrome":"/usr/bin/chromium", ...}  the keeper
//
// The hello and its fields parley_keeper and replace are the same in every version since 7. A client that finds a
// keeper of another version sends a hello with "replace":true, which ends that keeper whatever its version, and starts
// its own. After the hellos the client sends requests (call), also several at once:
//
//	{"id":1,"op":"call","by":{"name":"cli"},"timeout_ms":5000,"body":{"method":"Page.reload"}}
//	{"id":1,"op":"cancel"}
//
// The keeper responds to each id once (done), in any order. A stream's items (event) come before its response:
//
//	{"id":1,"result":{...}}
//	{"id":1,"error":{"code":"timeout","message":"..."}}
//	{"id":2,"item":{"seq":9,"t":1700000000000,"browser":"default","target":"..","method":"..","params":{}}}
//
// The record of the end of a request, whose params lack the URL, also has "url", and a download that the keeper has
// cancelled says why in "note".
//
// A response to a plugin also has the rights that its pages have used since the previous response, as
// "touched":["http:GET:http://example.com"].
//
// A call names domains in enable, such as ["DOM","CSS"], that the keeper enables for it. The response says which it did
// enable: those that it disabled again, and those that stay enabled because ids or settings of the call end with them,
// as "enabled":{"off":["CSS"],"kept":["DOM"]}.
//
// If a call asks for pieces, a result above 1 MiB is sent before its response (piece): the id in 8 bytes, big endian,
// and a piece of the result.
//
// The operations are call, open, close_target, close, stop, status, sessions, events, listen, save_state, load_state,
// type, script, uploads and end_connection, the verbs of cdp that need no host, and the verbs of page, such as
// page.click. Their bodies and results are the types of package api. The first item of listen is {"listening":true};
// the stream is complete from then on. A client that closes its connection abandons its calls.
package keeper
