package frame

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// exchange is a request over HTTP with the response, and what the handler of the SDK received of it.
type exchange struct {
	*httptest.ResponseRecorder
	received []string
}

// post sends a body to Serve in a session of a revision. respond is the SDK's handler; it gets the message as the SDK
// reads it, and its id as the SDK writes it.
func post(t *testing.T, revision string, header http.Header, body string,
	respond func(w http.ResponseWriter, id string)) exchange {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	for key, values := range header {
		r.Header[key] = values
	}
	e := exchange{ResponseRecorder: httptest.NewRecorder()}
	received := make(chan string, 1000)
	Serve(e, r, func() string { return revision }, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil || r.Method == http.MethodPost && int64(len(raw)) != r.ContentLength {
			t.Errorf("%v, %d bytes of %d", err, len(raw), r.ContentLength)
		}
		received <- string(restore(raw))
		if respond != nil {
			entry := parseMessage(raw)
			respond(w, string(entry.id))
		}
	}))
	close(received)
	for message := range received {
		e.received = append(e.received, message)
	}
	slices.Sort(e.received) // the messages of a batch are served at the same time
	return e
}

// messages returns the messages in the events of a response, sorted.
func (e exchange) messages() string {
	var all []string
	for event := range strings.SplitSeq(strings.TrimSuffix(e.Body.String(), "\n\n"), "\n\n") {
		all = append(all, strings.TrimPrefix(event, "event: message\ndata: "))
	}
	slices.Sort(all)
	return strings.Join(all, "|")
}

// pong responds to a request with JSON, or in an event.
func pong(w http.ResponseWriter, id string) {
	response := message(`"id":` + id + `,"result":{}`)
	if strings.Contains(id, "RU") { // some ids, so that a batch has both
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, response)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(event([]byte(response)))
}

// TestServe checks what of a body reaches the SDK, and the response to what does not.
func TestServe(t *testing.T) {
	unknown := "unknown protocol version"
	for _, tt := range []struct {
		name, revision, version, body string
		status                        int
		received, response            string
	}{
		{"a message", "", "", "\ufeff" + ping("1.50"), 200, ping("1.50"), message(`"id":1.50,"result":{}`)},
		{"a known revision", "", "2025-11-25", ping("1"), 200, ping("1"), message(`"id":1,"result":{}`)},
		{"an unknown revision", "", "2025-11-26", ping("1.50"), 400, "",
			`"id":1.50,"error":{"code":-32022,"message":"` + unknown},
		{"an unknown revision and no id", "", "x", message(`"method":"a"`), 400, "", `"id":null,"error":{"code":-32022,`},
		{"no message", "", "", message(`"id":1.50`), 400, "", fault("1.50", `"method" is missing`)},
		{"no JSON", "", "", "garbage", 400, "", `"id":null,"error":{"code":-32700,`},
		{"nothing", "", "", "", 400, "", `"id":null,"error":{"code":-32700,`},
		{"a batch in a revision without", "2025-06-18", "", batchOf(1), 400, "", `"id":null,"error":{"code":-32600,`},
		{"a batch", lastBatch, "", batchOf(3), 200, ping("0") + "|" + ping("1") + "|" + ping("2"),
			message(`"id":0,"result":{}`) + "|" + message(`"id":1,"result":{}`) + "|" + message(`"id":2,"result":{}`)},
		{"a batch with a fault", lastBatch, "", "[17," + ping(`"a"`) + "]", 200, ping(`"a"`),
			message(`"id":"a","result":{}`) + "|" + fault("null", "a message is an object, not number")},
		{"a batch of faults", lastBatch, "", "[17," + message(`"id":2`) + "]", 400, "",
			"[" + fault("null", "a message is an object, not number") + "," + fault("2", `"method" is missing`) + "]"},
		{"a batch of an unknown revision", lastBatch, "x", batchOf(1), 400, "", `"id":null,"error":{"code":-32022,`},
	} {
		header := http.Header{}
		if tt.version != "" {
			header.Set("Mcp-Protocol-Version", tt.version)
		}
		e := post(t, tt.revision, header, tt.body, pong)
		if received := strings.Join(e.received, "|"); e.Code != tt.status || received != tt.received {
			t.Errorf("%s: the status %d, expected %d; the SDK receives %s, expected %s", tt.name, e.Code, tt.status, received,
				tt.received)
		}
		isWhole := strings.HasPrefix(tt.response, "{") || strings.HasPrefix(tt.response, "[")
		if got := e.messages(); got != tt.response && (isWhole || !strings.HasPrefix(got, `{"jsonrpc":"2.0",`+tt.response)) {
			t.Errorf("%s: the response is %s, expected %s", tt.name, got, tt.response)
		}
		if tt.status == 400 && (e.Header().Get("Content-Type") != "application/json" ||
			e.Header().Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s: the headers are %v", tt.name, e.Header())
		}
	}
	versions := post(t, "", http.Header{"Mcp-Protocol-Version": {"x\n" + strings.Repeat("y", 1<<16)}}, ping("1"), pong)
	for _, v := range sdk.SupportedProtocolVersions() {
		if text := versions.Body.String(); strings.Count(text, v) != 2 || len(text) > 2000 {
			t.Errorf("the error of an unknown revision has %d bytes and not %s: %.300s", len(text), v, text)
		}
	}
}

