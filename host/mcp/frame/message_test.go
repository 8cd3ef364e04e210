package frame

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// String returns what an entry is, for tables: "call ID METHOD PARAMS", "note METHOD PARAMS", "answer ID RESULT",
// "fault ID CODE" or, for what is not a message, "error ID CODE".
func (e *entry) String() string {
	switch {
	case e.err != nil:
		return strings.Join(strings.Fields(fmt.Sprintf("error %s %d", e.id, e.err.Code)), " ")
	case e.isCall():
		return strings.TrimSpace(fmt.Sprintf("call %s %s %s", e.id, e.method, e.params))
	case e.method != "":
		return strings.TrimSpace(fmt.Sprintf("note %s %s", e.method, e.params))
	case e.fault != nil:
		return fmt.Sprintf("fault %s %d", e.id, e.fault.Code)
	}
	return fmt.Sprintf("answer %s %s", e.id, e.result)
}

// message returns a message with these members and the version.
func message(members string) string { return `{"jsonrpc":"2.0",` + members + `}` }

// batchOf returns a batch of n requests.
func batchOf(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = message(fmt.Sprintf(`"id":%d,"method":"ping"`, i))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// TestParse checks what a frame is read as. A batch is in brackets.
func TestParse(t *testing.T) {
	const latest = "2025-11-25"
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	many := strings.Repeat(",call N ping", maxBatch)[1:]
	for i := range maxBatch {
		many = strings.Replace(many, "N", fmt.Sprint(i), 1)
	}
	for _, tt := range []struct{ revision, frame, want string }{
		{latest, message(`"id":1,"method":"ping"`), "call 1 ping"},
		{latest, " \t" + message(`"id":1,"method":"ping"`) + "\r\n", "call 1 ping"},
		{latest, "\ufeff" + message(`"id":1,"method":"ping"`), "call 1 ping"},
		{latest, message(`"id":1.50,"method":"a/b","params":{"x":[1]}`), `call 1.50 a/b {"x":[1]}`},
		{latest, message(`"id":"\u0061","method":"ping","params":null`), `call "\u0061" ping`},
		{latest, message(`"method":"a/b","params":{}`), "note a/b {}"},
		{latest, message(`"method":"a\u002fb"`), "note a/b"},
		{latest, message(`"id":1,"result":{"a":1}`), `answer 1 {"a":1}`},
		{latest, message(`"id":1,"result":null`), "answer 1 null"},
		{latest, message(`"id":1,"error":{"code":-5,"message":"x"}`), "fault 1 -5"},
		{latest, message(`"id":null,"error":{"code":-5,"message":"x"}`), "fault  -5"},
		{latest, message(`"id":1,"method":"ping","unknown":1`), "call 1 ping"},
		{latest, message(`"id":1,"method":"ping","params":{"a":{"b":1,"b":2}}`), `call 1 ping {"a":{"b":1,"b":2}}`},

		{latest, ``, "error -32700"},
		{latest, `{`, "error -32700"},
		{latest, message(`"id":1,"method":"ping"`) + "{}", "error -32700"},
		{latest, message("\"id\":1,\"method\":\"\xff\""), "error -32700"},
		{latest, message(`"id":1,"method":"ping","params":{"a":` + deep + `}`), "error 1 -32600"},
		{latest, deep[1:maxDepth], "error -32700"},
		{latest, `17`, "error -32600"},
		{latest, `null`, "error -32600"},
		{latest, `{}`, "error -32600"},
		{latest, `{"id":1,"method":"ping"}`, "error 1 -32600"},
		{latest, `{"jsonrpc":"2.1","id":1,"method":"ping"}`, "error 1 -32600"},
		{latest, message(`"id":1`), "error 1 -32600"},
		{latest, message(`"id":1,"method":""`), "error 1 -32600"},
		{latest, message(`"id":1,"method":null`), "error 1 -32600"},
		{latest, message(`"id":1,"method":7,"result":{}`), "error 1 -32600"},
		{latest, message(`"id":true,"method":"ping"`), "error -32600"},
		{latest, message(`"id":null,"method":"ping"`), "error -32600"},
		{latest, message(`"id":{"id":1},"method":"ping"`), "error -32600"},
		{latest, message(`"id":1,"id":1,"method":"ping"`), "error -32600"},
		{latest, message(`"id":1,"method":"ping","method":"ping"`), "error 1 -32600"},
		{latest, message(`"id":1,"method":"ping","params":{"a":1,"\u0061":1}`), "error 1 -32600"},
		{latest, message(`"id":1,"method":"ping","params":[]`), "error 1 -32600"},
		{latest, message(`"id":1,"method":"ping","params":"x"`), "error 1 -32600"},
		{latest, message(`"id":1,"result":{},"error":{"code":1,"message":"x"}`), "error 1 -32600"},
		{latest, message(`"result":{}`), "error -32600"},
		{latest, message(`"id":null,"result":{},"error":null`), "error -32600"},
		{latest, message(`"error":{"code":1,"message":"x"}`), "error -32600"},
		{latest, message(`"id":true,"error":{"code":1,"message":"x"}`), "error -32600"},
		{latest, message(`"id":1,"error":null`), "error 1 -32600"},
		{latest, message(`"id":1,"error":"x"`), "error 1 -32600"},

		{"2024-11-05", batchOf(2), "[call 0 ping,call 1 ping]"},
		{lastBatch, batchOf(1), "[call 0 ping]"},
		{lastBatch, batchOf(maxBatch), "[" + many + "]"},
		{lastBatch, batchOf(maxBatch + 1), "error -32600"},
		{lastBatch, batchOf(100 * maxBatch), "error -32600"},
		{lastBatch, `[]`, "error -32600"},
		{lastBatch, `[17,[],` + message(`"id":1,"method":"initialize"`) + `,` + message(`"method":"a"`) + `]`,
			"[error -32600,error -32600,error 1 -32600,note a]"},
		{"2025-06-18", batchOf(1), "error -32600"},
		{latest, batchOf(1), "error -32600"},
		{"", batchOf(1), "error -32600"},
	} {
		entries, isBatch := parse([]byte(tt.frame), func() string { return tt.revision })
		var parts []string
		for i := range entries {
			parts = append(parts, entries[i].String())
		}
		got := strings.Join(parts, ",")
		if isBatch {
			got = "[" + got + "]"
		}
		if got != tt.want {
			t.Errorf("in %q, %.200q is read as %.300s, expected %.300s", tt.revision, tt.frame, got, tt.want)
		}
	}
}

// TestMembersOf checks that of equal keys the first counts, and which key is said to be there twice.
func TestMembersOf(t *testing.T) {
	for object, want := range map[string]string{
		`{"a":1,"b":2}`: `1 2 "" true`, `{"a":1,"b":2,"a":3}`: `1 2 "a" true`,
		`{"b":1,"\u0062":2,"c":1,"c":2}`: ` 1 "b" true`,
		`{"c":{"a":1,"a":2}}`:            `  "" true`, `{}`: `  "" true`, `[1]`: `  "" false`, `7`: `  "" false`,
		``: `  "" false`,
	} {
		values, repeated, isObject := membersOf([]byte(object), "a", "b")
		if got := fmt.Sprintf("%s %s %q %v", values[0], values[1], repeated, isObject); got != want {
			t.Errorf("%s: %s, expected %s", object, got, want)
		}
	}
}

// TestMessage checks what the SDK gets of a message: texts in place of all ids, which come back as the client wrote
// them, and nothing else changes.
func TestMessage(t *testing.T) {
	for _, id := range []string{`1`, `-0.0`, `1.50`, `9007199254740993`, `""`, `"a\"\u00e4"`, `"1"`} {
		inner := fmt.Sprintf("%q", innerID([]byte(id)))
		for members, want := range map[string]string{
			`"id":%s,"method":"ping"`:                                                    `"id":%s,"method":"ping"`,
			`"id":%s,"method":"ping","params":{"requestId":1.50}`:                        `"id":%s,"method":"ping","params":{"requestId":1.50}`,
			`"method":"notifications/cancelled","params":{"a":1.50,"requestId":%s}`:      `"method":"notifications/cancelled","params":{"a":1.50,"requestId":%s}`,
			`"method":"notifications/cancelled","params":{"requestId":true}`:             `"method":"notifications/cancelled","params":{"requestId":true}`,
			`"method":"a","params":{"_meta":{"progressToken":%s,"x":1.50},"id":1.50}`:    `"method":"a","params":{"_meta":{"progressToken":%s,"x":1.50},"id":1.50}`,
			`"method":"a","params":{"_meta":{"progressToken":[1]},"progressToken":1.50}`: `"method":"a","params":{"_meta":{"progressToken":[1]},"progressToken":1.50}`,
		} {
			given := strings.ReplaceAll(message(members), "%s", id)
			e := parseMessage([]byte(given))
			if e.err != nil {
				t.Fatalf("%s: %v", given, e.err.Message)
			}
			raw, err := jsonrpc.EncodeMessage(e.message())
			if want := strings.ReplaceAll(message(want), "%s", inner); err != nil || string(raw) != want {
				t.Errorf("the SDK gets %s, expected %s: %v", raw, want, err)
			}
			if got := string(restore(raw)); got != given {
				t.Errorf("%s comes back as %s", given, got)
			}
		}
	}
}

// TestSpellings checks that all spellings of an id have one value, and ids of different values different ones.
func TestSpellings(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]string{} // spelled plainly, by value
	check := func(plain string, spellings ...string) {
		t.Helper()
		value := valueOf(plain)
		if other, ok := seen[value]; ok && other != plain {
			t.Errorf("%q and %q have the value %q", plain, other, value)
		}
		seen[value] = plain
		for _, s := range spellings {
			if !json.Valid([]byte(s)) || valueOf(s) != value {
				t.Errorf("%s has the value %q, and %s has %q", s, valueOf(s), plain, value)
			}
		}
	}
	letters := []rune("a1\"\\/ \u00e9\u2028\ufeff\U0001f600\x00\n")
	for range 2000 {
		var text []rune
		escaped := `"`
		for range random.IntN(5) {
			r := letters[random.IntN(len(letters))]
			text = append(text, r)
			for _, unit := range utf16.Encode([]rune{r}) {
				escaped += fmt.Sprintf([]string{`\u%04x`, `\u%04X`}[random.IntN(2)], unit)
			}
		}
		plain := string(jsontext.AppendString(nil, string(text)))
		check(plain, escaped+`"`, strings.ReplaceAll(plain, "/", `\/`))

		n, shift := random.Int64N(1000)+1, random.IntN(30)
		zeros := strings.Repeat("0", shift)
		check(fmt.Sprint(n), fmt.Sprintf("%d.%s0", n, zeros), fmt.Sprintf("%de0", n),
			fmt.Sprintf("%d%sE-%d", n, zeros, shift))
	}
	check("1e-400")
	for _, long := range []string{"1e999999999", "-1e-999999999", strings.Repeat("9", 100_000), `"\ud800"`, `"\udc00"`,
		`"\ufffd"`} {
		check(long)
	}
}

