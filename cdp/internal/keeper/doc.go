// Package keeper holds a browser open between the short lives of command-line
// processes: a process of its own owns Chrome, and everybody else talks to it over
// a unix socket.
//
// # Life
//
// Start finds the keeper of a browser name or starts one, by running this program
// again with PARLEY_CHILD=keeper; that program's main must then call Main before
// anything else. The keeper ends when it is asked to, when its Chrome ends, when
// nobody used it for the idle limit, on SIGTERM, and when its folder was removed.
//
// # Files
//
// All are in one folder, 0700 and owned by the user:
//
//	NAME.lock     held (flock) from before the start until after the end; its content
//	              is the keeper's pid. Whoever can take it knows that the rest is stale
//	NAME.sock     the socket; elsewhere when its path would be too long, see short
//	NAME.json     who keeps what: pids, product, profile
//	NAME.log      what the keeper and Chrome said
//	NAME.profile  Chrome's user data directory, unless the user gave his own
//	NAME.tmp      Chrome's temporary directory; elsewhere as NAME.sock
//
// A killed keeper leaves them; every command that meets them removes them first.
//
// # Callers
//
// Each request says who asks. The person at the command line may use everything that is
// in the browser. Anybody else has the targets that he opened, and learns of no others;
// a plugin has a browser context of its own, whose pages dial through a proxy in the
// keeper and with it through the host's guard, within what the plugin was granted. What
// a caller may call at all was decided by the host before.
//
// # Wire, version 3
//
// A frame is the length of its payload, 4 bytes, big endian, then the payload, one
// JSON object. The first frame of each side is its hello:
//
//	{"parley_keeper":3,"version":"0.1.0"}                                   the client
//	{"parley_keeper":3,"version":"0.1.0","browser":"default","pid":7, ...}  the keeper
//
// The hello's frame form and its fields parley_keeper and replace hold for every
// version, past and to come. A client that meets a keeper of another version says
// hello with "replace":true, which ends that keeper whatever its version, and starts
// its own. After the hellos the client sends requests and may send several at once:
//
//	{"id":1,"op":"call","by":{"name":"cli"},"body":{"method":"Page.reload","timeout_ms":5000}}
//	{"op":"cancel","id":1}
//
// and the keeper answers each id once, in any order, a stream's items before:
//
//	{"id":1,"result":{...}}
//	{"id":1,"error":{"code":"timeout","message":"..."}}
//	{"id":2,"item":{"seq":9,"t":1700000000000,"browser":"default","target":"..","method":"..","params":{}}}
//
// The answer to a plugin has also what its pages have dialled since the one before, "touched":["http:GET:http://example.com"].
//
// A call that asks for pieces has a result above 1 MiB sent, before its answer, in frames
// of another form: a zero byte, the id in 8 bytes, big endian, and a piece of the result.
//
// Operations are call, open, targets, activate, close_target, close, status, events
// and listen; their bodies and results are the exported types of this package. The
// first item of listen is {"listening":true}: nothing after it is missed. A client
// that closes its connection abandons its calls.
package keeper
