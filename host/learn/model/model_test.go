package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
)

const key = "key-that-nobody-may-see"

// step is a reply of a scripted endpoint.
type step func(w http.ResponseWriter, r *http.Request)

func status(code int, header, text string) step {
	return func(w http.ResponseWriter, _ *http.Request) {
		if header != "" {
			w.Header().Set("Retry-After", header)
		}
		w.WriteHeader(code)
		fmt.Fprint(w, text)
	}
}

// says replies a completion.
func says(text string) step {
	raw, _ := json.Marshal(text)
	return status(http.StatusOK, "", `{"choices":[{"message":{"content":`+string(raw)+`},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":100,"completion_tokens":10}}`)
}

func silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func huge(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, `{"choices":[{"message":{"content":"`)
	for range 20 {
		fmt.Fprint(w, strings.Repeat("x", 1<<20))
	}
	fmt.Fprint(w, `"}}]}`)
}

func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	fmt.Fprint(w, `{"choices":[`)
}

// scripted is an endpoint that replies in fixed steps, the last one again and again.
type scripted struct {
	client *Client
	waits  []time.Duration
	bodies []string
	asked  int // how often it was asked to approve
}

func newScripted(t *testing.T, path string, steps ...step) *scripted {
	t.Helper()
	s := &scripted{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key ||
			json.NewDecoder(r.Body).Decode(&body) != nil {
			t.Errorf("%s %s", r.URL, r.Header)
		}
		s.bodies = append(s.bodies, string(body))
		steps[min(len(s.bodies), len(steps))-1](w, r)
	}))
	t.Cleanup(server.Close)
	recording, err := OpenRecording(path, true)
	if err != nil {
		t.Fatal(err)
	}
	s.client = &Client{
		Endpoint: &Endpoint{URL: server.URL + "/v1", Name: "m", Key: key, Timeout: time.Minute,
			Wait: func(_ context.Context, d time.Duration) error {
				s.waits, s.client.Endpoint.Timeout = append(s.waits, d), time.Minute
				return nil
			}},
		Recording: recording, Prices: Prices{In: 1, Out: 2},
		Approve: func(context.Context) error { s.asked++; return nil },
	}
	return s
}

var question = Question{Kind: "test", System: "Be short.", Text: "Which day?", Limit: 50}

// TestTrouble checks that what may pass is tried again, a bounded number of times, and that all else is not.
func TestTrouble(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []step
		calls int
		waits []time.Duration
		fails host.Code // "" if it succeeds
		says  string    // part of the error
	}{
		{"fine", []step{says("Monday")}, 1, nil, "", ""},
		{"429 with seconds", []step{status(429, "7", "{}"), says("Monday")}, 2, []time.Duration{7 * time.Second}, "", ""},
		{"429 without", []step{status(429, "", ""), status(429, "", ""), says("Monday")}, 3,
			[]time.Duration{time.Second, 2 * time.Second}, "", ""},
		{"429 for an hour", []step{status(429, "3600", "")}, 1, nil, host.Unavailable, "it asks to wait 1h0m0s"},
		{"500", []step{status(500, "", "oh"), says("Monday")}, 2, []time.Duration{time.Second}, "", ""},
		{"500 for ever", []step{status(500, "", "oh")}, 4, []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second},
			host.Unavailable, "after 4 requests: status 500: oh"},
		{"half a JSON", []step{status(200, "", `{"choices":[{"mess`), says("Monday")}, 2, []time.Duration{time.Second}, "",
			""},
		{"a cut reply", []step{cut, says("Monday")}, 2, []time.Duration{time.Second}, "", ""},
		{"no choices", []step{status(200, "", `{}`), says("Monday")}, 2, []time.Duration{time.Second}, "", ""},
		{"silence", []step{silence, says("Monday")}, 2, []time.Duration{time.Second}, "", ""},
		{"20 MB", []step{huge}, 1, nil, host.LimitExceeded, "more than 4194304 bytes"},
		{"another name of the limit", []step{status(400, "", `{"error":{"message":"use max_completion_tokens"}}`),
			says("Monday")}, 2, []time.Duration{time.Second}, "", ""},
		{"bad request", []step{status(400, "", `{"error":{"message":"no \u001b[31msuch model"}}`)}, 1, nil, host.Unavailable,
			"status 400: no "},
		{"the key", []step{status(401, "", "wrong "+key)}, 1, nil, host.ConfigError, "wrong [key]"},
		{"a redirect", []step{status(302, "", "")}, 1, nil, host.Unavailable, "status 302"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r.jsonl")
			s := newScripted(t, path, c.steps...)
			if c.name == "silence" {
				s.client.Endpoint.Timeout = 50 * time.Millisecond
			}
			text, err := s.client.Ask(t.Context(), question)
			if len(s.bodies) != c.calls || fmt.Sprint(s.waits) != fmt.Sprint(c.waits) || s.asked != 1 {
				t.Errorf("%d requests, waited %v, approved %d times", len(s.bodies), s.waits, s.asked)
			}
			switch {
			case c.fails == "" && (err != nil || text != "Monday"):
				t.Errorf("%q, %v", text, err)
			case c.fails != "" && (host.AsError(err).Code != c.fails || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%v", err)
			}
			recorded, err := os.ReadFile(path)
			if err != nil || strings.Count(string(recorded), "\n") != c.calls || strings.Contains(string(recorded), key) {
				t.Errorf("recorded %s, %v", recorded, err)
			}
		})
	}
}

