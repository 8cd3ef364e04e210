package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/manifest"
)

// service is a plugin whose tools only know whether a call serves. The host validates its parameters, as those of any
// plugin.
type service struct {
	m     *manifest.Manifest
	state *state
}

// state is what the services and the recorder of a round share. A round runs one call at a time.
type state struct {
	tools map[string]*tool // by qualified name
	done  map[string]bool  // session and tool of calls that succeeded
	// wanted is the tool that the agent is after, misses whether a similar tool fails in its place. Otherwise that
	// returns something of no use.
	wanted *tool
	misses bool
	decoy  *tool // to which a misstatement led the agent; it fails if misses
	wrong  map[*tool]*misstatement
	took   time.Duration // of the last call of a tool
	clock  time.Time
}

// Errors of tools. Their messages say to a reader what to do.
const (
	errNeeds = "needs_call"    // another tool has to be called before
	errValue = "unknown_value" // another tool returns the values
	errForm  = "bad_value"     // a value has a form that only the tool checks
	errWrong = "nothing_found" // there is nothing of that kind: a similar tool was meant
)

func failure(name, message string) *host.Error {
	return &host.Error{Code: host.ToolFailed, Message: message, Tool: &host.ToolError{Exit: 1, Name: name}}
}

func (s *service) Info() host.Info {
	return host.Info{Name: s.m.Name, Version: s.m.Version, Kind: s.m.Kind, Brief: s.m.Docs.Brief, Tools: len(s.m.Tools),
		Digest: "sha256:" + s.m.Name}
}
func (s *service) Manifest() (*manifest.Manifest, error)    { return s.m, nil }
func (s *service) Lines(group string) ([]host.Line, error)  { return host.LinesOf(s.m, group), nil }
func (s *service) Groups() ([]host.GroupLine, error)        { return host.GroupsOf(s.m), nil }
func (s *service) Names() ([]string, error)                 { return host.NamesOf(s.m), nil }
func (s *service) Tool(name string) (*manifest.Tool, error) { return s.m.Tool(name), nil }
func (s *service) Segment() ([]byte, error)                 { return segment.Of(s.m), nil }
func (s *service) Features() host.Features                  { return host.Features{} }

// Invoke runs a call whose parameters are valid. It takes no time; state.took is how long it would have taken.
func (s *service) Invoke(_ context.Context, r *host.Request) (*job.Result, error) {
	st, t := s.state, s.state.tools[s.m.Name+"."+r.Tool]
	key := r.Session.Name + " " + t.name()
	st.took = t.takes + t.takes*time.Duration(number(key)%41-20)/100 // a fifth more or less
	if limit := r.Options.Timeout; limit > 0 && st.took > limit {
		st.took = limit
		return nil, host.Errorf(host.Timeout, "no answer within %s", limit)
	}
	switch {
	case t.needs != nil && !st.done[r.Session.Name+" "+t.needs.name()]:
		st.took = 10 * time.Millisecond
		return nil, failure(errNeeds, "call "+t.needs.name()+" first")
	case t.from != nil && !st.done[r.Session.Name+" "+t.from.name()]:
		st.took = 10 * time.Millisecond
		return nil, failure(errValue, "unknown "+t.params[0].Name+": "+t.from.name()+" returns those that exist")
	case st.decoy == t && st.misses:
		return nil, failure(errWrong, "nothing of that kind is here; see "+st.wanted.name())
	case st.wrong[t].isRefused(r.Params):
		return nil, failure(errForm, st.wrong[t].param.Name+" does not have the expected form")
	case st.wanted != t && st.wanted != nil && st.wanted.sibling == t && st.misses:
		return nil, failure(errWrong, "nothing of that kind is here; see "+st.wanted.name())
	}
	st.done[key] = true
	return &job.Result{Data: fmt.Appendf(nil, `{"id":"id-%04d"}`, number(key)%10_000)}, nil
}

// number returns a number that depends on a text alone.
func number(text string) int {
	h := fnv.New32a()
	h.Write([]byte(text))
	return int(h.Sum32() >> 1)
}

// recorder replaces the times of events by those of the simulation, and passes them on.
type recorder struct {
	state *state
	to    host.Recorder
}

func (r *recorder) Record(e host.Event) {
	st := r.state
	e.Time, e.Duration = st.clock, max(time.Millisecond, st.took)
	st.clock, st.took = st.clock.Add(e.Duration+time.Second), 0
	r.to.Record(e)
}

// allow is the policy of the simulation.
type allow struct{}

func (allow) Decide(context.Context, host.Ask) (host.Decision, error) {
	return host.Decision{Verdict: host.Allow}, nil
}

// services returns the plugins of a catalog, with the damage of their tools.
func services(c *catalog, damaged map[*tool]*damage, st *state) []host.Provider {
	var providers []host.Provider
	st.tools, st.done, st.wrong = map[string]*tool{}, map[string]bool{}, map[*tool]*misstatement{}
	for _, name := range c.plugins {
		m := &manifest.Manifest{Manifest: manifest.Version, Name: name, Version: "1.0.0", Kind: manifest.KindParley,
			Docs: manifest.Docs{Brief: "Tools of " + strings.ToLower(name)}}
		for _, t := range c.tools {
			if t.plugin != name {
				continue
			}
			doc := t.doc
			if d := damaged[t]; d != nil {
				doc = d.apply(doc)
				st.wrong[t] = d.wrong
			}
			m.Tools = append(m.Tools, doc)
			st.tools[t.name()] = t
		}
		providers = append(providers, &service{m, st})
	}
	return providers
}
