package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/mcp/frame"
)

// rawClient sends bytes to a server, and returns the messages that it answers with.
type rawClient struct {
	// exchange sends a frame and returns the next n messages. Over HTTP it returns those of the response, whatever n is.
	exchange func(t testing.TB, frame string, n int) []string
	// status returns the status of the last response over HTTP. It is nil over stdio.
	status func() int
}

// hello is an initialize request for a revision.
func hello(revision string) string {
	return strings.Replace(initialize, "2025-11-25", revision, 1)
}

const pinged = `{"jsonrpc":"2.0","id":"ping","result":{}}`

// rawStdio connects a raw client over pipes. It sends initialize unless the revision is "".
func rawStdio(t testing.TB, s *mcp.Server, revision string) rawClient {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- s.Stdio(ctx, toServer, fromServer) }()
	frames, lines := make(chan string, 100), make(chan string, 10_000)
	go func() {
		for frame := range frames {
			_, _ = io.WriteString(fromClient, frame+"\n")
		}
	}()
	go func() {
		r := bufio.NewReader(toClient)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				close(lines)
				return
			}
			lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(func() {
		close(frames)
		_ = fromClient.Close()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Error("the server is running after its client hung up")
		}
		cancel()
		_ = fromServer.Close()
	})
	c := rawClient{exchange: func(t testing.TB, frame string, n int) (answers []string) {
		t.Helper()
		frames <- frame
		for len(answers) < n {
			select {
			case line, ok := <-lines:
				if !ok {
					t.Fatalf("the server ended at %.200q", frame)
				}
				answers = append(answers, line)
			case <-time.After(20 * time.Second):
				t.Fatalf("%d of %d answers to %.200q: %.300q", len(answers), n, frame, answers)
			}
		}
		return answers
	}}
	if revision != "" {
		c.exchange(t, "\ufeff"+hello(revision), 1)
	}
	return c
}

// rawHTTP connects a raw client over HTTP. It opens a session unless the revision is "".
func rawHTTP(t testing.TB, s *mcp.Server, revision string) rawClient {
	handler, err := s.Handler(mcp.Minimal, mcp.HTTPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	session := ""
	var status atomic.Int64
	c := rawClient{status: func() int { return int(status.Load()) }}
	c.exchange = func(t testing.TB, frame string, _ int) (answers []string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(frame))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		if strings.HasPrefix(frame, "[") {
			r.Header.Set("Mcp-Protocol-Version", "2025-03-26") // whatever the session's is
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%.200q: %v", frame, err)
		}
		defer answer.Body.Close()
		status.Store(int64(answer.StatusCode))
		if opened := answer.Header.Get("Mcp-Session-Id"); session == "" && opened != "" {
			session = opened // before other goroutines begin
		}
		body, _ := io.ReadAll(answer.Body)
		if answer.Header.Get("Content-Type") != "text/event-stream" {
			return []string{string(body)}
		}
		for line := range strings.Lines(string(body)) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && data != "\n" {
				answers = append(answers, strings.TrimSuffix(data, "\n"))
			}
		}
		return answers
	}
	if revision != "" {
		c.exchange(t, "\ufeff"+hello(revision), 1)
	}
	return c
}

