package environment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/internal/lazy"
)

// exchange is a request and its outcome, according to the recorded events.
type exchange struct {
	seq             int64 // number of the request's record, which makes the exchange's id
	requestID       string
	target          string
	frame           string // id of the frame that sent it, "" for a worker
	document        bool   // it requests the document of the page itself
	kind            string
	sent            request
	began, ended    float64 // seconds, on the browser's clock
	wall            float64 // when it began, in seconds since the Unix epoch
	answer                  // so far
	head            float64 // the bytes of its headers, as they came; 0: not known
	err             string
	cancelled, over bool
}

// failed reports whether the request failed so that the page lacks something. The icon that a browser requests by
// itself does not count.
func (x *exchange) failed() bool {
	return (x.Status >= 400 || x.err != "" && !x.cancelled) && !strings.HasSuffix(x.sent.URL, page.OwnIcon)
}

func (x *exchange) isSocket() bool { return x.kind == "WebSocket" }

func (x *exchange) id() string { return "r" + strconv.FormatInt(x.seq, 10) }

func (x *exchange) milliseconds() int64 {
	if x.ended <= x.began {
		return 0
	}
	return int64(math.Round((x.ended - x.began) * 1000))
}

// outcome returns the status with a text, or why there is no status.
func (x *exchange) outcome(text string) string {
	switch {
	case x.err != "":
		return x.err
	case x.Status == 0:
		return "pending"
	}
	return strings.TrimSpace(strconv.Itoa(x.Status) + " " + text)
}

// in names the frame that sent the request, "" for the page itself.
func (x *exchange) in(v *page.Visit) string {
	if x.frame == "" || x.frame == v.Page.ID {
		return ""
	}
	url := v.URL(page.Frame(x.frame))
	if url == "" || url == x.sent.URL {
		return "a frame"
	}
	return "frame " + page.Clip(url, 120)
}

// line describes an exchange in few tokens.
func (x *exchange) line(v *page.Visit) string {
	text := fmt.Sprintf("%s %s %s %s %s", x.id(), x.outcome(""), x.sent.Method, page.Clip(x.sent.URL, 200),
		strings.ToLower(x.kind))
	if x.over {
		text += fmt.Sprintf(" %d ms", x.milliseconds())
	}
	if x.Length > 0 {
		text += fmt.Sprintf(" %d B", int64(x.Length))
	}
	if in := x.in(v); in != "" {
		text += " in " + in
	}
	return text
}

// networkParams are the parameters of an event of the domain Network, as far as exchanges show them.
type networkParams struct {
	RequestID    string  `json:"requestId"`
	FrameID      string  `json:"frameId"`
	URL          string  `json:"url"` // of a WebSocket
	ErrorMessage string  `json:"errorMessage"`
	Type         string  `json:"type"`
	Timestamp    float64 `json:"timestamp"`
	WallTime     float64 `json:"wallTime"`
	Canceled     bool    `json:"canceled"`
	ErrorText    string  `json:"errorText"`
	Blocked      string  `json:"blockedReason"`
	Length       float64 `json:"encodedDataLength"`
	Redirect     *answer `json:"redirectResponse"`
	Response     answer  `json:"response"`
	Request      request `json:"request"`
}

type request struct {
	URL, Method string
	Headers     map[string]string
	HasPostData bool
}

// answer is the response of a server.
type answer struct {
	Status     int               `json:"status"`
	StatusText string            `json:"statusText"`
	Protocol   string            `json:"protocol"`
	MimeType   string            `json:"mimeType"`
	Headers    map[string]string `json:"headers"`
	Length     float64           `json:"encodedDataLength"`
	Timing     timing            `json:"timing"`
}

var networkEvents = []string{"Network.requestWillBeSent", "Network.responseReceived", "Network.loadingFinished",
	"Network.loadingFailed", "Network.webSocketCreated", "Network.webSocketHandshakeResponseReceived",
	"Network.webSocketFrameError", "Network.webSocketClosed"}