// TestOtherRequests checks that what has no message as its body reaches the SDK as it is.
func TestOtherRequests(t *testing.T) {
	for _, tt := range []struct{ method, kind string }{
		{http.MethodGet, ""}, {http.MethodGet, jsonType}, {http.MethodDelete, ""}, {http.MethodPost, "text/plain"},
		{http.MethodPost, ""},
	} {
		r := httptest.NewRequest(tt.method, "/", strings.NewReader("garbage"))
		if tt.kind != "" {
			r.Header.Set("Content-Type", tt.kind)
		}
		w := httptest.NewRecorder()
		Serve(w, r, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write(body)
		}))
		if w.Code != http.StatusTeapot || w.Body.String() != "garbage" {
			t.Errorf("%s of %q: %d, %s", tt.method, tt.kind, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(errors.New("cut off")))
	r.Header.Set("Content-Type", jsonType)
	w := httptest.NewRecorder()
	Serve(w, r, nil, nil)
	if w.Code != http.StatusBadRequest ||
		w.Body.String() != message(`"id":null,"error":{"code":-32603,"message":"cut off"}`) {
		t.Errorf("a body that is cut off: %d, %s", w.Code, w.Body)
	}
}

// TestNotificationsGetNoResponse checks that nothing that the SDK writes for a notification is part of the response.
func TestNotificationsGetNoResponse(t *testing.T) {
	var served atomic.Int64
	written := func(w http.ResponseWriter, id string) {
		served.Add(1)
		if id == "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "not now")
			return
		}
		pong(w, id)
	}
	note := message(`"method":"a"`)
	e := post(t, lastBatch, nil, "["+note+","+note+"]", written)
	if e.Code != http.StatusAccepted || e.Body.Len() != 0 || served.Load() != 2 {
		t.Errorf("notifications: %d, %s, %d served", e.Code, e.Body, served.Load())
	}
	e = post(t, lastBatch, nil, "["+note+","+ping("1")+"]", written)
	if want := message(`"id":1,"result":{}`); e.Code != http.StatusOK || e.messages() != want {
		t.Errorf("a notification and a request: %d, %s, expected %s", e.Code, e.Body, want)
	}
	if e.Header().Get("Content-Type") != "text/event-stream" || !e.Flushed {
		t.Errorf("the headers are %v, flushed %v", e.Header(), e.Flushed)
	}
}

// TestErrorsOverHTTP checks that each error of the SDK is a JSON-RPC error with the id of the client and a code of the
// table, whether the SDK writes it in plain text, as JSON or in an event.
func TestErrorsOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		text   string
		status int
		code   int64
	}{
		{"Bad Request: session is gone", 400, jsonrpc.CodeInvalidRequest},
		{"not found", 404, jsonrpc.CodeInvalidRequest},
		{"too large", 413, jsonrpc.CodeInvalidRequest},
		{`JSON RPC not handled: "x"`, 400, jsonrpc.CodeMethodNotFound},
		{"something broke", 500, jsonrpc.CodeInternalError},
		{"not implemented", 599, jsonrpc.CodeInternalError},
	} {
		e := post(t, "", nil, ping("1.50"), func(w http.ResponseWriter, _ string) { http.Error(w, tt.text, tt.status) })
		want := message(fmt.Sprintf(`"id":1.50,"error":{"code":%d,"message":%q}`, tt.code, tt.text))
		if e.Code != tt.status || e.Body.String() != want || e.Header().Get("Content-Type") != jsonType {
			t.Errorf("%s: %d, %s, expected %s", tt.text, e.Code, e.Body, want)
		}
	}
	plain := post(t, "", nil, ping("1"), func(w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "fine")
	})
	if plain.Code != http.StatusAccepted || plain.Body.String() != "fine" {
		t.Errorf("not an error: %d, %s", plain.Code, plain.Body)
	}

	for code, want := range map[int64]int64{0: -32603, 7: -32603, -32601: -32601, -32000: -32000} {
		fault := func(id string) []byte {
			return []byte(message(fmt.Sprintf(`"id":%s,"error":{"code":%d,"message":"failed %s","data":{"a":"}"}}`, id, code,
				strings.Trim(id, `"`))))
		}
		expected := message(fmt.Sprintf(`"id":1.50,"error":{"code":%d,"message":"failed 1.50","data":{"a":"}"}}`, want))
		inEvent := post(t, "", nil, ping("1.50"), func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write(slices.Concat([]byte("event: message\nid: 1_0\ndata: "), fault(id), []byte("\n\n")))
		})
		if got := inEvent.Body.String(); got != "event: message\nid: 1_0\ndata: "+expected+"\n\n" {
			t.Errorf("the code %d in an event: %s, expected %s", code, got, expected)
		}
		asJSON := post(t, "", nil, ping("1.50"), func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", jsonType)
			_, _ = w.Write(fault(id))
		})
		if got := asJSON.Body.String(); got != expected {
			t.Errorf("the code %d: %s, expected %s", code, got, expected)
		}
	}
	// A result that quotes an error is not an error.
	quoted := `{"text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":7}}","error":{"code":7}}`
	for _, start := range []string{`"id":1,"result":`, `"method":"a","params":`} {
		e := post(t, "", nil, ping("1"), func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", jsonType)
			_, _ = io.WriteString(w, message(start+quoted))
		})
		if got := e.Body.String(); got != message(start+quoted) {
			t.Errorf("%s is written as %s", message(start+quoted), got)
		}
	}
}