// slowCall is a call that ends when it is cancelled.
func slowCall(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"shop.order.slow"}}`
}

func cancelling(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

// slow makes a slow call. Over HTTP its response arrives at ended.
func (c rawClient) slow(t *testing.T, id string) (ended chan []string) {
	t.Helper()
	if ended = make(chan []string, 1); c.status == nil {
		c.exchange(t, slowCall(id), 0)
	} else {
		go func() { ended <- c.exchange(t, slowCall(id), 1) }()
	}
	return ended
}

// checkCancelled checks that a slow call ends, and gets no response over stdio. Over HTTP a response ends its stream.
func (c rawClient) checkCancelled(t *testing.T, f *fixture, id string, ended chan []string) {
	t.Helper()
	select {
	case <-f.shop.ended:
	case <-time.After(20 * time.Second):
		t.Fatalf("the call %.100s was not cancelled", id)
	}
	waitFor(t, "the call to end", func() bool { return len(f.Slots("calls")) == 0 })
	if c.status == nil {
		if got := c.exchange(t, `{"jsonrpc":"2.0","id":"ping","method":"ping"}`, 1); got[0] != pinged {
			t.Errorf("the cancelled request %.100s is answered with %.300q", id, got)
		}
	} else if got := <-ended; !strings.HasPrefix(got[0], `{"jsonrpc":"2.0","id":`+id+`,`) {
		t.Errorf("the response to %.100s is %.300q", id, got)
	}
}

// forBothWires runs a test with a client that has initialized a session of a revision.
func forBothWires(t *testing.T, revision string, test func(t *testing.T, f *fixture, c rawClient)) {
	for wire, connect := range map[string]func(testing.TB, *mcp.Server, string) rawClient{
		"stdio": rawStdio, "http": rawHTTP,
	} {
		t.Run(wire, func(t *testing.T) {
			f := newFixture(t, mcp.Minimal, trustNetwork)
			test(t, f, connect(t, f.Server, revision))
		})
	}
}

// checkError checks that a message is an error with an id and a code of the table.
func checkError(t testing.TB, about, message, id string, code int64) {
	t.Helper()
	var e struct {
		Error *struct{ Code int64 }
	}
	if err := json.Unmarshal([]byte(message), &e); err != nil || e.Error == nil {
		t.Errorf("%.200q is answered with %.300q", about, message)
		return
	}
	if !strings.HasPrefix(message, `{"jsonrpc":"2.0","id":`+id+`,"error":`) || e.Error.Code != code {
		t.Errorf("%.200q is answered with %.300q; expected id %s and code %d", about, message, id, code)
	}
	if !slices.Contains(frame.Codes(), e.Error.Code) {
		t.Errorf("%.200q is answered with the code %d, which is not in the table", about, e.Error.Code)
	}
}

// notMessages are frames that are not messages, with the id and the code of the answer.
var notMessages = []struct {
	frame, id string
	code      int64
}{
	{`{}`, "null", -32600},
	{`[]`, "null", -32600},
	{`null`, "null", -32600},
	{`true`, "null", -32600},
	{`17`, "null", -32600},
	{`"ping"`, "null", -32600},
	{`{"jsonrpc":"2.0"}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":1}`, "1", -32600},
	{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, "1", -32600},
	{`{"jsonrpc":2.0,"id":1,"method":"ping"}`, "1", -32600},
	{`{"id":"a","method":"ping"}`, `"a"`, -32600},
	{`{"jsonrpc":"2.0","id":true,"method":"ping"}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":[1],"method":"ping"}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":1.50,"method":17}`, "1.50", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":null}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":""}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","params":17}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","params":false}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/list"}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":1,"progressToken":2}}}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`, "1", -32600},
	{`{"jsonrpc":"2.0","result":{}}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":1,"error":"x"}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"error":null}`, "1", -32600},
	{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "null", -32600}, // this revision has no batches
	{`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":` + strings.Repeat("[", 12_000) + strings.Repeat("]", 12_000) +
		`}}`,
		"7", -32600},
	{strings.Repeat("[", 1<<20), "null", -32600},
	{`garbage`, "null", -32700},
	{`{"jsonrpc":"2.0","id":1,"method":"ping"`, "null", -32700},
	{`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`, "null", -32700},
	{`{'jsonrpc':'2.0','id':1,'method':'ping'}`, "null", -32700},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\"\xff\"}}", "null", -32700},
	{"\xff\xfe{\x00}\x00", "null", -32700},
	{`{"jsonrpc":"2.0","id":"a","method":"ping","params":{"a":"` + strings.Repeat("x", 17<<20) + `"}}`, `"a"`, -32600},
	{`{"jsonrpc":"2.0","method":"ping","params":{"id":2,"a":["` + strings.Repeat(`\"]`, 6<<20) + `"]},"\u0069d" : 1.0 }`,
		`1.0`,
		-32600},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", 17<<20), `1`, -32600},
	{strings.Repeat("x", 17<<20), `null`, -32600},
}

