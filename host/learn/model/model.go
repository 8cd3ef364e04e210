// Package model asks a language model over the chat-completions API, which most vendors and local servers have. Every
// exchange goes to a recording, which answers the same question the next time, so nothing is paid for twice, and a run
// can be replayed without a model. Nothing is sent before the budget was approved.
package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Question is what a model is asked. The same question to the same model has the same digest.
type Question struct {
	Kind   string // what it is for, for readers of a recording; it is not sent
	System string
	Text   string
	Limit  int // most tokens of the answer
}

// digest identifies a question to a model.
func (q *Question) digest(name string) string {
	raw, _ := manifest.Marshal([]any{name, q.System, q.Text, q.Limit})
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// tokens estimates the tokens of the question.
func (q *Question) tokens() int { return manifest.Tokens(q.System) + manifest.Tokens(q.Text) }

// Most estimates the most tokens that a question can cost, its answer included.
func (q *Question) Most() int { return q.tokens() + q.Limit }

// Budget bounds what a [Client] spends. 0 means no bound.
type Budget struct {
	Calls  int
	Tokens int
	Cost   float64
}

// Prices are for a million tokens, in any currency. 0 and 0 mean that the price is not known.
type Prices struct{ In, Out float64 }

// Known reports whether costs can be computed.
func (p Prices) Known() bool { return p.In > 0 || p.Out > 0 }

// Cost returns what tokens cost.
func (p Prices) Cost(in, out int) float64 { return (float64(in)*p.In + float64(out)*p.Out) / 1e6 }

// Usage is what was spent.
type Usage struct {
	Model     string  `json:"model"`
	Calls     int     `json:"calls"`    // requests that were sent, repeated ones included
	Recorded  int     `json:"recorded"` // questions that the recording answered
	In        int     `json:"tokens_in"`
	Out       int     `json:"tokens_out"`
	Cost      float64 `json:"cost,omitempty"`      // by the configured prices
	Estimated bool    `json:"estimated,omitempty"` // the endpoint did not count all tokens
	Recording string  `json:"recording"`           // the file
}

// ErrBudget is the cause of an error after which no more is asked.
var ErrBudget = errors.New("the budget is used up")

// Client asks a model within a budget. It is not safe for concurrent use.
type Client struct {
	Endpoint  *Endpoint
	Recording *Recording
	Replay    bool // the recording answers every question, and nothing is sent
	Budget    Budget
	Prices    Prices
	// Approve is called once, before the first request is sent. An error keeps it from being sent.
	Approve func(ctx context.Context) error

	used     Usage
	approved bool
}

// Usage returns what was spent up to now.
func (c *Client) Usage() Usage {
	u := c.used
	u.Model, u.Recording = c.Endpoint.Name, c.Recording.Path
	u.Cost = c.Prices.Cost(u.In, u.Out)
	return u
}

// Recorded returns the recorded answer to a question, without asking.
func (c *Client) Recorded(q Question) (string, bool) {
	x, ok := c.Recording.answers[q.digest(c.Endpoint.Name)]
	if !ok {
		return "", false
	}
	return *x.Answer, true
}

// Ask returns the answer to a question: from the recording, or else from the model. The error has the cause
// [ErrBudget] when the next request could exceed the budget.
func (c *Client) Ask(ctx context.Context, q Question) (string, error) {
	if text, ok := c.Recorded(q); ok {
		c.used.Recorded++
		return text, nil
	}
	if c.Replay {
		return "", host.Errorf(host.NotFound, "%s has no answer to this question (%s, %s): what is asked has changed since "+
			"it was recorded", c.Recording.Path, q.Kind, q.digest(c.Endpoint.Name)[:19]).
			WithNext("record it again, without --replay")
	}
	for try := 1; ; try++ {
		if err := c.afford(&q); err != nil {
			return "", err
		}
		if !c.approved {
			if err := c.Approve(ctx); err != nil {
				return "", err
			}
			c.approved = true
		}
		text, err := c.send(ctx, &q)
		var again *passing
		switch {
		case err == nil:
			return text, nil
		case !errors.As(err, &again):
			return "", err
		case try == maxTries || again.after > maxWait:
			return "", c.gaveUp(try, again)
		}
		wait := c.Endpoint.Wait
		if wait == nil {
			wait = sleep
		}
		if err := wait(ctx, max(firstWait<<(try-1), again.after)); err != nil {
			return "", err
		}
	}
}

// afford returns an error if the next request could exceed the budget.
func (c *Client) afford(q *Question) error {
	in := q.tokens()
	var why string
	switch b := c.Budget; {
	case b.Calls > 0 && c.used.Calls+1 > b.Calls:
		why = fmt.Sprintf("%d of %s are sent", b.Calls, manifest.Plural(b.Calls, "request"))
	case b.Tokens > 0 && c.used.In+c.used.Out+q.Most() > b.Tokens:
		why = fmt.Sprintf("%d of %d tokens are spent, and the next request can take %d", c.used.In+c.used.Out, b.Tokens,
			q.Most())
	case b.Cost > 0 && c.Prices.Cost(c.used.In+in, c.used.Out+q.Limit) > b.Cost:
		why = fmt.Sprintf("%.4f of %.4f are spent, and the next request can cost %.4f",
			c.Prices.Cost(c.used.In, c.used.Out), b.Cost, c.Prices.Cost(in, q.Limit))
	default:
		return nil
	}
	return &host.Error{Code: host.LimitExceeded, Cause: ErrBudget, Message: "the budget is used up: " + why,
		Next: []string{"run it again with a larger one; " + c.kept()}}
}

// send sends a question once and records the exchange.
func (c *Client) send(ctx context.Context, q *Question) (string, error) {
	x := &Exchange{Time: time.Now().UTC().Truncate(time.Millisecond), Digest: q.digest(c.Endpoint.Name), Kind: q.Kind,
		Model: c.Endpoint.Name, System: q.System, Text: q.Text, Limit: q.Limit}
	c.used.Calls++
	err := c.Endpoint.try(ctx, q, x)
	x.MS = float64(time.Since(x.Time).Milliseconds())
	if err != nil {
		x.Error = err.Error()
	}
	if again := (*passing)(nil); errors.As(err, &again) && again.spent || errors.Is(err, errTooLong) {
		x.In, x.Out, x.Estimated = q.tokens(), q.Limit, true // as if all of it was charged
	}
	c.used.In, c.used.Out = c.used.In+x.In, c.used.Out+x.Out
	c.used.Estimated = c.used.Estimated || x.Estimated
	if failed := c.Recording.append(x); failed != nil {
		return "", failed
	}
	if err != nil {
		return "", err
	}
	return *x.Answer, nil
}

// gaveUp returns the error of a question that was not answered.
func (c *Client) gaveUp(tries int, last *passing) error {
	text := fmt.Sprintf("%s does not answer, after %s: %v", c.Endpoint.URL, manifest.Plural(tries, "request"), last.err)
	if last.after > maxWait {
		text += fmt.Sprintf("; it asks to wait %v", last.after.Round(time.Second))
	}
	return &host.Error{Code: host.Unavailable, Cause: last, Message: text,
		Next: []string{"run it again later; " + c.kept()}}
}

func (c *Client) kept() string { return "answers in " + c.Recording.Path + " are not asked for again" }

// Object decodes the JSON object in an answer. Models like to put JSON into a block of Markdown, with words around it.
func Object(answer string, into any) error {
	begin, end := strings.IndexByte(answer, '{'), strings.LastIndexByte(answer, '}')
	if begin < 0 || end < begin {
		return errors.New("it has no JSON object")
	}
	return json.Unmarshal([]byte(answer[begin:end+1]), into)
}