// TestResponsesOfClients checks that a response reaches our request only if it has its id, however that is spelled.
func TestResponsesOfClients(t *testing.T) {
	for id, isOurs := range map[string]bool{`1`: true, `17`: true, `"1"`: false, `1.0`: true, `10e-1`: true,
		`1.5`: false, `1e99`: false, `1e999999999`: false, `"1/1"`: false} {
		e := parseMessage([]byte(message(`"id":` + id + `,"error":{"code":3,"message":"m","data":[1]}`)))
		r, ok := e.message().(*jsonrpc.Response)
		if !ok {
			t.Fatalf("%s is no response", id)
		}
		if _, number := r.ID.Raw().(int64); number != isOurs {
			t.Errorf("%s: the id %v (%[2]T)", id, r.ID.Raw())
		}
		var fault *jsonrpc.Error
		if !errors.As(r.Error, &fault) || fault.Code != 3 || fault.Message != "m" || string(fault.Data) != "[1]" {
			t.Errorf("%s: the error %v", id, r.Error)
		}
	}
	e := parseMessage([]byte(message(`"id":1,"result":{"a":1.50}`)))
	if r := e.message().(*jsonrpc.Response); r.Error != nil || string(r.Result) != `{"a":1.50}` {
		t.Errorf("a result: %v, %s", r.Error, r.Result)
	}
}