// TestNotMessages checks that each frame that is not a message is answered with its id, and that the server goes on.
func TestNotMessages(t *testing.T) {
	t.Parallel()
	forBothWires(t, "2025-11-25", func(t *testing.T, f *fixture, c rawClient) {
		for _, tt := range notMessages {
			checkError(t, tt.frame, c.exchange(t, tt.frame, 1)[0], tt.id, tt.code)
			if want := 400; c.status != nil && c.status() != want && (len(tt.frame) < 17<<20 || c.status() != 413) {
				t.Errorf("%.200q is answered with the status %d", tt.frame, c.status())
			}
			if got := c.exchange(t, `{"jsonrpc":"2.0","id":"ping","method":"ping"}`+"\r", 1); got[0] != pinged {
				t.Errorf("after %.200q a ping is answered with %.300q", tt.frame, got)
			}
		}
	})
}

// idShapes are ids as clients may write them.
var idShapes = []string{
	"0", "1", "-1", "9007199254740993", "123456789012345678901234567890", "1.5", "1.50", "1e3", "1E+3", "-0", "-0.0",
	`""`, `"1"`, `"a"`, `"\u0061"`, `"ü"`, `"\u00fc"`, `"a\"b\\c\/d\n"`, `"\ud83d\ude00"`, `"\ud800"`, `"<&>"`,
	`"` + "\u2028" + `"`,
	`"null"`, `"` + strings.Repeat("long ", 50_000) + `"`,
}

// TestIDs checks that ids and progress tokens come back as the client wrote them, in every kind of answer.
func TestIDs(t *testing.T) {
	t.Parallel()
	forBothWires(t, "2025-03-26", func(t *testing.T, f *fixture, c rawClient) {
		for n, id := range idShapes {
			request := func(method, params string) string {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
			}
			starts := func(kind, got, want string) {
				t.Helper()
				if !strings.HasPrefix(got, want) {
					t.Errorf("%s: %.300q, expected it to begin with %.300q", kind, got, want)
				}
			}
			result, fault := `{"jsonrpc":"2.0","id":`+id+`,"result":{`, `{"jsonrpc":"2.0","id":`+id+`,"error":{`
			echo := request("tools/call", `{"name":"shop.echo","arguments":{"a":"b"}}`)
			starts("result", c.exchange(t, request("ping", "{}"), 1)[0], result)
			starts("result of a call", c.exchange(t, echo, 1)[0], result)
			starts("error", c.exchange(t, request("prompts/get", `{"name":"no"}`), 1)[0], fault)
			starts("unknown method", c.exchange(t, request("no", `{}`), 1)[0], fault)
			starts("invalid", c.exchange(t, strings.Replace(echo, "2.0", "3.0", 1), 1)[0], fault)

			steps := c.exchange(t, request("tools/call", `{"name":"shop.order.steps","_meta":{"progressToken":`+id+`}}`), 3)
			if progress := fmt.Sprint(steps[:2]); strings.Count(progress, `"progressToken":`+id+`,`)+
				strings.Count(progress, `"progressToken":`+id+`}`) != 2 {
				t.Errorf("progress of %.100s: %.500q", id, progress)
			}
			starts("after progress", steps[2], result)

			other := fmt.Sprintf(`{"jsonrpc":"2.0","id":"other %d","method":"ping"}`, n)
			both := strings.Join(c.exchange(t, "["+request("ping", "{}")+","+other+`,{"jsonrpc":"2.0","id":`+id+`}]`, 1), ",")
			for _, want := range []string{result, `"id":"other `, fault} {
				if !strings.Contains(both, want) {
					t.Errorf("a batch: %.500q lacks %.300q", both, want)
				}
			}
			ended := c.slow(t, id)
			waitFor(t, "the call to begin", func() bool { return len(f.Slots("calls")) == 1 })
			c.exchange(t, cancelling(id), 0)
			c.checkCancelled(t, f, id, ended)
		}
	})
}

