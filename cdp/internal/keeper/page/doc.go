// Package page has the verbs of the plugin page: what agents do with web pages. Its verbs show a page in few tokens,
// act on elements as a person does, and report each effect of an act once. A verb is one request of a client: it runs
// the functions of page.js, which is in an isolated world of each document, sends input, and waits by the events that
// the browser sends.
//
// A click goes through these functions, in this order:
//
//	Pages.Run (page.go) enters the session, finds the page and its turn, and decodes the parameters
//	click (act/act.go) makes the events of the mouse
//	pointAt (act/act.go) begins, sends, finishes, and tries again what missed
//	begin (act/act.go) calls begin of page.js in the frame of the element: it waits until the element can be acted on,
//	watches the document, and guards the element from clicks that would miss it
//	Verbs.SendInput (package verb) sends the events
//	finish (act/effects.go) calls end of page.js, which returns when the document is quiet, reads the events since the
//	begin, and waits for the requests and navigations that are under way
//	describe (act/effects.go) makes the answer from what was seen
package page
