package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Endpoint is a model behind the chat-completions API. It is not safe for concurrent use.
type Endpoint struct {
	URL  string // the base of the API, such as https://api.openai.com/v1
	Name string // name of the model
	Key  string // sent as a bearer token; "" sends none
	// Timeout bounds one request, the silence before its reply included. 0 means two minutes.
	Timeout time.Duration
	// Wait waits for d between tries. Nil means to let the time pass.
	Wait func(ctx context.Context, d time.Duration) error

	limitField string // the name under which this model takes the limit of its answer
}

const (
	defaultTimeout = 2 * time.Minute
	// maxTries is how often a question is sent if its exchange fails in a way that may pass.
	maxTries = 4
	// firstWait is the wait before the second try; it doubles with each. An endpoint may ask for up to maxWait.
	firstWait = time.Second
	maxWait   = time.Minute
	// maxReply bounds a reply, in bytes.
	maxReply = 4 << 20
)

// CheckURL returns why a base URL cannot be used, nil if it can. A key must not travel in clear, so only this machine
// is reached without TLS.
func CheckURL(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%q is not a URL such as https://api.example.com/v1", base)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the URL has a user, a query or a fragment; expected the base of an API alone")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return fmt.Errorf("%q is not https; only an endpoint on this machine may be http", base)
	}
	return nil
}

func isLoopback(name string) bool {
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}

// errTooLong is the cause of an error about a reply that is larger than maxReply.
var errTooLong = errors.New("the reply is too long")

// passing is the error of an exchange that may succeed when it is tried again.
type passing struct {
	err   error
	after time.Duration // what the endpoint asks to wait
	spent bool          // the model had begun to answer, so it may be charged
}

func (p *passing) Error() string { return p.err.Error() }

// try sends a question once, and completes the exchange with the answer.
func (e *Endpoint) try(ctx context.Context, q *Question, x *Exchange) error {
	timeout := cmp.Or(e.Timeout, defaultTimeout)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	raw, status, header, err := e.post(limited, q)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		return &passing{err: fmt.Errorf("no complete reply within %v", timeout), spent: true}
	case err != nil:
		return &passing{err: err, spent: status == http.StatusOK}
	case len(raw) > maxReply:
		return &host.Error{Code: host.LimitExceeded, Cause: errTooLong,
			Message: fmt.Sprintf("the reply of %s has more than %d bytes", e.URL, maxReply)}
	case status == http.StatusBadRequest && e.limitField == "" && bytes.Contains(raw, []byte("max_completion_tokens")):
		e.limitField = "max_completion_tokens" // newer models of OpenAI take no other
		return &passing{err: errors.New("it takes max_completion_tokens")}
	case status != http.StatusOK:
		return e.statusError(status, header, raw)
	}
	return x.complete(q, raw)
}

// post returns the body of a reply, or its beginning if it is larger than maxReply, without the key.
func (e *Endpoint) post(ctx context.Context, q *Question) (raw []byte, status int, header http.Header, err error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	field := cmp.Or(e.limitField, "max_tokens")
	body, _ := manifest.Marshal(map[string]any{ // strings and a number always encode
		"model": e.Name, "messages": []message{{"system", q.System}, {"user", q.Text}}, field: q.Limit,
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(e.URL, "/")+"/chat/completions",
		bytes.NewReader(body))
	if err != nil {
		return nil, 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if e.Key != "" {
		r.Header.Set("Authorization", "Bearer "+e.Key)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		return nil, 0, nil, errors.New(e.clean(err.Error()))
	}
	defer answer.Body.Close()
	raw, err = io.ReadAll(io.LimitReader(answer.Body, maxReply+1))
	if err != nil {
		err = errors.New("the reply was cut: " + e.clean(err.Error()))
	}
	if e.Key != "" {
		raw = bytes.ReplaceAll(raw, []byte(e.Key), []byte("[key]"))
	}
	return raw, answer.StatusCode, answer.Header, err
}

// clean returns a foreign text as one short line without the key.
func (e *Endpoint) clean(text string) string {
	if e.Key != "" {
		text = strings.ReplaceAll(text, e.Key, "[key]")
	}
	return manifest.Clip(manifest.CleanLine(text), 300)
}

// statusError returns the error of a reply that is not an answer.
func (e *Endpoint) statusError(status int, header http.Header, raw []byte) error {
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	text := string(raw)
	if json.Unmarshal(raw, &said) == nil && said.Error.Message != "" {
		text = said.Error.Message
	}
	err := fmt.Errorf("status %d: %s", status, e.clean(text))
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		return &passing{err: err, after: retryAfter(header.Get("Retry-After"), time.Now())}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return host.Errorf(host.ConfigError, "%s refuses the key: %v", e.URL, err).
			WithNext("correct the setting model.key", "parley config list")
	}
	return host.Errorf(host.Unavailable, "%s refuses the request: %v", e.URL, err).
		WithNext("correct the settings model.url and model.name", "parley config list")
}

// retryAfter reads a number of seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 1<<30)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// complete adds the answer in a completion. The next try may give a better one if it is not complete JSON, or has no
// choice.
func (x *Exchange) complete(q *Question, raw []byte) error {
	var c struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
		Usage *struct {
			In  int `json:"prompt_tokens"`
			Out int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		err = errors.New("the reply is not a completion: " + manifest.CleanLine(err.Error()))
		return &passing{err: err, spent: true}
	}
	if len(c.Choices) == 0 {
		return &passing{err: errors.New("the reply has no choices"), spent: true}
	}
	x.Answer = &c.Choices[0].Message.Content
	if c.Usage != nil && c.Usage.In >= 0 && c.Usage.Out >= 0 {
		x.In, x.Out = c.Usage.In, c.Usage.Out
	} else {
		x.In, x.Out, x.Estimated = q.tokens(), manifest.Tokens(*x.Answer), true
	}
	return nil
}

// sleep waits, unless the context ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
