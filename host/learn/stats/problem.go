package stats

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Problem is something that is worth fixing, in words.
type Problem struct {
	Tool  string `json:"tool,omitempty"`
	Text  string `json:"text"`
	Cases int    `json:"cases"` // calls or searches that it cost
}

const (
	maxProblems = 3
	// MinCases and MinSessions are the least numbers of cases, and of sessions that have them, that count as a finding.
	MinCases    = 3
	MinSessions = 2
	// SlowMS is the median in milliseconds from which a tool is slow.
	SlowMS = 5000
)

// minNever is the number of failed calls from which on a tool without a success is said never to work.
const minNever = 10

// problems returns the problems that cost most.
func problems(r *Report, catalog *host.Catalog) []Problem {
	found := []Problem{}
	add := func(tool string, e Evidence, format string, args ...any) {
		if e.Enough() {
			found = append(found, Problem{tool, fmt.Sprintf(format, args...), e.N})
		}
	}
	for _, t := range r.Tools {
		if t.Failed == t.Calls && t.Calls >= minNever && len(t.Codes) > 0 {
			add(t.Name, Evidence{N: t.Calls, Sessions: t.Sessions}, "%s never works: all of %d calls failed, %d of them with %s",
				t.Name, t.Calls, t.Codes[0].N, t.Codes[0].Name)
		}
		for _, c := range t.Contrasts {
			add(t.Name, Evidence{N: max(c.With.N, c.Without.N), Sessions: t.Sessions}, "%s %s", t.Name, c)
		}
		for _, f := range t.Fields {
			how := "expected " + f.Expected
			switch f.Keyword {
			case "additionalProperties":
				how = "there is no such parameter"
			case "required":
				how = "it is required and was missing"
			}
			add(t.Name, f.Evidence, "%s: %s of %d failed at %s (%s): %s", t.Name, manifest.Plural(f.N, "call"), t.Calls,
				f.Pointer, manifest.Plural(f.Sessions, "session"), how)
		}
		if p := t.P50; p != nil && p.Low > SlowMS {
			add(t.Name, Evidence{N: t.Calls, Sessions: MinSessions}, "%s is slow: half of %d calls take more than %.1f s",
				t.Name, p.Of, p.Value/1000)
		}
	}
	for _, c := range r.Confusions {
		if at, ok := Find(catalog, c.Meant); ok && at.Tool.Deprecated != nil &&
			strings.EqualFold(at.Plugin+"."+at.Tool.Deprecated.Use, c.Called) {
			add(c.Called, c.Evidence, "%s replaces %s, and callers go back: %s of it failed, and then the other succeeded",
				c.Called, c.Meant, manifest.Plural(c.N, "call"))
			continue
		}
		if c.MeantWorks.Fails() {
			continue
		}
		add(c.Called, c.Evidence, "%s is taken for %s: %s failed, and then the other succeeded (%s)", c.Called, c.Meant,
			manifest.Plural(c.N, "call"), manifest.Plural(c.Sessions, "session"))
	}
	for _, m := range r.Search.Misses {
		add(m.Tool, m.Evidence, "%s is not found: %d searches did not have it among the first five (%s)",
			m.Tool, m.N, manifest.Plural(m.Sessions, "session"))
	}
	slices.SortStableFunc(found, func(a, b Problem) int { return cmp.Or(b.Cases-a.Cases, cmp.Compare(a.Text, b.Text)) })
	return found[:min(len(found), maxProblems)]
}

// String says what separates failures from successes: "fails with limit 500 in 12 of 14 calls, else in 1 of 30".
func (c Contrast) String() string {
	what := "with " + c.Name
	if c.What == "after" {
		what = "after " + c.Name
	} else if c.Value != "" {
		what += " " + c.Value
	}
	return fmt.Sprintf("fails %s in %d of %d calls, else in %d of %d", manifest.CleanLine(what), c.With.N, c.With.Of,
		c.Without.N, c.Without.Of)
}
