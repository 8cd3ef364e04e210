package stats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Sequence are calls that succeeded one after another, with the same tools in the same order in several sessions.
type Sequence struct {
	Tools    []string `json:"tools"`
	N        int      `json:"n"`
	Sessions int      `json:"sessions"`
	Calls    []string `json:"calls"` // ids of the first calls of the last such sequences
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
	// minRuns is in how many sessions a sequence has to occur, and minRunShare in which part of those that called its
	// first tool.
	minRuns     = 5
	minRunShare = 0.2
)

// success is a call that succeeded.
type success struct {
	tool, call string
	params     json.RawMessage
	from       map[string]string
}

func successOf(r *host.Record) success { return success{r.Tool, r.Call, r.Params, r.From} }

// sequences returns the sequences that most sessions run, without parts of longer ones that are hardly run by
// themselves.
func (c *counter) sequences() []Sequence {
	found := map[string]*group{}
	for session, w := range c.sessions {
		w.windows(func(calls []success) {
			at(found, key(calls)).add(&host.Record{Session: session})
		})
	}
	var keys []string
	for k, g := range found {
		first, _, _ := strings.Cut(k, "\n")
		if len(g.sessions) >= minRuns && float64(len(g.sessions)) >= minRunShare*float64(c.alone[first]) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(strings.Count(b, "\n")-strings.Count(a, "\n"), len(found[b].sessions)-len(found[a].sessions),
			cmp.Compare(a, b))
	})
	var chosen []string
	for _, k := range keys {
		if !slices.ContainsFunc(chosen, func(longer string) bool {
			return strings.Contains("\n"+longer+"\n", "\n"+k+"\n") && 4*len(found[k].sessions) < 5*len(found[longer].sessions)
		}) {
			chosen = append(chosen, k)
		}
	}
	slices.SortStableFunc(chosen, func(a, b string) int { return len(found[b].sessions) - len(found[a].sessions) })
	list := []Sequence{}
	for _, k := range chosen[:min(len(chosen), maxSequences)] {
		list = append(list, c.sequence(k))
	}
	return list
}

func key(calls []success) string {
	var b strings.Builder
	for i, call := range calls {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(call.tool)
	}
	return b.String()
}

// windows visits the runs of calls that can be a sequence: of at least two different tools, and not one run twice.
func (w *walk) windows(visit func(calls []success)) {
	for i := range w.successes {
		for n := 2; n <= maxSequence && i+n <= len(w.successes); n++ {
			calls := w.successes[i : i+n]
			twice := n%2 == 0 && key(calls[:n/2]) == key(calls[n/2:])
			if !twice && slices.ContainsFunc(calls, func(s success) bool { return s.tool != calls[0].tool }) {
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
		c.sessions[session].windows(func(calls []success) {
			if key(calls) != of {
				return
			}
			all.add(&host.Record{Session: session, Call: calls[0].call})
			for i := range calls {
				if found[i] == nil {
					found[i] = map[string]*argument{}
				}
				calls[i].addTo(found[i], calls[:i])
			}
		})
	}
	s.N, s.Sessions, s.Calls = all.n, len(all.sessions), all.calls
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

// argument counts what a parameter of a call had.
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

// addTo counts the parameters of a call, after those before it in the sequence.
func (s success) addTo(found map[string]*argument, before []success) {
	if len(s.params) == 0 || s.params[0] != '{' {
		return
	}
	scan := jsontext.Scan(s.params)
	scan.Members(func(raw []byte) {
		name, ok := jsontext.Unquote(raw)
		value := bytes.TrimSpace(scan.Skip())
		if !ok || name == "…" {
			return
		}
		a := found[name]
		if a == nil {
			a = &argument{shape: value, from: map[source]int{}}
			found[name] = a
		}
		if a.n++; !bytes.Equal(a.shape, value) {
			a.shape = nil
		}
		tool, pointer, _ := strings.Cut(s.from[name], "/")
		for i := len(before) - 1; i >= 0; i-- {
			if before[i].tool == tool {
				a.from[source{i + 1, "/" + pointer}]++
				break
			}
		}
	})
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
