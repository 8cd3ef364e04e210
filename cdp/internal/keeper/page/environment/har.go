package environment

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

// timing says when the parts of an exchange began and ended, in milliseconds since RequestTime, below 0 for parts that
// it did not have (Network.ResourceTiming).
type timing struct {
	RequestTime                              float64 // seconds, on the browser's clock; 0: nothing is known
	DNSStart, ConnectStart, SSLStart, SSLEnd float64
	SendStart, SendEnd, ReceiveHeadersEnd    float64
}

// timings returns the parts of an exchange in milliseconds, -1 for those that it did not have, and their sum. They
// follow each other without a gap; ssl is a part of connect.
func (x *exchange) timings() (page.Object, float64) {
	t, total := x.Timing, max(x.ended-x.began, 0)*1000
	if t.RequestTime == 0 || t.SendStart < 0 {
		return page.Object{"send": 0, "wait": total, "receive": 0}, total
	}
	queued, next, ssl := max(t.RequestTime-x.began, 0)*1000, t.SendStart, -1.0
	before := func(start float64) float64 { // how long the part took that began at start
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

// harOf returns exchanges in the format HAR 1.2, without cookies and what else opens something. Bodies are as they are;
// the browser keeps a few MiB of them. leftOut says how many it has not kept.
func harOf(v *page.Visit, all []*exchange, bodies bool) (har any, leftOut string) {
	entries, missing := []page.Object{}, 0
	for _, x := range all {
		var sent, received body
		if bodies {
			sent, received = x.bodies(v)
		}
		if sent.missing+received.missing != "" {
			missing++
		}
		entries = append(entries, x.harEntry(v, sent, received))
	}
	if missing > 0 {
		leftOut = fmt.Sprintf("bodies of %d requests: the comments in their entries say why", missing)
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
		request["postData"] = page.Object{"mimeType": headerOf(x.sent.Headers, "content-type"), "text": sent.text,
			"comment": sent.missing}
	}
	content := page.Object{"size": int64(x.Length), "mimeType": x.MimeType, "text": received.text,
		"comment": received.missing}
	if received.base64 {
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
			"headersSize": -1, "bodySize": int64(x.Length)},
		"cache": page.Object{}, "timings": timings, "_resourceType": strings.ToLower(x.kind),
	}
	if x.err != "" {
		entry["_error"] = x.err
	}
	if in := x.in(v); in != "" {
		entry["_frame"] = in
	}
	if x.isSocket() { // as Chrome exports it, without data
		messages := []page.Object{}
		for _, f := range v.Keeper.Events.Frames(x.target, x.requestID) {
			messages = append(messages, page.Object{"type": map[bool]string{true: "send", false: "receive"}[f.Sent],
				"time": x.wall + f.Time - x.began, "opcode": f.Opcode, "data": ""})
		}
		entry["_webSocketMessages"] = messages
	}
	return entry
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