// TestCancelledInOtherWords checks that a request is cancelled by each spelling of its id, and by no other value.
func TestCancelledInOtherWords(t *testing.T) {
	t.Parallel()
	forBothWires(t, "2025-03-26", func(t *testing.T, f *fixture, c rawClient) {
		for _, ids := range [][2]string{{`"c\u00e9"`, `"cé"`}, {`"\/x"`, `"/x"`}, {`"\u005C\u0022"`, `"\\\""`},
			{`100`, `1e2`},
			{`1.50`, `15E-1`}, {`-0`, `0.0`}, {`9007199254740993`, `9007199254740993.0`}, {`"\ud83d\ude00"`, `"😀"`}} {
			for _, id := range [][2]string{ids, {ids[1], ids[0]}} {
				ended := c.slow(t, id[0])
				waitFor(t, "the call to begin", func() bool { return len(f.Slots("calls")) == 1 })
				for _, other := range []string{`17`, `"100"`, `"e"`, `[` + id[0] + `]`, id[1]} {
					if other == id[1] && len(f.Slots("calls")) != 1 {
						t.Errorf("the request %s was cancelled by another id", id[0])
					}
					c.exchange(t, cancelling(other), 0)
				}
				c.checkCancelled(t, f, id[0], ended)
			}
		}
	})
}

// TestIDInUse checks that a request with the id of one in flight is refused, and that the first one goes on.
func TestIDInUse(t *testing.T) {
	t.Parallel()
	forBothWires(t, "2025-11-25", func(t *testing.T, f *fixture, c rawClient) {
		ended := c.slow(t, "1")
		waitFor(t, "the call to begin", func() bool { return len(f.Slots("calls")) == 1 })
		checkError(t, "the same id", c.exchange(t, slowCall("1"), 1)[0], "1", -32600)
		c.exchange(t, cancelling("1"), 0)
		c.checkCancelled(t, f, "1", ended)
	})
}

// TestCancelledInBatch checks that the response to a batch lacks the requests of it that were cancelled, and that there
// is none if all were.
func TestCancelledInBatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcp.Minimal, trustNetwork)
	c := rawStdio(t, f.Server, "2025-03-26")
	for batch, want := range map[string][]string{
		slowCall("1"): nil,
		slowCall("2") + `,{"jsonrpc":"2.0","id":3,"method":"ping"}`: {`[{"jsonrpc":"2.0","id":3,"result":{}}]`},
	} {
		c.exchange(t, "["+batch+"]", 0)
		waitFor(t, "the call to begin", func() bool { return len(f.Slots("calls")) == 1 })
		id := string(batch[len(`{"jsonrpc":"2.0","id":`)])
		got := c.exchange(t, cancelling(id), len(want))
		if !slices.Equal(got, want) {
			t.Errorf("the batch %s is answered with %q", batch, got)
		}
		c.checkCancelled(t, f, id, nil)
	}
}

// TestBatches checks the bounds of batches, and that only revisions that have batches accept them.
func TestBatches(t *testing.T) {
	t.Parallel()
	batchOf := func(n int) string {
		var pings []string
		for i := range n {
			pings = append(pings, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
		}
		return "[" + strings.Join(pings, ",") + "]"
	}
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "9999"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			forBothWires(t, revision, func(t *testing.T, _ *fixture, c rawClient) {
				for n, valid := range map[int]bool{0: false, 1: true, 100: true, 101: false, 100_000: false} {
					got := c.exchange(t, batchOf(n), 1)
					if valid = valid && revision <= "2025-03-26"; !valid {
						checkError(t, fmt.Sprintf("%d messages", n), got[0], "null", -32600)
					} else if answers := strings.Join(got, ""); strings.Count(answers, `"result":{}`) != n {
						t.Errorf("%d messages are answered with %.300q", n, answers)
					}
				}
				if revision > "2025-03-26" {
					return
				}
				faults := `[` + hello(revision) + `,{"jsonrpc":"2.0","method":"notifications/x"},17,` +
					`{"jsonrpc":"2.0","id":"ping","method":"ping"},{"jsonrpc":"2.0","id":3,"method":"no"}]`
				got := strings.Join(c.exchange(t, faults, 1), "")
				if strings.Count(got, `-32600`) != 2 || !strings.Contains(got, `"id":1,"error"`) ||
					!strings.Contains(got, pinged) || strings.Count(got, `"jsonrpc"`) != 4 {
					t.Errorf("a batch with faults is answered with %.600q", got)
				}
			})
		})
	}
}

