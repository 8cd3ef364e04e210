package environment

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/event"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

// timing has when the parts of an exchange began and ended, in milliseconds since RequestTime. A value below 0 means
// that the exchange did not have the part (Network.ResourceTiming).
type timing struct {
	RequestTime                              float64 // seconds, on the browser's clock; 0: unknown
	DNSStart, ConnectStart, SSLStart, SSLEnd float64
	SendStart, SendEnd, ReceiveHeadersEnd    float64
}

// timings returns the durations of the parts of an exchange in milliseconds, -1 for parts that it did not have, and
// their sum. The parts follow each other without a gap; ssl is a part of connect.
func (x *exchange) timings() (page.Object, float64) {
	t, total := x.Timing, max(x.ended-x.began, 0)*1000
	if t.RequestTime == 0 || t.SendStart < 0 {
		return page.Object{"send": 0, "wait": total, "receive": 0}, total
	}
	queued, next, ssl := max(t.RequestTime-x.began, 0)*1000, t.SendStart, -1.0
	before := func(start float64) float64 { // the duration of the part that began at start
		if start < 0 {
			return -1
		}
		took := max(next-start, 0)
		next = start
		return took
	}
	connect := before(t.ConnectStart)
	dns := before(t.DNSStart)
	if t.SSLStart >= 0 {
		ssl = t.SSLEnd - t.SSLStart
	}
	send, wait := max(t.SendEnd-t.SendStart, 0), max(t.ReceiveHeadersEnd-t.SendEnd, 0)
	receive := max(total-queued-t.ReceiveHeadersEnd, 0)
	return page.Object{"blocked": queued + next, "dns": dns, "connect": connect, "ssl": ssl, "send": send, "wait": wait,
		"receive": receive}, queued + next + max(dns, 0) + max(connect, 0) + send + wait + receive
}

// pair is a header or a parameter in a HAR.
type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func pairsOf(headers map[string]string) []pair {
	all := []pair{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		if secretName().MatchString(name) {
			value = redacted
		}
		if name = strings.ToLower(name); name == "referer" || name == "location" {
			value = redactURL(value)
		}
		all = append(all, pair{name, value})
	}
	return all
}

func queryOf(address string) []pair {
	all := []pair{}
	_, query, _ := strings.Cut(address, "?")
	for part := range strings.SplitSeq(query, "&") {
		if name, value, ok := strings.Cut(part, "="); ok {
			all = append(all, pair{name, value})
		}
	}
	return all
}

// harOf returns exchanges in the format HAR 1.2, without cookies and other credentials. Bodies are included
// unchanged, as far as the browser still has them: it keeps a few MiB. leftOut says how many bodies are missing.
func harOf(v *page.Visit, all []*exchange, bodies bool) (har any, leftOut string) {
	entries, missing, cut := []page.Object{}, 0, false
	for _, x := range all {
		var sent, received body
		if bodies {
			sent, received = x.bodies(v)
		}
		if sent.missing+received.missing != "" {
			missing++
		}
		entry := x.harEntry(v, sent, received)
		if x.isSocket() {
			frames := v.Keeper.Events.Frames(x.target, x.requestID)
			entry["_webSocketMessages"] = x.messages(frames, bodies)
			cut = cut || len(frames) >= event.MaxFrames ||
				slices.ContainsFunc(frames, func(f event.Frame) bool { return strings.HasSuffix(f.Data, "…") })
		}
		entries = append(entries, entry)
	}
	if missing > 0 {
		leftOut = fmt.Sprintf("bodies of %d requests: the comments in their entries say why", missing)
	}
	if cut {
		leftOut = strings.TrimPrefix(leftOut+fmt.Sprintf("; messages of WebSockets before the last %d, and what of one is "+
			"beyond %d bytes", event.MaxFrames, event.MaxFrame), "; ")
	}
	return page.Object{"log": page.Object{"version": "1.2", "creator": page.Object{"name": "parley page", "version": "1"},
		"entries": entries}}, leftOut
}

// harEntry returns an exchange as an entry of an archive.
func (x *exchange) harEntry(v *page.Visit, sent, received body) page.Object {
	address, version := redactURL(x.sent.URL), cmp.Or(x.Protocol, "unknown")
	request := page.Object{"method": x.sent.Method, "url": address, "httpVersion": version, "cookies": []any{},
		"headers": pairsOf(x.sent.Headers), "queryString": queryOf(address), "headersSize": -1, "bodySize": -1}
	if sent != (body{}) {
		post := page.Object{"mimeType": headerOf(x.sent.Headers, "content-type"), "text": sent.text,
			"comment": sent.note("text")}
		if sent.base64 {
			post["_encoding"] = "base64" // the format has no standard field for it
		}
		request["postData"] = post
	}
	headers, transferred, size := x.sizes()
	content := page.Object{"size": size, "mimeType": x.MimeType, "text": received.text, "comment": received.missing}
	if received.base64 && received.text != "" {
		content["encoding"] = "base64"
		content["size"] = base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(received.text, "=")))
	} else if received.text != "" {
		content["size"] = len(received.text)
	}
	timings, total := x.timings()
	entry := page.Object{
		"startedDateTime": time.UnixMilli(int64(x.wall * 1000)).UTC().Format(time.RFC3339Nano), "time": total,
		"request": request,
		"response": page.Object{"status": x.Status, "statusText": x.StatusText, "httpVersion": version, "cookies": []any{},
			"headers": pairsOf(x.Headers), "content": content, "redirectURL": redactURL(headerOf(x.Headers, "location")),
			"headersSize": headers, "bodySize": transferred},
		"cache": page.Object{}, "timings": timings, "_resourceType": strings.ToLower(x.kind),
	}
	if x.err != "" {
		entry["_error"] = x.err
	}
	if in := x.in(v); in != "" {
		entry["_frame"] = in
	}
	return entry
}

// messages returns the messages of a WebSocket as Chrome exports them, without data unless bodies is set.
func (x *exchange) messages(frames []event.Frame, bodies bool) []page.Object {
	all := []page.Object{}
	for _, f := range frames {
		if !bodies {
			f.Data = ""
		}
		all = append(all, page.Object{"type": map[bool]string{true: "send", false: "receive"}[f.Sent],
			"time": x.wall + f.Time - x.began, "opcode": f.Opcode, "data": f.Data})
	}
	return all
}

// sizes returns the size of the headers and of the body as they came over the network, and of the decoded body, in
// bytes; -1 if unknown. Chrome reports the sum of headers and body, or for some requests the size of the body alone.
func (x *exchange) sizes() (headers, transferred, size int64) {
	headers, transferred, size = -1, -1, -1
	if x.head > 0 {
		headers = int64(x.head)
	}
	length, err := strconv.ParseInt(headerOf(x.Headers, "content-length"), 10, 64)
	switch {
	case x.Status == 0 || x.Status == 204 || x.sent.Method == "HEAD" || err != nil && isRedirect(x.Status):
		return headers, 0, 0
	case err == nil && (length == int64(x.Length) || length+int64(x.head) <= int64(x.Length)):
		transferred = length
	case x.over && !x.cancelled && !isRedirect(x.Status): // without a length, or from the cache
		transferred = max(int64(x.Length-x.head), 0)
	}
	if headerOf(x.Headers, "content-encoding") == "" {
		size = transferred
		if err == nil {
			size = length
		}
	}
	return headers, transferred, size
}

// headerOf returns the value of a header by its name in lower case, "" if there is none.
func headerOf(headers map[string]string, name string) string {
	for given, value := range headers {
		if strings.ToLower(given) == name {
			return value
		}
	}
	return ""
}
