package event

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// sequences returns the sequence numbers of records as text.
func sequences(records []*Record) string {
	all := make([]string, len(records))
	for i, r := range records {
		all[i] = fmt.Sprint(r.seq)
	}
	return strings.Join(all, " ")
}

func storedFor(js *Journals, session string) []*Record {
	records, _ := js.since(session, 0)
	return records
}

func TestRingKeepsTheNewest(t *testing.T) {
	js := newJournals(3*kinds, 3*10_000)
	for range 5 {
		js.add(&Record{Owner: "s", Method: "A.b"})
	}
	if got, last := js.since("s", 0); sequences(got) != "3 4 5" || last != 5 {
		t.Errorf("%s are stored of %d", sequences(got), last)
	}
	if got, _ := js.since("s", 4); sequences(got) != "5" {
		t.Errorf("since 4: %s", sequences(got))
	}
	js.add(&Record{Owner: "s", Method: "A.b", Params: make([]byte, 20_000)}) // larger than the ring
	js.skip()
	js.add(&Record{Owner: "s", Method: "A.b", Params: make([]byte, 9_700)}) // leaves no space for other records
	if got, last := js.since("s", 5); sequences(got) != "8" || last != 8 {
		t.Errorf("%s are stored of %d", sequences(got), last)
	}
	if info := js.Info(); info.Kept != 1 || info.Dropped != 7 || info.LastSeq != 8 || info.Bytes < 9_700 {
		t.Errorf("%+v", info)
	}
}

// What one session's pages do neither evicts the events of another nor shows in its numbers. Within a session, noise
// does not evict requests and console messages.
func TestNoiseEvictsOnlyItsOwnKind(t *testing.T) {
	js := newJournals(1_000, 1<<20)
	for _, session := range []string{"quiet", "noisy"} {
		js.add(&Record{Owner: session, Method: "Network.requestWillBeSent"})
		js.add(&Record{Owner: session, Method: "Runtime.exceptionThrown"})
	}
	for range 100_000 {
		js.add(&Record{Owner: "noisy", Method: "Network.dataReceived", Params: make([]byte, 100)})
	}
	js.add(&Record{Owner: "quiet", Method: "Network.loadingFailed"})
	for session, want := range map[string]string{"quiet": "1 2 3", "noisy": "1 2"} {
		got, _ := js.since(session, 0)
		if found := sequences(got[:min(len(got), strings.Count(want, " ")+1)]); found != want {
			t.Errorf("%s has %s, want %s", session, found, want)
		}
	}
	if info := js.Info(); info.Bytes > 1<<20 || info.Kept > 1_000 {
		t.Errorf("the budget is exceeded: %+v", info)
	}
}

// A further session makes the shares of the others smaller, and its end larger.
func TestSharesOfSessions(t *testing.T) {
	js := newJournals(300, 1<<20)
	fill := func(session string) int {
		for range 1_000 {
			js.add(&Record{Owner: session, Method: "A.b"})
		}
		return len(storedFor(js, session))
	}
	if n := fill("one"); n != 100 {
		t.Errorf("%d events of the only session", n)
	}
	if n := fill("two"); n != 50 || len(storedFor(js, "one")) != 50 {
		t.Errorf("%d events of the second session", n)
	}
	js.Remove("two")
	if n := fill("one"); n != 100 {
		t.Errorf("%d events after the end of the other session", n)
	}
	if all, last := js.since("two", 0); len(all) != 0 || last != 0 {
		t.Errorf("%d events of a session that has ended, up to %d", len(all), last)
	}
}

func TestReassignMovesRecords(t *testing.T) {
	js := newJournals(300, 1<<20)
	js.add(&Record{Method: "A.a", Target: "T"})
	js.add(&Record{Method: "A.b", Target: "U"})
	js.add(&Record{Owner: "mine", Method: "A.c", Target: "V"})
	js.add(&Record{Method: "Network.loadingFailed", Target: "T"})
	js.Reassign("mine", func(r *Record) bool { return r.Target == "T" && r.Owner == api.DefaultSession })
	var got []string
	for _, r := range storedFor(js, "mine") {
		got = append(got, fmt.Sprint(r.seq, r.Target, r.Owner))
	}
	if strings.Join(got, ",") != "1Vmine,2Tmine,3Tmine" {
		t.Errorf("the new owner has %v", got)
	}
	if left := storedFor(js, api.DefaultSession); len(left) != 1 || left[0].Target != "U" {
		t.Errorf("%d events are left", len(left))
	}
	if info := js.Info(); info.Dropped != 0 || info.Kept != 4 {
		t.Errorf("%+v", info)
	}
}

