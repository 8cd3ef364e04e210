package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/bench/internal/o200k"
)

// cost is what a task cost an agent.
type cost struct {
	calls, in, out int // in: tokens that the model writes, out: those that it reads
	took           time.Duration
}

// outcome is how a task ended.
type outcome string

const (
	succeeded outcome = "ok"
	failed    outcome = "failure"             // and the agent can tell
	silent    outcome = "silent wrong answer" // every call succeeded, but the task is not done
)

// agent does one task with a tool.
type agent struct {
	seat   seat
	site   *site
	url    string // of the page of the task
	upload string // path of a file that the agent has
	name   string // for what tools keep from run to run

	cost
	log []exchange
	err error // the first failure, after which the agent gives up
}

// exchange is a call and its reply.
type exchange struct{ wrote, read string }

// follow makes the calls of a script until one fails.
func (a *agent) follow(ctx context.Context, s script) error {
	if len(s) == 0 {
		a.err = errors.New("the tool has no way to do this")
	}
	for _, template := range s {
		text, err := a.fill(template)
		if err != nil {
			a.err = err
			return nil
		}
		start := time.Now()
		r, err := a.seat.call(ctx, text)
		a.took += time.Since(start)
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		a.calls++
		a.in += o200k.Count(text)
		a.out += o200k.Count(r.text)
		a.log = append(a.log, exchange{text, r.text})
		if r.failed {
			a.err = errors.New("the tool reported a failure")
			return nil
		}
	}
	return nil
}

// read returns everything that the tool has printed.
func (a *agent) read() string {
	var all []string
	for _, e := range a.log {
		all = append(all, e.read)
	}
	return strings.Join(all, "\n")
}

// transcript shows what was written and read, with the tokens of both, for a person.
func (a *agent) transcript() string {
	var b strings.Builder
	for _, e := range a.log {
		fmt.Fprintf(&b, "%d> %s\n%d< %s\n", o200k.Count(e.wrote), e.wrote, o200k.Count(e.read),
			strings.TrimRight(e.read, "\n"))
	}
	if a.err != nil {
		fmt.Fprintln(&b, "!", a.err)
	}
	return b.String()
}

// place is where a script needs what an agent reads: a ref such as <button "Save">, <new page>, a coordinate such as
// <x+120>, counted from the edge of a box, or what the group of a pattern matches: <~/(\w+)\.zip~>.
var place = regexp.MustCompile(`<(?:(\w+) "([^"]*)"|new page|([xy])\+(\d+)|~(.+?)~)>`)

// fill replaces URL, FILE, NAME and places. What a place needs comes from the latest reply that shows it.
func (a *agent) fill(template string) (text string, err error) {
	text = strings.NewReplacer("URL", a.url, "FILE", a.upload, "NAME", a.name).Replace(template)
	text = place.ReplaceAllStringFunc(text, func(wanted string) string {
		m := place.FindStringSubmatch(wanted)
		for _, e := range slices.Backward(a.log) {
			if known := learn(e.read, m); known != "" {
				return known
			}
		}
		err = fmt.Errorf("no reply shows %s", wanted)
		return wanted
	})
	return text, err
}

// learn finds in a reply what a place, with its submatches, stands for, or "".
func learn(shown string, m []string) string {
	switch {
	case m[1] != "":
		return refIn(shown, m[1], m[2])
	case m[3] != "":
		return pointIn(shown, m[3], m[4])
	case m[5] != "":
		if found := regexp.MustCompile(m[5]).FindStringSubmatch(shown); found != nil {
			return found[1]
		}
		return ""
	}
	return newPageIn(shown)
}

// refForms are how tools write the ref of an element; %s is its role and quoted name.
var refForms = []string{
	`uid=(\w+) %s`,         // chrome-devtools-mcp
	`%s[^\n]*?\bref=(\w+)`, // agent-browser, playwright-cli
	`%s ([a-z]{3}\d+)\b`,   // parley
}

// refIn finds the ref of an element in a snapshot, or "". The role text is that of plain text.
func refIn(shown, role, name string) string {
	element := regexp.QuoteMeta(role) + ` " ?` + regexp.QuoteMeta(name) + ` ?"` // some tools keep spaces
	if role == "text" {
		element = regexp.QuoteMeta(strconv.Quote(name)) // chrome-devtools-mcp writes no role
	}
	for _, form := range refForms {
		if m := regexp.MustCompile(fmt.Sprintf(form, element)).FindStringSubmatch(shown); m != nil {
			return m[1]
		}
	}
	return ""
}

// pointIn finds the left (x) or upper (y) edge of the first box in a text and adds an offset, or returns "".
func pointIn(shown, axis, offset string) string {
	m := regexp.MustCompile(`\b` + axis + `\b"?: *(-?[\d.]+)`).FindStringSubmatch(shown)
	if m == nil {
		return ""
	}
	edge, _ := strconv.ParseFloat(m[1], 64)
	by, _ := strconv.ParseFloat(offset, 64)
	return strconv.FormatFloat(edge+by, 'f', -1, 64)
}

// newPageForms are how tools name a page that has opened.
var newPageForms = []*regexp.Regexp{
	regexp.MustCompile(`"new_pages":\[\{"target":"(\w+)"`), // parley
	regexp.MustCompile(`(?s).*\n(\d+): `),                  // chrome-devtools-mcp: the last of the list
}

// newPageIn finds the name of a page that has opened, or "".
func newPageIn(shown string) string {
	for _, form := range newPageForms {
		if m := form.FindStringSubmatch(shown); m != nil {
			return m[1]
		}
	}
	return ""
}