// exchanges reads the requests of the page, the oldest first: those of its present document, or with all set every
// known one.
func exchanges(v *page.Visit, all bool) []*exchange {
	var found []*exchange
	open := map[string]*exchange{}
	for _, e := range page.History(v, networkEvents...) {
		var p networkParams
		_ = json.Unmarshal(e.Params, &p)
		key := e.Target + " " + p.RequestID
		x := open[key]
		document := p.Type == "Document" && p.FrameID == v.Page.ID
		if strings.HasPrefix(p.Request.URL, "chrome") && !document { // a load of the PDF viewer
			continue
		}
		if e.Method == "Network.requestWillBeSent" {
			if x != nil && p.Redirect != nil {
				x.answer, x.head, x.ended, x.over = *p.Redirect, p.Redirect.Length, p.Timestamp, true
			}
			x = &exchange{seq: e.Seq, requestID: p.RequestID, target: e.Target, kind: p.Type, sent: p.Request,
				began: p.Timestamp, wall: p.WallTime, frame: p.FrameID, document: document}
			open[key], found = x, append(found, x)
			if !strings.Contains(p.RequestID, ".") { // a document's or worker's script may end in another target
				open[p.RequestID] = x
			}
		} else if e.Method == "Network.webSocketCreated" {
			x = &exchange{seq: e.Seq, requestID: p.RequestID, target: e.Target, kind: "WebSocket",
				sent: request{Method: "GET", URL: p.URL}, wall: float64(e.Time) / 1000}
			open[key], found = x, append(found, x)
		} else if x = cmp.Or(x, open[p.RequestID]); x != nil { // otherwise its beginning is no longer stored
			x.target = e.Target
			x.follow(e.Method, &p)
		}
	}
	if all {
		return found
	}
	for i, x := range slices.Backward(found) {
		if x.document && (x.Status != 0 || x.err != "") && !x.cancelled && !isRedirect(x.Status) {
			for i > 0 && found[i-1].document && found[i-1].requestID == x.requestID {
				i--
			}
			return found[i:]
		}
	}
	return found
}

func isRedirect(status int) bool { return status >= 300 && status < 400 && status != 304 }

// follow adds a later record of the exchange.
func (x *exchange) follow(method string, p *networkParams) {
	x.began, x.ended = cmp.Or(x.began, p.Timestamp), p.Timestamp // the event of a new WebSocket has no time
	switch method {
	case "Network.responseReceived":
		x.answer, x.head, x.kind = p.Response, p.Response.Length, cmp.Or(p.Type, x.kind)
	case "Network.loadingFinished":
		x.over, x.Length = true, p.Length
	case "Network.webSocketHandshakeResponseReceived":
		x.answer = p.Response
	case "Network.webSocketFrameError":
		x.err = p.ErrorMessage
	case "Network.webSocketClosed":
		x.over = true
	case "Network.loadingFailed":
		x.over, x.cancelled = true, p.Canceled
		if !p.Canceled {
			x.err = cmp.Or(p.ErrorText, p.Blocked, "failed")
		} else if x.Status == 0 { // otherwise there was a response: a script that is an error, or one without a body
			x.err = "cancelled"
		}
	}
}

type requestsParams struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Failed  bool   `json:"failed"`
	All     bool   `json:"all"`
	Limit   int    `json:"limit"`
	Format  string `json:"format"` // har, or ""
	Bodies  bool   `json:"bodies"` // in the har
}

// requestList is the result of requests.
type requestList struct {
	Total   int             `json:"total"`
	Failed  int             `json:"failed,omitempty"`
	Text    string          `json:"text,omitempty"` // one line per request, failed ones first
	Request *requestDetails `json:"request,omitempty"`
	HAR     any             `json:"har,omitempty"`
	LeftOut string          `json:"left_out,omitempty"`
}

// requestDetails are one request.
type requestDetails struct {
	Request  string            `json:"request"`
	Outcome  string            `json:"outcome"`
	Frame    string            `json:"frame,omitempty"`
	Sent     map[string]string `json:"sent,omitempty"` // headers
	SentBody string            `json:"sent_body,omitempty"`
	Received map[string]string `json:"received,omitempty"`
	Body     string            `json:"body,omitempty"`     // base64 if it is not text
	Messages string            `json:"messages,omitempty"` // the last messages of a WebSocket, one per line
	Note     string            `json:"note,omitempty"`     // what is missing
}

// requests shows which requests the page has made.
func requests(v *page.Visit, p requestsParams) (*requestList, *api.Error) {
	found := exchanges(v, p.All || p.ID != "")
	if p.ID != "" {
		at := slices.IndexFunc(found, func(x *exchange) bool { return x.id() == p.ID })
		if at < 0 {
			return nil, page.Exit("no_match", p.ID+" is not a request that is known; page.requests lists them", nil)
		}
		return &requestList{Total: 1, Request: details(v, found[at])}, nil
	}
	found = slices.DeleteFunc(found, func(x *exchange) bool {
		return !strings.Contains(x.sent.URL, p.Address) || p.Failed && !x.failed()
	})
	r := &requestList{Total: len(found)}
	for _, x := range found {
		if x.failed() {
			r.Failed++
		}
	}
	if p.Format == "har" || p.Bodies {
		r.HAR, r.LeftOut = harOf(v, found, p.Bodies)
		return r, nil
	}
	slices.Reverse(found)
	slices.SortStableFunc(found, func(x, y *exchange) int { return cmp.Compare(rank(x), rank(y)) })
	var lines []string
	for _, x := range found[:min(len(found), p.Limit)] {
		lines = append(lines, x.line(v))
	}
	r.Text = strings.Join(lines, "\n")
	return r, nil
}