func TestRedact(t *testing.T) {
	for _, c := range []struct{ method, params, want string }{
		{"Network.requestWillBeSent",
			`{"request":{"url":"http://a/","headers":{"Cookie":"a=b","Accept":"*"},"postData":"x","postDataEntries":[{}],"hasPostData":true},` +
				`"redirectResponse":{"headers":{"set-cookie":"a\nb"},"headersText":"HTTP"}}`,
			`{"request":{"url":"http://a/","headers":{"Cookie":"[redacted]","Accept":"*"},"hasPostData":true},` +
				`"redirectResponse":{"headers":{"set-cookie":"[redacted]"}}}`},
		{"Network.requestWillBeSentExtraInfo",
			`{"associatedCookies":[{"cookie":{"value":"v"}}],"headers":{"AUTHORIZATION":"Basic x","Proxy-Authorization":"y"}}`,
			`{"headers":{"AUTHORIZATION":"[redacted]","Proxy-Authorization":"[redacted]"}}`},
		{"Fetch.requestPaused",
			`{"responseHeaders":[{"value":"secret","name":"Set-Cookie"},{"name":"A","value":"b"}],"x":[]}`,
			`{"responseHeaders":[{"value":"[redacted]","name":"Set-Cookie"},{"name":"A","value":"b"}],"x":[]}`},
		{"Network.webSocketFrameSent", `{"response":{"opcode":1,"payloadData":"text"}}`, `{"response":{"opcode":1}}`},
		{"Network.eventSourceMessageReceived", `{"eventId":"1","data":"text"}`, `{"eventId":"1"}`},
		{"Network.responseReceived", `{"response":{"url":"data:` + strings.Repeat("é", 100) + `"}}`,
			`{"response":{"url":"data:` + strings.Repeat("é", 47) + `…"}}`},
		{"Audits.issueAdded", `{"issue":{"rawCookieLine":"a=b"}}`, `{"issue":{}}`},
		{"Runtime.consoleAPICalled", `{"args":[{"value":"Cookie"}]}`, `{"args":[{"value":"Cookie"}]}`},
		{"Network.policyUpdated", ``, ``},
	} {
		got := redact(c.method, json.RawMessage(c.params))
		if string(got) != c.want || len(got) > 0 && !json.Valid(got) {
			t.Errorf("%s: %s\nwant %s", c.method, got, c.want)
		}
	}
}

// FuzzRedact checks that any event stays valid JSON without the values of secret headers.
func FuzzRedact(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}],"headers":{"Cookie":"x"}}`)
	f.Add(`{"url":"data:\u00e9` + strings.Repeat(`\"`, 100) + `"}`)
	f.Fuzz(func(t *testing.T, params string) {
		if !scan.IsObject(json.RawMessage(params)) {
			return
		}
		const secret = "hEaDeRsSeCrEt"
		in := `{"headers":{"Cookie":"` + secret + `"},"more":` + params + `,"list":[{"name":"Set-Cookie","value":"` + secret +
			`"}]}`
		if strings.Contains(params, secret) {
			return
		}
		got := redact("Network.requestWillBeSent", json.RawMessage(in))
		if !json.Valid(got) || strings.Contains(string(got), secret) {
			t.Errorf("%s becomes %s", in, got)
		}
	})
}

func TestParseStatus(t *testing.T) {
	for given, want := range map[string]string{
		"404": "404", "4xx": "400 404", "5XX": "500", "failed": "-1 400 404 500", "200": "200", "3xx": "302",
	} {
		matches, err := parseStatus(given)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, status := range []int{noResponse, 0, 200, 302, 400, 404, 500} {
			if matches(status) {
				got = append(got, fmt.Sprint(status))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s matches %v, want %s", given, got, want)
		}
	}
	for _, given := range []string{"40", "6xx", "999", "4x", "fail"} {
		if _, err := parseStatus(given); err == nil || err.Code != api.CodeInvalidArgs ||
			!strings.Contains(err.Message, given) {
			t.Errorf("%s: %v", given, err)
		}
	}
}