// TestErrorsOfTheSDK checks the code of each kind of error, and that its message is bounded and of one line.
func TestErrorsOfTheSDK(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int64
	}{
		{errors.New("anything"), jsonrpc.CodeInternalError},
		{context.Canceled, CodeCancelled},
		{fmt.Errorf("in a tool: %w", context.Canceled), CodeCancelled},
		{errors.New("calling: context canceled"), CodeCancelled},
		{context.DeadlineExceeded, jsonrpc.CodeInternalError},
		{&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: context.Canceled.Error()}, jsonrpc.CodeInvalidParams},
		{errors.New(`method "x" is invalid during session initialization`), jsonrpc.CodeInvalidRequest},
		{errors.New(`JSON RPC not handled: "x"`), jsonrpc.CodeMethodNotFound},
		{&jsonrpc.Error{Code: 0, Message: "x"}, jsonrpc.CodeInternalError},
		{&jsonrpc.Error{Code: 7, Message: "x"}, jsonrpc.CodeInternalError},
	} {
		e := outerError(tt.err)
		if e.Code != tt.code || e.Message == "" {
			t.Errorf("%v: the code %d and the message %q, expected %d", tt.err, e.Code, e.Message, tt.code)
		}
	}
}

func TestErrorResponse(t *testing.T) {
	fault := &jsonrpc.Error{Code: -32600, Message: "<x>", Data: json.RawMessage(`[1]`)}
	for id, want := range map[string]string{"": "null", "1.50": "1.50", `"a"`: `"a"`, "7": "7"} {
		var raw json.RawMessage
		if id != "" {
			raw = json.RawMessage(id)
		}
		want = message(`"id":` + want + `,"error":{"code":-32600,"message":"<x>","data":[1]}`)
		if got := string(errorResponse(raw, fault)); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
}

// TestNegotiated checks the revision of a session for each that a client may ask for.
func TestNegotiated(t *testing.T) {
	all := sdk.SupportedProtocolVersions()
	newest := ""
	for _, v := range all {
		if v < firstStateless {
			newest = max(newest, v)
		}
	}
	if !slices.Contains(all, firstStateless) || newest == "" {
		t.Fatalf("the revisions are %q", all)
	}
	for _, asked := range slices.Concat(all, []string{"", "2024-01-01", "2025-06-19", "9999-01-01"}) {
		want := newest
		if slices.Contains(all, asked) && asked < firstStateless {
			want = asked
		}
		params := json.RawMessage(fmt.Sprintf(`{"protocolVersion":%q}`, asked))
		if got := negotiated(params); got != want || Negotiated(asked) != want {
			t.Errorf("a client that asks for %q gets %s, expected %s", asked, got, want)
		}
	}
	for _, params := range []string{``, `{}`, `{"protocolVersion":7}`} {
		if got := negotiated(json.RawMessage(params)); got != newest {
			t.Errorf("%s: %s, expected %s", params, got, newest)
		}
	}
}

func TestTraceContext(t *testing.T) {
	header := &sdk.RequestExtra{Header: http.Header{"Traceparent": {"00-1"}, "Tracestate": {"a=1"}}}
	for _, tt := range []struct {
		meta          sdk.Meta
		extra         *sdk.RequestExtra
		parent, state string
	}{
		{nil, nil, "", ""},
		{sdk.Meta{"traceparent": "00-2", "tracestate": "b=2"}, nil, "00-2", "b=2"},
		{nil, header, "00-1", "a=1"},
		{sdk.Meta{"traceparent": "00-2"}, header, "00-2", ""},
		{sdk.Meta{"traceparent": 2, "tracestate": "b=2"}, header, "00-1", "a=1"},
		{sdk.Meta{"tracestate": "b=2"}, &sdk.RequestExtra{}, "", ""},
	} {
		r := &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Meta: tt.meta}, Extra: tt.extra}
		parent, state, carrier := TraceContext(r)
		if of := tt.extra; parent != tt.parent || state != tt.state || (of == header) != (carrier == "00-1") {
			t.Errorf("%v, %v: %q %q %q", tt.meta, tt.extra, parent, state, carrier)
		}
	}
}

func TestErrorCode(t *testing.T) {
	of := func(revision string) sdk.Meta { return sdk.Meta{sdk.MetaKeyProtocolVersion: revision} }
	for _, tt := range []struct {
		request  sdk.Request
		code     int64
		revision string
	}{
		{&sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Meta: of("2026-07-28")}}, 0, "2026-07-28"},
		{&sdk.GetPromptRequest{Params: &sdk.GetPromptParams{}}, -32602, "2025-11-25"},
		{&sdk.ReadResourceRequest{Params: &sdk.ReadResourceParams{}}, -32002, "2025-11-25"},
		{&sdk.ReadResourceRequest{Params: &sdk.ReadResourceParams{Meta: of("2026-07-28")}}, -32602, "2026-07-28"},
	} {
		if code, revision := ErrorCode(tt.request), Revision(tt.request); code != tt.code || revision != tt.revision {
			t.Errorf("%T: %d %s, expected %d %s", tt.request, code, revision, tt.code, tt.revision)
		}
	}
}
