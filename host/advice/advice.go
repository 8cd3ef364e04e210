// Package advice is the check of what comes next. A front end offers no step that does not pass it: what a step names
// exists, its parameters are valid, and it lifts no protection. That it is not the call that was refused, the host
// checks itself.
package advice

import (
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
)

// lifting are the options of the command line that lift a protection, with the value that does; "" means that any does.
// They are for the operator to choose, so nothing that is offered has one.
var lifting = map[string]string{
	"accept": "", "allow-host": "", "allow-undefined": "", "downgrade": "", "isolate": "none", "no-password": "",
	"no-token": "", "plain-http": "", "replace": "", "send-anyway": "", "values": "", "yes": "",
}

// Lifts reports whether words of a command line have an option that lifts a protection.
func Lifts(words []string) bool {
	for i, word := range words {
		option, isOption := strings.CutPrefix(word, "--")
		if word == "--" {
			return false
		} else if !isOption {
			continue
		}
		name, value, given := strings.Cut(strings.TrimRight(option, ".,;:"), "=")
		if !given && i+1 < len(words) {
			value = words[i+1]
		}
		if by, lifts := lifting[name]; lifts && (by == "" || by == value) {
			return true
		}
	}
	return false
}

// Holds returns a step as it may be offered, and false for one that may not.
func Holds(h *call.Host, s host.Step) (host.Step, bool) {
	if s.Options.SendAnyway = false; s.Options.Isolate == "none" {
		s.Options.Isolate = ""
	}
	if s.ForOperator() {
		return s, !Lifts(s.Args)
	}
	if s.Tool == "" {
		return s, s.Op == host.OpList || s.Op == host.OpSearch
	}
	at, err := h.Catalog().Find(s.Tool)
	if err != nil {
		return s, false
	}
	switch s.Op {
	case host.OpPlan:
		return s, at.Tool != nil
	case host.OpDescribe:
		return s, at.Tool != nil || at.Entry != nil
	case host.OpCall:
		return s, at.Tool != nil && (len(s.Choose) > 0 || h.CheckCall(host.Call{Name: s.Tool, Params: s.Params}) == nil)
	}
	return s, true
}