// TestErrorCodes checks that each error has a code of the table, whatever the method and the parameters are.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	methods := []string{"initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/templates/list",
		"resources/read", "resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get",
		"completion/complete",
		"logging/setLevel", "server/discover", "subscriptions/listen", "notifications/initialized", "notifications/cancelled",
		"notifications/progress", "tasks/get", "sampling/createMessage", "elicitation/create", "roots/list", "rpc.x", "ü"}
	params := []string{"", "{}", "null", `{"cursor":"no"}`, `{"cursor":"bm8"}`, `{"cursor":17}`, `{"name":"no"}`,
		`{"name":17}`,
		`{"name":"shop.add","arguments":[]}`, `{"uri":"parley://no"}`, `{"uri":"parley://docs/no"}`,
		`{"uri":"parley://result/no"}`,
		`{"uri":":"}`, `{"level":"no"}`, `{"ref":{"type":"no"},"argument":{}}`, `{"ref":17}`, `{"requestId":{}}`,
		`{"_meta":17}`, `{"_meta":{"progressToken":{}}}`, `{"_meta":{"io.modelcontextprotocol/protocolVersion":"9999"}}`,
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":17}}`, `{"protocolVersion":17}`}
	for _, revision := range []string{"", "2025-11-25"} {
		forBothWires(t, revision, func(t *testing.T, _ *fixture, c rawClient) {
			for _, method := range methods {
				if method == "initialize" && revision == "" {
					continue // it would begin a session
				}
				for _, p := range params {
					message := `{"jsonrpc":"2.0","id":"x","method":"` + method + `"`
					if p != "" {
						message += `,"params":` + p
					}
					for _, answer := range c.exchange(t, message+"}", 1) {
						var m struct {
							ID    string
							Error *struct {
								Code    int64
								Message string
							}
						}
						if err := json.Unmarshal([]byte(answer), &m); err != nil || m.ID != "x" {
							t.Errorf("%q is answered with %.300q", message, answer)
						}
						if m.Error != nil && !slices.Contains(frame.Codes(), m.Error.Code) {
							t.Errorf("%q is answered with %.300q", message, answer)
						}
						if m.Error != nil && goWords.MatchString(m.Error.Message) {
							t.Errorf("%q: the message is one of Go: %q", message, m.Error.Message)
						}
						if revision == "" && method == "tools/list" && p == "" &&
							(m.Error == nil || m.Error.Code != -32600 || !strings.Contains(m.Error.Message, "initialize")) {
							t.Errorf("before initialize: %.300q", answer)
						}
						if revision != "" && strings.HasSuffix(method, "/list") && strings.HasPrefix(p, `{"cursor":"`) &&
							method != "roots/list" && (m.Error == nil || m.Error.Code != -32602) {
							t.Errorf("an unknown cursor: %q is answered with %.300q", message, answer)
						}
						if revision != "" && method == "resources/read" && strings.Contains(p, "parley://") &&
							(m.Error == nil || m.Error.Code != -32002) {
							t.Errorf("an unknown resource: %.300q", answer)
						}
					}
				}
			}
		})
	}
}

// goWords matches what only a message of Go's packages says.
var goWords = regexp.MustCompile(`mcp\.|unmarshal|map\[|interface|\bGo\b|%!`)

