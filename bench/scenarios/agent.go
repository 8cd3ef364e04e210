package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/bench/internal/o200k"
	"github.com/parley-tools/parley/bench/internal/tree"
	"github.com/parley-tools/parley/host/learn/model"
)

// mind decides what to do next. It is a model, or what a model once wrote.
type mind interface {
	next(ctx context.Context, system, text string) (string, error)
}

// asking asks a model.
type asking struct{ client *model.Client }

// maxWritten bounds one answer of the model, in tokens.
const maxWritten = 4000

func (a *asking) next(ctx context.Context, system, text string) (string, error) {
	return a.client.Ask(ctx, model.Question{Kind: "scenario", System: system, Text: text, Limit: maxWritten})
}

// thinkTime is what a replayed turn takes after a call that may load a page. A model takes longer, so that it had seen
// a page that was loaded.
const thinkTime = 300 * time.Millisecond

// replayed repeats what a model wrote.
type replayed struct {
	run    recorded
	onPage bool // the task has a page
	turn   int
}

func (r *replayed) next(ctx context.Context, _, _ string) (string, error) {
	if r.onPage && r.turn > 0 {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(thinkTime):
		}
	}
	if r.turn == len(r.run.Turns) {
		return "", errors.New("the recorded run is at its end, and the task is not: a reply has changed; record it again")
	}
	r.turn++
	return r.run.Turns[r.turn-1].Wrote, nil
}

// rules are what the model is told before all else. They say nothing about Parley.
const rules = `You do a task with tools, and with nothing else. Reply with one JSON object and no other text:
{"calls": [{"tool": NAME, "arguments": {..}}, ..]} makes calls; put several in one reply if none needs the result of
another.
{"answer": TEXT} ends the task with its answer. {"give_up": WHY} ends it without.
Never guess what a tool can compute or look up. Use only tool names and parameters that you have read here.

`

// move is what the model decides.
type move struct {
	Calls []struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"calls"`
	Answer *string `json:"answer"`
	GiveUp *string `json:"give_up"`
}

// result is what came of a task.
type result struct {
	end           string // one of the constants below
	turns         []turn
	calls, failed int
	read, written int // tokens
}

const (
	done     = "done"
	wrong    = "wrong" // the answer lacks something
	gaveUp   = "given up"
	noAnswer = "no answer"
)

func (r result) String() string {
	return fmt.Sprintf("%s, %d turns, %d calls, %d failed, %d read, %d written", r.end, len(r.turns), r.calls, r.failed,
		r.read, r.written)
}

// maxTurns bounds a task. One that takes more has no answer.
const maxTurns = 25

// bench does tasks with one build of Parley.
type bench struct{ binary, home string }

// do does a task in a mode, with a session and pages of its own.
func (b *bench) do(ctx context.Context, m mind, t task, mode string) (r result, err error) {
	s, err := serve()
	if err != nil {
		return r, err
	}
	defer s.close()
	tools, err := b.open(ctx, mode)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, tools.close(), tree.CloseBrowser(b.binary, b.home)) }()
	names := newNames(s.address)
	system := rules + names.hide(tools.intro())
	text := "Task: " + strings.ReplaceAll(t.asked, "URL", "http://"+shownAddress+"/") + "\n"
	r.read = o200k.Count(system) + o200k.Count(text)
	for len(r.turns) < maxTurns {
		wrote, err := m.next(ctx, system, text)
		if err != nil {
			return r, err
		}
		now := turn{Wrote: wrote}
		r.written += o200k.Count(wrote)
		added := "\nYou: " + wrote + "\n"
		var did move
		bad := model.Object(wrote, &did)
		if bad == nil && len(did.Calls) == 0 && did.Answer == nil && did.GiveUp == nil {
			bad = errors.New("it has neither calls, nor answer, nor give_up")
		}
		if bad != nil {
			added += "Reply with one JSON object: " + bad.Error() + "\n"
		}
		for i, c := range did.Calls {
			out, outcome, err := tools.call(ctx, c.Tool, json.RawMessage(names.show(string(c.Arguments))))
			if err != nil {
				return r, err
			}
			now.Outcomes = append(now.Outcomes, outcome)
			r.calls++
			if outcome != succeeded {
				r.failed++
			}
			got := names.hide(fmt.Sprintf("Result %d: %s\n", i+1, out))
			r.read += o200k.Count(got)
			added += got
		}
		r.turns = append(r.turns, now)
		text += added
		if len(did.Calls) > 0 {
			continue
		}
		switch {
		case did.Answer != nil && t.isDone(names.show(*did.Answer), s):
			r.end = done
		case did.Answer != nil:
			r.end = wrong
		case did.GiveUp != nil:
			r.end = gaveUp
		default:
			continue
		}
		return r, nil
	}
	r.end = noAnswer
	return r, nil
}

// sameCourse returns how a replayed run differs from the recorded one: in the number of turns, in how a call ends, or
// in how the task ends.
func sameCourse(past recorded, r result) error {
	if len(past.Turns) != len(r.turns) {
		return fmt.Errorf("%d turns, recorded %d", len(r.turns), len(past.Turns))
	}
	for i, now := range r.turns {
		if !slices.Equal(now.Outcomes, past.Turns[i].Outcomes) {
			return fmt.Errorf("turn %d: the calls end with %q, recorded %q: %s", i+1, now.Outcomes, past.Turns[i].Outcomes,
				now.Wrote)
		}
	}
	if r.end != past.End {
		return fmt.Errorf("it ends as %s, recorded %s", r.end, past.End)
	}
	return nil
}