// TestRecordingAnswers checks that a question is paid for once, that a replay sends nothing, and that it says what the
// recording does not have.
func TestRecordingAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "r.jsonl")
	s := newScripted(t, path, status(500, "", ""), says("Monday"))
	for range 2 {
		if text, err := s.client.Ask(t.Context(), question); text != "Monday" || err != nil {
			t.Fatal(text, err)
		}
	}
	if u := s.client.Usage(); u.Calls != 2 || u.Recorded != 1 || u.In != 100 || u.Out != 10 || u.Cost != 0.00012 {
		t.Errorf("%+v", u)
	}

	// a machine that stopped while it was writing loses that line alone
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(file, `{"digest":"sha2`)
	file.Close()
	again := newScripted(t, path, says("Tuesday"))
	other := question
	other.Text = "Which month?"
	for q, want := range map[Question]string{question: "Monday", other: "Tuesday"} {
		if text, err := again.client.Ask(t.Context(), q); text != want || err != nil {
			t.Error(text, err)
		}
	}
	if len(again.bodies) != 1 || again.asked != 1 {
		t.Errorf("%d requests, approved %d times", len(again.bodies), again.asked)
	}

	recording, err := OpenRecording(path, false)
	if err != nil || recording.Damaged != 1 || fmt.Sprint(recording.Models) != "[m]" {
		t.Fatalf("%+v, %v", recording, err)
	}
	replay := &Client{Endpoint: &Endpoint{Name: "m"}, Recording: recording, Replay: true}
	if text, err := replay.Ask(t.Context(), other); text != "Tuesday" || err != nil {
		t.Error(text, err)
	}
	other.Text = "Which year?"
	_, err = replay.Ask(t.Context(), other)
	if host.AsError(err).Code != host.NotFound || !strings.Contains(err.Error(), "has no answer to this question") {
		t.Error(err)
	}
	if _, err := OpenRecording(filepath.Join(t.TempDir(), "missing"), false); host.AsError(err).Code != host.Unavailable {
		t.Error(err)
	}
}

// TestBudget checks that a request is not sent if it could exceed what was approved.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget Budget
		asked  int // questions that are answered
	}{
		{"calls", Budget{Calls: 3}, 3},
		{"tokens", Budget{Tokens: 300}, 3}, // each takes 110 of them, and could take 56
		{"cost", Budget{Cost: 0.00025}, 2}, // each costs 0.00012, and could cost 0.000106
		{"nothing", Budget{Tokens: 10}, 0}, // so nobody is asked
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScripted(t, filepath.Join(t.TempDir(), "r.jsonl"), says("Monday"))
			s.client.Budget = c.budget
			answered := 0
			for i := range 5 {
				q := question
				q.Text = fmt.Sprint(i)
				_, err := s.client.Ask(t.Context(), q)
				if err == nil {
					answered++
				} else if !errors.Is(err, ErrBudget) || host.AsError(err).Code != host.LimitExceeded {
					t.Fatal(err)
				}
			}
			if answered != c.asked || len(s.bodies) != c.asked || s.asked != min(1, c.asked) {
				t.Errorf("%d answered, %d sent, approved %d times", answered, len(s.bodies), s.asked)
			}
		})
	}
}

// TestRefusedApproval checks that nothing is sent without approval.
func TestRefusedApproval(t *testing.T) {
	s := newScripted(t, filepath.Join(t.TempDir(), "r.jsonl"), says("Monday"))
	s.client.Approve = func(context.Context) error { return host.Errorf(host.Denied, "no") }
	if _, err := s.client.Ask(t.Context(), question); host.AsError(err).Code != host.Denied || len(s.bodies) != 0 {
		t.Errorf("%v, %d requests", err, len(s.bodies))
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "-3": 0, "soon": 0, "12": 12 * time.Second, "99999999999999": (1 << 30) * time.Second,
		"Tue, 24 Nov 2026 10:00:30 GMT": 30 * time.Second, "Tue, 24 Nov 2026 09:00:30 GMT": 0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func TestCheckURL(t *testing.T) {
	for base, ok := range map[string]bool{
		"https://api.example.com/v1": true, "http://localhost:11434/v1": true, "http://127.0.0.1:8080": true,
		"http://api.example.com/v1": false, "ftp://localhost": false, "api.example.com": false, "": false,
		"https://user:key@api.example.com/v1": false, "https://api.example.com/v1?key=1": false,
	} {
		if err := CheckURL(base); (err == nil) != ok {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// FuzzReply checks that no reply and no recording breaks the decoder.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":-1}}`))
	f.Add([]byte("{\"digest\":\"d\",\"answer\":\"\"}\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var x Exchange
		if err := x.complete(&question, data); err == nil && (x.In < 0 || x.Out < 0) {
			t.Errorf("%+v", x)
		}
		path := filepath.Join(t.TempDir(), "r")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenRecording(path, false); err != nil {
			t.Error(err)
		}
		var object map[string]any
		_ = Object(string(data), &object)
	})
}