// TestMistypedParams checks that the error of a parameter of a wrong type names it, its type and the given one.
func TestMistypedParams(t *testing.T) {
	t.Parallel()
	forBothWires(t, "2025-11-25", func(t *testing.T, _ *fixture, c rawClient) {
		for given, want := range map[string]string{
			`"tools/call","params":{"name":5}`:                        `"name" must be a JSON string, not number`,
			`"tools/call","params":{"name":{"a":" of type int"}}`:     `"name" must be a JSON string, not object`,
			`"tools/call","params":{"_meta":[]}`:                      `"_meta" must be a JSON object, not array`,
			`"tools/list","params":{"cursor":true}`:                   `"cursor" must be a JSON string, not boolean`,
			`"prompts/get","params":{"name":"x","arguments":{"a":1}}`: `"arguments.a" must be a JSON string, not number`,
			`"prompts/get","params":{"name":"x","arguments":[1]}`:     `"arguments" must be a JSON object, not array`,
			`"completion/complete","params":{"ref":5}`:                `"ref" must be a JSON object, not number`,
			`"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a"},"argument":{"value":"` +
				strings.Repeat("long ", 1000) + `","name":3}}`: `"argument.name" must be a JSON string, not number`,
			`"logging/setLevel","params":{"level":5}`:     `"level" must be a JSON string, not number`,
			`"initialize","params":{"protocolVersion":5}`: `"protocolVersion" must be a JSON string, not number`,
			`"ping","params":{"_meta":"x"}`:               `"_meta" must be a JSON object, not string`,
		} {
			answer := c.exchange(t, `{"jsonrpc":"2.0","id":1,"method":`+given+`}`, 1)[0]
			checkError(t, given, answer, "1", -32602)
			text, _ := json.Marshal(want)
			if !strings.Contains(answer, strings.Trim(string(text), `"`)) || goWords.MatchString(answer) {
				t.Errorf("%s: %s, expected %s", given, answer, want)
			}
		}
		checkError(t, "a second initialize", c.exchange(t, hello("2025-11-25"), 1)[0], "1", -32600)
	})
}

// TestUnknownVersion checks that an unknown version is answered with those that are known.
func TestUnknownVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcp.Minimal, trustNetwork)
	url := f.listen(t, mcp.HTTPConfig{})
	for _, version := range []string{"9999", "1", "2026-07-29", "x"} {
		status, body := post(t, url, `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`, "Mcp-Protocol-Version", version)
		checkError(t, version, body, "1.0", -32022)
		if status != 400 || !strings.Contains(body, `"supported":["2026-07-28","2025-11-25"`) {
			t.Errorf("%s: %d %s", version, status, body)
		}
	}
	forBothWires(t, "2025-11-25", func(t *testing.T, _ *fixture, c rawClient) {
		for _, version := range []string{"9999", "1", "2026-07-29", "x"} {
			for _, more := range []string{"", `,"io.modelcontextprotocol/clientCapabilities":{}`, `,"progressToken":1`} {
				for _, method := range []string{"ping", "tools/list", "tools/call", "server/discover", "no"} {
					request := `{"jsonrpc":"2.0","id":1.0,"method":"` + method + `","params":{"_meta":{"` +
						`io.modelcontextprotocol/protocolVersion":"` + version + `"` + more + `}}}`
					answer := c.exchange(t, request, 1)[0]
					checkError(t, request, answer, "1.0", -32022)
					if !strings.Contains(answer, `"supported":["2026-07-28","2025-11-25"`) {
						t.Errorf("%s: %s", request, answer)
					}
				}
			}
		}
	})
}

// FuzzFrames checks that a server on either wire answers a ping after any lines.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(initialize))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool","arguments":{"name":"shop.add","arguments":[]}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shop__echo","_meta":{"progressToken":{},"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"}]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"parley://docs/shop/%zz?tier=%"}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":3,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"tool","value":"\u0000"}}}`))
	for _, tt := range notMessages {
		if len(tt.frame) < 1<<10 {
			f.Add([]byte(tt.frame + "\n" + tt.frame))
		}
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		for _, connect := range []func(testing.TB, *mcp.Server, string) rawClient{rawStdio, rawHTTP} {
			s, err := newServer(mcp.Minimal, hostcall.Config{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			c := connect(t, s, "2025-03-26")
			const ping = `{"jsonrpc":"2.0","id":"ping","method":"ping"}`
			if c.status != nil {
				for line := range strings.Lines(string(lines)) {
					c.exchange(t, line, 0)
				}
				if got := c.exchange(t, ping, 0); !slices.Equal(got, []string{pinged}) {
					t.Fatalf("the ping is answered with %q", got)
				}
				continue
			}
			for got := c.exchange(t, string(lines)+"\n"+ping, 1); got[0] != pinged; {
				if !json.Valid([]byte(got[0])) {
					t.Fatalf("not JSON: %q", got)
				}
				got = c.exchange(t, "", 1)
			}
		}
	})
}
