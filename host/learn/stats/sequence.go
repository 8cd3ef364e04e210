package stats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/lists"
)

// Sequence are calls that succeeded one after another, with the same tools in the same order in several sessions.
type Sequence struct {
	Tools    []string `json:"tools"`
	Evidence          // its calls are the first ones of the last such sequences
	// Arguments are the parameters of each call, most frequent first.
	Arguments [][]Argument `json:"arguments"`
}

// Argument is a parameter of a call in a sequence.
type Argument struct {
	Name string `json:"name"`
	N    int    `json:"n"` // sequences in which it was given
	// Shape is the shape of the value, or with recorded values the value, if all were the same.
	Shape json.RawMessage `json:"shape,omitempty"`
	// From is the number of the earlier call of the sequence, from 1, whose result had most of the values, and Result the
	// JSON pointer to the value there. From is 0 if no result had most of them.
	From   int    `json:"from,omitempty"`
	Result string `json:"result,omitempty"`
}

// Limits of sequences.
const (
	maxSequence  = 8   // calls
	maxSuccesses = 200 // calls of a session that are looked at
	maxSequences = 5   // in a report
	// A sequence has to occur in minRuns sessions, and in the share minRunShare of the sessions that called its first
	// tool.
	minRuns     = 5
	minRunShare = 0.2
)

// sequences returns the sequences that most sessions run, without parts of longer ones that are hardly run by
// themselves.
func (c *counter) sequences() []Sequence {
	found := map[string]*group{}
	for session, w := range c.sessions {
		w.windows(func(calls []*host.Record) { at(&found, key(calls)).add(session, "") })
	}
	var keys []string
	for k, g := range found {
		first, _, _ := strings.Cut(k, "\n")
		if g.Sessions >= minRuns && float64(g.Sessions) >= minRunShare*float64(c.alone[first]) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(strings.Count(b, "\n")-strings.Count(a, "\n"), found[b].Sessions-found[a].Sessions,
			cmp.Compare(a, b))
	})
	var chosen []string
	for _, k := range keys {
		if !slices.ContainsFunc(chosen, func(longer string) bool {
			return strings.Contains("\n"+longer+"\n", "\n"+k+"\n") && 4*found[k].Sessions < 5*found[longer].Sessions
		}) {
			chosen = append(chosen, k)
		}
	}
	slices.SortStableFunc(chosen, func(a, b string) int { return found[b].Sessions - found[a].Sessions })
	return append([]Sequence{}, lists.Map(chosen[:min(len(chosen), maxSequences)], c.sequence)...)
}

func key(calls []*host.Record) string {
	return strings.Join(lists.Map(calls, func(r *host.Record) string { return r.Tool }), "\n")
}

// windows visits the runs of calls that can be a sequence: with at least two different tools, and not one run twice.
func (w *walk) windows(visit func(calls []*host.Record)) {
	for i := range w.successes {
		for n := 2; n <= maxSequence && i+n <= len(w.successes); n++ {
			calls := w.successes[i : i+n]
			twice := n%2 == 0 && key(calls[:n/2]) == key(calls[n/2:])
			if !twice && slices.ContainsFunc(calls, func(r *host.Record) bool { return r.Tool != calls[0].Tool }) {
				visit(calls)
			}
		}
	}
}

// sequence gathers the parameters of a sequence.
func (c *counter) sequence(of string) Sequence {
	s := Sequence{Tools: strings.Split(of, "\n")}
	var all group
	found := make([]map[string]*argument, len(s.Tools))
	for _, session := range slices.Sorted(maps.Keys(c.sessions)) {
		c.sessions[session].windows(func(calls []*host.Record) {
			if key(calls) != of {
				return
			}
			all.add(session, calls[0].Call)
			for i, r := range calls {
				eachParameter(r, func(name string, value json.RawMessage) {
					at(&found[i], name).add(value, r.From[name], calls[:i])
				})
			}
		})
	}
	s.Evidence = all.Evidence
	for _, arguments := range found {
		list := []Argument{}
		for name, a := range arguments {
			list = append(list, a.argument(name))
		}
		slices.SortFunc(list, func(a, b Argument) int { return cmp.Or(b.N-a.N, cmp.Compare(a.Name, b.Name)) })
		s.Arguments = append(s.Arguments, list)
	}
	return s
}

// argument counts the values of a parameter of a call, and where they came from.
type argument struct {
	n     int
	shape json.RawMessage // nil if there were different ones
	from  map[source]int
}

// source is a value in the result of an earlier call of a sequence.
type source struct {
	call    int
	pointer string
}

// add counts a value that came from somewhere in the results of the calls before.
func (a *argument) add(value json.RawMessage, from string, before []*host.Record) {
	if a.n++; a.n == 1 {
		a.shape, a.from = value, map[source]int{}
	} else if !bytes.Equal(a.shape, value) {
		a.shape = nil
	}
	tool, pointer, _ := strings.Cut(from, "/")
	for i, r := range slices.Backward(before) {
		if r.Tool == tool {
			a.from[source{i + 1, "/" + pointer}]++
			break
		}
	}
}

func (a *argument) argument(name string) Argument {
	made := Argument{Name: name, N: a.n, Shape: a.shape}
	for s, n := range a.from {
		if 2*n > a.n {
			made.From, made.Result = s.call, s.pointer
		}
	}
	return made
}