func rank(x *exchange) int {
	if x.failed() {
		return 0
	}
	return 1
}

// maxBody bounds a body in an answer, in bytes.
const maxBody = 20_000

// details adds the bodies to an exchange.
func details(v *page.Visit, x *exchange) *requestDetails {
	d := &requestDetails{Request: x.sent.Method + " " + x.sent.URL, Outcome: x.outcome(x.StatusText), Sent: x.sent.Headers,
		Received: x.Headers, Frame: x.in(v)}
	sent, received := x.bodies(v)
	d.SentBody, d.Note = page.Clip(sent.text, maxBody), sent.note("sent_body")
	if x.isSocket() {
		var lines []string
		for _, f := range v.Keeper.Events.Frames(x.target, x.requestID) {
			kind := ""
			if f.Opcode != textFrame {
				kind = "Base64 "
			}
			lines = append(lines, map[bool]string{true: "sent ", false: "received "}[f.Sent]+kind+page.Quote(f.Data))
		}
		d.Messages = strings.Join(lines, "\n")
		return d
	}
	if d.Body = page.Clip(received.text, maxBody); len(received.text) > maxBody {
		received.missing = fmt.Sprintf("the body has %d bytes, cdp.Network.getResponseBody {\"requestId\":%q} returns all",
			len(received.text), x.requestID)
	}
	d.Note = strings.Trim(d.Note+"; "+received.note("body"), "; ")
	return d
}

// body is a body of an exchange.
type body struct {
	text    string
	base64  bool
	missing string // why it is not there
}

// note says what is missing, or that a body in a field of the result is encoded differently from how it was sent.
func (b body) note(field string) string {
	if b.base64 && b.missing == "" {
		return field + " is in Base64"
	}
	return b.missing
}

// textFrame is the opcode of a text message of a WebSocket. Messages with other opcodes are in Base64.
const textFrame = 1

// bodies returns what was sent and received, as far as the browser still has it.
func (x *exchange) bodies(v *page.Visit) (sent, received body) {
	ask := func(method, what string) (b body) {
		var got struct {
			PostData, Body string
			Base64Encoded  bool
		}
		if err := v.Send(api.CallRequest{Target: x.target, Method: method,
			Params: scan.Marshal(page.Object{"requestId": x.requestID})}, &got); err != nil {
			b.missing = "the browser no longer has " + what
		}
		b.text, b.base64 = got.PostData+got.Body, got.Base64Encoded
		return b
	}
	if x.sent.HasPostData {
		sent = ask("Network.getRequestPostData", "the body that was sent")
	}
	if x.isSocket() || !x.over || x.Status == 0 || x.err != "" || isRedirect(x.Status) || x.Status == 204 {
		return sent, received
	}
	received = ask("Network.getResponseBody", "the body of the response")
	if x.cancelled {
		received.missing = "the page cancelled the request before all of the body had come"
	}
	if length := headerOf(x.Headers, "content-length"); received.text == "" && length != "" && length != "0" {
		received.missing = cmp.Or(received.missing, "the browser did not keep the body: the page took it as a file")
	}
	return sent, received
}

// secretName matches names of headers and query parameters whose values may be credentials.
var secretName = lazy.Pattern(`(?i)auth|cookie|token|secret|passw|pwd|api.?key|access.?key|session|signature|^sig$|` +
	`credential|^code$|^key$`)

const redacted = "[redacted]"

// redactURL returns a URL without credentials, and without the values of parameters that may be credentials.
func redactURL(given string) string {
	u, err := url.Parse(given)
	if err != nil {
		return redacted
	}
	if u.User != nil {
		u.User = url.User(redacted)
	}
	u.Fragment, u.RawFragment = "", ""
	parts := strings.Split(u.RawQuery, "&")
	for i, part := range parts {
		if name, _, ok := strings.Cut(part, "="); ok && secretName().MatchString(name) {
			parts[i] = name + "=" + redacted
		}
	}
	u.RawQuery = strings.Join(parts, "&")
	return u.String()
}
