package main

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/manifest"
)

// Rates of an agent that believes what texts and examples say, more than what the schema says.
const (
	believeRate = 0.9 // acts on a misstatement that it has read
	doubtRate   = 0.5 // the same if the text also says what is right
	insistRate  = 0.5 // a task has a value for the parameter that the misstatement is about
)

// insist gives a task, at a rate, a value for the parameter that a misstatement is about.
func (k *task) insist(m *misstatement, r *rand.Rand) {
	if m == nil || m.param == nil || m.form == formUseless || m.form == formRequired || r.Float64() >= insistRate {
		return
	}
	value := m.param.good[r.IntN(len(m.param.good))]
	if m.form == formDefault {
		value = m.value
	}
	k.values[m.param.Name] = value
}

// believed returns the misstatement about a tool that the agent acts on: it has read it and believes it, and no error
// of this session has taught it otherwise.
func (a *agent) believed(t *tool, hits []string) *misstatement {
	m := a.wrong[t]
	if m == nil || a.learned["wrong "+t.name()] {
		return nil
	}
	rate, d := believeRate, a.read[t]
	if m.form == formBrief { // the lines of the search are what it chooses by
		if !slices.Contains(hits, m.other.name()) || a.line(t).Brief != m.other.doc.Docs.Brief {
			return nil
		}
	} else if d == nil || !m.isMade(d) {
		return nil
	}
	if d != nil && m.isDoubtful(d) {
		rate = doubtRate
	}
	if !a.chance(rate) {
		return nil
	}
	return m
}

// isDoubtful reports whether documentation also says what is right.
func (m *misstatement) isDoubtful(d *manifest.ToolDocs) bool {
	if m.form == formBrief {
		return hasWord(d.WhenNot, m.other.doc.Name)
	}
	says := ""
	if m.param != nil {
		says = kindOf(m.param.Name).says
	}
	return says != "" && strings.Contains(m.texts(d), says)
}

// isRefused reports whether the tool itself refuses parameters, because a value has the wrong format: the host accepts
// any text for a format.
func (m *misstatement) isRefused(params json.RawMessage) bool {
	if m == nil || m.form != formFormat {
		return false
	}
	var values map[string]json.RawMessage
	return json.Unmarshal(params, &values) == nil && string(values[m.param.Name]) == string(m.value)
}

// leadsAway reports whether a misstatement leads to calls of other tools.
func (m *misstatement) leadsAway() bool {
	return m != nil && slices.Contains([]string{formTool, formDeprecated, formBrief, formWhen}, m.form)
}

// follow makes the calls of other tools to which a misstatement leads.
func (a *agent) follow(ctx context.Context, k *task, m *misstatement) {
	switch m.form {
	case formTool, formDeprecated:
		_, _ = a.host.Call(ctx, host.Call{Name: m.tool.plugin + "." + m.wrong, Params: a.fill(k.tool, k),
			Principal: caller.Principal{Name: "agent", Session: a.session}})
	case formBrief, formWhen:
		a.state.decoy = m.other
		a.call(ctx, m.other, a.fill(m.other, k), 0)
		a.state.decoy = nil
	}
}

// misled returns the parameters of a call as a believer of a misstatement writes them. useless means that the call
// succeeds and returns something else than what the task is about.
func (m *misstatement) misled(raw json.RawMessage) (params json.RawMessage, useless bool) {
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil {
		return raw, false
	}
	name := m.wrong
	if m.param != nil {
		name = m.param.Name
	}
	given, has := values[name]
	switch m.form {
	case formBound, formValues, formFormat, formValue:
		if has {
			values[name] = m.value
		}
	case formUnit:
		var n float64
		if has && json.Unmarshal(given, &n) == nil {
			values[name] = mustMarshal(math.Max(1, math.Round(n/unitOf(name).factor)))
			useless = string(values[name]) != string(given)
		}
	case formDefault:
		if useless = has && string(given) == string(m.value); useless {
			delete(values, name)
		}
	case formOptional:
		delete(values, name)
	case formRequired:
		if !has {
			values[name] = m.param.good[0]
		}
	case formField:
		if has {
			values[m.wrong] = given
			delete(values, name)
		}
	case formParameter:
		values[name] = m.value
	case formUseless:
		if useless = !has; useless {
			values[name] = m.value
		}
	}
	return mustMarshal(values), useless
}
